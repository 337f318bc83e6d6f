"""Trace metadata (all fields except the problem and the steps), and conditions on it.

Field names and values are arbitrary, so a field name is never inserted into a JSON path or an SQL statement.
Instead, the database splits a trace's metadata into fields and compares their names with a bound parameter. Each
element of a list counts as a value of its own. Objects and nested lists are treated as their JSON text.
"""

import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, Self, get_args

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import text
from sqlalchemy.orm import Session

from stepsight.core.arrays import Bools, Floats64, Ints
from stepsight.core.errors import UserError
from stepsight.core.files.whole_files import STRICT, parse_json
from stepsight.core.metrics.table import SILENT
from stepsight.core.trace import check_text
from stepsight.storage.database.store import IN_PARTS
from stepsight.storage.database.stored_json import DamagedError, read_stored
from stepsight.storage.judgments.columns import TraceGold

LONGEST_NAME = 200
MOST_FIELDS = 200
"""The number of fields that are offered: the commonest, with names of at most `LONGEST_NAME` characters."""

# The number of texts of a field kept in memory, and their greatest length. Other texts are read when needed.
_MOST_VALUES = 1000
_LONGEST_VALUE = 200
# Below this, no two integers are the same float.
_EXACT = 2**53

Operator = Literal["=", "~", ">=", "<="]
_PLAIN = re.compile(r'[^\s"=~<>](?:[^"=~<>]*[^\s"=~<>])?')
_CONDITION = re.compile(
    r'(?P<field>[^"=~<>]++|"(?:[^"\\]|\\.)*")\s*(?P<operator>>=|<=|=|~)(?P<value>.*)', re.DOTALL
)
_EXPECTED = "expected a field, one of = ~ >= <=, and a value, such as source=MATH."

_FIELDS = {
    "sqlite": "SELECT f.key, count(*), sum(f.type IN ('integer', 'real')), count(DISTINCT f.value)"
    " FROM traces AS t, json_each(t.meta) AS f WHERE t.dataset_id = :dataset AND f.type <> 'null'"
    " AND length(f.key) <= :longest GROUP BY f.key ORDER BY 2 DESC, 1 LIMIT :most",
    "postgresql": "SELECT f.key, count(*), count(*) FILTER (WHERE json_typeof(f.value) = 'number'),"
    " count(DISTINCT CAST(f.value AS text))"
    " FROM traces AS t, json_each(t.meta) AS f WHERE t.dataset_id = :dataset AND json_typeof(f.value) <> 'null'"
    ' AND length(f.key) <= :longest GROUP BY f.key ORDER BY 2 DESC, f.key COLLATE "C" LIMIT :most',
}
_VALUES = {
    "sqlite": "SELECT t.id, f.type, f.value FROM traces AS t, json_each(t.meta) AS f"
    " WHERE t.dataset_id = :dataset AND f.key = :field AND f.type <> 'null'",
    "postgresql": "SELECT id, json_typeof(value), CASE json_typeof(value) WHEN 'string' THEN value #>> '{}'"
    " ELSE CAST(value AS text) END FROM"
    " (SELECT id, meta -> CAST(:field AS text) AS value FROM traces WHERE dataset_id = :dataset) AS found"
    " WHERE json_typeof(value) <> 'null'",
}


@dataclass(frozen=True)
class MetaCondition:
    """A condition on a metadata field. A trace meets it if at least one of its values in the field does.

    `=` matches a value equal to `value`. `~` matches a value that contains `value`, ignoring case. `>=` and `<=`
    match a number that is at least or at most `value`.
    """

    field: str
    operator: Operator
    value: str

    @classmethod
    def read(cls, written: str) -> Self:
        """Parse a condition such as `field=value`. A field name with special characters must be quoted as in JSON.

        Raises `UserError` if the text is not a condition.
        """
        check_text(written, "the condition")
        match = _CONDITION.fullmatch(written)
        if match is None:
            raise UserError(f"{written!r:.60} found, {_EXPECTED}")
        operator, value = match["operator"], match["value"]
        assert operator in get_args(Operator)
        condition = cls(_unquote(match["field"]), operator, value)  # type: ignore[arg-type]  # as just asserted
        if operator in (">=", "<=") and math.isnan(condition.number):
            raise UserError(f"{value!r:.60} found after {operator}, expected a number.")
        if operator == "~" and not value.strip():
            raise UserError("Nothing found after ~, expected part of a text.")
        return condition

    def __str__(self) -> str:
        return f"{quoted(self.field)}{self.operator}{self.value}"

    @property
    def number(self) -> float:
        """The value as a number, or NaN if it is not a finite number."""
        try:
            number = float(self.value)
        except ValueError:
            return math.nan
        return number if math.isfinite(number) else math.nan

    def is_met(self, value: str, number: float) -> bool:
        """True if a value meets the condition. `number` is the value as a number, or NaN if it is not numeric."""
        if self.operator == "=":
            return value == self.value or number == self.number
        if self.operator == "~":
            return self.value.strip().lower() in value.lower()
        return number >= self.number if self.operator == ">=" else number <= self.number


def quoted(field: str) -> str:
    """Return a field name as it is written in conditions, with quotes if necessary."""
    return field if _PLAIN.fullmatch(field) else json.dumps(field, ensure_ascii=False)


def _unquote(field: str) -> str:
    if not field.startswith('"'):
        return field.strip()
    try:
        return check_text(parse_json(field, decoder=STRICT), "the field")
    except ValueError:
        raise UserError(f"The field is {field!r:.60}, expected quotes as in JSON.") from None


@dataclass(frozen=True)
class MetaField:
    """A metadata field of a dataset.

    `traces` is the number of traces that have the field, and `values` that of its values. `is_number` is True if
    all of them are numbers.
    """

    name: str
    traces: int
    is_number: bool
    values: int


@dataclass(frozen=True, eq=False)
class MetaColumn:
    """The `m` values of one metadata field over `n` traces. The arrays have shape (m,).

    `places` holds, for each value, the index of its trace; a trace can have no value, one or several. `codes` holds
    each value's index in `names`, or `SILENT` for values left out of `names` because they are too long or too many.
    `numbers` holds each value as a number, or NaN if it is not numeric.
    """

    traces: int
    places: Ints
    codes: NDArray[np.int16]
    numbers: Floats64
    names: tuple[str, ...]

    @property
    def nbytes(self) -> int:
        texts = sum(len(name) + 60 for name in self.names)
        return self.places.nbytes + self.codes.nbytes + self.numbers.nbytes + texts

    @property
    def is_complete(self) -> bool:
        """True if `names` contains every value."""
        return not bool((self.codes == SILENT).any())

    def can_tell(self, condition: MetaCondition) -> bool:
        """True if the column has enough information to decide the condition."""
        return condition.operator in (">=", "<=") or self.is_complete

    def meeting(self, condition: MetaCondition) -> Bools:
        """Return a mask of shape (n,) that selects the traces that meet a condition. Requires `can_tell` to be
        True."""
        if condition.operator == ">=":
            matches = self.numbers >= condition.number
        elif condition.operator == "<=":
            matches = self.numbers <= condition.number
        else:
            named = np.array([condition.is_met(name, math.nan) for name in self.names], np.bool_)
            matches = named[self.codes] if len(named) else np.zeros(len(self.codes), np.bool_)
            if condition.operator == "=":
                matches = matches | (self.numbers == condition.number)
        chosen = np.zeros(self.traces, np.bool_)
        chosen[self.places[matches]] = True
        return chosen

    def count(self, chosen: Bools) -> dict[str, int]:
        """Return, for each value in `names`, how often it occurs in the traces selected by the mask `chosen` of
        shape (n,)."""
        codes = self.codes[chosen[self.places] & (self.codes != SILENT)]
        return dict(zip(self.names, np.bincount(codes, minlength=len(self.names)).tolist(), strict=True))


def read_fields(session: Session, dataset_id: int) -> list[MetaField]:
    """Read the names and value types of the metadata fields of a dataset, the most common first."""
    values = {"dataset": dataset_id, "longest": LONGEST_NAME, "most": MOST_FIELDS}
    rows = session.execute(text(_FIELDS[session.get_bind().dialect.name]), values).all()
    if any(not isinstance(name, str) for name, *_ in rows):
        raise DamagedError("traces.meta: a list found, expected keys with values.")
    return [MetaField(name, n, numbers == n, values) for name, n, numbers, values in rows if name.strip()]


def read_meta_column(session: Session, dataset_id: int, traces: TraceGold, field: str) -> MetaColumn:
    """Read the values of one metadata field."""
    ids: list[int] = []
    codes: list[int] = []
    numbers: list[float] = []
    code_of: dict[str, int] = {}
    for id, value, number in _values(session, dataset_id, field):
        code = code_of.get(value, SILENT)
        if code == SILENT and len(value) <= _LONGEST_VALUE and len(code_of) < _MOST_VALUES:
            code = code_of[value] = len(code_of)
        ids.append(id)
        codes.append(code)
        numbers.append(number)
    places = traces.places(np.array(ids, np.int64))
    # Traces added since their columns were read are skipped.
    present = places != SILENT
    return MetaColumn(
        len(traces),
        places[present],
        np.array(codes, np.int16)[present],
        np.array(numbers, np.float64)[present],
        tuple(code_of),
    )


def find_values(session: Session, dataset_id: int, traces: TraceGold, condition: MetaCondition) -> Bools:
    """Return a mask of shape (n,) that selects the traces that meet a condition, by querying the database. This
    serves conditions that a `MetaColumn` cannot decide."""
    values = _values(session, dataset_id, condition.field)
    ids = [id for id, value, number in values if condition.is_met(value, number)]
    places = traces.places(np.array(ids, np.int64))
    chosen = np.zeros(len(traces), np.bool_)
    chosen[places[places != SILENT]] = True
    return chosen


def _values(session: Session, dataset_id: int, field: str) -> Iterator[tuple[int, str, float]]:
    """Yield (trace id, text, number) for every value of a field. The number is NaN if the value is not numeric."""
    statement = text(_VALUES[session.get_bind().dialect.name])
    values = {"dataset": dataset_id, "field": field}
    # Read without the session, whose work on each row would take most of the time.
    for part in session.connection().execute(statement, values, execution_options=IN_PARTS).partitions():
        for id, kind, value in part:
            if kind in ("text", "string"):
                yield id, value, math.nan
            elif kind == "array":
                items = {_text_and_number(item) for item in read_stored(value) if item is not None}
                yield from ((id, *item) for item in sorted(items, key=lambda item: item[0]))
            elif kind in ("true", "false"):
                yield (id, *_text_and_number(kind == "true"))
            else:
                yield (id, *_text_and_number(read_stored(value) if isinstance(value, str) else value))


def _text_and_number(value: Any) -> tuple[str, float]:
    """Return a value as text and as a number, which is NaN if the value is not numeric. 1 and 1.0 give the same
    text."""
    if isinstance(value, str):
        return value, math.nan
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return json.dumps(value, ensure_ascii=False), math.nan
    try:
        number = float(value)
    except OverflowError:
        return str(value), math.nan
    if not math.isfinite(number):
        return str(value), math.nan
    if isinstance(value, int) or (number.is_integer() and abs(number) < _EXACT):
        return str(int(value)), number
    return repr(number), number
