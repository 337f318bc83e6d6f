import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import func, select, text
from sqlalchemy.exc import DBAPIError, IntegrityError

from stepsight.storage.database.schema import DatasetRow, EvaluatorRow, JudgedRow, SubstepRow, TraceRow, TriangleRow
from stepsight.storage.database.store import (
    UnavailableError,
    count_up,
    insert_once,
    insert_or_update,
    open_store,
    snapshot,
)
from stepsight.storage.judgments.evaluators import list_evaluators, register_evaluator
from stepsight.storage.judgments.judgments import save_judgments
from stepsight.storage.traces.queries import list_datasets
from tests.messages import refused
from tests.storage.samples import SAMPLES, add, evaluator, judge, many


def test_a_new_store_is_empty_and_stays_what_it_is_when_opened_again(address):
    with open_store(address) as store:
        assert list_datasets(store) == []
        evaluator(store)
    with open_store(address) as store:
        assert [found.name for found in list_evaluators(store)] == ["mini"]


@pytest.mark.usefixtures("no_umask")
def test_a_new_store_and_the_files_beside_it_are_their_owners_alone(tmp_path):
    with open_store(str(tmp_path / "store.db")) as store:
        evaluator(store)
        modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
    assert modes == dict.fromkeys(["store.db", "store.db-wal", "store.db-shm"], 0o600)


def test_a_store_keeps_the_mode_that_somebody_gave_it(tmp_path):
    path = tmp_path / "store.db"
    open_store(str(path)).close()
    path.chmod(0o660)
    with open_store(str(path)) as store:
        evaluator(store)
        assert {file.stat().st_mode & 0o777 for file in tmp_path.iterdir()} == {0o660}


def test_without_an_address_the_variable_names_the_store(monkeypatch, tmp_path):
    monkeypatch.setenv("STEPSIGHT_DB", str(tmp_path / "named.db"))
    with open_store() as store:
        assert store.name == str(tmp_path / "named.db")
    assert (tmp_path / "named.db").exists()


def test_sqlite_settings_hold_on_every_connection(sqlite_store):
    with sqlite_store.read() as first, sqlite_store.read() as second:
        for session in (first, second):
            pragmas = ("journal_mode", "foreign_keys", "busy_timeout", "synchronous")
            found = [session.scalar(text(f"PRAGMA {pragma}")) for pragma in pragmas]
            assert found == ["wal", 1, 60_000, 1]


def test_durable_writes_reach_the_disk(sqlite_store):
    def synchronous(durable: bool) -> int:
        with sqlite_store.write(durable=durable) as session:
            return session.execute(text("PRAGMA synchronous")).scalar_one()

    # NORMAL is 1, FULL is 2; a connection goes back to the pool and is used for either.
    assert [synchronous(durable) for durable in (False, True, False, True)] == [1, 2, 1, 2]


def test_a_block_that_raises_keeps_nothing(store):
    def fail() -> None:
        with store.write() as session:
            session.add(DatasetRow(name="half", kind="plain", source="", sha256=""))
            session.flush()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert list_datasets(store) == []


def test_a_reader_does_not_see_what_is_not_committed_and_does_not_wait(store):
    with store.write() as session:
        session.add(DatasetRow(name="half", kind="plain", source="", sha256=""))
        session.flush()
        assert list_datasets(store) == []
    assert [dataset.name for dataset in list_datasets(store)] == ["half"]


def test_deleting_a_dataset_takes_its_traces_and_judgments_along(store):
    traces = add(store)
    mini = evaluator(store)
    save_judgments(store, mini.id, [judge(trace, "offline") for trace in traces])
    with store.write() as session:
        session.execute(text("DELETE FROM datasets"))
    with store.read() as session:
        for model in (TraceRow, SubstepRow, TriangleRow):
            assert session.execute(select(model)).all() == []
        assert len(session.execute(select(EvaluatorRow)).all()) == 1


def test_an_evaluator_that_has_judged_cannot_be_deleted(store):
    mini = evaluator(store)
    save_judgments(store, mini.id, [judge(trace, "offline") for trace in add(store)])
    with pytest.raises(IntegrityError), store.write() as session:
        session.execute(text("DELETE FROM evaluators"))


def test_a_fault_of_ours_keeps_its_traceback(store):
    for statement in ("SELECT no_such_column FROM datasets", "SELECT * FROM no_such_table", "SELECT FROM WHERE"):
        with pytest.raises(DBAPIError), store.read() as session:
            session.execute(text(statement))


def test_many_threads_write_and_read_at_once(store):
    traces = add(store)

    def work(number: int) -> int:
        mine = evaluator(store, f"e{number}")
        for seed in range(5):
            save_judgments(store, mine.id, [judge(trace, "hindsight", seed) for trace in traces])
            list_datasets(store)
        return mine.id

    with ThreadPoolExecutor(12) as pool:
        ids = list(pool.map(work, range(12)))
    assert len(set(ids)) == 12
    with store.read() as session:
        assert len(session.scalars(select(TriangleRow.trace_id)).all()) == 12 * len(traces)


def test_threads_that_register_one_evaluator_get_one(store):
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: evaluator(store), range(8)))
    assert len({one.id for one in found}) == 1


def test_threads_that_open_a_new_store_at_once(address):
    def work(number: int) -> None:
        with open_store(address) as store:
            register_evaluator(store, name="x", fingerprint=str(number), format="f", attention="causal")

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(work, range(6)))
    with open_store(address) as store:
        assert len(list_evaluators(store)) == 6


def test_what_a_writer_has_read_stays_until_it_commits(address):
    with open_store(address) as first, open_store(address) as second:
        evaluator(first, "0")

        def count(number: int) -> None:
            # Of two stores, as two servers have them.
            with (first, second)[number % 2].write() as session:
                row = session.scalars(select(EvaluatorRow)).one()
                row.name = str(int(row.name) + 1)

        with ThreadPoolExecutor(6) as pool:
            list(pool.map(count, range(24)))
        assert [row.name for row in list_evaluators(first)] == ["24"]


def test_others_write_beside_a_bulk_session_of_postgresql(postgresql_store):
    with postgresql_store.write(bulk=True) as session:
        session.add(DatasetRow(name="large", kind="plain", source="", sha256=""))
        session.flush()
        evaluator(postgresql_store)
    assert (len(list_datasets(postgresql_store)), len(list_evaluators(postgresql_store))) == (1, 1)


def test_a_writer_that_waits_too_long_is_told_so(monkeypatch, address):
    monkeypatch.setattr("stepsight.storage.database.store._BUSY_SECONDS", 0.05)
    with open_store(address) as first, open_store(address) as second:
        with first.write(), pytest.raises(UnavailableError):
            evaluator(second)
        evaluator(second)


def test_a_thread_that_waits_too_long_is_told_why(monkeypatch, address):
    monkeypatch.setattr("stepsight.storage.database.store._BUSY_SECONDS", 0.05)
    with open_store(address) as store:
        with store.write(), refused():
            evaluator(store)
        evaluator(store)


OTHER = """
import sqlite3, sys
database = sqlite3.connect(sys.argv[1], timeout=0)
try:
    database.execute("BEGIN IMMEDIATE")
except sqlite3.OperationalError as error:
    print(error)
"""


def test_opening_a_store_again_leaves_the_locks_that_this_process_has_on_it(tmp_path):
    path = tmp_path / "s.db"
    with open_store(str(path)) as store:
        # Locks of the file itself, as every process has them while it uses it or rolls back to a journal.
        store.engine.raw_connection().execute("PRAGMA journal_mode = DELETE")
    with open_store(str(path)) as store, store.write():
        open_store(str(path)).close()
        found = subprocess.check_output([sys.executable, "-c", OTHER, str(path)], text=True)
    assert "database is locked" in found


@pytest.mark.parametrize("text", ["not a database at all", "x", "7" * 100_000])
def test_a_file_that_is_not_a_database_stays_as_it_is(tmp_path, text):
    path = tmp_path / "notes.txt"
    path.write_text(text)
    with refused():
        open_store(str(path))
    assert path.read_text() == text
    assert list(tmp_path.iterdir()) == [path]


def test_a_place_where_sqlite_cannot_write():
    with refused():
        open_store("/proc/stepsight.db")


def test_a_server_that_does_not_answer_is_named_without_the_password(tmp_path):
    with refused() as caught:
        open_store(f"postgresql://me:secret@/db?host={tmp_path}")
    assert "secret" not in str(caught.value)
    # Nor do pages name the machine and the user.
    assert caught.value.without_options().message == "The store: the database cannot be reached."


def test_a_database_that_does_not_exist(postgresql_store):
    url = postgresql_store.engine.url.set(drivername="postgresql", database="nowhere")
    with refused():
        open_store(url.render_as_string(hide_password=False))


@pytest.mark.parametrize("rights", ["", "GRANT USAGE ON SCHEMA public TO guest"])
def test_a_user_who_may_not_create_tables(postgresql, rights):
    address = postgresql.make()
    with open_store(address) as store, store.write() as session:
        session.execute(text("DROP SCHEMA public CASCADE; CREATE SCHEMA public"))
        session.execute(text("DROP ROLE IF EXISTS guest; CREATE ROLE guest LOGIN"))
        session.execute(text(rights or "SELECT 1"))
    with refused():
        open_store(address.replace("postgres:@", "guest:@"))
    with open_store(address) as store, store.write() as session:
        session.execute(text("DROP OWNED BY guest; DROP ROLE guest"))


def test_without_the_driver_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with refused():
        open_store("postgresql://host/db")


def test_a_database_that_cannot_hold_every_text_is_refused(postgresql):
    for encoding in ("LATIN1", "SQL_ASCII"):
        address = postgresql.make(f"ENCODING '{encoding}' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0")
        with refused():
            open_store(address)


def test_postgresql_behind_a_pooler_of_transactions(postgresql):
    """Two clients, whose statements come often enough to be prepared, share one session."""
    program = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    if program is None:
        pytest.skip("no pgbouncer: sudo apt-get install pgbouncer")
    with postgresql.pooled(program) as address:
        for client in (address, address, f"{address}&prepare_threshold=0"):
            with open_store(client) as store:
                for number in range(12):
                    add(store, many(3), f"sums {number}")
                assert len(list_datasets(store)) == 12


def test_a_snapshot_does_not_see_later_writes(store):
    add(store)
    counted = select(func.count(TraceRow.id))
    with snapshot(store) as session:
        assert session.scalar(counted) == len(SAMPLES)
        add(store, many(3), "later")
        assert session.scalar(counted) == len(SAMPLES)
    with snapshot(store) as session:
        assert session.scalar(counted) == len(SAMPLES) + 3
    # The connection goes back as it was.
    with store.read() as session:
        assert session.connection().get_isolation_level() in ("SERIALIZABLE", "READ COMMITTED")


def row(**values):
    return {"name": "n", "fingerprint": "f", "format": "x", "attention": "causal", "info": {}} | values


def names(store):
    with store.read() as session:
        return {found.fingerprint: found.name for found in session.scalars(select(EvaluatorRow))}


def test_insert_once_leaves_what_is_there(store):
    with store.write() as session:
        insert_once(session, EvaluatorRow, [row()], "fingerprint")
        insert_once(session, EvaluatorRow, [row(name="other"), row(fingerprint="g")], "fingerprint")
    assert names(store) == {"f": "n", "g": "n"}


def test_insert_or_update_replaces_unless_the_same(store):
    with store.write() as session:
        for rows in ([row()], [row(name="same format")], [row(name="new format", format="y")]):
            insert_or_update(session, EvaluatorRow, rows, key=["fingerprint"], unless_same=["format"])
            found = session.scalars(select(EvaluatorRow).execution_options(populate_existing=True)).one()
            assert found.name == {"n": "n", "same format": "n", "new format": "new format"}[str(rows[0]["name"])]


def test_counting_up_begins_with_one(store):
    add(store)
    ids = [evaluator(store, name).id for name in ("a", "b")]
    for id in (ids[0], ids[1], ids[0]):
        with store.write() as session:
            count_up(session, JudgedRow, {"dataset_id": 1, "evaluator_id": id}, "revision")
    with store.read() as session:
        found = {row.evaluator_id: row.revision for row in session.scalars(select(JudgedRow))}
    assert found == {ids[0]: 2, ids[1]: 1}
