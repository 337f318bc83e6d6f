"""Importing tables of solutions with arbitrary column names.

The user says which columns hold the problem, the steps and the labels.
"""

import re
from collections.abc import Collection, Iterable, Sequence
from functools import partial
from typing import Annotated, Any

from pydantic.dataclasses import dataclass

from stepsight.core.errors import UserError
from stepsight.core.text.printed import holds_steps, is_unquoted_list, parse_printed
from stepsight.core.text.signs import is_blank
from stepsight.core.text.split import Split, split_solution, split_steps
from stepsight.core.trace import Step, Trace
from stepsight.core.validation import STRICT, Record, choice
from stepsight.storage.importers.rows.fields import (
    ASIDE,
    JUDGED,
    RATINGS,
    VALIDITY,
    NumbersSeen,
    are_shares,
    check_identifier,
    content_id,
    describe,
    from_spreadsheet,
    inner,
    is_missing,
    labelled_steps,
    listed_value,
    unescaped,
    until_first_error,
    whole_number,
)
from stepsight.storage.importers.rows.kind import EndlessThoughts, FileKind, OnBad, Row, RowReader, Rows

NAME = "columns"
"""The kind of a dataset imported in this way."""

LABELS = {
    "ratings": "each step: -1, 0, 1 or neg, neu, pos",
    "validity": "each step: 0, 1 or true, false or +, -",
    "shares": "each step: a share from 0 to 1",
    "error-from-0": "the first wrong step, counted from 0; -1: none",
    "error-from-1": "the first wrong step, counted from 1; 0: none",
}
"""The possible contents of a column of labels, as the page words them."""

THOUGHTS = {ASIDE: "set aside, not judged", JUDGED: "judged, as steps of their own"}
"""The treatment of thoughts, such as `<think>…</think>` before a solution, as the page words it."""

ABSENT = object()
"""The value of a column that a row does not have."""

LONGEST = 1_000_000
"""The largest number of characters in a text that is split into steps, which takes seconds. A few bytes of Parquet
can stand for many such texts."""

_PLACE = re.compile("[0-9]{1,6}")
_MOST = 60
_CHOOSE = "Say what the labels are, or choose another column."


@dataclass(frozen=True, config=STRICT)
class ColumnMap(Record):
    """The names of the columns that hold the problem, the steps and the labels of a table.

    In a column name, `a.b` stands for the key `b` of the object in column `a`, or of every object if column `a`
    holds a list, and `a.0` for the first element of a list. `steps` holds a list, or a text to be split at each
    `split` or, if `split` is empty, by `core.text.split`. `labels_as` is one of `LABELS`, or empty, which means
    shares for a trace with a fraction among its labels, and otherwise ratings; reading then raises `UserError` at
    the end of the file if the labels are 0 and 1 alone, or whole numbers in some traces and shares in others. If
    `id` is empty, traces are identified by a hash of their row.

    `thoughts` is one of `THOUGHTS`, and decides the treatment of thinking before a solution that is split by its
    form. Thoughts that are set aside are kept in the metadata field `THINKING`; for thoughts that are judged,
    `THOUGHT_STEPS` gives the number of their steps.
    """

    problem: str
    steps: str
    labels: str = ""
    labels_as: Annotated[str, choice((*LABELS, ""))] = "ratings"
    id: str = ""
    split: str = ""
    thoughts: Annotated[str, choice(tuple(THOUGHTS))] = ASIDE

    @property
    def as_fields(self) -> str:
        """The mapping in the form of the option `--fields` of `stepsight import any`."""
        named = {"problem": self.problem, "steps": self.steps, "labels": self.labels, "id": self.id}
        if self.labels:
            named["labels_as"] = self.labels_as
        if self.thoughts != ASIDE:
            named["thoughts"] = self.thoughts
        return ",".join(f"{name}={column}" for name, column in named.items() if column)


def columns_kind(columns: ColumnMap, rows: RowReader, binary: Collection[str] = ()) -> FileKind:
    """Return a file kind that reads rows with `rows` and converts them to traces by the mapping `columns`.

    `rows` adds the names of binary columns that it leaves out to `binary`. Reading raises `UserError` at the end of
    the file if `columns.split` occurs in none of the solutions.
    """
    seen = _RowsSeen(columns, binary)
    return FileKind(
        name=NAME,
        title="a table under its own column names",
        read=partial(_read, columns),
        reader=rows,
        through=seen.through,
        notes=seen.notes,
    )


class _RowsSeen:
    def __init__(self, columns: ColumnMap, binary: Collection[str]) -> None:
        self._columns, self._binary = columns, binary
        self._solutions = 0
        self._endless = EndlessThoughts()
        self._have_steps = False
        self._labels: set[object] = set()
        self._numbers = NumbersSeen()

    def through(self, rows: Rows, name: str, on_bad: OnBad | None) -> Rows:
        """Yield the rows, and take each into account. Raises `UserError` at the end as `_check` does."""
        for where, row in rows:
            self._add(where, row)
            yield where, row
        self._check(name)

    def _add(self, where: str, row: Row) -> None:
        text = find_value(row, self._columns.steps)
        text = unescaped(text) if isinstance(text, str) else text
        self._endless.add(text)
        is_solution = isinstance(text, str) and len(text) <= LONGEST and not (is_blank(text) or holds_steps(text))
        if is_solution and not self._have_steps:
            self._solutions += 1
            if self._columns.split:
                solution, separator = _with_plain_lines(text, self._columns.split)
                self._have_steps = separator in solution
            else:
                self._have_steps = len(split_steps(text)) > 1
        if self._columns.labels and not self._columns.labels_as:
            labels = listed_value(find_value(row, self._columns.labels)) or ()
            self._labels.update(whole_number(label) for label in labels if not is_missing(label))
            self._numbers.add(where, labels)

    def _check(self, name: str) -> None:
        """Raise `UserError` if the text between steps occurs in no solution, if the labels are only 0 and 1 and may
        or may not be ratings, or if it is unclear whether they are shares."""
        self._numbers.check()
        if self._columns.split and self._solutions and not self._have_steps:
            where, what = "not in the solution", "it"
            if self._solutions > 1:
                where, what = f"in none of the {self._solutions:,} solutions", "each"
            raise UserError(
                f"{name}: {self._columns.split!r} is {where}: {what} would be one step.",
                "Give the text that stands between the steps, or none: solutions are then split by their form.",
            )
        if self._labels == {0, 1} or self._labels == {0}:
            raise UserError(
                f"{name}: the labels are only 0 and 1, and 0 may mean wrong, or valid but redundant.",
                "Say which: labels_as=validity, or labels_as=ratings.",
            )

    def notes(self) -> tuple[str, ...]:
        """Return sentences about what was left out, and about solutions in which no steps were found."""
        notes = []
        if self._binary:
            names, s = ", ".join(sorted(self._binary)[:_MOST]), "s" if len(self._binary) > 1 else ""
            notes.append(f"Left out as binary data: the column{s} {names}.")
        if self._solutions and not self._have_steps:
            notes.append(
                "Every solution became one step. If a text stands between the steps, `stepsight import any` can"
                " split there."
            )
        return (*notes, *self._endless.notes())


def column_names(rows: Iterable[Row]) -> list[str]:
    """Return the names of all columns in the given rows, including `a.b` for keys of objects in a column."""
    names: dict[str, None] = {}
    for row in rows:
        for key, value in row.items():
            names[key] = None
            value = inner(value)
            first = value[0] if isinstance(value, list) and value else value
            if isinstance(first, dict):
                names.update(dict.fromkeys(f"{key}.{within}" for within in first))
    return list(names)[:_MOST]


def _read(columns: ColumnMap, row: Row) -> Trace:
    for what, name in (("problem", columns.problem), ("steps", columns.steps)):
        if not name:
            raise UserError(f"no column is named for the {what}.", "Choose one.")
    problem = _cell(row, columns.problem)
    if not isinstance(problem, str):
        what = f"the column {columns.problem!r:.60} is {describe(problem)}"
        raise UserError(f"{what}, expected a text.", "Choose another column.")
    steps, split = _steps(row, columns)
    labels = _cell(row, columns.labels) if columns.labels else None
    rest = _row_without(row, [columns.problem, columns.steps, columns.labels, columns.id])
    meta = {name: unescaped(value) if isinstance(value, str) else value for name, value in rest.items()}
    id = check_identifier(_cell(row, columns.id), f"the column {columns.id!r:.60}") if columns.id else None
    return Trace(id or content_id(row), problem, _label_steps(steps, labels, columns), meta | split.meta)


def _row_without(row: Row, names: Sequence[str]) -> Row:
    """Return a row without the named columns. For a name `a.b`, only the key `b` is removed from the value of
    column `a`."""
    rest = dict(row)
    for name in filter(None, names):
        first, _, within = name.partition(".")
        if name in rest or not within:
            rest.pop(name, None)
        elif first in rest:
            rest[first] = _value_without(rest[first], within)
            if rest[first] is ABSENT:
                del rest[first]
    return rest


def _value_without(value: Any, name: str) -> Any:
    """Return a value without the part at the dotted path `name`, or `ABSENT` if nothing is left."""
    value = inner(value)
    first, _, within = name.partition(".")
    if isinstance(value, list):
        if not _PLACE.fullmatch(first):
            kept = [_value_without(item, name) for item in value]
        else:
            kept = list(value)
            if int(first) < len(kept):
                kept[int(first)] = _value_without(kept[int(first)], within) if within else ABSENT
        if all(item is ABSENT for item in kept):
            return ABSENT
        # The positions of the remaining ones still tell which item they belong to.
        return [None if item is ABSENT else item for item in kept]
    if isinstance(value, dict):
        return _row_without(value, [name]) or ABSENT
    return ABSENT


def find_value(row: Row, name: str) -> Any:
    """Return the value of a column, or `ABSENT` if the row does not have it."""
    if name in row:
        return row[name]
    first, _, within = name.partition(".")
    return _nested_value(row[first], within) if within and first in row else ABSENT


def _nested_value(value: Any, name: str) -> Any:
    """Return the value at the dotted path `name` in an object or a list. A key applied to a list is looked up in
    every element. The result is `ABSENT` unless all elements have it."""
    value = inner(value)
    if isinstance(value, dict):
        return find_value(value, name)
    if not isinstance(value, list):
        # An empty column has no inner value.
        return None if is_missing(value) else ABSENT
    first, _, within = name.partition(".")
    if _PLACE.fullmatch(first):
        if int(first) >= len(value):
            return ABSENT
        item = value[int(first)]
        return _nested_value(item, within) if within else item
    items = [_nested_value(item, name) for item in value]
    return ABSENT if any(item is ABSENT for item in items) else items


def _cell(row: Row, name: str) -> Any:
    """Return the value of a column. A text is returned as a spreadsheet shows it, unless it is a list of steps, in
    which a line break has to be written otherwise. Raises `UserError` if the row does not have the column, or if it
    holds what a spreadsheet leaves in place of a text."""
    value = find_value(row, name)
    if value is ABSENT:
        names = ", ".join(map(repr, column_names([row])[:12])) or "none"
        raise UserError(f"the column {name!r:.60} is missing (found: {names}).", "Check the name, or the row.")
    if not isinstance(value, str):
        return value
    text = from_spreadsheet(value, f"the column {name!r:.60}")
    return value if holds_steps(value) else text


def _steps(row: Row, columns: ColumnMap) -> tuple[list[tuple[str, ...]], Split]:
    value, name = _cell(row, columns.steps), columns.steps
    split = _split_text(value, columns) if isinstance(value, str) else Split(())
    steps = list(split.steps) if isinstance(value, str) else value
    if is_missing(value) or not isinstance(steps, list):
        raise UserError(
            f"the column {name!r:.60} is {describe(value)}, expected a list of steps, or a solution as one text.",
            "Choose another column.",
        )
    substeps = []
    for number, step in enumerate(steps, start=1):
        texts = tuple(step) if isinstance(step, list) else (step,)
        if not all(isinstance(text, str) for text in texts):
            within = (
                [key for key, value in step.items() if isinstance(value, str)] if isinstance(step, dict) else []
            )
            hint = f"Name what is within, such as {name}.{within[0]}." if within else ""
            raise UserError(f"step {number} is {describe(step)}, expected a text or a list of texts.", hint)
        substeps.append(tuple(map(unescaped, texts)))
    return substeps, split


def _split_text(text: str, columns: ColumnMap) -> Split:
    """Return the steps in a text: the list that is printed in it, or else the parts into which the solution is
    split. Raises `UserError` if a printed list cannot be parsed."""
    if holds_steps(text):
        try:
            steps: list[Any] = parse_printed(text)
        except ValueError as error:
            raise UserError(
                f"the column {columns.steps!r:.60} begins like a list of steps but cannot be read as one: {error}.",
                "Write the list as JSON, or without its brackets.",
            ) from None
        return Split(tuple(steps))
    if len(text) > LONGEST:
        raise UserError(
            f"the column {columns.steps!r:.60} has {len(text):,} characters, expected up to {LONGEST:,}.",
            "Write its steps as a list, or leave the row out.",
        )
    if not columns.split:
        if is_unquoted_list(text):
            raise UserError(
                f"the column {columns.steps!r:.60} is a list whose texts have no quotes around them.",
                "Write the list as JSON, or without its brackets.",
            )
        return split_solution(text, judges_thinking=columns.thoughts == JUDGED)
    text, separator = _with_plain_lines(text, columns.split)
    return Split(tuple(part.strip() for part in text.split(separator) if not is_blank(part)))


def _with_plain_lines(text: str, separator: str) -> tuple[str, str]:
    """Return a solution and the text between its steps with all line breaks as line feeds. If blank lines separate
    the steps, a line without visible text becomes empty."""
    text, separator = (re.sub(r"\r\n?", "\n", part) for part in (text, separator))
    if not separator.strip("\n") and len(separator) > 1:
        text = "\n".join("" if is_blank(line) else line for line in text.split("\n"))
    return text, separator


def _label_steps(steps: list[tuple[str, ...]], value: object, columns: ColumnMap) -> tuple[Step, ...]:
    what = f"the column {columns.labels!r:.60}"
    if columns.labels and columns.labels_as.startswith("error"):
        return until_first_error(steps, value, int(columns.labels_as[-1]), what, _CHOOSE)
    if not columns.labels or is_missing(value):
        return tuple(Step(texts) for texts in steps)
    labels = listed_value(value)
    if labels is None:
        raise UserError(f"{what} is {describe(value)}, expected a list with a label per step.", _CHOOSE)
    shares = columns.labels_as == "shares" or (not columns.labels_as and are_shares(labels))
    numbers = VALIDITY if columns.labels_as == "validity" else RATINGS
    return labelled_steps(steps, labels, numbers, are_shares=shares)
