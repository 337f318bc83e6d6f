"""Reading a campaign with its whole log back, as `storage.labelling.files.export_events` writes it."""

from collections.abc import Iterator
from itertools import zip_longest
from typing import Any

from sqlalchemy import JSON, String, insert, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from stepsight.core.errors import UserError
from stepsight.core.validation import validate
from stepsight.storage.database.labelling_schema import CampaignRow, EventRow, GuidelineRow, ItemRow, SlotRow
from stepsight.storage.database.schema import Base, DatasetRow, TraceRow, UtcDateTime, check_name
from stepsight.storage.importers.fields import describe, field, listed, located, text, whole
from stepsight.storage.importers.kind import Row
from stepsight.storage.judgments.evaluators import add_evaluator
from stepsight.storage.labelling.annotation import NewEvent
from stepsight.storage.labelling.files.answer_file import moment
from stepsight.storage.labelling.files.export_events import (
    EVALUATOR,
    EVENT,
    FORMAT,
    SETTINGS,
    SLOT,
    VERSION,
    iterate_rows,
)
from stepsight.storage.labelling.files.import_answers import PersonLookup
from stepsight.storage.labelling.results.decisions import KIND as DECIDE

# Events held in memory at once.
_BATCH = 500
_LARGEST = 2**31 - 1
_WORDS = {int: "a whole number", float: "a number", bool: "true or false", str: "a text"}
_AGAIN = "Export the campaign again."

Located = Iterator[tuple[str, Row]]


class EventImporter:
    """Stores the campaign of a file within a transaction, with the numbers of this store.

    `name` takes the place of the file's where it is given. A campaign of that name that is there already must be
    the very same; then nothing is stored. Counts `events` and `items`. Raises `UserError` with the line on anything
    else.
    """

    def __init__(self, session: Session, rows: Located, name: str | None) -> None:
        self._session, self._rows = session, rows
        self.events = self.items = 0
        self.known = False
        self.persons = PersonLookup(session)
        where, head = next(rows)
        with located(where):
            self._campaign = _head(head)
            self.name = check_name(name or text(self._campaign, "name"), "the name of the campaign")
        self._head = where, head | {"campaign": self._campaign | {"name": self.name}}
        self._steps: dict[int, tuple[int, int, str]] = {}
        self._slots: dict[tuple[int, int], int] = {}
        self._waiting: list[tuple[str, dict[str, Any]]] = []

    def read(self) -> None:
        """Store everything, or find that it is there."""
        found = select(CampaignRow.id).where(CampaignRow.name == self.name)
        if (known := self._session.scalar(found)) is not None:
            self._compare(known)
            return
        with located(self._head[0]):
            self._id = self._make_campaign()
        for where, row in self._rows:
            if row.get("of") is not None or len(self._waiting) >= _BATCH:
                self._flush()
            with located(where):
                self._take(where, row)
        self._flush()

    def _take(self, where: str, row: Row) -> None:
        if "event" in row:
            self._waiting.append((where, self._event(row)))
        elif "item" in row:
            self._item(row)
        elif "guideline" in row:
            self._guideline(row)
        else:
            raise UserError("neither a guideline nor an item nor an event.", _AGAIN)

    def _compare(self, campaign_id: int) -> None:
        ours = iterate_rows(self._session, campaign_id)
        last = self._head[0]
        for mine, theirs in zip_longest(ours, self._everything()):
            last = theirs[0] if theirs is not None else last
            if theirs is None or mine != theirs[1]:
                raise UserError(
                    f"{last}: the campaign {self.name!r} is in the store, and not the same from here on.",
                    "Import into a store that does not have it.",
                )
            self.events += "event" in theirs[1]
            self.items += "event" not in theirs[1] and "item" in theirs[1]
        self.known = True

    def _everything(self) -> Located:
        yield self._head
        yield from self._rows

    def _make_campaign(self) -> int:
        row = self._campaign
        dataset = text(row, "dataset")
        dataset_id = self._session.scalar(select(DatasetRow.id).where(DatasetRow.name == dataset))
        if dataset_id is None:
            raise UserError(f"there is no dataset {dataset!r}.", "Import the traces first.")
        evaluator = field(row, "evaluator")
        values = {name: _value(CampaignRow, row, name) for name in SETTINGS} | {
            "name": self.name,
            "dataset_id": dataset_id,
            "created_by": self.persons.id(text(row, "created_by")),
            "evaluator_id": None if evaluator is None else self._evaluator(evaluator),
        }
        return int(self._insert(CampaignRow, values))

    def _evaluator(self, row: Row) -> int:
        return add_evaluator(self._session, {name: field(row, name) for name in EVALUATOR}).id

    def _guideline(self, row: Row) -> None:
        values = {
            "campaign_id": self._id,
            "version": whole(row["guideline"], 1, _LARGEST, "the guideline", "a version from 1"),
            "text": text(row, "text"),
            "created": moment(row, "created"),
            "created_by": self.persons.id(text(row, "created_by")),
        }
        try:
            self._session.execute(insert(GuidelineRow).values(**values))
        except IntegrityError:
            raise UserError("the guideline stands twice in the file.", _AGAIN) from None

    def _item(self, row: Row) -> None:
        place = whole(row["item"], 0, _LARGEST, "the item", "a place from 0")
        found = (
            select(TraceRow.id, TraceRow.digest, TraceRow.n_steps)
            .join(DatasetRow, DatasetRow.id == TraceRow.dataset_id)
            .where(DatasetRow.name == text(row, "dataset"), TraceRow.external_id == text(row, "trace"))
        )
        trace = self._session.execute(found).one_or_none()
        if trace is None:
            raise UserError(
                f"the dataset {row['dataset']!r} has no trace {row['trace']!r}.", "Import the traces first."
            )
        if trace.digest != field(row, "digest"):
            raise UserError(
                f"the trace {row['trace']!r} of {row['dataset']!r} is another one than was labelled.",
                "Its text or gold differs. Import the file that was labelled.",
            )
        values = {"campaign_id": self._id, "trace_id": trace.id, "digest": trace.digest, "place": place}
        item = int(self._insert(ItemRow, values | {"chosen": text(row, "chosen")}))
        self._steps[place] = item, trace.n_steps, trace.digest
        for slot in listed(row, "slots"):
            self._slot(place, item, slot)
        self.items += 1

    def _slot(self, place: int, item: int, row: Row) -> None:
        annotator = field(row, "annotator")
        values = {name: _value(SlotRow, row, name) for name in SLOT} | {"campaign_id": self._id, "item_id": item}
        values["user_id"] = None if annotator is None else self.persons.id(annotator)
        number = whole(values["number"], 0, _LARGEST, "the slot", "a number from 0")
        self._slots[place, number] = int(self._insert(SlotRow, values))

    def _event(self, row: Row) -> dict[str, Any]:
        place, slot = field(row, "item"), field(row, "slot")
        if place not in self._steps:
            raise UserError(f"the item is {describe(place)}, which stands nowhere before.")
        if slot is not None and (place, slot) not in self._slots:
            raise UserError(f"the slot is {describe(slot)}, which item {place} does not have.")
        item, steps, digest = self._steps[place]
        _check_event(row, steps)
        if field(row, "digest") != digest:
            raise UserError("the event is about another text than its item.")
        user = self.persons.id(text(row, "annotator"))
        return {name: _value(EventRow, row, name) for name in EVENT} | {
            "kind": row["event"],
            "campaign_id": self._id,
            "item_id": item,
            "slot_id": None if slot is None else self._slots[place, slot],
            "user_id": user,
            "of": None if field(row, "of") is None else self._earlier(user, text(row, "of")),
        }

    def _earlier(self, user_id: int, key: str) -> int:
        """The event that one is about which takes it back or repeats it."""
        mine = (EventRow.campaign_id == self._id, EventRow.user_id == user_id, EventRow.key == key)
        found = self._session.scalar(select(EventRow.id).where(*mine))
        if found is None:
            raise UserError(f"it is of the event {describe(key)}, which stands nowhere before.")
        return found

    def _flush(self) -> None:
        if not self._waiting:
            return
        self._refuse_known()
        rows = [row for _, row in self._waiting]
        try:
            self._session.execute(insert(EventRow), rows, execution_options={"render_nulls": True})
        except IntegrityError:
            places = f"{self._waiting[0][0]} to {self._waiting[-1][0].rpartition(' ')[2]}"
            raise UserError(f"{places}: an event contradicts another or itself.", _AGAIN) from None
        self.events += len(rows)
        self._waiting = []

    def _refuse_known(self) -> None:
        keys = [row["key"] for _, row in self._waiting]
        found = select(EventRow.user_id, EventRow.key, CampaignRow.name)
        found = found.join(CampaignRow, CampaignRow.id == EventRow.campaign_id).where(EventRow.key.in_(keys))
        known = {(user, key): name for user, key, name in self._session.execute(found)}
        for where, row in self._waiting:
            if (row["user_id"], row["key"]) in known:
                name = known[row["user_id"], row["key"]]
                raise UserError(
                    f"{where}: the event is in the store already, in the campaign {name!r}.",
                    "A log is imported once; copies of its answers go by the format jsonl.",
                )

    def _insert(self, model: Any, values: dict[str, Any]) -> int:
        try:
            return int(self._session.scalars(insert(model).values(**values).returning(model.id)).one())
        except IntegrityError:
            raise UserError("it contradicts another line, or itself.", _AGAIN) from None


def _head(row: Row) -> Row:
    if (row.get("format"), row.get("version")) != (FORMAT, VERSION):
        raise UserError(
            f"the file is of {row.get('format')!r} {row.get('version')!r}, expected {FORMAT!r} {VERSION}.",
            "Update StepSight, or export the campaign again.",
        )
    campaign = field(row, "campaign")
    if not isinstance(campaign, dict):
        raise UserError(f"the campaign is {describe(campaign)}, expected an object.")
    return campaign


def _check_event(row: Row, steps: int) -> None:
    """Raises `UserError` where no person could have done it."""
    kind, step = field(row, "event"), field(row, "step")
    if step is not None:
        whole(step, 0, steps - 1, "the step", f"0 to {steps - 1}")
    text(row, "key")
    whole(field(row, "guideline"), 0, _LARGEST, "the guideline", "a version")
    if not isinstance(field(row, "visible"), dict):
        raise UserError(f"the field 'visible' is {describe(row['visible'])}, expected an object.")
    if kind != DECIDE:
        event = {"kind": kind, "key": row["key"], "step": step, "new": field(row, "new")}
        validate(NewEvent, event | {"seconds": field(row, "seconds")})
    elif not isinstance(field(row, "new"), dict) or step is None:
        raise UserError("a decision without a step or a label.")


def _value(model: type[Base], row: Row, name: str) -> Any:
    """A field that a column takes. Raises `UserError` where it does not."""
    column, found = model.__table__.c[name], field(row, name)
    if found is None and column.nullable:
        return None
    if isinstance(column.type, JSON):
        return found
    if isinstance(column.type, UtcDateTime):
        return moment(row, name)
    wanted = column.type.python_type
    fits = type(found) is wanted or (wanted is float and type(found) is int)
    if not fits or (wanted is int and not 0 <= found <= _LARGEST):
        raise UserError(f"the field {name!r} is {describe(found)}, expected {_WORDS[wanted]}.")
    if isinstance(column.type, String) and len(found) > (column.type.length or len(found)):
        raise UserError(f"the field {name!r} has {len(found):,} characters.", f"Expected {column.type.length}.")
    return found
