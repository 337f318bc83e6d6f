"""The rows of one store into another, whichever databases they are on."""

from collections.abc import Mapping

from sqlalchemy import Integer, Table, func, insert, select, text
from sqlalchemy.orm import Session

# Each brings its tables into the metadata.
import storage.labelling.tables
import storage.people.tables  # noqa: F401
from storage.schema import Base
from storage.search import index_everything

# Rows held in memory at once.
_BATCH = 1000
_ONE_STATEMENT = {"render_nulls": True}


def tables() -> list[Table]:
    """The tables of a store, each after those that it refers to."""
    return list(Base.metadata.sorted_tables)


def count_rows(session: Session) -> dict[str, int]:
    """How many rows each table has."""
    return {table.name: session.scalar(select(func.count()).select_from(table)) or 0 for table in tables()}


def copy_rows(source: Session, target: Session) -> None:
    """Copy every row into a store that has none, within the transactions of both."""
    for table in tables():
        rows = source.execute(select(table).order_by(*table.primary_key), execution_options={"yield_per": _BATCH})
        for part in rows.mappings().partitions():
            target.execute(insert(table), [dict(row) for row in part], execution_options=_ONE_STATEMENT)
    index_everything(target)
    _set_counters(target)


def remove_rows(session: Session) -> None:
    """Remove every row of a store on PostgreSQL, logs that refuse deletion included."""
    session.execute(text(f"TRUNCATE {', '.join(table.name for table in tables())} RESTART IDENTITY"))


def differences(counts: Mapping[str, int], others: Mapping[str, int]) -> list[str]:
    """The tables that do not have as many rows in both."""
    return sorted(name for name in {*counts, *others} if counts.get(name) != others.get(name))


def _set_counters(session: Session) -> None:
    """Have PostgreSQL give new rows ids above those that were copied; SQLite does so by itself."""
    if session.get_bind().dialect.name != "postgresql":
        return
    for table in tables():
        key = list(table.primary_key)
        if len(key) == 1 and isinstance(key[0].type, Integer):
            newest = f"SELECT max({key[0].name}) FROM {table.name}"
            session.execute(
                text(f"SELECT setval(pg_get_serial_sequence('{table.name}', '{key[0].name}'), found)"
                     f" FROM ({newest}) AS newest (found) WHERE found IS NOT NULL")
            )  # fmt: skip
