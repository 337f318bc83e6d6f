"""What is backed up is restored, on and between both databases."""

import sqlite3
import threading
from contextlib import closing
from datetime import timedelta

import pytest
from sqlalchemy import func, select

from stepsight.core.trace import Trace
from stepsight.storage.backup import check_backup, count_rows, make_backup, restore_backup, tables
from stepsight.storage.browse.browse import browse
from stepsight.storage.browse.filters import TraceFilter
from stepsight.storage.database.schema import LoginRow, TraceRow, UserRow, now
from stepsight.storage.database.store import NotFoundError, open_store
from stepsight.storage.judgments.judgments import save_judgments
from stepsight.storage.people.logins import find_invitation, invite, invite_to_reset
from stepsight.storage.people.users import Role, add_user
from stepsight.storage.traces.queries import find_dataset, iterate_traces, list_datasets
from tests.messages import refused
from tests.storage import samples
from tests.storage.people.samples import PASSWORD


def fill(store):
    """Traces, a judgment, a person who is logged in, and a log that refuses to be changed."""
    traces = samples.add(store)
    judge = samples.evaluator(store)
    save_judgments(store, judge.id, [samples.judge(traces[0], "hindsight")])
    with store.write() as session:
        user = UserRow(name="ada", role="annotator", password="$argon2id$x")
        session.add(user)
        session.flush()
        session.add(LoginRow(digest="d" * 64, user_id=user.id, expires=now() + timedelta(days=1)))
    return traces


def rows(store):
    """Every row of every table but those that a restored store starts without."""
    left_out = ("logins", "failed_logins")
    with store.read() as session:
        return {
            table.name: [tuple(row) for row in session.execute(select(table).order_by(*table.primary_key))]
            for table in tables()
            if table.name not in left_out
        }


@pytest.fixture
def filled(store):
    fill(store)
    return store


def test_a_backup_is_restored_to_either_database(filled, tmp_path, postgresql):
    backup = make_backup(filled, tmp_path / "one.backup")
    # All but the login of the only user.
    with filled.read() as session:
        assert backup.rows == sum(count_rows(session).values()) - 1
    for address in (str(tmp_path / "new.db"), postgresql.make()):
        restored = restore_backup(tmp_path / "one.backup", address)
        assert restored.aside is None
        with open_store(address) as store:
            assert rows(store) == rows(filled)
            assert [t.digest for t in iterate_traces(store, find_dataset(store, "sums").id)] == [
                t.digest for t in samples.SAMPLES
            ]
            # Texts are found, and new rows get ids of their own.
            dataset = find_dataset(store, "sums").id
            assert [row.id for row in browse(store, dataset, TraceFilter(text="1 + 1 = 3")).rows] == ["error"]
            samples.add(store, [Trace.of("What is 5 + 5?", ["It is 10."], id="new")])
            assert list_datasets(store)[0].traces == 5


def test_nobody_is_logged_in_after_a_restore_and_no_link_lets_anybody_in(filled, tmp_path):
    admin = add_user(filled, "grace", Role.ADMIN, PASSWORD)
    links = [invite(filled, Role.ADMIN, None, admin), invite_to_reset(filled, "ada", admin)]
    make_backup(filled, tmp_path / "one.backup")
    restore_backup(tmp_path / "one.backup", str(tmp_path / "new.db"))
    with open_store(str(tmp_path / "new.db")) as store:
        with store.read() as session:
            counts = count_rows(session)
        assert (counts["users"], counts["logins"], counts["invitations"]) == (2, 0, 0)
        for link in links:
            assert find_invitation(filled, link)
            with pytest.raises(NotFoundError):
                find_invitation(store, link)


def test_a_backup_is_a_file_of_its_owner_that_opens_as_a_store(filled, tmp_path):
    path = tmp_path / "one.backup"
    make_backup(filled, path)
    assert path.stat().st_mode & 0o777 == 0o600
    assert [file.name for file in tmp_path.glob("one.backup*")] == ["one.backup"]
    with open_store(str(path)) as store:
        assert [dataset.name for dataset in list_datasets(store)] == ["sums"]


@pytest.mark.usefixtures("no_umask")
def test_what_is_restored_and_what_is_kept_aside_are_their_owners_alone(sqlite_store, tmp_path):
    fill(sqlite_store)
    make_backup(sqlite_store, tmp_path / "one.backup")
    for _ in range(2):
        restored = restore_backup(tmp_path / "one.backup", str(tmp_path / "new.db"), force=True)
    assert {path.stat().st_mode & 0o777 for path in (tmp_path / "new.db", restored.aside)} == {0o600}


def test_it_is_one_moment_of_a_store_that_is_written_to(store, tmp_path):
    samples.add(store, samples.many(50), "many")
    stop = threading.Event()

    def write():
        number = 50
        while not stop.is_set():
            samples.add(store, [Trace.of(f"Problem {number}", ["a", "b"], id=str(number))], "many")
            number += 1

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for number in range(3):
            make_backup(store, tmp_path / f"{number}.backup")
    finally:
        stop.set()
        writer.join()
    for number in range(3):
        with open_store(str(tmp_path / f"{number}.backup")) as copy, copy.read() as session:
            counts = count_rows(session)
        # 50 traces of one step; each of those added since has two: none is there in part.
        assert counts["steps"] == 50 + 2 * (counts["traces"] - 50)
    with store.read() as session:
        assert session.scalar(select(func.count(TraceRow.id))) > 50


def test_a_store_that_is_not_empty_is_kept_aside(filled, tmp_path):
    make_backup(filled, tmp_path / "one.backup")
    samples.add(filled, samples.many(3), "later")
    address = filled.engine.url.render_as_string(hide_password=False)
    before = rows(filled)
    with refused():
        restore_backup(tmp_path / "one.backup", address)
    assert rows(filled) == before
    restored = restore_backup(tmp_path / "one.backup", address, force=True)
    # The store was open all the time, and shows what was restored.
    assert [dataset.name for dataset in list_datasets(filled)] == ["sums"]
    restore_backup(restored.aside, str(tmp_path / "old.db"))
    with open_store(str(tmp_path / "old.db")) as old:
        assert rows(old) == before


def test_a_file_that_is_no_whole_backup_is_refused(sqlite_store, tmp_path):
    fill(sqlite_store)
    path = tmp_path / "one.backup"
    make_backup(sqlite_store, path)
    whole = path.read_bytes()
    for content in (None, whole[: len(whole) // 2], b"hello" * 1000, b""):
        path.unlink(missing_ok=True)
        if content is not None:
            path.write_bytes(content)
        with refused():
            restore_backup(path, str(tmp_path / "new.db"))
    path.write_bytes(whole)
    changes = (
        "DELETE FROM traces",
        "UPDATE stepsight_schema SET version = 9999",
        "DROP TABLE stepsight_schema",
    )
    for change in changes:
        with closing(sqlite3.connect(path)) as database:
            database.create_function("search_form", 1, str)
            database.execute(change)
            database.commit()
        with refused():
            restore_backup(path, str(tmp_path / "new.db"))
    assert not (tmp_path / "new.db").exists()


def test_a_backup_is_not_written_over_another_file(sqlite_store, tmp_path):
    path = tmp_path / "one.backup"
    path.write_text("mine")
    with refused():
        make_backup(sqlite_store, path)
    with refused():
        make_backup(sqlite_store, sqlite_store.name, force=True)
    assert path.read_text() == "mine"
    make_backup(sqlite_store, path, force=True)
    assert check_backup(path) == 0
