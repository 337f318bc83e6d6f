"""The order of a campaign's traces, fixed when the campaign is created, and its hidden gold items."""

import math
import random
from collections.abc import Collection, Iterator, Sequence

from sqlalchemy import exists, func, select
from sqlalchemy.orm import Session

from stepsight.core.errors import UserError
from stepsight.core.trace import find_answer
from stepsight.storage.database.schema import DatasetRow, JudgmentRow, StepRow, TraceRow
from stepsight.storage.database.store import IN_PARTS
from stepsight.storage.labelling.plan import CampaignPlan, Ordering, Shows

ORDERED, RANDOM, GOLD = "ordered", "random", "gold"
"""The way an item of a campaign was chosen: see `ItemRow`."""

GALLERY = "gallery"
"""The dataset of the shipped traces."""

# Gold items beyond those that one person needs.
_SPARE = 10


Place = tuple[int, str]
"""A place of the queue: the id of its trace, and how that was chosen, `ORDERED`, `RANDOM` or `GOLD`."""


def arrange(ids: Sequence[int], plan: CampaignPlan) -> list[Place]:
    """Sort the traces `ids`, given in file order, by the plan's `ordering`."""
    if plan.ordering == Ordering.FILE:
        return [(id, ORDERED) for id in ids]
    return [(id, RANDOM) for id in random.Random(plan.seed).sample(ids, len(ids))]


def draw_gold(session: Session, plan: CampaignPlan, ids: Sequence[int]) -> list[int]:
    """Choose hidden gold items at random for a campaign of the traces `ids`. With a gold rate of 0 and no
    qualification, choose none.

    The number of gold items suffices for the qualification and for one person who labels the whole queue, with a
    few to spare. No gold item has the same text as a trace in the queue. If the campaign shows reference answers or
    scores and all of its traces have them, or none does, then so do all gold items, or none, so that annotators
    cannot recognise them. Raises `UserError` if there are too few suitable traces.
    """
    least = max(plan.qualification_items, int(plan.gold_rate > 0))
    if not least:
        return []
    rng = random.Random(f"gold {plan.seed}")
    of_dataset = select(TraceRow.id, TraceRow.text_digest).join(DatasetRow, DatasetRow.id == TraceRow.dataset_id)
    chosen = set(ids)
    rows = session.execute(of_dataset.where(DatasetRow.name == plan.dataset))
    used = {text for id, text in rows if id in chosen}
    most = plan.qualification_items + math.ceil(len(ids) * plan.gold_rate / (1 - plan.gold_rate)) + _SPARE
    sources = (plan.gold_dataset,) if plan.gold_dataset is not None else (plan.dataset, GALLERY)
    for name in sources:
        others = [id for id, text in _with_full_gold(session, name) if text not in used]
        for having in _groups_by_shown(session, plan):
            others = _keep_unremarkable(others, ids, having)
        if len(others) >= least:
            return rng.sample(others, min(most, len(others)))
    shortage = (
        f"fewer than {least} traces outside the campaign have" if least > 1 else "no trace outside the campaign has"
    )
    advice = "Draw a sample of the traces (--sample), name" if plan.gold_dataset is None else "Name"
    raise UserError(
        f"{' and '.join(sources)}: {shortage} gold for everything that is labelled.",
        f"{advice} another dataset for the gold items, or ask for none. They need answers and scores where"
        " the other items have them and the campaign shows them.",
    )


def _with_full_gold(session: Session, dataset: str) -> list[tuple[int, str]]:
    """Return (id, text digest) for each trace with gold labels on all steps up to and including the first error. If
    the trace has no error, all of its steps must have gold labels."""
    last = func.coalesce(TraceRow.first_error, TraceRow.n_steps)
    silent = exists().where(StepRow.trace_id == TraceRow.id, StepRow.position <= last, StepRow.valid.is_(None))
    complete = (
        select(TraceRow.id, TraceRow.text_digest)
        .join(DatasetRow, DatasetRow.id == TraceRow.dataset_id)
        .where(DatasetRow.name == dataset, TraceRow.has_gold, ~silent)
        .order_by(TraceRow.position)
    )
    return [(id, text) for id, text in session.execute(complete)]


def _groups_by_shown(session: Session, plan: CampaignPlan) -> Iterator[set[int]]:
    """Yield a set of trace ids for the reference answer and for the evaluator's scores, if the campaign shows them.
    The sets hold the traces with a reference answer and those with a judgment by the campaign's evaluator."""
    if plan.shows_answer:
        metas = session.execute(select(TraceRow.id, TraceRow.meta), execution_options=IN_PARTS)
        yield {id for id, meta in metas if find_answer(meta) is not None}
    if plan.shows == Shows.SCORES:
        judged = select(JudgmentRow.trace_id).join(TraceRow, TraceRow.id == JudgmentRow.trace_id)
        judged = judged.where(JudgmentRow.evaluator_id == plan.evaluator, JudgmentRow.digest == TraceRow.digest)
        yield set(session.scalars(judged.distinct()))


def _keep_unremarkable(others: Sequence[int], ids: Sequence[int], having: Collection[int]) -> list[int]:
    """Keep those of the traces `others` that do not stand out among the traces `ids` by being in `having`, or by
    not being in it.

    If all of `ids` are in `having`, only members are kept. If none of `ids` is, only non-members are kept.
    Otherwise, all are kept.
    """
    memberships = {id in having for id in ids}
    return [id for id in others if (id in having) in memberships]
