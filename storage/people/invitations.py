"""Invitations: links that let people become users or choose a new password. StepSight does not send them."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Select, select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session, aliased

from stepsight.core.errors import UserError
from stepsight.storage.database.labelling_schema import CampaignAnnotatorRow, CampaignRow, InvitationCampaignRow
from stepsight.storage.database.people_schema import InvitationRow, UserRow
from stepsight.storage.database.schema import in_range, now
from stepsight.storage.database.store import ConflictError, NotFoundError, Store
from stepsight.storage.database.upsert import insert_once
from stepsight.storage.people.logins import digest, new_token
from stepsight.storage.people.passwords import hash_password
from stepsight.storage.people.users import LOCAL, Role, User, check_new_name, end_logins, user_of_row

LASTS = timedelta(days=7)
"""The lifetime of an invitation."""


@dataclass(frozen=True)
class Invitation:
    """A valid invitation.

    `name` is the name of the new user, or None if they may choose one. If `resets` is True, the user already exists
    and chooses a new password. `campaigns` names the campaigns of which the user becomes an annotator.
    """

    id: int
    name: str | None
    role: Role
    resets: bool
    invited_by: str
    expires: datetime
    campaigns: tuple[str, ...] = ()


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
            _check_campaign(session, campaign_id, role)
    return _add(store, InvitationRow(name=name, role=role.value, created_by=by.id), campaign_id)


def invite_to_reset(store: Store, name: str, by: User) -> str:
    """Create an invitation with which a user can choose a new password, and return its token. Raises
    `NotFoundError` if there is no active user with this name."""
    active = select(UserRow).where(UserRow.name == name, UserRow.name != LOCAL, UserRow.ended.is_(None))
    with store.read() as session:
        row = session.scalars(active).one_or_none()
        if row is None:
            raise NotFoundError(f"There is no active user {name!r:.80}.", "Reactivate them first.")
        wanted = InvitationRow(name=row.name, role=row.role, user_id=row.id, created_by=by.id)
    return _add(store, wanted)


def list_invitations(store: Store) -> list[Invitation]:
    """List the valid invitations, newest first."""
    with store.read() as session:
        rows = session.execute(_usable().order_by(InvitationRow.id.desc())).all()
        return [_invitation(session, row) for row in rows]


def find_invitation(store: Store, token: str) -> Invitation:
    """Return the invitation with this token. Raises `NotFoundError` if it is unknown, used or expired."""
    with store.read() as session:
        row = session.execute(_usable().where(InvitationRow.digest == digest(token))).one_or_none()
        if row is not None:
            return _invitation(session, row)
    raise NotFoundError("This invitation is no longer valid.", "Ask the person who sent it for a new one.")


def revoke(store: Store, invitation_id: int) -> None:
    """Revoke an invitation. Raises `NotFoundError` if it does not exist or is no longer valid."""
    unused = update(InvitationRow).where(InvitationRow.id == in_range(invitation_id), InvitationRow.used.is_(None))
    with store.write() as session:
        if not _changed(session, unused.where(InvitationRow.revoked.is_(None)).values(revoked=now())):
            raise NotFoundError("This invitation no longer exists.")


def accept(store: Store, token: str, name: str, password: str) -> User:
    """Accept an invitation by creating the user or setting the new password. An invitation can be accepted only
    once.

    `name` is used only if the invitation leaves the name open. Raises `NotFoundError` if the invitation is not
    valid. Raises `UserError` if the name is invalid or taken, or if the password is too short. The invitation then
    remains valid.
    """
    invitation = find_invitation(store, token)
    hashed = hash_password(password)
    try:
        with store.write() as session:
            # It may have been used or revoked while the password was hashed.
            unused = update(InvitationRow).where(InvitationRow.id == invitation.id, InvitationRow.used.is_(None))
            taken = _changed(session, unused.where(InvitationRow.revoked.is_(None)).values(used=now()))
            if not taken or session.execute(_inviter(invitation.id)).one_or_none() is None:
                raise NotFoundError(
                    "This invitation has been used or revoked in the meantime.", "Ask for a new one."
                )
            row = _reset(session, invitation) if invitation.resets else _new(session, invitation, name)
            row.password = hashed
            session.flush()
            _assign(session, invitation.id, row.id)
            return user_of_row(row)
    except IntegrityError:
        raise ConflictError("Somebody has taken that name in the meantime.", "Choose another name.") from None


def _new(session: Session, invitation: Invitation, name: str) -> UserRow:
    name = (invitation.name or name).strip()
    check_new_name(session, name)
    row = UserRow(name=name, role=invitation.role.value)
    session.add(row)
    return row


def _reset(session: Session, invitation: Invitation) -> UserRow:
    row = session.scalars(select(UserRow).where(UserRow.name == invitation.name)).one()
    end_logins(session, row)
    return row


def _check_campaign(session: Session, campaign_id: int, role: Role) -> None:
    if role is Role.VIEWER:
        raise UserError("A viewer cannot label in a campaign.", "Choose another role, or no campaign.")
    open_one = select(CampaignRow.id).where(CampaignRow.id == in_range(campaign_id), CampaignRow.closed.is_(None))
    if session.scalar(open_one) is None:
        raise NotFoundError(f"There is no open campaign {campaign_id}.")


def _assign(session: Session, invitation_id: int, user_id: int) -> None:
    """Make the user an annotator of the invitation's campaigns."""
    invited_to = select(InvitationCampaignRow.campaign_id, InvitationRow.created_by)
    invited_to = invited_to.join(InvitationRow, InvitationRow.id == InvitationCampaignRow.invitation_id)
    for campaign_id, by in session.execute(invited_to.where(InvitationRow.id == invitation_id)).all():
        row = {"campaign_id": campaign_id, "user_id": user_id, "added": now(), "added_by": by}
        insert_once(session, CampaignAnnotatorRow, [row], "campaign_id", "user_id")


def _add(store: Store, row: InvitationRow, campaign_id: int | None = None) -> str:
    token = new_token()
    row.digest, row.expires = digest(token), now() + LASTS
    with store.write() as session:
        session.add(row)
        session.flush()
        if campaign_id is not None:
            session.add(InvitationCampaignRow(invitation_id=row.id, campaign_id=campaign_id))
    return token


def _usable() -> Select[InvitationRow, str]:
    """Select the valid invitations, except those created by former admins and those for deactivated users."""
    inviter, invited = aliased(UserRow), aliased(UserRow)
    return (
        select(InvitationRow, inviter.name)
        .join(inviter, inviter.id == InvitationRow.created_by)
        .outerjoin(invited, invited.id == InvitationRow.user_id)
        .where(InvitationRow.used.is_(None), InvitationRow.revoked.is_(None), InvitationRow.expires > now())
        .where(inviter.role == Role.ADMIN.value, inviter.ended.is_(None), invited.ended.is_(None))
    )


def _inviter(invitation_id: int) -> Select[int]:
    """Select the admin who created an invitation. The result is empty if the creator is no longer an admin, or if
    the invited user has been deactivated."""
    inviter, invited = aliased(UserRow), aliased(UserRow)
    return (
        select(inviter.id)
        .join(InvitationRow, InvitationRow.created_by == inviter.id)
        .outerjoin(invited, invited.id == InvitationRow.user_id)
        .where(InvitationRow.id == invitation_id, inviter.role == Role.ADMIN.value)
        .where(inviter.ended.is_(None), invited.ended.is_(None))
    )


def _changed(session: Session, statement: Any) -> bool:
    result = session.execute(statement.execution_options(synchronize_session=False))
    return bool(result.rowcount)  # type: ignore[attr-defined]


def _invitation(session: Session, row: Any) -> Invitation:
    one = row.InvitationRow
    names = select(CampaignRow.name).join(
        InvitationCampaignRow, InvitationCampaignRow.campaign_id == CampaignRow.id
    )
    campaigns = session.scalars(
        names.where(InvitationCampaignRow.invitation_id == one.id).order_by(CampaignRow.name)
    )
    role, resets = Role(one.role), one.user_id is not None
    return Invitation(one.id, one.name, role, resets, row.name, one.expires, tuple(campaigns))
