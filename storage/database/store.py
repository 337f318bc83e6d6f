"""The store: one database of traces, judgments and labels, on SQLite or PostgreSQL.

At the end are inserts of rows that may already exist, which the two write in different ways.
"""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from functools import partial
from shutil import disk_usage
from sqlite3 import SQLITE_BUSY, SQLITE_ERROR
from threading import Lock
from types import TracebackType
from typing import Any

from sqlalchemy import URL, Connection, Engine, NullPool, Select, create_engine, event, func, or_, select
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import DatabaseError, DBAPIError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.orm import Session

from stepsight.core.errors import UserError
from stepsight.core.keyed_cache import KeyedCache
from stepsight.core.text.signs import searchable
from stepsight.storage.database.creation import create, is_created
from stepsight.storage.database.location import describe, locate
from stepsight.storage.database.schema import Base
from stepsight.storage.database.stored_json import DamagedError, read_stored, write_stored

# Below the 700 new objects after which Python's garbage collector runs, which takes longer than reading the rows.
IN_PARTS = {"yield_per": 600}
"""Execution options that fetch the rows of a large result in parts rather than all at once."""

# The size of `Store.cache` in bytes.
_CACHED = 160 * 2**20
# On SQLite an import is the only writer until its last row; other writers wait this long for their turn.
_BUSY_SECONDS = 60
# A label waits less, since the page sends it again, and waiting requests hold up all others to the server.
_DURABLE_SECONDS = 10
_CONNECT_SECONDS = 10
# With fewer free bytes, writes to SQLite fail.
_LEAST_ROOM = 200_000
# The connection's option for the statement with which SQLite begins a transaction.
_BEGIN = "stepsight_begin"
_SYNCHRONOUS = "stepsight_synchronous"
_WRITING = {_BEGIN: "BEGIN IMMEDIATE"}
_DURABLE = {**_WRITING, _SYNCHRONOUS: "FULL"}
# The databases' messages on invalid JSON, and on JSON that is not an object.
_DAMAGED = ("malformed JSON", "cannot call json_each", "decode to UTF-8", "invalid input syntax for type json")
_CREATING = Lock()
# The number of the PostgreSQL advisory lock held by the single writer.
_WRITER = 5_749_207_319
# PostgreSQL's codes for a missing privilege, and for a user without access to any schema.
_DENIED = ("42501", "3F000")


class NotFoundError(UserError):
    """Raised when something that was requested does not exist in the store."""


class ConflictError(UserError):
    """Raised when a request conflicts with a change made in the meantime."""


class ForbiddenError(UserError):
    """Raised when a user is not allowed to do something."""


class UnavailableError(UserError):
    """Raised when the database fails or cannot be reached. The same request may succeed after `seconds`."""

    seconds = 5


class Store:
    """An open store. Threads can share it, because every `read` and `write` opens a session of its own. `name` is
    the path, or the URL without the password. `cache` holds data derived from the store."""

    def __init__(self, engine: Engine, name: str) -> None:
        self.engine = engine
        self.name = name
        self._writer = engine.execution_options(**_WRITING)
        self._durable_writer = engine.execution_options(**_DURABLE)
        self.cache = KeyedCache(_CACHED)
        self._turn = Lock()
        self._file = _identity(name) if engine.dialect.name == "sqlite" else None

    @contextmanager
    def read(self) -> Iterator[Session]:
        """Open a session for reading. Raises `UnavailableError` if the database fails."""
        self._check_file()
        with _database_errors(self.name), Session(self.engine, autoflush=False) as session:
            yield session

    @contextmanager
    def write(self, durable: bool = False, *, bulk: bool = False) -> Iterator[Session]:
        """Open a session that commits at the end of the `with` block and rolls back if the block raises.

        One session writes at a time, whichever process it is in, so that what it has read stays as it is until it
        commits. On PostgreSQL, a `bulk` session writes in parallel with the others, which cannot wait for it that
        long: whatever it shares with them needs locks or constraints of its own.

        A commit survives a power cut only with `durable`, which makes the session slower and less patient with
        other writers. Raises `UnavailableError` if the database fails, or if its file was deleted or replaced in
        the meantime, because the changes would then be lost.
        """
        self._check_file()
        seconds = _DURABLE_SECONDS if durable else _BUSY_SECONDS
        on_postgresql = self.engine.dialect.name == "postgresql"
        has_turn = not (bulk and on_postgresql)
        with (
            self._wait_for_turn(seconds) if has_turn else nullcontext(),
            _database_errors(self.name),
            Session(self._durable_writer if durable else self._writer) as session,
            session.begin(),
        ):
            # On SQLite, the lock is taken here: a session that has already read cannot wait for another writer.
            session.connection()
            if on_postgresql and has_turn:
                patience = func.set_config("lock_timeout", f"{round(1000 * seconds)}ms", True)
                session.execute(select(patience, func.pg_advisory_xact_lock(_WRITER)))
            yield session
        self._check_file()

    @contextmanager
    def _wait_for_turn(self, seconds: float) -> Iterator[None]:
        """Let only one thread of this process write at a time.

        SQLite polls for its lock at growing intervals, so a thread among many could wait very long, and on
        PostgreSQL each would hold a connection while it waits. Waiting for other processes is left to the database.
        Raises `UnavailableError` if no turn comes within `seconds`.
        """
        if not self._turn.acquire(timeout=seconds):
            raise _unavailable_error(self.name, "database is locked", _hint("locked"))
        try:
            yield
        finally:
            self._turn.release()

    def check(self) -> None:
        """Raise `UnavailableError` if the database does not respond, or the disk of its file is full."""
        with self.read() as session:
            session.execute(select(1))
        if self._file is not None and disk_usage(os.path.dirname(os.path.abspath(self.name))).free < _LEAST_ROOM:
            raise _unavailable_error(self.name, "database or disk is full", _hint("full"))

    def _check_file(self) -> None:
        # A deleted file stays open here, and a new connection would put an empty one in its place.
        if self._file is None or (identity := _identity(self.name)) == self._file:
            return
        if identity is None:
            raise _unavailable_error(self.name, "the file is gone", "Put it back, or start StepSight again.")
        replaced = "the file was replaced by another while StepSight used it"
        raise _unavailable_error(self.name, replaced, "Start StepSight again.")

    def close(self) -> None:
        """Close the pooled connections. Calling this twice is harmless."""
        self.engine.dispose()

    def __enter__(self) -> "Store":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def open_store(url: str | None = None) -> Store:
    """Open a store, creating its schema in an empty database.

    `url` is a path, `sqlite:///PATH` or `postgresql://…`. It defaults to `STEPSIGHT_DB` and then to the default
    file (see `storage.database.location.locate`). A new file can be read only by its owner, and so can the files
    that SQLite puts beside it. Raises `UserError` if the store cannot be opened.
    """
    address = locate(url)
    name = describe(address)
    with _database_errors(name):
        _prepare(address, name)
        return Store(_engine(address), name)


def _prepare(url: URL, name: str) -> None:
    if url.get_backend_name() == "sqlite":
        # A new file is created for its owner only; SQLite gives the files beside it the same mode. Closing it would
        # release the locks of another thread that has opened it in the meantime.
        with _CREATING, suppress(OSError):
            os.close(os.open(os.path.realpath(name), os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    engine = _engine(url, poolclass=NullPool)
    with engine.connect() as connection:
        _check_encoding(connection, name)
        if is_created(connection, name):
            return
    if engine.dialect.name == "sqlite":
        _use_wal(engine)
    with engine.execution_options(**_WRITING).begin() as connection:
        create(connection, name)


def _check_encoding(connection: Connection, name: str) -> None:
    if connection.dialect.name != "postgresql":
        return
    encoding = connection.exec_driver_sql("SHOW server_encoding").scalar_one()
    if encoding != "UTF8":
        raise UserError(
            f"{name}: the database has the encoding {encoding}, expected UTF8.",
            "Create another one: createdb --encoding UTF8 --template template0 NAME",
        )


def _engine(url: URL, **options: Any) -> Engine:
    options |= {"json_serializer": write_stored, "json_deserializer": read_stored}
    if url.get_backend_name() == "sqlite":
        engine = create_engine(url, connect_args={"timeout": _BUSY_SECONDS}, **options)
        _set_up_sqlite(engine)
        return engine
    # Behind a pooler that gives each transaction a different session, a prepared statement would be missing.
    arguments: dict[str, Any] = {"prepare_threshold": None, "client_encoding": "utf8"}
    arguments |= {} if "connect_timeout" in url.query else {"connect_timeout": _CONNECT_SECONDS}
    try:
        return create_engine(url, pool_pre_ping=True, connect_args=arguments, **options)
    except ImportError:
        raise UserError(
            "The driver for PostgreSQL is not installed.", "Run: pip install 'stepsight[postgresql]'"
        ) from None


def _set_up_sqlite(engine: Engine) -> None:
    @event.listens_for(engine, "connect")
    def connect(connection: Any, record: object) -> None:
        # The driver would begin transactions itself, and not before every statement; `begin` below does.
        connection.isolation_level = None
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA synchronous = NORMAL")
        for name, change in (("unicode_lower", str.lower), ("search_form", searchable)):
            of_text = partial(_unless_null, change)
            connection.create_function(name, 1, of_text, deterministic=True)

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        options = connection.get_execution_options()
        statement = options.get(_BEGIN, "BEGIN")
        if statement == _WRITING[_BEGIN]:
            # Neither can be set within a transaction, and both stay with the connection.
            synchronous = options.get(_SYNCHRONOUS, "NORMAL")
            seconds = _DURABLE_SECONDS if synchronous == "FULL" else _BUSY_SECONDS
            connection.exec_driver_sql(f"PRAGMA synchronous = {synchronous}")
            connection.exec_driver_sql(f"PRAGMA busy_timeout = {round(1000 * seconds)}")
        if statement:
            connection.exec_driver_sql(statement)


def _identity(path: str) -> tuple[int, int] | None:
    """Return the device and inode of a file, which identify it regardless of its name, or None if it is missing."""
    try:
        about = os.stat(path)
    except OSError:
        return None
    return about.st_dev, about.st_ino


def _use_wal(engine: Engine) -> None:
    """Switch SQLite to write-ahead logging, which allows readers and one writer at the same time. The mode is
    stored in the file and cannot be set inside a transaction."""
    patience = time.monotonic() + _BUSY_SECONDS
    with engine.execution_options(**{_BEGIN: ""}).connect() as connection:
        while True:
            try:
                connection.exec_driver_sql("PRAGMA journal_mode = WAL")
                return
            except OperationalError as error:
                # This is the only place where SQLite does not wait for another process that is opening the file.
                if getattr(error.orig, "sqlite_errorcode", None) != SQLITE_BUSY or time.monotonic() > patience:
                    raise
                time.sleep(0.02)


def _unless_null(change: Callable[[str], str], text: str | None) -> str | None:
    return None if text is None else change(text)


@contextmanager
def _database_errors(name: str) -> Iterator[None]:
    """Convert database failures into `UnavailableError`. Errors caused by bugs in StepSight pass through."""
    try:
        yield
    except PoolTimeout:
        raise _unavailable_error(name, "too many requests at once", "Try again.") from None
    except DamagedError as error:
        raise _damaged_error(name, error.message) from None
    except DBAPIError as error:
        if any(words in str(error.orig) for words in _DAMAGED):
            raise _damaged_error(name, "a JSON column of the store holds something else.") from None
        if not _is_failure(error):
            raise
        reason = str(error.orig).strip().splitlines()[0] if str(error.orig).strip() else "no reason given"
        # Errors of PostgreSQL without a code name the host, port and user to which it could not connect.
        shown = reason if getattr(error.orig, "sqlstate", "") is not None else "the database cannot be reached"
        raise _unavailable_error(name, reason.rstrip("."), _hint(reason), shown.rstrip(".")) from None


def _unavailable_error(name: str, reason: str, hint: str, shown: str = "") -> UnavailableError:
    """Return an error whose message names the store, except on pages. `shown` is the reason shown on pages, if it
    differs."""
    error = UnavailableError(f"{name}: {reason}.", hint)
    error.shown = f"The store: {shown or reason}."
    return error


def _damaged_error(name: str, message: str) -> DamagedError:
    error = DamagedError(f"{name}: {message}")
    error.shown = f"The store: {message}"
    return error


def _is_failure(error: DBAPIError) -> bool:
    if isinstance(error, OperationalError):
        # SQLite reports a wrong statement with the same class as a full disk, but with a different code.
        return getattr(error.orig, "sqlite_errorcode", None) != SQLITE_ERROR
    return type(error) is DatabaseError or getattr(error.orig, "sqlstate", None) in _DENIED


def _hint(reason: str) -> str:
    hints = {
        "lock": "Another process is writing to it. Try again when that has finished.",
        "full": "Free some space, then try again.",
        "readonly": "Allow writing to the file and its folder.",
        "unable to open": "Check the path, and that its folder can be written.",
        "not a database": "Name a store, or a file that does not exist yet.",
        "malformed": "The file is damaged. Restore it from a copy.",
        "no schema": "Give this user the right to create and change tables.",
        "permission denied": "Give this user the right to create and change tables.",
        "does not exist": "Create it first, or check its name.",
        "connection": "Check the address, and that the server runs.",
    }
    return next((hint for part, hint in hints.items() if part in reason.lower()), "Check the store's address.")


@contextmanager
def snapshot(store: Store) -> Iterator[Session]:
    """Open a read session in which every query sees the store as it was at the first query."""
    with store.read() as session:
        # SQLite does so in every transaction.
        if store.engine.dialect.name == "postgresql":
            session.connection(execution_options={"isolation_level": "REPEATABLE READ"})
        yield session


def read_columns(session: Session, statement: Select[*tuple[Any, ...]]) -> list[list[Any]]:
    """Execute a query and return its result column by column. The query bypasses the ORM, whose work on each row
    would take most of the time."""
    columns: list[list[Any]] = [[] for _ in statement.selected_columns]
    for part in session.connection().execute(statement, execution_options=IN_PARTS).partitions():
        for column, values in zip(columns, zip(*part, strict=True), strict=True):
            column.extend(values)
    return columns


Rows = Sequence[dict[str, Any]]


def insert_once(session: Session, model: type[Base], rows: Rows, *key: str) -> None:
    """Insert `rows`, skipping those whose values in the `key` columns already exist in the table."""
    session.execute(_insert(session, model).on_conflict_do_nothing(index_elements=key), rows)


def insert_or_update(
    session: Session, model: type[Base], rows: Rows, key: Sequence[str], unless_same: Sequence[str]
) -> None:
    """Insert `rows`, replacing existing rows with the same values in the `key` columns if they differ in one of the
    `unless_same` columns."""
    statement = _insert(session, model)
    new, old = statement.excluded, model.__table__.c
    changed = or_(*[old[name].is_distinct_from(new[name]) for name in unless_same])
    values = {column.name: new[column.name] for column in old if column.name not in (*key, "id")}
    session.execute(statement.on_conflict_do_update(index_elements=key, set_=values, where=changed), rows)


def count_up(session: Session, model: type[Base], key: dict[str, Any], counter: str) -> None:
    """Add 1 to the column `counter` of the row with the key `key`, or insert that row with a count of 1."""
    column = model.__table__.c[counter]
    statement = _insert(session, model).values(key | {counter: 1})
    session.execute(statement.on_conflict_do_update(index_elements=list(key), set_={counter: column + 1}))


def _insert(session: Session, model: type[Base]) -> Any:
    # The two have the same methods but no common type.
    dialect = session.get_bind().dialect.name
    return (postgresql if dialect == "postgresql" else sqlite).insert(model)
