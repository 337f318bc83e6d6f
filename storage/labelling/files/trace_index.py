"""Looking up the traces of a dataset by their text, for label files without trace ids."""

import hashlib
from collections import defaultdict

from sqlalchemy import select
from sqlalchemy.orm import Session

from stepsight.core.errors import UserError
from stepsight.core.trace import Trace
from stepsight.storage.database.schema import DatasetRow, TraceRow
from stepsight.storage.traces.queries import StoredTrace, load_traces, traces

_WHOLE = "pre_generated_steps"


class TraceIndex:
    """Looks up a dataset's traces by problem and steps. Only digests of the problems are held in memory."""

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
        # If several solutions begin alike, the one that ends where the labels do.
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


def _digest(problem: str) -> bytes:
    return hashlib.sha256(problem.encode("utf-8", "surrogatepass")).digest()[:16]
