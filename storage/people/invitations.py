"""Invitations: links that let people become users or choose a new password. StepSight does not send them."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import Row, Select, delete, select
from sqlalchemy.orm import aliased

from stepsight.core.errors import UserError
from stepsight.storage.database.labelling_schema import CampaignAnnotatorRow, CampaignRow, InvitationRow
from stepsight.storage.database.people_schema import UserRow
from stepsight.storage.database.schema import in_range, now
from stepsight.storage.database.store import NotFoundError, Store, insert_once
from stepsight.storage.people.logins import digest, new_token
from stepsight.storage.people.users import LOCAL, Role, User, check_new_name, end_logins, hash_password, user_of_row

LASTS = timedelta(days=7)
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
        return [_invitation(row) for row in session.execute(_usable().order_by(InvitationRow.id.desc()))]


def find_invitation(store: Store, token: str) -> Invitation:
    """Return the invitation with this token. Raises `NotFoundError` if it is unknown, used or expired."""
    with store.read() as session:
        row = session.execute(_usable().where(InvitationRow.digest == digest(token))).one_or_none()
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
    usable = _usable().where(InvitationRow.digest == digest(token))
    with store.write() as session:
        # It may have been used or revoked while the password was hashed.
        row = session.execute(usable).one_or_none()
        if row is None:
            raise NotFoundError("This invitation has been used or revoked in the meantime.", "Ask for a new one.")
        invitation, by = _invitation(row), row.InvitationRow.created_by
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
            assigned = {"campaign_id": campaign_id, "user_id": user.id, "added": now(), "added_by": by}
            insert_once(session, CampaignAnnotatorRow, [assigned], "campaign_id", "user_id")
        return user_of_row(user)


def _add(store: Store, row: InvitationRow) -> str:
    token = new_token()
    row.digest, row.expires = digest(token), now() + LASTS
    with store.write() as session:
        session.execute(delete(InvitationRow).where(InvitationRow.expires <= now()))
        session.add(row)
    return token


def _usable() -> Select[InvitationRow, str, str | None]:
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
