"""Systems of linear equations: whether an equation contradicts the equations stated before it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from stepsight.core.equations.parsing.values import ONE, Monomial

MAX_ROWS = 8
MAX_LETTERS = 8
_MAX_BITS = 400

Row = dict[str, Fraction]
"""The coefficient of each letter, with the constant under the empty name; the sum is zero."""


@dataclass
class System:
    """A system of linear equations in reduced form. `rows` maps a letter to the equation solved for it; no other
    row contains that letter. `given` holds the letters whose values were stated outright."""

    rows: dict[str, Row] = field(default_factory=dict)
    given: set[str] = field(default_factory=set)

    def add(self, polynomial: Mapping[Monomial, Fraction], is_value: bool) -> bool | None:
        """Add an equation. Returns True if it follows from the earlier equations, False if it contradicts them, and
        None if it adds something new or cannot be used.

        `is_value` is True if the equation states the value of a letter. An equation that is not linear is ignored.
        If the system grows too large, all rows are forgotten.
        """
        row = _linear(polynomial)
        if row is None:
            return None
        if is_value:
            self.given.update(name for name in row if name)
        for pivot, known in self.rows.items():
            if pivot in row:
                row = _without(row, known, pivot)
        letters = [name for name in row if name]
        if not letters:
            return not row
        if len(self.rows) >= MAX_ROWS or any(_is_large(value) for value in row.values()):
            self.rows.clear()
            return None
        pivot = letters[0]
        row = {name: value / row[pivot] for name, value in row.items()}
        for other, known in self.rows.items():
            if pivot in known:
                self.rows[other] = _without(known, row, pivot)
        self.rows[pivot] = row
        if len({name for known in self.rows.values() for name in known}) > MAX_LETTERS:
            self.rows.clear()
        return None


def _linear(polynomial: Mapping[Monomial, Fraction]) -> Row | None:
    row: Row = {}
    for key, value in polynomial.items():
        if key == ONE:
            row[""] = value
        elif len(key) == 1 and key[0][1] == 1:
            row[key[0][0]] = value
        else:
            return None
    return row


def _without(row: Row, known: Row, pivot: str) -> Row:
    """Return `row` with the letter `pivot` eliminated by a multiple of `known`, the row that is solved for it."""
    factor = row[pivot]
    result = dict(row)
    for name, value in known.items():
        total = result.get(name, Fraction(0)) - factor * value
        if total:
            result[name] = total
        else:
            result.pop(name, None)
    return result


def _is_large(value: Fraction) -> bool:
    return value.numerator.bit_length() + value.denominator.bit_length() > _MAX_BITS
