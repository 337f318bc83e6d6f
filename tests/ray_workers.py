"""Commands with workers on Ray, one of which is killed over a part. Without Ray only its absence is tested."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT

needs_ray = pytest.mark.skipif(
    importlib.util.find_spec("ray") is None or (os.cpu_count() or 1) < 2,
    reason="Ray is not installed (stepsight[ray]), or there is one processor only",
)

_SOURCE = """
import os, signal, sys
from pathlib import Path
from stepsight.app.commands.cli import main
from stepsight.training.experiments.filtering import run
from stepsight.training.runs import ray_engine, ray_scoring

notes, at = Path(sys.argv[1]), int(sys.argv[2])
work_on_ray = ray_engine.work_on_ray

class Dying:
    # What a worker does, noted; the worker that comes to part number `at` dies over it, once.
    def __init__(self, make):
        self.make = make

    def __call__(self):
        work = self.make()

        def do(numbered):
            number, part = numbered
            with open(notes / "calls", "a") as file:
                file.write(f"{os.getpid()} {number}\\n")
            if number == at and not (notes / "killed").exists():
                (notes / "killed").write_text(str(os.getpid()))
                os.kill(os.getpid(), signal.SIGKILL)
            return work(part)

        return do

def dying(make, parts, workers, gpus):
    return work_on_ray(Dying(make), enumerate(parts), workers, gpus)

run.work_on_ray = ray_scoring.work_on_ray = dying
sys.exit(main(sys.argv[3:]))
"""


def python(source: str, *arguments: Any) -> subprocess.CompletedProcess[str]:
    """A source in a process of its own, on one thread, whose workers find this checkout."""
    paths = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = os.environ | {"PYTHONPATH": paths, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", source, *map(str, arguments)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=900)


def with_a_death(notes: Path, at: int, *arguments: Any) -> subprocess.CompletedProcess[str]:
    """`stepsight` with two workers, of which the one that comes to part number `at` is killed over it; checks that
    it was, that another one did the part, and that no other part was lost."""
    notes.mkdir()
    done = python(_SOURCE, notes, at, *arguments, "--engine", "ray", "--workers", 2)
    assert done.returncode == 0, done.stderr
    calls = [line.split() for line in (notes / "calls").read_text().splitlines()]
    by = [pid for pid, number in calls if number == str(at)]
    assert len(by) >= 2
    assert by[0] == (notes / "killed").read_text() != by[-1]
    numbers = {int(number) for _, number in calls}
    assert numbers == set(range(max(numbers) + 1))
    return done
