"""Renaming and deleting the things that people have stored.

Each kind of thing is a subclass of `Changeable`: see `storage.changes` and `storage.labelling.campaigns`. The
steps are the same for all: everything that depends on a thing is counted and named, the person confirms, and it is
deleted in one transaction and noted in the server's log.
"""

import logging
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, TypeVar

from sqlalchemy import ColumnElement, func, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from stepsight.storage.database.schema import DeletedRow, check_name
from stepsight.storage.database.store import ConflictError, Store
from stepsight.storage.people.users import LOCAL, User

Row = TypeVar("Row")

_LOG = logging.getLogger("stepsight")


@dataclass(frozen=True)
class Dependents:
    """The dependents of a thing called `name`, which are deleted with it.

    `lines` has a line for each kind of dependent, such as `2 files: first, second`. `kept` says what stays.
    `obstacle` is the reason why the thing cannot be deleted now, or None. `scored` maps ids to the names of the
    evaluators whose scores on a dataset can be deleted alone. `uploads` names uploaded files in their folder.
    """

    name: str
    lines: tuple[str, ...]
    kept: str = ""
    obstacle: ConflictError | None = None
    scored: Mapping[int, str] = field(default_factory=dict)
    uploads: tuple[str, ...] = ()


class Changeable(ABC, Generic[Row]):
    """Something in the store that people can delete, and rename if `renames` is True; its row then has the column
    `name`."""

    kind: ClassVar[str]
    """What it is, in the log and in messages."""
    renames: ClassVar[bool] = False

    @abstractmethod
    def find(self, session: Session, *, lock: bool = False) -> Row:
        """Return the row, locked until the transaction ends if `lock` is True. Raises `NotFoundError` if there is
        none, as when somebody else has just deleted it."""

    @abstractmethod
    def dependents(self, session: Session, row: Row) -> Dependents:
        """Count and name everything that depends on it."""

    @abstractmethod
    def remove(self, session: Session, row: Row) -> None:
        """Delete it with everything that depends on it."""

    def check_rename(self, session: Session, row: Row, new: str) -> None:
        """Raise `ConflictError` if it cannot have the name `new` now."""

    def was_renamed(self, session: Session, row: Row, old: str) -> None:
        """Update everything that refers to it by its name."""

    def read(self, store: Store) -> Dependents:
        """Return the dependents that are deleted with it. Raises `NotFoundError` if it does not exist."""
        with store.read() as session:
            return self.dependents(session, self.find(session))

    def delete(self, store: Store, user: User | None = None) -> Dependents:
        """Delete it, log that `user`, by default the local one, did so, and return what was deleted. Raises
        `NotFoundError` if it does not exist, and the obstacle if there is one."""
        try:
            with store.write() as session:
                row = self.find(session, lock=True)
                dependents = self.dependents(session, row)
                if dependents.obstacle:
                    raise dependents.obstacle
                self.remove(session, row)
        except IntegrityError:
            raise ConflictError("Something else refers to it now.", "Reload the page, then check again.") from None
        name, extent = user.name if user else LOCAL, "; ".join(dependents.lines)
        _LOG.info("%s deleted: %s %s (%s)", name, self.kind, dependents.name, extent)
        return dependents

    def rename(self, store: Store, new: str) -> None:
        """Give it the name `new`. Raises `NotFoundError` if it does not exist, `UserError` if the name is invalid,
        and `ConflictError` if the name is taken or the thing cannot be renamed now."""
        check_name(new, f"the name of the {self.kind}")
        with store.write() as session:
            row: Any = self.find(session, lock=True)
            if new == row.name:
                return
            self.check_rename(session, row, new)
            old, row.name = row.name, new
            try:
                session.flush()
            except IntegrityError:
                # Somebody else has taken the name since it was checked.
                raise name_taken(self.kind, new) from None
            self.was_renamed(session, row, old)


def busy(working: Sequence[str]) -> ConflictError | None:
    """Return the error for a change to something that jobs are working on, or None if there are no such jobs."""
    if not working:
        return None
    return ConflictError(f"A job is working on it: {', '.join(working)}.", "Cancel the job or let it finish.")


def name_taken(kind: str, name: str) -> ConflictError:
    """Return the error for a name that another thing of the same kind has."""
    return ConflictError(f"There is already a {kind} {name!r:.80}.", "Choose another name.")


def count(session: Session, *conditions: ColumnElement[bool]) -> int:
    """Return the number of rows that meet the conditions."""
    return session.scalar(select(func.count()).where(*conditions)) or 0


def lines_of(*lines: tuple[object, str]) -> tuple[str, ...]:
    """Return the lines of what is there: each comes with a number, or True."""
    return tuple(line for is_there, line in lines if is_there)


def was_deleted(store: Store, name: str) -> bool:
    """True if a dataset, or the scores on one, of this name has ever been deleted (see `DeletedRow`)."""
    with store.read() as session:
        return session.get(DeletedRow, name) is not None
