from sqlalchemy import func, select

from stepsight.storage.database.schema import TraceRow
from stepsight.storage.database.store import snapshot
from tests.storage.samples import SAMPLES, add, many


def test_a_snapshot_does_not_see_later_writes(store):
    add(store)
    counted = select(func.count(TraceRow.id))
    with snapshot(store) as session:
        assert session.scalar(counted) == len(SAMPLES)
        add(store, many(3), "later")
        assert session.scalar(counted) == len(SAMPLES)
    with snapshot(store) as session:
        assert session.scalar(counted) == len(SAMPLES) + 3
    # The connection goes back as it was.
    with store.read() as session:
        assert session.connection().get_isolation_level() in ("SERIALIZABLE", "READ COMMITTED")
