"""Adding answers that a file gives to a campaign, which is made where there is none."""

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from sqlalchemy import func, insert, select, update
from sqlalchemy.orm import Session

from core.errors import UserError
from storage.importers.fields import canonical
from storage.labelling.answers import iterate_answers
from storage.labelling.decisions import Decision, read_decisions
from storage.labelling.formats.jsonl import format_answer
from storage.labelling.given import GivenAnswer, GivenDecision, GivenTrace
from storage.labelling.given_events import answer_events, decision_event
from storage.labelling.persons import Persons
from storage.labelling.slots import FREE, SUBMITTED
from storage.labelling.tables import CampaignRow, EventRow, GuidelineRow, ItemRow, SlotRow
from storage.people.users import User
from storage.schema import DatasetRow, TraceRow, now
from storage.store import Store

_GUIDELINE = "The guideline stands in the store that these labels were exported from."


class AnswerWriter:
    """Adds answers to one campaign within a transaction.

    Counts the `answers` and `decisions` that were new, and those that were `known`: the same person said the same
    of the same trace there. A campaign that is made is a closed one: nothing is left to be labelled in it. Raises
    `UserError` where the trace is not the one that was labelled, or the person said something else of it there.
    """

    def __init__(self, store: Store, session: Session, campaign: str, user: User) -> None:
        self._session, self.name, self._user = session, campaign, user
        self.answers = self.decisions = self.known = 0
        self.persons = Persons(session)
        self._row = session.scalar(select(CampaignRow).where(CampaignRow.name == campaign))
        self._newest, self._most = 1, 1
        self._made = self._row is None
        self._said: dict[tuple[int, str], bytes] = {}
        self._decided: dict[tuple[int, int], Decision] = {}
        if self._row is not None:
            self._newest = session.scalar(self._versions(func.max(GuidelineRow.version))) or 1
            for answer in iterate_answers(store, self._row.id, session):
                self._said[answer.item_id, answer.user] = canonical(format_answer(answer))
            self._decided = read_decisions(store, self._row.id)

    def add(self, given: GivenTrace) -> None:
        """Add what a row says of a trace."""
        trace = self._find(given)
        campaign = self._campaign(trace, given)
        item = self._item(campaign, trace, given.chosen)
        about = json.dumps([self.name, given.dataset, given.id])
        held = select(SlotRow).where(SlotRow.item_id == item.id).order_by(SlotRow.number).with_for_update()
        # One that somebody is taking meanwhile goes on as another row, which only the second look finds.
        self._session.scalars(held).all()
        slots = list(self._session.scalars(held))
        for answer in given.answers:
            self._check(campaign, answer, trace)
            self._add_answer(item, slots, answer, about)
        for decision in given.decisions:
            self._add_decision(item, decision, about)

    def finish(self) -> None:
        """Put down what of a campaign that was made is known only now."""
        if self._row is None or not self._made:
            return
        self._session.execute(
            update(CampaignRow).where(CampaignRow.id == self._row.id).values(overlap=self._most, closed=now())
        )
        for version in range(1, self._newest + 1):
            values = {"campaign_id": self._row.id, "version": version, "text": _GUIDELINE}
            self._session.execute(insert(GuidelineRow).values(**values, created_by=self._user.id))

    def _find(self, given: GivenTrace) -> TraceRow:
        found = select(TraceRow).join(DatasetRow, DatasetRow.id == TraceRow.dataset_id)
        trace = self._session.scalar(
            found.where(DatasetRow.name == given.dataset, TraceRow.external_id == given.id)
        )
        if trace is None:
            raise UserError(f"the dataset {given.dataset!r} has no trace {given.id!r}.", "Import the traces first.")
        if trace.digest != given.digest:
            raise UserError(
                f"the trace {given.id!r} of {given.dataset!r} is another one than the labels are of.",
                "Its text or gold differs. Import the file that was labelled.",
            )
        return trace

    def _campaign(self, trace: TraceRow, given: GivenTrace) -> CampaignRow:
        if self._row is None:
            view = given.answers[0].view if given.answers else "whole"
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
        item = ItemRow(campaign_id=campaign.id, trace_id=trace.id, digest=trace.digest, place=place, chosen=chosen)
        self._session.add(item)
        self._session.flush()
        return item

    def _check(self, campaign: CampaignRow, answer: GivenAnswer, trace: TraceRow) -> None:
        if len(answer.labels) != trace.n_steps:
            raise UserError(f"{len(answer.labels)} labels for {trace.n_steps} steps.", "Give one per step.")
        if answer.view != campaign.view:
            raise UserError(
                f"the answer is of the view {answer.view}, the campaign {self.name!r} is {campaign.view}.",
                "Import it as another campaign with --campaign.",
            )
        if not self._made and answer.guideline > self._newest:
            raise UserError(
                f"the campaign {self.name!r} has no guideline {answer.guideline}, its newest is {self._newest}.",
                "Import it as another campaign with --campaign.",
            )
        self._newest = max(self._newest, answer.guideline)

    def _add_answer(self, item: ItemRow, slots: list[SlotRow], answer: GivenAnswer, about: str) -> None:
        said = self._said.get((item.id, answer.annotator))
        if said == answer.content:
            self.known += 1
            return
        person = self.persons.id(answer.annotator)
        if any(slot.user_id == person for slot in slots):
            raise UserError(
                f"{answer.annotator!r} has labelled this trace otherwise, or is labelling it, in the campaign"
                f" {self.name!r}.",
                "Import it as another campaign with --campaign.",
            )
        slot = next((slot for slot in slots if slot.state == FREE), None)
        if slot is None:
            number = slots[-1].number + 1 if slots else 0
            slot = SlotRow(campaign_id=item.campaign_id, item_id=item.id, number=number)
            self._session.add(slot)
            slots.append(slot)
        slot.state, slot.user_id, slot.taken, slot.ended = SUBMITTED, person, answer.submitted, answer.submitted
        self._session.flush()
        self._most = max(self._most, slot.number + 1)
        self._insert(item, person, slot.id, answer_events(answer, about))
        self._said[item.id, answer.annotator] = answer.content
        self.answers += 1

    def _add_decision(self, item: ItemRow, given: GivenDecision, about: str) -> None:
        found = self._decided.get((item.id, given.step))
        new = Decision(item.id, given.step, given.label, given.reason, given.annotator, given.moment, given.own)
        if found is not None:
            if replace(found, event_id=0) != new:
                raise UserError(
                    f"step {given.step + 1} was decided otherwise in the campaign {self.name!r}.",
                    "Import it as another campaign with --campaign.",
                )
            self.known += 1
            return
        event = decision_event(given, about) | {"guideline": self._newest, "view": self._view}
        self._insert(item, self.persons.id(given.annotator), None, iter([event]))
        self._decided[item.id, given.step] = new
        self.decisions += 1

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
        created_by=user.id,
    )
