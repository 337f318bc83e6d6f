"""Conditions on fields, used by `--where` and `where:` to select rows of a file.

On the command line a condition has one of these forms:

    source=MATH                        the field equals this text, number, true, false or null
    finish_reason=found_error,solution the field equals one of several values
    phase!=1                           the field equals none of the values
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from stepsight.core.errors import UserError

Scalar = str | int | float | bool | None

_SHOWN = 12
# The largest numbers of different fields and values kept for a message.
_MOST_LISTED = 200


@dataclass(frozen=True)
class RowCondition:
    """A condition on one field: its value must be one of `values` or, if `includes` is False, none of them."""

    field: str
    values: tuple[str, ...]
    includes: bool = True

    def __str__(self) -> str:
        return f"{self.field}{'=' if self.includes else '!='}{','.join(self.values)}"

    def holds(self, row: Mapping[str, Any]) -> bool:
        """True if the row meets the condition. A missing field counts as null."""
        return (as_text(row.get(self.field)) in self.values) == self.includes


class RowConditions:
    """A list of conditions, all of which a row must meet, and counts of the rows checked so far. `left_out` maps
    each condition, as text, to the number of rows that met all earlier conditions but not this one."""

    def __init__(self, conditions: Sequence[RowCondition] = ()) -> None:
        self.conditions = tuple(conditions)
        self.left_out: Counter[str] = Counter()
        self._checked = self._met = 0
        self._fields: dict[str, None] = {}
        self._values: dict[str, dict[str, None]] = {condition.field: {} for condition in self.conditions}

    def hold(self, row: Mapping[str, Any]) -> bool:
        """True if a row meets all conditions. Every call adds the row to the counts."""
        if not self.conditions:
            return True
        self._checked += 1
        if not self._met:
            # Kept for the message in case no row meets all conditions.
            if len(self._fields) < _MOST_LISTED:
                self._fields |= dict.fromkeys(row)
            for field, values in self._values.items():
                if field in row and len(values) < _MOST_LISTED:
                    values[as_text(row[field])] = None
        for condition in self.conditions:
            if not condition.holds(row):
                self.left_out[str(condition)] += 1
                return False
        self._met += 1
        return True

    def check(self) -> None:
        """Raise `UserError` if rows were checked and none of them met all conditions.

        If no row has one of the fields, the error suggests the field with the most similar name; otherwise it lists
        values that were found.
        """
        if self._met or not self._checked:
            return
        for condition in self.conditions:
            if not self._values[condition.field]:
                names = list(self._fields)
                matches = get_close_matches(condition.field, names, 1)
                hint = f"Did you mean {matches[0]}?" if matches else f"The fields are {', '.join(names[:_SHOWN])}."
                raise UserError(f"no row has the field {condition.field!r:.60}.", hint)
        worst = max(self.conditions, key=lambda condition: self.left_out[str(condition)])
        values = list(self._values[worst.field])
        shown = ", ".join(value[:60] for value in values[:_SHOWN]) + (", …" if len(values) > _SHOWN else "")
        raise UserError(f"no row meets {worst}.", f"Values of {worst.field}: {shown}.")


def as_text(value: object) -> str:
    """Return a value as conditions spell it: text unchanged, other values as in JSON, but 2.0 as 2."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None:
        return "null"
    return f"{value:g}" if isinstance(value, float) else str(value)


def parse_conditions(texts: Iterable[str]) -> RowConditions:
    """Parse conditions given on the command line. Raises `UserError` if a condition is malformed."""
    return RowConditions([_parse(text) for text in texts])


def _parse(text: str) -> RowCondition:
    field, sign, values = text.partition("=")
    includes = not field.endswith("!")
    field = field.removesuffix("!").strip()
    if not sign or not field:
        raise UserError(
            f"{text!r:.60} is not a condition.", "Write FIELD=VALUE, FIELD=VALUE,VALUE or FIELD!=VALUE."
        )
    return RowCondition(field, tuple(value.strip() for value in values.split(",")), includes)


def from_mapping(where: Mapping[str, Scalar | Sequence[Scalar]]) -> RowConditions:
    """Read the conditions from a mapping in a configuration file. A key `FIELD` gives the value or list of values
    to keep, and a key `FIELD!` those to exclude."""
    conditions = []
    for key, value in where.items():
        values = value if isinstance(value, list | tuple) else [value]
        field, includes = key.removesuffix("!").strip(), not key.endswith("!")
        conditions.append(RowCondition(field, tuple(map(as_text, values)), includes))
    return RowConditions(conditions)
