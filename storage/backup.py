"""Backing up a whole store to one file while it is in use, and restoring it.

A backup is a store on SQLite: a SQLite store is copied with SQLite's online backup, a PostgreSQL store row by row
from one snapshot. It can therefore be restored to either kind of database and be opened without being restored. It
contains password hashes, so the file is readable only by its owner, but no logins, which may have ended since.
"""

import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from sqlalchemy import Integer, Table, func, insert, select, text
from sqlalchemy.orm import Session

# Imported so that their tables are part of the metadata.
import stepsight.storage.database.jobs_schema
import stepsight.storage.database.labelling_schema  # noqa: F401
from stepsight.core.errors import UserError
from stepsight.core.files.whole_files import atomic_file
from stepsight.storage.database.creation import STAMP, check_version
from stepsight.storage.database.schema import Base
from stepsight.storage.database.store import Store, open_store, snapshot
from stepsight.storage.traces.search import index_everything

_BATCH = 1000
_BUSY_SECONDS = 60
# Restored links must not let anybody in, just like logins. Files waiting to be added are stored elsewhere.
_WITHOUT_LOGINS = "DELETE FROM logins; DELETE FROM failed_logins; DELETE FROM uploads; DELETE FROM invitations"


@dataclass(frozen=True)
class Backup:
    """A backup that was written to the file `path`, or restored to the store `restored`. `aside` is the backup of
    that store's previous content, or None if there was none."""

    path: Path
    rows: int
    restored: str = ""
    aside: Path | None = None

    def __str__(self) -> str:
        if not self.restored:
            return f"{self.path}: {self.rows:,} rows, {self.path.stat().st_size / 1e6:,.1f} MB, checked."
        note = f" What was there before is kept in {self.aside}." if self.aside else ""
        return f"{self.restored}: {self.rows:,} rows of {self.path}, checked.{note}"


def make_backup(store: Store, path: str | Path, force: bool = False) -> Backup:
    """Write a backup and check it.

    The store can be read and written in the meantime, but the backup contains only what was in the store at the
    start. Raises `UserError` if the file exists and `force` is not set, or if the file cannot be written.
    """
    path = Path(path)
    on_sqlite = store.engine.dialect.name == "sqlite"
    if on_sqlite and path.exists() and path.samefile(store.name):
        raise UserError(f"{path}: the store itself.", "Name another file.")
    with atomic_file(path, replace=force, private=True) as partial:
        if not on_sqlite:
            with snapshot(store) as source, open_store(str(partial)) as target, target.write() as session:
                copy_rows(source, session)
        with _sqlite_errors(path):
            if on_sqlite:
                _copy_file(store.name, partial)
            _end_logins(partial)
        return Backup(path, _check(partial, path))


def restore_backup(path: str | Path, address: str | None = None, force: bool = False) -> Backup:
    """Restore a backup into the store at `address`, which is anything that `open_store` accepts.

    The store is created if it does not exist. A store with content is replaced only with `force`, and its content
    is first backed up to a file in its own folder or, on PostgreSQL, in the folder of `path`. Anything that other
    processes write to the store during the restore is lost; a server that has it open carries on with what was
    restored. Raises `UserError` and leaves the store unchanged if the file is not a backup, is damaged, or comes
    from a newer version.
    """
    path = Path(path)
    check_backup(path)
    with open_store(address) as store:
        on_sqlite = store.engine.dialect.name == "sqlite"
        base = Path(store.name) if on_sqlite else path
        with store.read() as session:
            is_empty = not any(count_rows(session).values())
        if not is_empty and not force:
            raise UserError(
                f"{store.name}: the store is not empty.",
                "Restore to another one with --db, or replace it with --force, which first backs up the old one.",
            )
        with tempfile.TemporaryDirectory(dir=base.parent if on_sqlite else None) as folder, _sqlite_errors(path):
            fresh = Path(folder) / "restored.db"
            _copy_file(path, fresh)
            _end_logins(fresh)
            rows, previous = _check(fresh, path), None
            if not is_empty:
                moment = datetime.now(UTC).strftime("%Y%m%dT%H%M%S")
                previous = make_backup(store, base.with_name(f"{base.stem}.before-{moment}.db")).path
            if on_sqlite:
                # One transaction: if the power fails, the store keeps its previous content.
                _copy_file(fresh, store.name)
            else:
                with open_store(str(fresh)) as source, source.read() as read, store.write() as write:
                    # Append-only logs reject ordinary deletions.
                    write.execute(text(f"TRUNCATE {', '.join(t.name for t in tables())} RESTART IDENTITY"))
                    copy_rows(read, write)
        return Backup(path, rows, store.name, previous)


def check_backup(path: Path) -> int:
    """Read a whole backup and return its number of rows. Raises `UserError` if the file is not a backup of this
    version, or is damaged."""
    if not path.is_file():
        raise UserError(f"{path}: there is no such file.", "Check the path.")
    return _check(path, path)


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
            values = [dict(row) for row in part]
            target.execute(insert(table), values, execution_options={"render_nulls": True})
        key = list(table.primary_key)
        # SQLite advances its counters by itself.
        if target.get_bind().dialect.name == "postgresql" and len(key) == 1 and isinstance(key[0].type, Integer):
            newest = f"SELECT max({key[0].name}) FROM {table.name}"
            target.execute(
                text(
                    f"SELECT setval(pg_get_serial_sequence('{table.name}', '{key[0].name}'), newest.id)"
                    f" FROM ({newest}) AS newest (id) WHERE newest.id IS NOT NULL"
                )
            )
    index_everything(target)


def _copy_file(source: str | Path, target: str | Path) -> None:
    with (
        closing(sqlite3.connect(source, timeout=_BUSY_SECONDS)) as original,
        closing(sqlite3.connect(target, timeout=_BUSY_SECONDS)) as copy,
    ):
        original.backup(copy)


def _end_logins(path: Path) -> None:
    with closing(sqlite3.connect(path)) as database:
        database.executescript(_WITHOUT_LOGINS)
        # Otherwise a part of the backup would be in a separate WAL file.
        database.execute("PRAGMA journal_mode = DELETE")


def _check(file: Path, path: Path) -> int:
    """Return the number of rows of `file`. Messages refer to it by `path`."""
    with _sqlite_errors(path), closing(sqlite3.connect(f"{file.resolve().as_uri()}?mode=ro", uri=True)) as database:
        names = {name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        if STAMP not in names:
            raise UserError(f"{path}: not a backup of a store.", "Name a file that stepsight backup wrote.")
        ((version,),) = database.execute(f"SELECT max(version) FROM {STAMP}")
        check_version(version, str(path))
        ((verdict,),) = database.execute("PRAGMA integrity_check(1)")
        if verdict != "ok":
            raise sqlite3.DatabaseError(verdict)
        if broken := sorted(table for table, *_ in database.execute("PRAGMA foreign_key_check")):
            raise sqlite3.DatabaseError(f"a row of {broken[0]} refers to one that does not exist")
        return sum(database.execute(f"SELECT count(*) FROM {table.name}").fetchone()[0] for table in tables())


@contextmanager
def _sqlite_errors(path: Path) -> Iterator[None]:
    """Convert SQLite errors raised in the `with` block into a `UserError` that names the file."""
    try:
        yield
    except (sqlite3.Error, UnicodeDecodeError) as error:
        hint = "Use another backup, or check the disk and its space."
        raise UserError(f"{path}: {str(error).rstrip('.')}.", hint) from None
