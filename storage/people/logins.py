"""Logins: creating them, limiting the attempts, finding the user who belongs to a token, and letting logins expire.

Recent failures are counted by user name and by network address. The addresses from which each user normally logs in
are remembered. Invitations are links that let people become users or choose a new password; StepSight does not send
them.
"""

import hashlib
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from ipaddress import IPv6Address, ip_address, ip_network
from math import ceil

from sqlalchemy import Row, Select, delete, select, update
from sqlalchemy.orm import Session, aliased

from stepsight.core.errors import UserError
from stepsight.storage.database.labelling_schema import CampaignAnnotatorRow, CampaignRow, InvitationRow
from stepsight.storage.database.schema import FailedLoginRow, HomeRow, LoginRow, UserRow, in_range, now
from stepsight.storage.database.store import NotFoundError, Store, insert_once
from stepsight.storage.people.users import (
    LOCAL,
    Role,
    User,
    as_compared,
    check_new_name,
    end_logins,
    find_row,
    hash_password,
    is_outdated,
    is_password,
    rehash_password,
    user_of_row,
)

FREE_BY_NAME = 5
FREE_BY_ADDRESS = 20
"""The number of failures before a pause begins, which each further failure doubles."""

FIRST_PAUSE = timedelta(seconds=5)

LONGEST_BY_NAME = timedelta(minutes=15)
LONGEST_BY_ADDRESS = timedelta(minutes=1)
"""The longest pause; many people may share one address."""

WINDOW = timedelta(hours=1)
"""The time for which a failure counts."""

AT_HOME = timedelta(days=90)
"""The time for which an address counts as a person's home after a login from it."""

# A user with IPv6 can choose any address of a network of this size.
_NETWORK = 64


class LimitError(UserError):
    """Raised after too many failed attempts. The next attempt is allowed after `seconds`."""

    def __init__(self, seconds: int) -> None:
        wait = f"{seconds} s" if seconds < 60 else f"{ceil(seconds / 60)} min"
        super().__init__("Too many logins failed.", f"Try again in {wait}.")
        self.seconds = seconds


@dataclass(frozen=True)
class Attempt:
    """A login attempt, which counts as failed until `forgive` is called.

    `name` and `home` are keys under which the attempt is counted: the user name alone, and the user name together
    with the network address. `rows` are the ids of its rows in the table of failed logins.
    """

    name: str
    home: str
    rows: tuple[int, ...]


@dataclass(frozen=True)
class _Limit:
    """The number of failures that a key may have before a pause is required, and the longest possible pause."""

    key: str
    free: int
    longest: timedelta

    def pause(self, failures: int) -> timedelta:
        """Return the pause that follows this many failures."""
        if failures < self.free:
            return timedelta(0)
        # No pause is doubled this many times.
        doubled: int = 2 ** min(20, failures - self.free)
        return min(self.longest, FIRST_PAUSE * doubled)


def begin_attempt(store: Store, name: str, address: str) -> Attempt:
    """Start a login attempt. Raises `LimitError` during the pause that follows failed attempts.

    The pause depends on the failures for this name and the failures from this address. If the user has recently
    logged in from this address, only failures for this name and address count, so that other people's failures
    cannot lock users out where they normally log in. The attempt is counted immediately, so that parallel attempts
    get no more tries than sequential ones.
    """
    # Some people type their password into the field for the name. It must not be readable here, and neither must
    # the addresses from which people log in.
    by_name, by_address = f"name {digest(name)}", address_key(address)
    home = f"home {digest(f'{by_name} {by_address}')}"
    rows = [FailedLoginRow(key=key) for key in (by_name, by_address, home)]
    with store.write() as session:
        moment = now()
        session.execute(delete(FailedLoginRow).where(FailedLoginRow.moment <= moment - WINDOW))
        # Failures from before the clock was set back are in the future, and would cause a pause until then.
        session.execute(update(FailedLoginRow).where(FailedLoginRow.moment > moment).values(moment=moment))
        homes = select(HomeRow.key).where(HomeRow.key == home, HomeRow.moment > moment - AT_HOME)
        if session.scalar(homes) is not None:
            limits = [_Limit(home, FREE_BY_NAME, LONGEST_BY_NAME)]
        else:
            limits = [
                _Limit(by_name, FREE_BY_NAME, LONGEST_BY_NAME),
                _Limit(by_address, FREE_BY_ADDRESS, LONGEST_BY_ADDRESS),
            ]
        left = timedelta(0)
        for limit in limits:
            failures = select(FailedLoginRow.moment).where(FailedLoginRow.key == limit.key)
            moments = session.scalars(failures).all()
            if moments:
                left = max(left, max(moments) + limit.pause(len(moments)) - moment)
        # A refused attempt does not count, and does not make the pause longer.
        if left <= timedelta(0):
            session.add_all(rows)
            session.flush()
            return Attempt(by_name, home, tuple(row.id for row in rows))
    raise LimitError(ceil(left.total_seconds()))


def forgive(session: Session, attempt: Attempt) -> None:
    """Record that an attempt succeeded, and remember that the user logs in from this address.

    The failures for the name are cleared. Other failures from the address still count.
    """
    of_name = FailedLoginRow.key.in_([attempt.name, attempt.home])
    session.execute(delete(FailedLoginRow).where(of_name | FailedLoginRow.id.in_(attempt.rows)))
    session.execute(delete(HomeRow).where((HomeRow.key == attempt.home) | (HomeRow.moment <= now() - AT_HOME)))
    session.add(HomeRow(key=attempt.home))


def address_key(address: str) -> str:
    """Return the key under which requests from a network address are counted. It is the same for all addresses of
    an IPv6 network."""
    try:
        parsed = ip_address(address)
    except ValueError:
        return "address unknown"
    if isinstance(parsed, IPv6Address):
        if parsed.ipv4_mapped is None:
            return f"address {ip_network((parsed, _NETWORK), strict=False)}"
        parsed = parsed.ipv4_mapped
    return f"address {parsed}"


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
    """Log a user in and return the token. Raises the same errors as `check_password`."""
    with _check_login(store, name, password, address) as (session, user_id):
        return _open(session, user_id)


def check_password(store: Store, name: str, password: str, address: str) -> None:
    """Check a user's name and password. `address` is the client's network address as far as the server knows it.

    Raises `WrongLoginError` if the name or the password is wrong, and `storage.people.logins.LimitError` after
    too many such failures. Rejecting an unknown name takes as long as rejecting a wrong password.
    """
    with _check_login(store, name, password, address):
        pass


@contextmanager
def _check_login(store: Store, name: str, password: str, address: str) -> Iterator[tuple[Session, int]]:
    """Check a name and password as `check_password` does, and yield the session that records it, with the user's
    id."""
    name = name.strip()
    # A name must not be tried in several spellings.
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
        yield session, user_id


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
    # PostgreSQL cannot compare with texts that contain NUL, and nobody can have such a name.
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


def digest(text: str) -> str:
    """Return the hash under which a token, or the name of a login, is stored."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


INVITATION_LASTS = timedelta(days=7)
"""The lifetime of an invitation."""


@dataclass(frozen=True)
class Invitation:
    """A valid invitation.

    `name` is the name of the new user, or None if they may choose one. If `resets` is True, the user already exists
    and chooses a new password. `campaign` names the campaign of which the user becomes an annotator, or is "".
    """

    id: int
    name: str | None
    role: Role
    resets: bool
    invited_by: str
    expires: datetime
    campaign: str = ""


def invite(store: Store, role: Role, name: str | None, by: User, campaign_id: int | None = None) -> str:
    """Create an invitation and return its token.

    If a campaign is given, the user who accepts the invitation becomes one of its annotators. Raises `UserError` if
    the name is invalid or taken, or if the role may not label in campaigns, and `NotFoundError` if there is no such
    open campaign.
    """
    with store.read() as session:
        if name is not None:
            check_new_name(session, name)
        if campaign_id is not None:
            if role is Role.VIEWER:
                raise UserError("A viewer cannot label in a campaign.", "Choose another role, or no campaign.")
            unclosed = (CampaignRow.id == in_range(campaign_id), CampaignRow.closed.is_(None))
            if session.scalar(select(CampaignRow.id).where(*unclosed)) is None:
                raise NotFoundError(f"There is no open campaign {campaign_id}.")
    return _add(store, InvitationRow(name=name, role=role.value, created_by=by.id, campaign_id=campaign_id))


def invite_to_reset(store: Store, name: str, by: User) -> str:
    """Create an invitation with which a user can choose a new password, and return its token. Raises
    `NotFoundError` if there is no active user with this name."""
    active = select(UserRow).where(UserRow.name == name, UserRow.name != LOCAL, UserRow.ended.is_(None))
    with store.read() as session:
        row = session.scalars(active).one_or_none()
        if row is None:
            raise NotFoundError(f"There is no active user {name!r:.80}.", "Reactivate them first.")
        invitation = InvitationRow(name=row.name, role=row.role, user_id=row.id, created_by=by.id)
    return _add(store, invitation)


def list_invitations(store: Store) -> list[Invitation]:
    """List the valid invitations, newest first."""
    with store.read() as session:
        return [_invitation(row) for row in session.execute(_select_usable().order_by(InvitationRow.id.desc()))]


def find_invitation(store: Store, token: str) -> Invitation:
    """Return the invitation with this token. Raises `NotFoundError` if it is unknown, used or expired."""
    with store.read() as session:
        row = session.execute(_select_usable().where(InvitationRow.digest == digest(token))).one_or_none()
    if row is not None:
        return _invitation(row)
    raise NotFoundError("This invitation is no longer valid.", "Ask the person who sent it for a new one.")


def revoke(store: Store, invitation_id: int) -> None:
    """Revoke an invitation. Raises `NotFoundError` if it does not exist or is no longer valid."""
    revoked = delete(InvitationRow).where(InvitationRow.id == in_range(invitation_id)).returning(InvitationRow.id)
    with store.write() as session:
        if session.scalar(revoked) is None:
            raise NotFoundError("This invitation no longer exists.")


def accept(store: Store, token: str, name: str, password: str) -> User:
    """Accept an invitation by creating the user or setting the new password. An invitation can be accepted only
    once.

    `name` is used only if the invitation leaves the name open. Raises `NotFoundError` if the invitation is not
    valid. Raises `UserError` if the name is invalid or taken, or if the password is too short. The invitation then
    remains valid.
    """
    find_invitation(store, token)
    hashed = hash_password(password)
    usable = _select_usable().where(InvitationRow.digest == digest(token))
    with store.write() as session:
        # It may have been used or revoked while the password was hashed.
        row = session.execute(usable).one_or_none()
        if row is None:
            raise NotFoundError("This invitation has been used or revoked in the meantime.", "Ask for a new one.")
        invitation, inviter = _invitation(row), row.InvitationRow.created_by
        campaign_id = row.InvitationRow.campaign_id
        session.execute(delete(InvitationRow).where(InvitationRow.id == invitation.id))
        if invitation.resets:
            user = session.scalars(select(UserRow).where(UserRow.name == invitation.name)).one()
            end_logins(session, user)
        else:
            name = (invitation.name or name).strip()
            check_new_name(session, name)
            user = UserRow(name=name, role=invitation.role.value)
            session.add(user)
        user.password = hashed
        session.flush()
        if campaign_id is not None:
            assigned = {"campaign_id": campaign_id, "user_id": user.id, "added": now(), "added_by": inviter}
            insert_once(session, CampaignAnnotatorRow, [assigned], "campaign_id", "user_id")
        return user_of_row(user)


def _add(store: Store, row: InvitationRow) -> str:
    token = new_token()
    row.digest, row.expires = digest(token), now() + INVITATION_LASTS
    with store.write() as session:
        session.execute(delete(InvitationRow).where(InvitationRow.expires <= now()))
        session.add(row)
    return token


def _select_usable() -> Select[InvitationRow, str, str | None]:
    """Select the valid invitations with their inviters and campaigns, except those created by former admins and
    those for deactivated users."""
    inviter, invited = aliased(UserRow), aliased(UserRow)
    return (
        select(InvitationRow, inviter.name.label("inviter"), CampaignRow.name.label("campaign"))
        .join(inviter, inviter.id == InvitationRow.created_by)
        .outerjoin(invited, invited.id == InvitationRow.user_id)
        .outerjoin(CampaignRow, CampaignRow.id == InvitationRow.campaign_id)
        .where(InvitationRow.expires > now())
        .where(inviter.role == Role.ADMIN.value, inviter.ended.is_(None), invited.ended.is_(None))
    )


def _invitation(row: Row[InvitationRow, str, str | None]) -> Invitation:
    stored, inviter, campaign = row
    resets = stored.user_id is not None
    return Invitation(stored.id, stored.name, Role(stored.role), resets, inviter, stored.expires, campaign or "")
