"""Replacing the content of a store with a backup.

On SQLite, the backup's pages are copied into the existing file in a single transaction. A server that has the file
open carries on with the restored content. If the power fails during the restore, the file keeps its previous
content.
"""

import shutil
import sqlite3
import tempfile
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from stepsight.core.errors import UserError
from stepsight.storage.backup.backup import (
    TABLE,
    Manifest,
    check_backup,
    check_database,
    copy_rows,
    count_rows,
    differences,
    make_backup,
    remove_rows,
    sqlite_errors,
)
from stepsight.storage.database.creation import check_version
from stepsight.storage.database.store import Store, open_store

# Logins are not restored, since they may have been ended after the backup.
_LEFT_OUT = ("logins", "failed_logins")
# For the same reason, restored links let nobody in. The moment is spelled as SQLAlchemy does.
_END_LINKS = """UPDATE invitations SET revoked = strftime('%Y-%m-%d %H:%M:%f000', 'now')
    WHERE used IS NULL AND revoked IS NULL"""
_BUSY_SECONDS = 60


@dataclass(frozen=True)
class Restored:
    """The outcome of a restore.

    `aside` is the path of the backup made of the store's previous content, or None if the store was empty.
    """

    store: str
    manifest: Manifest
    aside: Path | None

    def __str__(self) -> str:
        aside = f" What was there before is kept in {self.aside}." if self.aside else ""
        return f"{self.store}: {self.manifest.rows:,} rows of a backup of {self.manifest.made}, checked.{aside}"


def restore_backup(path: str | Path, address: str | None = None, force: bool = False) -> Restored:
    """Restore a backup into the store at `address`, which is anything that `open_store` accepts.

    The store is created if it does not exist. A store with content is replaced only with `force`, and its content
    is first backed up to a file in its own folder or, on PostgreSQL, in the folder of `path`. Anything that other
    processes write to the store during the restore is lost. Raises `UserError` and leaves the store unchanged if
    the file is not a backup, is damaged, or comes from a newer version.
    """
    path = Path(path)
    if not path.is_file():
        raise UserError(f"{path}: there is no such file.", "Check the path.")
    manifest = check_backup(path)
    check_version(manifest.schema, str(path))
    with open_store(address) as store, tempfile.TemporaryDirectory(dir=_scratch(store)) as folder:
        fresh = _prepare(path, Path(folder) / "restored.db")
        aside = _keep_aside(store, path, force)
        if store.engine.dialect.name == "sqlite":
            _replace_pages(fresh, store.name)
        else:
            _replace_rows(fresh, store)
        return Restored(store.name, manifest, aside)


def _prepare(path: Path, copy: Path) -> Path:
    """Copy the backup to the file `copy`, without logins and with its links ended, and return its path."""
    try:
        shutil.copyfile(path, copy)
    except OSError as error:
        raise UserError(f"{path}: cannot be copied ({error.strerror}).", "Check the disk and its space.") from None
    with sqlite_errors(path), closing(sqlite3.connect(copy)) as database:
        database.execute(f"DROP TABLE {TABLE}")
        tables = {name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        for table in tables.intersection(_LEFT_OUT):
            database.execute(f"DELETE FROM {table}")
        database.commit()
    open_store(str(copy)).close()
    with sqlite_errors(path), closing(sqlite3.connect(copy)) as database:
        database.execute(_END_LINKS)
        database.commit()
        database.execute("PRAGMA journal_mode = DELETE")
    return copy


def _keep_aside(store: Store, path: Path, force: bool) -> Path | None:
    with store.read() as session:
        held = [name for name, count in count_rows(session).items() if count]
    if not held:
        return None
    if not force:
        raise UserError(
            f"{store.name}: the store is not empty.",
            "Restore to another one with --db, or replace it with --force, which keeps the old one aside.",
        )
    moment = datetime.now(UTC).strftime("%Y%m%dT%H%M%S")
    near = Path(store.name) if store.engine.dialect.name == "sqlite" else path
    return make_backup(store, near.with_name(f"{near.stem}.before-{moment}.db")).path


def _replace_pages(fresh: Path, name: str) -> None:
    with (
        sqlite_errors(Path(name)),
        closing(sqlite3.connect(fresh)) as source,
        closing(sqlite3.connect(name, timeout=_BUSY_SECONDS)) as target,
    ):
        (size,) = target.execute("PRAGMA page_size").fetchone()
        if source.execute("PRAGMA page_size").fetchone() != (size,):
            # SQLite cannot change the size of the pages of a file that others have open.
            source.execute(f"PRAGMA page_size = {size}")
            source.execute("VACUUM")
        source.backup(target)
        check_database(target)


def _replace_rows(fresh: Path, store: Store) -> None:
    with open_store(str(fresh)) as source, source.read() as read, store.write() as write:
        remove_rows(write)
        copy_rows(read, write)
        if wrong := differences(count_rows(read), count_rows(write)):
            raise UserError(f"{store.name}: the table {wrong[0]!r} lacks rows.", "Nothing was changed; try again.")


def _scratch(store: Store) -> Path | None:
    """Return the folder for temporary copies: the folder of a SQLite store's file, or None on PostgreSQL."""
    return Path(store.name).parent if store.engine.dialect.name == "sqlite" else None
