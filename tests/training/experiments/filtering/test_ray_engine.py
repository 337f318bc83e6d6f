"""Workers on Ray, one of which dies. Without Ray only its absence is tested."""

import importlib.util
import os
import subprocess
import sys

import pytest
from stepsight.training.experiments.filtering.ray_engine import check_room, import_ray

from stepsight.core.errors import UserError
from stepsight.core.models.placement import Placement
from stepsight.training.experiments.filtering.run import filter_pool
from tests.conftest import ROOT
from tests.training.experiments.filtering.pools import files, wanted

needs_ray = pytest.mark.skipif(
    importlib.util.find_spec("ray") is None, reason="Ray is not installed: stepsight[ray]"
)


def test_without_ray_its_extra_is_named(tmp_path, tiny, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(UserError, match=r"--engine ray needs Ray\. Run: pip install 'stepsight\[ray\]'"):
        import_ray()
    with pytest.raises(UserError, match="needs Ray"):
        filter_pool(wanted(tmp_path, tiny, engine="ray"))
    assert not (tmp_path / "out").exists()


@needs_ray
def test_a_worker_has_one_device(tmp_path, tiny):
    with pytest.raises(UserError, match="Leave --device-map out"):
        filter_pool(wanted(tmp_path, tiny, engine="ray", place=Placement(device_map="auto")))


@pytest.mark.parametrize(
    ("resources", "workers", "gpus", "message"),
    [
        ({"CPU": 4.0}, 2, 0, None),
        ({"CPU": 3.0}, 2, 0, None),
        ({"CPU": 2.0}, 2, 0, "Ray has 2 CPUs, and --workers 2 needs 3. Give fewer."),
        ({"CPU": 8.0, "GPU": 2.0}, 2, 1, None),
        ({"CPU": 8.0, "GPU": 2.0}, 3, 1, "Ray has 2 GPUs, and --workers 3 needs 3. Give fewer."),
        ({"CPU": 8.0}, 1, 1, "Ray has 0 GPUs, and --workers 1 needs 1. Give fewer."),
    ],
)
def test_workers_that_would_wait_for_ever_are_refused(resources, workers, gpus, message):
    if message is None:
        check_room(resources, workers, gpus)
        return
    with pytest.raises(UserError) as told:
        check_room(resources, workers, gpus)
    assert str(told.value) == message


WORKERS = """
import os, signal, sys, time
from pathlib import Path
from stepsight.training.experiments.filtering import ray_engine, run

folder, evaluator = map(Path, sys.argv[1:])

class Dying(ray_engine._RayWorker):
    # Of two, the one that comes to the tenth chunk dies over it, once.
    def __call__(self, batch):
        with open(folder / "calls", "a") as file:
            file.write(f"{os.getpid()} {int(batch['id'][0])}\\n")
        if 9 in batch["id"] and not (folder / "killed").exists():
            (folder / "killed").write_text(str(os.getpid()))
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(0.1)
        return super().__call__(batch)

ray_engine._RayWorker = Dying
run.filter_pool(run.Filtering(
    (folder / "pool.jsonl",), folder / "out", str(evaluator), validity=0.3, redundancy=0.6, chunk=8,
    engine="ray", workers=2,
))
"""


@needs_ray
def test_no_row_is_lost_or_doubled_where_a_worker_dies(tmp_path, tiny):
    filter_pool(wanted(tmp_path, tiny, "local", rows=200))
    command = [sys.executable, "-c", WORKERS, str(tmp_path), str(tiny)]
    paths = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = os.environ | {"PYTHONPATH": paths, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=900)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    calls = [line.split() for line in (tmp_path / "calls").read_text().splitlines()]
    killed = (tmp_path / "killed").read_text()
    # It had begun to work, the tenth of 25 chunks came to another, and there were two at any time.
    assert {number for _, number in calls} == {str(number) for number in range(25)}
    assert len([number for _, number in calls if number == "9"]) >= 2
    assert next(pid for pid, number in calls if number == "9") == killed
    assert len({pid for pid, _ in calls}) >= 3
    # Scores, subsets and manifest are those of one process.
    assert files(tmp_path / "out") == files(tmp_path / "local")
