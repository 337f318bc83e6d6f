"""Annotators at the same time, and a server that is killed meanwhile: a short form of what `make bench` runs."""

import pytest

from tests.annotators import Killer, faults, label_together, prepare
from tests.labelling_server import labelling_server


@pytest.fixture
def reach(store):
    """The address of the store for another process."""
    return store.engine.url.render_as_string(hide_password=False)


@pytest.mark.slow
def test_ten_at_once_fill_every_slot_and_lose_nothing(store, reach):
    campaign, people = prepare(store, annotators=10, traces=10, overlap=3)
    with labelling_server(reach) as server:
        annotators = label_together(store, server.port, campaign, people)
    assert faults(store, campaign, annotators) == []
    # 10 traces, each submitted by three.
    assert sum(len(annotator.labels) for annotator in annotators) == 30
    # Each label is an act of its own, and each submission.
    assert sum(len(annotator.acknowledged) for annotator in annotators) >= 60


@pytest.mark.slow
def test_a_server_that_is_killed_loses_and_doubles_nothing(store, reach):
    campaign, people = prepare(store, annotators=6, traces=12, overlap=3)
    with labelling_server(reach) as server:
        killer = Killer(server, most=2)
        annotators = label_together(store, server.port, campaign, people, killer)
    assert faults(store, campaign, annotators) == []
    assert killer.kills == 2
