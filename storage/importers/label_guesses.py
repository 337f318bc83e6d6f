"""What is guessed of the columns of a table, and what is in doubt: ways to read them, in words and as fields. And
guessing which column holds the labels of steps, and what its values mean."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from stepsight.core.errors import UserError
from stepsight.core.text.printed import holds_steps
from stepsight.core.text.split import split_solution
from stepsight.storage.importers.column_mapping import ABSENT, LONGEST, ColumnMap, find_value
from stepsight.storage.importers.rows.fields import (
    RATINGS,
    VALIDITY,
    are_shares,
    inner,
    is_missing,
    listed_value,
    meaning,
    whole_number,
)
from stepsight.storage.importers.rows.kind import Row

_CAPITAL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_SHOWN = 60


@dataclass(frozen=True)
class ColumnReading:
    """One way to read some columns: the `fields` of a `ColumnMap` that choose it, and its effect on a row, in
    words."""

    fields: Mapping[str, str]
    shows: str


@dataclass(frozen=True)
class Doubt:
    """Columns that can be read in several ways. `about` is the field of `ColumnMap` that is in doubt."""

    about: str
    message: str
    readings: tuple[ColumnReading, ...]


@dataclass(frozen=True)
class Guess:
    """The columns that are beyond doubt, sentences about those with generic names, and the doubts."""

    columns: ColumnMap
    notes: tuple[str, ...] = ()
    doubts: tuple[Doubt, ...] = ()


@dataclass(frozen=True)
class FirstRows:
    """The names of the columns of a table, and its first rows."""

    names: Sequence[str]
    rows: Sequence[Row]

    def values(self, name: str) -> list[Any]:
        """Return the values of a column, None where a row does not have it."""
        values = (find_value(row, name) for row in self.rows)
        return [None if value is ABSENT else value for value in values]

    def named(self, words: Iterable[str]) -> str:
        """Return the first column with the first of these names that exists, or ""."""
        columns = {last_part(name): name for name in reversed(self.names)}
        return next((columns[word] for word in words if word in columns), "")


def doubtful(doubts: Sequence[Doubt], columns: ColumnMap, name: str) -> UserError:
    """Return the error that shows doubts, with the fields that choose each reading."""
    lines = []
    for doubt in doubts:
        lines.append(doubt.message)
        for reading in doubt.readings:
            chosen = ",".join(f"{key}={value}" for key, value in reading.fields.items() if value)
            lines.append(f"  {chosen or f'without {doubt.about}'}: {reading.shows}")
    certain = columns.as_fields
    named = ",".join([*([certain] if certain else []), *dict.fromkeys(f"{doubt.about}=…" for doubt in doubts)])
    message = "\n".join(lines)
    return UserError(f"{name}: {message}\n", f"Choose: stepsight import any FILE --fields {named}")


def last_part(name: str) -> str:
    """Return the last part of a column's name in lower case, with underscores between its words."""
    return re.sub(r"[\s-]+", "_", _CAPITAL.sub("_", name.rsplit(".", 1)[-1].strip())).lower()


def unprinted(value: Any) -> Any:
    """Parse a text that is a printed list of steps. Any other value is returned unchanged."""
    return inner(value) if isinstance(value, str) and holds_steps(value) else value


def steps_in(value: Any) -> Sequence[Any] | None:
    """Return the steps of a solution, given as a text or a list, or None for any other value and for a text that is
    too long to be split."""
    value = unprinted(value)
    if isinstance(value, str):
        return split_solution(value).steps if len(value) <= LONGEST else None
    return value if isinstance(value, list) else None


def quoted(value: Any) -> str:
    """Return a value as messages show it."""
    if isinstance(value, str) and whole_number(value) is None:
        return repr(value if len(value) <= _SHOWN else f"{value[: _SHOWN - 1]}…")
    shown = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return shown if len(shown) <= _SHOWN else f"{shown[: _SHOWN - 1]}…"


def listed(names: Iterable[str]) -> str:
    """Return names as a sentence lists them."""
    *others, last = map(repr, names)
    return f"{', '.join(others)} and {last}" if others else last


LABELS = ("labels", "ratings", "rating", "step_labels", "step_ratings", "label")
"""The names of columns that hold labels of steps, or marks of whole solutions."""

_FIRST_ERROR = re.compile(
    r"(?:.*_)?(?:first_(?:error|wrong|incorrect|mistake|bad)(?:_step)?(?:_(?:index|idx|position|pos|location|number))?"
    r"|(?:error|mistake|wrong)_(?:step_)?(?:step|index|idx|position|pos|location))"
)
_ERRORS = ("error-from-0", "error-from-1")
_READ_AS = {
    "shares": "shares from 0 to 1, for it has fractions.",
    "validity": "1 for right and 0 for wrong steps.",
    "error-from-0": "the first wrong step, counted from 0, for -1 is among its values.",
    "error-from-1": "the first wrong step, counted from 1, for it is the last step of some.",
}
_ZEROS = {"validity": "0 is a wrong step", "ratings": "0 is a step that is valid but redundant"}


def guess_labels(table: FirstRows, columns: ColumnMap) -> Guess:
    """Return `columns` with those of the labels if they are beyond doubt, or else what is in doubt about them."""
    lists, marks, others = _label_columns(table, columns)
    errors = [name for name in table.names if _FIRST_ERROR.fullmatch(last_part(name)) and _numbers(table, name)]
    names = lists or errors or marks
    if not names:
        kept = "holds no label for each step and is" if len(others) == 1 else "hold no label for each step and are"
        return Guess(columns, (f"{listed(others)} {kept} kept as metadata.",) if others else ())
    choices = [
        replace(columns, labels=name, labels_as=form)
        for name in names
        for form in (_ERRORS if names is marks else _forms(table, replace(columns, labels=name)))
    ]
    if len(choices) == 1:
        return Guess(choices[0], _notes(table, choices[0]))
    row, value = next((row, value) for row, value in enumerate(table.values(names[0])) if not is_missing(value))
    name, shown = repr(names[0]), f"In row {row + 1} it is {quoted(value)}:"
    readings = [
        ColumnReading({"labels": choice.labels, "labels_as": choice.labels_as}, _outline(table, choice, row))
        for choice in choices
    ]
    if len(names) > 1:
        message = f"{listed(names)} may each hold the labels of the steps. In row {row + 1} they are:"
        readings.append(ColumnReading({"labels": ""}, "no labels of steps, and all are kept as metadata"))
    elif names is marks:
        what = "has one number for a whole solution: its first wrong step, or a mark such as right or wrong."
        message = f"{name} {what} {shown}"
        mark = "a mark, which says nothing of the steps and is kept as metadata"
        readings.append(ColumnReading({"labels": ""}, mark))
    elif names is errors:
        message = f"nothing in {name} says if steps are counted from 0 or from 1. {shown}"
    else:
        message = f"{name} holds 0 and 1 alone. In row {row + 1} it is:"
    return Guess(columns, doubts=(Doubt("labels", message, tuple(readings)),))


def with_label_form(columns: ColumnMap, rows: Sequence[Row]) -> tuple[ColumnMap, tuple[str, ...]]:
    """Return columns that a person chose with the form of their labels, inferred from the values of the first rows,
    and a sentence on what is still open."""
    table = FirstRows((), rows)
    form, *others = _forms(table, columns)
    chosen = replace(columns, labels_as=form)
    if not others:
        return chosen, _notes(table, chosen)
    name = repr(columns.labels)
    if form in _ERRORS:
        return chosen, (f"{name} is read as the first wrong step, counted from 0; its values leave that open.",)
    return chosen, (f"{name} holds 0 and 1 alone. A 0 is read as wrong, and may mean valid but redundant.",)


def _label_columns(table: FirstRows, columns: ColumnMap) -> tuple[list[str], list[str], list[str]]:
    """Return the columns under a generic name that hold a list of labels, a number, or nothing that could be a
    label of a step."""
    lists: list[str] = []
    marks: list[str] = []
    others: list[str] = []
    for name in table.names:
        values = [value for value in table.values(name) if not is_missing(value)]
        if last_part(name) not in LABELS or name in (columns.problem, columns.steps) or not values:
            continue
        if labels := _lists(table, name):
            # The lists must contain something that is the label of a step.
            present = [label for row_labels in labels for label in row_labels if not is_missing(label)]
            are_labels = any(map(are_shares, labels)) or any(
                meaning(label, RATINGS) is not None for label in present
            )
            (lists if are_labels or not present else others).append(name)
        else:
            (marks if len(_numbers(table, name)) == len(values) else others).append(name)
    return lists, marks, others


def _lists(table: FirstRows, name: str) -> list[list[Any]]:
    return [items for value in table.values(name) if (items := listed_value(value)) is not None]


def _numbers(table: FirstRows, name: str) -> list[int]:
    return [number for value in table.values(name) if (number := whole_number(value)) is not None]


def _forms(table: FirstRows, columns: ColumnMap) -> Sequence[str]:
    """Return the forms that the labels may have, the most likely first."""
    name = columns.labels
    if lists := _lists(table, name):
        if any(map(are_shares, lists)):
            return ["shares"]
        labels = [label for labels in lists for label in labels if not is_missing(label)]
        if not all(isinstance(meaning(label, VALIDITY), bool) for label in labels):
            return ["ratings"]
        numbers = {number for label in labels if (number := whole_number(label)) is not None}
        if "rating" not in last_part(name) or not numbers:
            return ["validity"]
        return ["validity", "ratings"] if 0 in numbers else ["ratings"]
    if not _numbers(table, name):
        return ["ratings"]
    from_0 = -1 in _numbers(table, name)
    from_1 = any(
        steps > 0 and whole_number(value) == steps
        for value, steps in zip(table.values(name), map(_count, table.values(columns.steps)), strict=True)
    )
    return _ERRORS if from_0 == from_1 else [_ERRORS[from_1]]


def _outline(table: FirstRows, columns: ColumnMap, row: int) -> str:
    """Return what the labels of a row, counted from 0, say about its steps."""
    value, form = table.values(columns.labels)[row], columns.labels_as
    if form not in _ERRORS:
        zeros = f", where {_ZEROS[form]}" if len(_forms(table, columns)) > 1 else ""
        return f"{quoted(value)}{zeros}"
    start, count = _ERRORS.index(form), _count(table.values(columns.steps)[row])
    step = (whole_number(value) or 0) - start + 1
    says = f"step {step} is the first wrong one" if step > 0 else "no step is wrong"
    if step < 0:
        says = "impossible, for it is below 0"
    elif 0 <= count < step:
        says = f"impossible, for the row has {count} step{'s' if count > 1 else ''}"
    return f"counted from {start}, {says}"


def _count(solution: Any) -> int:
    """Return the number of steps of a solution, or -1 if it is unknown."""
    steps = None if is_missing(solution) else steps_in(solution)
    return -1 if steps is None else len(steps)


def _notes(table: FirstRows, columns: ColumnMap) -> tuple[str, ...]:
    """Return a sentence about the form of labels that their values leave no doubt about, unless words say it."""
    form, lists = columns.labels_as, _lists(table, columns.labels)
    has_numbers = any(whole_number(label) is not None for labels in lists for label in labels)
    is_clear = form == "ratings" or (form == "validity" and not has_numbers)
    return () if is_clear else (f"{columns.labels!r} is read as {_READ_AS[form]}",)
