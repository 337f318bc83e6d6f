"""`/healthz`: what watches a server learns whether it works, and nothing else."""

import threading
from contextlib import contextmanager

import pytest

from stepsight.app.web import health
from stepsight.storage.database.store import open_store
from tests.app.client import asking
from tests.storage.people.samples import user


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
    monkeypatch.setattr(health, "_PATIENCE", 0.2)
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
