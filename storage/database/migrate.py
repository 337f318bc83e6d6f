"""Bringing a database to the schema that this version knows."""

from functools import cache

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, inspect, text

from stepsight.core.errors import UserError

# Any number will do, as long as every process that upgrades a store asks for the same lock.
_LOCK = 5_749_207_318


def is_current(connection: Connection, name: str) -> bool:
    """Whether the schema is the newest. False for an empty database or an older schema.

    Raises `UserError` where the database belongs to something else or to a newer version.
    """
    heads = MigrationContext.configure(connection).get_current_heads()
    if not heads:
        _refuse_foreign(connection, name)
        return False
    unknown = sorted(set(heads) - _known_revisions())
    if unknown:
        raise UserError(
            f"{name}: the schema is {unknown[0]!r}, this version knows up to {head()!r}.",
            "Update StepSight, or name another store.",
        )
    return heads == (head(),)


def upgrade(connection: Connection, name: str) -> None:
    """Run the missing migrations within the transaction of `connection`: all of them or none.

    Where two processes open a store at once, one waits and then finds nothing to do.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _LOCK})
    if is_current(connection, name):
        return
    config = _config()
    config.attributes["connection"] = connection
    command.upgrade(config, "head")
    if connection.dialect.name == "sqlite":
        broken = connection.exec_driver_sql("PRAGMA foreign_key_check").fetchall()
        if broken:
            raise RuntimeError(f"a migration left {len(broken)} dangling rows in {broken[0][0]}")


@cache
def head() -> str:
    """The newest revision that this version knows."""
    revision = _scripts().get_current_head()
    assert revision is not None
    return revision


@cache
def _known_revisions() -> frozenset[str]:
    return frozenset(script.revision for script in _scripts().walk_revisions())


def _scripts() -> ScriptDirectory:
    return ScriptDirectory.from_config(_config())


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", "stepsight.storage:migrations")
    config.set_main_option("path_separator", "os")
    return config


def _refuse_foreign(connection: Connection, name: str) -> None:
    tables = inspect(connection).get_table_names()
    if tables and tables != ["alembic_version"]:
        raise UserError(
            f"{name}: a database of something else (it has a table {min(tables)!r}).",
            "Name a store, or an empty database.",
        )
