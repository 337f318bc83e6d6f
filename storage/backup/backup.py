"""Copying a whole store into one file while the store is in use.

A backup is a SQLite file with the same tables as the store, whether the store is in SQLite or PostgreSQL. It can
therefore be restored to either kind of database and inspected without StepSight. A SQLite store is copied with
SQLite's online backup. A PostgreSQL store is copied row by row from a single snapshot, because `pg_dump` is not
always available and only PostgreSQL can read its output. A backup contains logins and password hashes, so the file
is readable only by its owner.
"""

import hashlib
import json
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sqlalchemy import Integer, Table, func, insert, select, text
from sqlalchemy.orm import Session

import stepsight.storage.database.labelling_schema
import stepsight.storage.database.people_schema  # noqa: F401
from stepsight.core.errors import UserError
from stepsight.core.files.atomic import atomic_file
from stepsight.core.files.json_values import parse_json
from stepsight.storage.database.creation import STAMP
from stepsight.storage.database.schema import Base
from stepsight.storage.database.store import Store, open_store, snapshot
from stepsight.storage.traces.search import index_everything

# Imported so that their tables are in the metadata.

# Rows held in memory at once.
_BATCH = 1000
_ONE_STATEMENT = {"render_nulls": True}


def tables() -> list[Table]:
    """Return the tables of a store, sorted so that each one follows the tables that its foreign keys refer to."""
    return list(Base.metadata.sorted_tables)


def count_rows(session: Session) -> dict[str, int]:
    """Return the row count of every table, keyed by table name."""
    return {table.name: session.scalar(select(func.count()).select_from(table)) or 0 for table in tables()}


def copy_rows(source: Session, target: Session) -> None:
    """Copy all rows of `source` into the empty store `target`. The caller commits."""
    for table in tables():
        rows = source.execute(select(table).order_by(*table.primary_key), execution_options={"yield_per": _BATCH})
        for part in rows.mappings().partitions():
            target.execute(insert(table), [dict(row) for row in part], execution_options=_ONE_STATEMENT)
    index_everything(target)
    _set_counters(target)


def remove_rows(session: Session) -> None:
    """Delete all rows of a PostgreSQL store, including those of append-only logs, whose triggers refuse ordinary
    deletions."""
    session.execute(text(f"TRUNCATE {', '.join(table.name for table in tables())} RESTART IDENTITY"))


def differences(counts: Mapping[str, int], others: Mapping[str, int]) -> list[str]:
    """Return the sorted names of the tables whose row counts differ between `counts` and `others`."""
    return sorted(name for name in {*counts, *others} if counts.get(name) != others.get(name))


def _set_counters(session: Session) -> None:
    """Advance PostgreSQL's id sequences past the copied rows. SQLite does so by itself."""
    if session.get_bind().dialect.name != "postgresql":
        return
    for table in tables():
        key = list(table.primary_key)
        if len(key) == 1 and isinstance(key[0].type, Integer):
            newest = f"SELECT max({key[0].name}) FROM {table.name}"
            session.execute(
                text(f"SELECT setval(pg_get_serial_sequence('{table.name}', '{key[0].name}'), found)"
                     f" FROM ({newest}) AS newest (found) WHERE found IS NOT NULL")
            )  # fmt: skip


FORMAT, VERSION = "stepsight-backup", 1
TABLE = "stepsight_backup"
_DAMAGED = "Use another backup; this file is not what was written."


@dataclass(frozen=True)
class Content:
    """A summary of a table's content: its row count, and the SHA-256 of its rows in primary key order."""

    rows: int
    sha256: str


@dataclass(frozen=True)
class Manifest:
    """The description of a backup, stored inside the backup itself. `source` is the kind of database that was
    backed up, such as "sqlite", and `schema` is the version of its schema."""

    made: str
    source: str
    schema: int
    tables: Mapping[str, Content]

    @property
    def rows(self) -> int:
        return sum(content.rows for content in self.tables.values())


def write_manifest(database: sqlite3.Connection, source: str) -> Manifest:
    """Compute the manifest of a database, store it in that database and return it."""
    made = datetime.now(UTC).replace(microsecond=0).isoformat()
    (schema,) = database.execute(f"SELECT version FROM {STAMP}").fetchone()
    manifest = Manifest(made, source, schema, read_contents(database))
    text = json.dumps({"format": FORMAT, "version": VERSION} | asdict(manifest))
    database.execute(f"CREATE TABLE {TABLE} (manifest TEXT NOT NULL)")
    database.execute(f"INSERT INTO {TABLE} VALUES (?)", [text])
    database.commit()
    return manifest


def check_backup(path: Path) -> Manifest:
    """Read a whole backup, verify it against its manifest and return the manifest. Raises `UserError` if the file
    is not a backup or is damaged."""
    try:
        database = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro&immutable=1", uri=True)
        try:
            manifest = _read(database, path)
            check_database(database)
            contents = read_contents(database)
        finally:
            database.close()
    except (sqlite3.Error, UnicodeDecodeError) as error:
        raise UserError(f"{path}: damaged, or not a backup ({error}).", _DAMAGED) from None
    if contents != manifest.tables:
        other = sorted(t for t in {*contents, *manifest.tables} if contents.get(t) != manifest.tables.get(t))
        raise UserError(f"{path}: the table {other[0]!r} is not what was backed up.", _DAMAGED)
    return manifest


def check_database(database: sqlite3.Connection) -> None:
    """Raise `sqlite3.DatabaseError` if the file is corrupt or a foreign key refers to a missing row."""
    (verdict,) = database.execute("PRAGMA integrity_check(1)").fetchone()
    if verdict != "ok":
        raise sqlite3.DatabaseError(verdict)
    if broken := database.execute("PRAGMA foreign_key_check").fetchone():
        raise sqlite3.DatabaseError(f"a row of {broken[0]} refers to one that does not exist")


def read_contents(database: sqlite3.Connection) -> dict[str, Content]:
    """Return a summary of every table except the search index, which can be rebuilt from the other tables."""
    names = database.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name").fetchall()
    tables = [name for (name,) in names if not name.startswith(("sqlite_", "trace_search")) and name != TABLE]
    return {name: _content(database, name) for name in tables}


def _content(database: sqlite3.Connection, table: str) -> Content:
    columns = database.execute(f'PRAGMA table_info("{table}")').fetchall()
    names = ", ".join(f'"{name}"' for name in sorted(column[1] for column in columns))
    key = ", ".join(f'"{column[1]}"' for column in sorted(columns, key=lambda column: column[5]) if column[5])
    digest, rows = hashlib.sha256(), 0
    for row in database.execute(f'SELECT {names} FROM "{table}" ORDER BY {key or names}'):
        digest.update(repr(row).encode("utf-8", "surrogatepass"))
        rows += 1
    return Content(rows, digest.hexdigest())


def _read(database: sqlite3.Connection, path: Path) -> Manifest:
    none = UserError(f"{path}: not a backup of a store.", "Name a file that stepsight backup wrote.")
    if not database.execute("SELECT 1 FROM sqlite_master WHERE name = ?", [TABLE]).fetchone():
        raise none
    row = database.execute(f"SELECT manifest FROM {TABLE}").fetchone()
    try:
        values: dict[str, Any] = parse_json(row[0])
        if (values.pop("format"), version := values.pop("version")) != (FORMAT, VERSION):
            raise UserError(f"{path}: a backup of format {version!r}, expected {VERSION}.", "Update StepSight.")
        if "revision" in values:
            hint = "Restore it with that version, then bring its labels over: docs/stability.md says how."
            raise UserError(f"{path}: a backup of a version before 1.0.0.", hint)
        tables = {name: Content(**content) for name, content in values.pop("tables").items()}
        return Manifest(tables=tables, **values)
    except (TypeError, ValueError, KeyError, AttributeError):
        raise none from None


@dataclass(frozen=True)
class Backup:
    path: Path
    manifest: Manifest

    def __str__(self) -> str:
        size = self.path.stat().st_size / 1e6
        return f"{self.path}: {self.manifest.rows:,} rows, {size:,.1f} MB, checked."


def make_backup(store: Store, path: str | Path, force: bool = False) -> Backup:
    """Write a backup and verify that it is intact and complete.

    The store can be read and written in the meantime, but the backup contains only what was in the store at the
    start. Raises `UserError` if the file exists and `force` is not set, or if the file cannot be written.
    """
    path = Path(path)
    _refuse_itself(store, path)
    with atomic_file(path, replace=force, private=True) as partial, sqlite_errors(path):
        with snapshot(store) as source:
            counts = count_rows(source)
            _copy(source, partial)
        with closing(sqlite3.connect(partial)) as copy:
            # Otherwise a part of the backup would be in a separate WAL file.
            copy.execute("PRAGMA journal_mode = DELETE")
            manifest = write_manifest(copy, source=store.engine.dialect.name)
            check_database(copy)
        copied = {name: content.rows for name, content in manifest.tables.items() if name in counts}
        if wrong := differences(counts, copied):
            raise UserError(f"{path}: the copy of the table {wrong[0]!r} has another number of rows.", "Try again.")
    return Backup(path, manifest)


@contextmanager
def sqlite_errors(path: Path) -> Iterator[None]:
    """Convert SQLite errors raised in the `with` block into a `UserError` that names the file."""
    try:
        yield
    except sqlite3.Error as error:
        raise UserError(f"{path}: {str(error).rstrip('.')}.", "Check the disk and its space.") from None


def raw(session: Session) -> sqlite3.Connection:
    """Return the underlying `sqlite3` connection of a session."""
    connection: Any = session.connection().connection.driver_connection
    assert isinstance(connection, sqlite3.Connection)
    return connection


def _copy(source: Session, path: Path) -> None:
    if source.get_bind().dialect.name == "sqlite":
        with closing(sqlite3.connect(path)) as copy:
            raw(source).backup(copy)
        return
    with open_store(str(path)) as target, target.write() as session:
        copy_rows(source, session)


def _refuse_itself(store: Store, path: Path) -> None:
    if store.engine.dialect.name == "sqlite" and path.exists() and path.samefile(store.name):
        raise UserError(f"{path}: the store itself.", "Name another file.")
