"""How often a login may fail."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from sqlalchemy import select, update

from stepsight.storage.database.people_schema import FailedLoginRow
from stepsight.storage.database.schema import now
from stepsight.storage.people.attempts import (
    MOST_BY_ADDRESS,
    MOST_BY_NAME,
    WINDOW,
    LimitError,
    begin_attempt,
    forgive,
)

HERE, THERE = "10.0.0.1", "10.0.0.2"


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


def test_five_failures_of_a_name_are_let_pass_from_wherever(store):
    fail(store, MOST_BY_NAME - 1)
    fail(store, 1, address=THERE)
    for address in (HERE, THERE, "10.0.0.3"):
        with pytest.raises(LimitError, match="Too many logins failed"):
            begin_attempt(store, "ada", address)
    begin_attempt(store, "bob", HERE)


def test_twenty_failures_of_an_address_are_let_pass_at_whatever_names(store):
    fail(store, MOST_BY_ADDRESS, "user {}")
    with pytest.raises(LimitError):
        begin_attempt(store, "another", HERE)
    begin_attempt(store, "another", THERE)


def test_who_is_refused_waits_until_the_oldest_failure_is_out_of_the_window_and_no_longer(store):
    fail(store, 1)
    age(store, timedelta(minutes=10))
    fail(store, MOST_BY_NAME - 1)
    for _ in range(3):
        with pytest.raises(LimitError) as caught:
            begin_attempt(store, "ada", HERE)
        # 15 - 10 minutes.
        assert 290 <= caught.value.seconds <= 300
        assert caught.value.hint == "Try again in 5 min."
    age(store, timedelta(minutes=5, seconds=1))
    begin_attempt(store, "ada", HERE)
    with pytest.raises(LimitError):
        begin_attempt(store, "ada", HERE)


def test_what_is_out_of_the_window_is_forgotten(store):
    fail(store, 3)
    age(store, WINDOW)
    begin_attempt(store, "bob", HERE)
    assert len(rows(store)) == 2


def test_a_success_clears_the_name_and_not_the_address(store):
    fail(store, MOST_BY_NAME - 1)
    attempt = begin_attempt(store, "ada", HERE)
    with store.write() as session:
        forgive(session, attempt)
    # Of the address the four that failed are left.
    assert len(rows(store)) == MOST_BY_NAME - 1
    fail(store, MOST_BY_ADDRESS - (MOST_BY_NAME - 1), "user {}")
    with pytest.raises(LimitError):
        begin_attempt(store, "another", HERE)


def test_many_attempts_at_once_get_no_further_than_one_after_the_other(store):
    def passes(_):
        try:
            begin_attempt(store, "ada", HERE)
        except LimitError:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        passed = sum(pool.map(passes, range(24)))
    # Those that begin together may hold each other back, but never let each other through.
    assert passed <= MOST_BY_NAME
    assert len(rows(store)) == 2 * passed


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
    fail(sqlite_store, MOST_BY_ADDRESS, "user {}", address)
    if same:
        with pytest.raises(LimitError):
            begin_attempt(sqlite_store, "another", other)
    else:
        begin_attempt(sqlite_store, "another", other)


def test_an_attempt_is_counted_from_its_beginning(store):
    begin_attempt(store, "ada", HERE)
    (by_name, by_address) = rows(store)
    assert by_name.key.startswith("name ")
    assert by_address.key == f"address {HERE}"
    assert abs(by_name.moment - now()) < timedelta(minutes=1)
