"""The users of a store: their roles, their passwords, which are stored only as Argon2id hashes, and their
activity."""

import unicodedata
from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from functools import cache
from threading import Semaphore

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError
from argon2.profiles import RFC_9106_LOW_MEMORY
from sqlalchemy import delete, func, select
from sqlalchemy.orm import Session

from stepsight.core.errors import UserError
from stepsight.core.text.signs import reads_alike, shows_nothing
from stepsight.storage.database.labelling_schema import CampaignAnnotatorRow, CampaignRow, InvitationRow, SlotRow
from stepsight.storage.database.schema import LoginRow, UserRow, check_name, now
from stepsight.storage.database.store import ConflictError, NotFoundError, Store, insert_once

SHORTEST = 10
"""The minimum length of a password in characters. There is no other rule."""

_HASHER = PasswordHasher.from_parameters(RFC_9106_LOW_MEMORY)
# Each hash takes 64 MiB and all cores; many at once would leave none for anything else.
_AT_ONCE = Semaphore(2)


def hash_password(password: str) -> str:
    """Return the hash to store, including salt and parameters. Raises `UserError` if the password is too short."""
    if len(password) < SHORTEST:
        raise UserError(
            f"The password has {len(password)} characters, expected at least {SHORTEST}.",
            "A sentence is easy to remember and hard to guess.",
        )
    return rehash_password(password)


def rehash_password(password: str) -> str:
    """Hash a password that was accepted before, without checking its length."""
    with _AT_ONCE:
        return _HASHER.hash(_bytes(password))


def is_password(hashed: str | None, password: str) -> bool:
    """True if `hashed` is the hash of this password. If `hashed` is None, return False, but take as long as a real
    check."""
    # Created on the first call in any case, since creating it takes as long as a check.
    decoy = _decoy_hash()
    with _AT_ONCE:
        try:
            _HASHER.verify(decoy if hashed is None else hashed, _bytes(password))
        except (VerificationError, InvalidHashError):
            return False
    return hashed is not None


def is_outdated(hashed: str) -> bool:
    """True if the hash was made with parameters that differ from those of new hashes."""
    return _HASHER.check_needs_rehash(hashed)


@cache
def _decoy_hash() -> str:
    return _HASHER.hash("the password of nobody")


def as_compared(text: str) -> str:
    """Return the form in which a password or the name of a user is compared, NFKC. Keyboards differ in how they
    compose a letter such as ö, and in the width of letters."""
    return unicodedata.normalize("NFKC", text)


def _bytes(password: str) -> bytes:
    return as_compared(password).encode("utf-8", "surrogatepass")


LOCAL = "local"
"""The name of the user who acts if nobody can log in."""


class Role(StrEnum):
    """A user's role. The rights of each role are listed in `app.web.access`."""

    VIEWER = "viewer"
    ANNOTATOR = "annotator"
    ADJUDICATOR = "adjudicator"
    ADMIN = "admin"


@dataclass(frozen=True)
class User:
    """A user. A deactivated user is not `active` and cannot log in, but their work is kept."""

    id: int
    name: str
    role: Role
    active: bool


def add_user(store: Store, name: str, role: Role, password: str | None) -> User:
    """Add a user. Without a password, the user cannot log in until `set_password` is called.

    Raises `UserError` if the name is invalid, taken or reads like that of another user, or if the password is too
    short.
    """
    if name == LOCAL:
        if password is None:
            return local_user(store)
        raise _reserved_error()
    hashed = None if password is None else hash_password(password)
    with store.write() as session:
        existing = find_row(session, name)
        if existing is not None:
            state = "" if existing.ended is None else " and deactivated"
            raise UserError(
                f"There is already a user {existing.name!r}, {existing.role}{state}.",
                "Choose another name."
                if existing.ended is None
                else "Set a new password to reactivate the account.",
            )
        check_new_name(session, name)
        row = UserRow(name=name, role=role.value, password=hashed)
        session.add(row)
        session.flush()
        return user_of_row(row)


def find_user(store: Store, name: str) -> User:
    """Return the user with this name.

    Raises `NotFoundError` if no user has this name, and `UserError` if the name is invalid.
    """
    check_name(name, "the name of the user")
    with store.read() as session:
        return user_of_row(_require_user(session, name))


def list_users(store: Store) -> list[User]:
    """List all users by name, including deactivated ones and those without a password."""
    with store.read() as session:
        return [user_of_row(row) for row in session.scalars(select(UserRow).order_by(UserRow.name))]


def set_role(store: Store, name: str, role: Role, *, keep_admin: bool = False) -> User:
    """Change a user's role. The new role applies from the user's next request on. Raises `NotFoundError` if the
    user does not exist. With `keep_admin`, raises `ConflictError` if no admin would be left."""
    with store.write() as session:
        row = _changeable(session, name)
        if keep_admin and role is not Role.ADMIN:
            _check_other_admin(session, row)
        row.role = role.value
        session.flush()
        return user_of_row(row)


def set_password(store: Store, name: str, password: str, *, lets_in: bool = True) -> User:
    """Set a user's password and end the user's logins and links to a new password. With `lets_in`, this also
    reactivates a deactivated user.

    Raises `NotFoundError` if the user does not exist. Raises `UserError` if the password is too short, or if the
    user is deactivated and `lets_in` is not set.
    """
    hashed = hash_password(password)
    with store.write() as session:
        row = _changeable(session, name)
        if row.ended is not None and not lets_in:
            raise UserError(f"{name} is deactivated.", "Ask an admin of this server.")
        row.password, row.ended = hashed, None
        end_logins(session, row)
        return user_of_row(row)


def end_user(store: Store, name: str, *, keep_admin: bool = False) -> User:
    """Deactivate a user immediately. Their work is kept. Their links to a new password, and all links that they
    created, expire permanently, even if the user is reactivated.

    Raises `NotFoundError` if the user does not exist. With `keep_admin`, raises `ConflictError` if no admin would
    be left.
    """
    with store.write() as session:
        row = _changeable(session, name)
        if keep_admin:
            _check_other_admin(session, row)
        row.ended = row.ended or now()
        end_logins(session, row)
        session.execute(delete(InvitationRow).where(InvitationRow.created_by == row.id))
        return user_of_row(row)


def reactivate_user(store: Store, name: str) -> User:
    """Reactivate a deactivated user, with the same password. Raises `NotFoundError` if the user does not exist."""
    with store.write() as session:
        row = _changeable(session, name)
        row.ended = None
        session.flush()
        return user_of_row(row)


def has_users(store: Store) -> bool:
    """True if at least one user can log in. If so, everybody has to log in."""
    users = select(UserRow.id).where(UserRow.password.is_not(None), UserRow.ended.is_(None))
    with store.read() as session:
        return session.scalar(users.limit(1)) is not None


def local_user(store: Store) -> User:
    """Return the user who acts while nobody can log in: an admin without a password, created on first use."""
    with store.read() as session:
        row = session.scalars(select(UserRow).where(UserRow.name == LOCAL)).one_or_none()
        if row is not None:
            return user_of_row(row)
    with store.write() as session:
        made = {"name": LOCAL, "role": Role.ADMIN.value, "created": now()}
        insert_once(session, UserRow, [made], "name")
        return user_of_row(_require_user(session, LOCAL))


def get_user(store: Store, user_id: int) -> User:
    """Return the user with this id."""
    with store.read() as session:
        return user_of_row(session.get_one(UserRow, user_id))


def user_of_row(row: UserRow) -> User:
    return User(row.id, row.name, Role(row.role), row.ended is None)


def find_row(session: Session, name: str) -> UserRow | None:
    """Return the row of the user with this name, or else of the first whose name is the same in the form in which
    passwords are compared. The search takes equally long if there is none."""
    newest_first = select(UserRow.id, UserRow.name).order_by(UserRow.id.desc())
    ids = {existing: id for id, existing in session.execute(newest_first)}
    forms = {as_compared(existing): id for existing, id in ids.items()}
    return session.get(UserRow, ids.get(name) or forms.get(as_compared(name)) or 0)


def check_new_name(session: Session, name: str) -> None:
    """Raise `UserError` if the name is invalid or taken, or if people could mistake it for another user's."""
    check_name(name, "the name of the user")
    if shows_nothing(name):
        raise UserError("The name of the user has no visible character.", "Give a name that can be read.")
    if find_row(session, name) is not None or as_compared(name) == LOCAL:
        raise UserError(f"The name {name!r:.80} is in use.", "Choose another name.")
    if any(reads_alike(name, existing) for existing in (LOCAL, *session.scalars(select(UserRow.name)))):
        raise UserError(f"The name {name!r:.80} looks like one that is in use.", "Choose another name.")


def _require_user(session: Session, name: str) -> UserRow:
    row = find_row(session, name)
    if row is None:
        raise NotFoundError(
            f"There is no user {name!r:.80}.", "The list of users names them (stepsight user list)."
        )
    return row


def _changeable(session: Session, name: str) -> UserRow:
    if as_compared(name) == LOCAL:
        raise _reserved_error()
    return _require_user(session, name)


def _reserved_error() -> UserError:
    return UserError(f"{LOCAL!r} is the user of a server where nobody logs in.", "Choose another name.")


def _check_other_admin(session: Session, row: UserRow) -> None:
    admins = select(UserRow.name).where(
        UserRow.role == Role.ADMIN.value, UserRow.password.is_not(None), UserRow.ended.is_(None)
    )
    if session.scalars(admins).all() == [row.name]:
        raise ConflictError(f"{row.name} is the last admin.", "Make somebody else an admin first.")


def end_logins(session: Session, row: UserRow) -> None:
    """End the logins of a user, and the links with which they could choose a new password."""
    session.execute(delete(LoginRow).where(LoginRow.user_id == row.id))
    session.execute(delete(InvitationRow).where(InvitationRow.user_id == row.id))


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
