"""Workers on Ray that score a pool, one of which dies. Without Ray only its absence is tested."""

import sys

import pytest

from stepsight.core.models.placement import Placement
from stepsight.training.experiments.filtering.run import filter_pool
from tests.messages import refused
from tests.ray_workers import needs_ray, with_a_death
from tests.training.experiments.filtering.pools import files, wanted

pytestmark = pytest.mark.slow


def test_without_ray_nothing_is_begun(tmp_path, tiny, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with refused():
        filter_pool(wanted(tmp_path, tiny, engine="ray"))
    assert not (tmp_path / "out").exists()


@needs_ray
def test_a_worker_has_an_evaluator_of_its_own_on_one_device(tmp_path, tiny):
    with refused():
        filter_pool(wanted(tmp_path, tiny, engine="ray", place=Placement(device_map="auto")))
    with refused():
        filter_pool(wanted(tmp_path, "vllm:http://localhost:1/v1#m", engine="ray"))
    assert not (tmp_path / "out").exists()


@needs_ray
def test_no_row_is_lost_or_doubled_where_a_worker_dies(tmp_path, tiny):
    asked = wanted(tmp_path, tiny, "local", rows=400, chunk=128)
    filter_pool(asked)
    options = ["--evaluator", tiny, "--validity", 0.3, "--redundancy", 0.6]
    done = with_a_death(tmp_path / "notes", 2, "filter", *asked.pool, "--output", tmp_path / "out", *options)
    assert done.stdout == f"{tmp_path / 'out' / 'manifest.json'}\n"
    # Scores, subsets and manifest are those of one process.
    assert files(tmp_path / "out") == files(tmp_path / "local")
