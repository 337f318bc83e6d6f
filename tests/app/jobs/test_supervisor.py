"""The worker process ends with its server, and is started again where it ends."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from stepsight.app.jobs import supervisor
from stepsight.app.jobs.supervisor import ENDED, Supervisor
from stepsight.core.evaluators.loading import load_evaluator
from stepsight.core.judgment import Mode
from stepsight.storage.database.jobs_schema import State
from stepsight.storage.jobs.jobs import get_job, on_queued
from tests.app.processes import is_alive, silence, start, until, worker_of
from tests.conftest import ROOT
from tests.storage.samples import add, many

pytestmark = pytest.mark.slow

SUPERVISED = """import sys, time
from stepsight.app.jobs.supervisor import Supervisor
with Supervisor(sys.argv[1], ["--dtype=bfloat16"]):
    time.sleep(600)"""


@pytest.mark.skipif(not os.path.isdir("/proc"), reason="processes are looked up in /proc")
def test_a_worker_ends_with_its_server_and_a_killed_one_is_started_again(sqlite_store, tiny):
    add(sqlite_store, many(3000))
    # It judges only if the workers got their arguments.
    job = start(sqlite_store, tiny, fingerprint=load_evaluator(tiny, dtype=torch.bfloat16).fingerprint)
    server = subprocess.Popen([sys.executable, "-c", SUPERVISED, sqlite_store.name], cwd=ROOT)
    try:
        until(lambda: get_job(sqlite_store, job.id).state == State.RUNNING)
        first = worker_of(sqlite_store, job)
        assert os.getpriority(os.PRIO_PROCESS, first) == min(19, os.getpriority(os.PRIO_PROCESS, 0) + 10)
        assert session_niceness(first) in (10, None)
        os.kill(first, signal.SIGKILL)
        silence(sqlite_store)
        until(
            lambda: worker_of(sqlite_store, job) != first and get_job(sqlite_store, job.id).state == State.RUNNING
        )
        second = worker_of(sqlite_store, job)
        assert is_alive(second)
        until(lambda: get_job(sqlite_store, job.id).done > 0)
    finally:
        server.kill()
        server.wait()
    until(lambda: not is_alive(second))
    found = get_job(sqlite_store, job.id)
    # It ended by itself, and gave the job back unless it had just finished it.
    assert found.state in (State.QUEUED, State.DONE)


def session_niceness(pid):
    """What the session of a process has, or None where Linux does not share the processor between sessions."""
    group = Path(f"/proc/{pid}/autogroup")
    words = group.read_text(encoding="ascii").split() if group.exists() else []
    return int(words[-1]) if words else None


SELDOM = "from stepsight.app.jobs import worker; worker._POLL = 600; worker.main()"


def test_a_worker_that_looks_seldom_takes_a_job_of_its_server_up_at_once(sqlite_store, tiny, monkeypatch):
    monkeypatch.setattr(supervisor, "_COMMAND", (sys.executable, "-c", SELDOM))
    add(sqlite_store, many(3))
    first = start(sqlite_store, tiny)
    with Supervisor(sqlite_store.name) as keeper, on_queued(sqlite_store, keeper.wake):
        until(lambda: get_job(sqlite_store, first.id).state == State.DONE)
        # By now it rests.
        time.sleep(1)
        second = start(sqlite_store, tiny, Mode.OFFLINE)
        until(lambda: get_job(sqlite_store, second.id).state == State.DONE, 60)
    # Nobody is there to be woken any more.
    keeper.wake()


BROKEN = f"import time; print({ENDED!r}, flush=True); time.sleep(600)"


def test_a_worker_without_a_thread_for_each_task_is_not_whole(sqlite_store, monkeypatch):
    monkeypatch.setattr(supervisor, "_COMMAND", (sys.executable, "-c", BROKEN))
    with Supervisor(sqlite_store.name) as keeper:
        until(lambda: keeper.pid is not None and not keeper.is_whole)
