"""Reading a store as it is at one moment, however long that takes and whatever others write meanwhile."""

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy.orm import Session

from storage.store import Store


@contextmanager
def snapshot(store: Store) -> Iterator[Session]:
    """A session that sees nothing of what is written after its first statement."""
    with store.read() as session:
        # SQLite does so in every transaction.
        if store.engine.dialect.name == "postgresql":
            session.connection(execution_options={"isolation_level": "REPEATABLE READ"})
        yield session
