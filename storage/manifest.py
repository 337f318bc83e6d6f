"""What a backup holds, noted in it: how many rows each table has, and a digest of them."""

import hashlib
import json
import sqlite3
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from core.errors import UserError

FORMAT, VERSION = "stepsight-backup", 1
TABLE = "stepsight_backup"
_DAMAGED = "Use another backup; this file is not what was written."


@dataclass(frozen=True)
class Content:
    """`rows` of a table, and the SHA-256 of them in the order of their key."""

    rows: int
    sha256: str


@dataclass(frozen=True)
class Manifest:
    """`source` is what kind of database the store was on, `revision` that of its schema."""

    made: str
    source: str
    revision: str
    tables: Mapping[str, Content]

    @property
    def rows(self) -> int:
        return sum(content.rows for content in self.tables.values())


def write_manifest(database: sqlite3.Connection, source: str) -> Manifest:
    """Note in a database what it holds."""
    made = datetime.now(UTC).replace(microsecond=0).isoformat()
    manifest = Manifest(made, source, _revision(database), read_contents(database))
    text = json.dumps({"format": FORMAT, "version": VERSION} | asdict(manifest))
    database.execute(f"CREATE TABLE {TABLE} (manifest TEXT NOT NULL)")
    database.execute(f"INSERT INTO {TABLE} VALUES (?)", [text])
    database.commit()
    return manifest


def check_backup(path: Path) -> Manifest:
    """Read a backup from end to end against its manifest. Raises `UserError` where it is none, or is damaged."""
    try:
        database = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro&immutable=1", uri=True)
        try:
            manifest = _read(database, path)
            check_database(database)
            found = read_contents(database)
        finally:
            database.close()
    except sqlite3.DatabaseError as error:
        raise UserError(f"{path}: damaged, or no backup ({error}).", _DAMAGED) from None
    if found != manifest.tables:
        other = sorted(t for t in {*found, *manifest.tables} if found.get(t) != manifest.tables.get(t))
        raise UserError(f"{path}: the table {other[0]!r} is not what was backed up.", _DAMAGED)
    return manifest


def check_database(database: sqlite3.Connection) -> None:
    """Raises `sqlite3.DatabaseError` where the file's structure is broken or a row refers to none."""
    (found,) = database.execute("PRAGMA integrity_check(1)").fetchone()
    if found != "ok":
        raise sqlite3.DatabaseError(found)
    if broken := database.execute("PRAGMA foreign_key_check").fetchone():
        raise sqlite3.DatabaseError(f"a row of {broken[0]} refers to one that is not there")


def read_contents(database: sqlite3.Connection) -> dict[str, Content]:
    """What each table of a store holds; the search index is made of the others."""
    names = database.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name").fetchall()
    kept = [name for (name,) in names if not name.startswith(("sqlite_", "trace_search")) and name != TABLE]
    return {name: _content(database, name) for name in kept}


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
    none = UserError(f"{path}: no backup of a store.", "Name a file that stepsight backup wrote.")
    if not database.execute("SELECT 1 FROM sqlite_master WHERE name = ?", [TABLE]).fetchone():
        raise none
    row = database.execute(f"SELECT manifest FROM {TABLE}").fetchone()
    try:
        found: dict[str, Any] = json.loads(row[0])
        if (found.pop("format"), version := found.pop("version")) != (FORMAT, VERSION):
            raise UserError(f"{path}: a backup of format {version!r}, expected {VERSION}.", "Update StepSight.")
        tables = {name: Content(**content) for name, content in found.pop("tables").items()}
        return Manifest(tables=tables, **found)
    except (TypeError, ValueError, KeyError, AttributeError):
        raise none from None


def _revision(database: sqlite3.Connection) -> str:
    (revision,) = database.execute("SELECT version_num FROM alembic_version").fetchone()
    return str(revision)
