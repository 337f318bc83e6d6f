"""A copy of a whole store as one file, made while the store is in use.

A backup is a SQLite file with the tables of a store, whichever database the store is on, so that it can be restored
to either and looked into without us. From SQLite it is made by SQLite's own online copying, from PostgreSQL row by
row within one snapshot; `pg_dump` is not always there, and what it writes only another PostgreSQL can read. Logins
are in it as well as digests of passwords, so that only its owner can read it.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy.orm import Session

from core.errors import UserError
from storage.copying import copy_rows, count_rows, differences
from storage.manifest import Manifest, check_database, write_manifest
from storage.snapshot import snapshot
from storage.store import Store, open_store
from storage.whole_file import whole_file


@dataclass(frozen=True)
class Backup:
    path: Path
    manifest: Manifest

    def __str__(self) -> str:
        size = self.path.stat().st_size / 1e6
        return f"{self.path}: {self.manifest.rows:,} rows, {size:,.1f} MB, checked."


def make_backup(store: Store, path: str | Path, force: bool = False) -> Backup:
    """Write a backup and check it: that it is sound, and has as many rows as the store had at that moment.

    Others may read and write meanwhile; what they write after the start is not in it. Raises `UserError` where the
    file is there already unless `force` is given, or cannot be written.
    """
    path = Path(path)
    _refuse_itself(store, path)
    with whole_file(path, force=force, private=True) as partial, told(path):
        with snapshot(store) as source:
            counts = count_rows(source)
            _copy(source, partial)
        with closing(sqlite3.connect(partial)) as copy:
            # Otherwise a part of it would lie in a file beside it.
            copy.execute("PRAGMA journal_mode = DELETE")
            manifest = write_manifest(copy, source=store.engine.dialect.name)
            check_database(copy)
        found = {name: content.rows for name, content in manifest.tables.items() if name in counts}
        if wrong := differences(counts, found):
            raise UserError(f"{path}: the copy of the table {wrong[0]!r} has another number of rows.", "Try again.")
    return Backup(path, manifest)


@contextmanager
def told(path: Path) -> Iterator[None]:
    """Turn a SQLite file that fails into a `UserError`."""
    try:
        yield
    except sqlite3.Error as error:
        raise UserError(f"{path}: {str(error).rstrip('.')}.", "Check the disk and its space.") from None


def raw(session: Session) -> sqlite3.Connection:
    """The driver's own connection of a session on SQLite."""
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
