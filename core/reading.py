"""Readings in which a causal evaluator takes later steps into account.

When a solution is read twice, the input for the first `j` steps is built from a second trace. Its problem is the
original problem, a blank line and the `j` steps as text, one per line (the first copy). Its steps are the same `j`
steps, which are judged in this second copy. Online, a step is the last step of both copies. Offline, the first copy
holds the whole solution.

When a solution is read in both orders, a step is judged twice: after the steps that precede it, and in an input
that holds the first `j` steps in reverse order, after the steps that follow it. The two probabilities are averaged.
BiPRM also scores the reverse order, but its code is not public: this rule is ours.

An evaluator of either kind can read a long solution in windows of whole steps (see `core.prompts.windows`).

Controls replace the first copy by the solution of another problem, by the same steps in another order, or by
nothing, so that the evaluator reads the solution once. They show how much of an effect is due to the later steps
themselves.
"""

import hashlib
import json
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache
from itertools import cycle, islice

import numpy as np

from stepsight.core.errors import UserError
from stepsight.core.paths import asset
from stepsight.core.trace import Trace

CAUSAL = "causal"
"""The `attention` of an evaluator that reads from left to right, once."""


class Reading(StrEnum):
    """The way a causal evaluator reads a solution.

    In `twice`, a copy of all steps precedes the steps that are judged. In `both-orders`, the steps are read once
    forwards and once backwards. In both cases, later steps can change the judgment of earlier ones.
    """

    ONCE = "once"
    TWICE = "twice"
    BOTH_ORDERS = "both-orders"


def sees_later_steps(attention: str) -> bool:
    """True if a later step can change an evaluator's judgment of an earlier one, or its attention is unknown."""
    return attention != CAUSAL


class CopyOf(StrEnum):
    """The content of the first copy of a trace that is read twice.

    It is the trace's own steps, the same number of steps from solutions to other problems, the trace's own steps in
    another order, or nothing.
    """

    OWN = "own"
    OTHER = "other"
    SHUFFLED = "shuffled"
    EMPTY = "empty"


class TemplateChoice(StrEnum):
    """A change of an evaluator's prompt template, in words that follow `read once`.

    The input is tokenized as one text, or in parts; a separator follows the prompt, or none does; steps are
    separated by blank lines, or by line breaks; a chat has no system prompt.
    """

    JOINED = "tokenized as one text"
    IN_PARTS = "tokenized in parts"
    OPENED = "a separator after the prompt"
    NOT_OPENED = "no separator after the prompt"
    BLANK_LINES = "blank lines between steps"
    LINE_BREAKS = "line breaks between steps"
    NO_SYSTEM = "no system prompt"


@dataclass(frozen=True)
class FirstCopy:
    """The text that precedes the steps of a trace that is read twice. `others` holds solutions to other problems,
    which supply the text if `of` is OTHER. If it is empty, the solutions of the gallery are used."""

    of: CopyOf = CopyOf.OWN
    others: tuple[Trace, ...] = ()

    def before(self, first: Trace, whole: Trace) -> Trace:
        """Return a trace that, read once, gives the same input as `first` read twice. `first` consists of the first
        steps of `whole`."""
        copy = self._steps(first, whole)
        problem = "\n\n".join([first.problem, *(["\n".join(copy)] if copy else [])])
        return Trace.of(problem, first.substeps, id=whole.id, context=first.context)

    def _steps(self, first: Trace, whole: Trace) -> Sequence[str]:
        own = first.substeps
        if self.of == CopyOf.OTHER:
            return list(islice(self._others(whole), len(own)))
        if self.of == CopyOf.SHUFFLED:
            return [own[place] for place in _drawing(whole).permutation(len(own))]
        return own if self.of == CopyOf.OWN else ()

    def _others(self, whole: Trace) -> Iterator[str]:
        """Yield steps from solutions to other problems in an endless cycle, which starts at a solution chosen at
        random but always the same for `whole`."""
        pools = ([one for one in pool if one.problem != whole.problem] for pool in (self.others, _gallery()))
        others = next(filter(None, pools))
        begin = int(_drawing(whole).integers(len(others)))
        return (text for one in cycle(others[begin:] + others[:begin]) for text in one.substeps)

    @property
    def mark(self) -> str:
        """A string that identifies the content of the first copy."""
        texts = "".join(one.digest for one in self.others or _gallery()) if self.of == CopyOf.OTHER else ""
        return f"{self.of} {hashlib.sha256(texts.encode()).hexdigest()}" if texts else str(self.of)


OWN = FirstCopy()


def read_as(reading: Reading, trace: Trace) -> tuple[Trace, ...]:
    """Return the traces to be read once each in order to read `trace` with the given reading."""
    if reading == Reading.TWICE:
        return (OWN.before(trace, trace),)
    return (trace, reversed_steps(trace)) if reading == Reading.BOTH_ORDERS else (trace,)


def reversed_steps(trace: Trace) -> Trace:
    """Return the trace with its sub-steps in reverse order, without the context, which has no such order."""
    return Trace.of(trace.problem, trace.substeps[::-1], id=trace.id)


def _drawing(trace: Trace) -> np.random.Generator:
    return np.random.default_rng(int(trace.text_digest[:16], 16))


@cache
def _gallery() -> tuple[Trace, ...]:
    lines = asset("traces", "gallery.jsonl").read_text(encoding="utf-8").splitlines()
    return tuple(Trace.of(row["problem"], row["steps"]) for row in map(json.loads, lines))


_WORDS = {Reading.ONCE: "once", Reading.TWICE: "twice", Reading.BOTH_ORDERS: "in both orders"}
_CONTROLS = {
    CopyOf.OTHER: "of other problems' solutions",
    CopyOf.SHUFFLED: "of the steps in another order",
    CopyOf.EMPTY: "empty",
}
_WINDOWS = "in windows of"
_SPELT = re.compile(
    rf"(?P<name>.+), read (?:(?P<reading>{'|'.join(_WORDS.values())})(?:, first copy (?P<copy>{'|'.join(CopyOf)}))?"
    rf"(?:, (?P<template>{'|'.join(TemplateChoice)}))?(?:, (?={_WINDOWS}))?|(?={_WINDOWS}))"
    rf"(?:{_WINDOWS} (?P<window>[1-9][0-9]{{0,8}}) tokens)?"
)


@dataclass(frozen=True)
class Rereading:
    """A reading for an evaluator. None stands for the evaluator's own reading. With `template`, its prompt template
    is changed as well. With `window`, long solutions are read in windows of that many tokens.

    `str` gives a suffix for the evaluator's name, as in `mini-causal, read twice`. Loading the name with the suffix
    gives the evaluator with this reading.
    """

    reading: Reading | None = None
    first_copy: FirstCopy = OWN
    template: TemplateChoice | None = None
    window: int | None = None

    def __post_init__(self) -> None:
        """Raise `UserError` if a first copy other than the trace's own steps is given for a reading other than
        `twice`."""
        if self.first_copy.of != CopyOf.OWN and self.reading != Reading.TWICE:
            raise UserError(
                f"there is no first copy {self.first_copy.of} in an input that is read {self._words}.",
                "Choose reading twice.",
            )

    def __str__(self) -> str:
        return f", read {self.words}"

    @property
    def words(self) -> str:
        """The reading in words, such as `twice, first copy other`."""
        parts = [
            *([] if self.reading is None else [self._words]),
            *([] if self.first_copy.of == CopyOf.OWN else [f"first copy {self.first_copy.of}"]),
            *([] if self.template is None else [self.template.value]),
            *([] if self.window is None else [f"{_WINDOWS} {self.window} tokens"]),
        ]
        return ", ".join(parts)

    @property
    def _words(self) -> str:
        return _WORDS[self.reading or Reading.ONCE]

    @property
    def plain(self) -> "Rereading":
        """This reading of whole solutions, without windows."""
        return replace(self, window=None)

    @property
    def label(self) -> str:
        """The reading as pages show it, such as `twice (control: the first copy is empty)`."""
        copy = _CONTROLS.get(self.first_copy.of)
        return self._words + ("" if copy is None else f" (control: the first copy is {copy})")

    def check(self, name: str, *, is_causal: bool, context: int | None) -> None:
        """Raise `UserError` if the model called `name` cannot have this reading. Only causal models can be read
        other than once, and a window has at most `context` tokens."""
        if self.reading not in (None, Reading.ONCE) and not is_causal:
            reason = "is bidirectional, and sees later steps already"
            raise self.refused(name, reason, "Read it once, or choose a causal evaluator.")
        if self.window is not None and context is not None and self.window > context:
            raise self.refused(name, f"reads at most {context:,} tokens", f"Choose windows of {context} or fewer.")

    def refused(self, name: str, reason: str, hint: str = "Choose a model on this machine.") -> UserError:
        """Return an error saying that the evaluator called `name` cannot have this reading. `reason` completes the
        sentence "it …"."""
        return UserError(f"{name} cannot be read {self.words}: it {reason}.", hint)

    def fingerprint(self, own: str) -> str:
        """Return the fingerprint of an evaluator with this reading, given its fingerprint `own` with its own
        reading."""
        more = f" {self.template}" if self.template else ""
        more += f" {_WINDOWS} {self.window}" if self.window else ""
        return hashlib.sha256(f"{own} {self.reading} {self.first_copy.mark}{more}".encode()).hexdigest()

    def check_choice(self, name: str, choices: Collection[TemplateChoice]) -> None:
        """Raise `UserError` if the template is changed in a way that is not among the `choices` of the model called
        `name`."""
        if self.template is not None and self.template not in choices:
            reason = "reads so already, or its template has no such choice"
            raise self.refused(name, reason, f"Its choices: {', '.join(choices) or 'none'}.")

    def note(self, name: str) -> str:
        """Return a note on the scores that the evaluator called `name` gives with this reading: that it was not
        trained for the reading and, if so, that they come from a control; and that it reads windows."""
        return " ".join(self._notes(name))

    def _notes(self, name: str) -> Iterator[str]:
        if self.template is not None:
            yield f"{name} has another template of its own: {self.template} is for comparison."
        elif self.reading is not None:
            yield f"{name} was not trained to be read {self._words}."
            if copy := _CONTROLS.get(self.first_copy.of):
                yield f"The first copy is {copy}: a control, not its own judgment."
        if self.window is not None:
            yield (
                f"Of a long solution {name} reads windows of at most {self.window:,} tokens: it judges a step with "
                "the problem and the steps near it, and no step that is further away can move the verdict."
            )


READINGS = (
    *map(Rereading, Reading),
    *(Rereading(Reading.TWICE, FirstCopy(copy)) for copy in (CopyOf.OTHER, CopyOf.SHUFFLED)),
)
"""The readings that a causal model can have; the last two are controls."""


def causal_attention(reading: Reading) -> str:
    """Return the value of `Evaluator.attention` for a causal evaluator with this reading."""
    return CAUSAL if reading == Reading.ONCE else f"{CAUSAL}{Rereading(reading)}"


def split_reading(name: str) -> tuple[str, Rereading | None]:
    """Split an evaluator's name into the bare name and the reading, which is None if the name includes none."""
    found = _SPELT.fullmatch(name)
    if found is None:
        return name, None
    reading = next((one for one, words in _WORDS.items() if words == found["reading"]), None)
    template = TemplateChoice(found["template"]) if found["template"] else None
    window = int(found["window"]) if found["window"] else None
    return found["name"], Rereading(reading, FirstCopy(CopyOf(found["copy"] or CopyOf.OWN)), template, window)


def reading_note(name: str) -> str:
    """Return the note on an evaluator whose name includes a reading, or "" for any other evaluator."""
    bare, reading = split_reading(name)
    return "" if reading is None else reading.note(bare)
