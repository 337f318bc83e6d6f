"""What is guessed of the columns of a table, and what is in doubt: ways to read them, in words and as fields."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from stepsight.core.errors import UserError
from stepsight.core.text.printed import holds_steps
from stepsight.core.text.split import split_solution
from stepsight.storage.importers.column_mapping import ABSENT, LONGEST, ColumnMap, find_value
from stepsight.storage.importers.rows.fields import inner, whole_number
from stepsight.storage.importers.rows.kind import Row

_CAPITAL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_SHOWN = 60


@dataclass(frozen=True)
class ColumnReading:
    """One way to read some columns: the `fields` of a `ColumnMap` that choose it, and what it makes of a row, in
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
        """Return the first column with the first of these names that there is, or ""."""
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
