"""Traces of a dataset that solve the same problem.

Problem texts have no index, so the problems of each dataset are read once, as hashes, and cached until it changes.
"""

from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import select
from sqlalchemy.orm import Session

from stepsight.core.arrays import Ints
from stepsight.storage.database.schema import DatasetRow, TraceRow
from stepsight.storage.database.store import IN_PARTS, Store
from stepsight.storage.traces.queries import StoredTrace, load_traces, traces

MOST_SIBLINGS = 256
"""Traces of one problem that are looked at, the first ones in the file."""
_BYTES = 8


@dataclass(frozen=True, eq=False)
class ProblemHashes:
    """The database ids of a dataset's traces in file order, and hashes of their problems, each of shape (n,)."""

    trace_ids: Ints
    hashes: NDArray[np.uint64]

    @property
    def nbytes(self) -> int:
        return self.trace_ids.nbytes + self.hashes.nbytes


def count_siblings(store: Store, trace: StoredTrace) -> int:
    """Count the traces in the dataset that solve the same problem, including this one, at most `MOST_SIBLINGS`."""
    return len(_sibling_ids(store, trace))


def read_siblings(store: Store, trace: StoredTrace) -> list[StoredTrace]:
    """Return the traces in the dataset that solve the same problem, including this one, in file order."""
    with store.read() as session:
        wanted = traces().where(TraceRow.id.in_(_sibling_ids(store, trace))).order_by(TraceRow.position)
        return [one for one in load_traces(session, wanted) if one.problem == trace.problem]


def _sibling_ids(store: Store, trace: StoredTrace) -> list[int]:
    with store.read() as session:
        revision = session.scalar(select(DatasetRow.revision).where(DatasetRow.id == trace.dataset_id))
        key = ("problems", trace.dataset_id)
        problems = store.cache.get(key, revision, lambda: _read_hashes(session, trace.dataset_id))
    found = problems.trace_ids[problems.hashes == np.frombuffer(_digest(trace.problem), np.uint64)]
    return [int(one) for one in found[:MOST_SIBLINGS]]


def _read_hashes(session: Session, dataset_id: int) -> ProblemHashes:
    statement = select(TraceRow.id, TraceRow.problem).where(TraceRow.dataset_id == dataset_id)
    ids: list[int] = []
    digests: list[bytes] = []
    rows = session.connection().execute(statement.order_by(TraceRow.position), execution_options=IN_PARTS)
    for part in rows.partitions():
        for trace_id, problem in part:
            ids.append(trace_id)
            digests.append(_digest(problem))
    return ProblemHashes(np.array(ids, np.int64), np.frombuffer(b"".join(digests), np.uint64))


def _digest(problem: str) -> bytes:
    return blake2b(problem.encode(), digest_size=_BYTES).digest()
