"""The judgments of a few traces as columns, read for frames."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sqlalchemy import select
from sqlalchemy.orm import Session

from stepsight.core.arrays import Bools, Floats32, Floats64, Ints
from stepsight.core.judgment import Mode
from stepsight.core.metrics.table import SILENT
from stepsight.core.trace import Label
from stepsight.storage.database.schema import JudgmentRow, TraceRow, TriangleRow
from stepsight.storage.database.store import read_columns
from stepsight.storage.database.stored_json import DamagedError
from stepsight.storage.judgments.columns import TraceGold, join_scores, read_gold_columns, starts


def read_gold_of(session: Session, trace_ids: Sequence[int]) -> tuple[TraceGold, tuple[Mapping[str, Any], ...]]:
    """Read the gold labels and the metadata of the given traces, in order. Deleted traces are skipped."""
    chosen = TraceRow.id.in_(trace_ids)
    gold = TraceGold(**read_gold_columns(session, chosen, trace_ids))
    metas: dict[int, Mapping[str, Any]] = dict(
        session.connection().execute(select(TraceRow.id, TraceRow.meta).where(chosen)).all()
    )
    return gold, tuple(metas[id] for id in gold.trace_ids.tolist())


@dataclass(frozen=True, eq=False)
class JudgmentRows:
    """The scores of `m` judgments, each online or offline, in the order of traces, evaluators and modes.

    `trace` and `evaluator` are indices, and `online` is True for online judgments; all three have shape (m,).
    `probs` has shape (sub-steps, 3), judgment by judgment, and so have `ends`: what the same evaluator's hindsight
    judgment of the trace says online and offline, NaN without one. `solution` is the judgment's score of the whole
    solution, or NaN. `spread` has shape (sub-steps,), NaN where a judgment has none. `rationale` is an index into
    `rationales`, or `SILENT`.
    """

    trace: Ints
    evaluator: Ints
    online: Bools
    probs: Floats32
    ends: tuple[Floats32, Floats32]
    solution: Floats64
    spread: Floats32
    rationale: Ints
    rationales: tuple[str, ...]


def read_rows(session: Session, gold: TraceGold, evaluator_ids: Sequence[int]) -> JudgmentRows:
    """Read the up-to-date online and offline judgments of the traces by the given evaluators. Raises `DamagedError`
    if the length of a judgment does not fit its trace, or if a value is not a probability."""
    row, hindsight = JudgmentRow, TriangleRow
    same = (hindsight.trace_id == row.trace_id) & (hindsight.evaluator_id == row.evaluator_id)
    columns = row.mode, row.scores, hindsight.online, hindsight.offline, row.solution, row.spread, row.rationale
    statement = (
        select(row.trace_id, row.evaluator_id, *columns)
        .join(TraceRow, TraceRow.id == row.trace_id)
        .outerjoin(hindsight, same & (hindsight.digest == TraceRow.digest))
        .where(row.trace_id.in_(gold.trace_ids.tolist()), row.evaluator_id.in_(evaluator_ids))
        .where(row.digest == TraceRow.digest)
    )
    trace_ids, evaluators, modes, *others = read_columns(session, statement)
    trace = gold.places(np.array(trace_ids, np.int64))
    places = {id: place for place, id in enumerate(evaluator_ids)}
    evaluator = np.array([places[id] for id in evaluators], np.int64)
    online = np.array([mode == Mode.ONLINE for mode in modes], np.bool_)
    order = np.lexsort((~online, evaluator, trace))
    scores, *ends, solutions, spreads, words = ([column[place] for place in order] for column in others)
    sizes = gold.sizes[trace[order]]
    probs = join_scores(scores, sizes)
    spread = np.full(len(probs), np.nan, np.float32)
    texts: dict[str, int] = {}
    for start, size, blob in zip(starts(sizes), sizes, spreads, strict=True):
        if blob is not None:
            if len(blob) != size * 4:
                raise DamagedError("judgments: the spreads do not match the steps of their trace.")
            spread[start : start + size] = np.frombuffer(blob, "<f4")
    return JudgmentRows(
        trace=trace[order],
        evaluator=evaluator[order],
        online=online[order],
        probs=probs,
        ends=(_join_some(ends[0], sizes), _join_some(ends[1], sizes)),
        # None becomes NaN.
        solution=np.array(solutions, np.float64),
        spread=spread,
        rationale=np.array([texts.setdefault(word, len(texts)) if word else SILENT for word in words], np.int64),
        rationales=tuple(texts),
    )


def _join_some(blobs: Sequence[bytes | None], sizes: Ints) -> Floats32:
    """Like `join_scores`, with NaN where there are no scores."""
    present = np.array([blob is not None for blob in blobs], np.bool_)
    joined = np.full((int(sizes.sum()), len(Label)), np.nan, np.float32)
    joined[np.repeat(present, sizes)] = join_scores([blob for blob in blobs if blob is not None], sizes[present])
    return joined
