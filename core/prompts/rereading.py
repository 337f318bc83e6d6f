"""The second reading, with which a causal evaluator takes later steps into account.

Read twice, the input for the first `j` steps is that of another trace. Its problem is the problem, a blank line and
these steps as text, one per line (the first copy). Its steps are the same steps, which are judged in this second
copy. Online, a step is the last one of both copies. Offline, the first copy holds the whole solution.

Read in both orders, a step is judged after the steps before it, and once more in an input that holds the first `j`
steps in reverse order, after the steps that follow it. Its probabilities are the mean of the two. BiPRM had the
idea of scoring the reverse order too, but its code is not public: this rule is ours.

Controls replace the first copy by the solution of another problem, by the same steps in another order, or by
nothing, with which the evaluator reads once. They show how much of an effect comes from having read on.
"""

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from itertools import cycle, islice

import numpy as np

from stepsight.core.errors import UserError
from stepsight.core.evaluator_summary import CAUSAL
from stepsight.core.files.jsonl import read_file
from stepsight.core.paths import asset
from stepsight.core.prompts.template import Reading
from stepsight.core.trace import Trace


class CopyOf(StrEnum):
    """The content of a first copy.

    It holds the trace's own steps, as many steps of solutions of other problems, its own steps in another order, or
    nothing.
    """

    OWN = "own"
    OTHER = "other"
    SHUFFLED = "shuffled"
    EMPTY = "empty"


@dataclass(frozen=True)
class FirstCopy:
    """The text before the steps of a trace that is read twice.

    `others` are the solutions from which those of other problems are drawn. By default they are the gallery's.
    """

    of: CopyOf = CopyOf.OWN
    others: tuple[Trace, ...] = ()

    def before(self, first: Trace, whole: Trace) -> Trace:
        """Return the trace whose single reading is the second reading of `first`, the beginning of `whole`."""
        copy = self._steps(first, whole)
        return Trace.of(
            "\n\n".join([first.problem, *(["\n".join(copy)] if copy else [])]), first.substeps, id=whole.id
        )

    def _steps(self, first: Trace, whole: Trace) -> Sequence[str]:
        own = first.substeps
        if self.of == CopyOf.OTHER:
            return list(islice(self._others(whole), len(own)))
        if self.of == CopyOf.SHUFFLED:
            return [own[place] for place in _drawing(whole).permutation(len(own))]
        return own if self.of == CopyOf.OWN else ()

    def _others(self, whole: Trace) -> Iterator[str]:
        """Yield the steps of solutions of other problems without end, from one that the trace determines."""
        others = [one for one in self.others or _gallery() if one.problem != whole.problem]
        begin = int(_drawing(whole).integers(len(others)))
        return (text for one in cycle(others[begin:] + others[:begin]) for text in one.substeps)

    @property
    def mark(self) -> str:
        """A text that is equal only for equal first copies."""
        texts = "".join(one.digest for one in self.others)
        return f"{self.of} {hashlib.sha256(texts.encode()).hexdigest()}" if texts else str(self.of)


OWN = FirstCopy()


def read_as(reading: Reading, trace: Trace) -> tuple[Trace, ...]:
    """Return the traces whose single readings together are the reading of a whole trace."""
    if reading == Reading.TWICE:
        return (OWN.before(trace, trace),)
    return (trace, reversed_steps(trace)) if reading == Reading.BOTH_ORDERS else (trace,)


def reversed_steps(trace: Trace) -> Trace:
    """Return the trace with its sub-steps in reverse order."""
    return Trace.of(trace.problem, trace.substeps[::-1], id=trace.id)


def _drawing(trace: Trace) -> np.random.Generator:
    return np.random.default_rng(int(trace.text_digest[:16], 16))


@cache
def _gallery() -> tuple[Trace, ...]:
    rows = read_file(asset("traces", "gallery.jsonl"))
    return tuple(Trace.of(row["problem"], row["steps"]) for _, row in rows)


_WORDS = {Reading.ONCE: "once", Reading.TWICE: "twice", Reading.BOTH_ORDERS: "in both orders"}
_CONTROLS = {
    CopyOf.OTHER: "of other problems' solutions",
    CopyOf.SHUFFLED: "of the steps in another order",
    CopyOf.EMPTY: "empty",
}
_SPELT = re.compile(
    rf"(?P<name>.+), read (?P<reading>{'|'.join(_WORDS.values())})(?:, first copy (?P<copy>{'|'.join(CopyOf)}))?"
)


@dataclass(frozen=True)
class Rereading:
    """A reading that may differ from an evaluator's own.

    Its `str` follows the name of the evaluator, as in `mini-causal, read twice`. That is the name of the evaluator
    with this reading, and loads it.
    """

    reading: Reading
    first_copy: FirstCopy = OWN

    def __post_init__(self) -> None:
        """Raise `UserError` if there is no first copy to replace."""
        if self.first_copy.of != CopyOf.OWN and self.reading != Reading.TWICE:
            raise UserError(
                f"there is no first copy {self.first_copy.of} in an input that is read {_WORDS[self.reading]}.",
                "Choose reading twice.",
            )

    def __str__(self) -> str:
        return f", read {self.words}"

    @property
    def words(self) -> str:
        """The reading in words, such as `twice, first copy other`."""
        copy = "" if self.first_copy.of == CopyOf.OWN else f", first copy {self.first_copy.of}"
        return f"{_WORDS[self.reading]}{copy}"

    def note(self, name: str) -> str:
        """Return what has to be known of the scores of the evaluator with this `name`."""
        text = f"{name} was not trained to be read {_WORDS[self.reading]}."
        copy = _CONTROLS.get(self.first_copy.of)
        return text if copy is None else f"{text} The first copy is {copy}: a control, not its own judgment."


READINGS = (
    *map(Rereading, Reading),
    *(Rereading(Reading.TWICE, FirstCopy(copy)) for copy in (CopyOf.OTHER, CopyOf.SHUFFLED)),
)
"""The readings that a causal model can have; the last two are controls."""


def causal_attention(reading: Reading) -> str:
    """Return the `attention` of a causal evaluator with this reading."""
    return CAUSAL if reading == Reading.ONCE else f"{CAUSAL}{Rereading(reading)}"


def split_reading(name: str) -> tuple[str, Rereading | None]:
    """Split the name of an evaluator from its reading, which is None if the name has none."""
    found = _SPELT.fullmatch(name)
    if found is None:
        return name, None
    reading = next(one for one, words in _WORDS.items() if words == found["reading"])
    return found["name"], Rereading(reading, FirstCopy(CopyOf(found["copy"] or CopyOf.OWN)))


def reading_note(name: str) -> str:
    """Return the note on an evaluator whose name tells another reading than its own, or "" for any other one."""
    bare, reading = split_reading(name)
    return "" if reading is None else reading.note(bare)
