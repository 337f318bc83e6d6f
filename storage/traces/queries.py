"""Reading datasets and traces, one page or batch at a time."""

import sys
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import ColumnElement, Select, case, distinct, func, select
from sqlalchemy.orm import Session

from stepsight.core.arrays import Ints
from stepsight.core.trace import Label, Step, Trace, check_text
from stepsight.storage.database.schema import DatasetRow, LeftOutRow, StepRow, SubstepRow, TraceRow, in_range
from stepsight.storage.database.store import IN_PARTS, NotFoundError, Store

# The most traces held in memory while iterating over a dataset, and the most sub-steps that they have in total.
BATCH = 500
_SUBSTEPS = 20_000
# The length of a problem's hash.
_BYTES = 8


@dataclass(frozen=True)
class Dataset:
    """A dataset and its counts.

    `labelled` is the number of traces with gold labels, and `errors` those with a gold error. `soft` is the number
    of traces with soft labels, and `left_out` the number of bad rows that were left out on import.
    """

    id: int
    name: str
    kind: str
    source: str
    sha256: str
    created: datetime
    traces: int
    labelled: int
    soft: int
    errors: int
    redundant: int
    steps: int
    substeps: int
    left_out: int

    @property
    def size(self) -> str:
        """The trace count as text. If rows were left out, the text includes the total, as in `6,116 of 6,216`."""
        return f"{self.traces:,} of {self.traces + self.left_out:,}" if self.left_out else f"{self.traces:,}"


@dataclass(frozen=True)
class StoredTrace(Trace):
    """A trace in the store. `id` is its id within the dataset, and `trace_id` is its database id. It can be scored
    like any trace, and its judgment can be stored."""

    trace_id: int = field(kw_only=True)
    dataset_id: int = field(kw_only=True)
    dataset: str = field(kw_only=True)
    position: int = field(kw_only=True)


@dataclass(frozen=True)
class Neighbours:
    """The database ids of the previous and the next trace in a list, or None at the ends of the list."""

    previous: int | None
    next: int | None


@dataclass(frozen=True, eq=False)
class ProblemHashes:
    """The database ids of a dataset's traces in file order, and hashes of their problems (including the problem ids
    in their meta), in arrays of shape (n,).

    The database has no index on problems, so they are read once per dataset and their hashes are cached until the
    dataset changes.
    """

    trace_ids: Ints
    hashes: NDArray[np.uint64]

    @property
    def nbytes(self) -> int:
        return self.trace_ids.nbytes + self.hashes.nbytes


def list_datasets(store: Store) -> list[Dataset]:
    """List the datasets by name, with their counts."""
    with store.read() as session:
        return _with_counts(store, session, _datasets().order_by(DatasetRow.name))


def find_dataset(store: Store, name: str) -> Dataset:
    """Return the dataset with this name. Raises `NotFoundError` if no dataset has this name."""
    check_text(name, "the name of the dataset")
    with store.read() as session:
        if datasets := _with_counts(store, session, _datasets().where(DatasetRow.name == name)):
            return datasets[0]
        names = session.scalars(select(DatasetRow.name).order_by(DatasetRow.name).limit(10)).all()
    names_hint = f"The store holds {', '.join(names)}." if names else "The store is empty; import a file first."
    raise NotFoundError(f"There is no dataset {name!r}.", names_hint)


def list_left_out(store: Store, dataset_id: int) -> list[dict[str, str]]:
    """List the bad rows that were left out of a dataset, each with its `file`, its `place` in that file, and its
    `error`."""
    with store.read() as session:
        rows = session.scalars(select(LeftOutRow).where(LeftOutRow.dataset_id == dataset_id))
        left_out = [{"file": row.source, "place": row.place, "error": row.error} for row in rows]
    return sorted(left_out, key=lambda row: (row["file"], len(row["place"]), row["place"]))


def get_trace(store: Store, trace_id: int) -> StoredTrace:
    """Return the trace with this database id. Raises `NotFoundError` if the trace does not exist."""
    with store.read() as session:
        matches = load_traces(session, traces().where(TraceRow.id == in_range(trace_id)))
    if not matches:
        raise NotFoundError(f"There is no trace {trace_id}.")
    return matches[0]


def find_trace(store: Store, dataset: str, id: str) -> StoredTrace:
    """Return the trace with this id in the named dataset. Raises `NotFoundError` if the trace does not exist."""
    check_text(dataset, "the name of the dataset")
    check_text(id, "the id")
    with store.read() as session:
        matches = load_traces(session, traces().where(DatasetRow.name == dataset, TraceRow.external_id == id))
    if not matches:
        raise NotFoundError(f"There is no trace {id!r} in the dataset {dataset!r}.")
    return matches[0]


def list_trace_ids(store: Store, dataset_id: int, *conditions: ColumnElement[bool]) -> Sequence[int]:
    """Return the database ids of a dataset's traces that meet the conditions, in file order."""
    ids = select(TraceRow.id).where(TraceRow.dataset_id == dataset_id, *conditions)
    with store.read() as session:
        return session.scalars(ids.order_by(TraceRow.position)).all()


def iterate_traces(store: Store, dataset_id: int, *conditions: ColumnElement[bool]) -> Iterator[StoredTrace]:
    """Yield the traces of a dataset that meet the conditions when they are read, in file order.

    At most `BATCH` traces are read at a time, fewer of long ones, and no database connection is held in between.
    """
    for batch in trace_batches(store, list_trace_ids(store, dataset_id, *conditions), *conditions):
        yield from batch


def iterate_named(store: Store, dataset_id: int, names: Collection[str]) -> Iterator[StoredTrace]:
    """Like `iterate_traces`, but yield only the traces whose ids are in `names`."""
    ids = select(TraceRow.id, TraceRow.external_id).where(TraceRow.dataset_id == dataset_id)
    with store.read() as session:
        rows = session.execute(ids.order_by(TraceRow.position)).all()
    for batch in trace_batches(store, [row.id for row in rows if row.external_id in names]):
        yield from batch


def list_ids(store: Store, dataset_id: int) -> list[str]:
    """Return the ids of a dataset's traces in file order."""
    statement = select(TraceRow.external_id).where(TraceRow.dataset_id == dataset_id).order_by(TraceRow.position)
    with store.read() as session:
        return list(session.scalars(statement))


def count_siblings(store: Store, trace: StoredTrace) -> int:
    """Count the dataset's traces that solve the same problem, including `trace`: those with the same problem text
    and, if given, the same `problem_id`."""
    with store.read() as session:
        revision = session.scalar(select(DatasetRow.revision).where(DatasetRow.id == trace.dataset_id))
        key = ("problems", trace.dataset_id)
        problems = store.cache.get(key, revision, lambda: _read_hashes(session, trace.dataset_id))
    own = problems.hashes[problems.trace_ids == trace.trace_id]
    return len(problems.trace_ids[np.isin(problems.hashes, own)])


def traces(ids: Collection[int] | None = None) -> Select[Any]:
    """Return an SQL statement for `load_traces`, to which conditions and an order can be added. If `ids` is
    given, it leaves out traces with other database ids."""
    chosen = select(
        TraceRow.id, TraceRow.external_id, TraceRow.position, TraceRow.problem, TraceRow.meta,
        TraceRow.dataset_id, DatasetRow.name,
    ).join(DatasetRow, DatasetRow.id == TraceRow.dataset_id)  # fmt: skip
    return chosen if ids is None else chosen.where(TraceRow.id.in_(ids))


def trace_batches(
    store: Store, trace_ids: Sequence[int], *conditions: ColumnElement[bool]
) -> Iterator[list[StoredTrace]]:
    """Yield the traces with these database ids in batches, in order, without those that are gone or fail a
    condition when they are read. No database connection is held between batches."""
    for start in range(0, len(trace_ids), BATCH):
        ids = trace_ids[start : start + BATCH]
        with store.read() as session:
            present = select(TraceRow.id, TraceRow.n_substeps).where(TraceRow.id.in_(ids))
            sizes = {row.id: row.n_substeps for row in session.execute(present)}
        for part in _parts([(id, sizes[id]) for id in ids if id in sizes]):
            with store.read() as session:
                loaded = load_traces(session, traces(part).where(*conditions))
            by_id = {trace.trace_id: trace for trace in loaded}
            yield [by_id[id] for id in part if id in by_id]


def _parts(sizes: Iterable[tuple[int, int]]) -> Iterator[list[int]]:
    """Divide keys, each with a number of sub-steps, into lists whose traces fit into memory."""
    part: list[int] = []
    substeps = 0
    for key, size in sizes:
        if part and substeps + size > _SUBSTEPS:
            yield part
            part, substeps = [], 0
        part.append(key)
        substeps += size
    if part:
        yield part


def load_traces(session: Session, statement: Select[Any]) -> list[StoredTrace]:
    """Load the traces selected by `statement`, which is based on `traces()`, with their steps and in the same
    order. This takes three queries."""
    rows = session.execute(statement).all()
    steps = _load_steps(session, [row.id for row in rows]) if rows else {}
    return [
        StoredTrace(
            id=row.external_id,
            problem=row.problem,
            steps=tuple(steps[row.id]),
            meta=row.meta,
            trace_id=row.id,
            dataset_id=row.dataset_id,
            dataset=row.name,
            position=row.position,
        )
        for row in rows
    ]


def _load_steps(session: Session, ids: Sequence[int]) -> dict[int, list[Step]]:
    texts: defaultdict[tuple[int, int], list[str]] = defaultdict(list)
    substeps = select(SubstepRow.trace_id, SubstepRow.step, SubstepRow.text).where(SubstepRow.trace_id.in_(ids))
    for trace_id, step, text in session.execute(
        substeps.order_by(SubstepRow.trace_id, SubstepRow.step, SubstepRow.position)
    ):
        texts[trace_id, step].append(text)
    steps: defaultdict[int, list[Step]] = defaultdict(list)
    row = StepRow
    labels = select(row.trace_id, row.position, row.label, row.valid, row.share)
    labels = labels.where(row.trace_id.in_(ids)).order_by(row.trace_id, row.position)
    for trace_id, position, label, valid, share in session.execute(labels):
        gold = None if label is None else Label(label)
        steps[trace_id].append(Step(tuple(texts[trace_id, position]), gold, valid, share))
    return steps


def _read_hashes(session: Session, dataset_id: int) -> ProblemHashes:
    columns = TraceRow.id, TraceRow.problem, TraceRow.meta["problem_id"].as_string()
    statement = select(*columns).where(TraceRow.dataset_id == dataset_id)
    ids: list[int] = []
    digests: list[bytes] = []
    rows = session.connection().execute(statement.order_by(TraceRow.position), execution_options=IN_PARTS)
    for part in rows.partitions():
        for trace_id, problem, problem_id in part:
            ids.append(trace_id)
            text = f"{problem_id or ''}\0{problem}"
            digests.append(blake2b(text.encode(), digest_size=_BYTES).digest())
    return ProblemHashes(np.array(ids, np.int64), np.frombuffer(b"".join(digests), np.uint64))


def _datasets() -> Select[Any]:
    names = ("id", "name", "kind", "source", "sha256", "created", "revision")
    left_out = select(func.count()).where(LeftOutRow.dataset_id == DatasetRow.id).scalar_subquery()
    columns = [getattr(DatasetRow, name) for name in names]
    return select(*columns, left_out.label("left_out"))


def _with_counts(store: Store, session: Session, statement: Select[Any]) -> list[Dataset]:
    """Return the datasets that `statement` selects. Their counts are cached until the dataset changes."""
    cache, datasets = store.cache, []
    for row in session.execute(statement).mappings().all():
        values: dict[str, Any] = dict(row)
        key, revision, count = ("counts", row.id), values.pop("revision"), partial(_count, session, row.id)
        datasets.append(Dataset(**values | cache.get(key, revision, count, sys.getsizeof)))
    return datasets


def _count(session: Session, dataset_id: int) -> dict[str, int]:
    counts = (
        func.count(TraceRow.dataset_id).label("traces"),
        func.count(case((TraceRow.has_gold, 1))).label("labelled"),
        func.count(TraceRow.first_error).label("errors"),
        func.count(case((TraceRow.n_redundant > 0, 1))).label("redundant"),
        func.coalesce(func.sum(TraceRow.n_steps), 0).label("steps"),
        func.coalesce(func.sum(TraceRow.n_substeps), 0).label("substeps"),
    )
    of_dataset = TraceRow.dataset_id == dataset_id
    soft = (
        select(func.count(distinct(StepRow.trace_id))).join(TraceRow).where(of_dataset, StepRow.share.is_not(None))
    )
    return dict(
        session.execute(select(*counts, soft.scalar_subquery().label("soft")).where(of_dataset)).mappings().one()
    )
