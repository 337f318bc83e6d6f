"""A server with its worker stays as it was, whatever is fetched and sent to it.

Each `make nightly` tries another part of the corpus.
"""

import gzip
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from stepsight.app.web.access import PAGES
from stepsight.storage.database.jobs_schema import ACTIVE, State
from stepsight.storage.database.store import open_store
from stepsight.storage.importers.column_mapping import ColumnMap
from stepsight.storage.jobs.jobs import get_job
from stepsight.storage.traces.queries import list_datasets
from tests.app.processes import family, until
from tests.checkpoints import TOKEN_CLASSIFIERS, write_token_classifier
from tests.hostile.data_files import FILES, ROW, lines, parquet
from tests.hostile.repositories import repositories
from tests.hostile.test_data_files import QUICK
from tests.hub import Hub
from tests.local_server import LocalServer
from tests.seeds import chance

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not os.path.isdir("/proc"), reason="looks into /proc")]

SAMPLE = 20
# Those take all the time that they may have, or are tried again and again: some a minute or two.
_LONG = re.compile("pattern|cut by|without end|times 2$|127.0.0.1")
# Bytes by which the server may have grown.
_MEMORY = 100_000_000


class Server:
    """`stepsight app` with all that it writes below `root`, and a hub."""

    def __init__(self, root: Path, hub: LocalServer) -> None:
        self.root, self.hub = root, hub
        self.store = str(root / "store" / "store.db")
        self.slowest = 0.0
        self._port = self._pid = 0
        for name in ("store", "home", "cache", "hub", "temporary"):
            (root / name).mkdir()

    @contextmanager
    def running(self) -> Iterator[float]:
        """Yield the seconds that its start took."""
        places = {"HOME": "home", "STEPSIGHT_CACHE": "cache", "HF_HUB_CACHE": "hub", "TMPDIR": "temporary"}
        environment = os.environ | {name: str(self.root / folder) for name, folder in places.items()}
        environment |= {"HF_ENDPOINT": self.hub.url, "HF_TOKEN": "hf_ours", "NO_PROXY": "127.0.0.1,localhost"}
        log = self.root / "store" / "log.txt"
        start = time.monotonic()
        with open(log, "wb") as file:
            command = [sys.executable, "-m", "stepsight", "app", "--db", self.store, "--port", "0"]
            process = subprocess.Popen(command, env=environment, stderr=file)
        try:
            until(lambda: "Ctrl-C" in log.read_text() or process.poll() is not None)
            found = re.search(r"http://127\.0\.0\.1:(\d+)", log.read_text())
            assert found is not None, log.read_text()
            self._port, self._pid = int(found[1]), process.pid
            yield time.monotonic() - start
        finally:
            process.terminate()
            process.wait(60)

    def ask(self, method: str, path: str, body: bytes | None = None) -> tuple[int, Any]:
        """Return the status and the text of an answer, or what it holds as JSON."""
        connection = HTTPConnection("127.0.0.1", self._port, timeout=120)
        accepted = {"Content-Type": "application/json"} if body is not None else {"Accept": "text/html"}
        try:
            connection.request(method, path, body, accepted)
            response = connection.getresponse()
            text = response.read().decode()
            is_json = "json" in (response.headers["content-type"] or "")
            return response.status, json.loads(text) if is_json else text
        finally:
            connection.close()

    def look(self) -> None:
        """Open every page."""
        for page in PAGES:
            start = time.monotonic()
            assert self.ask("GET", page.path)[0] == 200, page
            self.slowest = max(self.slowest, time.monotonic() - start)

    def processes(self) -> int:
        """Return how many processes there are, with the worker and its children."""
        return len(family(self._pid))

    def memory(self) -> int:
        status = Path(f"/proc/{self._pid}/status").read_text(encoding="ascii")
        return 1024 * int(next(line for line in status.splitlines() if line.startswith("VmRSS")).split()[1])

    def fetch(self, name: str) -> list[int]:
        """Ask for a repository; returns its job unless it is refused at once."""
        status, answer = self.ask("POST", "/evaluators/fetch", json.dumps({"repo": f"lab/{name}"}).encode())
        assert status < 500 or status == 502, answer
        return [answer["job"]] if status == 201 else []

    def add(self, name: str, content: bytes, dataset: str, **asked: object) -> list[int]:
        """Send a file, look at its preview and ask for its import; returns its job unless the file is refused."""
        status, state = self.ask("POST", f"/data/uploads?name={quote(name)}", content)
        if status != 201:
            assert status < 500, state
            return []
        assert self.ask("GET", f"/data/uploads/{state['upload']}")[0] == 200
        file = {"upload": state["upload"], "holds": "traces", "dataset": dataset, "kind": "plain"}
        file |= asked
        status, answer = self.ask("POST", "/data/imports", json.dumps({"files": [file]}).encode())
        assert status == 201, answer
        found: list[int] = answer["jobs"]
        return found

    def strays(self) -> set[str]:
        """Return what lies elsewhere than in the caches and beside the store."""
        places = [self.root, self.root / "home", self.root / "temporary", Path.cwd()]
        return {str(path) for place in places for path in place.iterdir()}


Try = Callable[[Server], list[int]]


def _holding(number, attack, hub, server):
    folder = server.root / "cache" / "attacked"
    shutil.rmtree(folder, ignore_errors=True)
    write_token_classifier(folder, "qwen2")
    attack(folder)
    hub.folders = {f"lab/hostile-{number}": folder}
    return server.fetch(f"hostile-{number}")


def _sending(number, name, server):
    return server.add(name, FILES[name](), f"sent-{number}")


def corpus(hub):
    """Everything hostile, by name. The hub will hold the repositories."""
    found: dict[str, Try] = {}
    for number, (name, attack) in enumerate(repositories().items()):
        found[name] = partial(_holding, number, attack, hub)
    for number, name in enumerate(FILES):
        found[f"file: {name}"] = partial(_sending, number, name)
    return found


def chosen(hub):
    """A seeded sample of each kind."""
    everything = corpus(hub)
    quick = [name for name in everything if not _LONG.search(name)]
    starts = ("model", "tokenizer")
    kinds = [[name for name in quick if name.startswith(start)] for start in starts]
    kinds.append([f"file: {name}" for name in QUICK])
    names = [name for kind in kinds for name in chance(0).sample(kind, SAMPLE // 3)]
    return {name: everything[name] for name in names}


def finish(store, jobs):
    until(lambda: not any(get_job(store, job).state in ACTIVE for job in jobs), 600)
    return get_job(store, jobs[-1]).state


@pytest.mark.nightly
def test_a_server_stays_as_it_was(tmp_path):
    hub = Hub()
    server, good = Server(tmp_path, hub), 0
    with hub.running():
        with server.running() as first, open_store(server.store) as store:
            server.look()
            # Everything that is loaded once is there.
            assert finish(store, server.add("mine.jsonl", lines(ROW), "mine")) == State.DONE
            before, strays = server.memory(), server.strays()
            server.slowest = 0.0
            for number, (name, attack) in enumerate(chosen(hub).items()):
                start = time.monotonic()
                jobs = attack(server)
                if jobs:
                    finish(store, jobs)
                server.look()
                assert finish(store, server.add("mine.jsonl", lines(ROW), f"mine-{number}")) == State.DONE, name
                good += 1
                grown = server.memory() - before
                print(
                    f"{name}: {time.monotonic() - start:.1f} s, {grown / 1e6:.0f} MB, page {server.slowest:.2f} s"
                )
                assert grown < _MEMORY, name
                assert server.strays() == strays, name
        with server.running() as again:
            server.look()
        print(f"started in {first:.1f} s, then in {again:.1f} s")
    assert good >= 3 * (SAMPLE // 3)


# BERT's tokenizer has no line break.
MODELS = [kind for kind in TOKEN_CLASSIFIERS if kind != "bert"]
FILES_OF_EACH, TRACES = 5, 40


def honest_files(number):
    """A file of each container, by its name, with traces of their own."""
    rows = [ROW | {"id": f"{number}-{trace}", "problem": f"What is 2 + {trace}?"} for trace in range(TRACES)]
    table = "problem,steps\n" + "".join(f"{row['problem']},\"['2 + 3 = 5.', 'So 5.']\"\n" for row in rows)
    columns = {name: [row[name] for row in rows] for name in ROW}
    return {
        "a.jsonl": lines(*rows),
        "a.jsonl.gz": gzip.compress(lines(*rows)),
        "a.csv": table.encode(),
        "a.parquet": parquet(**columns),
    }


def test_a_worker_fetches_and_imports_one_after_the_other(tmp_path):
    """Six models and twenty files, after which no process is left that was not there after the first of each."""
    hub, done = Hub(), {}
    for kind in MODELS:
        hub.folders[f"lab/{kind}"] = tmp_path / "models" / kind
        write_token_classifier(hub.folders[f"lab/{kind}"], kind)
    server, processes = Server(tmp_path, hub), []
    with hub.running(), server.running(), open_store(server.store) as store:

        def note(name: str, jobs: list[int]) -> None:
            assert len(jobs) == 1, name
            done[name] = finish(store, jobs), get_job(store, jobs[0]).reason
            # The next copy waits for work as soon as the last one has ended.
            time.sleep(1)
            processes.append(server.processes())

        for kind in MODELS:
            note(kind, server.fetch(kind))
        for number in range(FILES_OF_EACH):
            for name, content in honest_files(number).items():
                columns = asdict(ColumnMap("problem", "steps"))
                asked = {} if "jsonl" in name else {"kind": "columns", "columns": columns}
                note(f"{name} {number}", server.add(name, content, f"{name.replace('.', '-')}-{number}", **asked))
        assert {name: reason for name, (state, reason) in done.items() if state != State.DONE} == {}
        assert len(done) == len(MODELS) + FILES_OF_EACH * 4
        assert max(processes[: len(MODELS)]) == processes[0], processes
        # A second reader, with a copy that waits, starts when the first is not ready for the next file yet.
        files = processes[len(MODELS) :]
        assert max(files) <= files[0] + 2, files
        datasets = {dataset.name: dataset.traces for dataset in list_datasets(store)}
        assert [datasets[f"a-jsonl-{number}"] for number in range(FILES_OF_EACH)] == [TRACES] * FILES_OF_EACH
