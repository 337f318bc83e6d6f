"""The schema that a new database gets, what the database itself refuses, and which ones are refused as they are."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import NullPool, create_engine, insert, inspect, select, text
from sqlalchemy.exc import DatabaseError, IntegrityError

from stepsight.app.commands.cli import main
from stepsight.core.errors import UserError
from stepsight.storage.database import creation
from stepsight.storage.database.location import locate
from stepsight.storage.database.schema import DatasetRow, JudgmentRow, StepRow, SubstepRow, TraceRow, check_name
from stepsight.storage.database.store import open_store
from tests.cases import each
from tests.messages import refused
from tests.storage.samples import add, evaluator

TRACE = {
    "external_id": "x",
    "position": 9,
    "problem": "p",
    "digest": "d",
    "n_steps": 2,
    "n_substeps": 2,
    "first_error": None,
    "has_gold": False,
    "meta": {},
}
JUDGMENT = {"mode": "offline", "digest": "d", "derived": False, "scores": b""}


@each(
    "wrong",
    [
        {"external_id": "error"},
        {"position": 0},
        {"position": -1},
        {"n_steps": 0},
        {"n_substeps": 1},
        {"has_gold": True, "first_error": 2},
        {"has_gold": True, "first_error": -1},
        {"first_error": 1},
        {"dataset_id": 99},
    ],
)
def test_traces(store, wrong):
    dataset_id = add(store)[0].dataset_id
    with pytest.raises(IntegrityError), store.write() as session:
        session.execute(insert(TraceRow), TRACE | {"dataset_id": dataset_id} | wrong)


@each(
    "wrong",
    [
        {"label": 3, "valid": True},
        {"label": 0, "valid": True},
        {"label": 2, "valid": False},
        {"label": 1, "valid": None},
        {"trace_id": 99},
    ],
)
def test_steps(store, wrong):
    trace_id = add(store)[0].trace_id
    with pytest.raises(IntegrityError), store.write() as session:
        session.execute(
            insert(StepRow), {"trace_id": trace_id, "position": 9, "label": None, "valid": None} | wrong
        )


def test_a_substep_belongs_to_a_step(store):
    trace_id = add(store)[0].trace_id
    with pytest.raises(IntegrityError), store.write() as session:
        session.execute(insert(SubstepRow), {"trace_id": trace_id, "step": 9, "position": 0, "text": "t"})


@each(
    "wrong",
    [
        {"mode": "later"},
        {"mode": "hindsight"},
        {"dataset_id": 99},
        {"evaluator_id": 99},
        {"scores": None},
    ],
)
def test_judgments(store, wrong):
    trace = add(store)[0]
    ids = {"trace_id": trace.trace_id, "dataset_id": trace.dataset_id, "evaluator_id": evaluator(store).id}
    with pytest.raises(IntegrityError), store.write() as session:
        session.execute(insert(JudgmentRow), JUDGMENT | ids | wrong)


def test_a_moment_comes_back_in_utc(store):
    east = datetime(2024, 5, 1, 3, 30, tzinfo=timezone(timedelta(hours=5)))
    with store.write() as session:
        session.add(DatasetRow(name="d", kind="plain", source="", sha256="", created=east))
    with store.read() as session:
        created = session.scalars(select(DatasetRow.created)).one()
    # 03:30 at five hours east of Greenwich is 22:30 of the day before there.
    assert created == datetime(2024, 4, 30, 22, 30, tzinfo=UTC)
    assert created.utcoffset() == timedelta(0)


def test_a_name_in_any_script():
    assert check_name("MR-MATH (größer) 数学", "the name") == "MR-MATH (größer) 数学"
    assert check_name("x" * 200, "the name")


@each("name", ["", " ", " x", "x\n", "a\nb", "a\x00", "a\u200bb", "x" * 201, "\ud800"])
def test_an_invalid_name_is_refused(name):
    with refused():
        check_name(name, "the name")


SEARCH = "trace_search"
EARLIER = (
    "ALTER TABLE stepsight_schema RENAME TO alembic_version",
    "a store of a version before 1.0.0, which this version cannot read. Use another store (--db PATH), or move this"
    " one away. To keep its labels, export each campaign's log with that version (stepsight export labels NAME FILE"
    " --format events); here, import the traces again, then each log (stepsight import labels FILE).",
)
NEWER = (
    "UPDATE stepsight_schema SET version = 9999",
    "the version of its schema is 9999, expected 3. Update StepSight, or name another store.",
)
# What is done to a store, and the words that it is then refused with.
REFUSED = {
    "earlier": EARLIER,
    "newer": NEWER,
    "unstamped": (
        "DELETE FROM stepsight_schema",
        "stepsight_schema has 0 rows, expected one. Something else than StepSight changed the store. Mend that row,"
        " or restore a backup.",
    ),
    "another program's": (
        "ALTER TABLE judgments RENAME TO recipes",
        "a database of another program (it has a table 'calibrations'). Name a store, or an empty database.",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_store_of_another_version_is_refused_and_left_alone(address, name):
    change, message = REFUSED[name]
    with open_store(address) as store:
        add(store)
    engine = create_engine(locate(address), poolclass=NullPool)
    with engine.begin() as connection:
        connection.execute(text(change))
        before = _everything(connection)
    with pytest.raises(UserError) as refused:
        open_store(address)
    assert str(refused.value).endswith(f": {message}")
    with engine.connect() as connection:
        assert _everything(connection) == before


def _everything(connection):
    names = [name for name in inspect(connection).get_table_names() if not name.startswith(SEARCH)]
    return {name: [repr(row) for row in connection.execute(text(f'SELECT * FROM "{name}"'))] for name in names}


def _make_store(path, statement=""):
    open_store(str(path)).close()
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA journal_mode = DELETE")
        database.execute(statement)
        database.commit()


def _make_recipes(path):
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("CREATE TABLE recipes (id INTEGER)")


def _make_cut_off(path):
    _make_store(path)
    path.write_bytes(path.read_bytes()[:40_000])


# How a file is made, and a part of what is said of it.
FILES: dict[str, tuple[Callable[[Path], Any], str]] = {
    "newer": (lambda path: _make_store(path, NEWER[0]), NEWER[1]),
    "another program's": (_make_recipes, "a database of another program (it has a table 'recipes')"),
    "cut off": (_make_cut_off, "database disk image is malformed. The file is damaged. Restore it from a copy."),
    "overwritten": (
        lambda path: path.write_bytes(b"SQLite format 3\x00" + b"\xff" * 5000),
        "file is not a database. Name a store, or a file that does not exist yet.",
    ),
    "zeros": (lambda path: path.write_bytes(bytes(5000)), "file is not a database"),
}


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_cannot_be_opened_gets_one_message_and_keeps_every_byte(tmp_path, capsys, name):
    make, message = FILES[name]
    path = tmp_path / "file.db"
    make(path)
    before = path.read_bytes()
    assert main(["datasets", "--db", str(path)]) == 2
    out, error = capsys.readouterr()
    assert (out, error.count("\n")) == ("", 1)
    assert error.startswith(f"stepsight datasets: {path}: ")
    assert message in error
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_creation_that_fails_leaves_nothing(address, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr(creation, "STAMP", "datasets")
        with pytest.raises(DatabaseError, match="datasets"):
            open_store(address)
    engine = create_engine(locate(address), poolclass=NullPool)
    assert inspect(engine).get_table_names() == []
    open_store(address).close()


def test_a_sqlite_that_cannot_search_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("sqlite3.sqlite_version_info", (3, 31, 1))
    with refused():
        open_store(str(tmp_path / "store.db"))
