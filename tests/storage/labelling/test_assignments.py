"""Slots: whose they are, and until when."""

from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import pytest
from sqlalchemy import func, select

from stepsight.storage.database.labelling_schema import SlotRow
from stepsight.storage.database.store import NotFoundError
from stepsight.storage.labelling.assignments import (
    add_slot,
    find_slot,
    load_slot,
)
from tests.messages import refused
from tests.storage.labelling.samples import ONE, TWO, campaign


def first(store):
    with store.read() as session:
        return load_slot(session, session.scalars(select(SlotRow.id).order_by(SlotRow.id)).first() or 0)


@pytest.fixture
def slot(store):
    campaign(store, [TWO], lease=100, view="stepwise", after_error=False)
    return first(store)


def test_public_ids_tell_neither_order_nor_gaps(store):
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
def test_a_link_to_no_slot_says_where_to_go_on(store, slot, link):
    assert slot.id == 1
    with refused(NotFoundError):
        find_slot(store, link)


def test_slots_that_are_added_at_once_get_numbers_of_their_own(store, slot):
    def add(_: int) -> int:
        with store.write() as session:
            return add_slot(session, slot.campaign_id, slot.item_id)

    with ThreadPoolExecutor(6) as pool:
        assert len(set(pool.map(add, range(12)))) == 12
    with store.read() as session:
        assert session.scalar(select(func.max(SlotRow.number))) == 12
