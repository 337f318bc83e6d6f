"""Finding the database of the store from a path, a URL, `STEPSIGHT_DB`, or the default file in the user's data
folder.

Start with `locate`.
"""

import os
from pathlib import Path

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

from stepsight.core.errors import UserError
from stepsight.core.paths import home_folder
from stepsight.core.trace import check_text

VARIABLE = "STEPSIGHT_DB"
# The first bytes of every SQLite database.
_HEADER = 100
# Parameters of a PostgreSQL address whose values are not secret.
_SHOWN = ("host", "hostaddr", "port", "user", "dbname", "sslmode", "connect_timeout", "application_name")
_EXPECTED = "Give a path, sqlite:///PATH or postgresql://USER@HOST/DATABASE."


def locate(address: str | None = None) -> URL:
    """Return the database URL for `address`, which defaults to `STEPSIGHT_DB` and then to the default file.

    The default file is `stepsight/stepsight.db` in `$XDG_DATA_HOME` or `~/.local/share`, and its folder is created,
    open only to its owner. A file is checked as far as possible without opening it. Raises `UserError` if the
    address cannot be that of a store.
    """
    if address is None:
        address = os.environ.get(VARIABLE) or str(_default_file())
    check_text(address, "the address of the store")
    if "://" not in address:
        return _sqlite(address)
    try:
        url = make_url(address)
    except (ArgumentError, ValueError):
        raise UserError("The address of the store is invalid.", _EXPECTED) from None
    if url.drivername in ("sqlite", "sqlite+pysqlite"):
        return _sqlite(url.database or "")
    if url.drivername in ("postgresql", "postgres", "postgresql+psycopg"):
        return url.set(drivername="postgresql+psycopg")
    raise UserError(f"A store cannot be kept in {url.drivername!r}.", _EXPECTED)


def folder_of(address: str | None = None) -> Path:
    """Return the folder for the files that accompany a store. This is the folder of the store's file or, on
    PostgreSQL, a folder in the user's data folder."""
    url = locate(address)
    return Path(url.database or "").parent if url.get_backend_name() == "sqlite" else _default_file().parent


def describe(url: URL) -> str:
    """Return the name under which a store is shown to users: its path, or its URL without passwords."""
    if url.get_backend_name() == "sqlite":
        return url.database or ""
    # It may also contain a password, or the location of one.
    query = {key: value if key in _SHOWN else "***" for key, value in url.query.items()}
    shown = url.set(drivername="postgresql", query=query)
    return shown.render_as_string(hide_password=True)


def _default_file() -> Path:
    base = os.environ.get("XDG_DATA_HOME", "")
    # The XDG specification says that a relative XDG_DATA_HOME must be ignored.
    folder = Path(base) if os.path.isabs(base) else home_folder(VARIABLE) / ".local" / "share"
    path = folder / "stepsight" / "stepsight.db"
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(
            f"{path.parent}: the folder cannot be created ({error.strerror}).", f"Set {VARIABLE} to another path."
        ) from None
    return path


def _sqlite(database: str) -> URL:
    if database in ("", ":memory:"):
        raise UserError("A store in memory keeps nothing.", "Give the path of a file.")
    try:
        path = Path(check_text(database, "the path of the store")).expanduser()
    except RuntimeError:
        raise UserError(f"{database}: there is no such home folder.", "Check the path.") from None
    _check_file(path)
    return URL.create("sqlite", database=str(path))


def _check_file(path: Path) -> None:
    """Check a file without opening it, since closing it again would release SQLite's locks in this process."""
    try:
        if path.is_dir():
            raise UserError(f"{path}: a folder, expected a file.", "Name a file in it, such as stepsight.db.")
        if not path.parent.is_dir():
            raise UserError(f"{path}: the folder {path.parent} does not exist.", "Create it, or check the path.")
        if not os.access(path.parent, os.W_OK) or (path.exists() and not os.access(path, os.W_OK)):
            raise UserError(f"{path}: cannot be written.", "Allow writing to the file and its folder.")
        # SQLite treats a file of one byte as empty.
        if path.exists() and 0 < path.stat().st_size < _HEADER:
            raise UserError(f"{path}: not a database.", "Name a store, or a file that does not exist yet.")
    except OSError as error:
        raise UserError(f"{path}: cannot be opened ({error.strerror}).", "Check the path.") from None
