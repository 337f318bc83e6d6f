"""The file of a store deleted, replaced or locked while a server has it open."""

import os
import shutil
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

from stepsight.storage.database import store as module
from stepsight.storage.database.store import UnavailableError, open_store
from tests.faults.labels import logged, open_page

HOLDS = """import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN IMMEDIATE")
print("held", flush=True)
sys.stdin.read()"""


@contextmanager
def locked(path):
    """Another process holds the only write lock, until its input ends."""
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDS, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        yield holder


def check_unavailable(response, error, hint):
    assert response.status_code == 503
    assert int(response.headers["retry-after"]) > 0
    assert response.json() == {"error": f"The store: {error}", "hint": hint}


def remove(path):
    """With the files beside it, as a person would."""
    for name in (path, Path(f"{path}-wal"), Path(f"{path}-shm")):
        name.unlink(missing_ok=True)


def test_labels_are_not_acknowledged_into_a_deleted_file(sqlite_store, labelling, tmp_path):
    page, path = open_page(sqlite_store, labelling), Path(sqlite_store.name)
    assert page.label(0).status_code == 200
    sqlite_store.close()
    shutil.copy(path, tmp_path / "kept.db")
    assert page.label(1).status_code == 200
    remove(path)
    response = page.label(2)
    check_unavailable(response, "the file is gone.", "Put it back, or start StepSight again.")
    assert not path.exists(), "an empty store took its place"


@pytest.mark.parametrize("how", ["copied", "moved"])
def test_no_label_goes_into_a_file_that_was_replaced(how, sqlite_store, labelling, tmp_path):
    page, path = open_page(sqlite_store, labelling), Path(sqlite_store.name)
    assert page.label(0).status_code == 200
    sqlite_store.close()
    other = tmp_path / "other.db"
    shutil.copy(path, other)
    assert page.label(1).status_code == 200
    if how == "copied":
        remove(path)
        shutil.copy(other, path)
    else:
        os.replace(other, path)
    hint = "Start StepSight again."
    check_unavailable(page.label(2, "two"), "the file was replaced by another while StepSight used it.", hint)
    with open_store(str(path)) as started_again:
        assert "two" not in logged(started_again)


def test_no_label_is_committed_to_a_file_that_goes_after_the_check(sqlite_store):
    with pytest.raises(UnavailableError, match="the file is gone"), sqlite_store.write(durable=True):
        remove(Path(sqlite_store.name))


def test_labels_wait_for_a_short_lock(sqlite_store, labelling):
    page = open_page(sqlite_store, labelling)
    with locked(sqlite_store.name) as holder:
        assert holder.stdin is not None
        released = threading.Event()

        def release():
            released.set()
            holder.stdin.close()

        threading.Timer(0.5, release).start()
        assert page.label(0).status_code == 200
        assert released.is_set()
    assert logged(sqlite_store) == page.stored


def test_labels_are_refused_for_later_while_the_file_is_missing(sqlite_store, labelling, monkeypatch):
    """A lock of 30 s is longer than the 10 s that a label waits for; here half a second stands for them."""
    assert module._DURABLE_SECONDS < 30
    monkeypatch.setattr(module, "_DURABLE_SECONDS", 0.5)
    page = open_page(sqlite_store, labelling)
    assert page.label(0).status_code == 200
    with locked(sqlite_store.name):
        response = page.label(1, "again")
        hint = "Another process is writing to it. Try again when that has finished."
        check_unavailable(response, "database is locked.", hint)
        # Nobody who reads waits.
        assert logged(sqlite_store) == page.stored
    # The page kept it, and sends it under its key; were the first stored after all, it would not be twice.
    assert page.label(1, "again").status_code == 200
    assert page.label(1, "again").json()["repeated"]
    assert logged(sqlite_store) == page.stored
    assert len(page.stored) == 2


def test_many_who_wait_are_all_answered_in_time(sqlite_store, labelling, monkeypatch):
    """One after the other, twelve would wait for 24 seconds."""
    monkeypatch.setattr(module, "_DURABLE_SECONDS", 2)
    page = open_page(sqlite_store, labelling)
    answers: list[int] = []
    with locked(sqlite_store.name):
        start = time.monotonic()
        threads = [
            threading.Thread(target=lambda step=step: answers.append(page.label(step).status_code))
            for step in range(12)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert time.monotonic() - start < 12 * 2
    assert answers == [503] * 12
    assert logged(sqlite_store) == {}
