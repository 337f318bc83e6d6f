"""Exporting a campaign and its complete event log as JSON Lines.

The file contains the campaign, its guidelines, its traces with their slots, and its events:

    {"format": "stepsight-events", "version": 1, "campaign": {"name": "check", "dataset": "mr-math-invalid", …}}
    {"guideline": 1, "text": "…", "created": "…", "created_by": "eve"}
    {"item": 0, "dataset": "mr-math-invalid", "trace": "7", "digest": "…", "chosen": "random", "slots": [
        {"number": 0, "state": "submitted", "annotator": "ada", "taken": "…", "expires": null, "ended": "…"}]}
    {"event": "label", "item": 0, "slot": 0, "annotator": "ada", "step": 2, "old": null, "new": "neg", …}

`item` is the position in the queue. `slot` is the number of the slot within the item, or null for a decision.
`step` is 0-based. `of` is the key of the event, by the same person, that is undone or redone. The only database ids
in the file are in `conditions`, which record how the traces were chosen. If the campaign begins with gold items,
its line has `qualification_items`.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session, aliased

from stepsight.storage.database.labelling_schema import (
    CampaignAnnotatorRow,
    CampaignRow,
    EventRow,
    GuidelineRow,
    ItemRow,
    SlotRow,
)
from stepsight.storage.database.people_schema import UserRow
from stepsight.storage.database.schema import DatasetRow, EvaluatorRow, TraceRow
from stepsight.storage.database.store import Store, snapshot
from stepsight.storage.labelling.annotation import check_event
from stepsight.storage.labelling.campaigns import Campaign
from stepsight.storage.labelling.files.formats.label_format import line
from stepsight.storage.labelling.files.rows import EvaluatorLine, SlotLine

FORMAT, VERSION = "stepsight-events", 1
OPTIONAL = ("qualification_items", "asks_evidence")
"""The settings that are in a file only if they are not 0 or false, as earlier versions know none of them."""
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
    return (
        {"name": row.name, "dataset": session.get_one(DatasetRow, row.dataset_id).name}
        | {name: value for name, value in row.settings.items() if value or name not in OPTIONAL}
        | {name: as_json(getattr(row, name)) for name in ("created", "closed", "restricted")}
        | {"evaluator": evaluator and {name: getattr(evaluator, name) for name in EVALUATOR}}
        | {"created_by": session.get_one(UserRow, row.created_by).name}
        | {"annotators": _annotators(session, campaign_id)}
    )


def _annotators(session: Session, campaign_id: int) -> list[str]:
    names = select(UserRow.name).join(CampaignAnnotatorRow, CampaignAnnotatorRow.user_id == UserRow.id)
    mine = CampaignAnnotatorRow.campaign_id == campaign_id
    return list(session.scalars(names.where(mine).order_by(UserRow.name)))


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
    wanted = select(*columns).join(TraceRow, TraceRow.id == ItemRow.trace_id)
    wanted = wanted.join(DatasetRow, DatasetRow.id == TraceRow.dataset_id)
    wanted = wanted.where(ItemRow.campaign_id == campaign_id).order_by(ItemRow.place)
    for part in session.execute(wanted, execution_options=_IN_PARTS).partitions():
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
    for event, place, number, name, of in session.execute(events, execution_options=_IN_PARTS):
        row = {"event": check_event(event).kind, "item": place, "slot": number, "annotator": name}
        yield row | {column: as_json(getattr(event, column)) for column in EVENT} | {"of": of}


def as_json(value: Any) -> Any:
    """Convert a value for JSON: a `datetime` becomes ISO text, and anything else stays as it is."""
    return value.isoformat() if isinstance(value, datetime) else value
