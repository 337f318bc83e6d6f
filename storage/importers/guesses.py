"""Guessing from names and values which columns of a table hold the problem, the steps and the labels.

A column whose name says what it holds, such as `steps` or `first_error`, is taken by its name. Under a generic
name, such as `answer`, `completions` or `label`, it is taken only if the values leave a single reading. What may be
read otherwise is in doubt, and a person chooses: a reference beside the responses of a model, and a mark of a whole
solution beside its steps, are not taken for what is judged.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from typing import Any

from stepsight.core.text.signs import is_blank
from stepsight.core.text.split import split_solution
from stepsight.storage.importers.column_mapping import ABSENT, ColumnMap, column_names, find_value
from stepsight.storage.importers.label_guesses import (
    LABELS,
    ColumnReading,
    Doubt,
    FirstRows,
    Guess,
    guess_labels,
    last_part,
    listed,
    quoted,
    steps_in,
    unprinted,
)
from stepsight.storage.importers.rows.fields import is_missing, listed_value
from stepsight.storage.importers.rows.kind import Row
from stepsight.storage.importers.stepwise import are_stepwise

_PROBLEMS = ("problem", "question")
_PROMPTS = ("prompt", "query", "instruction", "input")
_IDS = ("id", "uuid", "idx", "uid")
_STEPS = ("steps", "solution_steps")
# Columns with one or several solutions, by a model or as reference.
_SOLUTIONS = ("solution", "completions", "response", "process", "output", "completion", "reasoning")
_RESPONSES = frozenset((
    "responses", "outputs", "solutions", "answers", "generation", "generations", "generated", "generated_text",
    "prediction", "predictions", "resps", "filtered_resps", "code", "candidate", "candidates", "sample", "samples",
    "model_output", "model_outputs", "model_response", "model_responses", "model_answer", "model_solution",
    "model_completion", "llm_output", "llm_response", "choices", "rollout", "rollouts",
))  # fmt: skip
# Usually only the final answer.
_ANSWERS = ("answer", "final_answer", "pred", "preds")
_REFERENCE = re.compile(r"(?:.*_)?(?:references?|ref|gold|golden|gt|ground_?truth|target|expected)(?:_.*)?")
_ASIDE = ("context", "system", "system_prompt", "passage", "document", "messages", "conversations")
# These are never solutions, whatever their texts look like.
_OTHERS = frozenset((*_PROBLEMS, *_PROMPTS, *_IDS, *LABELS, *_ASIDE))
# The forms of a column's values, the most informative first.
_FORMS = ("lists", "objects", "texts", "object", "text")
# The number of characters of a text used to tell whether it has several steps.
_BEGINNING = 10_000


def guess_columns(names: Sequence[str], rows: Sequence[Row]) -> Guess:
    """Guess the columns of a table from their names and from the first rows. A field of the result is empty if no
    column fits, or if it is in doubt."""
    table = FirstRows(names, rows)
    problem, doubts = _guess_problem(table)
    steps, notes, steps_doubts = _guess_steps(table, _distinct_columns(_solutions(table, problem)))
    columns = ColumnMap(problem=problem, steps=steps, id=table.named(_IDS))
    doubts += steps_doubts
    if not (problem and steps) and not doubts:
        return Guess(columns, notes)
    labels = guess_labels(table, columns)
    if not steps:
        doubts = [_with_labels(doubt, labels.columns) for doubt in doubts]
    # Once these are chosen, required columns must still be chosen, but labels need not be.
    return Guess(labels.columns if steps else columns, (*notes, *labels.notes), (*labels.doubts, *doubts))


def rival_columns(rows: Sequence[Row], chosen: str) -> list[str]:
    """Return the names of the columns that hold solutions besides the column `chosen`: responses under a generic
    name, or lists of texts of several steps."""
    columns = _solutions(FirstRows(column_names(rows), rows))
    current = next((column for column in columns if column.name == chosen), None)
    return [
        column.name
        for column in columns
        if column.name != chosen
        and not column.is_own
        and (column.is_generic or column.form != "text")
        and not (current and _is_same(current, column))
    ]


@dataclass(frozen=True)
class _Column:
    """A column that may hold a problem or solutions. `form` is one of `_FORMS`, or empty if there is no value.
    `is_own` is True if its name says that it holds the steps of one solution."""

    name: str
    last: str
    form: str
    values: Sequence[Any] = field(repr=False)
    is_own: bool = False

    @property
    def is_generic(self) -> bool:
        """True if the name is one under which solutions are found, but also other texts."""
        return self.last in _SOLUTIONS or self.last in _RESPONSES

    @property
    def first(self) -> int:
        """The index of the first row with a value."""
        return next(row for row, value in enumerate(self.values) if _form(value))


def _column(table: FirstRows, name: str, own: Collection[str] = ()) -> _Column:
    last, values = last_part(name), table.values(name)
    forms = set(map(_form, values))
    return _Column(name, last, next((form for form in _FORMS if form in forms), ""), values, last in own)


def _guess_problem(table: FirstRows) -> tuple[str, list[Doubt]]:
    """Return the column of the problem, or "" and what is in doubt."""
    if name := table.named(_PROBLEMS):
        return name, []
    prompts = [_column(table, name) for word in _PROMPTS if (name := table.named((word,)))]
    columns = _distinct_columns([column for column in prompts if column.form == "text"])
    if len(columns) < 2:
        return columns[0].name if columns else table.named(_PROMPTS), []
    row, names = columns[0].first, listed(column.name for column in columns)
    readings = tuple(ColumnReading({"problem": column.name}, quoted(column.values[row])) for column in columns)
    return "", [Doubt("problem", f"{names} may each hold the problem. In row {row + 1} it is:", readings)]


def _solutions(table: FirstRows, problem: str = "") -> list[_Column]:
    """Return the columns that may hold solutions, those whose names say most first."""
    own = (*_STEPS, "completions") if are_stepwise(table.rows) else _STEPS
    candidates = (_column(table, name, own) for name in table.names if name != problem)
    columns = [column for column in candidates if _may_hold_solutions(column)]
    within_own = tuple(f"{column.name}." for column in columns if column.is_own)
    # The texts in objects are columns too.
    objects = {column.name.rpartition(".")[0] for column in columns}
    order = {word: place for place, word in enumerate((*_STEPS, *_SOLUTIONS))}
    return sorted(
        (
            column
            for column in columns
            if not column.name.startswith(within_own) and not ("object" in column.form and column.name in objects)
        ),
        key=lambda column: order.get(column.last, len(order)),
    )


def _may_hold_solutions(column: _Column) -> bool:
    """True if the name of a column says that it may hold solutions, or if one of its texts has several steps."""
    if column.last in _OTHERS or _REFERENCE.fullmatch(column.last):
        return False
    if last_part(column.name.partition(".")[0]) in _ASIDE:
        return False
    if not column.form or (column.form == "object" and "." not in column.name):
        return False
    if column.is_own or column.is_generic:
        return True
    texts = chain.from_iterable(islice(_texts_in(value), 100) for value in column.values)
    return any(len(split_solution(text[:_BEGINNING]).steps) > 1 for text in texts)


def _guess_steps(table: FirstRows, columns: Sequence[_Column]) -> tuple[str, tuple[str, ...], list[Doubt]]:
    """Return the column of the steps with sentences about it, or "" and what is in doubt."""
    generic = [column.name for column in columns if column.is_generic and not column.is_own]
    own = [column for column in columns if column.is_own]
    if not own and not generic and not any(column.last in _ANSWERS for column in columns):
        name = "" if columns else table.named((*_STEPS, *_SOLUTIONS, *_ANSWERS[:1]))
        return name, (_only_column(name),) if name else (), []
    columns = own or columns
    names, (first, *others) = listed(column.name for column in columns), columns
    if others:
        message = f"{names} may each hold the solution that is to be judged."
    elif own:
        kept = f"{listed(generic)} {'is' if len(generic) == 1 else 'are'} kept as metadata" if generic else ""
        return first.name, (f"{names} is read as the steps, and {kept}.",) if kept else (), []
    elif first.form == "text" and first.last not in _RESPONSES:
        return first.name, (_only_column(first.name),), []
    elif first.form == "texts" and _are_numbered(first.values):
        return first.name, (f"The texts in {names} are the steps of one solution, which they number.",), []
    elif first.form == "text":
        message = f"{names} may hold the solution that is to be judged."
    else:
        message = f"what is in {names} may be the steps of one solution, or several solutions."
    row = min(column.first for column in columns)
    readings = (reading for column in columns for reading in _readings(table.rows[row], column.name, column.is_own))
    return "", (), [Doubt("steps", f"{message} Row {row + 1} is then:", tuple(readings))]


def _only_column(name: str) -> str:
    return f"{name!r} is the only column that can hold the solution."


def _with_labels(doubt: Doubt, columns: ColumnMap) -> Doubt:
    """Return a doubt with the labels in those readings of the steps that do not take one solution out of several,
    each of which may have a label."""
    if doubt.about != "steps" or not columns.labels:
        return doubt
    labels = {"labels": columns.labels, "labels_as": columns.labels_as}
    readings = (
        reading if ".0" in reading.fields["steps"] else replace(reading, fields={**reading.fields, **labels})
        for reading in doubt.readings
    )
    return replace(doubt, readings=tuple(readings))


def _form(value: Any) -> str:
    """Return the form of a value that may hold solutions, or ""."""
    value = unprinted(value)
    if isinstance(value, str):
        return "" if is_missing(value) or is_blank(value) else "text"
    if isinstance(value, dict):
        return "object"
    if isinstance(value, list) and value:
        for kind, form in ((str, "texts"), (list, "lists"), (dict, "objects")):
            if all(isinstance(part, kind) for part in value):
                return form
    return ""


def _texts_in(value: Any) -> Iterator[str]:
    value = unprinted(value)
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | dict):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _texts_in(part)


def _are_numbered(values: Iterable[Any]) -> bool:
    lists = [items for value in values if (items := listed_value(value)) is not None and len(items) > 1]
    return bool(lists) and all(
        re.match(rf"\W*(?:step\s*)?{number}\s*[:.)]", text, re.IGNORECASE)
        for texts in lists
        for number, text in enumerate(texts, start=1)
    )


def _distinct_columns(columns: Sequence[_Column]) -> list[_Column]:
    kept: list[_Column] = []
    for column in columns:
        if not any(_is_same(column, other) for other in kept):
            kept.append(column)
    return kept


def _is_same(first: _Column, second: _Column) -> bool:
    """True if two columns hold the same solution in all rows, as steps or as one text. Lists that may be several
    solutions are never the same."""
    if not all(column.form == "text" or column.is_own for column in (first, second)):
        return False
    pairs = [
        (_compact(left), _compact(right))
        for left, right in zip(first.values, second.values, strict=True)
        if _form(left) and _form(right)
    ]
    return bool(pairs) and all(left == right for left, right in pairs)


def _compact(value: Any) -> str:
    return "".join("".join(_texts_in(value)).split())


def _readings(row: Row, name: str, is_own: bool = False) -> Iterator[ColumnReading]:
    """Yield the ways in which a column of a row is one solution, or one of several unless `is_own`."""
    value = unprinted(find_value(row, name))
    form = _form(value)
    if is_own or form in ("", "text"):
        yield ColumnReading({"steps": name}, _outline(value) if form else "nothing")
    elif form == "object":
        key = next((key for key, part in value.items() if isinstance(part, str)), "")
        yield (
            ColumnReading({"steps": f"{name}.{key}"}, _outline(value[key]))
            if key
            else ColumnReading({"steps": name}, "an object")
        )
    elif form == "texts":
        yield ColumnReading({"steps": name}, f"one solution: {_outline(value)}")
        parent, _, key = name.rpartition(".")
        # The items of a list may hold a text each.
        path = f"{name}.0" if find_value(row, f"{name}.0") is not ABSENT else f"{parent}.0.{key}"
        position = f"the first of {len(value)} solutions" if len(value) > 1 else "the only solution"
        yield ColumnReading({"steps": path}, f"{position}: {_outline(value[0])}")
    else:
        yield from _readings(row, f"{name}.0")


def _outline(value: Any) -> str:
    parts = steps_in(value) or ()
    if not parts or not isinstance(parts[0], str):
        return "no steps"
    return f"{len(parts)} step{'s' if len(parts) > 1 else ''}, {quoted(parts[0])}{' …' if len(parts) > 1 else ''}"
