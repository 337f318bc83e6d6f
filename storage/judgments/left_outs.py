"""Storing the scores that evaluators give to a trace when one of its steps is left out.

Such scores show which steps of a solution depend on which.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

import numpy as np
from sqlalchemy import ColumnElement, exists, select
from sqlalchemy.orm import Session

from stepsight.core.errors import UserError
from stepsight.core.evidence import Dependence, LeaveOneOut
from stepsight.core.judgment import Mode
from stepsight.core.metrics.evidence import LabelledFall, NeededSteps, measure_falls
from stepsight.core.scores import StepScores
from stepsight.storage.database.schema import EvaluatorRow, JudgmentRow, LeftOutScoresRow, TraceRow, now
from stepsight.storage.database.store import Store, insert_or_update
from stepsight.storage.database.stored_json import DamagedError
from stepsight.storage.importers.benchmarks.strict_prmbench import INERT, NECESSARY
from stepsight.storage.traces.queries import Dataset, StoredTrace, iterate_traces

_FLOATS, _PLACES = np.dtype("<f4"), np.dtype("<i4")
# Scores that differ by less are the same.
_SAME = 1e-4
# The number of traces read at a time.
_PART = 200
_KEY = ("evaluator_id", "trace_id")
_CONTENT = ("trace_digest", "whole", "steps", "probabilities")


def save_left_out(session: Session, evaluator_id: int, trace: StoredTrace, scores: LeaveOneOut) -> None:
    """Store scores with steps left out, replacing earlier scores of the same trace by the same evaluator. Raises
    `ValueError` unless the scores with nothing left out have one row per sub-step of the trace."""
    if len(scores) != len(trace.substeps):
        raise ValueError(f"{len(scores)} rows for {len(trace.substeps)} sub-steps of trace {trace.id!r}")
    rows = scores.rows()
    packed = np.array(list(rows.values()), _FLOATS)
    values = {
        "evaluator_id": evaluator_id,
        "trace_id": trace.trace_id,
        "dataset_id": trace.dataset_id,
        "trace_digest": trace.digest,
        "whole": scores.whole.probs.astype(_FLOATS).tobytes(),
        "steps": np.array(list(rows), _PLACES).tobytes(),
        "probabilities": packed.tobytes(),
        "created": now(),
    }
    insert_or_update(session, LeftOutScoresRow, [values], key=_KEY, unless_same=_CONTENT)


def add_left_out(session: Session, evaluator_id: int, trace: StoredTrace, scores: LeaveOneOut) -> None:
    """Add scores for further left-out sub-steps to those that the evaluator has given the trace. Raises `UserError`
    if they contradict the evaluator's stored scores for the same sub-step or with nothing left out."""
    stored = _current_scores(session.get(LeftOutScoresRow, (evaluator_id, trace.trace_id)), trace)
    row = JudgmentRow
    judged = session.scalar(
        select(row.scores).where(
            *(row.trace_id == trace.trace_id, row.evaluator_id == evaluator_id, row.mode == Mode.OFFLINE.value),
            *(row.digest == trace.digest, ~row.derived),
        )
    )
    pairs = [] if judged is None else [(np.frombuffer(judged, _FLOATS).reshape(-1, 3), scores.whole.probs)]
    earlier, added = {} if stored is None else stored.rows(), scores.rows()
    pairs += [(earlier[i], added[i]) for i in earlier.keys() & added.keys()]
    if not all(np.allclose(before, after, atol=_SAME) for before, after in pairs):
        raise UserError(f"trace {trace.id!r} already has different scores.", "Give another name (--evaluator).")
    if stored is not None:
        scores = LeaveOneOut.of(scores.whole, dict(sorted((earlier | added).items())))
    save_left_out(session, evaluator_id, trace, scores)


def find_left_out(store: Store, fingerprint: str, trace: StoredTrace) -> LeaveOneOut | None:
    """Return an evaluator's up-to-date scores of a trace with steps left out, or None if there are none."""
    rows = select(LeftOutScoresRow).join(EvaluatorRow, EvaluatorRow.id == LeftOutScoresRow.evaluator_id)
    of_trace = LeftOutScoresRow.trace_id == trace.trace_id
    with store.read() as session:
        row = session.scalars(rows.where(EvaluatorRow.fingerprint == fingerprint, of_trace)).one_or_none()
        return _current_scores(row, trace)


def iterate_left_out(store: Store, dataset_id: int, evaluator_id: int) -> Iterator[tuple[StoredTrace, LeaveOneOut]]:
    """Yield (trace, scores) for each trace of a dataset that an evaluator has scored with steps left out, in file
    order. Traces that have changed since they were scored are skipped."""
    rest = iterate_traces(store, dataset_id, _scores_exist(evaluator_id))
    of_evaluator = LeftOutScoresRow.evaluator_id == evaluator_id
    while part := list(islice(rest, _PART)):
        of_part = LeftOutScoresRow.trace_id.in_([trace.trace_id for trace in part])
        with store.read() as session:
            rows = {
                row.trace_id: row for row in session.scalars(select(LeftOutScoresRow).where(of_evaluator, of_part))
            }
            scores = [_current_scores(rows.get(trace.trace_id), trace) for trace in part]
        yield from ((trace, left_out) for trace, left_out in zip(part, scores, strict=True) if left_out is not None)


def evaluators_with_left_out(store: Store, trace_id: int) -> set[int]:
    """Return the ids of the evaluators that scored a trace with each step deleted."""
    with store.read() as session:
        return set(session.scalars(select(LeftOutScoresRow.evaluator_id).where(*_trace_conditions(trace_id))))


def measure_needed(store: Store, dataset: Dataset, evaluators: Sequence[tuple[str, int]]) -> dict[str, NeededSteps]:
    """Measure how well the largest falls in validity distinguish needed steps of a dataset from other steps.

    Evaluators are given by name and database id. Returns the result for each evaluator, by name. Evaluators without
    scores of both kinds of steps are left out.
    """
    of_dataset = LeftOutScoresRow.dataset_id == dataset.id
    with store.read() as session:
        scored = set(session.scalars(select(LeftOutScoresRow.evaluator_id).where(of_dataset).distinct()))
    measured = {
        name: measure_falls(_labelled_falls(iterate_left_out(store, dataset.id, evaluator_id)))
        for name, evaluator_id in evaluators
        if evaluator_id in scored
    }
    return {name: result for name, result in measured.items() if result.auc.exists}


def _labelled_falls(scores: Iterable[tuple[StoredTrace, LeaveOneOut]]) -> Iterator[LabelledFall]:
    for trace, left_out in scores:
        needs = _necessities(trace)
        falls = Dependence(left_out, 0.5).largest_falls() if needs else ()
        for step in left_out.known if needs else ():
            if step in needs:
                yield trace.problem, float(falls[step]), needs[step]


def _necessities(trace: StoredTrace) -> dict[int, bool]:
    """Return whether each sub-step of a trace is necessary, keyed by its index. Sub-steps with no known answer are
    omitted.

    In StrictPRMBench the answer is in the metadata. In other datasets, a step is necessary if its gold label is
    pos, and unnecessary if it is neu.
    """
    owners = trace.owners.tolist()
    edits = {name: trace.meta.get(name) for name in (NECESSARY, INERT)}
    # In the metadata of other kinds of files, anything may be under these names.
    if any(isinstance(steps, list) for steps in edits.values()):
        listed = [(step, name) for name, steps in edits.items() if isinstance(steps, list) for step in steps]
        of_step = {step - 1: name == NECESSARY for step, name in listed if isinstance(step, int)}
    else:
        golds = enumerate(step.gold for step in trace.steps)
        of_step = {place: gold == "pos" for place, gold in golds if gold in ("neu", "pos")}
    return {substep: of_step[owner] for substep, owner in enumerate(owners) if owner in of_step}


def left_outs_of(store: Store, trace: StoredTrace) -> dict[int, LeaveOneOut]:
    """Return the up-to-date scores of a trace with steps left out, by the database id of the evaluator."""
    with store.read() as session:
        rows = session.scalars(select(LeftOutScoresRow).where(*_trace_conditions(trace.trace_id)))
        scores = {row.evaluator_id: _current_scores(row, trace) for row in rows}
    return {evaluator: left_out for evaluator, left_out in scores.items() if left_out is not None}


def _trace_conditions(trace_id: int) -> tuple[ColumnElement[bool], ...]:
    """Return SQL conditions that select the rows of `LeftOutScoresRow` for a trace in a form for which an index
    exists."""
    every = LeftOutScoresRow.evaluator_id.in_(select(EvaluatorRow.id))
    return every, LeftOutScoresRow.trace_id == trace_id


def _scores_exist(evaluator_id: int) -> ColumnElement[bool]:
    return exists().where(
        LeftOutScoresRow.trace_id == TraceRow.id,
        LeftOutScoresRow.evaluator_id == evaluator_id,
        LeftOutScoresRow.trace_digest == TraceRow.digest,
    )


def _current_scores(row: LeftOutScoresRow | None, trace: StoredTrace) -> LeaveOneOut | None:
    return _unpack(row) if row is not None and row.trace_digest == trace.digest else None


def _unpack(row: LeftOutScoresRow) -> LeaveOneOut:
    try:
        whole = StepScores(np.frombuffer(row.whole, _FLOATS).reshape(-1, 3))
        places = np.frombuffer(row.steps, _PLACES).tolist()
        probs = np.frombuffer(row.probabilities, _FLOATS).reshape(len(places), len(whole) - 1, 3)
        return LeaveOneOut.of(whole, dict(zip(places, probs, strict=True)))
    except (ValueError, IndexError) as error:
        raise DamagedError(f"left_out_scores.probabilities: {error}.") from None
