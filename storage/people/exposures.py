"""Exposures: recording when people see scores or labels of a text, and deciding what they may see.

In a blind campaign, evaluators' scores, marks on equations that do not hold, gold labels and other people's labels
are hidden from annotators until they have submitted a trace. Seeing any of this elsewhere is an exposure. Exposures
are recorded permanently and by text (problem and steps), because the same text may also be in a different dataset
or be entered by hand.
"""

from collections.abc import Collection, Sequence
from contextlib import suppress
from typing import Any

from sqlalchemy import ColumnElement, exists, select
from sqlalchemy.orm import InstrumentedAttribute, Session, aliased

from stepsight.core.trace import Trace
from stepsight.storage.database.labelling_schema import CampaignRow, EventRow, ExposureRow, ItemRow, SlotRow
from stepsight.storage.database.schema import TraceRow, in_range, now
from stepsight.storage.database.store import Store, UnavailableError
from stepsight.storage.database.upsert import insert_once
from stepsight.storage.people.users import LOCAL, User

SCORES, GOLD, LABELS, EQUATIONS = WHAT = ("scores", "gold", "labels", "equations")
"""The kinds of exposure: to evaluators' scores, to gold, to other people's labels, and to failing equations on a
labelling page that marks them. On other pages these stand beside scores."""

OWN = "own"
"""A further mark in annotation events: the person had labelled the same text before, as another trace or in another
campaign. The label still counts as blind."""

# PostgreSQL and SQLite both take some tens of thousands of values in a statement.
_MOST = 5_000


def note_exposure(store: Store, user: User, trace_ids: Collection[int], *what: str) -> None:
    """Record that a user is about to see the information `what` about these traces. Call this before it is shown.

    Texts in open campaigns are always recorded, even submitted ones, because an annotation can be withdrawn and
    changed. Other texts are recorded for later campaigns, but a failure to record them is ignored. For the local
    user of a server without user accounts, only texts in open campaigns are recorded, which costs just one short
    query if no campaign is open.
    """
    ids = sorted(trace_id for trace_id in set(trace_ids) if in_range(trace_id) == trace_id)
    _note(store, user, TraceRow.id, ids, what)


def note_texts(store: Store, user: User, traces: Collection[Trace], *what: str) -> None:
    """Like `note_exposure`, but for texts that a user entered. Texts that are not in the store are ignored."""
    _note(store, user, TraceRow.text_digest, sorted({trace.text_digest for trace in traces}), what)


def keep_exposure(store: Store, user_id: int, trace: Trace, *what: str) -> None:
    """Like `note_exposure`, but always record the text of `trace`, since a later campaign may contain it."""
    _keep(store, user_id, {trace.text_digest}, what)


def exposures_of(session: Session, user_id: int, trace_id: int) -> frozenset[str]:
    """Return which kinds of information about a trace's text a user has seen outside the labelling page."""
    text = select(TraceRow.text_digest).where(TraceRow.id == trace_id).scalar_subquery()
    seen = select(ExposureRow.what).where(ExposureRow.user_id == user_id, ExposureRow.text_digest == text)
    return frozenset(session.scalars(seen))


def has_labelled_text(session: Session, user_id: int, item_id: int) -> bool:
    """True if a user has labelled a different item with the same text, in the same or any other campaign."""
    item = aliased(ItemRow)
    text = select(ItemRow.text_digest).where(ItemRow.id == item_id).scalar_subquery()
    others = session.scalars(select(item.id).where(item.text_digest == text, item.id != item_id)).all()
    # Events are looked up by the items, which are few, since a person may have very many events.
    person = EventRow.user_id + 0 == user_id
    earlier = select(EventRow.id).where(EventRow.item_id.in_(others), person, EventRow.slot_id.is_not(None))
    labels = earlier.where(EventRow.kind.in_(("label", "submit")))
    return bool(others) and session.scalar(labels.limit(1)) is not None


def is_blind(campaign: type[CampaignRow]) -> ColumnElement[bool]:
    """Return the SQL condition that a campaign shows nothing but the text before submission."""
    return (campaign.shows == "nothing") & campaign.shows_equations.is_(False)


def is_something_hidden(store: Store) -> bool:
    """True if any open campaign is blind."""
    blind = select(CampaignRow.id).where(CampaignRow.closed.is_(None), is_blind(CampaignRow))
    with store.read() as session:
        return session.scalar(blind.limit(1)) is not None


def unblinded(trace_id: InstrumentedAttribute[int], user_id: int) -> ColumnElement[bool]:
    """Return the SQL condition that a user may see the gold labels and other people's labels of a trace.

    This is the case if the user has submitted the trace, no open blind campaign may still give them the same text,
    and no open campaign hides this information after submission. `trace_id` is the column that holds the trace's
    id.
    """
    # The column may belong to one of these tables itself.
    mine, item, slot, campaign = aliased(ItemRow), aliased(ItemRow), aliased(SlotRow), aliased(CampaignRow)

    def is_submitted(one: type[ItemRow]) -> ColumnElement[bool]:
        return exists().where(slot.item_id == one.id, slot.user_id == user_id, slot.state == "submitted")

    submitted = exists().where(mine.trace_id == trace_id, is_submitted(mine))
    theirs = is_submitted(item)
    is_open = (campaign.id == item.campaign_id, campaign.closed.is_(None))
    blind = exists().where(*is_open, is_blind(campaign))
    kept = exists().where(*is_open, campaign.after_submission == "nothing")
    same_text = (mine.trace_id == trace_id, item.text_digest == mine.text_digest)
    return submitted & ~exists().where(*same_text, (blind & ~theirs) | kept)


def is_unblinded(store: Store, user_id: int, trace_id: int) -> bool:
    """True if the condition `unblinded` holds for a user and a trace."""
    items = select(ItemRow.id).where(ItemRow.trace_id == trace_id, unblinded(ItemRow.trace_id, user_id))
    with store.read() as session:
        return session.scalar(items.limit(1)) is not None


def _note(
    store: Store, user: User, column: InstrumentedAttribute[Any], values: Sequence[Any], what: Collection[str]
) -> None:
    """Record `what` for the texts of all traces with one of the `values` in `column`."""
    if not values or not what:
        return
    ever, open_now = user.name != LOCAL, _is_any_open(store)
    if not ever and not open_now:
        return
    texts: set[str] = set()
    to_label: set[str] = set()
    for start in range(0, len(values), _MOST):
        found = select(TraceRow.text_digest).where(column.in_(values[start : start + _MOST]))
        with store.read() as session:
            if open_now:
                to_label.update(session.scalars(found.where(_in_open_campaign(TraceRow.text_digest))))
            if ever:
                texts.update(session.scalars(found))
    _keep(store, user.id, to_label, what)
    with suppress(UnavailableError):
        _keep(store, user.id, texts - to_label, what, brief=True)


def _is_any_open(store: Store) -> bool:
    with store.read() as session:
        return session.scalar(select(CampaignRow.id).where(CampaignRow.closed.is_(None)).limit(1)) is not None


def _in_open_campaign(text: InstrumentedAttribute[str]) -> ColumnElement[bool]:
    """Return the SQL condition that an open campaign contains the text whose digest is in the column `text`."""
    # The column may belong to one of these tables itself.
    item, campaign = aliased(ItemRow), aliased(CampaignRow)
    return exists().where(item.text_digest == text, campaign.id == item.campaign_id, campaign.closed.is_(None))


def _keep(
    store: Store, user_id: int, texts: Collection[str], what: Collection[str], *, brief: bool = False
) -> None:
    """Store new exposures in several transactions, so that annotators do not have to wait for all of them."""
    every = sorted(texts)
    seen = select(ExposureRow.text_digest, ExposureRow.what).where(ExposureRow.user_id == user_id)
    for start in range(0, len(every), _MOST):
        part = every[start : start + _MOST]
        with store.read() as session:
            known = {(text, one) for text, one in session.execute(seen.where(ExposureRow.text_digest.in_(part)))}
        new = sorted({(text, one) for text in part for one in what} - known)
        rows = [{"user_id": user_id, "text_digest": text, "what": one, "moment": now()} for text, one in new]
        if rows:
            with store.write(brief=brief) as session:
                insert_once(session, ExposureRow, rows, "user_id", "text_digest", "what")
