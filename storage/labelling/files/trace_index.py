"""Looking up the traces of a dataset by their text, for label files without trace ids.

Other tools change the text that they show: line breaks, no-break spaces, accents, and white space at its ends.
Texts that look the same to a reader therefore count as the same.
"""

import hashlib
from collections import defaultdict
from collections.abc import Callable
from itertools import zip_longest

from sqlalchemy import select
from sqlalchemy.orm import Session

from stepsight.core.errors import UserError
from stepsight.core.text.signs import comparable
from stepsight.core.trace import Trace
from stepsight.storage.database.schema import DatasetRow, TraceRow
from stepsight.storage.traces.queries import StoredTrace, load_traces, traces


class TraceIndex:
    """Looks up a dataset's traces by problem and steps. Only digests of the problems are held in memory."""

    def __init__(self, session: Session, dataset: str) -> None:
        self._session, self._dataset = session, dataset
        self._ids: defaultdict[bytes, list[int]] = defaultdict(list)
        problems = select(TraceRow.id, TraceRow.problem).join(DatasetRow, DatasetRow.id == TraceRow.dataset_id)
        problems = problems.where(DatasetRow.name == dataset).order_by(TraceRow.position)
        for id, problem in session.execute(problems, execution_options={"yield_per": 1000}):
            self._ids[_digest(problem)].append(id)

    def find(self, labelled: Trace, id: object = None) -> StoredTrace:
        """Return the trace with this problem and these steps.

        If there are several, the first of these rules that singles out a trace is used: its id is `id`, its text is
        exactly the same, or it ends with the last labelled step. Raises `UserError` if no trace fits (the
        message names the first different step if a single trace has the problem), or if several traces still fit.
        """
        ids = self._ids.get(_digest(labelled.problem), [])
        same = load_traces(self._session, traces(ids).order_by(TraceRow.position))
        fitting = [trace for trace in same if _fits(labelled, trace, _words)]
        for prefers in (
            lambda trace: trace.id == str(id),
            lambda trace: trace.problem == labelled.problem and _fits(labelled, trace, str),
            lambda trace: len(trace.steps) == len(labelled.steps),
        ):
            preferred = list(filter(prefers, fitting)) if len(fitting) > 1 else []
            fitting = preferred or fitting
        if not fitting:
            raise self._nothing(labelled, same)
        if len(fitting) > 1:
            names = ", ".join(trace.id for trace in fitting[:3])
            raise UserError(f"the row fits {len(fitting)} traces of {self._dataset!r}: {names}.")
        return fitting[0]

    def _nothing(self, labelled: Trace, same: list[StoredTrace]) -> UserError:
        """Return the error for a row that fits no trace. `same` holds the traces with the same problem."""
        hint = "Import the traces first, or name another dataset (--dataset)."
        if len(same) != 1:
            return UserError(f"the dataset {self._dataset!r} has no trace with this problem and these steps.", hint)
        (trace,) = same
        name = f"trace {trace.id!r} of {self._dataset!r}"
        pairs = zip_longest(_texts(labelled), _texts(trace)[: len(labelled.steps)], fillvalue="")
        step, theirs, ours = next(
            (step, theirs, ours)
            for step, (theirs, ours) in enumerate(pairs, start=1)
            if _words(theirs) != _words(ours)
        )
        return UserError(f"step {step} is {theirs!r:.60}, and that of {name} {ours!r:.60}.", hint)


def _fits(labelled: Trace, trace: Trace, form: Callable[[str], object]) -> bool:
    begins = _texts(trace)[: len(labelled.steps)]
    return [form(text) for text in begins] == [form(text) for text in _texts(labelled)]


def _texts(trace: Trace) -> list[str]:
    return [step.text for step in trace.steps]


def _words(text: str) -> list[str]:
    return comparable(text).split()


def _digest(problem: str) -> bytes:
    words = " ".join(_words(problem))
    return hashlib.sha256(words.encode("utf-8", "surrogatepass")).digest()[:16]
