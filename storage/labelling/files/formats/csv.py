"""Labels as CSV, a row per step (`storage.labelling.files.formats.table`), of which a spreadsheet calculates
nothing."""

import csv
from collections.abc import Iterable
from pathlib import Path

from stepsight.core.files import cell
from stepsight.storage.labelling.files.formats.label_format import LabelFormat, Tally
from stepsight.storage.labelling.files.formats.table import COLUMNS, step_rows
from stepsight.storage.labelling.results.consensus import LabelledTrace


def _write(traces: Iterable[LabelledTrace], path: Path, campaign: str, left_out: Tally) -> int:
    written = 0
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\r\n")
        writer.writerow(COLUMNS)
        for trace in traces:
            written += 1
            writer.writerows([cell(value) for value in row.values()] for row in step_rows(trace, campaign))
    return written


FORMAT = LabelFormat("csv", "CSV, a row per step", _write, with_gold=True)
