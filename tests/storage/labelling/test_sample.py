"""A campaign of a random sample of the traces that meet the conditions."""

import pytest
from sqlalchemy import select

from stepsight.core.trace import Trace
from stepsight.storage.browse.filters import TraceFilter
from stepsight.storage.database.labelling_schema import ItemRow
from stepsight.storage.database.schema import TraceRow
from stepsight.storage.labelling.campaigns import list_campaigns
from tests.messages import refused
from tests.storage.labelling.samples import campaign
from tests.storage.samples import add

# Of forty traces every other one has an error.
FORTY = [Trace.of(f"Number {n}?", ["So."], ["neg" if n % 2 else "pos"], id=f"n{n}") for n in range(40)]


def chosen(store, made):
    wanted = select(TraceRow.external_id).join(ItemRow, ItemRow.trace_id == TraceRow.id)
    with store.read() as session:
        return list(session.scalars(wanted.where(ItemRow.campaign_id == made.id).order_by(ItemRow.place)))


def test_it_is_of_the_filter_drawn_by_the_seed_and_recorded(store):
    add(store, FORTY, "sums")
    where = TraceFilter(gold="error")
    one = campaign(store, None, name="one", conditions=where, sample=7, seed=3)
    assert (one.sample, one.population, one.seed, one.items) == (7, 20, 3, 7)
    drawn = chosen(store, one)
    assert len(set(drawn)) == 7
    assert all(int(name[1:]) % 2 for name in drawn)
    # In file order, and not merely the first ones.
    assert drawn == sorted(drawn, key=lambda name: int(name[1:]))
    assert drawn != [f"n{n}" for n in range(1, 15, 2)]
    again = campaign(store, None, name="again", conditions=where, sample=7, seed=3)
    other = campaign(store, None, name="other", conditions=where, sample=7, seed=4)
    assert chosen(store, again) == drawn
    assert chosen(store, other) != drawn
    # A random order stays within the sample.
    mixed = campaign(store, None, name="mixed", conditions=where, sample=7, seed=3, ordering="random")
    assert (sorted(chosen(store, mixed)), chosen(store, mixed) == drawn) == (sorted(drawn), False)


def test_every_trace_is_as_likely_as_any_other(store):
    add(store, FORTY, "sums")
    counts = dict.fromkeys((trace.id for trace in FORTY), 0)
    for seed in range(30):
        for name in chosen(store, campaign(store, None, name=f"by {seed}", sample=10, seed=seed)):
            counts[name] += 1
    # Each is expected 7.5 times of 30, with a standard deviation of 2.4.
    assert min(counts.values()) >= 1
    assert max(counts.values()) <= 17


@pytest.mark.parametrize("sample", [0, 41])
def test_samples_that_cannot_be(store, sample):
    add(store, FORTY, "sums")
    with refused():
        campaign(store, None, sample=sample)
    assert list_campaigns(store) == []


def test_all_are_taken_where_no_sample_is_asked_for(store):
    made = campaign(store)
    assert (made.sample, made.population, made.items) == (None, None, 3)
