"""A server that is stopped: what was asked is answered, a job can go on, and its processes end; and what one costs
at which nobody is."""

import http.client
import json
import os
import re
import shutil
import signal
import socket
import threading
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from stepsight.app.jobs.worker import Worker
from stepsight.storage.database.jobs_schema import State
from stepsight.storage.jobs.jobs import get_job
from stepsight.storage.labelling.record import read_annotation
from stepsight.storage.people.users import local_user
from tests.app.processes import family, is_alive, silence, start, until, worker_of
from tests.forked import Forked
from tests.storage.labelling.samples import campaign, take
from tests.storage.samples import add, many

pytestmark = pytest.mark.slow

SECONDS = 60


@contextmanager
def running(store):
    """The real command; gives its process and its port."""
    with Forked(None, ["app", "--db", store.name, "--port", 0]) as process:
        try:
            told = ""
            while "Ctrl-C" not in told:
                told += process.stderr.readline()
            yield process, int(re.search(r"http://127\.0\.0\.1:(\d+)", told)[1])
        finally:
            process.kill()


def ask(port, path, body):
    """The status and the answer to a body that is posted; None where the connection was cut."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request("POST", path, json.dumps(body), {"content-type": "application/json"})
        response = connection.getresponse()
        return response.status, json.loads(response.read())
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()


def refuses(port):
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) != 0


def test_a_label_that_is_being_written_is_stored_and_acknowledged(sqlite_store):
    slot = take(sqlite_store, campaign(sqlite_store), local_user(sqlite_store))
    event = {"kind": "label", "key": "the-key-of-it", "step": 0, "new": "pos", "guideline": 1}
    with running(sqlite_store) as (process, port), ThreadPoolExecutor() as pool:
        with sqlite_store.write() as session:
            # Nobody else writes as long as this goes on.
            session.connection()
            answer = pool.submit(ask, port, f"/annotate/slots/{slot.slot}/events", event)
            time.sleep(1)
            assert not answer.done()
            process.send_signal(signal.SIGTERM)
            began = time.monotonic()
            until(lambda: refuses(port), SECONDS)
            time.sleep(0.5)
        status, stored = answer.result(SECONDS)
        assert process.wait(SECONDS) == 0
    assert time.monotonic() - began < SECONDS
    assert (status, stored["state"]["labels"][0]) == (200, "pos")
    assert read_annotation(sqlite_store, slot.slot).labels[0] == "pos"


@pytest.mark.skipif(not os.path.isdir("/proc"), reason="processes are looked up in /proc")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_everything_ends_though_much_goes_on(sqlite_store, tiny, number):
    add(sqlite_store, many(3000))
    job = start(sqlite_store, tiny)
    long = {"problem": "What is it?", "mode": "hindsight"}
    with running(sqlite_store) as (process, port), ThreadPoolExecutor(8) as pool:
        until(lambda: get_job(sqlite_store, job.id).state == State.RUNNING)
        worker = worker_of(sqlite_store, job)
        idle, half = (socket.create_connection(("127.0.0.1", port)) for _ in range(2))
        half.sendall(b"POST /api/v1/score HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000\r\n\r\n{")
        steps = [
            [f"Step {number} of {one}: we add {number} and {one}." for number in range(80)] for one in range(6)
        ]
        scored = [pool.submit(ask, port, "/api/v1/score", long | {"steps": one}) for one in steps]
        time.sleep(1)
        assert not all(one.done() for one in scored)
        began = time.monotonic()
        process.send_signal(number)
        assert process.wait(SECONDS) == (0 if number == signal.SIGTERM else 130)
        assert not is_alive(worker)
        assert time.monotonic() - began < SECONDS
        # Answered, or told to come again.
        assert {one.result()[0] for one in scored} <= {200, 422, 429, 503}
        assert half.recv(100).startswith(b"HTTP/1.1 503")
        assert idle.recv(100) == b""
        idle.close()
        half.close()
        rest = process.stderr.read()
    assert "Traceback" not in rest
    stopped = get_job(sqlite_store, job.id)
    assert stopped.state in (State.QUEUED, State.RUNNING)
    if stopped.state == State.RUNNING:
        silence(sqlite_store)
    stop = Worker(sqlite_store)
    threading.Timer(2, stop.signals.stop).start()
    stop.run()
    assert get_job(sqlite_store, job.id).done > stopped.done


# So many seconds without a visitor take 0.01 s of processor time, and took 0.7 s when Gradio ran its queue; so many
# pages take 0.2 s.
IDLE_SECONDS, PAGES = 10, 20


def processor_seconds(pids):
    fields = [Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split() for pid in pids]
    return sum(int(one[11]) + int(one[12]) for one in fields) / os.sysconf("SC_CLK_TCK")


@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="processes are looked up in /proc")
def test_a_server_that_nobody_asks_costs_less_than_a_few_pages(seeded_file, tmp_path):
    shutil.copy(seeded_file, tmp_path / "store.db")
    with Forked(None, ["app", "--db", tmp_path / "store.db", "--port", 0]) as process:
        started = ""
        while "Ctrl-C" not in started:
            started += process.stderr.readline()
        [address] = set(re.findall(r"http://127\.0\.0\.1:\d+", started))
        # The worker looks for jobs.
        until(lambda: len(family(process.pid)) == 2)
        pids = family(process.pid)

        def cost(work):
            before = processor_seconds(pids)
            work()
            return processor_seconds(pids) - before

        def visit():
            for _ in range(PAGES):
                urllib.request.urlopen(f"{address}/browse", timeout=600).read()

        visit()
        pages = cost(visit)
        # What the server loads behind its port may still go on.
        idle = min(cost(lambda: time.sleep(IDLE_SECONDS)) for _ in range(3))
        process.send_signal(signal.SIGINT)
    assert idle < pages
