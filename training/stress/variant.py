"""A transform of solutions, and the variants that it produces.

Every sub-step of a trace counts as a step of its own here, so that a place in a solution or a variant is a single
number. All rules are our own; each is named and described by its transform.
"""

import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from stepsight.core.trace import Step, Trace


class Demand(StrEnum):
    """The demand of a variant on an evaluator: that the verdict on the changed step turns to not valid, or that all
    verdicts stay the same."""

    CHANGE = "must change"
    STAY = "must not change"


@dataclass(frozen=True)
class Variant:
    """A solution changed by a transform.

    `trace` is the changed solution, with a step for each sub-step. `origins` gives the place in the original of
    each of these steps, or None for an inserted step. `targets` are the places in `trace` whose verdict must turn
    to not valid; they are empty if all verdicts must stay. `said` describes the change in a sentence. `equation` is
    the equation that was made to fail or was rewritten, as written in `trace`, or "" if the change cannot be proved
    by calculation.
    """

    trace: Trace
    origins: tuple[int | None, ...]
    targets: tuple[int, ...]
    said: str
    equation: str = ""


Make = Callable[[Trace, random.Random, Sequence[Trace]], Variant | None]
"""Returns a variant of a trace, or None if there is nothing to change. The last argument holds other traces."""


@dataclass(frozen=True)
class Transform:
    """A rule that creates variants. `make` gets a trace with a step for each sub-step."""

    name: str
    demand: Demand
    description: str
    make: Make

    def variant(self, trace: Trace, seed: int = 0, others: Sequence[Trace] = ()) -> Variant | None:
        """Return a variant of a trace, or None if the transform finds nothing to change in it.

        The same trace, seed and `others` give the same variant on every machine. `others` are traces from which a
        step may be taken; those of the same problem are skipped.
        """
        rng = random.Random(f"{seed} {self.name} {trace.digest}")
        foreign = [other for other in others if other.problem != trace.problem]
        return self.make(by_substep(trace), rng, foreign)


def by_substep(trace: Trace) -> Trace:
    """Return a trace in which every sub-step is a step of its own, with the gold label of the step it came from."""
    steps = (Step((text,), step.label, step.valid) for step in trace.steps for text in step.substeps)
    return replace(trace, steps=tuple(steps))


def with_steps(trace: Trace, texts: Mapping[int, str], problem: str | None = None) -> Trace:
    """Return an unlabelled copy of a trace in which some steps, by their places, have other texts."""
    steps = [texts.get(place, text) for place, text in enumerate(trace.substeps)]
    return Trace.of(trace.problem if problem is None else problem, steps, id=trace.id)


def edited(trace: Trace, texts: Mapping[int, str], said: str, *, demand: Demand, equation: str = "") -> Variant:
    """Return the variant in which some steps, by their places, have other texts. If verdicts must change, the steps
    with other texts are the targets."""
    targets = tuple(sorted(texts)) if demand == Demand.CHANGE else ()
    return Variant(with_steps(trace, texts), tuple(range(len(trace.substeps))), targets, said, equation)


def inserted(trace: Trace, place: int, text: str, said: str, equation: str = "") -> Variant:
    """Return the variant with a wrong step inserted before the step at `place`."""
    texts = list(trace.substeps)
    origins: list[int | None] = list(range(len(texts)))
    steps = [*texts[:place], text, *texts[place:]]
    return Variant(
        Trace.of(trace.problem, steps, id=trace.id),
        (*origins[:place], None, *origins[place:]),
        (place,),
        said,
        equation,
    )


def quoted(text: str, most: int = 80) -> str:
    """Return a text in one line and in quotation marks, cut after `most` characters."""
    line = " ".join(text.split())
    return f"“{line if len(line) <= most else line[: most - 1] + '…'}”"


def spliced(text: str, start: int, end: int, other: str) -> str:
    """Return a text in which the characters from `start` to `end` are replaced by `other`."""
    return text[:start] + other + text[end:]


# The number at the beginning of a step: "Step 2:", "2." or "(b)".
_NUMBERING = re.compile(
    r"\s*(?:(?:step|schritt|étape|paso)\s*\d+\s*[:.)-]?|\(?(?:\d{1,3}|[a-z])[.):])\s+", re.IGNORECASE
)


def numbering(text: str) -> str:
    """Return the number with which a step begins, and the space after it, or "" if it does not begin with a
    number."""
    match = _NUMBERING.match(text)
    return match[0] if match else ""
