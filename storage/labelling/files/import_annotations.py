"""Importing annotations from a file into a campaign, which is created if it does not exist."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import func, insert, select, update
from sqlalchemy.orm import Session

from stepsight.core.errors import UserError
from stepsight.storage.database.labelling_schema import CampaignRow, EventRow, GuidelineRow, ItemRow, SlotRow
from stepsight.storage.database.people_schema import UserRow
from stepsight.storage.database.schema import DatasetRow, TraceRow, check_name, now
from stepsight.storage.database.store import Store
from stepsight.storage.database.upsert import insert_once
from stepsight.storage.importers.rows.fields import canonical
from stepsight.storage.labelling.assignments import FREE, SUBMITTED
from stepsight.storage.labelling.error_kinds import ERROR_KINDS
from stepsight.storage.labelling.files.formats.jsonl import format_annotation
from stepsight.storage.labelling.files.rows import ImportedAnnotation, ImportedDecision, ImportedTrace, digest
from stepsight.storage.labelling.results.annotations import iterate_annotations
from stepsight.storage.labelling.results.decisions import KIND, Decision, read_decisions
from stepsight.storage.people.exposures import OWN, WHAT
from stepsight.storage.people.users import LOCAL, Role, User, find_row

EventValues = dict[str, Any]


def annotation_events(annotation: ImportedAnnotation, about: str, *, asks: bool) -> Iterator[EventValues]:
    """Yield events that reproduce the annotation, all with the time of its submission.

    The labels given before the next step was seen come first, followed by later changes. The time taken is recorded
    with the submission. `about` identifies the campaign and the trace, so that equal annotations of different
    traces get different keys. `asks` is True if the campaign asks for the evidence of changed labels.
    """
    key = digest(about.encode() + annotation.content)[:32]
    visible = {what: what in annotation.exposed for what in WHAT} | {OWN: annotation.labelled_before}
    every = {
        "moment": annotation.submitted,
        "guideline": annotation.guideline,
        "view": annotation.view,
        "visible": visible,
        "seconds": None,
        "cause": "",
        "of": None,
        "old": None,
    }
    for number, event in enumerate(_events(annotation, asks)):
        yield every | event | {"key": f"import-{key}-{number}"}


def decision_event(decision: ImportedDecision, about: str) -> EventValues:
    """Return the event that records a decision. `about` identifies the campaign and the trace."""
    return {
        "kind": KIND,
        "step": decision.step,
        "old": None,
        "new": {"label": decision.label, "reason": decision.reason, "own": decision.own}
        | ({} if decision.repaired is None else {"repaired": decision.repaired}),
        "moment": decision.moment,
        "visible": {what: what == "labels" for what in WHAT},
        "seconds": None,
        "revealed": None,
        "cause": "",
        "of": None,
        "key": f"import-{digest(about.encode() + decision.content)[:32]}",
    }


def _events(annotation: ImportedAnnotation, asks: bool) -> Iterator[EventValues]:
    steps, stepwise = len(annotation.labels), annotation.view == "stepwise"
    first = annotation.first if stepwise else annotation.labels
    for step, label in enumerate(first):
        seen = step + 1 if stepwise else steps
        if stepwise and step:
            yield _event("reveal", None, seen, seen)
        if label is not None:
            yield _event("label", step, label, seen)
    # If no step was revealed after it, the first label of a step is the submitted one.
    changed = [step for step in range(steps) if annotation.labels[step] != first[step]]
    for step in changed:
        if step < steps - 1:
            yield _change(annotation, step, first[step])
    yield from _evidence(annotation, asks)
    yield from _notes(annotation)
    yield _event("submit", None, None, steps) | {"seconds": annotation.seconds}
    if steps - 1 in changed:
        yield _event("reopen", None, None, steps)
        yield _change(annotation, steps - 1, first[-1])
        yield _event("submit", None, None, steps)


def _notes(annotation: ImportedAnnotation) -> Iterator[EventValues]:
    steps = len(annotation.labels)
    notes: dict[str, Sequence[Any]] = {
        "error": annotation.errors,
        "comment": annotation.comments,
        "correction": annotation.corrections,
        "repaired": annotation.repaired,
        "notices": annotation.notices,
    }
    for kind, values in notes.items():
        for step, value in enumerate(values):
            if value is not None:
                yield _event(kind, step, value, steps)
    if annotation.flag is not None:
        yield _event("flag", None, annotation.flag, steps)
    if annotation.outcome is not None:
        yield _event("outcome", None, annotation.outcome, steps)
    if annotation.borders is not None:
        yield _event("borders", None, list(annotation.borders), steps)


def _change(annotation: ImportedAnnotation, step: int, old: str | None) -> EventValues:
    return _event("label", step, annotation.labels[step], len(annotation.labels)) | {"old": old}


def _evidence(annotation: ImportedAnnotation, asks: bool) -> Iterator[EventValues]:
    """Yield an event for each changed label whose evidence differs from the default, which is the newest step if
    the campaign asks, and otherwise none."""
    steps = len(annotation.labels)
    for step in range(steps) if annotation.view == "stepwise" else ():
        named = annotation.evidence[step] if annotation.evidence else None
        changed = annotation.labels[step] is not None and annotation.first[step] not in (
            None,
            annotation.labels[step],
        )
        default = steps - 1 if changed and asks else None
        if named != default and step < steps - 1:
            yield _event("evidence", step, named, steps) | {"old": default}


def _event(kind: str, step: int | None, new: Any, revealed: int) -> EventValues:
    return {"kind": kind, "step": step, "new": new, "revealed": revealed}


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
                insert_once(self._session, UserRow, [{"name": name, "role": role.value}], "name")
                row = find_row(self._session, name)
                assert row is not None
            self._ids[name] = row.id
        return self._ids[name]


_GUIDELINE = "The guideline stands in the store that these labels were exported from."


class AnnotationImporter:
    """Adds annotations and decisions to one campaign within a transaction.

    `annotations` and `decisions` count the new ones, and `repeated` counts those that the campaign already has. If
    the import creates the campaign, it is closed at the end, because nothing is left to label. Raises `UserError`
    if the stored trace differs from the one that was labelled, or if the person has already labelled it differently
    in the campaign.
    """

    def __init__(self, store: Store, session: Session, campaign: str, user: User) -> None:
        self._session, self.name, self._user = session, campaign, user
        self.annotations = self.decisions = self.repeated = 0
        self.persons = PersonLookup(session)
        self._row = session.scalar(select(CampaignRow).where(CampaignRow.name == campaign))
        self._newest, self._most = 1, 1
        self._made = self._row is None
        # The evidence of a changed label has a default, so an answer without any is the same as well.
        self._contents: dict[tuple[int, str], set[bytes]] = {}
        self._decided: dict[tuple[int, int], Decision] = {}
        if self._row is not None:
            self._newest = session.scalar(self._versions(func.max(GuidelineRow.version))) or 1
            for annotation in iterate_annotations(store, self._row.id, session):
                row = format_annotation(annotation)
                without = {name: value for name, value in row.items() if name != "evidence"}
                self._contents[annotation.item_id, annotation.user] = {canonical(row), canonical(without)}
            self._decided = read_decisions(store, self._row.id)

    def add(self, row: ImportedTrace) -> None:
        """Add the annotations and decisions of a row."""
        trace = self._find(row)
        campaign = self._campaign(trace, row)
        item = self._item(campaign, trace, row.chosen)
        about = json.dumps([self.name, row.dataset, row.id])
        held = select(SlotRow).where(SlotRow.item_id == item.id).order_by(SlotRow.number).with_for_update()
        # A slot that somebody takes while its lock is waited for has changed then, as only the second query shows.
        self._session.scalars(held).all()
        slots = list(self._session.scalars(held))
        for annotation in row.annotations:
            self._check(campaign, annotation, trace)
            self._add_annotation(item, slots, annotation, about)
        for decision in row.decisions:
            self._add_decision(item, decision, about)

    def finish(self) -> None:
        """Complete a campaign that this import created, whose overlap and guideline versions are known only at the
        end."""
        if self._row is None or not self._made:
            return
        self._session.execute(
            update(CampaignRow).where(CampaignRow.id == self._row.id).values(overlap=self._most, closed=now())
        )
        for version in range(1, self._newest + 1):
            values = {"campaign_id": self._row.id, "version": version, "text": _GUIDELINE}
            self._session.execute(insert(GuidelineRow).values(**values, created_by=self._user.id))

    def _find(self, row: ImportedTrace) -> TraceRow:
        traces = select(TraceRow).join(DatasetRow, DatasetRow.id == TraceRow.dataset_id)
        trace = self._session.scalar(traces.where(DatasetRow.name == row.dataset, TraceRow.external_id == row.id))
        if trace is None:
            raise UserError(f"the dataset {row.dataset!r} has no trace {row.id!r}.", "Import the traces first.")
        if trace.digest != row.digest:
            raise UserError(
                f"the trace {row.id!r} of {row.dataset!r} differs from the one that was labelled.",
                "Its text or gold differs. Import the file that was labelled.",
            )
        return trace

    def _campaign(self, trace: TraceRow, row: ImportedTrace) -> CampaignRow:
        if self._row is None:
            view = row.annotations[0].view if row.annotations else "whole"
            self._row = _new_campaign(self.name, trace.dataset_id, view, self._user)
            self._session.add(self._row)
            self._session.flush()
        return self._row

    def _item(self, campaign: CampaignRow, trace: TraceRow, chosen: str) -> ItemRow:
        mine = ItemRow.campaign_id == campaign.id
        item = self._session.scalar(select(ItemRow).where(mine, ItemRow.trace_id == trace.id))
        if item is not None:
            return item
        last = self._session.scalar(select(func.max(ItemRow.place)).where(mine))
        place = 0 if last is None else last + 1
        digests = {"digest": trace.digest, "text_digest": trace.text_digest}
        item = ItemRow(campaign_id=campaign.id, trace_id=trace.id, place=place, chosen=chosen, **digests)
        self._session.add(item)
        self._session.flush()
        return item

    def _check(self, campaign: CampaignRow, annotation: ImportedAnnotation, trace: TraceRow) -> None:
        if len(annotation.labels) != trace.n_steps:
            raise UserError(f"{len(annotation.labels)} labels for {trace.n_steps} steps.", "Give one per step.")
        if annotation.view != campaign.view:
            raise UserError(
                f"the annotation is of the view {annotation.view}, the campaign {self.name!r} is {campaign.view}.",
                "Import it as another campaign (--campaign).",
            )
        if not self._made and annotation.guideline > self._newest:
            raise UserError(
                f"the campaign {self.name!r} has no guideline {annotation.guideline}, its newest is"
                f" {self._newest}.",
                "Import it as another campaign (--campaign).",
            )
        self._newest = max(self._newest, annotation.guideline)

    def _add_annotation(
        self, item: ItemRow, slots: list[SlotRow], annotation: ImportedAnnotation, about: str
    ) -> None:
        if annotation.content in self._contents.get((item.id, annotation.annotator), ()):
            self.repeated += 1
            return
        person = self.persons.id(annotation.annotator)
        if any(slot.user_id == person for slot in slots):
            raise UserError(
                f"{annotation.annotator!r} has other labels of this trace, or is labelling it, in the campaign"
                f" {self.name!r}.",
                "Import it as another campaign (--campaign).",
            )
        slot = next((slot for slot in slots if slot.state == FREE), None)
        if slot is None:
            number = slots[-1].number + 1 if slots else 0
            slot = SlotRow(campaign_id=item.campaign_id, item_id=item.id, number=number)
            self._session.add(slot)
            slots.append(slot)
        slot.state, slot.user_id = SUBMITTED, person
        slot.taken = slot.ended = annotation.submitted
        self._session.flush()
        self._most = max(self._most, slot.number + 1)
        self._insert(item, person, slot.id, annotation_events(annotation, about, asks=self._asks))
        self._contents[item.id, annotation.annotator] = {annotation.content}
        self.annotations += 1

    def _add_decision(self, item: ItemRow, row: ImportedDecision, about: str) -> None:
        earlier = self._decided.get((item.id, row.step))
        new = Decision(
            item.id, row.step, row.label, row.reason, row.annotator, row.moment, row.own, 0, row.repaired
        )
        if earlier is not None:
            if replace(earlier, event_id=0) != new:
                raise UserError(
                    f"step {row.step + 1} has another decision in the campaign {self.name!r}.",
                    "Import it as another campaign (--campaign).",
                )
            self.repeated += 1
            return
        event = decision_event(row, about) | {"guideline": self._newest, "view": self._view}
        self._insert(item, self.persons.id(row.annotator), None, iter([event]))
        self._decided[item.id, row.step] = new
        self.decisions += 1

    @property
    def _asks(self) -> bool:
        assert self._row is not None
        return self._row.asks_evidence

    @property
    def _view(self) -> str:
        assert self._row is not None
        return self._row.view

    def _insert(self, item: ItemRow, person: int, slot: int | None, events: Iterator[dict[str, Any]]) -> None:
        about = {"campaign_id": item.campaign_id, "item_id": item.id, "slot_id": slot, "user_id": person}
        rows = [about | event | {"digest": item.digest} for event in events]
        self._session.execute(insert(EventRow), rows, execution_options={"render_nulls": True})

    def _versions(self, column: Any) -> Any:
        assert self._row is not None
        return select(column).where(GuidelineRow.campaign_id == self._row.id)


def _new_campaign(name: str, dataset_id: int, view: str, user: User) -> CampaignRow:
    return CampaignRow(
        name=name,
        dataset_id=dataset_id,
        conditions={},
        overlap=1,
        after_error=True,
        view=view,
        shows="nothing",
        ordering="file",
        random_share=0.0,
        gold_rate=0.0,
        lease=1800,
        seed=0,
        error_kinds=list(ERROR_KINDS),
        created_by=user.id,
    )
