import sys
from contextlib import nullcontext

import pytest

from stepsight.training.runs.ray_engine import check_room, import_ray, work_on_ray
from tests.messages import refused
from tests.ray_workers import needs_ray, python

pytestmark = pytest.mark.slow


def test_without_ray_its_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with refused():
        import_ray()


@pytest.mark.parametrize(
    ("resources", "workers", "gpus", "enough"),
    [
        ({"CPU": 4.0}, 2, 0, True),
        ({"CPU": 2.0}, 2, 0, True),
        ({"CPU": 1.0}, 2, 0, False),
        ({"CPU": 8.0, "GPU": 2.0}, 2, 1, True),
        ({"CPU": 8.0, "GPU": 2.0}, 3, 1, False),
        ({"CPU": 8.0}, 1, 1, False),
    ],
)
def test_workers_that_would_wait_for_ever_are_refused(resources, workers, gpus, enough):
    with nullcontext() if enough else refused():
        check_room(resources, workers, gpus)


@needs_ray
def test_without_a_part_nothing_is_started():
    assert list(work_on_ray(lambda: 1 / 0, [], 2)) == []


WORK = """
import os, signal, time
import ray
from stepsight.core.errors import UserError
from stepsight.training.runs.ray_engine import work_on_ray

ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)

def slower_first():
    return lambda part: (time.sleep(0.05 * (part % 2 == 0)), part * part)[1]

drawn = []
def parts():
    for number in range(60):
        drawn.append(number)
        yield number

results = work_on_ray(slower_first, parts(), 2)
assert next(results) == 0
assert len(drawn) <= 20, drawn
assert list(results) == [number * number for number in range(1, 60)]

def not_here():
    raise UserError("a worker finds nothing.", "Copy it there.")

def refusing():
    def do(part):
        if part == 3:
            raise UserError("part 3 is no part.", "Leave it out.")
        return part
    return do

def faulty():
    return lambda part: 1 // part

def dying():
    return lambda part: os.kill(os.getpid(), signal.SIGKILL) if part == 3 else part

def dying_at_once():
    os.kill(os.getpid(), signal.SIGKILL)

for make in (not_here, refusing, faulty, dying, dying_at_once):
    done = []
    try:
        for result in work_on_ray(make, range(6), 2):
            done.append(result)
        raise AssertionError(make)
    except UserError as error:
        print(f"{make.__name__}: {error.message[:60]} | {error.hint}", flush=True)
    assert done == list(range(len(done))), done

try:
    next(work_on_ray(refusing, range(6), 3))
    raise AssertionError
except UserError as error:
    print(error)
ray.shutdown()
"""


@needs_ray
def test_results_in_order_and_what_goes_wrong_on_a_worker():
    done = python(WORK)
    assert done.returncode == 0, done.stderr
    # Where Ray ran before, it tells of a worker that died as it always does.
    told = [line for line in done.stdout.splitlines() if line and "(raylet)" not in line]
    assert told[0] == "not_here: a worker finds nothing. | Copy it there."
    assert told[1] == "refusing: part 3 is no part. | Leave it out."
    assert told[2].startswith("faulty: a worker failed: ZeroDivisionError: ")
    again = "The same command goes on where it stopped."
    assert told[3] == f"dying: workers died repeatedly over the same part. | {again}"
    assert told[4] == f"dying_at_once: workers died repeatedly before they could begin. | {again}"
    assert told[5] == "there are 2 CPUs, and --workers 3 needs 3. Give fewer."
    assert len(told) == 6


ALONE = """
import os, subprocess, sys
from stepsight.training.runs.ray_engine import work_on_ray

results = work_on_ray(lambda: str, range(2), 1)
next(results)
import ray
address = ray.get_runtime_context().gcs_address
others = os.environ | {"RAY_AUTH_MODE": "disabled", "RAY_AUTH_TOKEN": ""}
source = f"import ray; ray.init(address={address!r})"
told = subprocess.run([sys.executable, "-c", source], env=others, capture_output=True, text=True)
assert told.returncode and "InvalidAuthToken" in told.stderr, told.stderr
"""


@needs_ray
def test_what_starts_here_takes_work_from_nobody_else():
    done = python(ALONE)
    assert done.returncode == 0, done.stderr
