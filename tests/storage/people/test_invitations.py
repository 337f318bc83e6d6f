from datetime import timedelta

import pytest
from sqlalchemy import select, update

from stepsight.core.errors import UserError
from stepsight.storage.database.labelling_schema import InvitationRow
from stepsight.storage.database.schema import now
from stepsight.storage.database.store import ConflictError, NotFoundError
from stepsight.storage.people.invitations import (
    LASTS,
    accept,
    find_invitation,
    invite,
    invite_to_reset,
    list_invitations,
    revoke,
)
from stepsight.storage.people.logins import find_login, log_in, open_login
from stepsight.storage.people.users import Role, end_user, find_user, reactivate_user, set_password, set_role
from tests.messages import refused
from tests.storage.people.samples import PASSWORD, user

NEW = "a good sentence"


@pytest.fixture
def boss(store):
    return user(store, "head", Role.ADMIN)


def test_an_invited_person_chooses_a_name_and_password(store, boss):
    token = invite(store, Role.ADJUDICATOR, None, boss)
    (invitation,) = list_invitations(store)
    assert (invitation.name, invitation.role, invitation.invited_by) == (None, Role.ADJUDICATOR, "head")
    assert timedelta(0) <= now() + LASTS - invitation.expires < timedelta(minutes=1)
    made = accept(store, token, " eva ", NEW)
    assert (made.name, made.role, made.active) == ("eva", Role.ADJUDICATOR, True)
    assert log_in(store, "eva", NEW, "127.0.0.1")
    assert list_invitations(store) == []


def test_an_invitation_of_a_name_is_for_that_name_whatever_is_sent(store, boss):
    assert accept(store, invite(store, Role.VIEWER, "eva", boss), "admin", NEW).name == "eva"


def test_the_token_is_stored_as_its_digest_alone(store, boss):
    token = invite(store, Role.VIEWER, None, boss)
    with store.read() as session:
        row = session.scalars(select(InvitationRow)).one()
        assert token not in {str(value) for value in vars(row).values()}
        assert len(row.digest) == 64


def unusable(store, token):
    with refused(NotFoundError):
        find_invitation(store, token)
    with pytest.raises(NotFoundError):
        accept(store, token, "eva", NEW)
    with pytest.raises(NotFoundError):
        find_user(store, "eva")


def test_used_revoked_expired_and_invented_ones_let_nobody_in(store, boss):
    for token in ("", "x", "é" * 500):
        unusable(store, token)
    used = invite(store, Role.VIEWER, "first", boss)
    accept(store, used, "", NEW)
    unusable(store, used)
    revoked = invite(store, Role.VIEWER, None, boss)
    revoke(store, list_invitations(store)[0].id)
    unusable(store, revoked)
    expired = invite(store, Role.VIEWER, None, boss)
    with store.write() as session:
        session.execute(update(InvitationRow).values(expires=now() - timedelta(seconds=1)))
    unusable(store, expired)
    with pytest.raises(NotFoundError):
        revoke(store, 999)


@pytest.mark.parametrize("change", [lambda s: end_user(s, "head"), lambda s: set_role(s, "head", Role.VIEWER)])
def test_invitations_of_a_former_admin_are_void(store, boss, change):
    token = invite(store, Role.ADMIN, None, boss)
    change(store)
    unusable(store, token)


def test_an_invitation_refused_for_its_name_or_password_can_still_be_used(store, boss):
    token = invite(store, Role.VIEWER, None, boss)
    for name, password in (("head", NEW), ("local", NEW), ("", NEW), ("eva", "short")):
        with refused():
            accept(store, token, name, password)
    assert accept(store, token, "eva", NEW).name == "eva"


def test_a_link_for_a_new_password_ends_the_old_one_and_its_logins(store, boss):
    ada = user(store, "ada")
    login, token = open_login(store, ada), invite_to_reset(store, "ada", boss)
    assert accept(store, token, "somebody", NEW) == ada
    assert find_login(store, login) is None
    assert log_in(store, "ada", NEW, "127.0.0.1")
    with pytest.raises(UserError):
        log_in(store, "ada", PASSWORD, "127.0.0.1")
    with pytest.raises(NotFoundError):
        invite_to_reset(store, "nobody", boss)


def test_a_link_for_a_new_password_lets_nobody_in_who_was_shut_out(store, boss):
    user(store, "ada")
    token = invite_to_reset(store, "ada", boss)
    end_user(store, "ada")
    with pytest.raises(NotFoundError):
        accept(store, token, "", NEW)
    reactivate_user(store, "ada")
    with pytest.raises(NotFoundError):
        accept(store, token, "", NEW)
    assert log_in(store, "ada", PASSWORD, "127.0.0.1")


@pytest.mark.parametrize(
    "choose",
    [lambda s, token: accept(s, token, "", NEW), lambda s, token: set_password(s, "ada", NEW)],
    ids=["by another link", "by themselves"],
)
def test_a_new_password_ends_the_links_to_another(store, boss, choose):
    user(store, "ada")
    bob = invite_to_reset(store, user(store, "bob").name, boss)
    first, second = (invite_to_reset(store, "ada", boss) for _ in range(2))
    choose(store, first)
    with pytest.raises(NotFoundError):
        find_invitation(store, second)
    assert find_invitation(store, bob).name == "bob"


def test_what_an_admin_made_before_an_end_stays_void_after_it(store, boss):
    token = invite(store, Role.ADMIN, None, boss)
    other = invite(store, Role.VIEWER, None, user(store, "b", Role.ADMIN))
    end_user(store, "head")
    reactivate_user(store, "head")
    with pytest.raises(NotFoundError):
        accept(store, token, "eva", NEW)
    assert find_invitation(store, other).invited_by == "b"


def test_the_last_admin_stays_one(store, boss):
    user(store, "ada")
    for change in (
        lambda: end_user(store, "head", keep_admin=True),
        lambda: set_role(store, "head", Role.VIEWER, keep_admin=True),
    ):
        with refused(ConflictError):
            change()
    user(store, "second", Role.ADMIN)
    assert set_role(store, "head", Role.VIEWER, keep_admin=True).role is Role.VIEWER
    assert end_user(store, "ada", keep_admin=True).active is False
