"""Guessing from names and values which columns of a table hold the problem, the steps and the labels.

A column whose name says what it holds, such as `steps` or `first_error`, is taken by its name. Under a generic
name, such as `answer`, `completions` or `label`, it is taken only if the values leave a single reading. What may be
read otherwise is in doubt, and a person chooses: a reference beside the responses of a model, and a mark of a whole
solution beside its steps, are not taken for what is judged.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from typing import Any

from stepsight.core.text.printed import holds_steps
from stepsight.core.text.signs import is_blank
from stepsight.core.text.split import split_solution
from stepsight.storage.importers.column_mapping import ABSENT, ColumnMap, column_names, find_value
from stepsight.storage.importers.doubts import (
    ColumnReading,
    Doubt,
    column_values,
    last_part,
    listed,
    quoted,
    steps_in,
)
from stepsight.storage.importers.label_guesses import LABELS, guess_labels
from stepsight.storage.importers.rows.fields import inner, is_missing, listed_value
from stepsight.storage.importers.rows.kind import Row
from stepsight.storage.importers.stepwise import are_stepwise

_PROBLEMS = ("problem", "question")
_PROMPTS = ("prompt", "query", "instruction", "input")
_IDS = ("id", "uuid", "idx", "uid")
_STEPS = ("steps", "solution_steps")
# Of one solution or of several, of a model or of the reference.
_SOLUTIONS = ("solution", "completions", "response", "process", "output", "completion", "reasoning")
_RESPONSES = frozenset((
    "responses", "outputs", "solutions", "answers", "generation", "generations", "generated", "generated_text",
    "prediction", "predictions", "resps", "filtered_resps", "code", "candidate", "candidates", "sample", "samples",
    "model_output", "model_outputs", "model_response", "model_responses", "model_answer", "model_solution",
    "model_completion", "llm_output", "llm_response", "choices", "rollout", "rollouts",
))  # fmt: skip
# Mostly the final answer alone.
_ANSWERS = ("answer", "final_answer", "pred", "preds")
_REFERENCE = re.compile(r"(?:.*_)?(?:references?|ref|gold|golden|gt|ground_?truth|target|expected)(?:_.*)?")
_ASIDE = frozenset(("context", "system", "system_prompt", "passage", "document", "messages", "conversations"))
# The characters of a text by which is told if it has several steps.
_BEGINNING = 10_000
# A text that holds another one and is longer than this many times may hold something else too.
_LONGER = 2


@dataclass(frozen=True)
class Guess:
    """The columns that are beyond doubt, sentences about those with generic names, and the doubts."""

    columns: ColumnMap
    notes: tuple[str, ...] = ()
    doubts: tuple[Doubt, ...] = ()


def guess_columns(names: Sequence[str], rows: Sequence[Row]) -> Guess:
    """Guess the columns of a table from their names and from the first rows. A field of the result is empty if no
    column fits, or if it is in doubt."""
    return _Guesser(names, rows).guess()


def rival_columns(rows: Sequence[Row], chosen: str) -> list[str]:
    """Return the names of the columns that hold solutions besides the column `chosen`: responses under a generic
    name, or lists of texts of several steps."""
    guesser = _Guesser(column_names(rows), rows)
    columns = guesser.solutions(frozenset())
    mine = next((column for column in columns if column.name == chosen), None)
    return [
        column.name
        for column in columns
        if column.name != chosen
        and not column.is_own
        and (column.is_generic or column.form != "text")
        and not (mine and _is_same(mine, column))
    ]


@dataclass(frozen=True)
class _Column:
    """A column that may hold solutions. `form` is "text", "texts" for a list of them, "lists" or "objects".
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
    def first(self) -> tuple[int, Any]:
        """The number of the first row with a value, counted from 1, and the value."""
        return next((row, value) for row, value in enumerate(self.values, start=1) if _form(value))


class _Guesser:
    """The names of the columns and the first rows of one table, and what was guessed so far."""

    def __init__(self, names: Sequence[str], rows: Sequence[Row]) -> None:
        self._names, self._rows = names, rows
        self._own = (*_STEPS, "completions") if are_stepwise(rows) else _STEPS
        self._notes: list[str] = []
        self._doubts: list[Doubt] = []

    def guess(self) -> Guess:
        problem = self._problem()
        steps = self._steps(problem)
        columns = ColumnMap(problem=problem, steps=steps, id=self._by_name(_IDS))
        if (problem and steps) or self._doubts:
            columns, notes, doubts = guess_labels(self._names, self._rows, columns)
            self._notes += notes
            # Once they are chosen, columns that are needed are still to be chosen, and labels are not.
            self._doubts[:0] = doubts
        if columns.labels and not steps:
            columns = self._without_labels(columns)
        return Guess(columns, tuple(self._notes), tuple(self._doubts))

    def _by_name(self, words: Iterable[str]) -> str:
        ends = {last_part(name): name for name in reversed(self._names)}
        return next((ends[word] for word in words if word in ends), "")

    def _problem(self) -> str:
        if name := self._by_name(_PROBLEMS):
            return name
        prompts = [(name, column_values(self._rows, name)) for word in _PROMPTS if (name := self._by_name((word,)))]
        texts = [
            _Column(name, last_part(name), "text", values)
            for name, values in prompts
            if "text" in map(_form, values)
        ]
        if len(columns := _distinct(texts)) < 2:
            return columns[0].name if columns else self._by_name(_PROMPTS)
        row, _ = columns[0].first
        readings = [ColumnReading({"problem": column.name}, quoted(column.values[row - 1])) for column in columns]
        names = listed(column.name for column in columns)
        self._doubts.append(
            Doubt("problem", f"{names} may each hold the problem. In row {row} it is:", tuple(readings))
        )
        return ""

    def solutions(self, taken: frozenset[str]) -> list[_Column]:
        """Return the columns that may hold solutions, those whose names say most first."""
        columns = [column for name in self._names if name not in taken and (column := self._solution(name))]
        own = tuple(f"{column.name}." for column in columns if column.is_own)
        within = [column.name for column in columns]
        columns = [
            column
            for column in columns
            if not column.name.startswith(own or ("\0",))
            and not (column.form == "objects" and any(name.startswith(f"{column.name}.") for name in within))
        ]
        order = {word: place for place, word in enumerate((*_STEPS, *_SOLUTIONS))}
        return sorted(columns, key=lambda column: order.get(column.last, len(order)))

    def _solution(self, name: str) -> _Column | None:
        last = last_part(name)
        if last in (*_PROBLEMS, *_PROMPTS, *_IDS, *LABELS) or last in _ASIDE or _REFERENCE.fullmatch(last):
            return None
        values = column_values(self._rows, name)
        forms = {form for value in values if (form := _form(value))}
        if not forms or ("." not in name and forms == {"object"}):
            return None
        form = next(option for option in ("lists", "objects", "texts", "object", "text") if option in forms)
        column = _Column(name, last, "objects" if form == "object" else form, values, last in self._own)
        if column.is_own or column.is_generic:
            return column
        texts = chain.from_iterable(islice(_leaves(value), 100) for value in values)
        return column if any(len(split_solution(text[:_BEGINNING]).steps) > 1 for text in texts) else None

    def _steps(self, problem: str) -> str:
        columns = _distinct(self.solutions(frozenset((problem,))))
        generic = [column.name for column in columns if column.is_generic and not column.is_own]
        if own := [column for column in columns if column.is_own]:
            columns = own
        elif not generic and not any(column.last in _ANSWERS for column in columns):
            return "" if columns else self._noted(self._by_name((*self._own, *_SOLUTIONS, *_ANSWERS[:1])))
        if len(columns) > 1:
            names = listed(column.name for column in columns)
            self._doubt_steps(columns, f"{names} may each hold the solution that is to be judged.")
            return ""
        (column,) = columns
        if own:
            if generic:
                kept = f"{listed(generic)} {'is' if len(generic) == 1 else 'are'} kept as metadata"
                self._notes.append(f"{column.name!r} is read as the steps, and {kept}.")
            return column.name
        if column.form == "text" and column.last not in _RESPONSES:
            return self._noted(column.name)
        if column.form == "texts" and _are_numbered(column.values):
            self._notes.append(f"The texts in {column.name!r} are the steps of one solution, which they number.")
            return column.name
        what = f"{column.name!r} may hold the solution that is to be judged."
        if column.form != "text":
            what = f"what is in {column.name!r} may be the steps of one solution, or several solutions."
        self._doubt_steps(columns, what)
        return ""

    def _noted(self, name: str) -> str:
        if name and last_part(name) not in self._own:
            self._notes.append(f"{name!r} is the only column that can hold the solution.")
        return name

    def _doubt_steps(self, columns: Sequence[_Column], message: str) -> None:
        row = min(column.first[0] for column in columns)
        readings = [reading for column in columns for reading in _readings(column, self._rows[row - 1])]
        self._doubts.append(Doubt("steps", f"{message} Row {row} is then:", tuple(readings)))

    def _without_labels(self, columns: ColumnMap) -> ColumnMap:
        """Move the labels into those readings of the steps that do not take one solution out of several, each of
        which may have a label."""
        labels = {"labels": columns.labels, "labels_as": columns.labels_as}
        for place, doubt in enumerate(self._doubts):
            if doubt.about == "steps":
                readings = (
                    reading
                    if ".0" in reading.fields["steps"]
                    else replace(reading, fields={**reading.fields, **labels})
                    for reading in doubt.readings
                )
                self._doubts[place] = replace(doubt, readings=tuple(readings))
        return replace(columns, labels="")


def _form(value: Any) -> str:
    """Return the form of a value that may hold solutions, or ""."""
    if isinstance(value, str) and holds_steps(value):
        value = inner(value)
    if isinstance(value, str):
        return "" if is_missing(value) or is_blank(value) else "text"
    if isinstance(value, dict):
        return "object"
    if not isinstance(value, list) or not value:
        return ""
    for kind, form in ((str, "texts"), (list, "lists"), (dict, "objects")):
        if all(isinstance(part, kind) for part in value):
            return form
    return ""


def _leaves(value: Any) -> Iterator[str]:
    value = inner(value) if isinstance(value, str) and holds_steps(value) else value
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | dict):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _leaves(part)


def _are_numbered(values: Iterable[Any]) -> bool:
    lists = [items for value in values if (items := listed_value(value)) is not None and len(items) > 1]
    return bool(lists) and all(
        re.match(rf"\W*(?:step\s*)?{number}\s*[:.)]", text, re.IGNORECASE)
        for texts in lists
        for number, text in enumerate(texts, start=1)
    )


def _distinct(columns: Sequence[_Column]) -> list[_Column]:
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
        ([_compact(text) for text in _leaves(left)], [_compact(text) for text in _leaves(right)])
        for left, right in zip(first.values, second.values, strict=True)
        if _form(left) and _form(right)
    ]
    return bool(pairs) and all(_repeats(left, right) or _repeats(right, left) for left, right in pairs)


def _repeats(texts: Sequence[str], whole: Sequence[str]) -> bool:
    joined = "".join(whole)
    return all(text in joined for text in texts) and _LONGER * sum(map(len, texts)) >= len(joined)


def _compact(text: str) -> str:
    return "".join(text.split())


def _readings(column: _Column, row: Row) -> Iterator[ColumnReading]:
    name, value = column.name, find_value(row, column.name)
    if isinstance(value, str) and holds_steps(value):
        value = inner(value)
    form = _form(value)
    if not form:
        yield ColumnReading({"steps": name}, "nothing")
    elif form == "text":
        yield ColumnReading({"steps": name}, _outline(value))
    elif form == "texts":
        yield ColumnReading({"steps": name}, f"one solution: {_outline(value)}")
        if not column.is_own:
            of = "the only" if len(value) == 1 else f"the first of {len(value)}"
            path = f"{name}.0"
            if find_value(row, path) is ABSENT:
                # The items of a list hold a text each.
                parent, _, key = name.rpartition(".")
                path = f"{parent}.0.{key}"
            plural = "s" if len(value) > 1 else ""
            yield ColumnReading({"steps": path}, f"{of} solution{plural}: {_outline(value[0])}")
    elif form == "lists":
        within = value[0]
        yield ColumnReading({"steps": f"{name}.0"}, f"its first list, as one solution: {_outline(within)}")
        if within and isinstance(within[0], str):
            yield ColumnReading({"steps": f"{name}.0.0"}, f"its first text, as one solution: {_outline(within[0])}")
    else:
        first = value[0] if isinstance(value, list) else value
        key = next((key for key, part in first.items() if isinstance(part, str)), "")
        path = f"{name}.0.{key}" if isinstance(value, list) else f"{name}.{key}"
        yield ColumnReading({"steps": path if key else name}, _outline(first[key]) if key else "an object")


def _outline(value: Any) -> str:
    parts = steps_in(value) or ()
    if not parts or not isinstance(parts[0], str):
        return "no steps"
    return f"{len(parts)} step{'s' if len(parts) > 1 else ''}, {quoted(parts[0])}{' …' if len(parts) > 1 else ''}"
