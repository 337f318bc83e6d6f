"""The metadata fields that the Browse page offers for a dataset, and how often each value of a field occurs."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from stepsight.storage.browse.filter_columns import BrowseColumns, read_versions
from stepsight.storage.browse.filters import FILE_ORDER, TraceFilter
from stepsight.storage.browse.metadata import MetaField, read_fields
from stepsight.storage.database.store import Store

MOST_SHOWN = 50
"""The number of values of a field that are offered."""


@dataclass(frozen=True)
class FieldCounts:
    """The most common values of a metadata field, at most `MOST_SHOWN`, in descending order of frequency.

    A count is the number of traces that have the value and meet the filter's other conditions. `is_whole` is True
    if the list contains every value. `least` and `most` are the smallest and the largest number in the field over
    the whole dataset, or None if the field contains no numbers.
    """

    field: str
    values: Sequence[tuple[str, int]]
    is_whole: bool
    least: float | None
    most: float | None


def list_fields(store: Store, dataset_id: int) -> Sequence[MetaField]:
    """Return the metadata fields of a dataset, the most common first."""
    with store.read() as session:
        version = read_versions(session, dataset_id, [])[None]
        fields = store.cache.get(("metadata fields", dataset_id), version, lambda: read_fields(session, dataset_id))
        return fields.fields


def count_field(store: Store, dataset_id: int, where: TraceFilter, field: str) -> FieldCounts:
    """Count the values of a field among the traces that meet the filter's conditions on everything but this field.
    Values that occur only in the rest of the dataset are included with a count of 0."""
    others = tuple(str(one) for one in where.on_metadata if one.field != field)
    where = where.model_copy(update={"meta": others})
    with store.read() as session:
        columns = BrowseColumns(store, session, dataset_id, where, FILE_ORDER)
        column = columns.metadata(field)
        counts = column.count(columns.match().chosen)
    ordered = sorted(counts.items(), key=lambda value: (-value[1], value[0]))
    numbers = column.numbers[~np.isnan(column.numbers)]
    return FieldCounts(
        field=field,
        values=ordered[:MOST_SHOWN],
        is_whole=column.is_complete and len(ordered) <= MOST_SHOWN,
        least=float(numbers.min()) if len(numbers) else None,
        most=float(numbers.max()) if len(numbers) else None,
    )
