"""People: added, changed, shut out, and their passwords."""

import time

import pytest
from argon2 import PasswordHasher

from stepsight.core.errors import UserError
from stepsight.storage.database.store import NotFoundError
from stepsight.storage.people import users
from stepsight.storage.people.logins import log_in, open_login, user_of
from stepsight.storage.people.users import (
    LOCAL,
    Role,
    User,
    add_user,
    check_new_name,
    end_user,
    find_user,
    has_users,
    hash_password,
    is_outdated,
    is_password,
    list_users,
    local_user,
    set_password,
    set_role,
)
from tests.messages import refused
from tests.storage.people.samples import PASSWORD, user


def test_a_user_is_added_and_found(store):
    added = add_user(store, "Ada Lovelace", Role.ANNOTATOR, PASSWORD)
    assert added == User(added.id, "Ada Lovelace", Role.ANNOTATOR, active=True)
    assert find_user(store, "Ada Lovelace") == added
    with refused(NotFoundError):
        find_user(store, "ada")


def test_a_name_is_given_once(store):
    first = user(store)
    with refused():
        add_user(store, "ada", Role.ADMIN, PASSWORD)
    end_user(store, "ada")
    with refused():
        add_user(store, "ada", Role.ADMIN, PASSWORD)
    assert list_users(store) == [User(first.id, "ada", Role.ANNOTATOR, active=False)]


@pytest.mark.parametrize("name", ["", " ada", "a\nda", "a" * 201, "a\x00"])
def test_an_invalid_name_is_refused(sqlite_store, name):
    with pytest.raises(UserError):
        add_user(sqlite_store, name, Role.ADMIN, PASSWORD)
    assert list_users(sqlite_store) == []


@pytest.mark.parametrize(
    "name",
    # Cyrillic а, full width, ada and a sign that chooses a form, a blank of Braille, a filler, another case, local.
    ["аda", "ａｄａ", "ada\ufe0f", "a\u2800da", "ada\u3164", "Ada", "lосаl", "ｌｏｃａｌ", "\u3164"],
    ids=ascii,
)
def test_a_name_that_reads_like_another_is_refused(sqlite_store, name):
    user(sqlite_store)
    with refused():
        add_user(sqlite_store, name, Role.VIEWER, PASSWORD)
    with sqlite_store.read() as session, pytest.raises(UserError):
        check_new_name(session, name)
    assert [one.name for one in list_users(sqlite_store)] == ["ada"]


def test_other_scripts_and_names_that_differ_are_taken(sqlite_store):
    for name in ("ada", "adam", "ana", "Ада Лавлейс", "Άδα", "艾达", "عائشة", "zoë", "zoe"):
        assert add_user(sqlite_store, name, Role.VIEWER, PASSWORD).name == name


def test_a_name_is_found_however_a_keyboard_composes_it(sqlite_store):
    zoe = add_user(sqlite_store, "zoë", Role.VIEWER, PASSWORD)
    for name in ("zoë", "zoe\u0308", "ｚｏë"):
        assert find_user(sqlite_store, name) == zoe
        assert user_of(sqlite_store, log_in(sqlite_store, name, PASSWORD, "127.0.0.1")) == zoe


def test_a_short_password_adds_nobody(sqlite_store):
    with refused():
        add_user(sqlite_store, "ada", Role.ADMIN, "short")
    assert list_users(sqlite_store) == []


def test_logging_in_is_required_once_a_person_can(store):
    assert not has_users(store)
    add_user(store, "imported", Role.ANNOTATOR, None)
    local_user(store)
    assert not has_users(store)
    user(store)
    assert has_users(store)
    end_user(store, "ada")
    assert not has_users(store)


def test_the_local_user_is_one_admin_whom_nothing_changes(store):
    local = local_user(store)
    assert local == User(local.id, LOCAL, Role.ADMIN, active=True)
    assert local_user(store) == local
    # As an import of labels adds people who are not there.
    assert add_user(store, LOCAL, Role.ANNOTATOR, None) == local
    for act in (
        lambda: add_user(store, LOCAL, Role.VIEWER, PASSWORD),
        lambda: set_role(store, LOCAL, Role.VIEWER),
        lambda: set_password(store, LOCAL, PASSWORD),
        lambda: end_user(store, LOCAL),
    ):
        with refused():
            act()
    assert list_users(store) == [local]


def test_a_role_changes_at_once(store):
    token = open_login(store, user(store))
    assert set_role(store, "ada", Role.ADJUDICATOR).role is Role.ADJUDICATOR
    assert user_of(store, token).role is Role.ADJUDICATOR


@pytest.mark.parametrize("act", [end_user, lambda store, name: set_password(store, name, "another password")])
def test_an_end_and_a_new_password_end_the_logins_of_that_user(store, act):
    ada, bob = user(store), user(store, "bob")
    tokens = [open_login(store, one) for one in (ada, ada, bob)]
    act(store, "ada")
    assert [user_of(store, token) for token in tokens] == [None, None, bob]


def test_a_new_password_lets_in_again_who_was_ended(store):
    ada = user(store)
    assert not end_user(store, "ada").active
    assert end_user(store, "ada") == find_user(store, "ada")
    assert set_password(store, "ada", "another password") == ada


def test_a_deactivated_person_cannot_reactivate_themselves(store):
    user(store)
    end_user(store, "ada")
    with refused():
        set_password(store, "ada", "another password", lets_in=False)
    assert not has_users(store)


def test_an_unknown_name_is_refused(sqlite_store):
    for act in (lambda: set_role(sqlite_store, "x", Role.ADMIN), lambda: end_user(sqlite_store, "x"),
                lambda: set_password(sqlite_store, "x", PASSWORD)):  # fmt: skip
        with pytest.raises(NotFoundError):
            act()


@pytest.fixture
def real_cost(costly_hasher):
    quick, users._HASHER = users._HASHER, costly_hasher
    users._decoy_hash.cache_clear()
    yield
    users._HASHER = quick
    users._decoy_hash.cache_clear()


@pytest.fixture(scope="module")
def hashed():
    return hash_password(PASSWORD)


def test_a_hash_is_argon2id_with_the_memory_that_rfc_9106_asks_for(real_cost):
    # Its second recommended choice: 64 MiB = 65,536 KiB, 3 passes, 4 lanes.
    hashed = hash_password(PASSWORD)
    assert hashed.startswith("$argon2id$v=19$m=65536,t=3,p=4$")
    assert PASSWORD not in hashed


def test_only_the_password_fits(hashed):
    assert is_password(hashed, PASSWORD)
    for other in (PASSWORD + " ", PASSWORD.upper(), "", PASSWORD[:-1]):
        assert not is_password(hashed, other)


def test_two_hashes_of_one_password_differ(hashed):
    assert hash_password(PASSWORD) != hashed


@pytest.mark.parametrize("password", ["", "a" * 9, "é" * 9])
def test_a_short_password_is_refused(password):
    with refused():
        hash_password(password)


@pytest.mark.parametrize("password", ["a" * 10, " " * 10, "passwort\x00mit NUL", "中" * 10, "x" * 10_000])
def test_any_other_is_taken(password):
    assert is_password(hash_password(password), password)


def test_how_a_keyboard_composes_a_letter_does_not_matter():
    one, other = "Gr\u00f6\u00dfe der Welt", "Gro\u0308\u00dfe der Welt"
    assert one != other
    assert is_password(hash_password(one), other)


@pytest.mark.parametrize("hashed", ["", "plain", "$argon2id$v=19$m=65536,t=3,p=4$c2FsdA$"])
def test_an_invalid_hash_matches_no_password(hashed):
    assert not is_password(hashed, "")
    assert not is_password(hashed, PASSWORD)


def test_decoy_hash_password_takes_as_long_as_a_wrong_one(real_cost):
    hashed = hash_password(PASSWORD)
    is_password(None, PASSWORD)
    wrong, nobodys = (min(_seconds(one) for _ in range(3)) for one in (hashed, None))
    # A hash takes some 50 ms; looking nothing up would take none.
    assert nobodys > wrong / 3


def test_a_hash_with_other_parameters_is_outdated(hashed):
    assert not is_outdated(hashed)
    weaker = PasswordHasher(time_cost=1, memory_cost=1024, parallelism=1).hash(PASSWORD)
    assert is_outdated(weaker)
    assert is_password(weaker, PASSWORD)


def _seconds(hashed):
    began = time.process_time()
    assert not is_password(hashed, "wrong")
    return time.process_time() - began
