"""The qualification of a campaign: gold items that each person labels before the campaign's own traces.

A person's qualification consists of their first gold items in the order of the queue. These are the same for
everybody, unless a trace has changed. Only the first submission of each counts, so that nobody learns from what is
shown afterwards, and a skipped item does not count as right. The result is derived from the log and from the gold
in force. A person who has had a trace of the queue stays qualified.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from sqlalchemy import Select, exists, func, select
from sqlalchemy.orm import Session

from stepsight.core.trace import Trace
from stepsight.storage.database.labelling_schema import CampaignRow, ItemRow, SlotRow
from stepsight.storage.database.store import ForbiddenError
from stepsight.storage.labelling.annotation import UNSURE, AnnotationEvent, fold, read_events
from stepsight.storage.labelling.assignments import SKIPPED, Slot
from stepsight.storage.labelling.campaigns import Campaign
from stepsight.storage.labelling.ordering import GOLD
from stepsight.storage.traces.queries import load_traces, traces


class Standing(StrEnum):
    """A person's standing in a qualification."""

    UNDER_WAY = "under way"
    PASSED = "passed"
    FAILED = "failed"


@dataclass(frozen=True)
class Qualification:
    """The state of a person's qualification.

    Of its `items` solutions, `done` are answered and `right` are answered correctly; `needed` correct answers are
    required. `works` is True if the person has had a trace of the queue.
    """

    items: int
    needed: int
    done: int
    right: int
    works: bool

    @property
    def standing(self) -> Standing:
        if self.works:
            return Standing.PASSED
        if self.done < self.items:
            return Standing.UNDER_WAY
        return Standing.PASSED if self.right >= self.needed else Standing.FAILED

    @property
    def text(self) -> str:
        """The result in words for whoever runs the campaign."""
        if self.standing is Standing.UNDER_WAY:
            return f"{self.done} of {self.items} done"
        return f"{self.right} of {self.items} right, {self.standing}"


def qualification_slots(campaign_id: int) -> Select[int]:
    """Return an SQL statement for the ids of the slots that belong to people's qualifications in a campaign."""
    ranked = _ranked(campaign_id).subquery()
    return select(ranked.c.id).where(ranked.c.rank <= ranked.c.qualification_items)


def is_of_qualification(session: Session, slot: Slot) -> bool:
    """True if a slot belongs to its holder's qualification."""
    ranked = _ranked(slot.campaign_id).where(SlotRow.user_id == slot.user_id).subquery()
    within = ranked.c.rank <= ranked.c.qualification_items
    return session.scalar(select(ranked.c.id).where(ranked.c.id == slot.id, within)) is not None


def qualification_number(session: Session, campaign: Campaign, slot_id: int) -> int | None:
    """Return the number of a slot's item in its holder's qualification, counted from 1, or None if it is not part
    of it."""
    ranked = _ranked(campaign.id).subquery()
    rank = session.scalar(select(ranked.c.rank).where(ranked.c.id == slot_id))
    return None if rank is None or rank > campaign.qualification_items else rank


def read_qualification(session: Session, campaign: Campaign, user_id: int) -> Qualification | None:
    """Return the state of a person's qualification in a campaign, or None if the campaign has none."""
    if not campaign.qualification_items:
        return None
    mine = (SlotRow.user_id == user_id, SlotRow.id.in_(qualification_slots(campaign.id)))
    slots = select(SlotRow.state, SlotRow.item_id, ItemRow.trace_id).join(ItemRow, ItemRow.id == SlotRow.item_id)
    rows = session.execute(slots.where(*mine)).all()
    wanted = traces([row.trace_id for row in rows])
    by_id = {trace.trace_id: trace for trace in load_traces(session, wanted)}
    done = right = 0
    for state, item_id, trace_id in rows:
        labels = _first_submission(read_events(session, item_id, user_id), by_id[trace_id], campaign)
        done += labels is not None or state == SKIPPED
        right += labels is not None and is_right(labels, by_id[trace_id])
    of_queue = exists().where(ItemRow.id == SlotRow.item_id, ItemRow.chosen != GOLD)
    works = select(SlotRow.id).where(SlotRow.campaign_id == campaign.id, SlotRow.user_id == user_id, of_queue)
    has_worked = session.scalar(works.limit(1)) is not None
    return Qualification(campaign.qualification_items, campaign.qualification_right, done, right, has_worked)


def is_qualified(session: Session, campaign: Campaign, user_id: int) -> bool:
    """True if a person may label the traces of the queue, False if gold items come first.

    Raises `ForbiddenError` if the person has failed the qualification.
    """
    found = read_qualification(session, campaign, user_id)
    if found is not None and found.standing is Standing.FAILED:
        raise ForbiddenError(
            f"You did not qualify for {campaign.name!r}: {found.right} of {found.items} solutions right, and it"
            f" takes {found.needed}.",
            "There is no second try. Ask who runs the campaign.",
        )
    return found is None or found.standing is Standing.PASSED


def is_right(labels: Sequence[str | None], trace: Trace) -> bool:
    """True if every step up to the first wrong one, or every step if there is none, is rightly labelled as valid or
    wrong. A step that is `unsure` or has no label is not."""
    last = len(trace.steps) if trace.first_error is None else trace.first_error + 1
    return all(
        label not in (None, UNSURE) and (label != "neg") == step.valid
        for label, step in zip(labels[:last], trace.steps, strict=False)
    )


def _first_submission(
    log: Sequence[AnnotationEvent], trace: Trace, campaign: Campaign
) -> Sequence[str | None] | None:
    """Return the labels that a person submitted first, or None if they have submitted none."""
    end = next((place for place, event in enumerate(log, start=1) if event.kind == "submit"), None)
    if end is None:
        return None
    stepwise = campaign.view == "stepwise"
    return fold(log[:end], len(trace.steps), stepwise=stepwise, asks=campaign.asks_evidence).labels


def _ranked(campaign_id: int) -> Select[int, int, int]:
    """Return an SQL statement for the slots of gold items that people have, each with its rank among the slots of
    the same person."""
    rank = func.row_number().over(partition_by=SlotRow.user_id, order_by=ItemRow.place).label("rank")
    return (
        select(SlotRow.id, rank, CampaignRow.qualification_items)
        .join_from(SlotRow, ItemRow, ItemRow.id == SlotRow.item_id)
        .join(CampaignRow, CampaignRow.id == SlotRow.campaign_id)
        .where(SlotRow.campaign_id == campaign_id, ItemRow.chosen == GOLD, SlotRow.user_id.is_not(None))
    )
