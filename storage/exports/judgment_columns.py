"""Judgments as columns of numbers: a row per trace, evaluator, mode and step, or sub-step, some traces at a time.

What `frames` makes tables of. No row is ever an object of Python: what was stored of some hundred judgments is one
array, and the rows that a mode shows of it are picked by their places.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Integer, Select, case, func, select
from sqlalchemy.orm import Session

from stepsight.core.arrays import Bools, Floats32, Ints
from stepsight.core.judgment import Mode
from stepsight.core.label import LABEL_NAMES
from stepsight.core.metrics.table import SILENT
from stepsight.core.scores import Outputs
from stepsight.storage.database.schema import JudgmentRow, StepRow, SubstepRow, TraceRow
from stepsight.storage.database.store import Store
from stepsight.storage.database.stored_json import DamagedError
from stepsight.storage.judgments.evaluators import StoredEvaluator, find_thresholds, list_evaluators
from stepsight.storage.judgments.judgments import are_probabilities

MODES = (Mode.ONLINE, Mode.OFFLINE)
GOLD = (*LABEL_NAMES, "valid")
"""What the gold can say of a step: its label, or `valid` where the benchmark says that alone."""
VERDICTS = ("valid", "redundant", "not valid")
COLUMN_TYPES: dict[str, type[np.generic]] = {
    **dict.fromkeys(("trace", "step", "substep", "rationale"), np.int32),
    **dict.fromkeys(("gold", "mode", "verdict"), np.int8),
    "evaluator": np.int16,
    **dict.fromkeys((*LABEL_NAMES, "validity", "redundancy", "change", "spread"), np.float32),
    "solution": np.float64,
}
# Traces at once, fewer where many have judged them; an IN of so many keys is allowed by every database.
_MOST, _LEAST, _JUDGMENTS = 2_000, 100, 10_000
_STORED = (
    JudgmentRow.trace_id, JudgmentRow.evaluator_id, JudgmentRow.mode, JudgmentRow.probabilities,
    JudgmentRow.solution, JudgmentRow.rationale, JudgmentRow.spread,
)  # fmt: skip
_STORED_MODES = [*MODES, Mode.HINDSIGHT]


@dataclass(frozen=True, eq=False)
class JudgmentColumns:
    """`n` rows of some traces. `traces` has their ids, `meta` the other fields of their sources, `rationales` the
    words of evaluators.

    `columns`, each of shape (n,) and of its type in `COLUMN_TYPES`: `trace` and `rationale`, places in these;
    `evaluator`, the place among those asked for; `mode`, `gold` and `verdict`, places in `MODES`, `GOLD` and
    `VERDICTS`; `step` and `substep`, from 1; all of them `SILENT` where there is none. `neg`, `neu`, `pos`,
    `validity`, `redundancy`, `change` (offline minus online validity), `spread` and `solution` are NaN where
    nothing was said.
    """

    traces: tuple[str, ...]
    meta: tuple[Mapping[str, Any], ...]
    rationales: tuple[str, ...]
    columns: dict[str, NDArray[Any]]


def read_judgment_columns(
    store: Store, trace_ids: Sequence[int], evaluators: Sequence[StoredEvaluator], *, substeps: bool
) -> Iterator[JudgmentColumns]:
    """What these evaluators said of these traces, in this order and in theirs, online before offline.

    Without `substeps` a step is its least valid sub-step, with the greatest redundancy of them, as in
    `core.metrics.table`. A judgment of an earlier version of its trace has no rows. A hindsight judgment has rows
    of both modes, and stands for the evaluator's others. One of the whole solution alone has a single row, without
    a step. No connection is held from one part to the next.
    """
    shown = _Evaluators.of(store, evaluators)
    size = max(_LEAST, min(_MOST, _JUDGMENTS // max(1, len(evaluators))))
    for start in range(0, len(trace_ids), size):
        with store.read() as session:
            traces = _read_traces(session, trace_ids[start : start + size])
            judgments = _read_judgments(session, traces, shown) if traces.names else None
        if judgments is not None:
            yield _columns(traces, judgments, shown, substeps=substeps)


def chosen_evaluators(store: Store, ids: Collection[int] | None) -> list[StoredEvaluator]:
    """The evaluators with these database ids by name, None: all."""
    return [one for one in list_evaluators(store) if ids is None or one.id in ids]


@dataclass(frozen=True, eq=False)
class _Evaluators:
    """`places` by database id; the others of shape (evaluators,)."""

    places: dict[int, int]
    has_steps: Bools
    in_words: Bools
    three_way: Bools
    validity: Floats32
    redundancy: Floats32

    @classmethod
    def of(cls, store: Store, evaluators: Sequence[StoredEvaluator]) -> "_Evaluators":
        thresholds = [find_thresholds(store, one.id) for one in evaluators]
        return cls(
            places={one.id: place for place, one in enumerate(evaluators)},
            has_steps=np.array([one.outputs.has_steps for one in evaluators], np.bool_),
            in_words=np.array([one.outputs.in_words for one in evaluators], np.bool_),
            three_way=np.array([one.outputs == Outputs.THREE_WAY for one in evaluators], np.bool_),
            validity=np.array([one.validity for one in thresholds], np.float32),
            redundancy=np.array([one.redundancy for one in thresholds], np.float32),
        )


@dataclass(frozen=True, eq=False)
class _Traces:
    """`t` traces in the order asked for, of shape (t,) but for `gold` and `substeps`, which are of their steps."""

    ids: Ints
    names: tuple[str, ...]
    meta: tuple[Mapping[str, Any], ...]
    counts: Ints
    gold: NDArray[np.int8]
    substeps: Ints

    @property
    def sizes(self) -> Ints:
        """How many sub-steps each trace has."""
        sizes: Ints = np.add.reduceat(self.substeps, _starts(self.counts))
        return sizes


@dataclass(frozen=True, eq=False)
class _Judgments:
    """`m` judgments that count, of shape (m,): places of traces and evaluators; whether one is of hindsight;
    `mode`, the place in `MODES` of one that is not; the stored rows of all, (rows, 3), and where each begins;
    `solution`; `spread` of all sub-steps, and where it begins, `SILENT` for none; `rationale`, a place in
    `rationales`."""

    trace: Ints
    evaluator: Ints
    hindsight: Bools
    mode: Ints
    probs: Floats32
    start: Ints
    solution: NDArray[np.float64]
    spread: Floats32
    spread_start: Ints
    rationale: Ints
    rationales: tuple[str, ...]


def _starts(counts: Ints) -> Ints:
    starts: Ints = np.cumsum(counts) - counts
    return starts


def _within(counts: Ints) -> Ints:
    """0 … count - 1 of each, one after the other."""
    return np.arange(int(counts.sum())) - np.repeat(_starts(counts), counts)


def _read_traces(session: Session, trace_ids: Sequence[int]) -> _Traces:
    columns = (TraceRow.id, TraceRow.external_id, TraceRow.meta, TraceRow.n_steps)
    statement = select(*columns, TraceRow.n_substeps).where(TraceRow.id.in_(trace_ids))
    by_id = {row.id: row for row in session.connection().execute(statement).all()}
    rows = [by_id[id] for id in trace_ids if id in by_id]
    counts = np.array([row.n_steps for row in rows], np.int64)
    # Read in the order of the keys, which is that of the rows in the database, and put in the order asked for.
    ids = np.array([row.id for row in rows], np.int64)
    order = np.argsort(ids, kind="stable")
    gold, substeps = _read_steps(session, ids[order], counts[order], sum(row.n_substeps for row in rows))
    first = np.empty(len(ids), np.int64)
    first[order] = _starts(counts[order])
    places = np.repeat(first, counts) + _within(counts)
    return _Traces(
        ids=ids,
        names=tuple(row.external_id for row in rows),
        meta=tuple(row.meta for row in rows),
        counts=counts,
        gold=gold[places],
        substeps=substeps[places],
    )


def _read_steps(session: Session, ids: Ints, counts: Ints, n_substeps: int) -> tuple[NDArray[np.int8], Ints]:
    """Of the steps of traces, in the order of these ascending ids: the gold, and how many sub-steps each has."""
    total = int(counts.sum())
    wanted = ids.tolist()
    code = case(
        (StepRow.label.is_not(None), StepRow.label), (StepRow.valid.is_(True), GOLD.index("valid")), else_=SILENT
    )
    steps = select(code.cast(Integer)).where(StepRow.trace_id.in_(wanted))
    gold = _numbers(session, steps.order_by(StepRow.trace_id, StepRow.position)).astype(np.int8)
    substeps = np.ones(total, np.int64)
    if n_substeps != total:
        sizes = select(func.count()).where(SubstepRow.trace_id.in_(wanted))
        sizes = sizes.group_by(SubstepRow.trace_id, SubstepRow.step).order_by(SubstepRow.trace_id, SubstepRow.step)
        substeps = _numbers(session, sizes)
    if len(gold) != total or len(substeps) != total:
        raise DamagedError(f"steps: {len(gold):,} of {len(wanted):,} traces, they should have {total:,}.")
    return gold, substeps


def _numbers(session: Session, statement: Select[Any]) -> Ints:
    """The only column of all rows."""
    return np.array(session.connection().scalars(statement).all(), np.int64)


def _read_judgments(session: Session, traces: _Traces, shown: _Evaluators) -> _Judgments:
    statement = (
        select(*_STORED)
        .join(TraceRow, (TraceRow.id == JudgmentRow.trace_id) & (TraceRow.digest == JudgmentRow.trace_digest))
        .where(TraceRow.id.in_(traces.ids.tolist()), JudgmentRow.evaluator_id.in_(list(shown.places)))
    )
    # Not through the session: what that does with each row would take most of the time.
    rows = session.connection().execute(statement).all()
    stored = list(zip(*rows, strict=True)) if rows else [()] * len(_STORED)
    trace_ids, evaluator_ids, modes, blobs, solutions, words, spread_blobs = stored
    by_id = np.argsort(traces.ids)
    trace = by_id[np.searchsorted(traces.ids, np.array(trace_ids, np.int64), sorter=by_id)]
    evaluator = np.array([shown.places[id] for id in evaluator_ids], np.int64)
    mode = np.array(list(map(_STORED_MODES.index, modes)), np.int64)
    hindsight = mode == _STORED_MODES.index(Mode.HINDSIGHT)
    # One of hindsight stands for the evaluator's others.
    pair = trace * len(shown.places) + evaluator
    kept = hindsight | ~np.isin(pair, pair[hindsight])

    n = traces.sizes[trace]
    probs, sizes = _joined(blobs)
    spread, spreads = _joined([blob or b"" for blob in spread_blobs])
    has_spread = spreads > 0
    expected = np.where(hindsight, n * (n + 1) // 2, n) * len(LABEL_NAMES)
    if (sizes != expected).any() or (spreads[has_spread] != n[has_spread]).any():
        raise DamagedError("judgments.probabilities: not as many as their trace has steps.")
    if len(probs) and not are_probabilities(probs):
        raise DamagedError("judgments.probabilities: a value is no probability.")
    rationales: dict[str, int] = {}
    rationale = [rationales.setdefault(text, len(rationales)) if text else SILENT for text in words]
    return _Judgments(
        trace=trace[kept],
        evaluator=evaluator[kept],
        hindsight=hindsight[kept],
        mode=mode[kept],
        probs=probs.reshape(-1, len(LABEL_NAMES)),
        start=(_starts(sizes) // len(LABEL_NAMES))[kept],
        # None becomes NaN.
        solution=np.array(solutions, np.float64)[kept],
        spread=spread,
        spread_start=np.where(has_spread, _starts(spreads), SILENT)[kept],
        rationale=np.array(rationale, np.int64)[kept],
        rationales=tuple(rationales),
    )


def _joined(stored: Sequence[bytes]) -> tuple[Floats32, Ints]:
    """The numbers of all, one after the other, and how many each has."""
    sizes = np.fromiter(map(len, stored), np.int64, len(stored))
    if (sizes % 4).any():
        raise DamagedError("judgments.probabilities: a number is cut off.")
    return np.frombuffer(b"".join(stored), "<f4").astype(np.float32, copy=False), sizes // 4


def _columns(traces: _Traces, judgments: _Judgments, shown: _Evaluators, *, substeps: bool) -> JudgmentColumns:
    entry, mode = _entries(judgments)
    trace, evaluator = judgments.trace[entry], judgments.evaluator[entry]
    sizes = np.where(shown.has_steps[evaluator], traces.sizes[trace], 1)
    rows, i = np.repeat(np.arange(len(entry)), sizes), _within(sizes)
    of_step = shown.has_steps[evaluator][rows]

    # The place of each row's sub-step among those of all traces, and of its step among all steps.
    own = np.where(of_step, _starts(traces.sizes)[trace[rows]] + i, 0)
    owners = np.repeat(np.arange(len(traces.substeps)), traces.substeps)
    step = owners[own]
    place = np.where(of_step, own - _starts(traces.substeps)[step], 0)
    end = i - place + traces.substeps[step] - 1
    stored = _stored_places(judgments.hindsight[entry][rows], mode[rows], i, end, sizes[rows] - 1)
    probs = judgments.probs[judgments.start[entry][rows] + stored]
    spread = _spreads(judgments, entry[rows], i)
    silent = ~probs.any(axis=1)
    validity, redundancy = probs[:, 1] + probs[:, 2], probs[:, 1]
    if not substeps and len(owners) != len(traces.substeps):
        # The row of the least valid sub-step, the first of equal ones, stands for its step.
        first_of = np.flatnonzero(place == 0)
        group = np.repeat(np.arange(len(first_of)), np.diff(np.append(first_of, len(rows))))
        least = np.lexsort((np.arange(len(rows)), validity, group))[first_of]
        redundancy = np.maximum.reduceat(redundancy, first_of)
        silent = np.logical_or.reduceat(silent, first_of)
        rows, step, of_step = rows[first_of], step[first_of], of_step[first_of]
        probs, validity, spread = probs[least], validity[least], spread[least]
        place = np.zeros(len(rows), np.int64)

    who = evaluator[rows]
    said = ~silent & of_step
    in_numbers, in_three = said & ~shown.in_words[who], said & shown.three_way[who]
    verdict = np.where(in_three & (redundancy >= shown.redundancy[who]), 1, 0)
    verdict = np.where(validity < shown.validity[who], 2, verdict)
    shown_validity = np.where(in_numbers, validity, np.float32(np.nan))
    columns = {
        "trace": trace[rows],
        "step": np.where(of_step, step - _starts(traces.counts)[trace[rows]] + 1, SILENT),
        "substep": np.where(of_step, place + 1, SILENT),
        "gold": np.where(of_step, traces.gold[step], SILENT),
        "evaluator": who,
        "mode": mode[rows],
        **{name: np.where(in_three, probs[:, at], np.nan) for at, name in enumerate(LABEL_NAMES)},
        "validity": shown_validity,
        "redundancy": np.where(in_three, redundancy, np.nan),
        "change": _changes(judgments.hindsight[entry][rows], mode[rows], shown_validity),
        "spread": np.where(in_numbers, spread, np.nan),
        "verdict": np.where(said, verdict, SILENT),
        "solution": judgments.solution[entry][rows],
        "rationale": judgments.rationale[entry][rows],
    }
    columns = {name: columns[name].astype(kind) for name, kind in COLUMN_TYPES.items()}
    return JudgmentColumns(traces.names, traces.meta, judgments.rationales, columns)


def _entries(judgments: _Judgments) -> tuple[Ints, Ints]:
    """What is shown, in order: each a judgment, by its place, and the place of a mode. One of hindsight is there
    with both."""
    both = np.flatnonzero(judgments.hindsight)
    entry = np.concatenate([np.flatnonzero(~judgments.hindsight), both, both])
    mode = np.concatenate([judgments.mode[~judgments.hindsight], np.zeros_like(both), np.ones_like(both)])
    order = np.lexsort((mode, judgments.evaluator[entry], judgments.trace[entry]))
    return entry[order], mode[order]


def _stored_places(hindsight: Bools, mode: Ints, i: Ints, end: Ints, last: Ints) -> Ints:
    """The place of each row among the stored ones of its judgment. Of a triangle, sub-step `i` is judged online in
    the row of the last sub-step of its step, `end`, and offline in the `last` one."""
    row = np.where(mode == MODES.index(Mode.ONLINE), end, last)
    return np.where(hindsight, row * (row + 1) // 2, 0) + i


def _spreads(judgments: _Judgments, judgment: Ints, i: Ints) -> Floats32:
    """The spread of sub-step `i` of each of these judgments, NaN where it has none."""
    if not len(judgments.spread):
        return np.full(len(i), np.nan, np.float32)
    start = judgments.spread_start[judgment]
    there = start != SILENT
    spread: Floats32 = np.where(there, judgments.spread[np.where(there, start + i, 0)], np.float32(np.nan))
    return spread


def _changes(hindsight: Bools, mode: Ints, validity: Floats32) -> Floats32:
    """Offline minus online validity; the rows of both modes of an entry follow each other."""
    change = np.full(len(mode), np.nan, np.float32)
    online, offline = np.flatnonzero(hindsight & (mode == 0)), np.flatnonzero(hindsight & (mode == 1))
    change[online] = change[offline] = validity[offline] - validity[online]
    return change
