"""Campaigns, which are sets of traces for people to label, fixed at creation: their guidelines and annotators, and
their renaming and deletion.

The annotators are either everybody who may label, or only the people assigned to the campaign. People who are
removed get no more traces, but they may finish the trace they hold, and their work is kept.

What people did in a campaign is deleted only once a complete export of its log contains all of it. The log only
grows, so the number of events in an export tells whether there are newer ones.
"""

import random
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Select, delete, exists, func, insert, select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from stepsight.core.errors import UserError, counted
from stepsight.core.trace import check_text
from stepsight.storage.browse.browse import list_matching
from stepsight.storage.database.jobs_schema import ACTIVE, Job, Task
from stepsight.storage.database.labelling_schema import (
    CampaignAnnotatorRow,
    CampaignRow,
    EventRow,
    GuidelineRow,
    InvitationRow,
    ItemRow,
    SlotRow,
)
from stepsight.storage.database.schema import DatasetRow, EvaluatorRow, TraceRow, UserRow, in_range, now
from stepsight.storage.database.store import ConflictError, ForbiddenError, NotFoundError, Store, insert_once
from stepsight.storage.labelling.plan import (
    GOLD,
    CampaignPlan,
    CampaignSettings,
    Place,
    arrange,
    check_guideline,
    draw_gold,
    read_settings,
)
from stepsight.storage.people.changes import Changeable, Dependents, busy, count, lines_of, name_taken
from stepsight.storage.people.users import User, user_of_row
from stepsight.storage.traces.queries import find_dataset

# The number of values in one statement.
_BATCH = 500


class Campaign(CampaignSettings):
    """A labelling campaign.

    `guideline` is the version in force. `items` is the number of traces to label, not counting hidden gold items.
    If `restricted` is True, only the campaign's own annotators can label.
    """

    id: int
    name: str
    dataset_id: int
    dataset: str
    evaluator_id: int | None
    created: datetime
    closed: datetime | None
    restricted: bool
    guideline: int
    items: int


def create_campaign(store: Store, plan: CampaignPlan, user: User) -> Campaign:
    """Create a campaign of the traces that currently match the plan's filter. Traces imported later are not added.

    Raises `UserError` if no trace matches or no gold item is available. Raises `NotFoundError` if the dataset or an
    evaluator does not exist, and `ConflictError` if the name is taken. Nothing is stored in any of these cases.
    """
    dataset_id = find_dataset(store, plan.dataset).id
    _check_evaluators(store, plan)
    ids = list_matching(store, dataset_id, plan.conditions)
    if not ids:
        raise UserError(f"No trace of {plan.dataset!r} meets the conditions.", "Choose fewer conditions.")
    chosen = _draw(plan, ids)
    try:
        with store.write() as session:
            return _create(session, plan, dataset_id, chosen, len(ids), user)
    except IntegrityError:
        # The dataset or an evaluator has been deleted since it was looked up.
        raise ConflictError("The store has changed in the meantime.", "Try again.") from None


def list_campaigns(store: Store) -> list[Campaign]:
    """List the campaigns: open before closed ones, and the newest first in each group."""
    order = (CampaignRow.closed.is_not(None), CampaignRow.id.desc())
    with store.read() as session:
        return [_campaign(row) for row in session.execute(_campaigns().order_by(*order))]


def find_campaign(store: Store, name: str) -> Campaign:
    """Return the campaign with this name. Raises `NotFoundError` if no campaign has this name."""
    check_text(name, "the name of the campaign")
    with store.read() as session:
        row = session.execute(_campaigns().where(CampaignRow.name == name)).one_or_none()
    if row is None:
        raise NotFoundError(
            f"There is no campaign {name!r:.80}.", "The list of campaigns names them (stepsight campaign list)."
        )
    return _campaign(row)


def get_campaign(store: Store, campaign_id: int) -> Campaign:
    """Return the campaign with this database id. Raises `NotFoundError` if the campaign does not exist."""
    with store.read() as session:
        return load_campaign(session, campaign_id)


def load_campaign(session: Session, campaign_id: int) -> Campaign:
    """Like `get_campaign`, but within the caller's session."""
    row = session.execute(_campaigns().where(CampaignRow.id == in_range(campaign_id))).one_or_none()
    if row is None:
        raise NotFoundError(f"There is no campaign {campaign_id}.")
    return _campaign(row)


def load_settings(session: Session, campaign_id: int) -> CampaignSettings:
    """Return the settings of a campaign, which has to exist, without what `load_campaign` counts."""
    stored = session.scalars(select(CampaignRow.settings).where(CampaignRow.id == campaign_id)).one()
    return read_settings(CampaignSettings, stored)


def close_campaign(store: Store, campaign_id: int) -> Campaign:
    """Close a campaign, so that it takes no more labels. Existing labels are kept. Closing it again changes
    nothing."""
    with store.write() as session:
        row = _require_campaign(session, campaign_id)
        row.closed = row.closed or now()
        session.flush()
        return load_campaign(session, campaign_id)


def add_guideline(store: Store, campaign_id: int, text: str, user: User) -> int:
    """Put a new version of the guideline into force and return its version number. If the text has not changed, no
    version is added. Raises `ConflictError` if the campaign is closed."""
    check_guideline(text)
    with store.write() as session:
        if _require_campaign(session, campaign_id).closed is not None:
            raise ConflictError("The campaign is closed.", "Its guideline can no longer be changed.")
        newest = session.scalars(_guidelines(campaign_id).limit(1)).one()
        if newest.text == text:
            return newest.version
        version = newest.version + 1
        session.add(GuidelineRow(campaign_id=campaign_id, version=version, text=text, created_by=user.id))
        return version


def guideline_text(store: Store, campaign_id: int, version: int | None = None) -> str:
    """Return the text of a version of the guideline, by default the one in force.

    Raises `NotFoundError` if the version does not exist.
    """
    versions = _guidelines(in_range(campaign_id))
    if version is not None:
        versions = versions.where(GuidelineRow.version == in_range(version))
    with store.read() as session:
        guideline = session.scalars(versions.limit(1)).one_or_none()
    if guideline is None:
        raise NotFoundError(f"Campaign {campaign_id} has no guideline {version or ''}".rstrip() + ".")
    return guideline.text


def _draw(plan: CampaignPlan, ids: Sequence[int]) -> Sequence[int]:
    """Choose the plan's sample at random, keeping the order of the ids. Without a sample, return all ids."""
    if plan.sample is None:
        return ids
    if plan.sample > len(ids):
        raise UserError(
            f"The sample is {plan.sample:,}, but {counted(len(ids), 'trace meets', 'traces meet')} the conditions.",
            "Take fewer, or all.",
        )
    drawn = set(random.Random(f"sample {plan.seed}").sample(range(len(ids)), plan.sample))
    return [id for place, id in enumerate(ids) if place in drawn]


def _check_evaluators(store: Store, plan: CampaignPlan) -> None:
    for id in {plan.evaluator, *(getattr(plan.conditions, name) for name in ("evaluator", "against", "other"))} - {
        None
    }:
        with store.read() as session:
            stored = session.scalar(select(EvaluatorRow.id).where(EvaluatorRow.id == in_range(id or 0)))
        if stored is None:
            raise NotFoundError(f"There is no evaluator {id}.")


def _create(
    session: Session, plan: CampaignPlan, dataset_id: int, ids: Sequence[int], population: int, user: User
) -> Campaign:
    if session.scalar(select(CampaignRow.id).where(CampaignRow.name == plan.name)) is not None:
        raise ConflictError(f"There is already a campaign {plan.name!r}.", "Choose another name.")
    settled = {"population": None if plan.sample is None else population}
    row = CampaignRow(
        name=plan.name,
        dataset_id=dataset_id,
        evaluator_id=plan.evaluator,
        created_by=user.id,
        **plan.model_copy(update=settled).columns(),
    )
    session.add(row)
    session.flush()
    session.add(GuidelineRow(campaign_id=row.id, version=1, text=plan.guideline, created_by=user.id))
    queue = arrange(ids, plan)
    queue += [(id, GOLD) for id in draw_gold(session, plan, ids)]
    _insert_items(session, row.id, queue)
    _insert_slots(session, row.id, plan.overlap)
    return load_campaign(session, row.id)


def _insert_items(session: Session, campaign_id: int, queue: Sequence[Place]) -> None:
    for start in range(0, len(queue), _BATCH):
        part = queue[start : start + _BATCH]
        columns = select(TraceRow.id, TraceRow.digest, TraceRow.text_digest)
        loaded = session.execute(columns.where(TraceRow.id.in_([id for id, _ in part]))).all()
        digests = {id: {"digest": digest, "text_digest": text} for id, digest, text in loaded}
        if len(digests) < len(part):
            raise ConflictError("A trace has been deleted in the meantime.", "Try again.")
        rows = [
            {"campaign_id": campaign_id, "place": place, "trace_id": id, "chosen": chosen} | digests[id]
            for place, (id, chosen) in enumerate(part, start=start)
        ]
        session.execute(insert(ItemRow), rows)


def _insert_slots(session: Session, campaign_id: int, overlap: int) -> None:
    """Insert the slots of the queue. Hidden gold items get a slot only when they are assigned to somebody."""
    ids = select(ItemRow.id).where(ItemRow.campaign_id == campaign_id, ItemRow.chosen != GOLD)
    items = session.scalars(ids.order_by(ItemRow.place)).all()
    for start in range(0, len(items), _BATCH):
        rows = [
            {"campaign_id": campaign_id, "item_id": item, "number": number, "state": "free"}
            for item in items[start : start + _BATCH]
            for number in range(overlap)
        ]
        session.execute(insert(SlotRow), rows)


def _require_campaign(session: Session, campaign_id: int) -> CampaignRow:
    row = session.get(CampaignRow, in_range(campaign_id))
    if row is None:
        raise NotFoundError(f"There is no campaign {campaign_id}.")
    return row


def _guidelines(campaign_id: int) -> Select[GuidelineRow]:
    newest_first = GuidelineRow.version.desc()
    return select(GuidelineRow).where(GuidelineRow.campaign_id == campaign_id).order_by(newest_first)


def _campaigns() -> Select[Any]:
    version = select(func.max(GuidelineRow.version)).where(GuidelineRow.campaign_id == CampaignRow.id)
    items = select(func.count()).where(ItemRow.campaign_id == CampaignRow.id, ItemRow.chosen != GOLD)
    return select(
        CampaignRow,
        DatasetRow.name.label("dataset"),
        version.scalar_subquery().label("guideline"),
        items.scalar_subquery().label("items"),
    ).join(DatasetRow, DatasetRow.id == CampaignRow.dataset_id)


def _campaign(row: Any) -> Campaign:
    stored, dataset, guideline, items = row
    columns = {name: getattr(stored, name) for name in Campaign.model_fields if hasattr(CampaignRow, name)}
    return read_settings(Campaign, stored.settings, **columns, dataset=dataset, guideline=guideline, items=items)


@dataclass(frozen=True)
class ChangeableCampaign(Changeable[CampaignRow]):
    """The campaign with the database id `id`, which is deleted with its queue, its guidelines and everything that
    people did in it.

    It is neither deleted nor renamed while labels are being imported into it.
    """

    id: int

    kind = "campaign"
    renames = True

    def find(self, session: Session, *, lock: bool = False) -> CampaignRow:
        row = session.get(CampaignRow, in_range(self.id))
        if row is None:
            raise NotFoundError(f"There is no campaign {self.id}.", "It may have been deleted in the meantime.")
        return row

    def dependents(self, session: Session, row: CampaignRow) -> Dependents:
        people = select(UserRow.name).where(
            UserRow.id.in_(select(EventRow.user_id).where(EventRow.campaign_id == row.id))
        )
        names = session.scalars(people.order_by(UserRow.name)).all()
        traces = count(session, ItemRow.campaign_id == row.id, ItemRow.chosen != GOLD)
        annotations = count(session, SlotRow.campaign_id == row.id, SlotRow.state == "submitted")
        actions = count(session, EventRow.campaign_id == row.id)
        invitations = count(session, InvitationRow.campaign_id == row.id)
        dataset = session.scalars(select(DatasetRow.name).where(DatasetRow.id == row.dataset_id)).one()
        later, unexported = actions - (row.exported or 0), None
        if later > 0:
            stated = "1 action of an annotator has" if later == 1 else f"{later:,} actions of annotators have"
            hint = "Download all events first, as JSON Lines."
            unexported = ConflictError(f"{stated} not been exported.", hint)
        return Dependents(
            row.name,
            lines_of(
                (True, f"its queue of {counted(traces, 'trace')} of {dataset}"),
                (annotations, counted(annotations, "submitted annotation")),
                (actions, f"{counted(actions, 'logged action')} by {', '.join(names)}"),
                (invitations, f"{counted(invitations, 'open invitation')} to it"),
            ),
            kept="The traces stay.",
            obstacle=busy(_importing(session, row)) or unexported,
        )

    def remove(self, session: Session, row: CampaignRow) -> None:
        row.closed = row.closed or now()
        session.flush()
        # Browse marks the traces that people have labelled.
        labelled = select(TraceRow.dataset_id).join(ItemRow, ItemRow.trace_id == TraceRow.id)
        touched = update(DatasetRow).where(DatasetRow.id.in_(labelled.where(ItemRow.campaign_id == row.id)))
        session.execute(touched.values(revision=DatasetRow.revision + 1))
        _remove_events(session, row.id)
        for table in (SlotRow, ItemRow, InvitationRow, CampaignAnnotatorRow, GuidelineRow):
            session.execute(delete(table).where(table.campaign_id == row.id))
        session.delete(row)

    def check_rename(self, session: Session, row: CampaignRow, new: str) -> None:
        if session.scalar(select(CampaignRow.id).where(CampaignRow.name == new)) is not None:
            raise name_taken(self.kind, new)
        if working := busy(_importing(session, row)):
            raise working


def note_export(store: Store, campaign_id: int, events: int) -> None:
    """Remember that a complete export of a campaign's log has been made, with this number of events."""
    with store.write() as session:
        session.execute(update(CampaignRow).where(CampaignRow.id == campaign_id).values(exported=events))


def _remove_events(session: Session, campaign_id: int) -> None:
    """Delete the log of a campaign: repeatedly delete the events to which no other event refers, until none are
    left."""
    of_campaign = EventRow.campaign_id == campaign_id
    undone = select(EventRow.of).where(of_campaign, EventRow.of.is_not(None))
    while count(session, of_campaign):
        free = delete(EventRow).where(of_campaign, EventRow.id.not_in(undone))
        session.execute(free.execution_options(synchronize_session=False))


def _importing(session: Session, row: CampaignRow) -> list[str]:
    """Return the subjects of the active jobs that import labels into the campaign."""
    active = select(Job).where(Job.state.in_(ACTIVE), Job.task == Task.IMPORT)
    jobs = session.scalars(active.order_by(Job.id))
    return [job.subject for job in jobs if job.request.get("campaign") == row.name]


def list_annotators(store: Store, campaign_id: int) -> list[User]:
    """List the people assigned to a campaign, sorted by name, even if the campaign is open to everybody."""
    assigned = select(UserRow).join(CampaignAnnotatorRow, CampaignAnnotatorRow.user_id == UserRow.id)
    of_campaign = CampaignAnnotatorRow.campaign_id == in_range(campaign_id)
    with store.read() as session:
        return [user_of_row(row) for row in session.scalars(assigned.where(of_campaign).order_by(UserRow.name))]


def set_annotators(store: Store, campaign_id: int, user_ids: Collection[int] | None, by: User) -> None:
    """Restrict a campaign to these people. If `user_ids` is None, open it to everybody who may label.

    Raises `NotFoundError` if the campaign or a person does not exist, `ConflictError` if the campaign is closed,
    and `UserError` if the list is empty.
    """
    if user_ids is not None and not user_ids:
        raise UserError("Nobody is chosen.", "Choose at least one person, or let everybody label.")
    with store.write() as session:
        row = _require_campaign(session, campaign_id)
        if row.closed is not None:
            raise ConflictError("The campaign is closed.", "Nobody can label in it any more.")
        row.restricted = user_ids is not None
        if user_ids is None:
            return
        chosen = {in_range(id) for id in user_ids}
        active = set(session.scalars(select(UserRow.id).where(UserRow.id.in_(chosen), UserRow.ended.is_(None))))
        if missing := chosen - active:
            raise NotFoundError(f"There is no active user {min(missing)}.")
        of_campaign = CampaignAnnotatorRow.campaign_id == campaign_id
        session.execute(
            delete(CampaignAnnotatorRow).where(of_campaign, CampaignAnnotatorRow.user_id.not_in(chosen))
        )
        rows = [
            {"campaign_id": campaign_id, "user_id": id, "added": now(), "added_by": by.id} for id in sorted(chosen)
        ]
        insert_once(session, CampaignAnnotatorRow, rows, "campaign_id", "user_id")


def check_annotator(session: Session, campaign: Campaign, user: User) -> None:
    """Raise `ForbiddenError` if a person is not an annotator of a campaign."""
    if campaign.restricted and not session.scalar(select(_is_assigned(campaign.id, user))):
        raise ForbiddenError(
            f"You are not among the annotators of {campaign.name!r}.", "Ask whoever runs the campaign to add you."
        )


def may_label_in(store: Store, campaign: Campaign, user: User) -> bool:
    """True if a person is an annotator of a campaign."""
    with store.read() as session:
        return bool(session.scalar(select(_is_assigned(campaign.id, user)))) if campaign.restricted else True


def _is_assigned(campaign_id: int, user: User) -> ColumnElement[bool]:
    of_campaign = CampaignAnnotatorRow.campaign_id == campaign_id
    return exists().where(of_campaign, CampaignAnnotatorRow.user_id == user.id)
