"""An overview of all users, with their last login and the number of traces they have labelled."""

from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from stepsight.storage.database.labelling_schema import CampaignAnnotatorRow, CampaignRow, SlotRow
from stepsight.storage.database.people_schema import UserRow
from stepsight.storage.database.store import Store
from stepsight.storage.people.users import User, user_of_row


@dataclass(frozen=True)
class Person:
    """A user and their activity.

    `last_login` is None if the user has never logged in. `submitted` is the number of annotations that the user has
    submitted. `can_log_in` is True if the user has a password. `campaigns` names the open restricted campaigns that
    the user is assigned to.
    """

    user: User
    last_login: datetime | None
    can_log_in: bool
    submitted: int
    campaigns: tuple[str, ...]


def list_people(store: Store) -> list[Person]:
    """List all users and their activity, sorted by name, including deactivated users."""
    submitted = select(func.count()).where(SlotRow.user_id == UserRow.id, SlotRow.state == "submitted")
    rows = select(UserRow, submitted.scalar_subquery()).order_by(UserRow.name)
    with store.read() as session:
        campaigns = _campaigns(session)
        return [
            Person(user_of_row(row), row.last_login, row.password is not None, count, tuple(campaigns[row.id]))
            for row, count in session.execute(rows)
        ]


def _campaigns(session: Session) -> defaultdict[int, list[str]]:
    """Return the names of the open restricted campaigns that each user is assigned to, keyed by user id."""
    assigned = select(CampaignAnnotatorRow.user_id, CampaignRow.name)
    assigned = assigned.join(CampaignRow, CampaignRow.id == CampaignAnnotatorRow.campaign_id)
    assigned = assigned.where(CampaignRow.restricted, CampaignRow.closed.is_(None)).order_by(CampaignRow.name)
    names: defaultdict[int, list[str]] = defaultdict(list)
    for user_id, name in session.execute(assigned):
        names[user_id].append(name)
    return names
