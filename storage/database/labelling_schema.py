"""The tables of campaigns, their queue, and the append-only logs of what people did.

Triggers refuse to change or delete a row of `label_events`, `guidelines`, `disputes` and `dispute_entries`. No
foreign key here cascades: what a person did holds what it is about.
"""

import secrets
from datetime import datetime
from typing import Any

from sqlalchemy import (
    CheckConstraint,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    String,
    Text,
    UniqueConstraint,
    false,
)
from sqlalchemy.orm import Mapped, mapped_column

from stepsight.storage.database.people_schema import InvitationRow, UserRow
from stepsight.storage.database.schema import DIGEST_LENGTH, NAME_LENGTH, Base, UtcDateTime, now
from stepsight.storage.database.stored_json import StoredJson

APPEND_ONLY = ("label_events", "guidelines", "disputes", "dispute_entries")
KEY_LENGTH = 64
PUBLIC_LENGTH = 16
# What a label, a text, a count, suggested labels or a decision is.
Said = str | int | list[str | None] | dict[str, Any] | None


def new_public_id() -> str:
    """A random one, which tells nothing of when a row was made and of how many there are."""
    return secrets.token_hex(PUBLIC_LENGTH // 2)


class CampaignRow(Base):
    """A set of traces to be labelled, frozen when it was made.

    `conditions` says how the traces were chosen, `overlap` how many people label each, `after_error` whether steps
    after the first `neg` are labelled. `shows` is what the page shows beside the text before submission. The queue
    goes by `ordering`, by chance in `random_share` of the traces. Of the traces that a person gets, `gold_rate` are
    hidden gold items. A claim is held for `lease` seconds after the last sign of its person.

    Where `shows_answer`, the reference answer stands below the problem. `after_submission` is what is seen of a
    trace once it is submitted, `error_kinds` what can be wrong with a step. Of the `population` that met the
    conditions, `sample` were drawn by `seed`; NULL where all were taken. Where `restricted`, only its annotators
    label in it. Where it `suggests`, a trace comes with the labels of the evaluator whose scores are shown, where
    it `shows_equations`, with marks on those that fail.
    """

    __tablename__ = "campaigns"

    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(String(NAME_LENGTH), unique=True)
    dataset_id: Mapped[int] = mapped_column(ForeignKey("datasets.id", ondelete="RESTRICT"))
    conditions: Mapped[dict[str, Any]] = mapped_column(StoredJson("campaigns.conditions", dict[str, Any]))
    overlap: Mapped[int]
    after_error: Mapped[bool]
    view: Mapped[str] = mapped_column(String(20))
    shows: Mapped[str] = mapped_column(String(20))
    evaluator_id: Mapped[int | None] = mapped_column(ForeignKey("evaluators.id", ondelete="RESTRICT"))
    ordering: Mapped[str] = mapped_column(String(20))
    random_share: Mapped[float]
    gold_rate: Mapped[float]
    lease: Mapped[int]
    seed: Mapped[int]
    created: Mapped[datetime] = mapped_column(UtcDateTime, default=now)
    created_by: Mapped[int] = mapped_column(ForeignKey(UserRow.id, ondelete="RESTRICT"))
    closed: Mapped[datetime | None] = mapped_column(UtcDateTime)
    shows_answer: Mapped[bool] = mapped_column(server_default=false())
    restricted: Mapped[bool] = mapped_column(server_default=false())
    error_kinds: Mapped[list[str]] = mapped_column(
        StoredJson("campaigns.error_kinds", list[str]), server_default="[]"
    )
    after_submission: Mapped[str] = mapped_column(String(20), server_default="everything")
    sample: Mapped[int | None]
    population: Mapped[int | None]
    suggests: Mapped[bool] = mapped_column(server_default=false())
    shows_equations: Mapped[bool] = mapped_column(server_default=false())

    __table_args__ = (
        CheckConstraint("overlap > 0", name="overlap"),
        CheckConstraint("view IN ('whole', 'stepwise')", name="view"),
        CheckConstraint("shows IN ('nothing', 'scores')", name="shows"),
        CheckConstraint("shows = 'nothing' OR evaluator_id IS NOT NULL", name="shows_an_evaluator"),
        CheckConstraint("ordering IN ('file', 'random', 'disagreement', 'change')", name="ordering"),
        CheckConstraint("random_share BETWEEN 0 AND 1 AND gold_rate BETWEEN 0 AND 0.5", name="shares"),
        CheckConstraint("lease > 0", name="lease"),
        CheckConstraint("after_submission IN ('nothing', 'gold', 'everything')", name="after_submission"),
        CheckConstraint("sample > 0", name="sample"),
        CheckConstraint("population >= sample", name="population"),
    )


class CampaignAnnotatorRow(Base):
    """That a person may label in a campaign which is not for everybody who may label."""

    __tablename__ = "campaign_annotators"

    campaign_id: Mapped[int] = mapped_column(ForeignKey("campaigns.id", ondelete="RESTRICT"), primary_key=True)
    user_id: Mapped[int] = mapped_column(ForeignKey(UserRow.id, ondelete="RESTRICT"), primary_key=True)
    added: Mapped[datetime] = mapped_column(UtcDateTime, default=now)
    added_by: Mapped[int] = mapped_column(ForeignKey(UserRow.id, ondelete="RESTRICT"))


class InvitationCampaignRow(Base):
    """That whoever accepts an invitation becomes an annotator of a campaign."""

    __tablename__ = "invitation_campaigns"

    invitation_id: Mapped[int] = mapped_column(ForeignKey(InvitationRow.id, ondelete="RESTRICT"), primary_key=True)
    campaign_id: Mapped[int] = mapped_column(ForeignKey("campaigns.id", ondelete="RESTRICT"), primary_key=True)


class GuidelineRow(Base):
    """What annotators of a campaign are asked to do; the newest version, from 1 on, is in force."""

    __tablename__ = "guidelines"

    campaign_id: Mapped[int] = mapped_column(ForeignKey("campaigns.id", ondelete="RESTRICT"), primary_key=True)
    version: Mapped[int] = mapped_column(primary_key=True)
    text: Mapped[str] = mapped_column(Text)
    created: Mapped[datetime] = mapped_column(UtcDateTime, default=now)
    created_by: Mapped[int] = mapped_column(ForeignKey(UserRow.id, ondelete="RESTRICT"))

    __table_args__ = (CheckConstraint("version > 0", name="version"),)


class ItemRow(Base):
    """A trace of a campaign, at its `place` in the queue. `digest` is `Trace.digest` of what is labelled,
    `text_digest` its `Trace.text_digest`.

    `chosen`: `ordered`, it stands where the ordering puts it; `random`, it stands there by chance; `gold`, it is a
    hidden gold item, which every annotator may get beside those in the queue.
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
    """One person's turn at an item. An item of the queue has `overlap` slots that are not skipped.

    `free` slots belong to nobody; a `leased` one belongs to its person until `expires`, and after that until
    somebody else takes it; `submitted` and `skipped` ones stay that person's. Who labels knows it by `public_id`
    alone: slots of hidden gold items are made later than the others, which ids in their order would tell.
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
    """What a person did, never changed and never deleted: present labels are derived from these rows.

    `kind` and what `old` and `new` hold: see `storage.labelling.annotation`. `step` is 0-based, NULL where the
    event is about the whole trace. `slot_id` is NULL for what is done outside a slot, such as a decision. `cause`
    is `undo` or `redo` where the event takes back or repeats the event `of`. `key` is the client's: a request that
    is repeated is stored once. `seconds` is how long the person took, as the page measured it. `view`, `revealed`
    (steps that were visible) and `visible` say what the person saw.
    """

    __tablename__ = "label_events"

    id: Mapped[int] = mapped_column(primary_key=True)
    campaign_id: Mapped[int] = mapped_column(ForeignKey("campaigns.id", ondelete="RESTRICT"))
    item_id: Mapped[int] = mapped_column(ForeignKey("campaign_items.id", ondelete="RESTRICT"))
    slot_id: Mapped[int | None] = mapped_column(ForeignKey("slots.id", ondelete="RESTRICT"))
    user_id: Mapped[int] = mapped_column(ForeignKey(UserRow.id, ondelete="RESTRICT"))
    kind: Mapped[str] = mapped_column(String(20))
    step: Mapped[int | None]
    old: Mapped[Any | None] = mapped_column(StoredJson("label_events.old", Said, none_as_null=True))
    new: Mapped[Any | None] = mapped_column(StoredJson("label_events.new", Said, none_as_null=True))
    cause: Mapped[str] = mapped_column(String(20), default="")
    of: Mapped[int | None] = mapped_column(ForeignKey("label_events.id", ondelete="RESTRICT"))
    key: Mapped[str] = mapped_column(String(KEY_LENGTH))
    moment: Mapped[datetime] = mapped_column(UtcDateTime, default=now)
    seconds: Mapped[float | None]
    digest: Mapped[str] = mapped_column(String(DIGEST_LENGTH))
    guideline: Mapped[int]
    view: Mapped[str] = mapped_column(String(20))
    revealed: Mapped[int | None]
    visible: Mapped[dict[str, Any]] = mapped_column(StoredJson("label_events.visible", dict[str, bool]))

    __table_args__ = (
        UniqueConstraint("user_id", "key"),
        CheckConstraint("step >= 0", name="step"),
        CheckConstraint("cause IN ('', 'undo', 'redo')", name="cause"),
        CheckConstraint("(cause = '') = (of IS NULL)", name="cause_of"),
        Index("ix_label_events_campaign_id", "campaign_id", "id"),
        Index("ix_label_events_slot_id", "slot_id", "id"),
        Index("ix_label_events_item_id", "item_id", "id"),
    )


class ExposureRow(Base):
    """That a person has seen, on another page, something of a text that a blind campaign hides: the `scores` of
    evaluators, the `gold`, the `labels` of others, or which `equations` fail. The text is a problem with its steps,
    in whichever dataset or in none; `text_digest` is `Trace.text_digest`."""

    __tablename__ = "exposures"

    user_id: Mapped[int] = mapped_column(ForeignKey(UserRow.id, ondelete="RESTRICT"), primary_key=True)
    text_digest: Mapped[str] = mapped_column(String(DIGEST_LENGTH), primary_key=True)
    what: Mapped[str] = mapped_column(String(20), primary_key=True)
    moment: Mapped[datetime] = mapped_column(UtcDateTime, default=now)

    __table_args__ = (CheckConstraint("what IN ('scores', 'gold', 'labels', 'equations')", name="what"),)


class DisputeRow(Base):
    """The claim that a benchmark's gold is wrong at a step, 0-based: it says `gold` (NULL: nothing) and should say
    `proposed` (NULL: nothing), both as label names."""

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

    __table_args__ = (
        CheckConstraint("step >= 0", name="step"),
        Index("ix_disputes_trace_id", "trace_id"),
    )


class DisputeEntryRow(Base):
    """What was said of a dispute, and the state that it was put in with it, NULL where it stays as it is."""

    __tablename__ = "dispute_entries"

    id: Mapped[int] = mapped_column(primary_key=True)
    dispute_id: Mapped[int] = mapped_column(ForeignKey("disputes.id", ondelete="RESTRICT"))
    user_id: Mapped[int] = mapped_column(ForeignKey(UserRow.id, ondelete="RESTRICT"))
    state: Mapped[str | None] = mapped_column(String(20))
    text: Mapped[str] = mapped_column(Text)
    moment: Mapped[datetime] = mapped_column(UtcDateTime, default=now)

    __table_args__ = (
        CheckConstraint("state IN ('open', 'accepted', 'rejected', 'withdrawn')", name="state"),
        Index("ix_dispute_entries_dispute_id", "dispute_id", "id"),
    )
