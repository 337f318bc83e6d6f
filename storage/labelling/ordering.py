"""The order of a campaign's traces, fixed when the campaign is created.

`file`: as in the dataset. `random`: at random. `disagreement`: by the difference between the evaluators' largest
and smallest solution validity, of the judgments that stand offline, or else online. `change`: by the largest
absolute retroactive change of one evaluator's hindsight judgment. Traces without enough judgments come last, in
file order.

Uncertain traces first is a biased sample, so with the last two a random share of the places is filled with traces
drawn at random; these are marked, and figures over them alone are unbiased.
"""

import math
import random
from collections.abc import Collection, Iterator, Mapping, Sequence

import numpy as np
from sqlalchemy import exists, func, select
from sqlalchemy.orm import Session

from stepsight.core.errors import UserError
from stepsight.core.judgment import Mode
from stepsight.core.trace import find_answer
from stepsight.storage.browse.verdict_columns import read_validities
from stepsight.storage.database.schema import DatasetRow, JudgedRow, JudgmentRow, StepRow, TraceRow
from stepsight.storage.database.store import IN_PARTS
from stepsight.storage.judgments.judgments import fresh_rows, stands
from stepsight.storage.labelling.plan import CampaignPlan, Ordering, Shows

ORDERED, RANDOM, GOLD = "ordered", "random", "gold"
"""The way an item of a campaign was chosen: see `ItemRow`."""

GALLERY = "gallery"
"""The dataset of the shipped traces."""

# Gold items beyond those that one person needs.
_SPARE = 10


def arrange(session: Session, dataset_id: int, ids: Sequence[int], plan: CampaignPlan) -> list[tuple[int, str]]:
    """The traces `ids`, given in file order, in the order of the plan, each with the way it was placed: `ORDERED`
    or `RANDOM`. Raises `UserError` if no judgment determines the order."""
    rng = random.Random(plan.seed)
    if plan.ordering == Ordering.FILE:
        return [(id, ORDERED) for id in ids]
    if plan.ordering == Ordering.RANDOM:
        return [(id, RANDOM) for id in rng.sample(ids, len(ids))]
    if plan.ordering == Ordering.DISAGREEMENT:
        by = _read_spreads(session, dataset_id)
    else:
        assert plan.evaluator is not None
        by = _read_changes(session, dataset_id, plan.evaluator)
    if not by.keys() & set(ids):
        raise UserError(*_SILENT[plan.ordering])
    order = sorted(ids, key=lambda id: by.get(id, -1.0), reverse=True)
    return mix(order, plan.random_share, rng)


_SILENT = {
    Ordering.DISAGREEMENT: (
        "The order is by disagreement, but no trace was judged by two evaluators.",
        "Have them judged first, or choose another ordering.",
    ),
    Ordering.CHANGE: (
        "The order is by change, but the evaluator has judged none of the traces in hindsight mode.",
        "Have them judged first, or choose another ordering.",
    ),
}


def mix(order: Sequence[int], share: float, rng: random.Random) -> list[tuple[int, str]]:
    """Fill a share of the places with traces drawn at random; the others keep their order in the remaining
    places."""
    count = round(share * len(order))
    drawn = rng.sample(order, count)
    places, others = set(rng.sample(range(len(order)), count)), set(order) - set(drawn)
    by_chance, in_order = iter(drawn), (id for id in order if id in others)
    return [
        (next(by_chance), RANDOM) if place in places else (next(in_order), ORDERED) for place in range(len(order))
    ]


def _read_spreads(session: Session, dataset_id: int) -> Mapping[int, float]:
    """By trace, the largest solution validity minus the smallest, if several evaluators give one."""
    judged = session.scalars(select(JudgedRow.evaluator_id).where(JudgedRow.dataset_id == dataset_id)).all()
    if len(judged) < 2:
        return {}
    trace_ids, validities = read_validities(session, dataset_id, judged)
    several = np.count_nonzero(~np.isnan(validities), axis=0) > 1
    some = validities[:, several].astype(np.float64)
    spreads = np.nanmax(some, axis=0) - np.nanmin(some, axis=0)
    return dict(zip(trace_ids[several].tolist(), spreads.tolist(), strict=True))


def _read_changes(session: Session, dataset_id: int, evaluator_id: int) -> Mapping[int, float]:
    row = JudgmentRow
    changes = select(row.trace_id, row.retroactive).join(TraceRow, TraceRow.id == row.trace_id)
    changes = changes.where(row.evaluator_id == evaluator_id, row.dataset_id == dataset_id, stands(Mode.HINDSIGHT))
    return {trace_id: change for trace_id, change in session.execute(changes) if change is not None}


def draw_gold(session: Session, plan: CampaignPlan, ids: Sequence[int]) -> list[int]:
    """Traces for the gold items of a campaign of the traces `ids`, in random order; [] at rate 0.

    As many as one person who labels the whole queue needs, and a few more. None has the text of a trace of the
    queue, and they have a reference answer and scores, if those are shown, just as the traces do: otherwise
    annotators could tell them apart. Raises `UserError` if there is none.
    """
    if not plan.gold_rate:
        return []
    rng = random.Random(f"gold {plan.seed}")
    taken = _texts(session, plan.dataset, ids)
    most = math.ceil(len(ids) * plan.gold_rate / (1 - plan.gold_rate)) + _SPARE
    sources = (plan.gold_dataset,) if plan.gold_dataset is not None else (plan.dataset, GALLERY)
    for name in sources:
        others = [id for id, text in _with_full_gold(session, name) if text not in taken]
        for having in _shown_beside(session, plan):
            others = _alike(others, ids, having)
        if others:
            return rng.sample(others, min(most, len(others)))
    raise UserError(
        f"{' and '.join(sources)}: no trace outside the campaign has gold for all that is labelled.",
        "Name another dataset for the gold items, or set their rate to 0. They need an answer and scores where the"
        " others have those and the campaign shows them.",
    )


def _texts(session: Session, dataset: str, ids: Sequence[int]) -> set[str]:
    """The texts of these traces of a dataset."""
    chosen = set(ids)
    texts = select(TraceRow.id, TraceRow.text_digest).join(DatasetRow, DatasetRow.id == TraceRow.dataset_id)
    return {text for id, text in session.execute(texts.where(DatasetRow.name == dataset)) if id in chosen}


def _with_full_gold(session: Session, dataset: str) -> list[tuple[int, str]]:
    """The traces whose gold gives the validity of every step up to the first error, or of every step; each with its
    text."""
    last = func.coalesce(TraceRow.first_error, TraceRow.n_steps)
    silent = exists().where(StepRow.trace_id == TraceRow.id, StepRow.position <= last, StepRow.valid.is_(None))
    complete = (
        select(TraceRow.id, TraceRow.text_digest)
        .join(DatasetRow, DatasetRow.id == TraceRow.dataset_id)
        .where(DatasetRow.name == dataset, TraceRow.has_gold, ~silent)
        .order_by(TraceRow.position)
    )
    return [(id, text) for id, text in session.execute(complete)]


def _shown_beside(session: Session, plan: CampaignPlan) -> Iterator[set[int]]:
    """For each kind of information shown, the traces that have it: a reference answer, a standing judgment."""
    if plan.shows_answer:
        metas = session.execute(select(TraceRow.id, TraceRow.meta), execution_options=IN_PARTS)
        yield {id for id, meta in metas if find_answer(meta) is not None}
    if plan.shows == Shows.SCORES:
        judged = select(JudgmentRow.trace_id).join(TraceRow, TraceRow.id == JudgmentRow.trace_id)
        judged = judged.where(JudgmentRow.evaluator_id == plan.evaluator, fresh_rows())
        yield set(session.scalars(judged.distinct()))


def _alike(others: Sequence[int], ids: Sequence[int], having: Collection[int]) -> list[int]:
    """Those of `others` that are in `having` if all of `ids` are, and outside it if none of them is."""
    met = {id in having for id in ids}
    return [id for id in others if (id in having) in met]
