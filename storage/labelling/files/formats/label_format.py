"""The interface of label formats, which turn labelled traces into rows, and the writer of their files."""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from stepsight.storage.exports.table_files import table_parts
from stepsight.storage.labelling.results.annotations import UNASKED
from stepsight.storage.labelling.results.consensus import LabelledTrace

Row = dict[str, Any]


@dataclass(frozen=True)
class LabelFormat:
    """A file format for labels.

    `rows(versions, campaign)` returns the rows of a trace. `versions` holds the trace with the consensus, or with
    the labels of each annotator. The rows are lines of JSON, the elements of a JSON array if `array` is True, or
    those of a CSV table with `columns`. If `labelled_only` is True, traces without a label are left out. If
    `with_gold` is True, an export per annotator includes hidden gold items. `with_evidence` is True if the rows say
    which step changed a label.
    """

    title: str
    rows: Callable[[list[LabelledTrace], str], Iterable[Row]]
    array: bool = False
    columns: dict[str, type] | None = None
    labelled_only: bool = False
    with_gold: bool = False
    with_evidence: bool = False

    def write(self, traces: Iterable[LabelledTrace], path: Path, campaign: str, left_out: Counter[str]) -> int:
        """Write the file and return the number of traces written, where the versions of a trace, which are
        adjacent, count each. What the format cannot express is counted in `left_out`, by reason."""
        written = 0

        def rows() -> Iterator[Row]:
            nonlocal written
            for _, same in groupby(traces, key=lambda labelled: labelled.trace.trace_id):
                versions = list(same)
                if self.labelled_only:
                    left_out["traces without a label"] += sum(not any(one.labels) for one in versions)
                    versions = [one for one in versions if any(one.labels)]
                if self.with_evidence:
                    left_out[UNASKED] += sum(each.unasked for one in versions for each in one.annotations)
                written += len(versions)
                yield from self.rows(versions, campaign) if versions else ()

        with open(path, "wb") as file:
            if self.columns is not None:
                file.writelines(table_parts(self.columns, rows(), "csv"))
            elif self.array:
                for number, row in enumerate(rows()):
                    file.write(f"{',' if number else '['}\n{line(row)}".encode())
                file.write(b"\n]\n" if written else b"[]\n")
            else:
                file.writelines(f"{line(row)}\n".encode() for row in rows())
        return written


def line(row: Row) -> str:
    """Serialise a row as one line of JSON."""
    return json.dumps(row, ensure_ascii=False, allow_nan=False)
