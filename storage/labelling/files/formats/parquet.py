"""Labels as Parquet, a row per step (`storage.labelling.files.formats.table`)."""

from collections.abc import Iterable
from itertools import chain, islice
from pathlib import Path
from typing import Any

from stepsight.core.errors import UserError
from stepsight.storage.labelling.files.formats.label_format import LabelFormat, Tally
from stepsight.storage.labelling.files.formats.table import COLUMNS, step_rows
from stepsight.storage.labelling.results.consensus import LabelledTrace

# Traces in a row group, and so in memory.
_GROUP = 500


def _write(traces: Iterable[LabelledTrace], path: Path, campaign: str, left_out: Tally) -> int:
    arrow, parquet = _libraries()
    kinds = {str: arrow.string(), int: arrow.int32(), float: arrow.float64()}
    schema = arrow.schema([(name, kinds[kind]) for name, kind in COLUMNS.items()])
    written, source = 0, iter(traces)
    with parquet.ParquetWriter(path, schema) as writer:
        while group := list(islice(source, _GROUP)):
            rows = chain.from_iterable(step_rows(trace, campaign) for trace in group)
            writer.write_table(arrow.Table.from_pylist(list(rows), schema=schema))
            written += len(group)
    return written


def _libraries() -> tuple[Any, Any]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise UserError("Parquet needs pyarrow.", "Run: pip install 'stepsight[parquet]'") from None
    return pyarrow, pyarrow.parquet


FORMAT = LabelFormat("parquet", "Parquet, a row per step (needs stepsight[parquet])", _write, with_gold=True)
