"""Many viewers at once: a short form of what `make bench` measures."""

from urllib.parse import urlsplit

import pytest

from stepsight.storage.database.store import open_store
from tests.benchmarks.viewers import Viewers, percentile
from tests.serving import served
from tests.storage.samples import add

pytestmark = pytest.mark.slow


def test_viewers_at_once_each_get_their_trace(evaluators, tmp_path):
    with open_store(str(tmp_path / "store.db")) as store:
        add(store)
        with served(store, evaluators) as address:
            port = urlsplit(address).port
            assert port is not None
            viewers = Viewers(port, 12, pause=0.2, dataset="sums")
            assert len(viewers.traces) == 4
            viewers.watch(2)
    assert viewers.errors == []
    # Each opened at least one; each is held to the trace that it asked for.
    assert len(viewers.seconds) >= 12


def test_a_viewer_that_gets_another_trace_counts_as_an_error(evaluators, tmp_path):
    with open_store(str(tmp_path / "store.db")) as store:
        add(store)
        with served(store, evaluators) as address:
            port = urlsplit(address).port
            assert port is not None
            viewers = Viewers(port, 2, pause=0.1, dataset="sums")
            viewers.traces = [99]
            viewers.watch(0.3)
    assert viewers.seconds == []
    assert viewers.errors
    assert "404" in viewers.errors[0]


def test_percentiles():
    # Of 1 to 100, five are larger than 95.
    values = [float(value) for value in range(100, 0, -1)]
    assert percentile(values, 0.95) == 96
    assert percentile([3.0], 0.95) == 3
