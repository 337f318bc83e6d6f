"""Annotators at the same time, and a server that is killed meanwhile: a short form of what `make bench` runs."""

import pytest
from sqlalchemy import select, update

from stepsight.storage.database.labelling_schema import EventRow, SlotRow
from stepsight.storage.database.store import Store
from tests.benchmarks.annotators import Killer, faults, label_together, prepare
from tests.labelling_server import labelling_server


@pytest.fixture
def reach(store: Store) -> str:
    """The address of the store for another process."""
    return store.engine.url.render_as_string(hide_password=False)


@pytest.mark.slow
def test_ten_at_once_fill_every_slot_and_lose_nothing(store: Store, reach: str) -> None:
    campaign, people = prepare(store, annotators=10, traces=10, overlap=3)
    with labelling_server(reach) as server:
        annotators = label_together(store, server.port, campaign, people)
    assert faults(store, campaign, annotators) == []
    # 10 traces, each submitted by three.
    assert sum(len(annotator.labels) for annotator in annotators) == 30
    # Each label is an act of its own, and each submission.
    assert sum(len(annotator.acknowledged) for annotator in annotators) >= 60


@pytest.mark.slow
def test_a_server_that_is_killed_loses_and_doubles_nothing(store: Store, reach: str) -> None:
    campaign, people = prepare(store, annotators=6, traces=12, overlap=3)
    with labelling_server(reach) as server:
        killer = Killer(server, most=2)
        annotators = label_together(store, server.port, campaign, people, killer)
    assert faults(store, campaign, annotators) == []
    assert killer.kills == 2


def test_what_is_missing_or_too_much_is_found(sqlite_store: Store) -> None:
    campaign, people = prepare(sqlite_store, annotators=2, traces=2, overlap=1)
    with labelling_server(sqlite_store.name) as server:
        annotators = label_together(sqlite_store, server.port, campaign, people)
    assert faults(sqlite_store, campaign, annotators) == []
    one = next(annotator for annotator in annotators if annotator.acknowledged)
    key, (moment, kind, step, new) = one.acknowledged.popitem()
    extra = f"in the log and not acknowledged: {(moment, kind, step, new)}"
    assert faults(sqlite_store, campaign, annotators) == [extra]
    one.acknowledged[key] = (moment, kind, step, "another")
    assert len(faults(sqlite_store, campaign, annotators)) == 1
    one.acknowledged[key] = (moment, kind, step, new)
    with sqlite_store.read() as session:
        slot = session.scalars(select(EventRow.slot_id).where(EventRow.key == key)).one()
    with sqlite_store.write() as session:
        session.execute(update(SlotRow).where(SlotRow.id == slot).values(state="free", user_id=None, ended=None))
    assert len(faults(sqlite_store, campaign, annotators)) == 2
