"""Importing rows of PRM800K as annotations of traces in the store: labels that were given elsewhere."""

import hashlib
from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime

from sqlalchemy import select
from sqlalchemy.orm import Session

from stepsight.core.errors import UserError
from stepsight.core.trace import Trace
from stepsight.core.validation import validate
from stepsight.storage.database.schema import DatasetRow, TraceRow
from stepsight.storage.importers import prm800k
from stepsight.storage.importers.fields import describe, field, located
from stepsight.storage.importers.kind import Row
from stepsight.storage.labelling.files.rows import ImportedTrace
from stepsight.storage.traces.queries import StoredTrace, load_traces, traces

_BAD_PROBLEM = "bad_problem"
_WHOLE = "pre_generated_steps"


def read_prm800k(
    session: Session, rows: Iterator[tuple[str, Row]], dataset: str, annotator: str | None
) -> Iterator[tuple[str, ImportedTrace]]:
    """The annotations of rows, of the traces of a dataset with the same problem and steps.

    Labels that end at an error leave the later steps unlabelled. Raises `UserError` where no trace fits a row, or
    several do.
    """
    index = _Index(session, dataset)
    for where, row in rows:
        labelled = prm800k.parse(row, where)
        with located(where):
            trace = index.find(labelled)
            values = {
                "dataset": dataset,
                "id": trace.id,
                "digest": trace.digest,
                "chosen": "ordered",
                "steps": list(trace.steps),
                "answers": [_annotation(row, labelled, trace, annotator)],
            }
            imported = validate(ImportedTrace, values, "the row")
        yield where, imported


class _Index:
    """Finds a dataset's traces by their problem, of which a digest is kept in memory."""

    def __init__(self, session: Session, dataset: str) -> None:
        self._session, self._dataset = session, dataset
        self._ids: defaultdict[bytes, list[int]] = defaultdict(list)
        problems = select(TraceRow.id, TraceRow.problem).join(DatasetRow, DatasetRow.id == TraceRow.dataset_id)
        problems = problems.where(DatasetRow.name == dataset).order_by(TraceRow.position)
        for id, problem in session.execute(problems, execution_options={"yield_per": 1000}):
            self._ids[_digest(problem)].append(id)

    def find(self, labelled: Trace) -> StoredTrace:
        ids = self._ids.get(_digest(labelled.problem), [])
        same = load_traces(self._session, traces().where(TraceRow.id.in_(ids)).order_by(TraceRow.position))
        fitting = [trace for trace in same if _fits(labelled, trace)]
        # Of solutions that begin alike, the one that ends where the labels do.
        whole = [trace for trace in fitting if len(trace.steps) == len(labelled.steps)]
        if len(fitting) > 1 and len(whole) == 1:
            fitting = whole
        if not fitting:
            raise UserError(
                f"the dataset {self._dataset!r} has no trace with this problem and these steps.",
                "Import the traces first, or name another dataset with --dataset.",
            )
        if len(fitting) > 1:
            names = ", ".join(trace.id for trace in fitting[:3])
            raise UserError(f"the row fits {len(fitting)} traces of {self._dataset!r}: {names}.")
        return fitting[0]


def _fits(labelled: Trace, trace: Trace) -> bool:
    texts, whole = _texts(trace), labelled.meta.get(_WHOLE)
    return texts[: len(labelled.steps)] == _texts(labelled) and (not whole or list(whole) == texts)


def _texts(trace: Trace) -> list[str]:
    return [step.text for step in trace.steps]


def _annotation(row: Row, labelled: Trace, trace: Trace, annotator: str | None) -> dict[str, object]:
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
        "guideline": 1,
        "submitted": _moment(field(row, "timestamp")),
        "seconds": time / 1000 if isinstance(time, int | float) and time > 0 else 0.0,
    }


def _moment(timestamp: object) -> str:
    """The moment of a row, which PRM800K gives without a time zone."""
    try:
        moment = datetime.fromisoformat(str(timestamp))
    except ValueError:
        raise UserError(f"the timestamp is {describe(timestamp)}, expected a date and time.") from None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).isoformat()


def _digest(problem: str) -> bytes:
    return hashlib.sha256(problem.encode("utf-8", "surrogatepass")).digest()[:16]
