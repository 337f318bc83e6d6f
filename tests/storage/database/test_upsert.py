from sqlalchemy import select

from stepsight.storage.database.schema import EvaluatorRow, JudgedRow
from stepsight.storage.database.upsert import count_up, insert_once, insert_or_update
from tests.storage.samples import add, evaluator


def row(**values):
    return {"name": "n", "fingerprint": "f", "format": "x", "attention": "causal", "info": {}} | values


def names(store):
    with store.read() as session:
        return {found.fingerprint: found.name for found in session.scalars(select(EvaluatorRow))}


def test_insert_once_leaves_what_is_there(store):
    with store.write() as session:
        insert_once(session, EvaluatorRow, [row()], "fingerprint")
        insert_once(session, EvaluatorRow, [row(name="other"), row(fingerprint="g")], "fingerprint")
    assert names(store) == {"f": "n", "g": "n"}


def test_insert_or_update_replaces_unless_the_same(store):
    with store.write() as session:
        for rows in ([row()], [row(name="same format")], [row(name="new format", format="y")]):
            insert_or_update(session, EvaluatorRow, rows, key=["fingerprint"], unless_same=["format"])
            found = session.scalars(select(EvaluatorRow).execution_options(populate_existing=True)).one()
            assert found.name == {"n": "n", "same format": "n", "new format": "new format"}[str(rows[0]["name"])]


def test_counting_up_begins_with_one(store):
    add(store)
    ids = [evaluator(store, name).id for name in ("a", "b")]
    for id in (ids[0], ids[1], ids[0]):
        with store.write() as session:
            count_up(session, JudgedRow, {"dataset_id": 1, "evaluator_id": id}, "revision")
    with store.read() as session:
        found = {row.evaluator_id: row.revision for row in session.scalars(select(JudgedRow))}
    assert found == {ids[0]: 2, ids[1]: 1}
