"""Files of solutions as datasets of the store, in which they are scored and chosen from."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from stepsight.core.errors import UserError, counted, located
from stepsight.core.files.row_conditions import parse_conditions
from stepsight.core.trace import Trace
from stepsight.storage.database.store import Store
from stepsight.storage.importers.column_mapping import ColumnMap, find_value
from stepsight.storage.importers.data_files import DataFiles, find_data
from stepsight.storage.importers.rows.kind import FileKind, Row
from stepsight.storage.traces.bad_rows import LeftOutRows, RefusedRows
from stepsight.storage.traces.imports import import_source
from stepsight.storage.traces.queries import Dataset, find_dataset

SOLUTION_TEXT = "solution_text"
"""The metadata with a solution as it was written, before it was split into steps."""

Complete = Callable[[Row, ColumnMap, Trace], Trace]
"""Gives the trace of a row, read by a `ColumnMap`, its final id and metadata. Raises `UserError` for a bad row."""


def import_solutions(
    store: Store,
    files: Mapping[Path, Sequence[ColumnMap]],
    dataset: str,
    complete: Complete,
    *,
    skip_bad: bool = False,
    where: Iterable[str] = (),
) -> Dataset:
    """Import files of solutions as the dataset `dataset`, unless they are stored already, and return it.

    A row is read by the first of its file's `ColumnMap`s whose steps it has. Its trace is named after its place in
    the file, so that equal solutions stay apart, unless `complete` gives it another id. With `skip_bad`, bad rows
    are left out and kept with the dataset. `where` holds conditions on the metadata in the syntax of
    `core.files.row_conditions`.

    Raises `UserError` if a file cannot be read, if a row is bad, or if the dataset has traces of other files.
    """
    rows = total = 0
    for path, columns in files.items():
        data = find_data(path)
        kind = _kind(data, columns, complete, f"{data.file_name} " if len(files) > 1 else "")
        bad = LeftOutRows(data.name, data.file_name) if skip_bad else RefusedRows(data.name)
        summary = import_source(store, kind, data, dataset, bad, where=parse_conditions(where))
        rows += summary.read + sum(summary.unwanted.values())
        total = summary.total
    if total > rows:
        raise UserError(
            f"The dataset {dataset!r} holds {counted(total - rows, 'solution that is', 'solutions that are')} not "
            "in the file.",
            "Import the file as another dataset (--dataset NAME), or leave the file out.",
        )
    return find_dataset(store, dataset)


def _kind(data: DataFiles, columns: Sequence[ColumnMap], complete: Complete, prefix: str) -> FileKind:
    kinds = [(fields, data.kind(fields)) for fields in columns]

    class Solutions(FileKind):
        def parse(self, row: Row, where: str) -> Trace:
            fields, kind = next((pair for pair in kinds if pair[0].steps in row), kinds[-1])
            trace = kind.parse(row, where)
            text = find_value(row, fields.steps)
            meta = dict(trace.meta) | ({SOLUTION_TEXT: text} if isinstance(text, str) else {})
            with located(where):
                placed = replace(trace, id=prefix + where.removeprefix(f"{data.name} "), meta=meta)
                return complete(row, fields, placed)

    return Solutions(**vars(kinds[-1][1]))


def solution_text(trace: Trace) -> str:
    """Return the solution of a trace as it was written, or its steps on lines of their own if that is unknown."""
    return str(trace.meta.get(SOLUTION_TEXT) or "\n".join(trace.substeps))
