"""Blindness: hiding what is known of a text from people who may still be given it in an open blind campaign.

A campaign is blind if it shows nothing but the text before submission. Until a person has submitted a text in it,
evaluators' scores, failing equations, gold labels and other people's labels of the text are hidden from them on all
pages, in exports and in the API. This goes by text (problem and steps), because the same text may also be in a
different dataset or be entered by hand. Nothing is recorded: each page asks before it shows something.

A secret of the server keeps derived values, such as the times of hidden gold items, unpredictable even to people
who know all ids, names and seeds. It is created on first use, kept in the store and its backups, and never shown.
"""

import hmac
import secrets
from collections.abc import Collection, Iterable
from hashlib import sha256

from sqlalchemy import ColumnElement, exists, false, select
from sqlalchemy.orm import InstrumentedAttribute, Session, aliased

from stepsight.core.trace import Trace
from stepsight.storage.database.labelling_schema import (
    CampaignAnnotatorRow,
    CampaignRow,
    EventRow,
    ItemRow,
    SlotRow,
)
from stepsight.storage.database.schema import ServerSecretRow, TraceRow, in_range
from stepsight.storage.database.store import ForbiddenError, Store
from stepsight.storage.people.users import Role, User

# PostgreSQL and SQLite both accept tens of thousands of values in a statement.
_MOST = 5_000


def is_something_hidden(store: Store) -> bool:
    """True if any open campaign is blind."""
    blind = select(CampaignRow.id).where(CampaignRow.closed.is_(None), CampaignRow.blind)
    with store.read() as session:
        return session.scalar(blind.limit(1)) is not None


def may_be_given(text: InstrumentedAttribute[str], user: User) -> ColumnElement[bool]:
    """Return the SQL condition that an open blind campaign may still give a person the text whose digest is in the
    column `text`, or that they hold it there.

    A trace may be given if the person is an annotator of the campaign, has not had it, and others have not taken
    all its places. Hidden gold items may be given to everybody.
    """
    # The column itself may belong to one of these tables.
    item, campaign, slot, current = aliased(ItemRow), aliased(CampaignRow), aliased(SlotRow), aliased(TraceRow)
    own = (slot.item_id == item.id, slot.user_id == user.id)
    has_places = exists().where(slot.item_id == item.id, slot.state.in_(("free", "leased")))
    is_assigned = exists().where(
        CampaignAnnotatorRow.campaign_id == campaign.id, CampaignAnnotatorRow.user_id == user.id
    )
    may_come = (
        (campaign.restricted.is_(False) | is_assigned)
        & ((item.chosen == "gold") | has_places)
        & ~exists().where(*own)
        & ~was_shown(text, user)
        & ~was_open_to(item, user)
    )
    return exists().where(
        item.text_digest == text,
        exists().where(current.id == item.trace_id, current.digest == item.digest),
        campaign.id == item.campaign_id,
        campaign.closed.is_(None),
        campaign.blind,
        exists().where(*own, slot.state == "leased") | may_come,
    )


def was_shown(text: InstrumentedAttribute[str], user: User) -> ColumnElement[bool]:
    """Return the SQL condition that a person has had a text in a campaign that is not blind. Blind campaigns do not
    give it to them."""
    item, campaign, slot = aliased(ItemRow), aliased(CampaignRow), aliased(SlotRow)
    return exists().where(
        item.text_digest == text,
        campaign.id == item.campaign_id,
        ~campaign.blind,
        slot.item_id == item.id,
        slot.user_id == user.id,
    )


def was_open_to(item: type[ItemRow], user: User) -> ColumnElement[bool]:
    """Return the SQL condition that a person may have seen an item while nobody had to label it any more, before
    somebody withdrew their annotation. Annotators see nothing while a blind campaign is open."""
    if user.role is Role.ANNOTATOR:
        return false()
    event = aliased(EventRow)
    return exists().where(event.item_id == item.id, event.kind == "withdraw", event.user_id != user.id)


def hidden_traces(store: Store, user: User | None, trace_ids: Collection[int]) -> frozenset[int]:
    """Return which of these traces are hidden from a person. None is hidden from a viewer, who does not label, or
    from a visitor without a login, who sees no traces while an open campaign is blind."""
    ids = sorted(trace_id for trace_id in set(trace_ids) if in_range(trace_id) == trace_id)
    if user is None or user.role is Role.VIEWER or not ids or not is_something_hidden(store):
        return frozenset()
    hidden: set[int] = set()
    for start in range(0, len(ids), _MOST):
        part = TraceRow.id.in_(ids[start : start + _MOST])
        with store.read() as session:
            hidden.update(
                session.scalars(select(TraceRow.id).where(part, may_be_given(TraceRow.text_digest, user)))
            )
    return frozenset(hidden)


def check_traces(store: Store, user: User | None, *trace_ids: int) -> None:
    """Raise `ForbiddenError` if one of these traces is hidden from a person."""
    if hidden_traces(store, user, trace_ids):
        raise hidden_error()


def check_texts(store: Store, user: User | None, *traces: Trace) -> None:
    """Like `check_traces`, but for texts that a person entered, of which some may be in the store."""
    digests = {trace.text_digest for trace in traces}
    with store.read() as session:
        ids = session.scalars(select(TraceRow.id).where(TraceRow.text_digest.in_(digests))).all()
    check_traces(store, user, *ids)


def unblinded(trace_id: InstrumentedAttribute[int], user: User) -> ColumnElement[bool]:
    """Return the SQL condition that a person may see the gold labels and other people's labels of a trace that they
    have labelled.

    This is the case if they have submitted it, if it is not hidden from them, and if no open campaign hides this
    information after submission. `trace_id` is the column that holds the trace's id.
    """
    # The column itself may belong to one of these tables.
    own, item, slot, campaign = aliased(ItemRow), aliased(ItemRow), aliased(SlotRow), aliased(CampaignRow)
    submitted = exists().where(
        own.trace_id == trace_id,
        slot.item_id == own.id,
        slot.user_id == user.id,
        slot.state == "submitted",
        ~may_be_given(own.text_digest, user),
    )
    hides = exists().where(
        own.trace_id == trace_id,
        item.text_digest == own.text_digest,
        campaign.id == item.campaign_id,
        campaign.closed.is_(None),
        campaign.settings["after_submission"].as_string() == "nothing",
    )
    return submitted & ~hides


def is_unblinded(store: Store, user: User, trace_id: int) -> bool:
    """True if the condition `unblinded` holds for a person and a trace."""
    items = select(ItemRow.id).where(ItemRow.trace_id == trace_id, unblinded(ItemRow.trace_id, user))
    with store.read() as session:
        return session.scalar(items.limit(1)) is not None


def hidden_error() -> ForbiddenError:
    """Return the error for something that is hidden from a person."""
    return ForbiddenError(
        "You may still have to label this text in a blind campaign.",
        "Its scores and labels are shown once you have submitted it, or the campaign is closed.",
    )


_NAME = "pseudonyms"
_BYTES = 32
_WANTED = select(ServerSecretRow.secret).where(ServerSecretRow.name == _NAME)


def read_secret(store: Store) -> bytes:
    """Return the secret, creating it if there is none yet."""
    with store.read() as session:
        secret = session.scalar(_WANTED)
    if secret is not None:
        return secret
    with store.write() as session:
        return load_secret(session)


def load_secret(session: Session) -> bytes:
    """Like `read_secret`, but within a writing session."""
    secret = session.scalar(_WANTED)
    if secret is None:
        secret = secrets.token_bytes(_BYTES)
        session.add(ServerSecretRow(name=_NAME, secret=secret))
    return secret


def keyed_digest(secret: bytes, *about: object) -> bytes:
    """Return a digest of `about`, keyed with the secret. Equal values give equal digests, which reveal nothing
    about the values."""
    return hmac.digest(secret, " ".join(map(str, about)).encode(), sha256)


def shuffle_people(store: Store, user_ids: Iterable[int], *about: object) -> list[int]:
    """Return user ids in a random order that is always the same for the same values of `about`, such as a campaign
    id. Orders for different values of `about` are unrelated, and an order reveals nothing about the users."""
    secret = read_secret(store)
    return sorted(set(user_ids), key=lambda user_id: keyed_digest(secret, *about, user_id))
