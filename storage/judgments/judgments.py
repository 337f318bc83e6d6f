"""Saving and reading judgments.

An evaluator has at most one judgment of a trace online, one offline and one in hindsight mode. A hindsight judgment
also replaces those online and offline by its ends. So the judgment that stands in a mode is the one saved last.
"""

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from itertools import islice
from typing import Any

import numpy as np
from sqlalchemy import ColumnElement, delete, exists, func, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from stepsight.core.arrays import Floats32
from stepsight.core.judgment import Judgment, Mode, Usage
from stepsight.core.judgment_record import JudgmentRecord, judgment_record
from stepsight.core.scores import Hindsight, StepScores
from stepsight.storage.database.schema import EvaluatorRow, JudgedRow, JudgmentRow, TraceRow, TriangleRow, now
from stepsight.storage.database.store import ConflictError, Store, count_up, insert_or_update
from stepsight.storage.database.stored_json import DamagedError
from stepsight.storage.judgments.evaluators import StoredEvaluator, find_thresholds
from stepsight.storage.judgments.left_outs import left_outs_of
from stepsight.storage.traces.queries import StoredTrace, iterate_traces

_TOLERANCE = 1e-3
_PACKED = np.dtype("<f4")
# The most that a crash can lose: this many judgments, or the judgments of this many seconds.
_BATCH = 200
_SECONDS = 5.0
_KEY = ("evaluator_id", "dataset_id", "trace_id")
# A judgment that has the same scores and differs in none of these is the one already stored.
_SAME = ("digest", "solution", "spread", "rationale")


@dataclass(frozen=True, eq=False)
class StoredJudgment(Judgment):
    """A judgment and its evaluator. The number of rows of a stale judgment can differ from the number of sub-steps
    of the trace."""

    evaluator: StoredEvaluator = field(kw_only=True)
    created: datetime = field(kw_only=True)


def save_judgments(store: Store, evaluator_id: int, judgments: Iterable[Judgment]) -> int:
    """Store judgments of stored traces as they are produced, and return the number of judgments.

    A judgment replaces the evaluator's earlier one of the same trace in the mode, or in every mode if it is a
    hindsight judgment. Judgments of what a trace was before it changed are not stored. Judgments are committed
    every few seconds, so that slow results survive a crash. If the iterable raises, the judgments before the error
    are kept. Raises `ValueError` if a trace is not a `StoredTrace`, if a judgment does not have one row per
    sub-step, or if a value is not a probability. Raises `ConflictError` if a trace has been deleted.
    """
    waiting: list[Judgment] = []
    saved, since = 0, time.monotonic()
    try:
        for judgment in judgments:
            _check(judgment)
            waiting.append(judgment)
            saved += 1
            if len(waiting) >= _BATCH or time.monotonic() - since > _SECONDS:
                _flush(store, evaluator_id, waiting)
                since = time.monotonic()
    finally:
        _flush(store, evaluator_id, waiting)
    return saved


def save_together(session: Session, evaluator_id: int, judgments: Iterable[Judgment]) -> int:
    """Like `save_judgments`, but within the caller's transaction, so that nothing is stored if the iterable
    raises."""
    saved = 0
    remaining = iter(judgments)
    while batch := list(islice(remaining, _BATCH)):
        for judgment in batch:
            _check(judgment)
        _save(session, evaluator_id, batch)
        saved += len(batch)
    return saved


def missing_traces(store: Store, dataset_id: int, evaluator_id: int, mode: Mode | str) -> Iterator[StoredTrace]:
    """Yield the traces of a dataset that the evaluator has not yet judged in this mode, in file order.

    A stale judgment counts as missing, and a hindsight judgment counts for every mode. Judgments may be saved
    during the iteration, and the iteration may be stopped and restarted.
    """
    return iterate_traces(store, dataset_id, _is_missing(evaluator_id, Mode(mode)))


def count_missing(store: Store, dataset_id: int, evaluator_id: int, mode: Mode | str) -> int:
    """Return the number of traces that `missing_traces` yields."""
    counted = select(func.count()).select_from(TraceRow).where(TraceRow.dataset_id == dataset_id)
    with store.read() as session:
        return session.scalar(counted.where(_is_missing(evaluator_id, Mode(mode)))) or 0


def _is_missing(evaluator_id: int, mode: Mode) -> ColumnElement[bool]:
    row = TriangleRow if mode == Mode.HINDSIGHT else JudgmentRow
    in_mode = () if mode == Mode.HINDSIGHT else (JudgmentRow.mode == mode.value,)
    judged = row.trace_id == TraceRow.id, row.evaluator_id == evaluator_id, row.digest == TraceRow.digest
    return ~exists().where(*judged, *in_mode)


def _flush(store: Store, evaluator_id: int, waiting: list[Judgment]) -> None:
    if not waiting:
        return
    try:
        with store.write() as session:
            _save(session, evaluator_id, waiting)
    except (IntegrityError, ConflictError):
        waiting.clear()
        raise ConflictError("Traces were deleted while they were being judged.", "Judge other traces.") from None
    waiting.clear()


def _check(judgment: Judgment) -> None:
    trace, result = judgment.trace, judgment.result
    if not isinstance(trace, StoredTrace):
        raise ValueError(f"trace {trace.id!r} is not from the store")
    if isinstance(result, Hindsight) != (judgment.mode == Mode.HINDSIGHT):
        raise ValueError(f"a {type(result).__name__} in {judgment.mode} mode")
    if len(result) != len(trace.substeps):
        raise ValueError(f"{len(result)} rows for {len(trace.substeps)} sub-steps of trace {trace.id!r}")
    if not are_probabilities(result.packed if isinstance(result, Hindsight) else result.probs):
        raise ValueError("a value is not a probability")


def _save(session: Session, evaluator_id: int, judgments: Sequence[Judgment]) -> None:
    ids = [judgment.trace.trace_id for judgment in judgments if isinstance(judgment.trace, StoredTrace)]
    present = select(TraceRow.id, TraceRow.digest).where(TraceRow.id.in_(ids))
    digests: dict[int, str] = dict(session.execute(present).all())
    if not digests.keys() >= set(ids):
        raise ConflictError("Traces were deleted while they were being judged.", "Judge other traces.")
    in_mode: dict[tuple[int, str], dict[str, Any]] = {}
    triangles: dict[int, dict[str, Any]] = {}
    for judgment in judgments:
        trace, result = judgment.trace, judgment.result
        assert isinstance(trace, StoredTrace)
        if trace.digest != digests[trace.trace_id]:
            continue
        row = {
            "evaluator_id": evaluator_id,
            "dataset_id": trace.dataset_id,
            "trace_id": trace.trace_id,
            "digest": trace.digest,
            "created": now(),
            "solution": judgment.solution,
            "spread": None if result.spread is None else _pack(result.spread),
            "rationale": judgment.rationale or None,
            "spent": None if judgment.spent is None else asdict(judgment.spent),
        }
        if isinstance(result, Hindsight):
            ends = {"online": _pack(result.online.probs), "offline": _pack(result.offline.probs)}
            change = float(np.abs(result.retroactive).max())
            triangles[trace.trace_id] = row | ends | {"change": change, "packed": _pack(result.packed)}
        else:
            ends = {judgment.mode.value: _pack(result.probs)}
        for mode, scores in ends.items():
            values = {"mode": mode, "scores": scores, "derived": isinstance(result, Hindsight)}
            in_mode[trace.trace_id, mode] = row | values
    _remove_stale(session, evaluator_id, ids)
    # All writers use the same order; otherwise they could deadlock.
    if in_mode:
        rows = [in_mode[key] for key in sorted(in_mode)]
        insert_or_update(session, JudgmentRow, rows, (*_KEY, "mode"), ("scores", "derived", *_SAME))
    if triangles:
        insert_or_update(
            session, TriangleRow, [triangles[key] for key in sorted(triangles)], _KEY, ("packed", *_SAME)
        )
    for dataset_id in sorted({row["dataset_id"] for row in in_mode.values()}):
        count_up(session, JudgedRow, {"dataset_id": dataset_id, "evaluator_id": evaluator_id}, "revision")


def _remove_stale(session: Session, evaluator_id: int, trace_ids: Sequence[int]) -> None:
    """Delete the evaluator's judgments of what these traces were before they changed."""
    for row in (JudgmentRow, TriangleRow):
        current = select(TraceRow.digest).where(TraceRow.id == row.trace_id).scalar_subquery()
        of_traces = row.evaluator_id == evaluator_id, row.trace_id.in_(trace_ids)
        stale = delete(row).where(*of_traces, row.digest != current)
        session.execute(stale.execution_options(synchronize_session=False))


def standing(judgments: Iterable[StoredJudgment], mode: Mode) -> StoredJudgment | None:
    """Return the judgment that stands in a mode, or None. All `judgments` must be by one evaluator and of one
    trace."""
    by_mode = {judgment.mode: judgment for judgment in judgments if not judgment.stale}
    # If the hindsight judgment had been saved later, there would be no judgment in this mode.
    return by_mode.get(mode) or by_mode.get(Mode.HINDSIGHT)


def read_judgments(store: Store, trace: StoredTrace) -> list[StoredJudgment]:
    """Return the judgments of a trace, sorted by evaluator name and mode. Those whose scores are the ends of a
    hindsight judgment are not listed beside it."""
    return read_many(store, [trace])[0]


def read_many(
    store: Store, traces: Sequence[StoredTrace], evaluator_id: int | None = None
) -> list[list[StoredJudgment]]:
    """Like `read_judgments`, but for several traces at once. The result has one list per trace. If `evaluator_id`
    is given, only that evaluator's judgments are included."""
    by_id = {trace.trace_id: trace for trace in traces}
    lists: dict[int, list[StoredJudgment]] = {trace_id: [] for trace_id in by_id}
    with store.read() as session:
        for row in (JudgmentRow, TriangleRow):
            statement = select(row, EvaluatorRow).join(EvaluatorRow, EvaluatorRow.id == row.evaluator_id)
            statement = statement.where(row.trace_id.in_(by_id))
            if row is JudgmentRow:
                statement = statement.where(~JudgmentRow.derived)
            if evaluator_id is not None:
                statement = statement.where(row.evaluator_id == evaluator_id)
            for judgment, evaluator in session.execute(statement):
                # The rows' common type declares neither column.
                assert isinstance(judgment, JudgmentRow | TriangleRow)
                lists[judgment.trace_id].append(_judgment(by_id[judgment.trace_id], judgment, evaluator))
    for judgments in lists.values():
        judgments.sort(key=lambda judgment: (judgment.evaluator.name, judgment.evaluator.id, judgment.mode.value))
    return [lists[trace.trace_id] for trace in traces]


def _judgment(trace: StoredTrace, row: JudgmentRow | TriangleRow, evaluator: EvaluatorRow) -> StoredJudgment:
    mode, data = (Mode(row.mode), row.scores) if isinstance(row, JudgmentRow) else (Mode.HINDSIGHT, row.packed)
    result = unpack(data, mode, row.spread)
    stale = row.digest != trace.digest
    if not stale and len(result) != len(trace.substeps):
        raise DamagedError(f"judgments: {len(result)} rows, but the trace {trace.id!r} has {len(trace.substeps)}.")
    return StoredJudgment(
        trace,
        mode,
        result,
        row.solution,
        row.rationale or "",
        None if row.spent is None else Usage(**row.spent),
        evaluator=StoredEvaluator.of(evaluator),
        stale=stale,
        created=row.created,
    )


def _pack(values: Floats32) -> bytes:
    return values.astype(_PACKED).tobytes()


def are_probabilities(values: Floats32) -> bool:
    # Also false for NaN.
    return bool(values.min() >= -_TOLERANCE and values.max() <= 1 + _TOLERANCE)


def unpack(data: bytes, mode: Mode, spread: bytes | None = None) -> StepScores | Hindsight:
    """Restore scores from stored bytes: those of a triangle in hindsight mode, else a row for each sub-step.
    `spread` holds the bytes of an ensemble's spread. Raises `DamagedError` if the bytes are not valid scores in
    this mode."""
    try:
        probs = _floats(data).reshape(-1, 3)
        spreads = None if spread is None else _floats(spread)
        kind = Hindsight.from_packed if mode == Mode.HINDSIGHT else StepScores
        result = kind(probs, spreads)
    except ValueError as error:
        raise DamagedError(f"judgments: {error}.") from None
    if not len(probs) or not are_probabilities(probs):
        raise DamagedError("judgments: a value is not a probability.")
    return result


def _floats(data: bytes) -> Floats32:
    return np.frombuffer(data, dtype=_PACKED).astype(np.float32)


def trace_records(store: Store, trace: StoredTrace, *, left_out: bool) -> list[JudgmentRecord]:
    """Return the records of all judgments of a trace, sorted by evaluator name and mode.

    If `left_out` is True, the records of offline scores include the same evaluator's scores with each step left
    out. Stale judgments are excepted.
    """
    without = left_outs_of(store, trace) if left_out else {}
    return [
        judgment_record(
            judgment,
            judgment.evaluator,
            find_thresholds(store, judgment.evaluator.id),
            left_out=None if judgment.stale else without.get(judgment.evaluator.id),
        )
        for judgment in read_judgments(store, trace)
    ]
