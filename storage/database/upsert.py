"""Inserting rows and skipping or updating those that already exist, on SQLite and PostgreSQL."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import or_
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import Session

from stepsight.storage.database.schema import Base

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
