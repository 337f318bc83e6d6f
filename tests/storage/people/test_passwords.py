"""Passwords and their hashes."""

import time

import pytest
from argon2 import PasswordHasher

from stepsight.storage.people import passwords
from stepsight.storage.people.passwords import hash_password, is_outdated, is_password
from tests.messages import refused
from tests.storage.people.samples import PASSWORD


@pytest.fixture
def real_cost(costly_hasher):
    quick, passwords._HASHER = passwords._HASHER, costly_hasher
    passwords._nobodys.cache_clear()
    yield
    passwords._HASHER = quick
    passwords._nobodys.cache_clear()


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


def test_nobodys_password_takes_as_long_as_a_wrong_one(real_cost):
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
