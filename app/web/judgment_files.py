"""A trace with its judgments as a download, JSON or CSV."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from starlette.responses import Response

from stepsight.core.files.csv_cells import csv_text
from stepsight.core.files.jsonl import format_trace
from stepsight.core.files.judgment_table import judgment_table
from stepsight.core.judgment_record import JudgmentRecord
from stepsight.core.trace import Trace


def judgments_file(
    name: str,
    trace: Trace,
    records: Sequence[JudgmentRecord],
    columns: Sequence[str],
    dataset: str = "",
    more: Mapping[str, Any] | None = None,
) -> Response:
    """The file called `name`: if that ends in .csv the table of the judgments, see `judgment_table`; else a row of
    the plain format with `more` keys and the records as `judgments`."""
    if name.endswith(".csv"):
        text, kind = csv_text(judgment_table(trace, records, columns, dataset)), "text/csv; charset=utf-8"
    else:
        judgments = [record.model_dump(mode="json") for record in records]
        row = {**format_trace(trace), **(more or {}), "judgments": judgments}
        text, kind = json.dumps(row, ensure_ascii=False), "application/json"
    return Response(text, media_type=kind, headers={"content-disposition": f'attachment; filename="{name}"'})
