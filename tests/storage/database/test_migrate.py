"""Migrations and models agree, a store of 0.1.0 is taken over as it is, and anything else stays untouched."""

import hashlib
import json
import re
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from alembic import op
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine, NullPool, create_engine, inspect, text

from stepsight.app.commands.cli import main
from stepsight.core.errors import UserError
from stepsight.core.trace import Trace
from stepsight.storage.backup.backup import tables
from stepsight.storage.database.labelling_schema import EventRow
from stepsight.storage.database.location import locate
from stepsight.storage.database.migrate import newest_revision
from stepsight.storage.database.store import Store, open_store
from stepsight.storage.traces.search import find_text
from tests.compatibility.stores import SQLITE, load_store
from tests.conftest import ROOT
from tests.messages import refused
from tests.storage.samples import add

# Of every table, since the last ones refer to all the others.
METADATA = EventRow.metadata
# What the search rests on differs between the databases, and is in the migration alone.
SEARCH = ("trace_search", "ix_search")
OLD = ROOT / "tests" / "compatibility" / "0.1.0"


def test_migrations_give_what_the_models_say(store: Store) -> None:
    def include(name: str | None, *about: object) -> bool:
        return not (name or "").startswith(SEARCH)

    with store.engine.connect() as connection:
        opts = {"compare_type": True, "include_name": include}
        context = MigrationContext.configure(connection, opts=opts)
        assert compare_metadata(context, METADATA) == []


def test_migrations_give_the_checks_and_rules_of_the_models(address: str) -> None:
    """What Alembic does not compare: checks, delete rules, index conditions."""
    open_store(address).close()
    engine = create_engine(locate(address), poolclass=NullPool)
    migrated = _describe(engine)
    METADATA.drop_all(engine)
    METADATA.create_all(engine)
    assert migrated == _describe(engine)
    assert "label IN" in str(migrated) or "label = ANY" in str(migrated)


def _describe(engine: Engine) -> dict[str, list[list[str]]]:
    inspector = inspect(engine)
    readers: list[Callable[[str], Any]] = [
        inspector.get_columns,
        inspector.get_check_constraints,
        inspector.get_foreign_keys,
        inspector.get_indexes,
        inspector.get_unique_constraints,
        lambda table: [inspector.get_pk_constraint(table)],
    ]
    tables = [table for table in sorted(inspector.get_table_names()) if not table.startswith(SEARCH)]
    return {table: [_comparable(read(table)) for read in readers] for table in tables}


def _comparable(found: list[Any]) -> list[str]:
    kept = [one for one in found if not (one.get("name") or "").startswith(SEARCH)]
    return sorted(json.dumps(one, default=str, sort_keys=True) for one in kept)


def test_a_store_of_0_1_0_is_taken_over_without_a_change_to_its_rows(address: str) -> None:
    load_store(OLD, address)
    engine = create_engine(locate(address), poolclass=NullPool)
    inspector = inspect(engine)
    had = {table: [one["name"] for one in inspector.get_columns(table)] for table in inspector.get_table_names()}
    columns = {one.name: had[one.name] for one in tables() if one.name in had}
    before = _hash_rows(engine, columns)
    assert _revision(engine) == "0019_texts_found"
    with open_store(address) as store:
        assert _hash_rows(engine, columns) == before
        assert _revision(engine) == newest_revision()
        assert add(store, [Trace.of("q", ["a"], id="new")])[-1].id == "new"


def _hash_rows(engine: Engine, columns: dict[str, list[str]]) -> dict[str, str]:
    """A digest of these columns of each table, none of which is empty."""
    quoted = {name: ", ".join(f'"{column}"' for column in found) for name, found in columns.items()}
    read = {name: text(f"SELECT {names} FROM {name}") for name, names in quoted.items()}
    with engine.connect() as connection:
        every = {name: connection.execute(statement).all() for name, statement in read.items()}
    assert all(every.values())
    return {
        name: hashlib.sha256(repr(sorted(map(repr, rows))).encode()).hexdigest() for name, rows in every.items()
    }


def _revision(engine: Engine) -> str:
    with engine.connect() as connection:
        return str(connection.scalar(text("SELECT version_num FROM alembic_version")))


def test_a_store_of_0_1_0_has_the_tables_and_triggers_of_a_new_one(
    address: str, request: pytest.FixtureRequest
) -> None:
    load_store(OLD, address)
    open_store(address).close()
    engine = create_engine(locate(address), poolclass=NullPool)
    new = request.getfixturevalue(f"{engine.dialect.name}_store").engine
    # PostgreSQL writes the casts of a check that it reads from a dump in another place.
    had, has = (re.sub(r"::(character varying|text)(\[\])?|[()]", "", str(_describe(one))) for one in (engine, new))
    assert had == has
    assert _programs(engine) == _programs(new)


def test_texts_of_an_older_store_are_found_in_plain_signs(address: str) -> None:
    load_store(OLD, address)
    engine = create_engine(locate(address), poolclass=NullPool)
    with engine.begin() as connection:
        connection.execute(text("UPDATE traces SET problem = 'so k−7' WHERE id = 1"))
        if engine.dialect.name == "sqlite":
            connection.execute(text("UPDATE trace_search SET text = 'so k−7' WHERE rowid = 1"))
    with open_store(address) as store, store.read() as session:
        assert find_text(session, np.array([1, 2]), "k-7").tolist() == [True, False]


def _programs(engine: Engine) -> list[Any]:
    """Triggers, functions and the index of texts."""
    statements = {
        "sqlite": "SELECT name, sql FROM sqlite_master WHERE type = 'trigger' OR name = 'trace_search'",
        "postgresql": "SELECT tgname, pg_get_triggerdef(oid) FROM pg_trigger WHERE NOT tgisinternal"
        " UNION SELECT proname, prosrc FROM pg_proc WHERE pronamespace = 'public'::regnamespace"
        " UNION SELECT indexname, indexdef FROM pg_indexes WHERE indexname LIKE 'ix_search%'",
    }
    with engine.connect() as connection:
        return sorted(map(tuple, connection.execute(text(statements[engine.dialect.name]))))


# What is done to a store of 0.1.0, and the words that it is refused with.
REFUSED = {
    "older": (
        "UPDATE alembic_version SET version_num = '0018_spent'",
        "its schema, '0018_spent', is older than any that this version reads. StepSight 0.1.0 is the last version"
        " that reads it. Keep a copy, open or restore it there once, which upgrades it, then use the result here.",
    ),
    "newer": (
        "UPDATE alembic_version SET version_num = '9999_later'",
        f"its schema, '9999_later', is of a newer version; this one reads up to '{newest_revision()}'."
        " Update StepSight, or name another store.",
    ),
    "unstamped": (
        "DELETE FROM alembic_version",
        "alembic_version has 0 rows, expected one. Something else than StepSight changed the store. Mend that row,"
        " or restore a backup.",
    ),
    "another program's": (
        "ALTER TABLE judgments RENAME TO recipes",
        "a database of another program (it has a table 'calibrations'). Name a store, or an empty database.",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_store_of_another_version_is_refused_and_left_alone(address: str, name: str) -> None:
    change, message = REFUSED[name]
    load_store(OLD, address)
    engine = create_engine(locate(address), poolclass=NullPool)
    with engine.begin() as connection:
        connection.execute(text(change))
        before = _everything(connection)
    with pytest.raises(UserError) as refused:
        open_store(address)
    assert str(refused.value).endswith(f": {message}")
    with engine.connect() as connection:
        assert _everything(connection) == before


def _everything(connection: Connection) -> dict[str, list[str]]:
    names = [name for name in inspect(connection).get_table_names() if not name.startswith(SEARCH)]
    return {name: [repr(row) for row in connection.execute(text(f'SELECT * FROM "{name}"'))] for name in names}


def test_a_database_of_another_program_is_refused_and_left_alone(address: str) -> None:
    engine = create_engine(locate(address), poolclass=NullPool)
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE recipes (id INTEGER)"))
    with refused():
        open_store(address)
    assert inspect(engine).get_table_names() == ["recipes"]


def _make_changed(path: Path, statement: str) -> None:
    shutil.copyfile(OLD / SQLITE, path)
    with closing(sqlite3.connect(path)) as database:
        database.execute(statement)
        database.commit()


def _make_recipes(path: Path) -> None:
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("CREATE TABLE recipes (id INTEGER)")


# How a file is made, and a part of what is said of it.
FILES: dict[str, tuple[Callable[[Path], Any], str]] = {
    "older": (lambda path: _make_changed(path, REFUSED["older"][0]), REFUSED["older"][1]),
    "newer": (lambda path: _make_changed(path, REFUSED["newer"][0]), REFUSED["newer"][1]),
    "another program's": (_make_recipes, "a database of another program (it has a table 'recipes')"),
    "cut off": (
        lambda path: path.write_bytes((OLD / SQLITE).read_bytes()[:40_000]),
        "database disk image is malformed. The file is damaged. Restore it from a copy.",
    ),
    "overwritten": (
        lambda path: path.write_bytes(b"SQLite format 3\x00" + b"\xff" * 5000),
        "file is not a database. Name a store, or a file that does not exist yet.",
    ),
    "zeros": (lambda path: path.write_bytes(bytes(5000)), "file is not a database"),
}


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_cannot_be_opened_gets_one_message_and_keeps_every_byte(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
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


def test_migrations_are_one_line_with_names_that_postgresql_can_keep() -> None:
    config = Config()
    config.set_main_option("script_location", "stepsight.storage:migrations")
    scripts = ScriptDirectory.from_config(config)
    assert scripts.get_heads() == [newest_revision()]
    for script in scripts.walk_revisions():
        assert len(script.revision) <= 32
        assert Path(script.path).stem == script.revision


def test_a_migration_that_fails_leaves_nothing(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: object, **options: object) -> None:
        raise RuntimeError("in the middle")

    with monkeypatch.context() as patched:
        patched.setattr(op, "create_index", fail)
        with pytest.raises(RuntimeError, match="in the middle"):
            open_store(address)
    engine = create_engine(locate(address), poolclass=NullPool)
    assert inspect(engine).get_table_names() == []
    open_store(address).close()


def test_a_sqlite_that_cannot_search_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sqlite3.sqlite_version_info", (3, 31, 1))
    with refused():
        open_store(str(tmp_path / "store.db"))
