"""Labels as CSV, a row per step (`storage.labelling.formats.table`), of which a spreadsheet calculates nothing."""

import csv
from collections.abc import Iterable
from pathlib import Path

from core.spreadsheet import cell
from storage.labelling.formats.layout import Layout, Tally
from storage.labelling.formats.table import COLUMNS, step_rows
from storage.labelling.labelled import LabelledTrace


def _write(traces: Iterable[LabelledTrace], path: Path, campaign: str, left_out: Tally) -> int:
    written = 0
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\r\n")
        writer.writerow(COLUMNS)
        for trace in traces:
            written += 1
            writer.writerows([cell(value) for value in row.values()] for row in step_rows(trace, campaign))
    return written


LAYOUT = Layout("csv", "CSV, a row per step", _write, with_gold=True)
