"""Checking the schema of a database and upgrading it to the current one."""

from functools import cache
from pkgutil import iter_modules

from sqlalchemy import Connection, inspect, text

from stepsight.core.errors import UserError
from stepsight.storage.database.stored_json import DamagedError
from stepsight.storage.migrations import versions

# The first migration makes the tables that the last schema of StepSight 0.1.0 has.
_FIRST, _OF_0_1_0 = "0020_version_1", "0019_texts_found"
_ALEMBIC = "alembic_version"
# Every store has had these from the first version on.
_TABLES = {"datasets", "traces", "judgments"}
# Any number will do, as long as every process that upgrades a store asks for the same lock.
_LOCK = 5_749_207_318


def newest_revision() -> str:
    """Return the current schema revision, that is, the name of the last migration ("head" in Alembic)."""
    return _revisions()[-1]


@cache
def _revisions() -> list[str]:
    return sorted(module.name for module in iter_modules(versions.__path__))


def is_current(connection: Connection, name: str) -> bool:
    """True if the database has the newest schema, False if it is empty or can be upgraded.

    Raises `UserError` if the database belongs to another program or has a schema that this version cannot read, and
    `DamagedError` if the store does not record its schema.
    """
    tables = set(inspect(connection).get_table_names())
    if not tables - {_ALEMBIC}:
        return False
    if not tables >= _TABLES | {_ALEMBIC}:
        raise UserError(
            f"{name}: a database of another program (it has a table {min(tables - {_ALEMBIC})!r}).",
            "Name a store, or an empty database.",
        )
    found = connection.scalars(text(f"SELECT version_num FROM {_ALEMBIC}")).all()
    if len(found) != 1:
        raise DamagedError(f"{_ALEMBIC} has {len(found)} rows, expected one.")
    check_revision(found[0], name)
    return found == [newest_revision()]


def check_revision(revision: str, name: str) -> None:
    """Raise `UserError` if this version cannot read the schema `revision`. Messages refer to `name`."""
    if revision in (_OF_0_1_0, *_revisions()):
        return
    if revision < _FIRST:
        raise UserError(
            f"{name}: its schema, {revision!r}, is older than any that this version reads.",
            "StepSight 0.1.0 is the last version that reads it. Keep a copy, open or restore it there once, which"
            " upgrades it, then use the result here.",
        )
    raise UserError(
        f"{name}: its schema, {revision!r}, is of a newer version; this one reads up to {newest_revision()!r}.",
        "Update StepSight, or name another store.",
    )


def upgrade(connection: Connection, name: str, revision: str = "head") -> None:
    """Run the missing migrations up to `revision` in the transaction of `connection`, so that they take effect
    together or not at all.

    If several processes open a store at once, the first one runs the migrations. The others wait until it is done.
    """
    # Alembic takes as long to load as all of the rest of a light command, and most stores need no migration.
    from alembic import command, config

    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _LOCK})
    if is_current(connection, name):
        return
    _take_over(connection)
    options = config.Config(attributes={"connection": connection})
    options.set_main_option("script_location", "stepsight.storage:migrations")
    options.set_main_option("path_separator", "os")
    command.upgrade(options, revision)
    if connection.dialect.name == "sqlite":
        broken = connection.exec_driver_sql("PRAGMA foreign_key_check").fetchall()
        if broken:
            raise RuntimeError(f"a migration left {len(broken)} dangling rows in {broken[0][0]}")


def _take_over(connection: Connection) -> None:
    """Mark the first migration as done in a store created by StepSight 0.1.0, whose tables are the same."""
    if inspect(connection).has_table(_ALEMBIC):
        stamp = text(f"UPDATE {_ALEMBIC} SET version_num = :first WHERE version_num = :last")
        connection.execute(stamp, {"first": _FIRST, "last": _OF_0_1_0})
