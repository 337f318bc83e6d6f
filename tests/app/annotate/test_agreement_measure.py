import pytest

from stepsight.app.annotate.agreement_measure import measure_agreement
from stepsight.storage.browse.filters import TraceFilter
from stepsight.storage.database.store import NotFoundError
from tests.app.annotate.rated import cells
from tests.messages import refused
from tests.storage.labelling.samples import THREE, TWO, campaign, do, label_all, person, take

ALWAYS = {"agreement", "annotators", "gold", "positions"}


def answer(store, of, name, *answers):
    for labels in answers:
        user = person(store, name)
        label_all(store, take(store, of, user), user, labels)


def names(found):
    return {table.name for table in found.tables}


def test_tables_are_there_where_they_have_something_to_tell(store):
    of = campaign(store, (TWO, THREE), overlap=2)
    assert names(measure_agreement(store, of)) == {"agreement"}
    answer(store, of, "ada", ["pos", "neg"], ["pos", "neu", "pos"])
    assert names(measure_agreement(store, of)) == ALWAYS
    answer(store, of, "bo", ["pos", "neg"], ["pos", "pos", "pos"])
    # A new answer is seen at once.
    found = measure_agreement(store, of)
    assert names(found) == {*ALWAYS, "pairs"}
    # Ten labels: two neg, one neu, seven pos; one pair of five is unequal: 1 - 9 * 2 / (100 - 4 - 1 - 49).
    assert cells(found.table("agreement"), "labels")["alpha"].number == pytest.approx(1 - 9 * 2 / 46)
    assert measure_agreement(store, of) is found
    assert found.find_table("steps").rows[4][:3] == ("sums", "three", 3)
    with refused(NotFoundError):
        found.find_table("nothing")


def test_a_stepwise_campaign_against_one_of_whole_traces(store):
    whole = campaign(store, (TWO, THREE), overlap=2)
    steps = campaign(store, None, name="steps", view="stepwise", overlap=2)
    for name in ("ada", "bo"):
        answer(store, whole, name, ["pos", "neg"], ["pos", "neu", "pos"])
    ada, bo = person(store, "ada"), person(store, "bo")
    for user in (ada, bo):
        task = take(store, steps, user)
        # With the first step alone in view it is pos; with the second one neg.
        do(store, task.slot_id, user, "label", 0, "pos")
        do(store, task.slot_id, user, "reveal", None, 2)
        do(store, task.slot_id, user, "label", 0, "neg")
        do(store, task.slot_id, user, "label", 1, "neg")
        do(store, task.slot_id, user, "submit")
    alone = measure_agreement(store, steps)
    assert names(alone) == {*ALWAYS, "pairs", "views", "minds", "later", "evidence"}
    assert cells(alone.table("later"), "1")["changed"] == 2
    compared = measure_agreement(store, steps, whole)
    assert names(compared) == {*names(alone), "majorities"}
    # One trace is common to both: the first labels of steps agree with what whole says of it.
    assert [row[:3] for row in compared.table("views").rows] == [
        ("steps so far", "steps", 1), ("in the end", "steps", 1), ("whole trace", "first", 1),
    ]  # fmt: skip
    everything = cells(compared.table("majorities"), "all")
    assert (everything["labels"], everything["changed"].number) == (2, 0)
    # Seen from the other side it is the same comparison.
    turned = measure_agreement(store, whole, steps)
    assert turned.table("majorities").rows == compared.table("majorities").rows
    assert "minds" not in names(turned)


def test_two_campaigns_of_the_same_view_compare_what_stands(sqlite_store):
    first = campaign(sqlite_store, (TWO,))
    second = campaign(sqlite_store, None, name="again")
    answer(sqlite_store, first, "ada", ["pos", "neg"])
    answer(sqlite_store, second, "bo", ["neg", "neg"])
    found = measure_agreement(sqlite_store, first, second)
    assert cells(found.table("majorities"), "all")["changed"].number == 1 / 2
    # With nothing in common there is nothing to compare.
    other = campaign(sqlite_store, (THREE,), name="other", conditions=TraceFilter(text="2 + 2"))
    answer(sqlite_store, other, "bo", ["pos", "pos", "pos"])
    assert "views" not in names(measure_agreement(sqlite_store, first, other))
