"""The worker: what it makes of a job, and what is left when it is killed."""

import re
import shutil
import threading
import time
from datetime import timedelta
from itertools import pairwise
from pathlib import Path

import pytest
import torch

import stepsight.app.jobs.worker
from stepsight.app.jobs.supervisor import ENDED
from stepsight.app.jobs.worker import Worker, WorkerSignals
from stepsight.core.evaluators.loading import load_evaluator
from stepsight.core.judgment import Mode
from stepsight.core.models.model import THREE_WAY
from stepsight.core.models.placement import Placement
from stepsight.core.scoring.scorer import Scorer
from stepsight.core.trace import Trace
from stepsight.storage.database.jobs_schema import State
from stepsight.storage.database.store import UnavailableError
from stepsight.storage.jobs.jobs import cancel_job, get_job, resume_job
from stepsight.storage.judgments.evaluators import list_evaluators
from tests.app.processes import judged, silence, start, until
from tests.checkpoints import write_evaluator
from tests.messages import refused
from tests.storage.samples import add, many
from tests.vllm_server import Classifier, Day, VllmServer


@pytest.fixture
def slowly(monkeypatch):
    """Traces come one by one, 20 ms each, and heartbeats every 10 ms."""
    whole = Scorer.stream

    def stream(self, traces, mode, on_skip=None):
        for trace in traces:
            time.sleep(0.02)
            yield from whole(self, [trace], mode, on_skip)

    monkeypatch.setattr(Scorer, "stream", stream)
    monkeypatch.setattr("stepsight.app.jobs.lease._BEAT", 0.01)


@pytest.mark.parametrize("mode", list(Mode))
def test_every_trace_is_judged_once(store, tiny, mode):
    """On both databases."""
    add(store)
    job = start(store, tiny, mode)
    assert Worker(store).work_one()
    found = get_job(store, job.id)
    assert (found.state, found.total, found.done, found.left_out, found.reason) == (State.DONE, 4, 4, 0, "")
    before = judged(store)
    assert len({trace for trace, _ in before}) == len(before) == 4
    # The same again finds nothing to do.
    again = start(store, tiny, mode)
    assert again.id != job.id
    assert Worker(store).work_one()
    assert get_job(store, again.id).state == State.DONE
    assert judged(store) == before
    assert not Worker(store).work_one()


def test_a_job_has_an_evaluator_read_in_both_orders(sqlite_store, tiny_causal):
    add(sqlite_store)
    spec = f"{tiny_causal}, read in both orders"
    wanted = load_evaluator(spec)
    job = start(sqlite_store, tiny_causal, spec=spec, evaluator=wanted.name, fingerprint=wanted.fingerprint)
    assert Worker(sqlite_store).work_one()
    assert (get_job(sqlite_store, job.id).state, get_job(sqlite_store, job.id).done) == (State.DONE, 4)
    assert [(row.name, row.attention) for row in list_evaluators(sqlite_store)] == [(wanted.name, wanted.attention)]


def test_traces_too_long_are_left_out_and_told(sqlite_store, tiny):
    add(sqlite_store, [*many(3), Trace.of("q", ["7" * 2000], id="long")])
    job = start(sqlite_store, tiny)
    assert Worker(sqlite_store).work_one()
    found = get_job(sqlite_store, job.id)
    assert (found.state, found.total, found.done, found.left_out, found.progress) == (State.DONE, 4, 3, 1, 1.0)
    assert re.match(r"trace 'long' has 2,0\d\d tokens, but tiny reads at most 1,024\.", found.reason)


def test_an_evaluator_that_cannot_load_fails_the_job_with_the_reason(sqlite_store, tiny, tmp_path):
    add(sqlite_store)
    gone = start(sqlite_store, tiny, spec=str(tmp_path / "gone"), fingerprint="gone")
    broken = shutil.copytree(tiny, tmp_path / "broken")
    (broken / "model.safetensors").write_bytes(b"\x00" * 100)
    damaged = start(sqlite_store, tiny, spec=str(broken), fingerprint="broken")
    worker = Worker(sqlite_store)
    assert [worker.work_one() for _ in range(3)] == [True, True, False]
    for job, said in ((gone, "there is no evaluator"), (damaged, "broken")):
        found = get_job(sqlite_store, job.id)
        assert found.state == State.FAILED
        assert said in found.reason
    assert judged(sqlite_store) == []


def test_an_evaluator_that_has_changed_judges_as_it_is_now_and_says_so(sqlite_store, tiny, tmp_path):
    add(sqlite_store)
    other = write_evaluator(tmp_path / "tiny", seed=5, max_position_embeddings=1024)
    now = load_evaluator(other).fingerprint
    changed = start(sqlite_store, tiny, spec=str(other))
    worker = Worker(sqlite_store)
    assert worker.work_one()
    found = get_job(sqlite_store, changed.id)
    assert (found.state, found.fingerprint, found.done) == (State.DONE, now, 4)
    assert found.reason == "The evaluator has changed since the job was started; its current version was used."
    assert [row.fingerprint for row in list_evaluators(sqlite_store)] == [now]
    # Where another job for what it is now waits, one of them is enough.
    stale = start(sqlite_store, tiny, Mode.ONLINE, spec=str(other))
    waiting = start(sqlite_store, other, Mode.ONLINE)
    assert worker.work_one()
    refused = get_job(sqlite_store, stale.id)
    assert (refused.state, refused.reason) == (
        State.FAILED, f"Job {waiting.id} does the same and is queued. Let that one finish."
    )  # fmt: skip
    assert worker.work_one()
    assert get_job(sqlite_store, waiting.id).state == State.DONE


def test_a_job_is_for_weights_of_one_type(sqlite_store, tiny):
    """Also where a shipped evaluator is there twice, as it is and in the type that the server was given."""
    add(sqlite_store)
    rough, shipped = Placement(dtype="bfloat16"), Path("mini-causal")
    found = [load_evaluator(tiny, dtype=torch.bfloat16), load_evaluator("mini-causal")]
    found.append(load_evaluator("mini-causal", dtype=torch.bfloat16))
    folders = (tiny, shipped, shipped)
    started = [
        start(sqlite_store, folder, fingerprint=evaluator.fingerprint, dtype=evaluator.dtype)
        for folder, evaluator in zip(folders, found, strict=True)
    ]
    worker = Worker(sqlite_store, place=rough)
    assert [worker.work_one() for _ in range(4)] == [True, True, True, False]
    assert [get_job(sqlite_store, job.id).state for job in started] == [State.DONE] * 3
    assert {row.fingerprint for row in list_evaluators(sqlite_store)} == {one.fingerprint for one in found}
    again = start(sqlite_store, tiny, Mode.ONLINE, fingerprint=found[0].fingerprint, dtype="bfloat16")
    assert Worker(sqlite_store).work_one()
    failed = get_job(sqlite_store, again.id)
    assert failed.state == State.FAILED
    assert "the job was started for another type of weights than float32. Start it again." in failed.reason
    # The name tells nothing: a folder may be called so.
    named = start(sqlite_store, tiny, Mode.OFFLINE, fingerprint="before", evaluator="tiny (bfloat16)")
    assert Worker(sqlite_store).work_one()
    assert get_job(sqlite_store, named.id).state == State.DONE


class PanicError(BaseException):
    """As libraries in Rust raise it, which is no `Exception`."""


@pytest.mark.parametrize("error", [MemoryError("no room"), PanicError("no entry found for key")])
def test_a_fault_of_ours_fails_the_job_and_not_the_worker(sqlite_store, tiny, monkeypatch, caplog, error):
    def fail(*args):
        raise error
        yield

    add(sqlite_store)
    job = start(sqlite_store, tiny)
    with monkeypatch.context() as patched:
        patched.setattr(Scorer, "stream", fail)
        worker = Worker(sqlite_store)
        assert worker.work_one()
    failed = get_job(sqlite_store, job.id)
    assert (failed.state, failed.reason) == (State.FAILED, f"{type(error).__name__}: {error}")
    assert str(error) in caplog.text
    resume_job(sqlite_store, job.id)
    assert worker.work_one()
    assert get_job(sqlite_store, job.id).state == State.DONE


def during(store, job, done, act):
    """Call `act` in a thread once so many traces are done."""

    def wait():
        patience = time.monotonic() + 30
        while get_job(store, job.id).done < done and time.monotonic() < patience:
            time.sleep(0.01)
        act()

    thread = threading.Thread(target=wait)
    thread.start()
    return thread


def test_a_cancelled_job_stops_keeps_what_is_judged_and_goes_on_when_resumed(sqlite_store, tiny, slowly):
    add(sqlite_store, many(100))
    job = start(sqlite_store, tiny)
    thread = during(sqlite_store, job, 10, lambda: cancel_job(sqlite_store, job.id))
    assert Worker(sqlite_store).work_one()
    thread.join()
    before = judged(sqlite_store)
    assert get_job(sqlite_store, job.id).state == State.CANCELLED
    assert 10 <= len(before) < 100
    resume_job(sqlite_store, job.id)
    assert Worker(sqlite_store).work_one()
    after = judged(sqlite_store)
    assert len({trace for trace, _ in after}) == len(after) == 100
    assert set(before) <= set(after)
    assert get_job(sqlite_store, job.id).done == 100


def test_a_worker_that_is_asked_to_stop_gives_its_job_back(sqlite_store, tiny, slowly):
    add(sqlite_store, many(200))
    job = start(sqlite_store, tiny)
    signals = WorkerSignals()
    thread = during(sqlite_store, job, 5, signals.stop)
    Worker(sqlite_store, signals).run()
    thread.join()
    found = get_job(sqlite_store, job.id)
    assert (found.state, found.worker) == (State.QUEUED, None)
    assert 5 <= len(judged(sqlite_store)) == found.done < 200


def test_a_database_that_fails_is_waited_for(sqlite_store, tiny, slowly, monkeypatch, tmp_path):
    add(sqlite_store, many(60))
    job = start(sqlite_store, tiny)
    path = tmp_path / "store.db"
    assert sqlite_store.name == str(path)
    thread = during(sqlite_store, job, 5, lambda: path.rename(tmp_path / "away.db"))
    with refused(UnavailableError):
        Worker(sqlite_store).work_one()
    thread.join()
    (tmp_path / "away.db").rename(path)
    assert get_job(sqlite_store, job.id).state == State.RUNNING
    silence(sqlite_store)
    assert Worker(sqlite_store).work_one()
    assert get_job(sqlite_store, job.id).state == State.DONE
    assert len(judged(sqlite_store)) == 60


def test_nothing_is_done_while_the_heartbeat_cannot_be_written(sqlite_store, tiny, slowly, monkeypatch):
    """Somebody else may have taken the job up by then."""
    add(sqlite_store, many(20))
    start(sqlite_store, tiny)
    real = stepsight.app.jobs.worker.jobs.update_job
    seen = []

    def late(*args, **values):
        if "left_out" in values:
            if len(seen) < 3:
                time.sleep(0.3)
            seen.append(values["done"])
        return real(*args, **values)

    monkeypatch.setattr(stepsight.app.jobs.worker.jobs, "LEASE", timedelta(seconds=0.2))
    monkeypatch.setattr(stepsight.app.jobs.worker.jobs, "update_job", late)
    assert Worker(sqlite_store).work_one()
    # 0.1 s is half the lease: at 20 ms each no more than a handful of traces come between two heartbeats.
    assert all(later - earlier <= 8 for earlier, later in pairwise(seen[:4]))
    assert len(judged(sqlite_store)) == 20


def test_the_command_works_off_what_there_is(command, sqlite_store, tiny):
    add(sqlite_store)
    start(sqlite_store, tiny)
    code, out, err = command("work", "--once", "--db", sqlite_store.name)
    assert (code, out, err) == (0, "", "1 job done.\n")
    assert len(judged(sqlite_store)) == 4


@pytest.fixture
def behind(tiny, monkeypatch):
    """A server that runs `tiny`, and what a job for it is started with."""
    monkeypatch.setattr("stepsight.core.inference_servers.server._FIRST_PAUSE", 0.001)
    server = VllmServer(Classifier(tiny, THREE_WAY), tiny, context=1024)
    with server.running() as url:
        address = server.address(url, requests=2)
        fingerprint = load_evaluator(address).fingerprint
        yield server, {"evaluator": "prm (vllm)", "spec": address, "fingerprint": fingerprint}


def test_a_server_that_dies_fails_the_job_which_goes_on_later(sqlite_store, tiny, behind):
    server, given = behind
    add(sqlite_store, many(20))
    # Three requests try what it does.
    server.day = Day(spares=3, dies_after=7)
    worker = Worker(sqlite_store)
    job = start(sqlite_store, tiny, Mode.ONLINE, **given)
    assert worker.work_one()
    found = get_job(sqlite_store, job.id)
    assert found.state == State.FAILED
    assert "the server broke the connection" in found.reason
    assert found.done < 20
    server.day = Day(fails_every=3)
    resume_job(sqlite_store, job.id)
    assert worker.work_one()
    found = get_job(sqlite_store, job.id)
    assert (found.state, found.done) == (State.DONE, 20)
    assert len(judged(sqlite_store)) == 20
    (evaluator,) = list_evaluators(sqlite_store)
    assert (evaluator.name, evaluator.fingerprint) == ("prm (vllm)", given["fingerprint"])


def test_a_worker_that_is_told_to_stop_does_not_wait_for_a_server(sqlite_store, tiny, behind):
    server, given = behind
    add(sqlite_store)
    server.day = Day(spares=3, seconds=600)
    job = start(sqlite_store, tiny, **given)
    signals = WorkerSignals()
    worker = threading.Thread(target=Worker(sqlite_store, signals).work_one)
    worker.start()
    until(lambda: server.day.at_once > 0)
    signals.stop()
    worker.join(300)
    assert not worker.is_alive()
    server.day.hurry.set()
    assert get_job(sqlite_store, job.id).state == State.QUEUED


def test_a_thread_that_ends_stops_the_others_and_tells_the_server(sqlite_store, monkeypatch, capsys):
    signals = WorkerSignals()
    worker = Worker(sqlite_store, signals)

    def panic():
        raise PanicError("no entry found for key")

    monkeypatch.setattr(worker, "work_one", panic)
    worker.run_thread()
    assert signals.is_stopping
    assert capsys.readouterr().out == f"{ENDED}\n"
    # One that was told to stop is no fault.
    worker.run_thread()
    assert capsys.readouterr().out == ""


def test_an_idle_worker_is_woken_and_learns_whether_to_stop():
    signals = WorkerSignals()
    looks = signals.looks
    threading.Timer(0.05, signals.look).start()
    began = time.monotonic()
    assert not signals.wait(60, looks)
    # What was ordered before the rest began counts too.
    assert not signals.wait(60, looks)
    threading.Timer(0.05, signals.stop).start()
    assert signals.wait(60, signals.looks)
    assert signals.is_stopping
    assert time.monotonic() - began < 30


def test_a_worker_waiting_for_a_database_is_not_woken_to_look():
    signals = WorkerSignals()
    signals.look()
    began = time.monotonic()
    assert not signals.wait(0.2)
    assert time.monotonic() - began >= 0.2
