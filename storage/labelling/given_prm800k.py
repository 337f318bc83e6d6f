"""Rows of PRM800K as answers to traces of the store: labels that were given elsewhere."""

import hashlib
from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from sqlalchemy import select
from sqlalchemy.orm import Session

from core.errors import UserError
from core.trace import Trace
from storage.importers import prm800k
from storage.importers.fields import describe, field, located
from storage.importers.kind import Row
from storage.labelling.given import GivenAnswer, GivenTrace, parse_answer
from storage.queries import StoredTrace, load_traces, traces
from storage.schema import DatasetRow, TraceRow

_BAD_PROBLEM = "bad_problem"
_WHOLE = "pre_generated_steps"


def read(
    session: Session, rows: Iterator[tuple[str, Row]], dataset: str, annotator: str | None
) -> Iterator[tuple[str, GivenTrace]]:
    """The answers of rows, to the traces of a dataset with the same problem and steps.

    Labels that end at an error leave the later steps unlabelled. Raises `UserError` where no trace fits a row, or
    several do.
    """
    index = _Index(session, dataset)
    for where, row in rows:
        labelled = prm800k.parse(row, where)
        with located(where):
            trace = index.find(labelled)
            answer = _answer(row, labelled, len(trace.steps), annotator)
        yield where, GivenTrace(dataset, trace.id, trace.digest, "ordered", (answer,))


class _Index:
    """Finds a dataset's traces by their problem, of which a digest is kept in memory."""

    def __init__(self, session: Session, dataset: str) -> None:
        self._session, self._dataset = session, dataset
        self._ids: defaultdict[bytes, list[int]] = defaultdict(list)
        found = select(TraceRow.id, TraceRow.problem).join(DatasetRow, DatasetRow.id == TraceRow.dataset_id)
        wanted = found.where(DatasetRow.name == dataset).order_by(TraceRow.position)
        for id, problem in session.execute(wanted, execution_options={"yield_per": 1000}):
            self._ids[_digest(problem)].append(id)

    def find(self, labelled: Trace) -> StoredTrace:
        ids = self._ids.get(_digest(labelled.problem), [])
        same = load_traces(self._session, traces().where(TraceRow.id.in_(ids)).order_by(TraceRow.position))
        fitting = [trace for trace in same if _fits(labelled, trace)]
        # Of solutions that begin alike, the one that ends where the labels do.
        whole = [trace for trace in fitting if len(trace.steps) == len(labelled.steps)]
        found = whole if len(fitting) > 1 and len(whole) == 1 else fitting
        if not found:
            raise UserError(
                f"the dataset {self._dataset!r} has no trace with this problem and these steps.",
                "Import the traces first, or name another dataset with --dataset.",
            )
        if len(found) > 1:
            named = ", ".join(trace.id for trace in found[:3])
            raise UserError(f"the row fits {len(found)} traces of {self._dataset!r}: {named}.")
        return found[0]


def _fits(labelled: Trace, trace: Trace) -> bool:
    texts, whole = _texts(trace), labelled.meta.get(_WHOLE)
    return texts[: len(labelled.steps)] == _texts(labelled) and (not whole or list(whole) == texts)


def _texts(trace: Trace) -> list[str]:
    return [step.text for step in trace.steps]


def _answer(row: Row, labelled: Trace, steps: int, annotator: str | None) -> GivenAnswer:
    given: Sequence[str | None] = [None if label is None else label.text for label in labelled.labels]
    labels, nothing = [*given, *[None] * (steps - len(given))], [None] * steps
    time = labelled.meta.get("total_time")
    said = {
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
    return parse_answer(said, steps)


def _moment(found: object) -> str:
    """The moment of a row, which PRM800K gives without a time zone."""
    try:
        moment = datetime.fromisoformat(str(found))
    except ValueError:
        raise UserError(f"the timestamp is {describe(found)}, expected a date and time.") from None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).isoformat()


def _digest(problem: str) -> bytes:
    return hashlib.sha256(problem.encode("utf-8", "surrogatepass")).digest()[:16]
