"""Traces as JSON Lines in the plain format: `{"id": …, "problem": …, "steps": […], "labels": […]}`.

A step is a string or a list of its sub-steps. Three keys are optional, each with an entry or null for each step:
`labels` holds neg, neu or pos; `valid` holds true or false if the gold labels cover only validity; `shares` holds a
number from 0 to 1. All other keys are kept in the trace's `meta`.
"""

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from io import BufferedReader, FileIO
from pathlib import Path
from typing import Any

from stepsight.core.errors import UserError, counted, located
from stepsight.core.files.text_lines import decode_line, split_lines, utf8_lines
from stepsight.core.files.whole_files import STRICT, parse_json
from stepsight.core.trace import Step, Trace, check_text

_KEYS = ("id", "problem", "steps", "labels")
_VALID = "valid"
SHARES = "shares"
_BLOCK = 1 << 18


def read_rows(lines: Iterable[bytes], name: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the line number and the JSON object of each non-blank line. Raises `UserError`, with a message that
    gives `name` and the line number, if a line is not UTF-8, not JSON, or not an object."""
    for number, raw in enumerate(utf8_lines(lines, name), start=1):
        row = read_row(raw, number, name)
        if row is not None:
            yield number, row


def read_row(raw: bytes, number: int, name: str) -> dict[str, Any] | None:
    """Return the JSON object in a line, or None if the line is blank. Raises the same errors as `read_rows`."""
    # Concatenated files have byte order marks in the middle too.
    where, text = f"{name} line {number}", decode_line(raw, number, name).removeprefix("\ufeff")
    if not text.strip():
        return None
    try:
        row = parse_json(text, decoder=STRICT)
    except ValueError as error:
        what: object = error
        if isinstance(error, json.JSONDecodeError):
            # Its own text counts lines too, from the beginning of this one.
            what = f"{error.msg.removesuffix(' at')} at column {error.pos + 1}"
        raise UserError(f"{where}: not JSON ({what}).", "Write one JSON object per line.") from None
    if not isinstance(row, dict):
        raise UserError(f"{where}: {type(row).__name__} found, expected an object.", "Write one object per line.")
    return row


def read_file(path: str | Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Like `read_rows`, but for a file. Also raises `UserError` if the file cannot be opened."""
    with open_input(path) as file:
        yield from read_rows(file, str(path))


class _Input(BufferedReader):
    """A binary file that limits the length of its lines."""

    def __iter__(self) -> Iterator[bytes]:
        return split_lines(iter(partial(self.read, _BLOCK), b""), str(self.name))


def open_input(path: str | Path) -> BufferedReader:
    """Open a file for reading bytes. Raises `UserError` if it cannot be opened or, during iteration, if a line has
    more than `LARGEST` bytes."""
    try:
        return _Input(FileIO(path))
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror}).", "Check the path.") from None


def parse_trace(row: dict[str, Any], where: str) -> Trace:
    """Like `read_trace`, but the message of a `UserError` starts with `where`."""
    with located(where):
        return read_trace(row)


def read_trace(row: dict[str, Any]) -> Trace:
    """Turn a row in the plain format into a trace. Raises `UserError` if the row is invalid."""
    for key in ("id", "problem", "steps"):
        if key not in row:
            raise UserError(f"the field {key!r} is missing.", "Each row needs id, problem and steps.")
    # A field with one of these names that is not a list belongs to the original data.
    valid, shares = (row[name] if isinstance(row.get(name), list) else None for name in (_VALID, SHARES))
    keys = (*_KEYS, *([] if valid is None else [_VALID]), *([] if shares is None else [SHARES]))
    trace = Trace.of(
        row["problem"],
        _steps(row["steps"]),
        _list(row["labels"], "labels") if row.get("labels") is not None else None,
        id=_id(row["id"]),
        meta={key: value for key, value in row.items() if key not in keys},
    )
    trace = trace if valid is None else replace(trace, steps=_with_validity(trace.steps, valid))
    return trace if shares is None else replace(trace, steps=with_shares(trace.steps, shares))


def format_trace(trace: Trace) -> dict[str, Any]:
    """Return the row from which `parse_trace` rebuilds this trace. The key `valid` is written only if some step has
    a gold validity but no label, and `shares` only if some step has a share."""
    row: dict[str, Any] = {"id": trace.id, "problem": trace.problem}
    row["steps"] = [s.substeps[0] if len(s.substeps) == 1 else list(s.substeps) for s in trace.steps]
    if any(label is not None for label in trace.labels):
        row["labels"] = [None if label is None else label.text for label in trace.labels]
    if any(step.label is None and step.valid is not None for step in trace.steps):
        row[_VALID] = [step.valid for step in trace.steps]
    if trace.has_shares:
        row[SHARES] = [step.share for step in trace.steps]
    return dict(trace.meta) | row


def _with_validity(steps: Sequence[Step], valid: list[Any]) -> tuple[Step, ...]:
    """Set the gold validity of steps without a label to the values in `valid`. Labelled steps keep theirs. Raises
    `UserError` if `valid` does not fit."""
    if len(valid) != len(steps):
        raise UserError(
            f"valid has {counted(len(valid), 'entry', 'entries')} for {counted(len(steps), 'step')}.",
            "Give one per step, or leave valid out.",
        )
    for number, value in enumerate(valid, start=1):
        if value is not None and not isinstance(value, bool):
            raise UserError(f"valid of step {number} is {value!r:.40}, expected true, false or null.")
    return tuple(
        replace(step, valid=value) if step.label is None else step for step, value in zip(steps, valid, strict=True)
    )


def with_shares(steps: Sequence[Step], shares: Sequence[Any]) -> tuple[Step, ...]:
    """Give each step its share, a number from 0 to 1, or None if the value is null or NaN. Raises `UserError` if a
    value is none of these, or if there are more or fewer values than steps."""
    if len(shares) != len(steps):
        raise UserError(
            f"{counted(len(shares), 'share')} for {counted(len(steps), 'step')}.",
            "Give one per step, null where unknown.",
        )
    return tuple(
        replace(step, share=_share(value, number))
        for number, (step, value) in enumerate(zip(steps, shares, strict=True), start=1)
    )


def _share(value: Any, number: int) -> float | None:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise UserError(
            f"the share of step {number} is {json.dumps(value, default=str):.40}, expected a number from 0 to 1 or "
            "null."
        )
    return float(value)


def _id(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise UserError(f"the id is {type(value).__name__}, expected text or a whole number.")
    return check_text(str(value), "the id")


def _list(value: object, what: str) -> list[Any]:
    if not isinstance(value, list):
        raise UserError(f"{what} is {type(value).__name__}, expected a list.")
    return value


def _steps(value: object) -> list[str | list[str]]:
    steps = _list(value, "steps")
    for number, step in enumerate(steps, start=1):
        texts = step if isinstance(step, list) else [step]
        if not all(isinstance(text, str) for text in texts):
            raise UserError(f"step {number} is {step!r:.60}, expected a text or a list of texts.")
    return steps
