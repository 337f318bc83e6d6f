"""The annotators of a campaign: either everybody who may label, or only the people assigned to it.

People who are removed get no more traces, but they may finish the trace they hold, and their work is kept.
"""

from collections.abc import Collection

from sqlalchemy import ColumnElement, delete, exists, select
from sqlalchemy.orm import Session

from stepsight.core.errors import UserError
from stepsight.storage.database.labelling_schema import CampaignAnnotatorRow, CampaignRow
from stepsight.storage.database.people_schema import UserRow
from stepsight.storage.database.schema import in_range, now
from stepsight.storage.database.store import ConflictError, ForbiddenError, NotFoundError, Store, insert_once
from stepsight.storage.labelling.campaigns import Campaign
from stepsight.storage.people.users import User, user_of_row


def list_annotators(store: Store, campaign_id: int) -> list[User]:
    """List the people assigned to a campaign, sorted by name, even if the campaign is open to everybody."""
    assigned = select(UserRow).join(CampaignAnnotatorRow, CampaignAnnotatorRow.user_id == UserRow.id)
    mine = CampaignAnnotatorRow.campaign_id == in_range(campaign_id)
    with store.read() as session:
        return [user_of_row(row) for row in session.scalars(assigned.where(mine).order_by(UserRow.name))]


def set_annotators(store: Store, campaign_id: int, user_ids: Collection[int] | None, by: User) -> None:
    """Restrict a campaign to these people. If `user_ids` is None, open it to everybody who may label.

    Raises `NotFoundError` if the campaign or a person does not exist, `ConflictError` if the campaign is closed,
    and `UserError` if the list is empty.
    """
    if user_ids is not None and not user_ids:
        raise UserError("Nobody is chosen.", "Choose at least one person, or let everybody label.")
    with store.write() as session:
        row = _locked(session, campaign_id)
        row.restricted = user_ids is not None
        if user_ids is None:
            return
        wanted = {in_range(id) for id in user_ids}
        found = set(session.scalars(select(UserRow.id).where(UserRow.id.in_(wanted), UserRow.ended.is_(None))))
        if missing := wanted - found:
            raise NotFoundError(f"There is no active user {min(missing)}.")
        mine = CampaignAnnotatorRow.campaign_id == campaign_id
        session.execute(delete(CampaignAnnotatorRow).where(mine, CampaignAnnotatorRow.user_id.not_in(wanted)))
        add_annotators(session, campaign_id, wanted, by.id)


def add_annotators(session: Session, campaign_id: int, user_ids: Collection[int], by: int) -> None:
    """Assign more people to a campaign. Existing assignments are kept."""
    rows = [{"campaign_id": campaign_id, "user_id": id, "added": now(), "added_by": by} for id in sorted(user_ids)]
    insert_once(session, CampaignAnnotatorRow, rows, "campaign_id", "user_id")


def check_annotator(session: Session, campaign: Campaign, user: User) -> None:
    """Raise `ForbiddenError` if a person is not an annotator of a campaign."""
    if campaign.restricted and not session.scalar(select(_is_assigned(campaign.id, user))):
        raise ForbiddenError(
            f"You are not among the annotators of {campaign.name!r}.", "Ask who runs the campaign to add you."
        )


def may_label_in(store: Store, campaign: Campaign, user: User) -> bool:
    """True if a person is an annotator of a campaign."""
    with store.read() as session:
        return bool(session.scalar(select(_is_assigned(campaign.id, user)))) if campaign.restricted else True


def _is_assigned(campaign_id: int, user: User) -> ColumnElement[bool]:
    mine = CampaignAnnotatorRow.campaign_id == campaign_id
    return exists().where(mine, CampaignAnnotatorRow.user_id == user.id)


def _locked(session: Session, campaign_id: int) -> CampaignRow:
    row = session.get(CampaignRow, in_range(campaign_id), with_for_update={"key_share": True})
    if row is None:
        raise NotFoundError(f"There is no campaign {campaign_id}.")
    if row.closed is not None:
        raise ConflictError("The campaign is closed.", "Nobody labels in it any more.")
    return row
