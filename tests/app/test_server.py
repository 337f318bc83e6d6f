"""What the server answers, without a browser."""

import http.client
import re
import shutil
import signal
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from contextlib import contextmanager

import pytest

from stepsight.app import server
from stepsight.core.evaluators.loading import load_evaluator
from stepsight.core.models.location import shipped_summaries
from stepsight.storage.database.store import open_store
from tests.app.client import asking
from tests.conftest import ROOT
from tests.forked import Forked
from tests.serving import served
from tests.storage.people.samples import user


@pytest.mark.parametrize(
    "path", ["/stepsight/../cli.py", "/stepsight/%2e%2e/evaluators/mini-bidir/config.json", "/docs"]
)
def test_files_that_no_page_needs_are_not_served(sqlite_store, evaluators, path):
    with served(sqlite_store, evaluators) as address, pytest.raises(urllib.error.HTTPError) as caught:
        urllib.request.urlopen(address + path)
    with caught.value as answer:
        assert answer.code == 404


def test_one_interrupt_ends_the_command_though_a_page_is_open(seeded_file, tmp_path):
    shutil.copy(seeded_file, tmp_path / "store.db")
    with Forked(None, ["app", "--db", tmp_path / "store.db", "--port", 0]) as process:
        printed = ""
        while "Ctrl-C" not in printed:
            printed += process.stderr.readline()
        port = re.search(r"http://127\.0\.0\.1:(\d+)", printed)[1]
        open_page = http.client.HTTPConnection(f"127.0.0.1:{port}")
        open_page.request("GET", "/")
        assert open_page.getresponse().read()
        process.send_signal(signal.SIGINT)
        rest = process.communicate(timeout=30)[1]
        open_page.close()
    assert process.returncode in (0, 130)
    assert "Traceback" not in rest


HEAVY = (
    "torch", "transformers", "gradio", "scipy", "sklearn", "pandas", "pyarrow", "safetensors",
    "plotly.basedatatypes", "narwhals", "PIL", "huggingface_hub.hf_api",
)  # fmt: skip
FIRST_PAGE = """
from fastapi.testclient import TestClient
from stepsight.app.commands import serve
from stepsight.app.scoring.gallery_seed import open_evaluators
from stepsight.app.server import build_app
from stepsight.storage.database.store import open_store
with open_store({store!r}) as store:
    application = build_app(store, open_evaluators(store, [], None, 1_000_000))
    page = TestClient(application, base_url="http://127.0.0.1", client=("127.0.0.1", 1)).get("/")
    assert page.status_code == 200 and "mini-causal" in page.text
"""


@pytest.mark.parametrize("code", [FIRST_PAGE, "import stepsight.app.jobs.worker"], ids=["server", "worker"])
def test_nothing_heavy_is_imported_at_the_start(code, seeded_file):
    shown = f"import sys; print(*(name for name in {HEAVY} if name in sys.modules))"
    source = f"{code.format(store=str(seeded_file))}\n{shown}"
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.split() == []


def test_the_recorded_summaries_are_those_of_the_shipped_evaluators():
    """If they differ, write what the evaluators say of themselves into assets/evaluators/summaries.json."""
    assert [load_evaluator(one.name).description() for one in shipped_summaries()] == list(shipped_summaries())


def test_it_answers_without_a_login_and_is_never_kept(sqlite_store, evaluators):
    user(sqlite_store)
    with asking(sqlite_store, evaluators, has_worker=lambda: True) as client:
        answer = client.get("/healthz")
        assert (answer.status_code, answer.json()) == (200, {"store": "ok", "worker": "ok"})
        assert answer.headers["cache-control"] == "no-store"
        head = client.head("/healthz")
        assert (head.status_code, head.text) == (200, "")
        assert client.post("/healthz").status_code == 405
        assert client.get("/healthz", headers={"host": "elsewhere.example"}).status_code == 400


@pytest.mark.parametrize(("works", "told", "status"), [(None, "none", 200), (lambda: False, "failed", 503)])
def test_a_worker_that_is_missing_is_told(sqlite_store, evaluators, works, told, status):
    with asking(sqlite_store, evaluators, has_worker=works) as client:
        answer = client.get("/healthz")
        assert (answer.status_code, answer.json()) == (status, {"store": "ok", "worker": told})


def test_a_store_that_is_gone_is_told_without_its_name(tmp_path, evaluators):
    path = tmp_path / "store.db"
    with open_store(str(path)) as store, asking(store, evaluators, has_worker=lambda: True) as client:
        path.rename(tmp_path / "away.db")
        answer = client.get("/healthz")
        assert (answer.status_code, answer.json()) == (503, {"store": "failed", "worker": "ok"})
        (tmp_path / "away.db").rename(path)
        assert client.get("/healthz").status_code == 200


def test_a_store_that_hangs_is_waited_for_a_moment_only(sqlite_store, evaluators, monkeypatch):
    monkeypatch.setattr(server, "_PATIENCE", 0.2)
    read, answering = sqlite_store.read, threading.Event()

    @contextmanager
    def hanging():
        assert answering.wait(600)
        with read() as session:
            yield session

    with asking(sqlite_store, evaluators) as client:
        monkeypatch.setattr(sqlite_store, "read", hanging)
        # More than may ask it at once.
        for _ in range(4):
            assert client.get("/healthz").json()["store"] == "failed"
        answering.set()
