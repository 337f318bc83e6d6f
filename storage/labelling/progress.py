"""The progress of a campaign and of its annotators."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import case, func, select
from sqlalchemy.orm import Session

from stepsight.core.trace import Trace
from stepsight.storage.database.labelling_schema import ItemRow, SlotRow
from stepsight.storage.database.schema import UserRow
from stepsight.storage.database.store import Store
from stepsight.storage.labelling.annotation import UNSURE, fold, read_events
from stepsight.storage.labelling.campaigns import Campaign, load_campaign
from stepsight.storage.labelling.plan import GOLD
from stepsight.storage.labelling.record import FREE, LEASED, SKIPPED, SUBMITTED
from stepsight.storage.traces.queries import load_traces, traces


@dataclass(frozen=True)
class CampaignProgress:
    """The progress of a campaign.

    `submitted` is the number of submitted slots, out of `slots`, and `items_done` the number of completed items,
    out of `items`. These exclude hidden gold items. `mine` is the number of traces that one person has submitted.
    It includes hidden gold items, because annotators would notice if they were not counted.
    """

    submitted: int
    slots: int
    mine: int
    items_done: int
    items: int


@dataclass(frozen=True)
class AnnotatorProgress:
    """The numbers of traces that an annotator has submitted, currently holds, and has skipped. Gold items are
    included. `qualification` is the result of the gold items that they labelled first, in words, or None if the
    campaign begins with none."""

    user: str
    submitted: int
    leased: int
    skipped: int
    qualification: str | None = None


def campaign_progress(store: Store, campaign_id: int, user_id: int | None = None) -> CampaignProgress:
    """Return the progress of a campaign, including the number of traces submitted by the user `user_id`.

    Raises `NotFoundError` if the campaign does not exist.
    """
    with store.read() as session:
        campaign = load_campaign(session, campaign_id)
        counts = _counts(session, campaign_id)
        under_way = select(func.count(SlotRow.item_id.distinct())).join(ItemRow, ItemRow.id == SlotRow.item_id)
        under_way = under_way.where(
            SlotRow.campaign_id == campaign_id, SlotRow.state.in_((FREE, LEASED)), ItemRow.chosen != GOLD
        )
        own = (SlotRow.campaign_id == campaign_id, SlotRow.user_id == user_id, SlotRow.state == SUBMITTED)
        return CampaignProgress(
            submitted=counts.get(SUBMITTED, 0),
            slots=sum(count for state, count in counts.items() if state != SKIPPED),
            mine=session.scalar(select(func.count()).where(*own)) or 0,
            items_done=campaign.items - (session.scalar(under_way) or 0),
            items=campaign.items,
        )


def annotator_progress(store: Store, campaign_id: int) -> list[AnnotatorProgress]:
    """Return the progress of everybody who was ever given a trace of a campaign, sorted by name."""
    states = [func.sum(case((SlotRow.state == state, 1), else_=0)) for state in (SUBMITTED, LEASED, SKIPPED)]
    rows = (
        select(UserRow.id, UserRow.name, *states)
        .join(SlotRow, SlotRow.user_id == UserRow.id)
        .where(SlotRow.campaign_id == campaign_id)
        .group_by(UserRow.id, UserRow.name)
        .order_by(UserRow.name)
    )
    with store.read() as session:
        campaign = load_campaign(session, campaign_id)
        return [
            AnnotatorProgress(name, submitted, leased, skipped, _qualification(session, campaign, user_id))
            for user_id, name, submitted, leased, skipped in session.execute(rows).all()
        ]


def _counts(session: Session, campaign_id: int) -> dict[str, int]:
    """Return the number of slots of the queue in each state."""
    counts = (
        select(SlotRow.state, func.count())
        .join(ItemRow, ItemRow.id == SlotRow.item_id)
        .where(SlotRow.campaign_id == campaign_id, ItemRow.chosen != GOLD)
        .group_by(SlotRow.state)
    )
    return dict(session.execute(counts).all())


def _qualification(session: Session, campaign: Campaign, user_id: int) -> str | None:
    """Return how many of a person's first gold items are done and right, in words. Only the first submission of
    each counts, so that nobody learns from what is shown afterwards, and a skipped item is not right."""
    items = campaign.qualification_items
    if not items:
        return None
    own = (SlotRow.campaign_id == campaign.id, SlotRow.user_id == user_id, ItemRow.chosen == GOLD)
    slots = select(SlotRow.state, SlotRow.item_id, ItemRow.trace_id).join(ItemRow, ItemRow.id == SlotRow.item_id)
    rows = session.execute(slots.where(*own).order_by(ItemRow.place).limit(items)).all()
    by_id = {trace.trace_id: trace for trace in load_traces(session, traces([row.trace_id for row in rows]))}
    finished = right = 0
    for state, item_id, trace_id in rows:
        log, trace = read_events(session, item_id, user_id), by_id[trace_id]
        end = next((place for place, event in enumerate(log, start=1) if event.kind == "submit"), 0)
        finished += end > 0 or state == SKIPPED
        if end:
            annotation = fold(log[:end], len(trace.steps), stepwise=campaign.stepwise)
            right += _is_right(annotation.labels, trace)
    return f"{finished} of {items} done" if finished < items else f"{right} of {items} right"


def _is_right(labels: Sequence[str | None], trace: Trace) -> bool:
    """True if every step up to the first wrong one, or every step if there is none, is rightly labelled as valid or
    wrong. A step that is `unsure` or has no label is not."""
    last = len(trace.steps) if trace.first_error is None else trace.first_error + 1
    return all(
        label not in (None, UNSURE) and (label != "neg") == step.valid
        for label, step in zip(labels[:last], trace.steps, strict=False)
    )
