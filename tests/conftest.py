"""Fixtures that every test may use: real data, and a store on each database."""

import gc
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest
from argon2 import PasswordHasher

from stepsight.core.models.memory import has_room, release_memory
from stepsight.storage.database.store import Store, open_store
from stepsight.storage.people import users
from tests.postgresql import PostgreSQL, postgresql_server

pytest_plugins = ["tests.messages"]
ROOT = Path(__file__).parent.parent

_SHARED_MEMORY = Path("/dev/shm")
# Bytes for files, and those that the processes of four workers and theirs take beside them.
_FILES, _PROCESSES = 4 << 30, 12 << 30


def pytest_configure(config):
    """Keep the files of tests in memory where there is plenty: nothing is left of them that a disk would be for.

    How large the folder may become says nothing of that: it may be as large as all memory.
    """
    # With `-n`, pytest would run nothing and not say why.
    places = (config.invocation_params.dir / argument.partition("::")[0] for argument in config.args)
    if absent := [str(place) for place in places if not place.exists()]:
        raise pytest.UsageError(f"there is no {', '.join(absent)}")
    if "TMPDIR" in os.environ or not _SHARED_MEMORY.is_dir():
        return
    if shutil.disk_usage(_SHARED_MEMORY).free > _FILES and has_room(_FILES + _PROCESSES):
        os.environ["TMPDIR"] = tempfile.tempdir = str(_SHARED_MEMORY)


# Tests of the code that asks which database it is at, or leans on what one of them promises.
_STORAGE = ROOT / "tests" / "storage"
_ON_BOTH_DATABASES = [
    _STORAGE / "test_backup.py",
    _STORAGE / "browse/test_metadata.py",
    _STORAGE / "browse/test_columns.py",
    _STORAGE / "database",
    _STORAGE / "jobs",
    _STORAGE / "labelling/test_queue.py",
    _STORAGE / "people/test_attempts.py",
    _STORAGE / "people/test_server_secret.py",
    _STORAGE / "traces/test_bad_rows.py",
    _STORAGE / "traces/test_search.py",
    _STORAGE / "traces/test_writer.py",
]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Searches are slow, and so is PostgreSQL where no code asks which database it is at."""
    missing = [str(place) for place in _ON_BOTH_DATABASES if not place.exists()]
    assert not missing, f"tests/conftest.py names what is not there: {', '.join(missing)}"
    for item in items:
        params = item.callspec.params if isinstance(item, pytest.Function) and hasattr(item, "callspec") else {}
        on_postgresql = any(isinstance(value, str) and value == "postgresql" for value in params.values())
        is_search = item.get_closest_marker("nightly") is not None
        if is_search or (on_postgresql and not any(map(item.path.is_relative_to, _ON_BOTH_DATABASES))):
            item.add_marker(pytest.mark.slow)


@pytest.fixture(autouse=True, scope="module")
def freed_memory_is_returned():
    """A worker goes through hundreds of modules, and would hold what the largest of each kind had needed."""
    yield
    release_memory()


def pytest_collection_finish():
    """Spare the garbage collector the million objects that stay as long as the process does."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


@pytest.fixture(scope="session")
def data():
    """The folder of real data, `STEPSIGHT_DATA`; the test is skipped where there is none."""
    folder = Path(os.environ.get("STEPSIGHT_DATA") or ROOT / ".." / "shared" / "data").resolve()
    if not (folder / "mr-math").is_dir():
        pytest.skip(f"no real data in {folder}; name its folder with STEPSIGHT_DATA")
    return folder


@pytest.fixture(scope="session")
def postgresql():
    """A real PostgreSQL. Not to be had is an error, never a skip."""
    with postgresql_server() as made:
        yield made


@pytest.fixture
def no_umask():
    """Files and folders have the modes that the code asks for."""
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.fixture(autouse=True, scope="session")
def costly_hasher():
    """The product's hasher of passwords, for the tests of it; all others have one that takes less than 1 ms."""
    costly = users._HASHER
    users._HASHER = PasswordHasher(time_cost=1, memory_cost=64, parallelism=1)
    yield costly
    users._HASHER = costly


@pytest.fixture(params=["sqlite", "postgresql"])
def address(request, tmp_path):
    """The address of an empty database without a schema, on each database in turn."""
    if request.param == "sqlite":
        return str(tmp_path / "empty.db")
    server: PostgreSQL = request.getfixturevalue("postgresql")
    return server.make()


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory):
    path = tmp_path_factory.mktemp("template") / "store.db"
    open_store(str(path)).close()
    return path


def _share_statements(opened):
    """Let a store on SQLite use what statements were compiled to for the stores before: half of a small test's work
    is compiling them. They are kept by dialect."""
    if not _STATEMENTS:
        # A dialect learns what its database can do when its engine first connects.
        opened.engine.connect().close()
        _STATEMENTS.append((opened.engine.dialect, opened.engine._compiled_cache))
    for engine in (opened.engine, opened._writer, opened._durable_writer):
        engine.dialect, engine._compiled_cache = _STATEMENTS[0]


_STATEMENTS: list[Any] = []


@pytest.fixture
def sqlite_store(tmp_path, sqlite_template):
    """An empty store on SQLite."""
    path = shutil.copy(sqlite_template, tmp_path / "store.db")
    with open_store(str(path)) as opened:
        _share_statements(opened)
        yield opened


@pytest.fixture
def postgresql_store(postgresql):
    """An empty store on PostgreSQL."""
    return postgresql.emptied()


@pytest.fixture(params=["sqlite", "postgresql"])
def store(request):
    """An empty store, on each database in turn."""
    opened: Store = request.getfixturevalue(f"{request.param}_store")
    return opened
