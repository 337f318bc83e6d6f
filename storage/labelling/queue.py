"""The queue of a campaign: choosing the next trace for each person and reserving it.

A person holds a trace by a lease, which each of the person's events renews. Once the lease has expired, the trace
goes to the next person who asks for one, but until that happens the holder can continue. The queue is ordered by
place, so that partly labelled traces come before untouched ones and get finished.
"""

import random
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Literal

from sqlalchemy import ColumnElement, Select, and_, exists, func, or_, select
from sqlalchemy.orm import Session, aliased

from stepsight.core.trace import Step, find_answer
from stepsight.storage.database.labelling_schema import EventRow, ItemRow, SlotRow
from stepsight.storage.database.schema import TraceRow, now
from stepsight.storage.database.store import ConflictError, Store
from stepsight.storage.labelling.campaigns import Campaign, check_annotator, load_campaign, may_label_in
from stepsight.storage.labelling.plan import GOLD
from stepsight.storage.labelling.record import (
    FREE,
    LEASED,
    SUBMITTED,
    add_slot,
    check_open,
    check_owner,
    load_slot,
    renew,
    shorten,
)
from stepsight.storage.labelling.review import add_suggestions
from stepsight.storage.people.blindness import keyed_digest, load_secret, may_be_given, was_open_to, was_shown
from stepsight.storage.people.users import User
from stepsight.storage.traces.queries import StoredTrace, load_traces, traces

Availability = Literal["held", "new", "nothing"]
"""The next trace of a person: one they already hold, a new one, or none for now."""


@dataclass(frozen=True)
class Assignment:
    """A slot that a person holds, with the trace to label. `slot` is its public id.

    The trace has no gold labels, id or metadata, since these could reveal a hidden gold item. `answer` is the
    reference answer, if the campaign shows it and the source has one. `expires` is None if the slot has ended.
    """

    slot: str
    item_id: int
    campaign: Campaign
    trace: StoredTrace
    answer: str | None
    expires: datetime | None


@dataclass(frozen=True)
class Turn:
    """A slot that a person has or had, in a list of their own. `slot` is its public id, and `moment` is when it
    ended or, if it has not, when it was taken; None if an import did not say."""

    slot: str
    state: str
    problem: str
    moment: datetime | None


def assign_next(store: Store, campaign_id: int, user: User) -> Assignment | None:
    """Return the next trace for a person to label, or None if no trace is available at the moment.

    If the person already holds a trace, that trace is returned. Otherwise the result is the next trace in the queue
    or, as a qualification at first and now and then later, a hidden gold item instead. After None, traces that
    other people hold may still become free.

    Raises `NotFoundError` if the campaign does not exist, `ForbiddenError` if the person is not among its
    annotators, and `ConflictError` if it is closed.
    """
    assignment = _assign_next(store, campaign_id, user)
    if assignment is not None and assignment.campaign.suggests:
        add_suggestions(store, assignment.slot, user)
    return assignment


def _assign_next(store: Store, campaign_id: int, user: User) -> Assignment | None:
    with store.write() as session:
        campaign = load_campaign(session, campaign_id)
        check_annotator(session, campaign, user)
        if campaign.closed is not None:
            raise ConflictError(f"The campaign {campaign.name!r} is closed.", "Choose another one.")
        shorten(session, campaign.id, campaign.lease)
        # An expired lease counts until somebody else takes the slot.
        slot = session.scalar(_select_held(campaign, user))
        if slot is None:
            free = _select_free(campaign, user)
            # A trace whose text the person has already labelled comes only when nothing else is left.
            slot = session.scalar(free.where(~_has_had_text(campaign, user))) or session.scalar(free)
            if slot is None:
                return None
            gold = _draw_gold(session, campaign, user)
            slot = slot if gold is None else add_slot(session, gold)
            slot.user_id, slot.taken = user.id, now()
        renew(slot, campaign.lease)
        return _assignment(session, campaign, slot)


def next_availability(store: Store, campaign: Campaign, user: User) -> Availability:
    """Return what `assign_next` would give a person now, but without assigning a trace."""
    if campaign.closed is not None or not may_label_in(store, campaign, user):
        return "nothing"
    with store.read() as session:
        if session.scalar(_select_held(campaign, user)) is not None:
            return "held"
        return "nothing" if session.scalar(_select_free(campaign, user)) is None else "new"


def last_submitted(store: Store, campaign_id: int, user: User) -> str | None:
    """Return the public id of the slot that a person last submitted in a campaign, or None."""
    own = (SlotRow.campaign_id == campaign_id, SlotRow.user_id == user.id, SlotRow.state == SUBMITTED)
    with store.read() as session:
        return session.scalar(select(SlotRow.public_id).where(*own).order_by(*_newest_first()).limit(1))


def list_turns(store: Store, campaign_id: int, user: User, start: int = 0, limit: int | None = None) -> list[Turn]:
    """List a person's turns in a campaign, the one with the last input first. Hidden gold items are among them."""
    own = (SlotRow.campaign_id == campaign_id, SlotRow.user_id == user.id)
    moment = func.coalesce(SlotRow.ended, SlotRow.taken)
    turns = select(SlotRow.public_id, SlotRow.state, TraceRow.problem, moment).where(*own)
    turns = turns.join(ItemRow, ItemRow.id == SlotRow.item_id).join(TraceRow, TraceRow.id == ItemRow.trace_id)
    with store.read() as session:
        rows = session.execute(turns.order_by(*_newest_first()).offset(start).limit(limit))
        return [Turn(*row) for row in rows]


def _newest_first() -> tuple[ColumnElement[Any], ColumnElement[Any]]:
    """Return the sort keys that put the slot with the latest input first."""
    # In the order of the log, whose ids do not depend on the clock; imported slots may have no event.
    last_event = select(func.max(EventRow.id)).where(EventRow.slot_id == SlotRow.id).scalar_subquery()
    return func.coalesce(last_event, 0).desc(), SlotRow.id.desc()


def open_slot(store: Store, public_id: str, user: User) -> Assignment:
    """Return the assignment of a slot to the person who has or had it, and renew its lease unless the slot has
    ended.

    Raises `NotFoundError` if the slot does not exist, and `ForbiddenError` if the slot is free. Raises
    `ConflictError` if somebody else has the slot now, or if it has not ended but cannot be continued.
    """
    with store.write() as session:
        slot = load_slot(session, public_id)
        check_owner(slot, user)
        campaign = load_campaign(session, slot.campaign.id)
        if slot.row.state == LEASED:
            check_open(slot)
            renew(slot.row, campaign.lease)
        return _assignment(session, campaign, slot.row)


def _assignment(session: Session, campaign: Campaign, slot: SlotRow) -> Assignment:
    session.flush()
    item = session.get_one(ItemRow, slot.item_id)
    stored = load_traces(session, traces([item.trace_id]))[0]
    steps = tuple(Step(step.substeps) for step in stored.steps)
    trace = replace(
        stored, id="", steps=steps, meta={}, position=0, dataset=campaign.dataset, dataset_id=campaign.dataset_id
    )
    answer = find_answer(stored.meta) if campaign.shows_answer else None
    return Assignment(slot.public_id, item.id, campaign, trace, answer, slot.expires)


def _select_held(campaign: Campaign, user: User) -> Select[SlotRow]:
    own = (SlotRow.campaign_id == campaign.id, SlotRow.user_id == user.id, SlotRow.state == LEASED)
    slots = select(SlotRow).join(ItemRow, ItemRow.id == SlotRow.item_id).where(*own, _is_unchanged())
    return slots.order_by(SlotRow.taken.desc(), SlotRow.id.desc()).limit(1)


def _select_free(campaign: Campaign, user: User) -> Select[SlotRow]:
    own = aliased(SlotRow)
    had = exists().where(own.item_id == ItemRow.id, own.user_id == user.id)
    is_available = or_(SlotRow.state == FREE, and_(SlotRow.state == LEASED, SlotRow.expires < now()))
    return (
        select(SlotRow)
        .join(ItemRow, ItemRow.id == SlotRow.item_id)
        .where(ItemRow.campaign_id == campaign.id, ItemRow.chosen != GOLD, is_available, ~had, _is_unchanged())
        .where(_keeps_blind(campaign, user))
        .order_by(ItemRow.place, SlotRow.number)
        .limit(1)
    )


def _has_had_text(campaign: Campaign, user: User) -> ColumnElement[bool]:
    """Return the SQL condition that the person has already been given the text of an item in this campaign."""
    own, same = aliased(SlotRow), aliased(ItemRow)
    of_text = (same.text_digest == ItemRow.text_digest, same.campaign_id == campaign.id)
    return exists().where(*of_text, exists().where(own.item_id == same.id, own.user_id == user.id))


def _keeps_blind(campaign: Campaign, user: User) -> ColumnElement[bool]:
    """Return the SQL condition that the person has not seen an item's scores and labels if the campaign is blind,
    or may see them if it is not."""
    if campaign.blind:
        return ~was_shown(ItemRow.text_digest, user) & ~was_open_to(ItemRow, user)
    return ~may_be_given(ItemRow.text_digest, user)


def _draw_gold(session: Session, campaign: Campaign, user: User) -> ItemRow | None:
    """Return a hidden gold item if it is time for one, and otherwise None.

    The first traces of a person are the qualification, whose gold items are the same for everybody. After that,
    gold items appear at the campaign's gold rate. The timing depends on the person, the number of traces they have
    had, and a secret, so that nobody can predict it. Only texts that the person has not had are given.
    """
    own = (SlotRow.campaign_id == campaign.id, SlotRow.user_id == user.id)
    count = session.scalar(select(func.count()).where(*own)) or 0
    gold = select(ItemRow).where(ItemRow.campaign_id == campaign.id, ItemRow.chosen == GOLD, _is_unchanged())
    gold = gold.where(_keeps_blind(campaign, user))
    fresh = gold.where(~_has_had_text(campaign, user)).order_by(ItemRow.place)
    if count < campaign.qualification_items:
        return session.scalar(fresh.limit(1))
    rng = random.Random(keyed_digest(load_secret(session), "gold", campaign.id, campaign.seed, user.id, count))
    if rng.random() >= campaign.gold_rate:
        return None
    items = session.scalars(fresh).all()
    return rng.choice(items) if items else None


def _is_unchanged() -> ColumnElement[bool]:
    """Return the SQL condition that the trace of an item has not changed since the campaign was created. Traces
    that have changed can no longer be labelled."""
    return exists().where(TraceRow.id == ItemRow.trace_id, TraceRow.digest == ItemRow.digest)
