"""The tables of campaigns, their queues, and the append-only logs of labelling work.

Triggers refuse to change or delete rows of `label_events`, `guidelines`, `disputes` and `dispute_entries`. Only the
events of a closed campaign can be deleted, once a complete export contains them, and then its guidelines. No
foreign key of these tables cascades, so a row that labelling work refers to cannot be deleted.
"""

import secrets
from datetime import datetime
from typing import Any

from sqlalchemy import (
    CheckConstraint,
    ColumnElement,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    String,
    Text,
    UniqueConstraint,
    func,
    select,
)
from sqlalchemy.orm import Mapped, column_property, mapped_column, relationship

from stepsight.storage.database.schema import (
    DIGEST_LENGTH,
    NAME_LENGTH,
    NEW_IDS,
    Base,
    DatasetRow,
    TraceRow,
    UserRow,
    UtcDateTime,
    now,
)
from stepsight.storage.database.stored_json import StoredJson

KEY_LENGTH = 64
PUBLIC_LENGTH = 16
# The type of a value: a label, a text, a count, suggested labels or a decision.
Said = str | int | list[str | None] | dict[str, Any] | None


def new_public_id() -> str:
    """Return a random id, which reveals neither when a row was created nor how many rows exist."""
    return secrets.token_hex(PUBLIC_LENGTH // 2)


def _look_up(value: Any, *where: ColumnElement[bool]) -> Any:
    """Return the SQL expression for a value in another table."""
    return select(value).where(*where).correlate_except(UserRow, TraceRow, DatasetRow).scalar_subquery()


class CampaignRow(Base):
    """A set of traces to be labelled, fixed when the campaign is created.

    `settings` has the fields of `storage.labelling.plan.CampaignSettings`. `blind` is true if they let nothing but
    the text be seen before submission. If `restricted` is true, only the campaign's own annotators may label.
    `evaluator_id` is the evaluator whose scores are shown. `exported` is the number of events in the newest
    complete export of its log, or NULL.
    """

    __tablename__ = "campaigns"

    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(String(NAME_LENGTH), unique=True)
    dataset_id: Mapped[int] = mapped_column(ForeignKey("datasets.id", ondelete="RESTRICT"))
    evaluator_id: Mapped[int | None] = mapped_column(ForeignKey("evaluators.id", ondelete="RESTRICT"))
    settings: Mapped[dict[str, Any]] = mapped_column(StoredJson("campaigns.settings", dict[str, Any]))
    blind: Mapped[bool]
    created: Mapped[datetime] = mapped_column(UtcDateTime, default=now)
    created_by: Mapped[int] = mapped_column(ForeignKey(UserRow.id, ondelete="RESTRICT"))
    closed: Mapped[datetime | None] = mapped_column(UtcDateTime)
    restricted: Mapped[bool] = mapped_column(default=False)
    exported: Mapped[int | None]

    __table_args__ = (NEW_IDS,)


class CampaignAnnotatorRow(Base):
    """A person who may label in a restricted campaign."""

    __tablename__ = "campaign_annotators"

    campaign_id: Mapped[int] = mapped_column(ForeignKey("campaigns.id", ondelete="RESTRICT"), primary_key=True)
    user_id: Mapped[int] = mapped_column(ForeignKey(UserRow.id, ondelete="RESTRICT"), primary_key=True)
    added: Mapped[datetime] = mapped_column(UtcDateTime, default=now)
    added_by: Mapped[int] = mapped_column(ForeignKey(UserRow.id, ondelete="RESTRICT"))


class InvitationRow(Base):
    """A link that lets somebody become a user or choose a new password. It is deleted when it is used or revoked.

    `name` is the name of the new user, or NULL if the new user may choose a name. If `user_id` is set, the link
    instead lets that existing user choose a new password. Whoever accepts becomes an annotator of the campaign
    `campaign_id`, if that is set. The link contains a secret, of which only a hash is stored.
    """

    __tablename__ = "invitations"

    id: Mapped[int] = mapped_column(primary_key=True)
    digest: Mapped[str] = mapped_column(String(DIGEST_LENGTH), unique=True)
    name: Mapped[str | None] = mapped_column(String(NAME_LENGTH))
    role: Mapped[str] = mapped_column(String(20))
    user_id: Mapped[int | None] = mapped_column(ForeignKey(UserRow.id, ondelete="RESTRICT"))
    campaign_id: Mapped[int | None] = mapped_column(ForeignKey("campaigns.id", ondelete="CASCADE"))
    created: Mapped[datetime] = mapped_column(UtcDateTime, default=now)
    created_by: Mapped[int] = mapped_column(ForeignKey(UserRow.id, ondelete="RESTRICT"))
    expires: Mapped[datetime] = mapped_column(UtcDateTime)

    __table_args__ = (CheckConstraint("role IN ('viewer', 'annotator', 'adjudicator', 'admin')", name="role"),)


class GuidelineRow(Base):
    """A version of a campaign's labelling instructions. Versions count from 1, and the newest is in force."""

    __tablename__ = "guidelines"

    campaign_id: Mapped[int] = mapped_column(ForeignKey("campaigns.id", ondelete="RESTRICT"), primary_key=True)
    version: Mapped[int] = mapped_column(primary_key=True)
    text: Mapped[str] = mapped_column(Text)
    created: Mapped[datetime] = mapped_column(UtcDateTime, default=now)
    created_by: Mapped[int] = mapped_column(ForeignKey(UserRow.id, ondelete="RESTRICT"))

    __table_args__ = (CheckConstraint("version > 0", name="version"),)


class ItemRow(Base):
    """A trace in a campaign, at position `place` of the queue.

    `digest` and `text_digest` are the trace's `Trace.digest` and `Trace.text_digest`. `chosen` is `ordered` if the
    campaign's ordering placed the item, `random` if it was placed at random, and `gold` for a hidden gold item,
    which any annotator may get in addition to the items of the queue.
    """

    __tablename__ = "campaign_items"

    id: Mapped[int] = mapped_column(primary_key=True)
    campaign_id: Mapped[int] = mapped_column(ForeignKey("campaigns.id", ondelete="RESTRICT"))
    trace_id: Mapped[int] = mapped_column(ForeignKey("traces.id", ondelete="RESTRICT"))
    digest: Mapped[str] = mapped_column(String(DIGEST_LENGTH))
    place: Mapped[int]
    chosen: Mapped[str] = mapped_column(String(20))
    text_digest: Mapped[str] = mapped_column(String(DIGEST_LENGTH), server_default="")

    __table_args__ = (
        UniqueConstraint("campaign_id", "trace_id"),
        UniqueConstraint("campaign_id", "place"),
        UniqueConstraint("id", "campaign_id"),
        CheckConstraint("chosen IN ('ordered', 'random', 'gold')", name="chosen"),
        Index("ix_campaign_items_trace_id", "trace_id"),
        Index("ix_campaign_items_text_digest", "text_digest", "campaign_id"),
    )


class SlotRow(Base):
    """A place for one person's annotation of an item.

    Each item of the queue has `overlap` slots, not counting skipped ones. A `free` slot belongs to nobody. A
    `leased` slot belongs to a person until `expires`, and after that until somebody else takes it. `submitted` and
    `skipped` slots keep their person. Annotators see only the `public_id` of a slot: sequential ids would reveal
    the hidden gold items, whose slots are created later than all others.
    """

    __tablename__ = "slots"

    id: Mapped[int] = mapped_column(primary_key=True)
    campaign_id: Mapped[int]
    item_id: Mapped[int]
    number: Mapped[int]
    state: Mapped[str] = mapped_column(String(20), default="free")
    user_id: Mapped[int | None] = mapped_column(ForeignKey(UserRow.id, ondelete="RESTRICT"))
    taken: Mapped[datetime | None] = mapped_column(UtcDateTime)
    expires: Mapped[datetime | None] = mapped_column(UtcDateTime)
    ended: Mapped[datetime | None] = mapped_column(UtcDateTime)
    public_id: Mapped[str] = mapped_column(String(PUBLIC_LENGTH), default=new_public_id, server_default="")

    __table_args__ = (
        ForeignKeyConstraint(
            ["item_id", "campaign_id"], ["campaign_items.id", "campaign_items.campaign_id"], ondelete="RESTRICT"
        ),
        UniqueConstraint("item_id", "number"),
        # Nobody labels a trace of a campaign twice.
        UniqueConstraint("item_id", "user_id"),
        CheckConstraint("state IN ('free', 'leased', 'submitted', 'skipped')", name="state"),
        CheckConstraint("(state = 'free') = (user_id IS NULL)", name="free_has_nobody"),
        CheckConstraint("(state = 'leased') = (expires IS NOT NULL)", name="leased_expires"),
        CheckConstraint("(state IN ('submitted', 'skipped')) = (ended IS NOT NULL)", name="ended"),
        Index("ix_slots_campaign_id", "campaign_id", "state"),
        Index("ix_slots_user_id", "user_id", "campaign_id"),
        Index("ix_slots_public_id", "public_id", unique=True),
    )


class EventRow(Base):
    """An action taken by a user. Events are never changed, and the current labels are derived from them.

    `kind` and the content of `old` and `new` are described in `storage.labelling.annotation`. `step` is 0-based, or
    NULL for an event about the whole trace. `slot_id` is NULL for actions outside a slot, such as an adjudication.
    If the event undoes or redoes an earlier event, `cause` is `undo` or `redo` and `of` is the id of that event.
    `key` is chosen by the client, so that a repeated request is stored only once. `seconds` is the time that the
    user took, as measured by the page. `view` and `revealed` (the number of visible steps) record what the user
    could see.
    """

    __tablename__ = "label_events"

    id: Mapped[int] = mapped_column(primary_key=True)
    campaign_id: Mapped[int] = mapped_column(ForeignKey("campaigns.id", ondelete="RESTRICT"))
    item_id: Mapped[int] = mapped_column(ForeignKey("campaign_items.id", ondelete="RESTRICT"))
    slot_id: Mapped[int | None] = mapped_column(ForeignKey("slots.id", ondelete="RESTRICT"))
    user_id: Mapped[int] = mapped_column(ForeignKey(UserRow.id, ondelete="RESTRICT"))
    kind: Mapped[str] = mapped_column(String(20))
    step: Mapped[int | None]
    old: Mapped[Any] = mapped_column(StoredJson("label_events.old", Said, none_as_null=True), nullable=True)
    new: Mapped[Any] = mapped_column(StoredJson("label_events.new", Said, none_as_null=True), nullable=True)
    cause: Mapped[str] = mapped_column(String(20), default="")
    of: Mapped[int | None] = mapped_column(ForeignKey("label_events.id", ondelete="RESTRICT"))
    key: Mapped[str] = mapped_column(String(KEY_LENGTH))
    moment: Mapped[datetime] = mapped_column(UtcDateTime, default=now)
    seconds: Mapped[float | None]
    digest: Mapped[str] = mapped_column(String(DIGEST_LENGTH))
    guideline: Mapped[int]
    view: Mapped[str] = mapped_column(String(20))
    revealed: Mapped[int | None]

    __table_args__ = (
        UniqueConstraint("user_id", "key"),
        CheckConstraint("step >= 0", name="step"),
        CheckConstraint("cause IN ('', 'undo', 'redo')", name="cause"),
        CheckConstraint("(cause = '') = (of IS NULL)", name="cause_of"),
        Index("ix_label_events_campaign_id", "campaign_id", "id"),
        Index("ix_label_events_slot_id", "slot_id", "id"),
        Index("ix_label_events_item_id", "item_id", "id"),
        # With this index, the database finds the events that undo a deleted event.
        Index("ix_label_events_of", "of"),
    )


class DisputeEntry(Base):
    """A remark on a dispute by `user`. `state` is the state that the remark put the dispute into, or NULL if the
    state did not change."""

    __tablename__ = "dispute_entries"

    id: Mapped[int] = mapped_column(primary_key=True)
    dispute_id: Mapped[int] = mapped_column(ForeignKey("disputes.id", ondelete="RESTRICT"))
    user_id: Mapped[int] = mapped_column(ForeignKey(UserRow.id, ondelete="RESTRICT"))
    state: Mapped[str | None] = mapped_column(String(20))
    text: Mapped[str] = mapped_column(Text)
    moment: Mapped[datetime] = mapped_column(UtcDateTime, default=now)
    user: Mapped[str] = column_property(_look_up(UserRow.name, UserRow.id == user_id))

    __table_args__ = (
        CheckConstraint("state IN ('open', 'accepted', 'rejected', 'withdrawn')", name="state"),
        Index("ix_dispute_entries_dispute_id", "dispute_id", "id"),
    )


class Dispute(Base):
    """A claim by `user` that a benchmark's gold label of a step is wrong.

    `step` is 0-based. `gold` is the disputed label, and `proposed` is the label it should have. Both are label
    names, `valid`, or NULL for no label. `trace` is the id of the disputed trace within its `dataset`, `digest` its
    digest at that time, and `changed` is true if that has changed since. `state` is the last of the `entries` that
    set one, or `open`. `others_decide` is true if somebody other than the author may accept the dispute.
    """

    __tablename__ = "disputes"

    id: Mapped[int] = mapped_column(primary_key=True)
    trace_id: Mapped[int] = mapped_column(ForeignKey("traces.id", ondelete="RESTRICT"))
    digest: Mapped[str] = mapped_column(String(DIGEST_LENGTH))
    step: Mapped[int]
    gold: Mapped[str | None] = mapped_column(String(20))
    proposed: Mapped[str | None] = mapped_column(String(20))
    reason: Mapped[str] = mapped_column(Text)
    user_id: Mapped[int] = mapped_column(ForeignKey(UserRow.id, ondelete="RESTRICT"))
    moment: Mapped[datetime] = mapped_column(UtcDateTime, default=now)

    trace: Mapped[str] = column_property(_look_up(TraceRow.external_id, TraceRow.id == trace_id))
    dataset: Mapped[str] = column_property(
        _look_up(DatasetRow.name, DatasetRow.id == TraceRow.dataset_id, TraceRow.id == trace_id)
    )
    changed: Mapped[bool] = column_property(_look_up(TraceRow.digest != digest, TraceRow.id == trace_id))
    user: Mapped[str] = column_property(_look_up(UserRow.name, UserRow.id == user_id))
    state: Mapped[str] = column_property(
        func.coalesce(
            select(DisputeEntry.state)
            .where(DisputeEntry.dispute_id == id, DisputeEntry.state.is_not(None))
            .order_by(DisputeEntry.id.desc())
            .limit(1)
            .correlate_except(DisputeEntry)
            .scalar_subquery(),
            "open",
        )
    )
    # The people who can log in and may accept disputes.
    others_decide: Mapped[bool] = column_property(
        select(UserRow.id)
        .where(UserRow.role.in_(("adjudicator", "admin")), UserRow.password.is_not(None), UserRow.ended.is_(None))
        .where(UserRow.id != user_id)
        .correlate_except(UserRow)
        .exists()
    )
    entries: Mapped[list[DisputeEntry]] = relationship(order_by=DisputeEntry.id, lazy="selectin", viewonly=True)

    __table_args__ = (
        CheckConstraint("step >= 0", name="step"),
        Index("ix_disputes_trace_id", "trace_id"),
    )
