"""How often a login may fail."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from sqlalchemy import select, update

from stepsight.storage.database.schema import FailedLoginRow, HomeRow, now
from stepsight.storage.people.logins import (
    AT_HOME,
    FREE_BY_ADDRESS,
    FREE_BY_NAME,
    LONGEST_BY_ADDRESS,
    LONGEST_BY_NAME,
    WINDOW,
    LimitError,
    _Limit,
    begin_attempt,
    forgive,
)
from tests.messages import refused

HERE, THERE = "10.0.0.1", "10.0.0.2"


@pytest.fixture(autouse=True)
def still(monkeypatch):
    """No second passes between two attempts, however long they take."""
    moment = now()
    monkeypatch.setattr("stepsight.storage.database.schema._clock", lambda: moment)


def rows(store):
    with store.read() as session:
        return list(session.scalars(select(FailedLoginRow).order_by(FailedLoginRow.id)))


def age(store, by):
    """As if every attempt had been so much earlier."""
    with store.write() as session:
        for row in session.scalars(select(FailedLoginRow)).all():
            session.execute(
                update(FailedLoginRow).where(FailedLoginRow.id == row.id).values(moment=row.moment - by)
            )


def fail(store, times, name="ada", address=HERE):
    """So many attempts that fail; with `{}` in the name, at so many names."""
    for i in range(times):
        begin_attempt(store, name.format(i), address)


def pause_of(store, name="ada", address=HERE):
    """Seconds to wait before the next attempt, which is refused now."""
    with refused(LimitError) as caught:
        begin_attempt(store, name, address)
    return caught.value.seconds


def succeed(store, name="ada", address=HERE):
    attempt = begin_attempt(store, name, address)
    with store.write() as session:
        forgive(session, attempt)


def fail_on(store, times):
    """So many attempts that fail, each as soon as it may."""
    for _ in range(times):
        try:
            fail(store, 1)
        except LimitError as error:
            age(store, timedelta(seconds=error.seconds))
            fail(store, 1)


def test_failures_of_a_name_bring_a_pause_wherever_they_came_from(store):
    fail(store, FREE_BY_NAME - 1)
    fail(store, 1, address=THERE)
    for address in (HERE, THERE, "10.0.0.3"):
        assert pause_of(store, address=address) == 5
    begin_attempt(store, "bob", HERE)
    age(store, timedelta(seconds=5))
    begin_attempt(store, "ada", HERE)


def test_every_further_failure_doubles_the_pause_up_to_the_longest(store):
    fail(store, FREE_BY_NAME)
    for pause in (5, 10, 20, 40, 80, 160, 320, 640):
        assert pause_of(store) == pause
        age(store, timedelta(seconds=pause))
        fail(store, 1)
    limit = _Limit("name", FREE_BY_NAME, LONGEST_BY_NAME)
    assert limit.pause(10**6) == LONGEST_BY_NAME


def test_failures_of_an_address_bring_a_pause_at_whatever_name_and_a_short_one(store):
    fail(store, FREE_BY_ADDRESS, "user {}")
    assert pause_of(store, "another") == 5
    begin_attempt(store, "another", THERE)
    with store.write() as session:
        session.add_all(FailedLoginRow(key=f"address {HERE}") for _ in range(100))
    assert pause_of(store, "another") == LONGEST_BY_ADDRESS.total_seconds()


def test_a_refused_person_waits_for_the_pause_and_no_longer(store):
    fail_on(store, FREE_BY_NAME + 4)
    assert [pause_of(store) for _ in range(3)] == [80] * 3
    age(store, timedelta(seconds=40))
    assert pause_of(store) == 40
    age(store, timedelta(seconds=40))
    begin_attempt(store, "ada", HERE)


def test_failures_elsewhere_do_not_pause_an_address_that_logged_in(store):
    succeed(store)
    fail(store, FREE_BY_NAME, address=THERE)
    assert pause_of(store, address=THERE) == 5
    succeed(store)
    # Nor by those behind the same address.
    fail(store, FREE_BY_ADDRESS, "user {}")
    pause_of(store, "bob")
    succeed(store)


def test_at_home_too_a_password_cannot_be_tried_for_ever(store):
    succeed(store)
    fail(store, FREE_BY_NAME)
    assert pause_of(store) == 5
    # Elsewhere they count as well.
    assert pause_of(store, address=THERE) == 5


def test_an_address_stays_known_for_a_while(store):
    succeed(store)
    with store.write() as session:
        session.execute(update(HomeRow).values(moment=now() - AT_HOME))
    fail(store, FREE_BY_NAME, address=THERE)
    assert pause_of(store) == 5


def test_a_clock_that_was_set_back_lengthens_no_pause(store):
    fail_on(store, FREE_BY_NAME + 2)
    age(store, -timedelta(hours=1))
    assert pause_of(store) == 20


def test_failures_outside_the_window_are_forgotten(store):
    fail(store, 3)
    age(store, WINDOW)
    begin_attempt(store, "bob", HERE)
    assert len(rows(store)) == 3


def test_a_success_clears_the_name_and_not_the_address(store):
    fail(store, FREE_BY_NAME - 1)
    succeed(store)
    # Of the address the four that failed are left.
    assert [row.key for row in rows(store)] == [f"address {HERE}"] * (FREE_BY_NAME - 1)
    fail(store, FREE_BY_ADDRESS - (FREE_BY_NAME - 1), "user {}")
    assert pause_of(store, "another") == 5


def test_many_attempts_at_once_get_no_further_than_one_after_the_other(store):
    def passes(_):
        try:
            begin_attempt(store, "ada", HERE)
        except LimitError:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        passed = sum(pool.map(passes, range(24)))
    assert (passed, len(rows(store))) == (FREE_BY_NAME, 3 * FREE_BY_NAME)


def test_neither_a_name_nor_what_was_typed_in_its_place_is_kept(store):
    begin_attempt(store, "my secret password", HERE)
    assert not any("secret" in row.key for row in rows(store))
    assert begin_attempt(store, "x" * 5_000 + "\ud800\x00", HERE)


@pytest.mark.parametrize(
    ("address", "other", "same"),
    [
        ("2001:db8::1", "2001:db8::ffff:2", True),
        ("2001:db8::1", "2001:db8:0:1::1", False),
        ("::ffff:10.0.0.1", "10.0.0.1", True),
        ("10.0.0.1", "10.0.0.2", False),
        ("", "testclient", True),
    ],
)
def test_an_address_is_what_one_person_has(sqlite_store, address, other, same):
    fail(sqlite_store, FREE_BY_ADDRESS, "user {}", address)
    if same:
        with pytest.raises(LimitError):
            begin_attempt(sqlite_store, "another", other)
    else:
        begin_attempt(sqlite_store, "another", other)


def test_an_attempt_is_counted_from_its_beginning(store):
    begin_attempt(store, "ada", HERE)
    (by_name, by_address, home) = rows(store)
    assert by_name.key.startswith("name ")
    assert by_address.key == f"address {HERE}"
    assert HERE not in home.key
    assert abs(by_name.moment - now()) < timedelta(minutes=1)
