"""Saved views: URLs of the Browse page that users store under a name of their choice.

Views saved while nobody could log in are shared: all users see them, and admins may change them.
"""

from dataclasses import dataclass
from typing import Any

from sqlalchemy import exists, func, or_, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from stepsight.core.errors import UserError
from stepsight.storage.database.people_schema import UserRow, ViewRow
from stepsight.storage.database.schema import DatasetRow, check_name, in_range
from stepsight.storage.database.store import ConflictError, NotFoundError, Store
from stepsight.storage.people.changes import Changeable, Dependents, name_taken
from stepsight.storage.people.users import LOCAL, Role, User

MOST_VIEWS = 100
"""The number of views that a person can have."""

LONGEST_QUERY = 10_000


@dataclass(frozen=True)
class SavedView:
    """A saved view of a dataset.

    `query` is the part of its URL after the `?`. `is_gone` is True if the dataset no longer exists. `may_change` is
    True if the current user may rename and delete the view.
    """

    id: int
    name: str
    dataset: str
    query: str
    is_gone: bool
    may_change: bool


def list_views(store: Store, user: User | None) -> list[SavedView]:
    """List the views that a user can see, sorted by name. `user` is None if nobody is logged in."""
    with store.read() as session:
        rows = session.execute(_seen_by(user).order_by(func.lower(ViewRow.name), ViewRow.id)).all()
    return [
        SavedView(row.id, row.name, row.dataset, row.query, row.gone, user is not None and _may_change(row, user))
        for row in rows
    ]


def save_view(store: Store, user: User, name: str, dataset: str, query: str) -> None:
    """Save a view under a name.

    Raises `UserError` if the name is invalid or the query is too long. Raises `ConflictError` if the user already
    has a view of this name, or too many views.
    """
    check_name(name, "the name of the view")
    if len(query) > LONGEST_QUERY:
        raise UserError(f"The address has {len(query):,} characters.", "Take fewer conditions.")
    try:
        with store.write() as session:
            _check_free(session, user.id, name)
            if session.scalar(select(func.count()).where(ViewRow.user_id == user.id)) == MOST_VIEWS:
                raise ConflictError(f"There are {MOST_VIEWS} views.", "Delete one first.")
            session.add(ViewRow(user_id=user.id, name=name, dataset=dataset, query=query))
    except IntegrityError:
        raise name_taken("view", name) from None


@dataclass(frozen=True)
class ChangeableView(Changeable[ViewRow]):
    """A view that `user` may change. It belongs to a dataset, with which it is renamed and deleted."""

    user: User
    id: int

    kind = "view"
    renames = True

    def find(self, session: Session, *, lock: bool = False) -> ViewRow:
        return _own(session, self.user, self.id, lock=lock)

    def dependents(self, session: Session, row: ViewRow) -> Dependents:
        return Dependents(row.name, {}, (f"a view of {row.dataset}",))

    def remove(self, session: Session, row: ViewRow) -> None:
        session.delete(row)

    def check_rename(self, session: Session, row: ViewRow, new: str) -> None:
        _check_free(session, row.user_id, new)


def _seen_by(user: User | None) -> Any:
    gone = ~exists().where(DatasetRow.name == ViewRow.dataset)
    columns = (ViewRow.id, ViewRow.user_id, ViewRow.name, ViewRow.dataset, ViewRow.query, gone.label("gone"))
    owners = [UserRow.name == LOCAL] if user is None else [UserRow.name == LOCAL, UserRow.id == user.id]
    return select(*columns, UserRow.name.label("owner")).join(UserRow).where(or_(*owners))


def _may_change(row: Any, user: User) -> bool:
    return row.user_id == user.id or (row.owner == LOCAL and user.role is Role.ADMIN)


def _own(session: Session, user: User, view_id: int, *, lock: bool) -> ViewRow:
    seen = session.execute(_seen_by(user).where(ViewRow.id == in_range(view_id))).one_or_none()
    mine = seen is not None and _may_change(seen, user)
    row = session.get(ViewRow, view_id, with_for_update=True if lock else None) if mine else None
    if row is None:
        raise NotFoundError(f"You have no view {view_id}.", "Load the page again.")
    return row


def _check_free(session: Session, user_id: int, name: str) -> None:
    if session.scalar(select(ViewRow.id).where(ViewRow.user_id == user_id, ViewRow.name == name)) is not None:
        raise name_taken("view", name)
