"""Reading typed fields from a row. Every function raises `UserError`, saying what was expected, on a bad value."""

import hashlib
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from stepsight.core.errors import UserError
from stepsight.core.label import Label
from stepsight.core.trace import Step, check_text
from stepsight.storage.importers.kind import Row


@contextmanager
def located(where: str) -> Iterator[None]:
    """Prefix the message of a `UserError` raised in the `with` block with `where`."""
    try:
        yield
    except UserError as error:
        raise error.at(where) from None


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
    value = field(row, key)
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise UserError(f"the field {key!r} is {describe(value)}, expected text or a whole number.")
    return check_text(str(value), f"the field {key!r}")


def content_id(row: Row) -> str:
    """Return an id for a row that has none: a hash of the row's content that ignores the order of its keys. Unlike
    a line number, this id stays the same when rows are added to the file or moved."""
    return hashlib.sha256(canonical(row)).hexdigest()[:16]


def canonical(row: Row) -> bytes:
    """Serialise a row so that rows with the same content give the same bytes, whatever the order of their keys."""
    try:
        return json.dumps(row, sort_keys=True, ensure_ascii=True, separators=(",", ":")).encode()
    except RecursionError:
        raise UserError("the row is nested too deep.", "Check the kind of the file.") from None


def whole(value: object, low: int, high: int, what: str, expected: str = "") -> int:
    """Return `value`, which must be an integer from `low` to `high`. True and 2.0 are refused.

    In messages, `what` names the value and `expected` describes the range.
    """
    if type(value) is not int or not low <= value <= high:
        raise UserError(f"{what} is {describe(value)}, expected {expected or f'a step from {low} to {high}'}.")
    return value


def listed(row: Row, key: str) -> list[Any]:
    """Return the value of a field that must be a list."""
    value = field(row, key)
    if not isinstance(value, list):
        raise UserError(f"the field {key!r} is {describe(value)}, expected a list.")
    return value


def texts(row: Row, key: str) -> list[str]:
    """Return the value of a field that must be a list of non-empty texts, one per step."""
    return [check_text(item, f"step {number} of {key!r}") for number, item in enumerate(listed(row, key), start=1)]


def until_error(steps: Sequence[Sequence[str]], error: int | None) -> tuple[Step, ...]:
    """Return the steps of a solution of which only the first error is known.

    `error` is the 0-based index of the first error, or None if there is no error. Steps before the error become
    valid without a label, the wrong step becomes neg, and later steps are unlabelled.
    """
    return tuple(_until(tuple(substeps), i, error) for i, substeps in enumerate(steps))


def _until(substeps: tuple[str, ...], i: int, error: int | None) -> Step:
    if error is None or i < error:
        return Step(substeps, valid=True)
    return Step(substeps, Label.NEG) if i == error else Step(substeps)


def steps(row: Row, key: str) -> list[tuple[str, ...]]:
    """Return the value of a field that must be a list of steps, each a list of sub-step texts."""
    value = field(row, key)
    if not isinstance(value, list):
        raise UserError(f"the field {key!r} is {describe(value)}, expected a list of steps.")
    for number, step in enumerate(value, start=1):
        if not isinstance(step, list):
            raise UserError(f"step {number} is {describe(step)}, expected a list of texts.")
        for item in step:
            check_text(item, f"step {number}")
    return [tuple(step) for step in value]


def rest(row: Row, *used: str) -> dict[str, Any]:
    """Return the `meta` of a trace: all fields of the row except `used`."""
    return {key: value for key, value in row.items() if key not in used}


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
