"""Renaming, archiving and deleting the things that people have stored, and the record of deletions.

Each kind of thing is a subclass of `Changeable` beside its other functions, such as `ChangeableDataset` in
`storage.traces.dataset_changes`. The steps are the same for all: everything that depends on a thing is counted and
named, the person confirms, and it is deleted together with its record, in one transaction.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, ClassVar, Generic, TypeVar

from sqlalchemy import ColumnElement, func, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from stepsight.storage.database.schema import DeletionRow, check_name, now
from stepsight.storage.database.store import ConflictError, Store
from stepsight.storage.people.users import User, local_user

Row = TypeVar("Row")


@dataclass(frozen=True)
class Dependents:
    """The dependents of a thing called `name`, which are deleted with it.

    `counts` holds the numbers as they are recorded, and `lines` has a line for each kind of dependent, such as `2
    files: first, second`. `kept` says what stays. `obstacle` is the reason why the thing cannot be deleted
    now, or None. `archived` is True if the thing is archived. `scored` maps ids to the names of the evaluators
    whose scores on a dataset can be deleted alone.
    """

    name: str
    counts: Mapping[str, int]
    lines: tuple[str, ...]
    kept: str = ""
    obstacle: ConflictError | None = None
    archived: bool = False
    scored: Mapping[int, str] = field(default_factory=dict)


class Changeable(ABC, Generic[Row]):
    """Something in the store that people can delete. It can also be renamed if `renames` is True, and archived if
    `archives` is True; its row then has the columns `name` and `archived`."""

    kind: ClassVar[str]
    """What it is, in the record of deletions and in messages."""
    renames: ClassVar[bool] = False
    archives: ClassVar[bool] = False

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
        """Delete it, record that `user`, by default the local one, did so, and return what was deleted. Raises
        `NotFoundError` if it does not exist, and the obstacle if there is one."""
        user = user or local_user(store)
        with store.write() as session:
            row = self.find(session, lock=True)
            found = self.dependents(session, row)
            if found.obstacle:
                raise found.obstacle
            session.add(DeletionRow(kind=self.kind, name=found.name, person=user.name, counts=dict(found.counts)))
            self.remove(session, row)
        return found

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
                # Somebody else took the name since that was checked.
                raise name_taken(self.kind, new) from None
            self.was_renamed(session, row, old)

    def archive(self, store: Store, archived: bool = True) -> None:
        """Archive it, so that lists and choices leave it out, or list it again. Everything that names it still
        finds it. Raises `NotFoundError` if it does not exist."""
        with store.write() as session:
            row: Any = self.find(session, lock=True)
            row.archived = now() if archived else None


def name_taken(kind: str, name: str) -> ConflictError:
    """Return the error for a name that another thing of the same kind has."""
    return ConflictError(f"There is a {kind} {name!r:.80}.", "Choose another name.")


def count(session: Session, *conditions: ColumnElement[bool]) -> int:
    """Return the number of rows that meet the conditions."""
    return session.scalar(select(func.count()).where(*conditions)) or 0


def counted(number: int, noun: str, names: Sequence[str] = ()) -> str:
    """Return a number with its noun and, if there are any, names, such as `2 files: first, second`."""
    text = f"{number:,} {noun}{'' if number == 1 else 's'}"
    return f"{text}: {', '.join(names)}" if names else text


@dataclass(frozen=True)
class Deletion:
    """A recorded deletion. The fields are described in `DeletionRow`."""

    kind: str
    name: str
    person: str
    moment: datetime
    counts: Mapping[str, int]

    @property
    def extent(self) -> str:
        """The deleted things, as the counts that are not zero, such as `traces 150, jobs 2`."""
        return ", ".join(f"{what} {count:,}" for what, count in self.counts.items() if count)


def list_deletions(store: Store, limit: int = 100) -> list[Deletion]:
    """List the newest deletions, newest first."""
    columns: list[Any] = [getattr(DeletionRow, name) for name in Deletion.__dataclass_fields__]
    with store.read() as session:
        rows = session.execute(select(*columns).order_by(DeletionRow.id.desc()).limit(limit))
        return [Deletion(**row) for row in rows.mappings()]


def was_deleted(store: Store, kind: str, name: str) -> bool:
    """True if a thing of this kind and name has ever been deleted."""
    recorded = select(DeletionRow.id).where(DeletionRow.kind == kind, DeletionRow.name == name).limit(1)
    with store.read() as session:
        return session.scalar(recorded) is not None
