"""Logins: creating them, finding the user who belongs to a token, and letting logins expire."""

import hashlib
import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import delete, select, update
from sqlalchemy.orm import Session

from stepsight.core.errors import UserError
from stepsight.storage.database.people_schema import LoginRow, UserRow
from stepsight.storage.database.schema import now
from stepsight.storage.database.store import Store
from stepsight.storage.people.attempts import begin_attempt, forgive
from stepsight.storage.people.passwords import as_compared, is_outdated, is_password, rehash_password
from stepsight.storage.people.users import User, find_row, user_of_row

LASTS = timedelta(days=14)
"""The lifetime of a login after its last use, which is renewed at most once an hour."""

_RENEWED = timedelta(hours=1)
_TOKEN_BYTES = 32


class WrongLoginError(UserError):
    """Raised if the name or the password is wrong. The message does not say which."""

    def __init__(self) -> None:
        super().__init__("The name or the password is wrong.", "Try again, or ask the person who runs this server.")


@dataclass(frozen=True)
class Login:
    """A logged-in user, and the time at which the login expires if there are no further requests."""

    user: User
    expires: datetime

    @property
    def is_due(self) -> bool:
        """True if the login should be renewed."""
        return self.expires < now() + LASTS - _RENEWED


def log_in(store: Store, name: str, password: str, address: str) -> str:
    """Log a user in and return the token. `address` is the client's network address as far as the server knows it.

    Raises `WrongLoginError` if the name or the password is wrong, and `storage.people.attempts.LimitError` after
    too many such failures. Rejecting an unknown name takes as long as rejecting a wrong password.
    """
    name = name.strip()
    # One name may not be tried in several forms.
    attempt = begin_attempt(store, as_compared(name), address)
    user_id, hashed = _look_up(store, name)
    if not is_password(hashed, password) or hashed is None:
        raise WrongLoginError()
    better = rehash_password(password) if is_outdated(hashed) else hashed
    # The password may have been changed, or the user deactivated, during the check.
    same = update(UserRow).where(UserRow.id == user_id, UserRow.password == hashed, UserRow.ended.is_(None))
    with store.write() as session:
        result = session.execute(same.values(password=better).execution_options(synchronize_session=False))
        if not result.rowcount:  # type: ignore[attr-defined]
            raise WrongLoginError()
        forgive(session, attempt)
        return _open(session, user_id)


def open_login(store: Store, user: User) -> str:
    """Log a user in without a password and return the token."""
    with store.write() as session:
        return _open(session, user.id)


def find_login(store: Store, token: str) -> Login | None:
    """Return the login with this token, or None if the token is unknown, the login has expired or the user is
    deactivated."""
    logins = select(UserRow, LoginRow.expires).join(LoginRow, LoginRow.user_id == UserRow.id)
    logins = logins.where(LoginRow.digest == digest(token), LoginRow.expires > now(), UserRow.ended.is_(None))
    with store.read() as session:
        row = session.execute(logins).one_or_none()
        return None if row is None else Login(user_of_row(row.UserRow), row.expires)


def user_of(store: Store, token: str) -> User | None:
    """Return the user who is logged in with this token, or None if nobody is."""
    login = find_login(store, token)
    return None if login is None else login.user


def renew(store: Store, token: str) -> None:
    """Extend an unexpired login to its full lifetime."""
    held = update(LoginRow).where(LoginRow.digest == digest(token), LoginRow.expires > now())
    with store.write() as session:
        session.execute(held.values(expires=now() + LASTS).execution_options(synchronize_session=False))


def log_out(store: Store, token: str) -> None:
    """End the login with this token, if there is one."""
    with store.write() as session:
        session.execute(delete(LoginRow).where(LoginRow.digest == digest(token)))


def _look_up(store: Store, name: str) -> tuple[int, str | None]:
    """Return the id and password hash of the active user with this name, or (0, None) if there is no such user."""
    # PostgreSQL cannot compare with every text, and nobody can have such a name.
    if not name.isprintable():
        return 0, None
    with store.read() as session:
        row = find_row(session, name)
        return (0, None) if row is None or row.ended is not None else (row.id, row.password)


def _open(session: Session, user_id: int) -> str:
    token = new_token()
    session.execute(delete(LoginRow).where(LoginRow.expires <= now()))
    session.add(LoginRow(digest=digest(token), user_id=user_id, expires=now() + LASTS))
    session.execute(update(UserRow).where(UserRow.id == user_id).values(last_login=now()))
    return token


def new_token() -> str:
    """Return a random token that cannot be guessed."""
    return secrets.token_urlsafe(_TOKEN_BYTES)


def digest(token: str) -> str:
    """Return the hash under which a token is stored."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()
