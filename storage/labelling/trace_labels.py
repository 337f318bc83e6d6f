"""What people said of one trace, campaign by campaign."""

from dataclasses import dataclass

from sqlalchemy import select

from storage.labelling.answers import Answer, read_answers
from storage.labelling.campaigns import Campaign, load_campaign
from storage.labelling.consensus import Consensus, agree
from storage.labelling.decisions import past_decisions
from storage.labelling.gold_items import GOLD
from storage.labelling.slots import SUBMITTED
from storage.labelling.tables import CampaignRow, ItemRow, SlotRow
from storage.people.users import User
from storage.store import Store


@dataclass(frozen=True)
class TraceLabels:
    """What the annotators of a campaign said of a trace: what they agree on, and every one's answer. `ahead`: the
    person who looks still has to label it, and is not to see that."""

    campaign: Campaign
    consensus: Consensus
    answers: tuple[Answer, ...]
    ahead: bool


def read_trace_labels(store: Store, trace_id: int, viewer: User | None) -> list[TraceLabels]:
    """Of a trace, for each campaign in which somebody labelled it, the newest first. Campaigns in which it is a
    hidden gold item are not among them. Answers of people who had seen what a campaign hides are not agreed on."""
    found = (
        select(ItemRow.id, ItemRow.campaign_id)
        .join(CampaignRow, CampaignRow.id == ItemRow.campaign_id)
        .where(ItemRow.trace_id == trace_id, ItemRow.chosen != GOLD)
        .order_by(CampaignRow.id.desc())
    )
    with store.read() as session:
        items = [
            (load_campaign(session, campaign), item, tuple(read_answers(session, campaign, item)))
            for item, campaign in session.execute(found)
        ]
    ahead = _held(store, trace_id, viewer)
    return [_labels(store, *one, ahead) for one in items if one[2]]


def _labels(
    store: Store, campaign: Campaign, item_id: int, answers: tuple[Answer, ...], ahead: bool
) -> TraceLabels:
    decided = {decision.step: decision for decision in past_decisions(store, item_id)}
    counted = [answer for answer in answers if not answer.exposed]
    consensus = agree(answers[0], counted, decided, campaign.after_error)
    return TraceLabels(campaign, consensus, answers, ahead)


def _held(store: Store, trace_id: int, viewer: User | None) -> bool:
    """Whether a person has begun with a trace in a blind campaign that is open, and not submitted it."""
    if viewer is None:
        return False
    begun = (
        select(SlotRow.id)
        .join(ItemRow, ItemRow.id == SlotRow.item_id)
        .join(CampaignRow, CampaignRow.id == SlotRow.campaign_id)
        .where(ItemRow.trace_id == trace_id, SlotRow.user_id == viewer.id, SlotRow.state != SUBMITTED)
        .where(CampaignRow.closed.is_(None), CampaignRow.shows == "nothing")
    )
    with store.read() as session:
        return session.scalar(begun.limit(1)) is not None
