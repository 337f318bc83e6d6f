"""File kinds: how the rows of a file are read and how each row is turned into a trace."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain
from typing import Any, Protocol

from stepsight.core.errors import UserError, located
from stepsight.core.files.jsonl import read_row
from stepsight.core.files.text_lines import decode_line, utf8_lines
from stepsight.core.files.whole_files import STRICT, check_depth
from stepsight.core.text.response import unclosed_thought
from stepsight.core.trace import Trace

Row = dict[str, Any]
Rows = Iterator[tuple[str, Row]]
# The first row of the events of a campaign, as `storage.labelling.files.export_events` writes it.
_EVENTS = "stepsight-events"
# The fields of Label Studio's JSON-MIN and of Argilla's records.
_OF_JSON_MIN = frozenset({"annotation_id", "annotator"})
_OF_ARGILLA = frozenset({"fields", "metadata", "responses"})
_WRITE = "Write one JSON array of objects."
# What may come next in an array: one of these signs, nothing, or a row.
_END, _ROW = "", "row"
_SHOWN = {"[": "[", ",]": ", or ]", _END: "the end of the file"}
OnBad = Callable[[str, UserError, bytes], None]
"""Called with the place of a bad row, its error and its content; reading then continues."""


def json_lines(lines: Iterable[bytes], name: str, on_bad: OnBad | None = None) -> Rows:
    """Yield (where, row) for each line of a JSON Lines file; `where` looks like `file.jsonl line 3`.

    A line that is not a JSON object is passed to `on_bad`. Without `on_bad`, it raises `UserError`.
    """
    for number, raw in enumerate(lines, start=1):
        try:
            row = read_row(raw, number, name)
        except UserError as error:
            if on_bad is None:
                raise
            on_bad(f"{name} line {number}", error, raw.strip())
            continue
        if row is not None:
            yield f"{name} line {number}", row


def json_rows(lines: Iterable[bytes], name: str, on_bad: OnBad | None = None) -> Rows:
    """Yield (where, row) for each row of a file that contains JSON Lines, one JSON array, or objects that are each
    written over several lines.

    The first two lines show which of the three it is. Except in JSON Lines, `where` looks like `file.json row 3`.
    Only one row is held in memory at a time, except that an array written on a single line is held as a whole.
    """
    source = utf8_lines(lines, name)
    head: list[bytes] = []
    shown: list[bytes] = []
    for line in source:
        head.append(line)
        if text := line.removeprefix(b"\xef\xbb\xbf").strip():
            shown.append(text)
        # A line with a whole object, or with part of an array, is enough to tell.
        if len(shown) == 2 or (shown and (shown[0].endswith(b"}") or not shown[0].startswith(b"{"))):
            break
    everything = chain(head, source)
    if shown and shown[0].startswith(b"["):
        return array_rows(everything, name, on_bad)
    # A line that is merely cut off is followed by the next object.
    if len(shown) == 2 and shown[1].startswith((b'"', b"}")):
        return array_rows(everything, name, on_bad, is_array=False)
    return json_lines(everything, name, on_bad)


def array_rows(lines: Iterable[bytes], name: str, on_bad: OnBad | None = None, *, is_array: bool = True) -> Rows:
    """Yield (where, row) for each object in a JSON array or, unless `is_array`, for each of several objects that
    follow one another.

    Invalid UTF-8 and invalid or truncated JSON raise `UserError` with the line or row, because nothing after them
    can be read. An element that is not an object is passed to `on_bad`. Without `on_bad`, it raises `UserError`.
    """
    for where, value in _values(lines, name, is_array=is_array):
        if isinstance(value, dict):
            yield where, value
            continue
        error = UserError(f"{where}: {type(value).__name__} found, expected an object.", "Write objects.")
        if on_bad is None:
            raise error
        on_bad(where, error, json.dumps(value).encode())


def _values(lines: Iterable[bytes], name: str, *, is_array: bool) -> Iterator[tuple[str, Any]]:
    expected, after = ("[", ",]") if is_array else (_ROW, _ROW)
    buffer, number, due = "", 0, 0
    # The last one stands for the end of the file.
    for at, line in enumerate(chain(lines, [None]), start=1):
        buffer += "" if line is None else decode_line(line, at, name)
        # A value that spans several lines is parsed again from its start, but only each time its text has doubled,
        # not at every line.
        if len(buffer) < due and line is not None:
            continue
        offset = due = 0
        while offset < len(buffer):
            sign = buffer[offset]
            if sign.isspace():
                offset += 1
            elif expected != _ROW:
                if sign not in expected:
                    shown = _SHOWN[expected]
                    raise UserError(f"{name} line {at}: {sign!r} found, expected {shown}.", _WRITE)
                expected, offset = _END if sign == "]" else _ROW, offset + 1
            elif sign == "]" and is_array and not number:
                expected, offset = _END, offset + 1
            else:
                where = f"{name} row {number + 1}"
                parsed = _value(buffer, offset, where)
                if parsed is None:
                    due = 2 * (len(buffer) - offset)
                    break
                value, offset = parsed
                number, expected = number + 1, after
                yield where, value
        buffer = buffer[offset:]
    if expected != _END if is_array else buffer:
        within = "array" if is_array else "object"
        raise UserError(f"{name} row {number + 1}: the file ends within the {within}.", "The file looks truncated.")


def _value(buffer: str, offset: int, where: str) -> tuple[Any, int] | None:
    """Decode the value at `offset`. Return it and the offset after it, or None if more lines are needed."""
    try:
        value, end = STRICT.raw_decode(buffer, offset)
        check_depth(value)
        return value, end
    except json.JSONDecodeError as error:
        # No JSON text spans lines, so a value that is merely unfinished fails at the end of the buffer.
        if error.pos >= len(buffer.rstrip()):
            return None
        raise UserError(f"{where}: not JSON ({error.msg.removesuffix(' at')}).", _WRITE) from None
    except RecursionError:
        raise UserError(f"{where}: not JSON (nested too deep).", _WRITE) from None
    except ValueError as error:
        # Too deeply nested, a key with two values, or a number of thousands of digits, which Python does not read.
        raise UserError(f"{where}: not JSON ({error}).", _WRITE) from None


class RowReader(Protocol):
    """The signature of functions that read the rows of a file, such as `json_rows`."""

    def __call__(self, lines: Iterable[bytes], name: str, on_bad: OnBad | None = None, /) -> Rows: ...


RowFilter = Callable[[Rows, str, OnBad | None], Rows]
"""Yields the rows of a file, given as they were read, with the name of the file and a function for bad rows."""


@dataclass(frozen=True)
class FileKind:
    """A kind of file that can be imported.

    `read(row)` turns a row into a trace, and `write(trace)` a trace into a row that `read` reads back; None means
    that no file of this kind is written. `fields` are the field names by which a row is recognised, if `holds(row)`
    is True as well; unless `gives_way(rows, columns)` says of the first rows of a file that they are rather a table
    with these columns, the fields of a `ColumnMap`. `dataset` is the default name of the dataset; None means that
    the dataset is named after the file. `reader` reads the rows of a file, and `through` divides, counts or checks
    the rows of a dataset, whatever files they were read from. A row with a field in `score_fields` belongs to a
    score file of this kind. `check_labels(row)` raises `UserError` if the labels of a row are too doubtful to train
    on, although figures count the row. `notes()`, called after all rows have been read, returns sentences about
    what was left out. `with_thoughts` returns the kind for reading one file with its thoughts set aside or judged,
    as chosen (see `rows.fields`); None means that the files have no thoughts.
    """

    name: str
    title: str
    read: Callable[[Row], Trace]
    fields: frozenset[str] = frozenset()
    holds: Callable[[Row], bool] = lambda row: True
    gives_way: Callable[[Sequence[Row], Mapping[str, str]], bool] = lambda rows, columns: False
    write: Callable[[Trace], Row] | None = None
    dataset: str | None = None
    reader: RowReader = json_rows
    through: RowFilter = lambda rows, name, on_bad: rows
    score_fields: frozenset[str] = frozenset()
    check_labels: Callable[[Row], None] = lambda row: None
    notes: Callable[[], tuple[str, ...]] = tuple
    with_thoughts: "Callable[[str], FileKind] | None" = None

    def rows(self, lines: Iterable[bytes], name: str, on_bad: OnBad | None = None) -> Rows:
        """Yield (where, row) for each row of a file. Bad ones are passed to `on_bad`; without it, they raise
        `UserError`."""
        return self.through(self.reader(lines, name, on_bad), name, on_bad)

    def parse(self, row: Row, where: str) -> Trace:
        """Turn a row into a trace. Raises `UserError`, with a message that starts with `where`, if it is none."""
        with located(where):
            return self.read(row)


class EndlessThoughts:
    """The number of solutions that are nothing but thinking that never ends."""

    def __init__(self) -> None:
        self._count = 0

    def add(self, solution: object, *, is_endless: bool = False) -> None:
        """Count a solution if it is such a text, or if the caller knows that it `is_endless`."""
        self._count += is_endless or (isinstance(solution, str) and bool(unclosed_thought(solution)))

    def notes(self) -> tuple[str, ...]:
        """Return a sentence about them, if there are any."""
        if not self._count:
            return ()
        rows = "row" if self._count == 1 else "rows"
        return (
            f"Thinking that never ends, in {self._count:,} {rows}: there is no solution behind it, and all of the "
            "text is judged.",
        )


class LabelSource(StrEnum):
    """The program that wrote a file of people's labels."""

    EVENTS = "StepSight"
    LABEL_STUDIO = "Label Studio"


def label_source(row: Row) -> LabelSource | None:
    """Return the program that wrote a row of people's labels, or None if the row is not from such a file."""
    if row.get("format") == _EVENTS:
        return LabelSource.EVENTS
    return LabelSource.LABEL_STUDIO if {"data", "annotations"} <= row.keys() else None


def check_label_fields(fields: Iterable[str], where: str) -> None:
    """Raise `UserError` if the fields of a row, or the columns of a table, are of labels that are not read."""
    names = frozenset(fields)
    if names >= _OF_JSON_MIN:
        raise UserError(
            f"{where}: labels that Label Studio exported as a table or as JSON-MIN.", "Export them as JSON."
        )
    if names >= _OF_ARGILLA:
        raise UserError(
            f"{where}: labels that Argilla exported, which cannot be imported.",
            "Give them as tasks of Label Studio.",
        )
