"""Guessing which column of a table holds the labels of steps, and what its values mean."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from stepsight.storage.importers.column_mapping import ColumnMap
from stepsight.storage.importers.doubts import (
    ColumnReading,
    Doubt,
    column_values,
    last_part,
    listed,
    quoted,
    steps_in,
)
from stepsight.storage.importers.rows.fields import (
    RATINGS,
    VALIDITY,
    are_shares,
    is_missing,
    listed_value,
    meaning,
    whole_number,
)
from stepsight.storage.importers.rows.kind import Row

LABELS = ("labels", "ratings", "rating", "step_labels", "step_ratings", "label")
"""The names of columns that hold labels of steps, or marks of whole solutions."""

_FIRST_ERROR = re.compile(
    r"(?:.*_)?(?:first_(?:error|wrong|incorrect|mistake|bad)(?:_step)?(?:_(?:index|idx|position|pos|location|number))?"
    r"|(?:error|mistake|wrong)_(?:step_)?(?:step|index|idx|position|pos|location))"
)
_ERRORS = ("error-from-0", "error-from-1")

Forms = Sequence[tuple[str, str]]
"""The forms that labels may have, the most likely first, each with a sentence that says why it is the only one."""


def guess_labels(
    names: Sequence[str], rows: Sequence[Row], columns: ColumnMap
) -> tuple[ColumnMap, list[str], list[Doubt]]:
    """Return `columns` with those of the labels if they are beyond doubt, with sentences about them, and with what
    is in doubt."""
    lists, numbers, marks = _label_columns(names, rows, columns)
    errors = [name for name in names if _FIRST_ERROR.fullmatch(last_part(name)) and _numbers(rows, name)]
    candidates = lists or errors or numbers
    if not candidates:
        kept = "holds no label for each step and is" if len(marks) == 1 else "hold no label for each step and are"
        return columns, [f"{listed(marks)} {kept} kept as metadata."] if marks else [], []
    if len(candidates) > 1:
        return columns, [], [_doubt_columns(rows, columns, candidates)]
    chosen = replace(columns, labels=candidates[0])
    forms = [(form, "") for form in _ERRORS] if candidates is numbers else _forms(rows, chosen)
    if len(forms) > 1:
        return columns, [], [_doubt_forms(rows, chosen, forms, is_mark=candidates is numbers)]
    ((form, note),) = forms
    return replace(chosen, labels_as=form), [note] if note else [], []


def with_label_form(columns: ColumnMap, rows: Sequence[Row]) -> tuple[ColumnMap, tuple[str, ...]]:
    """Return columns that a person chose with the form of their labels, told from the values of the first rows, and
    a sentence on what is still open."""
    (form, note), *others = _forms(rows, columns)
    if form in _ERRORS and others:
        note = f"{columns.labels!r} is read as the first wrong step, counted from 0; its values leave that open."
    elif others:
        note = f"{columns.labels!r} holds 0 and 1 alone. A 0 is read as wrong, and may mean valid but redundant."
    return replace(columns, labels_as=form), (note,) if note else ()


def _label_columns(
    names: Sequence[str], rows: Sequence[Row], columns: ColumnMap
) -> tuple[list[str], list[str], list[str]]:
    """Return the columns under a generic name that hold a list of labels, a number, or nothing that could be a
    label of a step."""
    lists: list[str] = []
    numbers: list[str] = []
    marks: list[str] = []
    for name in names:
        values = [value for value in column_values(rows, name) if not is_missing(value)]
        if last_part(name) not in LABELS or name in (columns.problem, columns.steps) or not values:
            continue
        labels = [items for value in values if (items := listed_value(value)) is not None]
        if labels:
            # Something in the lists has to be the label of a step.
            given = [label for some in labels for label in some if not is_missing(label)]
            is_said = any(map(are_shares, labels)) or any(meaning(label, RATINGS) is not None for label in given)
            (lists if is_said or not given else marks).append(name)
        else:
            (numbers if len(_numbers(rows, name)) == len(values) else marks).append(name)
    return lists, numbers, marks


def _numbers(rows: Sequence[Row], name: str) -> list[int]:
    return [number for value in column_values(rows, name) if (number := whole_number(value)) is not None]


def _forms(rows: Sequence[Row], columns: ColumnMap) -> Forms:
    name = columns.labels
    lists = [labels for value in column_values(rows, name) if (labels := listed_value(value)) is not None]
    if lists:
        return _list_forms(name, lists)
    numbers = _numbers(rows, name)
    if not numbers:
        return [("ratings", "")]
    from_0 = -1 in numbers
    counts = map(_count, column_values(rows, columns.steps))
    from_1 = any(
        steps > 0 and whole_number(value) == steps
        for value, steps in zip(column_values(rows, name), counts, strict=True)
    )
    lead = f"{name!r} is read as the first wrong step, counted from"
    reasons = (f"{lead} 0, for -1 is among its values.", f"{lead} 1, for it is the last step of some.")
    forms = list(zip(_ERRORS, reasons, strict=True))
    return forms if from_0 == from_1 else [forms[0] if from_0 else forms[1]]


def _count(solution: Any) -> int:
    """Return the number of steps of a solution, or -1 if it is unknown."""
    steps = None if is_missing(solution) else steps_in(solution)
    return -1 if steps is None else len(steps)


def _list_forms(name: str, lists: Sequence[Sequence[Any]]) -> Forms:
    if any(map(are_shares, lists)):
        return [("shares", f"{name!r} is read as shares from 0 to 1, for it has fractions.")]
    labels = [label for labels in lists for label in labels if not is_missing(label)]
    if not all(isinstance(meaning(label, VALIDITY), bool) for label in labels):
        return [("ratings", "")]
    numbers = {number for label in labels if (number := whole_number(label)) is not None}
    note = f"{name!r} is read as 1 for right and 0 for wrong steps." if numbers else ""
    if "rating" not in last_part(name) or not numbers:
        return [("validity", note)]
    return [("validity", note), ("ratings", "")] if 0 in numbers else [("ratings", "")]


def _doubt_columns(rows: Sequence[Row], columns: ColumnMap, names: Sequence[str]) -> Doubt:
    readings = []
    for name in names:
        form, _ = _forms(rows, replace(columns, labels=name))[0]
        _, value = _first(rows, name)
        readings.append(ColumnReading({"labels": name, "labels_as": form}, quoted(value)))
    readings.append(ColumnReading({"labels": ""}, "no labels of steps, and all are kept as metadata"))
    message = f"{listed(names)} may each hold the labels of the steps. In the first row they are:"
    return Doubt("labels", message, tuple(readings))


def _doubt_forms(rows: Sequence[Row], columns: ColumnMap, forms: Forms, *, is_mark: bool) -> Doubt:
    """Return the doubt about what the labels in the chosen column mean. `is_mark` is True if they may also be a
    mark of the whole solution."""
    name = columns.labels
    if forms[0][0] not in _ERRORS:
        message = f"{name!r} holds 0 and 1 alone."
        says = ("a step with 0 is wrong", "a step with 0 is valid but redundant")
        readings = [
            ColumnReading({"labels": name, "labels_as": form}, what)
            for (form, _), what in zip(forms, says, strict=True)
        ]
    else:
        message = f"nothing in {name!r} says if steps are counted from 0 or from 1."
        readings = list(_first_wrong(rows, columns))
    if is_mark:
        message = (
            f"{name!r} has one number for a whole solution: its first wrong step, or a mark such as right or wrong."
        )
        readings.append(
            ColumnReading({"labels": ""}, "a mark, which says nothing of the steps and is kept as metadata")
        )
    row, value = _first(rows, name)
    return Doubt("labels", f"{message} In row {row} it is {quoted(value)}:", tuple(readings))


def _first(rows: Sequence[Row], name: str) -> tuple[int, Any]:
    """Return the number of the first row with a value in a column, counted from 1, and the value."""
    values = enumerate(column_values(rows, name), start=1)
    return next((row, value) for row, value in values if not is_missing(value))


def _first_wrong(rows: Sequence[Row], columns: ColumnMap) -> Iterator[ColumnReading]:
    row, value = _first(rows, columns.labels)
    count = _count(column_values(rows, columns.steps)[row - 1])
    for start, form in enumerate(_ERRORS):
        step = (whole_number(value) or 0) - start + 1
        says = f"step {step} is the first wrong one" if step > 0 else "no step is wrong"
        if step < 0:
            says = "impossible, for it is below 0"
        elif 0 <= count < step:
            says = f"impossible, for the row has {count} step{'s' if count > 1 else ''}"
        yield ColumnReading({"labels": columns.labels, "labels_as": form}, f"counted from {start}, {says}")
