"""Logins: begun, renewed, ended; and invitations."""

from datetime import timedelta

import pytest
from argon2 import PasswordHasher
from sqlalchemy import select, update

from stepsight.core.errors import UserError
from stepsight.storage.database.labelling_schema import InvitationRow
from stepsight.storage.database.schema import FailedLoginRow, LoginRow, UserRow, now
from stepsight.storage.database.store import ConflictError, NotFoundError, open_store
from stepsight.storage.people import logins
from stepsight.storage.people.logins import (
    FREE_BY_NAME,
    INVITATION_LASTS,
    LASTS,
    LimitError,
    WrongLoginError,
    accept,
    find_invitation,
    find_login,
    invite,
    invite_to_reset,
    list_invitations,
    log_in,
    log_out,
    open_login,
    renew,
    revoke,
    user_of,
)
from stepsight.storage.people.users import (
    Role,
    add_user,
    end_user,
    find_user,
    is_outdated,
    reactivate_user,
    set_password,
    set_role,
)
from tests.messages import refused
from tests.storage.people.samples import PASSWORD, user

HERE, NEW = "10.0.0.1", "a good sentence"


def rows(store, model):
    with store.read() as session:
        return list(session.scalars(select(model)))


def expire(store, in_):
    """Have every login expire in so long."""
    with store.write() as session:
        session.execute(update(LoginRow).values(expires=now() + in_))


def test_name_and_password_give_a_token_that_stands_for_the_user(store):
    ada = user(store)
    token = log_in(store, " ada ", PASSWORD, HERE)
    assert user_of(store, token) == ada
    assert rows(store, FailedLoginRow) == []
    # 32 bytes in base64 without padding: 43 characters.
    assert len(token) == 43
    assert log_in(store, "ada", PASSWORD, HERE) != token


def test_only_the_digest_of_a_token_is_stored(store):
    token = open_login(store, user(store))
    (row,) = rows(store, LoginRow)
    assert token not in row.digest
    assert len(row.digest) == 64
    assert user_of(store, row.digest) is None


@pytest.mark.parametrize("name", ["ada", "bob", "ended", "without", "local", "", "a\x00da"])
def test_anything_else_is_wrong_in_the_same_words(store, name):
    user(store)
    user(store, "ended")
    end_user(store, "ended")
    add_user(store, "without", Role.ADMIN, None)
    password = "wrong" if name == "ada" else PASSWORD
    with refused(WrongLoginError):
        log_in(store, name, password, HERE)
    assert rows(store, LoginRow) == []
    assert len(rows(store, FailedLoginRow)) == 3


def test_after_five_wrong_ones_the_right_one_has_to_wait_too(sqlite_store):
    user(sqlite_store)
    for _ in range(FREE_BY_NAME):
        with pytest.raises(WrongLoginError):
            log_in(sqlite_store, "ada", "wrong", HERE)
    with pytest.raises(LimitError):
        log_in(sqlite_store, "ada", PASSWORD, HERE)


def test_a_login_lasts_fourteen_days_from_its_last_use(store):
    token = open_login(store, user(store))
    assert timedelta(days=14) - timedelta(minutes=1) < find_login(store, token).expires - now() <= LASTS
    assert not find_login(store, token).is_due
    expire(store, LASTS - timedelta(minutes=59))
    assert not find_login(store, token).is_due
    expire(store, LASTS - timedelta(minutes=61))
    assert find_login(store, token).is_due
    renew(store, token)
    assert find_login(store, token).expires - now() > LASTS - timedelta(minutes=1)


def test_an_expired_login_stays_expired_and_is_removed_at_the_next_login(store):
    ada = user(store)
    token = open_login(store, ada)
    expire(store, timedelta(seconds=-1))
    renew(store, token)
    assert user_of(store, token) is None
    other = open_login(store, ada)
    assert len(rows(store, LoginRow)) == 1
    assert user_of(store, other) == ada


def test_a_log_out_ends_that_login_alone(store):
    ada = user(store)
    one, other = open_login(store, ada), open_login(store, ada)
    log_out(store, one)
    log_out(store, one)
    assert (user_of(store, one), user_of(store, other)) == (None, ada)


@pytest.mark.parametrize("token", ["", "x", "x" * 10_000, "\ud800", "é\x00"])
def test_a_token_that_was_never_given_is_nobodys(store, token):
    open_login(store, user(store))
    assert user_of(store, token) is None
    log_out(store, token)
    renew(store, token)
    assert len(rows(store, LoginRow)) == 1


def test_a_hash_made_with_old_parameters_is_made_anew(store):
    # Also of a password that would be too short today.
    old = PasswordHasher(time_cost=1, memory_cost=512, parallelism=1).hash("short")
    user(store)
    with store.write() as session:
        session.execute(update(UserRow).values(password=old))
    log_in(store, "ada", "short", HERE)
    (row,) = rows(store, UserRow)
    assert not is_outdated(row.password)
    log_in(store, "ada", "short", HERE)


@pytest.mark.parametrize("meanwhile", [end_user, lambda s, name: set_password(s, name, "another password")])
def test_a_person_deactivated_during_the_password_check_does_not_get_in(store, monkeypatch, meanwhile):
    user(store)
    check = logins.is_password

    def slow(hashed, password):
        meanwhile(store, "ada")
        return check(hashed, password)

    monkeypatch.setattr(logins, "is_password", slow)
    with pytest.raises(WrongLoginError):
        log_in(store, "ada", PASSWORD, HERE)
    assert rows(store, LoginRow) == []


def test_logins_outlast_the_store_that_is_open(sqlite_store):
    ada = user(sqlite_store)
    token = open_login(sqlite_store, ada)
    with open_store(sqlite_store.name) as other:
        assert user_of(other, token) == ada


@pytest.fixture
def boss(store):
    return user(store, "head", Role.ADMIN)


def test_an_invited_person_chooses_a_name_and_password(store, boss):
    token = invite(store, Role.ADJUDICATOR, None, boss)
    (invitation,) = list_invitations(store)
    assert (invitation.name, invitation.role, invitation.invited_by) == (None, Role.ADJUDICATOR, "head")
    assert timedelta(0) <= now() + INVITATION_LASTS - invitation.expires < timedelta(minutes=1)
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
