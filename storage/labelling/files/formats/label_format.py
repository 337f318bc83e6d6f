"""The interface of label formats, which write labelled traces to a file."""

import json
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stepsight.storage.labelling.results.consensus import LabelledTrace

Row = dict[str, Any]
Tally = Counter[str]


class InexpressibleError(Exception):
    """Raised if a format cannot express the labels of a trace. The message describes traces of this sort."""


@dataclass(frozen=True)
class LabelFormat:
    """A file format for labels.

    `write(traces, path, campaign, left_out)` writes the file and returns the number of traces written. Traces that
    the format cannot express are counted in `left_out`, by reason. If `with_gold` is True, an export per annotator
    includes hidden gold items.
    """

    name: str
    title: str
    write: Callable[[Iterable[LabelledTrace], Path, str, Tally], int]
    with_gold: bool = False


def lines(row: Callable[[LabelledTrace], Row]) -> Callable[[Iterable[LabelledTrace], Path, str, Tally], int]:
    """Return a `write` function for a format with one JSON object per trace, which `row` builds from the trace."""

    def write(traces: Iterable[LabelledTrace], path: Path, campaign: str, left_out: Tally) -> int:
        written = 0
        with open(path, "w", encoding="utf-8") as file:
            for trace in traces:
                try:
                    file.write(f"{line(row(trace))}\n")
                    written += 1
                except InexpressibleError as reason:
                    left_out[str(reason)] += 1
        return written

    return write


def line(row: Row) -> str:
    """Serialise a row as one line of JSON."""
    return json.dumps(row, ensure_ascii=False, allow_nan=False)
