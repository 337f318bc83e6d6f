"""An overview of the people: each with the last login and how much they labelled."""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import func, select

from stepsight.storage.database.labelling_schema import SlotRow
from stepsight.storage.database.people_schema import UserRow
from stepsight.storage.database.store import Store
from stepsight.storage.people.users import User, user_of_row


@dataclass(frozen=True)
class Person:
    """`last_login` is None where there was none, `submitted` how many annotations stand submitted; `can_log_in`
    tells that there is a password."""

    user: User
    last_login: datetime | None
    can_log_in: bool
    submitted: int


def list_people(store: Store) -> list[Person]:
    """Everybody, by name, also who was shut out."""
    submitted = select(func.count()).where(SlotRow.user_id == UserRow.id, SlotRow.state == "submitted")
    rows = select(UserRow, submitted.scalar_subquery()).order_by(UserRow.name)
    with store.read() as session:
        return [
            Person(user_of_row(row), row.last_login, row.password is not None, count)
            for row, count in session.execute(rows)
        ]
