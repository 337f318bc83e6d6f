"""Saving and reading judgments, and deciding which judgment stands in a mode.

An evaluator can have several judgments of a trace. Of those that are not stale and provide scores in a mode, the
newest is said to stand in that mode. If several are equally new, the one with the greatest id stands. A hindsight
judgment also provides online and offline scores. All code that shows,
filters, exports or measures scores uses `standing` or, in SQL, `stands`.
"""

import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from itertools import islice
from types import SimpleNamespace
from typing import Any

import numpy as np
from sqlalchemy import ColumnElement, and_, exists, func, literal_column, select, tuple_
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session, aliased

from stepsight.core.arrays import Floats32
from stepsight.core.judgment import Judgment, Mode, Usage
from stepsight.core.scores import Hindsight, StepScores, judge_solution
from stepsight.storage.database.schema import EvaluatorRow, JudgedRow, JudgmentRow, ProfileRow, TraceRow, now
from stepsight.storage.database.store import ConflictError, Store
from stepsight.storage.database.stored_json import DamagedError
from stepsight.storage.database.upsert import count_up, insert_or_update
from stepsight.storage.judgments.evaluators import StoredEvaluator
from stepsight.storage.judgments.step_profiles import profile_columns
from stepsight.storage.traces.queries import StoredTrace, iterate, traces

_TOLERANCE = 1e-3
_PACKED = np.dtype("<f4")
_INDICES = np.dtype("<i4")
# The most that a crash can lose: so many judgments, or those of so many seconds.
_BATCH = 200
_SECONDS = 5.0
_KEY = ("evaluator_id", "dataset_id", "mode", "trace_id")
_PROFILES = "profiles"

Values = dict[str, Any]
_newer = aliased(JudgmentRow)
# The judgment that an insertion meets, which is in no FROM that a subquery could be correlated with.
_REPLACED = SimpleNamespace(
    **{one.name: literal_column(f"{JudgmentRow.__tablename__}.{one.name}") for one in JudgmentRow.__table__.columns}
)


@dataclass(frozen=True, eq=False)
class StoredJudgment(Judgment):
    """A judgment and its evaluator. `stale` is True if the trace has changed since the judgment was `created`.

    `online` and `offline` work as in `Judgment`, so a hindsight judgment has both. The number of rows of a stale
    judgment can differ from the number of sub-steps of the trace.
    """

    id: int = field(kw_only=True)
    evaluator: StoredEvaluator = field(kw_only=True)
    stale: bool = field(kw_only=True)
    created: datetime = field(kw_only=True)


def save_judgments(store: Store, evaluator_id: int, judgments: Iterable[Judgment]) -> int:
    """Store judgments of stored traces as they are produced, and return the number of judgments stored.

    A judgment replaces an earlier one of the same trace, evaluator and mode. Judgments are committed every few
    seconds, so that slow results survive a crash. If the iterable raises, the judgments before the error are kept.
    Raises `ValueError` if a trace is not a `StoredTrace`, if a judgment does not have one row per sub-step, or if a
    value is not a probability. Raises `ConflictError` if a trace has been deleted.
    """
    waiting: dict[tuple[int, str], Values] = {}
    saved, since = 0, time.monotonic()
    try:
        for judgment in judgments:
            row = _values(evaluator_id, judgment, judgment.trace.digest)
            waiting[row["trace_id"], row["mode"]] = row
            saved += 1
            if len(waiting) >= _BATCH or time.monotonic() - since > _SECONDS:
                _flush(store, waiting)
                since = time.monotonic()
    finally:
        _flush(store, waiting)
    return saved


def save_together(session: Session, evaluator_id: int, judgments: Iterable[Judgment]) -> int:
    """Like `save_judgments`, but within the caller's transaction, so that nothing is stored if the iterable raises.

    Each combination of trace and mode may occur only once, and the traces must be in file order.
    """
    saved = 0
    rows = (_values(evaluator_id, one, one.trace.digest) for one in judgments)
    while batch := list(islice(rows, _BATCH)):
        _insert(session, batch)
        saved += len(batch)
    return saved


def missing_traces(store: Store, dataset_id: int, evaluator_id: int, mode: Mode | str) -> Iterator[StoredTrace]:
    """Yield the traces of a dataset that the evaluator has not yet judged in this mode, in file order.

    A stale judgment counts as missing, and a hindsight judgment counts for every mode. Judgments may be saved
    during the iteration, and the iteration may be stopped and restarted.
    """
    return iterate(store, dataset_id, traces().where(_missing(evaluator_id, Mode(mode))))


def count_missing(store: Store, dataset_id: int, evaluator_id: int, mode: Mode | str) -> int:
    """Return the number of traces that `missing_traces` yields."""
    counted = select(func.count()).select_from(TraceRow).where(TraceRow.dataset_id == dataset_id)
    with store.read() as session:
        return session.scalar(counted.where(_missing(evaluator_id, Mode(mode)))) or 0


def _missing(evaluator_id: int, mode: Mode) -> ColumnElement[bool]:
    row = JudgmentRow
    return ~exists().where(row.trace_id == TraceRow.id, row.evaluator_id == evaluator_id, fresh_rows(mode))


def _flush(store: Store, waiting: dict[tuple[int, str], Values]) -> None:
    if not waiting:
        return
    # In the same order for all writers, who could otherwise deadlock.
    rows = [waiting[key] for key in sorted(waiting)]
    try:
        with store.write() as session:
            _insert(session, rows)
    except IntegrityError:
        waiting.clear()
        raise ConflictError("Traces were deleted while they were being judged.", "Judge other traces.") from None
    waiting.clear()


def _insert(session: Session, rows: list[Values]) -> None:
    """Store judgments and their profiles, and increment the revision that tells caches to reload them."""
    judgments = [{name: value for name, value in row.items() if name != _PROFILES} for row in rows]
    profiles = [{name: row[name] for name in _KEY} | row[_PROFILES] for row in rows]
    insert_or_update(
        session,
        JudgmentRow,
        judgments,
        key=("trace_id", "evaluator_id", "mode"),
        unless_same=("probabilities", "trace_digest", "solution", "rationale", "spread"),
        # A judgment repeated with the same result is newer than those made in between.
        or_where=_has_newer(_REPLACED),
    )
    insert_or_update(session, ProfileRow, profiles, key=_KEY, unless_same=("online", "offline"))
    for dataset_id, evaluator_id in sorted({(row["dataset_id"], row["evaluator_id"]) for row in rows}):
        count_up(session, JudgedRow, {"dataset_id": dataset_id, "evaluator_id": evaluator_id}, "revision")


def _values(evaluator_id: int, judgment: Judgment, digest: str) -> Values:
    trace, result = judgment.trace, judgment.result
    if not isinstance(trace, StoredTrace):
        raise ValueError(f"trace {trace.id!r} is not from the store")
    if isinstance(result, Hindsight) != (judgment.mode == Mode.HINDSIGHT):
        raise ValueError(f"a {type(result).__name__} in {judgment.mode} mode")
    if len(result) != len(trace.substeps):
        raise ValueError(f"{len(result)} rows for {len(trace.substeps)} sub-steps of trace {trace.id!r}")
    return {
        "trace_id": trace.trace_id,
        "dataset_id": trace.dataset_id,
        "evaluator_id": evaluator_id,
        "mode": judgment.mode.value,
        "trace_digest": digest,
        "created": now(),
        **_summary(result),
        "probabilities": pack(result),
        "solution": judgment.solution,
        "rationale": judgment.rationale or None,
        "spent": None if judgment.spent is None else asdict(judgment.spent),
        "spread": None if result.spread is None else result.spread.astype(_PACKED).tobytes(),
        _PROFILES: profile_columns(judgment, digest),
    }


def _summary(result: StepScores | Hindsight) -> dict[str, float | None]:
    """Return the values of the columns in which a judgment is summarised, such as `validity` and `retroactive`."""
    if isinstance(result, StepScores):
        verdict = judge_solution(result)
        columns: dict[str, float | None] = {"validity": verdict.validity, "redundancy": verdict.redundancy}
        return columns | dict.fromkeys(("online_validity", "online_redundancy", "retroactive"))
    online = judge_solution(result.online)
    return _summary(result.offline) | {
        "online_validity": online.validity,
        "online_redundancy": online.redundancy,
        "retroactive": float(np.abs(result.retroactive).max()),
    }


def giving(mode: Mode) -> tuple[Mode, ...]:
    """Return the modes of judgment that provide scores in `mode`."""
    return (mode,) if mode == Mode.HINDSIGHT else (mode, Mode.HINDSIGHT)


def standing(judgments: Iterable[StoredJudgment], mode: Mode) -> StoredJudgment | None:
    """Return the judgment that stands in a mode, or None. All `judgments` must be by one evaluator and of one
    trace."""
    wanted = [one for one in judgments if not one.stale and one.mode in giving(mode)]
    return max(wanted, key=lambda one: (one.created, one.id), default=None)


def fresh_rows(*modes: Mode) -> ColumnElement[bool]:
    """Return the SQL condition that a judgment is not stale and provides scores in at least one of `modes`. If no
    modes are given, scores in any mode will do. The condition applies to `JudgmentRow` joined with `TraceRow`."""
    return and_(_provides(JudgmentRow, modes or tuple(Mode)), JudgmentRow.trace_digest == TraceRow.digest)


def _provides(row: Any, modes: Sequence[Mode]) -> ColumnElement[bool]:
    provides: ColumnElement[bool] = row.mode.in_(sorted({one.value for mode in modes for one in giving(mode)}))
    return provides


def stands(mode: Mode) -> ColumnElement[bool]:
    """Return the SQL condition that a judgment stands in a mode, for `JudgmentRow` joined with `TraceRow`."""
    return fresh_rows(mode) & ~overruled(mode)


def overruled(mode: Mode) -> ColumnElement[bool]:
    """Return the SQL condition that a newer judgment, which is not stale, also provides scores in the mode. The
    condition applies to `JudgmentRow` joined with `TraceRow`."""
    return _has_newer(JudgmentRow, _provides(_newer, [mode]), _newer.trace_digest == TraceRow.digest)


def _has_newer(old: Any, *which: ColumnElement[bool]) -> ColumnElement[bool]:
    """Return the SQL condition that the same evaluator has a newer judgment of the trace than `old`. `old` holds
    the columns of the older judgment. Only newer judgments that meet the conditions `which` count."""
    newer = (
        _newer.trace_id == old.trace_id,
        _newer.evaluator_id == old.evaluator_id,
        _newer.mode != old.mode,
        tuple_(_newer.created, _newer.id) > tuple_(old.created, old.id),
    )
    return exists().where(*newer, *which).correlate(JudgmentRow, TraceRow)


def read_judgments(store: Store, trace: StoredTrace) -> list[StoredJudgment]:
    """Return the judgments of a trace, sorted by evaluator name and mode."""
    return read_many(store, [trace])[0]


def read_many(
    store: Store, traces: Sequence[StoredTrace], evaluator_id: int | None = None
) -> list[list[StoredJudgment]]:
    """Like `read_judgments`, but for several traces, with a single query. The result has one list per trace. If
    `evaluator_id` is given, only that evaluator's judgments are included."""
    statement = (
        select(JudgmentRow, EvaluatorRow)
        .join(EvaluatorRow, EvaluatorRow.id == JudgmentRow.evaluator_id)
        .where(JudgmentRow.trace_id.in_([trace.trace_id for trace in traces]))
        .order_by(EvaluatorRow.name, EvaluatorRow.id, JudgmentRow.mode)
    )
    if evaluator_id is not None:
        statement = statement.where(JudgmentRow.evaluator_id == evaluator_id)
    by_trace: defaultdict[int, list[tuple[JudgmentRow, EvaluatorRow]]] = defaultdict(list)
    with store.read() as session:
        for judgment, evaluator in session.execute(statement):
            by_trace[judgment.trace_id].append((judgment, evaluator))
    return [[_judgment(trace, *pair) for pair in by_trace[trace.trace_id]] for trace in traces]


def read_offline(store: Store, trace: StoredTrace, evaluator_id: int) -> StepScores | None:
    """Return the offline scores of an evaluator's judgment that stands, or None."""
    judgment = standing(read_many(store, [trace], evaluator_id)[0], Mode.OFFLINE)
    return None if judgment is None else judgment.offline


def _judgment(trace: StoredTrace, row: JudgmentRow, evaluator: EvaluatorRow) -> StoredJudgment:
    result = unpack(row.probabilities, row.mode, row.spread)
    stale = row.trace_digest != trace.digest
    if not stale and len(result) != len(trace.substeps):
        raise DamagedError(
            f"judgments.probabilities: {len(result)} rows, the trace {trace.id!r} has {len(trace.substeps)}."
        )
    return StoredJudgment(
        trace,
        Mode(row.mode),
        result,
        row.solution,
        row.rationale or "",
        None if row.spent is None else Usage(**row.spent),
        id=row.id,
        evaluator=StoredEvaluator.of(evaluator),
        stale=stale,
        created=row.created,
    )


def pack(result: StepScores | Hindsight) -> bytes:
    """Return the probabilities as little-endian float32. Raises `ValueError` if a value is not a probability."""
    probs = result.packed if isinstance(result, Hindsight) else result.probs
    if not are_probabilities(probs):
        raise ValueError("a value is not a probability")
    return probs.astype(_PACKED).tobytes()


def are_probabilities(values: Floats32) -> bool:
    # Also false for NaN.
    return bool(values.min() >= -_TOLERANCE and values.max() <= 1 + _TOLERANCE)


def unpack(data: bytes, mode: Mode | str, spread: bytes | None = None) -> StepScores | Hindsight:
    """Restore scores from the bytes that `pack` returned. `spread` holds the bytes of an ensemble's spread. Raises
    `DamagedError` if the bytes are not valid scores in this mode."""
    try:
        probs = _floats(data).reshape(-1, 3)
        spreads = None if spread is None else _floats(spread)
        kind = Hindsight.from_packed if mode == Mode.HINDSIGHT else StepScores
        result = kind(probs, spreads)
    except ValueError as error:
        raise DamagedError(f"judgments.probabilities: {error}.") from None
    if not len(probs) or not are_probabilities(probs):
        raise DamagedError("judgments.probabilities: a value is not a probability.")
    return result


def _floats(data: bytes) -> Floats32:
    return np.frombuffer(data, dtype=_PACKED).astype(np.float32)
