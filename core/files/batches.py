"""Reading the rows of an Arrow batch within bounds, since a few bytes of a file may encode any number of values."""

from collections.abc import Iterator
from typing import Any

from stepsight.core.errors import UserError
from stepsight.core.files.arrow import MOST_IN_ROW

MOST_COLUMNS = 10_000
"""The most columns of a table."""
# The bytes of rows that are held at once, and what a value takes beside its own.
_MOST_AT_ONCE, _OF_VALUE = 50_000_000, 50
# The types of Arrow in which several rows may share a value.
_SHARED = ("dictionary", "run_end_encoded", "_view")


def batch_rows(batch: Any, name: str, before: int) -> Iterator[dict[str, Any]]:
    """Yield the rows of a batch, a few at a time if they have many values. Raises `UserError` if one has too many;
    `before` is the number of rows before the batch."""
    values = sum(map(_count, batch.columns))
    # Where rows share values, each gets a copy of its own.
    copies = batch.num_rows if any(word in str(batch.schema.types) for word in _SHARED) else 1
    if batch.num_rows <= 1 or batch.nbytes * copies + values * _OF_VALUE <= _MOST_AT_ONCE:
        if values > MOST_IN_ROW * batch.num_rows:
            raise UserError(f"{name} row {before + 1}: over {MOST_IN_ROW:,} values.", "Leave out what is no text.")
        yield from batch.to_pylist()
        return
    half = batch.num_rows // 2
    yield from batch_rows(batch.slice(0, half), name, before)
    yield from batch_rows(batch.slice(half), name, before + half)


def _count(array: Any) -> int:
    """Return the number of values in an Arrow array and in the lists and objects in it."""
    if hasattr(array, "flatten") and hasattr(array.type, "value_type"):
        return len(array) + _count(array.flatten())
    fields = array.flatten() if hasattr(array, "field") and array.type.num_fields else []
    return len(array) + sum(map(_count, fields))


def check_columns(count: int, name: str) -> None:
    """Raise `UserError` if a table has more columns than any table of solutions."""
    if count > MOST_COLUMNS:
        raise UserError(f"{name}: {count:,} columns; at most {MOST_COLUMNS:,} are read.", "Leave out the others.")
