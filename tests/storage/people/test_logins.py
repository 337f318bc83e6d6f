"""Logins: begun, renewed, ended."""

from datetime import timedelta

import pytest
from argon2 import PasswordHasher
from sqlalchemy import select, update

from stepsight.storage.database.people_schema import FailedLoginRow, LoginRow, UserRow
from stepsight.storage.database.schema import now
from stepsight.storage.database.store import open_store
from stepsight.storage.people import logins
from stepsight.storage.people.logins import (
    FREE_BY_NAME,
    LASTS,
    LimitError,
    WrongLoginError,
    find_login,
    log_in,
    log_out,
    open_login,
    renew,
    user_of,
)
from stepsight.storage.people.users import Role, add_user, end_user, is_outdated, set_password
from tests.messages import refused
from tests.storage.people.samples import PASSWORD, user

HERE = "10.0.0.1"


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
