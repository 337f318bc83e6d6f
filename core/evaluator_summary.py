"""What is known of an evaluator without loading its weights or importing PyTorch: its summary, and the readings in
which a causal one takes later steps into account.

A causal evaluator can read a solution in both orders (see `core.evaluators.both_orders`), and any evaluator a long
one in windows of whole steps (see `core.prompts.encoding`).
"""

import hashlib
import re
from dataclasses import replace
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, Strict
from pydantic.dataclasses import dataclass as record

from stepsight.core.errors import UserError
from stepsight.core.scores import Outputs, Thresholds
from stepsight.core.validation import STRICT, Record, invalid

CAUSAL = "causal"
"""The `attention` of an evaluator that reads from left to right, once."""


def sees_later_steps(attention: str) -> bool:
    """True if a later step can change an evaluator's judgment of an earlier one, or its attention is unknown."""
    return attention != CAUSAL


_BOTH_ORDERS = "in both orders"
IN_BOTH_ORDERS = f"{CAUSAL}, read {_BOTH_ORDERS}"
"""The `attention` of a causal evaluator that reads the steps once forwards and once backwards."""
_WINDOWS = "in windows of"
_SPELT = re.compile(
    rf"(?P<name>.+), read (?:(?P<orders>{_BOTH_ORDERS})(?:, (?={_WINDOWS}))?|(?={_WINDOWS}))"
    rf"(?:{_WINDOWS} (?P<window>[1-9][0-9]{{0,8}}) tokens)?"
)


@record(frozen=True, config=STRICT)
class Reading(Record):
    """The way an evaluator reads a solution, where it differs from its own.

    With the `reading` both-orders, a causal evaluator reads the steps once forwards and once backwards, so that
    later steps can change the judgment of earlier ones. With `window`, long solutions are read in windows of that
    many tokens.

    `str` gives a suffix for the evaluator's name, as in `mini-causal, read in both orders`, or "" for its own
    reading. Loading the name with the suffix gives the evaluator with this reading.
    """

    reading: Literal["both-orders"] | None = None
    window: Annotated[int, Field(gt=0)] | None = None

    def __str__(self) -> str:
        return f", read {self.words}" if self.words else ""

    @property
    def words(self) -> str:
        """The reading in words, such as `in both orders, in windows of 512 tokens`."""
        parts = ([_BOTH_ORDERS] if self.reading else []) + (
            [f"{_WINDOWS} {self.window} tokens"] if self.window else []
        )
        return ", ".join(parts)

    def check(self, name: str, *, is_causal: bool, context: int | None) -> None:
        """Raise `UserError` if the model called `name` cannot have this reading. Only causal models can be read in
        both orders, and a window has at most `context` tokens."""
        if self.reading and not is_causal:
            reason = "is bidirectional, and already sees later steps"
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
        suffix = f" {_WINDOWS} {self.window}" if self.window else ""
        return hashlib.sha256(f"{own} {self.reading} own{suffix}".encode()).hexdigest()

    def note(self, name: str) -> str:
        """Return a note on the scores of the evaluator called `name`, which has this reading: that it was not
        trained for the reading, and that it reads windows. It is "" for the evaluator's own reading."""
        name, notes = name.removesuffix(str(self)), []
        if self.reading:
            notes.append(f"{name} was not trained to be read {_BOTH_ORDERS}.")
        if self.window is not None:
            notes.append(
                f"{name} reads a long solution in windows of at most {self.window:,} tokens: it judges a step with "
                "the problem and the steps near it, and steps further away cannot change the verdict."
            )
        return " ".join(notes)


OWN_READING = Reading()
"""The evaluator's own reading."""


def split_reading(spec: str) -> tuple[str, Reading]:
    """Split the text that names an evaluator into the bare name, path, hub id or address, and the reading.

    Evaluators and their rows in the store hold their reading themselves. For a file of scores, only the name is
    known.
    """
    match = _SPELT.fullmatch(spec)
    if match is None:
        return spec, OWN_READING
    window = int(match["window"]) if match["window"] else None
    return match["name"], Reading("both-orders" if match["orders"] else None, window)


SERVED = "served"
"""The `dtype` of an evaluator behind a server, whose weights cannot be seen."""


def _thresholds(values: Any) -> Any:
    try:
        return Thresholds.from_dict(values) if isinstance(values, dict) else values
    except UserError as error:
        raise invalid(error.message, error.hint) from None


@record(frozen=True, config=STRICT)
class EvaluatorSummary(Record):
    """The properties of an evaluator, recorded when it was last loaded so that they are known without its weights.
    `seconds` is the time that loading took. `reading` is the evaluator's own, unless it is part of the name."""

    name: str
    fingerprint: str
    format: str
    attention: str
    dtype: str
    outputs: Annotated[Outputs, Strict(False)]
    parameters: Annotated[int, Field(ge=0, lt=2**63)]
    context: Annotated[int, Field(gt=0, lt=2**63)] | None
    thresholds: Annotated[Thresholds, BeforeValidator(_thresholds)]
    seconds: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0
    reading: Reading = OWN_READING

    @property
    def sees_later_steps(self) -> bool:
        """True if a later step can change the judgment of an earlier one."""
        return sees_later_steps(self.attention)

    @property
    def is_causal_model(self) -> bool:
        """True if the evaluator is a causal model, which can also be used with a reading other than its own."""
        return bool(self.parameters) and self.attention.startswith(CAUSAL)

    @property
    def reading_note(self) -> str:
        """A note that the evaluator was not trained for its reading, or "" if the reading is its own."""
        return self.reading.note(self.name)

    def read_as(self, reading: Reading) -> "EvaluatorSummary":
        """Return the summary of this evaluator with another reading (see `Evaluator.read_as`). Raises `UserError`
        if the evaluator cannot have that reading."""
        if reading == OWN_READING:
            return self
        if not self.parameters:
            raise reading.refused(self.name, "is behind a server" if self.dtype == SERVED else "is no model")
        reading.check(self.name, is_causal=self.is_causal_model, context=self.context)
        attention = IN_BOTH_ORDERS if reading.reading else self.attention
        if attention == self.attention:
            reading = Reading(window=reading.window)
        if reading == OWN_READING:
            return self
        name, fingerprint = f"{self.name}{reading}", reading.fingerprint(self.fingerprint)
        return replace(self, name=name, fingerprint=fingerprint, attention=attention, reading=reading)
