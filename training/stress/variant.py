"""A transform of solutions, the variants that it produces, and what is proved of them by calculation.

Every sub-step of a trace counts as a step of its own here, so that a place in a solution or a variant is a single
number. Where a change concerns a calculation, the evaluator `equations` checks the solution before and after it,
and a change that it cannot prove is not used.
"""

import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import NamedTuple

from stepsight.core.equations.evaluator import checks_of
from stepsight.core.trace import Label, Step, Trace


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


TRANSFORMS: dict[str, Transform] = {}
"""All transforms by their names: first those after which a verdict must change, then the others."""


def by_substep(trace: Trace) -> Trace:
    """Return a trace in which every sub-step is a step of its own, with the gold label of the step it came from."""
    steps = (Step((text,), step.label, step.valid) for step in trace.steps for text in step.substeps)
    return replace(trace, steps=tuple(steps))


def transform(name: str, demand: Demand, description: str) -> Callable[[Make], Make]:
    """Register the function that makes the variants of a transform."""

    def register(make: Make) -> Make:
        TRANSFORMS[name] = Transform(name, demand, description, make)
        return make

    return register


def with_texts(trace: Trace, texts: Mapping[int, str], problem: str | None = None) -> Trace:
    """Return an unlabelled copy of a trace in which some steps, by their places, have other texts."""
    steps = [texts.get(place, text) for place, text in enumerate(trace.substeps)]
    return Trace.of(trace.problem if problem is None else problem, steps, id=trace.id)


def variant_of(after: Trace, said: str, *targets: int, equation: str = "") -> Variant:
    """Return the variant whose steps stand where those of the original did."""
    return Variant(after, tuple(range(len(after.substeps))), targets, said, equation)


def inserted(trace: Trace, place: int, text: str, said: str, equation: str = "") -> Variant:
    """Return the variant with a wrong step inserted before the step at `place`."""
    texts, origins = trace.substeps, range(len(trace.substeps))
    after = Trace.of(trace.problem, [*texts[:place], text, *texts[place:]], id=trace.id)
    return Variant(after, (*origins[:place], None, *origins[place:]), (place,), said, equation)


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
    """Return the number with which a step begins, and the space after it, or ""."""
    match = _NUMBERING.match(text)
    return match[0] if match else ""


def right_places(trace: Trace) -> list[int]:
    """Return the places of the steps before the first one that gold calls wrong."""
    wrong = [place for place, step in enumerate(trace.steps) if step.label == Label.NEG or step.valid is False]
    return list(range(wrong[0] if wrong else len(trace.steps)))


# --- proofs by calculation ---


class Equation(NamedTuple):
    """An equation that holds: `text`, the characters from `start` to `end` of the step at `place`."""

    place: int
    start: int
    end: int
    text: str


def true_equations(trace: Trace) -> list[Equation]:
    """Return the equations that hold, of all steps that state nothing wrong.

    An equation that contains another one, as the whole of 2 + 3 = 5 = 10/2 does, is left out.
    """
    equations = []
    for place, checks in enumerate(checks_of(trace)):
        if all(check.holds for check in checks):
            spans = [(check.start, check.end) for check in checks]
            equations += [
                Equation(place, start, end, trace.substeps[place][start:end])
                for start, end in dict.fromkeys(spans)
                if not any((a, b) != (start, end) and start <= a and b <= end for a, b in spans)
            ]
    return equations


def failing_at(trace: Trace, place: int) -> str:
    """Return the first failing equation of the step at `place`, or "" if it has none or an earlier step states
    anything wrong."""
    checks = checks_of(trace)
    if any(not check.holds for part in checks[:place] for check in part):
        return ""
    failing = (check for check in checks[place] if not check.holds)
    return next((trace.substeps[place][check.start : check.end] for check in failing), "")


def is_unharmed(before: Trace, after: Trace) -> bool:
    """True if a change made nothing wrong and left no equation unread: for each step before it, there is one after
    it with as many equations that hold and as many that fail."""

    def tally(trace: Trace) -> list[tuple[int, int]]:
        counts = ([check.holds for check in part] for part in checks_of(trace))
        return sorted((sum(holding), len(holding)) for holding in counts)

    return tally(after) == tally(before)
