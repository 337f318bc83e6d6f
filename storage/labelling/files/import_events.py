"""Importing a campaign and its complete event log, as written by `storage.labelling.files.export_events`."""

from collections.abc import Iterator
from itertools import chain, zip_longest
from typing import Any

from sqlalchemy import insert, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from stepsight.core.errors import UserError, located
from stepsight.core.validation import validate
from stepsight.storage.database.labelling_schema import (
    CampaignAnnotatorRow,
    CampaignRow,
    EventRow,
    GuidelineRow,
    ItemRow,
    SlotRow,
)
from stepsight.storage.database.schema import DatasetRow, TraceRow, UserRow, check_name
from stepsight.storage.importers.rows.fields import field
from stepsight.storage.importers.rows.kind import Row
from stepsight.storage.judgments.evaluators import add_evaluator
from stepsight.storage.labelling.files.export_events import (
    AGAIN,
    EVALUATOR,
    EVENT,
    FORMAT,
    SLOT,
    VERSION,
    CampaignLine,
    EventLine,
    GuidelineLine,
    ItemLine,
    iterate_rows,
)
from stepsight.storage.labelling.plan import Ordering
from stepsight.storage.people.users import LOCAL, Role, find_row

# The number of events held in memory at once.
_BATCH = 500
# Settings of a campaign that earlier versions had.
_EARLIER = ("planted_share", "qualification_right", "asks_evidence", "random_share")
# Kinds of events in the logs of earlier versions that concern labels which no longer exist. They are skipped.
_GONE_KINDS = ("borders", "outcome", "repaired", "notices")

Located = Iterator[tuple[str, Row]]


class PersonLookup:
    """Looks up people by name within a transaction.

    A missing person is added as an annotator without a password, who cannot log in until they get one.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._ids: dict[str, int] = {}

    def id(self, name: str) -> int:
        """Return the database id of the person with this name. Raises `UserError` if the name is invalid."""
        if name not in self._ids:
            check_name(name, "the name of a person")
            row = find_row(self._session, name)
            if row is None:
                role = Role.ADMIN if name == LOCAL else Role.ANNOTATOR
                row = UserRow(name=name, role=role.value)
                self._session.add(row)
                self._session.flush()
            self._ids[name] = row.id
        return self._ids[name]


class EventImporter:
    """Stores the campaign in a file within a transaction, replacing names with the ids of this store.

    `name` replaces the campaign's name in the file. If a campaign of this name already exists, it must equal the
    one in the file; `repeated` is then True, and nothing is stored. `events` and `items` count what was stored.
    Raises `UserError`, with a message that names the line, if the file is invalid or the campaigns differ.
    """

    def __init__(self, session: Session, rows: Located, name: str | None) -> None:
        self._session = session
        self._rows = ((where, _without_earlier(row)) for where, row in rows if row.get("event") not in _GONE_KINDS)
        self.events = self.items = 0
        self.repeated = False
        self.persons = PersonLookup(session)
        where, head = next(self._rows)
        with located(where):
            _check_version(head)
            self._campaign = validate(CampaignLine, field(head, "campaign"), "the campaign")
            self.name = check_name(name or self._campaign.name, "the name of the campaign")
        self._head = where, head | {"campaign": self._campaign.model_copy(update={"name": self.name})}
        self._steps: dict[int, tuple[int, int, str]] = {}
        self._slots: dict[tuple[int, int], int] = {}
        self._waiting: list[tuple[str, dict[str, Any]]] = []

    def run(self) -> None:
        """Store the whole file, unless the campaign already exists."""
        campaign_id = self._session.scalar(select(CampaignRow.id).where(CampaignRow.name == self.name))
        if campaign_id is not None:
            self._compare(campaign_id)
            return
        with located(self._head[0]):
            self._id = self._create_campaign()
        for where, row in self._rows:
            if row.get("of") is not None or len(self._waiting) >= _BATCH:
                self._flush()
            with located(where):
                self._add_line(where, row)
        self._flush()

    def _add_line(self, where: str, row: Row) -> None:
        if "event" in row:
            self._waiting.append((where, self._event(validate(EventLine, row, "the line"))))
        elif "item" in row:
            self._add_item(validate(ItemLine, row, "the line"))
        elif "guideline" in row:
            self._add_guideline(validate(GuidelineLine, row, "the line"))
        else:
            raise UserError("neither a guideline nor an item nor an event.", AGAIN)

    def _compare(self, campaign_id: int) -> None:
        stored = iterate_rows(self._session, campaign_id)
        first = next(stored)
        # Compared as parsed: a log may lack settings that were added after it was written.
        head = first | {"campaign": validate(CampaignLine, first["campaign"], "the campaign")}
        last = self._head[0]
        for known, given in zip_longest(chain([head], stored), chain([self._head], self._rows)):
            last = given[0] if given is not None else last
            if given is None or known != given[1]:
                raise UserError(
                    f"{last}: the campaign {self.name!r} in the store differs from here on.",
                    "Import into a store that does not have it.",
                )
            self.events += "event" in given[1]
            self.items += "event" not in given[1] and "item" in given[1]
        self.repeated = True

    def _create_campaign(self) -> int:
        line = self._campaign
        dataset_id = self._session.scalar(select(DatasetRow.id).where(DatasetRow.name == line.dataset))
        if dataset_id is None:
            raise UserError(f"there is no dataset {line.dataset!r}.", "Import the traces first.")
        evaluator_id = None
        if line.evaluator is not None:
            evaluator = {name: getattr(line.evaluator, name) for name in EVALUATOR}
            evaluator_id = add_evaluator(self._session, evaluator).id
        values = line.columns() | {
            "name": self.name,
            "dataset_id": dataset_id,
            "created": line.created,
            "created_by": self.persons.id(line.created_by),
            "closed": line.closed,
            "restricted": line.restricted,
            "evaluator_id": evaluator_id,
        }
        campaign_id = self._insert(CampaignRow, values)
        for name in line.annotators:
            row = {"campaign_id": campaign_id, "user_id": self.persons.id(name), "added_by": values["created_by"]}
            self._session.execute(insert(CampaignAnnotatorRow).values(**row))
        return campaign_id

    def _add_guideline(self, line: GuidelineLine) -> None:
        values = {"campaign_id": self._id, "version": line.guideline, "text": line.text, "created": line.created}
        created_by = self.persons.id(line.created_by)
        try:
            self._session.execute(insert(GuidelineRow).values(**values, created_by=created_by))
        except IntegrityError:
            raise UserError("the guideline occurs twice.", AGAIN) from None

    def _add_item(self, line: ItemLine) -> None:
        traces = (
            select(TraceRow.id, TraceRow.digest, TraceRow.text_digest, TraceRow.n_steps)
            .join(DatasetRow, DatasetRow.id == TraceRow.dataset_id)
            .where(DatasetRow.name == line.dataset, TraceRow.external_id == line.trace)
        )
        trace = self._session.execute(traces).one_or_none()
        if trace is None:
            message = f"the dataset {line.dataset!r} has no trace {line.trace!r}."
            raise UserError(message, "Import the traces first.")
        if trace.digest != line.digest:
            raise UserError(
                f"the trace {line.trace!r} of {line.dataset!r} differs from the one that was labelled.",
                "Its text or gold differs. Import the file that was labelled.",
            )
        values = {"campaign_id": self._id, "trace_id": trace.id, "place": line.item, "chosen": line.chosen}
        digests = {"digest": trace.digest, "text_digest": trace.text_digest}
        item_id = self._insert(ItemRow, values | digests)
        self._steps[line.item] = item_id, trace.n_steps, trace.digest
        for slot in line.slots:
            columns = {name: getattr(slot, name) for name in SLOT} | {"campaign_id": self._id, "item_id": item_id}
            columns["user_id"] = None if slot.annotator is None else self.persons.id(slot.annotator)
            self._slots[line.item, slot.number] = self._insert(SlotRow, columns)
        self.items += 1

    def _event(self, line: EventLine) -> dict[str, Any]:
        if line.item not in self._steps:
            raise UserError(f"the item is {line.item}, which no earlier line has.")
        if line.slot is not None and (line.item, line.slot) not in self._slots:
            raise UserError(f"the slot is {line.slot}, which item {line.item} does not have.")
        item_id, steps, digest = self._steps[line.item]
        line.check_steps(steps)
        if line.digest != digest:
            raise UserError("the event is about a different text from its item's.")
        user_id = self.persons.id(line.annotator)
        return {name: getattr(line, name) for name in EVENT} | {
            "kind": line.kind,
            "campaign_id": self._id,
            "item_id": item_id,
            "slot_id": None if line.slot is None else self._slots[line.item, line.slot],
            "user_id": user_id,
            "of": None if line.of is None else self._find_earlier(user_id, line.of),
        }

    def _find_earlier(self, user_id: int, key: str) -> int:
        """Return the id of the event with this key, which an undo or redo refers to."""
        same = (EventRow.campaign_id == self._id, EventRow.user_id == user_id, EventRow.key == key)
        event_id = self._session.scalar(select(EventRow.id).where(*same))
        if event_id is None:
            raise UserError(f"it refers to the event {key!r:.80}, which no earlier line has.")
        return event_id

    def _flush(self) -> None:
        if not self._waiting:
            return
        self._refuse_stored()
        rows = [row for _, row in self._waiting]
        try:
            self._session.execute(insert(EventRow), rows, execution_options={"render_nulls": True})
        except IntegrityError:
            places = f"{self._waiting[0][0]} to {self._waiting[-1][0].rpartition(' ')[2]}"
            raise UserError(f"{places}: an event contradicts another or itself.", AGAIN) from None
        self.events += len(rows)
        self._waiting = []

    def _refuse_stored(self) -> None:
        keys = [row["key"] for _, row in self._waiting]
        events = select(EventRow.user_id, EventRow.key, CampaignRow.name)
        events = events.join(CampaignRow, CampaignRow.id == EventRow.campaign_id).where(EventRow.key.in_(keys))
        stored = {(user_id, key): name for user_id, key, name in self._session.execute(events)}
        for where, row in self._waiting:
            name = stored.get((row["user_id"], row["key"]))
            if name is not None:
                raise UserError(
                    f"{where}: the event is already in the store, in the campaign {name!r}.",
                    "A log can be imported only once.",
                )

    def _insert(self, model: Any, values: dict[str, Any]) -> int:
        try:
            return int(self._session.scalars(insert(model).values(**values).returning(model.id)).one())
        except IntegrityError:
            raise UserError("it contradicts another line, or itself.", AGAIN) from None


def _without_earlier(row: Row) -> Row:
    """Return a row without what only versions before 1.0.0 wrote."""
    row = {name: value for name, value in row.items() if name not in ("chance", "visible")}
    if isinstance(campaign := row.get("campaign"), dict):
        row["campaign"] = {name: value for name, value in campaign.items() if name not in _EARLIER}
        if campaign.get("ordering") in ("information", "change", "disagreement"):
            row["campaign"]["ordering"] = Ordering.FILE.value
    if isinstance(slots := row.get("slots"), list):
        row["slots"] = [
            {name: value for name, value in slot.items() if name != "qualification"}
            if isinstance(slot, dict)
            else slot
            for slot in slots
        ]
    return row


def _check_version(head: Row) -> None:
    """Raise `UserError` if the format or version in the first line of the file is not the current one."""
    if head.get("format") != FORMAT:
        raise UserError(
            f"the format is {head.get('format')!r}, expected {FORMAT!r}.",
            "Write the log of a campaign with stepsight export labels NAME FILE --format events.",
        )
    if head.get("version") != VERSION:
        raise UserError(
            f"the version of {FORMAT!r} is {head.get('version')!r}, expected {VERSION}.",
            "Update StepSight, or export the campaign again.",
        )
