"""A disk that is full, or read-only: told with what to do, nothing acknowledged is lost, and all goes on after."""

import json
import os
import sqlite3
from contextlib import closing

import pytest
from sqlalchemy import event

from stepsight.core.errors import UserError
from stepsight.storage.backup import check_backup, make_backup
from stepsight.storage.database.store import UnavailableError, open_store
from stepsight.storage.traces.imports import import_file
from stepsight.storage.traces.queries import list_datasets
from tests.faults.labels import STEPS, logged, open_page
from tests.storage.samples import plain_row

pytestmark = pytest.mark.slow


def rows_file(folder, count):
    path = folder / "rows.jsonl"
    path.write_text("".join(json.dumps(plain_row(n, note="x" * 1000)) + "\n" for n in range(count)))
    return path


def check_full(response):
    assert response.status_code == 503
    assert response.headers["retry-after"] == "5"
    said = response.json()
    assert said["error"].endswith("database or disk is full.")
    assert said["hint"] == "Free some space, then try again."


def test_labels_on_a_full_disk_are_refused_and_none_is_lost(disk, disk_store, labelling):
    page = open_page(disk_store, labelling)
    assert page.label(0).status_code == 200
    with disk.full():
        refused = {}
        for step in range(1, STEPS):
            # The log has some room left in its file.
            response = page.label(step, f"key {step}".replace(" ", "-"))
            if response.status_code != 200:
                check_full(response)
                refused[step] = f"key-{step}"
        # As /healthz asks.
        with pytest.raises(UnavailableError, match="disk is full"):
            disk_store.check()
        assert refused
        assert logged(disk_store) == page.stored
    disk_store.check()
    for step, key in refused.items():
        assert page.label(step, key).status_code == 200
    assert logged(disk_store) == page.stored
    assert len(page.stored) == STEPS
    with closing(sqlite3.connect(disk_store.name)) as database:
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_an_import_that_does_not_fit_leaves_nothing(disk, disk_store, tmp_path):
    path = rows_file(tmp_path, 6000)
    with pytest.raises(UnavailableError, match="database or disk is full"):
        import_file(disk_store, "jsonl", path, "too-much")
    assert list_datasets(disk_store) == []
    import_file(disk_store, "jsonl", rows_file(tmp_path, 50), "enough")
    assert [dataset.traces for dataset in list_datasets(disk_store)] == [50]


def test_a_backup_that_does_not_fit_leaves_no_file(disk, disk_store, tmp_path):
    import_file(disk_store, "jsonl", rows_file(tmp_path, 200), "rows")
    with disk.full(), pytest.raises(UserError, match=r"b\.backup: .*(full|No space left)"):
        make_backup(disk_store, disk.path / "b.backup")
    assert not [path for path in disk.path.iterdir() if "backup" in path.name]
    check_backup(make_backup(disk_store, disk.path / "b.backup").path)


def test_a_database_that_may_not_grow_is_as_a_full_disk(sqlite_store, labelling):
    """The same wherever no file system can be mounted."""
    page = open_page(sqlite_store, labelling)
    # Pages that are free would be taken first.
    with closing(sqlite3.connect(sqlite_store.engine.url.database)) as connection:
        connection.execute("VACUUM")
    limited = True

    @event.listens_for(sqlite_store.engine, "begin")
    def limit(connection):
        (pages,) = connection.exec_driver_sql("PRAGMA page_count").one()
        connection.exec_driver_sql(f"PRAGMA max_page_count = {pages if limited else 2**30}")

    long = {"kind": "comment", "key": "long", "step": 0, "new": "x" * 9_000}
    path = f"/annotate/slots/{page.slot}/events"
    check_full(labelling.post(path, json=long))
    assert logged(sqlite_store) == {}
    limited = False
    assert labelling.post(path, json=long).status_code == 200
    assert list(logged(sqlite_store)) == ["long"]


def test_a_disk_that_became_read_only(disk, disk_store, labelling):
    page = open_page(disk_store, labelling)
    assert page.label(0).status_code == 200
    # No system makes it so while somebody writes.
    disk_store.close()
    with disk.read_only():
        response = page.label(1, "again")
        assert response.status_code == 503
        assert "folder can be written" in response.json()["hint"]
        with pytest.raises(UserError, match=r"store\.db: cannot be written\. Allow writing to the file"):
            open_store(disk_store.name)
    assert page.label(1, "again").status_code == 200
    assert logged(disk_store) == page.stored
    assert len(page.stored) == 2


def test_a_database_that_may_not_be_written_any_more(sqlite_store, labelling):
    page = open_page(sqlite_store, labelling)
    assert page.label(0).status_code == 200
    refuses = True

    @event.listens_for(sqlite_store.engine, "begin")
    def limit(connection):
        connection.exec_driver_sql(f"PRAGMA query_only = {'ON' if refuses else 'OFF'}")

    response = page.label(1, "again")
    assert response.status_code == 503
    assert response.json()["error"].endswith("attempt to write a readonly database.")
    assert response.json()["hint"] == "Allow writing to the file and its folder."
    # What is there can still be looked at.
    assert logged(sqlite_store) == page.stored
    refuses = False
    assert page.label(1, "again").status_code == 200
    assert logged(sqlite_store) == page.stored


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="who is root may write everywhere")
@pytest.mark.parametrize("what", ["file", "folder"])
def test_a_file_or_folder_that_may_not_be_written(what, sqlite_store, tmp_path):
    path = tmp_path / "store.db" if what == "file" else tmp_path
    mode = path.stat().st_mode
    path.chmod(0o444 if what == "file" else 0o555)
    try:
        with pytest.raises(UserError, match="cannot be written"):
            open_store(sqlite_store.name)
    finally:
        path.chmod(mode)
