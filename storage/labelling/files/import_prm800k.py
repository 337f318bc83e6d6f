"""Importing PRM800K rows that were labelled elsewhere, as annotations of stored traces."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from sqlalchemy.orm import Session

from stepsight.core.errors import UserError
from stepsight.core.trace import Trace
from stepsight.storage.importers.benchmarks import prm800k
from stepsight.storage.importers.rows.fields import describe, field, located
from stepsight.storage.importers.rows.kind import Row
from stepsight.storage.labelling.files.rows import ImportedTrace
from stepsight.storage.labelling.files.trace_index import TraceIndex

_BAD_PROBLEM = "bad_problem"


def read_prm800k(
    session: Session, rows: Iterator[tuple[str, Row]], dataset: str, annotator: str | None
) -> Iterator[tuple[str, ImportedTrace]]:
    """Yield the annotation in each row, assigned to the trace in `dataset` with the same problem and steps.

    If the labels end at an error, later steps stay unlabelled. Raises `UserError` if a row matches no trace or
    several traces.
    """
    index = TraceIndex(session, dataset)
    for where, row in rows:
        labelled = prm800k.parse(row, where)
        with located(where):
            trace = index.find(labelled)
            imported = ImportedTrace.of(dataset, trace, [_annotation(row, labelled, trace, annotator)])
        yield where, imported


def _annotation(row: Row, labelled: Trace, trace: Trace, annotator: str | None) -> dict[str, Any]:
    labels = [None if label is None else label.text for label in labelled.labels]
    nothing = [None] * len(trace.steps)
    labels += nothing[len(labels) :]
    time = labelled.meta.get("total_time")
    return {
        "annotator": annotator or field(row, "labeler"),
        "view": "whole",
        "labels": labels,
        "first": labels,
        "errors": nothing,
        "comments": nothing,
        "corrections": nothing,
        "flag": "bad problem" if labelled.meta.get("finish_reason") == _BAD_PROBLEM else None,
        "exposed": [],
        "labelled_before": False,
        "guideline": 1,
        "submitted": _moment(field(row, "timestamp")),
        "seconds": time / 1000 if isinstance(time, int | float) and time > 0 else 0.0,
    }


def _moment(timestamp: object) -> str:
    """Return the timestamp of a row in ISO format. PRM800K omits the time zone, so UTC is assumed."""
    try:
        moment = datetime.fromisoformat(str(timestamp))
    except ValueError:
        raise UserError(f"the timestamp is {describe(timestamp)}, expected a date and time.") from None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).isoformat()
