"""Slots: whose they are, and until when."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from itertools import pairwise

import pytest
from sqlalchemy import func, select

from stepsight.storage.database.labelling_schema import SlotRow
from stepsight.storage.database.schema import now
from stepsight.storage.database.store import ConflictError, ForbiddenError, NotFoundError, Store
from stepsight.storage.labelling.assignments import (
    Slot,
    add_slot,
    check_open,
    check_owner,
    end,
    find_slot,
    load_slot,
    renew,
    take,
)
from stepsight.storage.labelling.queue import Assignment
from tests.messages import refused
from tests.storage.labelling.samples import ONE, TWO, campaign, people
from tests.storage.labelling.samples import take as take_next


def first(store: Store) -> Slot:
    with store.read() as session:
        return load_slot(session, session.scalars(select(SlotRow.id).order_by(SlotRow.id)).first() or 0)


@pytest.fixture
def slot(store: Store) -> Slot:
    campaign(store, [TWO], lease=100, view="stepwise", after_error=False)
    return first(store)


def test_a_slot_says_what_decides_over_an_act(slot: Slot) -> None:
    assert (slot.state, slot.user_id, slot.expires, slot.ended) == ("free", None, None, False)
    assert (slot.chosen, slot.digest, slot.current_digest, slot.n_steps) == ("ordered", TWO.digest, TWO.digest, 2)
    assert (slot.settings.stepwise, slot.settings.after_error, slot.settings.lease) == (True, False, 100)
    assert (slot.evaluator_id, slot.closed, slot.guideline) == (None, None, 1)


def test_it_is_taken_renewed_and_ended(store: Store, slot: Slot) -> None:
    (user,) = people(store, 1)
    with store.write() as session:
        take(session, slot.id, user, 100)
    taken = first(store)
    assert (taken.state, taken.user_id) == ("leased", user.id)
    assert taken.expires is not None
    assert timedelta(seconds=50) < taken.expires - now() <= timedelta(seconds=100)
    with store.write() as session:
        renew(session, slot.id, 1000)
    renewed = first(store)
    assert renewed.expires is not None
    assert renewed.expires > now() + timedelta(seconds=900)
    with store.write() as session:
        end(session, renewed, "submitted")
    ended = first(store)
    assert (ended.state, ended.user_id, ended.expires, ended.ended) == ("submitted", user.id, None, True)
    with store.write() as session:
        renew(session, slot.id, 100)
    assert first(store).state == "leased"


def test_a_skipped_one_is_replaced(store: Store, slot: Slot) -> None:
    (user,) = people(store, 1)
    with store.write() as session:
        take(session, slot.id, user, 100)
        end(session, load_slot(session, slot.id), "skipped")
    with store.read() as session:
        rows = session.execute(select(SlotRow.number, SlotRow.state).order_by(SlotRow.number)).all()
    assert [tuple(row) for row in rows] == [(0, "skipped"), (1, "free")]


def test_public_ids_tell_neither_order_nor_gaps(store: Store) -> None:
    made = campaign(store, [ONE, TWO], overlap=50)
    with store.write() as session:
        # As a hidden gold item's is made, long after the others.
        late = [add_slot(session, made.id, item) for item in (1, 2)]
    with store.read() as session:
        ids = session.execute(select(SlotRow.id, SlotRow.public_id).order_by(SlotRow.id)).all()
    public = [row.public_id for row in ids]
    assert len(set(public)) == len(ids) == 102
    assert all(len(one) == 16 and set(one) <= set("0123456789abcdef") for one in public)
    # Of 102 in a random order, hardly ever more than 80 or fewer than 20 are larger than the one before.
    assert 20 < sum(one < other for one, other in pairwise(public)) < 80
    assert [find_slot(store, row.public_id) for row in ids[-2:]] == late


@pytest.mark.parametrize("link", ["1", "", "00000000", "x" * 300])
def test_a_link_to_no_slot_says_where_to_go_on(store: Store, slot: Slot, link: str) -> None:
    assert slot.id == 1
    with refused(NotFoundError):
        find_slot(store, link)


def test_slots_that_are_added_at_once_get_numbers_of_their_own(store: Store, slot: Slot) -> None:
    def add(_: int) -> int:
        with store.write() as session:
            return add_slot(session, slot.campaign_id, slot.item_id)

    with ThreadPoolExecutor(6) as pool:
        assert len(set(pool.map(add, range(12)))) == 12
    with store.read() as session:
        assert session.scalar(select(func.max(SlotRow.number))) == 12


def test_it_is_one_persons(store: Store) -> None:
    made = campaign(store, [ONE], overlap=2)
    one, other = people(store, 2)
    task: Assignment = take_next(store, made, one)

    def loaded() -> Slot:
        with store.read() as session:
            return load_slot(session, task.slot_id)

    check_owner(loaded(), one)
    with refused(ConflictError):
        check_owner(loaded(), other)
    with store.read() as session:
        free = load_slot(session, session.scalars(select(SlotRow.id).where(SlotRow.state == "free")).one())
    with refused(ForbiddenError):
        check_owner(free, one)
    check_open(loaded())


@pytest.mark.parametrize("wrong", [0, -1, 99, 2**40])
def test_an_unknown_one_is_told(store: Store, wrong: int) -> None:
    with store.read() as session, refused(NotFoundError):
        load_slot(session, wrong)
