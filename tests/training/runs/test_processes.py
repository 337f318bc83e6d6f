"""Processes of an experiment: their share of the machine, and that none is left."""

import os
import signal
import time

import pytest
import torch

from stepsight.core.errors import UserError
from stepsight.training.runs.processes import (
    MachineShare,
    PlannedRun,
    launcher,
    run_here,
    run_in_processes,
)
from tests.forked import Forked
from tests.messages import refused


def test_several_processes_need_a_launcher():
    assert launcher(1) == []
    assert launcher(2) == ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]


def test_there_is_room_for_one_at_least():
    cores = len(os.sched_getaffinity(0))
    if not torch.cuda.device_count():
        assert MachineShare(1, 1).room() == cores
    assert MachineShare(1000, 1).room() == MachineShare(1, 1000).room() == 1


def test_gpus_are_shared_out_by_place(monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 4)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    share = MachineShare(2, 3)
    assert share.room() == 2
    assert [share.environment(slot)["CUDA_VISIBLE_DEVICES"] for slot in range(3)] == ["0,1", "2,3", "0,1"]
    assert share.environment(0)["OMP_NUM_THREADS"] == "3"
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,6,5,7")
    assert share.environment(1)["CUDA_VISIBLE_DEVICES"] == "5,7"
    # Two runs of three of the four share two.
    assert MachineShare(3, 1).environment(1)["CUDA_VISIBLE_DEVICES"] == "7,4,6"
    with refused():
        run_in_processes([], MachineShare(5, 1), 1, lambda *_: None)


def planned(folder, name, code):
    result, log = folder / f"{name}.json", folder / "logs" / f"{name}.txt"
    return PlannedRun(
        name, result, ("-c", f"from pathlib import Path; result = Path({str(result)!r}); {code}"), log
    )


def test_a_failed_run_keeps_no_other_from_being_done(tmp_path):
    done = "result.write_text('done')"
    runs = [
        planned(tmp_path, "one", done),
        planned(tmp_path, "bad", "import sys; sys.exit('no\\nsuch file\\n')"),
        planned(tmp_path, "silent", "pass"),
        planned(tmp_path, "two", done),
    ]
    # What an earlier call added to a log is no reason of this one.
    runs[2].log.parent.mkdir()
    runs[2].log.write_text("no memory\n")
    announced, before = [], signal.getsignal(signal.SIGTERM)
    failures = run_in_processes(runs, MachineShare(1, 1), 2, lambda run, number, total: announced.append(run.name))
    assert sorted(announced) == ["one", "two"]
    assert signal.getsignal(signal.SIGTERM) is before
    with pytest.raises(UserError) as raised:
        failures.check()
    for part in ("2 of 4 runs failed: ", f"bad: such file ({runs[1].log})", "silent: it ended without a word"):
        assert part in str(raised.value)


def test_runs_of_this_process_are_announced_or_fail(tmp_path):
    runs = [planned(tmp_path, name, "") for name in ("one", "bad")]
    announced = []

    def do(run):
        if run.name == "bad":
            raise UserError("no row.", "Add one.")

    failures = run_here(runs, do, lambda run, number, total: announced.append((run.name, number, total)))
    assert announced == [("one", 1, 2)]
    with refused():
        failures.check()


TOLD_TO_END = """
import sys
from pathlib import Path
from stepsight.training.runs.processes import MachineShare, PlannedRun, launcher, run_in_processes

folder = Path(sys.argv[1])
script = str(folder / "sleep.py")
runs = [
    PlannedRun(f"{count}", folder / "none", (*launcher(count), script), folder / f"{count}.txt") for count in (1, 2)
]
run_in_processes(runs, MachineShare(2, 1), 2, print)
"""
SLEEP = """
import os, time
from pathlib import Path

(Path(__file__).parent / f"{os.getpid()}.pid").touch()
time.sleep(600)
"""


@pytest.mark.slow
def test_runs_end_with_the_process_that_started_them(tmp_path):
    """One that is a process, and one that torchrun launched as two."""

    def running():
        return [path.stem for path in tmp_path.glob("*.pid") if os.path.exists(f"/proc/{path.stem}")]

    (tmp_path / "sleep.py").write_text(SLEEP)
    process = Forked(TOLD_TO_END, [tmp_path])
    try:
        until = time.monotonic() + 120
        while len(running()) < 3:
            assert process.returncode is None
            assert time.monotonic() < until
            time.sleep(0.05)
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 128 + signal.SIGTERM
        assert running() == []
    finally:
        process.kill()
        process.communicate()
