"""Exporting a campaign and its complete event log as JSON Lines.

The file contains the campaign, its guidelines, its traces with their slots, and its events:

    {"format": "stepsight-events", "version": 1, "campaign": {"name": "check", "dataset": "mr-math-invalid", …}}
    {"guideline": 1, "text": "…", "created": "…", "created_by": "eve"}
    {"item": 0, "dataset": "mr-math-invalid", "trace": "7", "digest": "…", "chosen": "random", "slots": [
        {"number": 0, "state": "submitted", "annotator": "ada", "taken": "…", "expires": null, "ended": "…"}]}
    {"event": "label", "item": 0, "slot": 0, "annotator": "ada", "step": 2, "old": null, "new": "neg", …}

`item` is the position in the queue. `slot` is the number of the slot within the item, or null for a decision.
`step` is 0-based. `of` is the key of the event, by the same person, that is undone or redone. The only database ids
in the file are in `conditions`, which record how the traces were chosen.
"""

import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import BeforeValidator, ConfigDict, Field, model_validator
from sqlalchemy import select
from sqlalchemy.orm import Session, aliased

from stepsight.core.errors import UserError
from stepsight.core.trace import check_text
from stepsight.core.validation import ListOf, Model, checked, choice, invalid, validate
from stepsight.storage.database.labelling_schema import (
    CampaignAnnotatorRow,
    CampaignRow,
    EventRow,
    GuidelineRow,
    ItemRow,
    SlotRow,
)
from stepsight.storage.database.schema import DatasetRow, EvaluatorRow, TraceRow, UserRow, check_name
from stepsight.storage.database.store import Store, snapshot
from stepsight.storage.database.stored_json import EvaluatorFacts
from stepsight.storage.importers.rows.fields import describe
from stepsight.storage.labelling.annotation import (
    DECIDE,
    EVIDENCE,
    KINDS,
    SUGGEST,
    Count,
    NewEvent,
    check_event,
    is_value_of,
)
from stepsight.storage.labelling.campaigns import Campaign
from stepsight.storage.labelling.plan import CampaignSettings

AGAIN = "Export the campaign again."


def _parse_moment(value: object) -> datetime:
    """Parse an ISO timestamp, which must have a time zone."""
    try:
        moment = datetime.fromisoformat(str(value))
    except ValueError:
        raise invalid(f"{value!r:.40} is not a date and time.") from None
    if moment.tzinfo is None:
        raise invalid(f"{value!r:.40} has no time zone.", "Add one, such as +00:00.")
    return moment.astimezone(UTC)


Text = Annotated[str, checked(check_text, "the text")]
Name = Annotated[str, checked(check_name, "the name")]
Moment = Annotated[datetime, BeforeValidator(_parse_moment)]
Version = Annotated[int, Field(ge=1, lt=2**31)]
Word = Annotated[str, Field(max_length=20)]


class LabelRow(Model):
    """The base class of all lines of a log."""

    model_config = ConfigDict(extra="ignore")


class EvaluatorLine(LabelRow):
    """The evaluator of a campaign, with fields of `EvaluatorRow`."""

    name: Name
    fingerprint: Name
    format: Name
    attention: Name
    info: Annotated[dict[str, Any], checked(lambda facts: validate(EvaluatorFacts, facts, "the facts"))]


class CampaignLine(CampaignSettings):
    """The first line of a log, which describes the campaign: its settings, and what `CampaignRow` has beside them,
    with names for references to other tables."""

    model_config = ConfigDict(extra="ignore")

    name: Text
    dataset: Text
    created: Moment
    closed: Moment | None
    restricted: bool
    evaluator: EvaluatorLine | None
    created_by: Text
    annotators: ListOf[Text]


class GuidelineLine(LabelRow):
    """A line of a log with a version of the guideline."""

    guideline: Version
    text: Text
    created: Moment
    created_by: Text


class SlotLine(LabelRow):
    """A slot of an item. It has the fields of `SlotRow`, except that the annotator is given by name."""

    number: Count
    state: Word
    annotator: Text | None
    taken: Moment | None
    expires: Moment | None
    ended: Moment | None


class ItemLine(LabelRow):
    """A line of a log with an item of the queue. `item` is its position in the queue."""

    item: Count
    dataset: Text
    trace: Text
    digest: str
    chosen: Word
    slots: ListOf[SlotLine]


class EventLine(NewEvent):
    """A line of a log with an event. It has the fields of `EventRow`, except that the kind is in `event` and that
    the item, slot and annotator are given by position, number and name. `of` is the key of another event."""

    model_config = ConfigDict(extra="ignore")

    kind: Annotated[str, choice((*KINDS, SUGGEST, DECIDE))] = Field(validation_alias="event")
    cause: Annotated[str, choice(("", "undo", "redo"))]
    item: Count
    slot: Count | None
    annotator: Text
    old: Any
    moment: Moment
    digest: str
    guideline: Count
    view: Word

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.kind == DECIDE:
            if not isinstance(self.new, dict) or self.step is None:
                raise UserError("a decision without a step or a label.")
        elif self.kind != SUGGEST:
            self.check_value()
        for name in ("old", "new"):
            value = getattr(self, name)
            if value is not None and not is_value_of(self.kind, value):
                raise UserError(f"{name} is {describe(value)}, but {self.kind!r} events have none.", AGAIN)
        return self

    def check_steps(self, steps: int) -> None:
        """Raise `UserError` if the event is impossible in a trace with `steps` steps."""
        if self.step is not None and self.step >= steps:
            raise UserError(f"the step is {self.step}, expected 0 to {steps - 1}.")
        if self.kind == SUGGEST and (self.new is None or len(self.new) != steps):
            raise UserError("the suggestions are not a label or null per step.")
        if self.kind == EVIDENCE and self.new is not None and not (self.step or 0) < self.new < steps:
            raise UserError(
                f"step {self.step} is linked to step {self.new}.", "A link must lead to a later step of the trace."
            )


FORMAT, VERSION = "stepsight-events", 1
EVALUATOR = tuple(EvaluatorLine.model_fields)
SLOT = tuple(name for name in SlotLine.model_fields if name != "annotator")
EVENT = tuple(
    column.name
    for column in EventRow.__table__.columns
    if not (column.foreign_keys or column.name in ("id", "kind"))
)
"""The columns of evaluators, slots and events that are in a file as they are."""
# Otherwise all rows would be fetched at once.
_IN_PARTS = {"yield_per": 500}

Row = dict[str, Any]


def write_events(store: Store, campaign: Campaign, path: Path) -> int:
    """Write the log of a campaign to a file and return the number of events."""
    events = 0
    with open(path, "w", encoding="utf-8") as file, snapshot(store) as session:
        for row in iterate_rows(session, campaign.id):
            file.write(f"{line(row)}\n")
            events += "event" in row
    return events


def iterate_rows(session: Session, campaign_id: int) -> Iterator[Row]:
    """Yield the rows of the file, holding only a few in memory at a time."""
    yield {"format": FORMAT, "version": VERSION, "campaign": _campaign(session, campaign_id)}
    yield from _guidelines(session, campaign_id)
    yield from _items(session, campaign_id)
    yield from _events(session, campaign_id)


def _campaign(session: Session, campaign_id: int) -> Row:
    row = session.get_one(CampaignRow, campaign_id)
    evaluator = None if row.evaluator_id is None else session.get_one(EvaluatorRow, row.evaluator_id)
    names = select(UserRow.name).join(CampaignAnnotatorRow, CampaignAnnotatorRow.user_id == UserRow.id)
    names = names.where(CampaignAnnotatorRow.campaign_id == campaign_id).order_by(UserRow.name)
    return (
        {"name": row.name, "dataset": session.get_one(DatasetRow, row.dataset_id).name}
        | row.settings
        | {name: as_json(getattr(row, name)) for name in ("created", "closed", "restricted")}
        | {"evaluator": evaluator and {name: getattr(evaluator, name) for name in EVALUATOR}}
        | {"created_by": session.get_one(UserRow, row.created_by).name}
        | {"annotators": list(session.scalars(names))}
    )


def _guidelines(session: Session, campaign_id: int) -> Iterator[Row]:
    guidelines = (
        select(GuidelineRow, UserRow.name)
        .join(UserRow, UserRow.id == GuidelineRow.created_by)
        .where(GuidelineRow.campaign_id == campaign_id)
        .order_by(GuidelineRow.version)
    )
    for row, name in session.execute(guidelines):
        yield {"guideline": row.version, "text": row.text, "created": as_json(row.created), "created_by": name}


def _items(session: Session, campaign_id: int) -> Iterator[Row]:
    row = ItemRow
    columns = (row.id, row.place, DatasetRow.name, TraceRow.external_id, row.digest, row.chosen)
    items = select(*columns).join(TraceRow, TraceRow.id == ItemRow.trace_id)
    items = items.join(DatasetRow, DatasetRow.id == TraceRow.dataset_id)
    items = items.where(ItemRow.campaign_id == campaign_id).order_by(ItemRow.place)
    for part in session.execute(items, execution_options=_IN_PARTS).partitions():
        slots = _slots(session, [item.id for item in part])
        for id, place, dataset, trace, digest, chosen in part:
            item = {"item": place, "dataset": dataset, "trace": trace, "digest": digest, "chosen": chosen}
            yield item | {"slots": slots.get(id, [])}


def _slots(session: Session, items: Sequence[int]) -> dict[int, list[Row]]:
    rows = (
        select(SlotRow, UserRow.name)
        .outerjoin(UserRow, UserRow.id == SlotRow.user_id)
        .where(SlotRow.item_id.in_(items))
        .order_by(SlotRow.item_id, SlotRow.number)
    )
    slots: dict[int, list[Row]] = {}
    for row, name in session.execute(rows):
        slot = {column: as_json(getattr(row, column)) for column in SLOT} | {"annotator": name}
        slots.setdefault(row.item_id, []).append(slot)
    return slots


def _events(session: Session, campaign_id: int) -> Iterator[Row]:
    about = aliased(EventRow)
    events = (
        select(EventRow, ItemRow.place, SlotRow.number, UserRow.name, about.key)
        .join(ItemRow, ItemRow.id == EventRow.item_id)
        .join(UserRow, UserRow.id == EventRow.user_id)
        .outerjoin(SlotRow, SlotRow.id == EventRow.slot_id)
        .outerjoin(about, about.id == EventRow.of)
        .where(EventRow.campaign_id == campaign_id)
        .order_by(EventRow.id)
    )
    for event, place, number, name, undone in session.execute(events, execution_options=_IN_PARTS):
        row = {"event": check_event(event).kind, "item": place, "slot": number, "annotator": name}
        yield row | {column: as_json(getattr(event, column)) for column in EVENT} | {"of": undone}


def as_json(value: Any) -> Any:
    """Convert a value for JSON: a `datetime` becomes ISO text, and anything else stays as it is."""
    return value.isoformat() if isinstance(value, datetime) else value


def line(row: Row) -> str:
    """Serialise a row as one line of JSON."""
    return json.dumps(row, ensure_ascii=False, allow_nan=False)
