"""Campaigns, which are sets of traces for people to label, fixed at creation, and the guidelines of campaigns."""

import random
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Select, func, insert, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from stepsight.core.errors import UserError
from stepsight.core.trace import check_text
from stepsight.storage.browse.browse import list_matching
from stepsight.storage.database.labelling_schema import CampaignRow, GuidelineRow, ItemRow, SlotRow
from stepsight.storage.database.schema import DatasetRow, EvaluatorRow, TraceRow, in_range, now
from stepsight.storage.database.store import ConflictError, NotFoundError, Store
from stepsight.storage.labelling.ordering import GOLD, Place, arrange, draw_gold
from stepsight.storage.labelling.plan import CampaignPlan, CampaignSettings, check_guideline, read_settings
from stepsight.storage.people.users import User
from stepsight.storage.traces.queries import find_dataset

# Values in one statement.
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
        # Somebody else took the name, or a trace was deleted, since that was checked.
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
        row = _locked(session, campaign_id)
        row.closed = row.closed or now()
        session.flush()
        return load_campaign(session, campaign_id)


def add_guideline(store: Store, campaign_id: int, text: str, user: User) -> int:
    """Put a new version of the guideline into force and return its version number. If the text has not changed, no
    version is added. Raises `ConflictError` if the campaign is closed."""
    check_guideline(text)
    with store.write() as session:
        if _locked(session, campaign_id).closed is not None:
            raise ConflictError("The campaign is closed.", "Its guideline stays as it is.")
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
    wanted = _guidelines(in_range(campaign_id))
    if version is not None:
        wanted = wanted.where(GuidelineRow.version == in_range(version))
    with store.read() as session:
        guideline = session.scalars(wanted.limit(1)).one_or_none()
    if guideline is None:
        raise NotFoundError(f"Campaign {campaign_id} has no guideline {version or ''}".rstrip() + ".")
    return guideline.text


def _draw(plan: CampaignPlan, ids: Sequence[int]) -> Sequence[int]:
    """Choose the plan's sample at random, keeping the order of the ids. Without a sample, return all ids."""
    if plan.sample is None:
        return ids
    if plan.sample > len(ids):
        raise UserError(
            f"The sample is {plan.sample:,}, and {len(ids):,} traces meet the conditions.", "Take fewer, or all."
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
        raise ConflictError(f"There is a campaign {plan.name!r} already.", "Choose another name.")
    found = {"population": None if plan.sample is None else population, "asks_evidence": plan.stepwise}
    row = CampaignRow(
        name=plan.name,
        dataset_id=dataset_id,
        evaluator_id=plan.evaluator,
        created_by=user.id,
        **plan.model_copy(update=found).columns(),
    )
    session.add(row)
    session.flush()
    session.add(GuidelineRow(campaign_id=row.id, version=1, text=plan.guideline, created_by=user.id))
    queue = arrange(session, dataset_id, ids, plan)
    queue += [Place(id, GOLD) for id in draw_gold(session, plan, ids)]
    _insert_items(session, row.id, queue)
    _insert_slots(session, row.id, plan.overlap)
    return load_campaign(session, row.id)


def _insert_items(session: Session, campaign_id: int, queue: Sequence[Place]) -> None:
    for start in range(0, len(queue), _BATCH):
        part = queue[start : start + _BATCH]
        wanted = select(TraceRow.id, TraceRow.digest, TraceRow.text_digest)
        found = session.execute(wanted.where(TraceRow.id.in_([one.trace_id for one in part]))).all()
        digests = {id: {"digest": digest, "text_digest": text} for id, digest, text in found}
        if len(digests) < len(part):
            raise ConflictError("A trace has been deleted in the meantime.", "Try again.")
        rows = [
            {"campaign_id": campaign_id, "place": place} | one._asdict() | digests[one.trace_id]
            for place, one in enumerate(part, start=start)
        ]
        session.execute(insert(ItemRow), rows)


def _insert_slots(session: Session, campaign_id: int, overlap: int) -> None:
    """Insert the slots of the queue. Hidden gold items get a slot only when they are assigned to somebody."""
    wanted = select(ItemRow.id).where(ItemRow.campaign_id == campaign_id, ItemRow.chosen != GOLD)
    items = session.scalars(wanted.order_by(ItemRow.place)).all()
    for start in range(0, len(items), _BATCH):
        rows = [
            {"campaign_id": campaign_id, "item_id": item, "number": number, "state": "free"}
            for item in items[start : start + _BATCH]
            for number in range(overlap)
        ]
        session.execute(insert(SlotRow), rows)


def _locked(session: Session, campaign_id: int) -> CampaignRow:
    wanted = select(CampaignRow).where(CampaignRow.id == in_range(campaign_id))
    row = session.scalars(wanted.with_for_update(key_share=True)).one_or_none()
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
