"""Importing tables of solutions with arbitrary column names.

The user says which columns hold the problem, the steps and the labels.
"""

import re
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Annotated, Any

from pydantic.dataclasses import dataclass

from stepsight.core.errors import UserError
from stepsight.core.files.json_values import parse_json
from stepsight.core.label import Label
from stepsight.core.text.signs import is_blank
from stepsight.core.text.split import split_steps
from stepsight.core.trace import Step, Trace
from stepsight.core.validation import STRICT, Record, choice
from stepsight.storage.importers.fields import content_id, describe, located, until_error
from stepsight.storage.importers.kind import FileKind, Row, RowReader

NAME = "columns"
"""The kind of a dataset imported in this way."""

LABELS = {
    "ratings": "each step: -1, 0, 1 or neg, neu, pos",
    "validity": "each step: 0, 1 or true, false or +, -",
    "error-from-0": "the first wrong step, counted from 0; -1: none",
    "error-from-1": "the first wrong step, counted from 1; 0: none",
}
"""The possible contents of a column of labels, as the page words them."""

_RATINGS: dict[object, Label] = {-1: Label.NEG, 0: Label.NEU, 1: Label.POS} | {one.text: one for one in Label}
_VALID: dict[object, bool] = {
    1: True, 0: False, "+": True, "-": False, "true": True, "false": False,
    "correct": True, "incorrect": False, "good": True, "bad": False, "right": True, "wrong": False,
}  # fmt: skip
_NONE = ("", "n/a", "none", "null")
_WHOLE = re.compile("[+-]?[0-9]{1,9}")
_PLACE = re.compile("[0-9]{1,6}")
_MOST = 60
_MISSING = object()
_GUESSES = {
    "id": ("id", "uuid", "idx", "uid"),
    "problem": ("problem", "question", "prompt", "query", "instruction", "input"),
    "steps": (
        "steps", "solution", "completions", "response", "process", "output", "answer", "completion", "reasoning",
    ),
    "labels": ("labels", "ratings", "rating", "step_labels", "label", "first_error", "first_error_step"),
}  # fmt: skip


@dataclass(frozen=True, config=STRICT)
class ColumnMap(Record):
    """The names of the columns that hold the problem, the steps and the labels of a table.

    In a column name, `a.b` stands for the key `b` of the object in column `a`, or of every object if column `a`
    holds a list, and `a.0` for the first element of a list. `steps` holds a list, or a text to be split at each
    `split` or, if `split` is empty, by `core.text.split`. `labels_as` is one of `LABELS`. If `id` is empty, traces
    are identified by a hash of their row.
    """

    problem: str
    steps: str
    labels: str = ""
    labels_as: Annotated[str, choice(tuple(LABELS))] = "ratings"
    id: str = ""
    split: str = ""


def columns_kind(columns: ColumnMap, rows: RowReader) -> FileKind:
    """Return a file kind that reads rows with `rows` and converts them to traces by the mapping `columns`."""
    return FileKind(
        name=NAME,
        title="a table under its own column names",
        fields=frozenset(),
        parse=partial(_parse, columns),
        rows=rows,
    )


def column_names(rows: Iterable[Row]) -> list[str]:
    """Return the names of all columns in the given rows, including `a.b` for keys of objects in a column."""
    names: dict[str, None] = {}
    for row in rows:
        for key, value in row.items():
            names[key] = None
            one = value[0] if isinstance(value, list) and value else value
            if isinstance(one, dict):
                names.update(dict.fromkeys(f"{key}.{inner}" for inner in one))
    return list(names)[:_MOST]


def guess_columns(names: Sequence[str], rows: Sequence[Row]) -> ColumnMap:
    """Guess from the column names what each column contains. A field of the result is empty if no column fits."""
    found = {field: _guess(names, words) for field, words in _GUESSES.items()}
    if found["labels"] in (found["steps"], found["problem"]):
        found["labels"] = ""
    return ColumnMap(**found, labels_as=_guess_labels([_find(row, found["labels"]) for row in rows]))


def _guess(names: Sequence[str], words: Sequence[str]) -> str:
    ends = {name.rsplit(".", 1)[-1].lower(): name for name in reversed(names)}
    return next((ends[word] for word in words if word in ends), "")


def _guess_labels(values: Sequence[object]) -> str:
    lists = [value for value in map(_list, values) if value is not None]
    if not lists:
        return "error-from-0" if any(_number(value) is not None for value in values) else "ratings"
    every = {str(one).lower() for value in lists for one in value}
    return "validity" if every <= {"0", "1", "true", "false", "+", "-", "none"} else "ratings"


def _parse(columns: ColumnMap, row: Row, where: str) -> Trace:
    """Parse a row into a trace. Raises `UserError` if a column is missing or has unexpected content."""
    with located(where):
        for what, name in (("problem", columns.problem), ("steps", columns.steps)):
            if not name:
                raise UserError(f"no column is named for the {what}.", "Choose one.")
        problem, steps = _text(row, columns.problem), _steps(row, columns)
        labels = _find(row, columns.labels) if columns.labels else None
        if labels is _MISSING:
            raise _missing(row, columns.labels)
        used = {name.split(".", 1)[0] for name in (columns.problem, columns.steps, columns.labels, columns.id)}
        return Trace(
            id=_id(row, columns.id) if columns.id else content_id(row),
            problem=problem,
            steps=_labelled(steps, labels, columns),
            meta={key: value for key, value in row.items() if key not in used},
        )


def _find(row: Row, name: str) -> Any:
    """Return the value of a column, or `_MISSING` if the row does not have it."""
    if name in row:
        return row[name]
    first, _, inner = name.partition(".")
    return _within(row[first], inner) if inner and first in row else _MISSING


def _within(value: Any, name: str) -> Any:
    """Return the value at the dotted path `name` in an object or a list. A key applied to a list is looked up in
    every element. The result is `_MISSING` unless all elements have it."""
    if isinstance(value, dict):
        return _find(value, name)
    if not isinstance(value, list):
        # An empty column has no inner value.
        return None if value is None else _MISSING
    first, _, inner = name.partition(".")
    if _PLACE.fullmatch(first):
        if int(first) >= len(value):
            return _MISSING
        one = value[int(first)]
        return _within(one, inner) if inner else one
    found = [_within(one, name) for one in value]
    return _MISSING if any(one is _MISSING for one in found) else found


def _missing(row: Row, name: str) -> UserError:
    names = ", ".join(map(repr, column_names([row])[:12])) or "none"
    return UserError(f"the column {name!r:.60} is missing (found: {names}).", "Check the name, or the row.")


def _text(row: Row, name: str) -> str:
    value = _find(row, name)
    if value is _MISSING:
        raise _missing(row, name)
    if not isinstance(value, str):
        raise UserError(f"the column {name!r:.60} is {describe(value)}, expected a text.", "Choose another column.")
    return value


def _id(row: Row, name: str) -> str:
    value = _find(row, name)
    if value is _MISSING:
        raise _missing(row, name)
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise UserError(f"the column {name!r:.60} is {describe(value)}, expected text or a whole number.")
    return str(value)


def _steps(row: Row, columns: ColumnMap) -> list[tuple[str, ...]]:
    value, name = _find(row, columns.steps), columns.steps
    if value is _MISSING:
        raise _missing(row, name)
    steps = _split(value, columns.split) if isinstance(value, str) else value
    if not isinstance(steps, list):
        raise UserError(
            f"the column {name!r:.60} is {describe(value)}, expected a list of steps, or a solution as one text.",
            "Choose another column.",
        )
    found = []
    for number, step in enumerate(steps, start=1):
        texts = tuple(step) if isinstance(step, list) else (step,)
        if not all(isinstance(text, str) for text in texts):
            hint = (
                f"Name what is within, such as {name}.{next(iter(step))}."
                if isinstance(step, dict) and step
                else ""
            )
            raise UserError(f"step {number} is {describe(step)}, expected a text or a list of texts.", hint)
        found.append(texts)
    return found


def _split(text: str, separator: str) -> list[Any]:
    if not separator:
        return split_steps(text)
    text, separator = (re.sub(r"\r\n?", "\n", one) for one in (text, separator))
    if not separator.strip("\n") and len(separator) > 1:
        # A line that shows nothing separates steps like an empty one.
        text = "\n".join("" if is_blank(line) else line for line in text.split("\n"))
    return [part.strip() for part in text.split(separator) if not is_blank(part)]


def _labelled(steps: list[tuple[str, ...]], value: object, columns: ColumnMap) -> tuple[Step, ...]:
    if value is None or (isinstance(value, str) and value.strip().lower() in _NONE):
        # For a first error, such a value says that there is none; for labels, that they are missing.
        clean = bool(columns.labels) and columns.labels_as == "error-from-1" and value is not None
        return until_error(steps, None) if clean else tuple(Step(texts) for texts in steps)
    if columns.labels_as in ("error-from-0", "error-from-1"):
        return until_error(steps, _first_error(value, len(steps), int(columns.labels_as[-1]), columns.labels))
    labels = _list(value)
    if labels is None:
        raise UserError(
            f"the column {columns.labels!r:.60} is {describe(value)}, expected a list with a label per step.",
            "Say what the labels are, or choose another column.",
        )
    if len(labels) != len(steps):
        raise UserError(f"{len(labels)} labels for {len(steps)} steps.", "Give one label per step.")
    read = _rated if columns.labels_as == "ratings" else _valid
    pairs = zip(steps, labels, strict=True)
    return tuple(read(texts, label, number) for number, (texts, label) in enumerate(pairs, start=1))


def _first_error(value: object, steps: int, start: int, name: str) -> int | None:
    number = _number(value)
    if number is None or not start - 1 <= number < steps + start:
        raise UserError(
            f"the column {name!r:.60} is {describe(value)},"
            f" expected a step from {start} to {steps + start - 1}, or {start - 1}.",
            "Say what the labels are, or choose another column.",
        )
    return None if number == start - 1 else number - start


def _rated(texts: tuple[str, ...], label: object, number: int) -> Step:
    key = _key(label)
    if label is None:
        return Step(texts)
    if isinstance(key, bool) or key not in _RATINGS:
        raise UserError(f"the label of step {number} is {describe(label)}.", "Expected -1, 0, 1 or neg, neu, pos.")
    return Step(texts, _RATINGS[key])


def _valid(texts: tuple[str, ...], label: object, number: int) -> Step:
    key = _key(label)
    if label is None:
        return Step(texts)
    if key not in _VALID:
        raise UserError(f"the label of step {number} is {describe(label)}.", "Expected 0, 1, true, false, + or -.")
    return Step(texts, valid=True) if _VALID[key] else Step(texts, Label.NEG)


def _key(label: object) -> str | int | None:
    """Normalise a label for lookup: `Pos `, `1` and `1.0` become "pos", 1 and 1."""
    if isinstance(label, float) and label.is_integer():
        return int(label)
    if isinstance(label, str):
        number = _number(label)
        return label.strip().lower() if number is None else number
    return label if isinstance(label, int) else None


def _list(value: object) -> list[Any] | None:
    """Return a value as a list. A list may also be given as JSON text, as in CSV files. For anything else, return
    None."""
    if isinstance(value, str) and value.strip().startswith("["):
        try:
            value = parse_json(value)
        except ValueError:
            return None
    return value if isinstance(value, list) else None


def _number(value: object) -> int | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, str):
        return int(value) if _WHOLE.fullmatch(value.strip()) else None
    return value if isinstance(value, int) else None
