"""The typed fields of a row, and labels, whole numbers, lists and missing values as various programs write them.

A kind of file declares the fields that it reads as a `RowFields`. On a bad value, `UserError` says what was
expected. A label that is a word, such as `pos`, `correct` or `+`, has one meaning in every file; the meaning of a
number depends on its column.
"""

import hashlib
import json
import math
import re
from abc import abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, ConfigDict, PlainValidator, ValidationError, ValidationInfo

from stepsight.core.errors import UserError, counted
from stepsight.core.files.jsonl import with_shares
from stepsight.core.text.printed import MISSING, is_printed, parse_printed
from stepsight.core.text.signs import comparable, is_blank
from stepsight.core.trace import Label, Step, Trace, check_text
from stepsight.storage.importers.rows.kind import FileKind, Row

Meaning = Label | bool
"""The meaning of a label: a step's label or, if only that is known, whether the step is valid."""

RATINGS: Mapping[int, Meaning] = {-1: Label.NEG, 0: Label.NEU, 1: Label.POS}
VALIDITY: Mapping[int, Meaning] = {0: False, 1: True}
_WORDS: Mapping[str, Meaning] = (
    {label.text: label for label in Label}
    | {"negative": Label.NEG, "neutral": Label.NEU, "positive": Label.POS}
    | dict.fromkeys(("+", "true", "t", "yes", "y", "correct", "good", "right", "valid", "ok"), True)
    | dict.fromkeys(("-", "false", "f", "no", "n", "incorrect", "bad", "wrong", "invalid"), False)
)  # fmt: skip
_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"))
_NAMES = "neg, neu, pos, true, false, + or -"
# This includes invisible characters.
_LONGEST_WORD = 40
# A decimal comma is allowed too, but three digits after a comma may be thousands.
_WHOLE = re.compile(r"([+-]?[0-9]{1,9})(?:\.0*|,0{1,2})?")

# Characters that XML does not allow, as spreadsheets write them: a carriage return with its line feed, other
# characters, and text that would look like such an escape itself.
_ESCAPED = re.compile(r"_x000[Dd]_(?:\r?\n|_x000[Aa]_)?|_x(00[01][0-9A-Fa-f]|005[Ff](?=_x[0-9A-Fa-f]{4}_))_")
# The error values of spreadsheets in their languages, and what fills a cell that is too narrow.
_ERROR_VALUE = re.compile(
    r"#[¡¿]?[^\W\d_a-z]+(?:/[^\W_a-z]+)?[!?]|#(?:N/[AD]|NV|Н/Д|NB|I/T|YOK|BRAK|PUUTTUU|SAKNAS!?|GETTING_DATA)|Err:[0-9]{3}|#{3,}"
)
_LONGEST_ERROR = 30
_MOST_IN_CELL = {32_767: "Excel", 65_535: "LibreOffice"}


def field(row: Row, key: str) -> Any:
    """Return the value of a required field."""
    if key not in row:
        keys = ", ".join(map(repr, sorted(row)[:12])) or "none"
        raise UserError(f"the field {key!r} is missing (found: {keys}).", "Check the kind of the file.")
    return row[key]


def text(row: Row, key: str) -> str:
    """Return the value of a field that must be non-empty text."""
    return check_text(field(row, key), f"the field {key!r}")


def identifier(row: Row, key: str) -> str:
    """Return the value of a field that must be text or a whole number, converted to text."""
    return check_identifier(field(row, key), f"the field {key!r}")


def check_identifier(value: object, what: str) -> str:
    """Return a value, called `what` in messages, that must be text or a whole number, converted to text."""
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise UserError(f"{what} is {describe(value)}, expected text or a whole number.")
    return check_text(str(value), what)


def check_object(value: object, what: str) -> Row:
    """Return a value, called `what` in messages, that must be an object."""
    if not isinstance(value, dict):
        raise UserError(f"{what} is {describe(value)}, expected an object.")
    return value


def content_id(row: Row) -> str:
    """Return an id for a row that has none: a hash of the row's content that ignores the order of its keys. Unlike
    a line number, this id stays the same when rows are added to the file or moved."""
    return hashlib.sha256(canonical(row)).hexdigest()[:16]


def canonical(row: Row) -> bytes:
    """Serialise a row so that rows with the same content give the same bytes, whatever the order of their keys."""
    try:
        return _CANONICAL.encode(row).encode()
    except RecursionError:
        raise UserError("the row is nested too deep.", "Check the kind of the file.") from None


def whole(value: object, low: int, high: int, what: str, expected: str = "") -> int:
    """Return `value`, which must be a whole number from `low` to `high`, such as 2, 2.0 or "2", and not True.

    In messages, `what` names the value and `expected` describes the range.
    """
    number = whole_number(value)
    if number is None or not low <= number <= high:
        raise UserError(f"{what} is {describe(value)}, expected {expected or f'a step from {low} to {high}'}.")
    return number


def listed(row: Row, key: str) -> list[Any]:
    """Return the value of a field that must be a list, or the text of a printed list."""
    return check_list(field(row, key), f"the field {key!r}")


def check_list(value: object, what: str) -> list[Any]:
    """Return a value, called `what` in messages, that must be a list, or the text of a printed list."""
    items = listed_value(value)
    if items is None:
        raise UserError(f"{what} is {describe(value)}, expected a list.")
    return items


Steps = Sequence[str | tuple[str, ...]]
"""The steps of a solution, each a text, or the texts of its sub-steps."""


def substeps_of(step: str | tuple[str, ...]) -> tuple[str, ...]:
    """Return the texts of the sub-steps of a step."""
    return (step,) if isinstance(step, str) else step


def until_error(steps: Steps, error: int | None) -> tuple[Step, ...]:
    """Return the steps of a solution of which only the first error is known.

    `error` is the 0-based index of the first error, or None if there is no error. Steps before the error become
    valid without a label, the wrong step becomes neg, and later steps are unlabelled.
    """
    texts = list(map(substeps_of, steps))
    if error is None:
        return tuple(Step(substeps, valid=True) for substeps in texts)
    before = (Step(substeps, valid=True) for substeps in texts[:error])
    return (*before, Step(texts[error], Label.NEG), *map(Step, texts[error + 1 :]))


def until_first_error(steps: Steps, value: object, start: int, what: str, hint: str = "") -> tuple[Step, ...]:
    """Like `until_error`, for the first error as a file gives it.

    `value` is a step, counted from `start`; the number before `start`, or N/A, says that there is none. If it is
    missing, the steps are unlabelled. In messages, `what` names the value, and `hint` says how to proceed.
    """
    if says_not_applicable(value):
        return until_error(steps, None)
    if is_missing(value):
        return tuple(Step(substeps_of(step)) for step in steps)
    last = len(steps) + start - 1
    number = whole_number(value)
    if number is None or not start - 1 <= number <= last:
        raise UserError(
            f"{what} is {describe(value)}, expected a step from {start} to {last}, or {start - 1}.", hint
        )
    return until_error(steps, None if number == start - 1 else number - start)


ASIDE, JUDGED = "aside", "judged"
"""The treatment of thoughts on import, that is, of thinking before a solution."""


def check_texts(trace: Trace) -> None:
    """Raise `UserError` if the problem of a trace is a word for a missing value, or if a step has no visible
    text."""
    if is_missing(trace.problem):
        raise UserError(f"the problem is {trace.problem!r:.20}, a missing value.", "Give it a text.")
    for number, step in enumerate(trace.steps, start=1):
        for substep in step.substeps:
            if not substep.isascii() and is_blank(substep):
                raise UserError(f"step {number} has no visible text.", "Remove it or give it a text.")


def rest(row: Row, *used: str) -> dict[str, Any]:
    """Return the `meta` of a trace: all fields of the row except `used`."""
    return {key: value for key, value in row.items() if key not in used}


class RowFields(BaseModel):
    """Base class of the fields that a kind of file reads from a row. All others are the metadata of the trace, and
    so are those that are `kept`."""

    model_config = ConfigDict(frozen=True)
    kept: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def read(cls, row: Row) -> Trace:
        """Return the trace in a row. Raises `UserError` if a field is missing or has an unexpected value."""
        try:
            fields = cls.model_validate(row)
        except ValidationError as error:
            # The types of fields raise `UserError` for anything else.
            for fault in error.errors(include_url=False):
                field(row, str(fault["loc"][0]))
            raise
        return fields.trace(row)

    @abstractmethod
    def trace(self, row: Row) -> Trace:
        """Return the trace of these fields of `row`."""

    @classmethod
    def names(cls) -> frozenset[str]:
        """Return the names of the fields."""
        return frozenset(cls.model_fields)

    @classmethod
    def kind(cls, name: str, title: str, *, but: Collection[str] = (), **others: Any) -> FileKind:
        """Return the file kind of such rows, which are recognised by all of these fields `but` some. Its dataset is
        called like the kind, unless `others`, the further arguments of `FileKind`, say otherwise."""
        fields = cls.names().difference(but)
        return FileKind(name, title, cls.read, fields, **{"dataset": name} | others)

    @classmethod
    def meta(cls, row: Row) -> dict[str, Any]:
        """Return the metadata of a row."""
        return rest(row, *cls.names().difference(cls.kept))


def _validator(check: Callable[[object, str], object]) -> PlainValidator:
    def run(value: object, info: ValidationInfo) -> object:
        return check(value, f"the field {info.field_name!r}")

    return PlainValidator(run)


def _check_texts(value: object, what: str) -> list[str]:
    name = what.removeprefix("the field ")
    return [check_text(item, f"step {number} of {name}") for number, item in enumerate(check_list(value, what), 1)]


def _check_substeps(value: object, what: str) -> list[tuple[str, ...]]:
    steps = check_list(value, what)
    for number, step in enumerate(steps, start=1):
        if not isinstance(step, list):
            raise UserError(f"step {number} is {describe(step)}, expected a list of texts.")
        for item in step:
            check_text(item, f"step {number}")
    return [tuple(step) for step in steps]


Id = Annotated[str, _validator(check_identifier)]
"""A text or a whole number."""
Text = Annotated[str, _validator(check_text)]
"""A text that is not empty."""
Items = Annotated[list[Any], _validator(check_list)]
"""A list, or the text of a printed list."""
Texts = Annotated[list[str], _validator(_check_texts)]
"""A list of steps, each a text."""
Substeps = Annotated[list[tuple[str, ...]], _validator(_check_substeps)]
"""A list of steps, each a list of the texts of its sub-steps."""


def describe(value: object) -> str:
    """Describe a value for a message in JSON terms, truncated if it is long."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list):
        return "a list"
    shown = repr(value)
    return shown if len(shown) <= 60 else f"{shown[:57]}..."


def is_missing(value: object) -> bool:
    """True if a value stands for a missing value: null, NaN, a blank cell, or a word such as N/A."""
    if isinstance(value, str):
        word = value.strip()
        return len(word) <= _LONGEST_WORD and comparable(word).strip().lower() in MISSING
    return value is None or (isinstance(value, float) and math.isnan(value))


def unescaped(text: str) -> str:
    """Return a text with the signs that spreadsheets write as `_x000D_` and the like, as some readers of such files
    leave them. A carriage return is one line break with the one that follows; other controls are left out."""
    return _ESCAPED.sub(_sign, text) if "_x00" in text else text


def _sign(escape: re.Match[str]) -> str:
    if escape[1] is None:
        # At the end of a text, no line follows.
        return "\n" if escape.end() < len(escape.string) else ""
    code = int(escape[1], 16)
    return chr(code) if code == ord("_") or chr(code) in "\t\n" else ""


def from_spreadsheet(value: str, what: str) -> str:
    """Return the text of a cell, called `what` in messages, as a spreadsheet shows it. Raises `UserError` if it is
    an error value, or was cut."""
    if len(value) <= _LONGEST_ERROR and _ERROR_VALUE.fullmatch(value.strip()):
        raise UserError(
            f"{what} is {value.strip()!r}, an error value of a spreadsheet.",
            "Correct its formula, or give it a text.",
        )
    if len(value) >= min(_MOST_IN_CELL) // 2:
        # Some programs count characters beyond U+FFFF twice, and some write one character as seven.
        lengths = (len(value), len(value.encode("utf-16-le", "replace")) // 2, len(_ESCAPED.sub("_", value)))
        programs = [_MOST_IN_CELL[length] for length in lengths if length in _MOST_IN_CELL]
        if programs:
            raise UserError(
                f"{what} is as long as a cell of {programs[0]} can be, so it may have been cut off.",
                "Take the text from its source. If it is complete, add a space at its end.",
            )
    return unescaped(value)


def says_not_applicable(value: object) -> bool:
    """True if a value is the word N/A. In MR-MATH, this means that the solution has no first error."""
    return isinstance(value, str) and comparable(value).strip().lower() == "n/a"


def whole_number(value: object) -> int | None:
    """Convert a value such as `1`, `1.0`, `"1"` or `"−1.0"` to a whole number. Returns None for anything else."""
    if isinstance(value, str):
        match = _WHOLE.fullmatch(comparable(value).strip())
        return int(match[1]) if match else None
    if isinstance(value, float):
        return int(value) if value.is_integer() else None
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def meaning(label: object, numbers: Mapping[int, Meaning]) -> Meaning | None:
    """Return the meaning of a label, such as "Pos ", True, 1.0 or "+1", or None if the value is not a label.
    `numbers` gives the meaning of each number."""
    if isinstance(label, bool):
        return label
    number = whole_number(label)
    if number is not None:
        return numbers.get(number)
    return _WORDS.get(comparable(label).strip().lower()) if isinstance(label, str) else None


def labelled_steps(
    steps: Steps,
    labels: Sequence[object],
    numbers: Mapping[int, Meaning],
    called: tuple[str, str] = ("label", "step"),
    *,
    are_shares: bool = False,
) -> tuple[Step, ...]:
    """Return steps with their labels, which are shares from 0 to 1 if `are_shares`. Otherwise `numbers` gives the
    meaning of each number. A step whose label is missing is unlabelled, and one only known to be wrong is neg.

    Raises `UserError` if a value is not a label, or if there is not one for each step; `called` is what the message
    then calls a label and a step.
    """
    if len(labels) != len(steps):
        label_name, step_name = called
        message = f"{counted(len(labels), label_name)} for {counted(len(steps), step_name)}."
        raise UserError(message, f"Give one {label_name} per step.")
    texts = list(map(substeps_of, steps))
    if are_shares:
        return with_shares(list(map(Step, texts)), [None if is_missing(label) else label for label in labels])
    labelled = []
    for number, (substeps, label) in enumerate(zip(texts, labels, strict=True), start=1):
        value = meaning(label, numbers)
        if value is None and not is_missing(label):
            expected = ", ".join(map(str, numbers))
            raise UserError(
                f"the label of step {number} is {describe(label)}.", f"Expected {expected}, or {_NAMES}."
            )
        step = Step(substeps, value) if isinstance(value, Label) else Step(substeps, valid=value)
        labelled.append(Step(substeps, Label.NEG) if value is False else step)
    return tuple(labelled)


def are_shares(labels: Sequence[object]) -> bool:
    """True if the labels of a trace are shares: at least one of its numbers is not whole."""
    return any(isinstance(label, float) and math.isfinite(label) and not label.is_integer() for label in labels)


class NumbersSeen:
    """The places where a file has shares as labels, and where it has only whole numbers, which may be shares or
    labels."""

    def __init__(self) -> None:
        self._shares = self._whole = ""

    def add(self, where: str, labels: Sequence[object]) -> None:
        """Add the labels of the trace at `where`."""
        if are_shares(labels):
            self._shares = self._shares or where
        elif any(whole_number(label) is not None for label in labels):
            self._whole = self._whole or where

    def check(self) -> None:
        """Raise `UserError` if some traces have shares and others whole numbers."""
        if self._shares and self._whole:
            raise UserError(
                f"{self._shares} has shares, but {self._whole} has whole numbers, which may be labels.",
                "If all are shares, choose their columns (stepsight import any, with labels_as=shares).",
            )


def inner(value: Any) -> Any:
    """Parse a cell whose text is a printed list or object. Any other value is returned unchanged."""
    if isinstance(value, str) and is_printed(value):
        try:
            return parse_printed(value)
        except ValueError:
            return value
    return value


def listed_value(value: object) -> list[Any] | None:
    """Return a value that is a list, or that is the text of a printed list as in CSV files. Returns None for
    anything else."""
    items = inner(value)
    return items if isinstance(items, list) else None
