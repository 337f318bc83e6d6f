"""People: added, changed, shut out."""

import pytest

from stepsight.core.errors import UserError
from stepsight.storage.database.store import NotFoundError
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
