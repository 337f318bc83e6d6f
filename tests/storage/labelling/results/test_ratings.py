import numpy as np
from sqlalchemy import update

from stepsight.core.metrics.ratings import NO_ERROR, RATING_NAMES, UNLABELLED
from stepsight.core.trace import Step, Trace
from stepsight.storage.database.people_schema import ServerSecretRow
from stepsight.storage.labelling.results.ratings import read_ratings
from tests.storage.labelling.samples import THREE, TRACES, TWO, campaign, do, label_all, people, person, take
from tests.storage.samples import add

NONE = np.nan
NEG, NEU, POS, UNSURE = range(4)


def answer(store, of, user, *answers):
    """The person labels their next traces in turn."""
    for labels in answers:
        label_all(store, take(store, of, user), user, labels)


def test_answers_become_arrays_in_the_order_of_the_queue(store):
    of = campaign(store, (TWO, THREE), overlap=2)
    bo, ada = person(store, "bo"), person(store, "ada")
    answer(store, of, bo, ["pos", "neg"], ["neu", "unsure", "pos"])
    answer(store, of, ada, ["pos", "neu"])
    found = read_ratings(store, of)
    ratings = found.queue.last
    # By name, whoever came first; ada has not come to the second trace.
    assert ratings.people == ("ada", "bo")
    np.testing.assert_array_equal(
        ratings.codes, [[POS, NEU, UNLABELLED, UNLABELLED, UNLABELLED], [POS, NEG, NEU, UNSURE, POS]]
    )
    np.testing.assert_array_equal(ratings.trace, [0, 0, 1, 1, 1])
    np.testing.assert_array_equal(ratings.position, [0, 1, 0, 1, 2])
    np.testing.assert_array_equal(ratings.first_errors, [[NO_ERROR, NONE], [1, NONE]])
    assert [trace.external_id for trace in found.queue.traces] == ["two", "three"]
    assert (found.annotations, found.changed) == (3, 0)
    # The gold of the two traces; of validity it says what follows from its labels.
    np.testing.assert_array_equal(found.queue.gold, [POS, NEG, POS, NEU, POS])
    np.testing.assert_array_equal(found.queue.valid, [1, 0, 1, 1, 1])
    np.testing.assert_array_equal(found.queue.first.codes, ratings.codes)


def test_gold_that_tells_validity_alone_is_no_label(store):
    steps = (Step(("A sum.",), valid=True), Step(("So 9.",), valid=False), Step(("Done.",)))
    of = campaign(store, (Trace("known", "What is 5 + 5?", steps),))
    answer(store, of, person(store, "ada"), ["pos", "neg", "neg"])
    found = read_ratings(store, of).queue
    assert np.isnan(found.gold).all()
    np.testing.assert_array_equal(found.valid, [1, 0, NONE])


def test_withdrawn_and_unfinished_answers_are_no_ratings(store):
    of = campaign(store, (TWO, THREE), overlap=2)
    ada, bo = people(store, 2)
    task = take(store, of, ada)
    label_all(store, task, ada, ["pos", "neg"])
    do(store, task.slot_id, ada, "withdraw")
    do(store, take(store, of, bo).slot_id, bo, "label", 0, "pos")
    found = read_ratings(store, of)
    assert (found.annotations, found.queue.traces, found.queue.last.codes.shape) == (0, (), (0, 0))


def test_a_stepwise_campaign_has_first_labels_and_when_they_changed(store):
    of = campaign(store, (THREE,), view="stepwise")
    ada = person(store, "ada")
    task = take(store, of, ada)
    slot = task.slot_id
    do(store, slot, ada, "label", 0, "pos")
    do(store, slot, ada, "reveal", None, 2)
    # With one later step in view ada thinks again.
    do(store, slot, ada, "label", 0, "neg")
    do(store, slot, ada, "label", 1, "neu")
    do(store, slot, ada, "reveal", None, 3)
    do(store, slot, ada, "label", 2, "pos")
    do(store, slot, ada, "submit")
    found = read_ratings(store, of).queue
    np.testing.assert_array_equal(found.first.codes, [[POS, NEU, POS]])
    np.testing.assert_array_equal(found.last.codes, [[NEG, NEU, POS]])
    np.testing.assert_array_equal(found.later, [[1, 0, 0]])


def test_hidden_gold_items_stand_apart(store):
    add(store, [Trace.of("What is 7 + 7?", ["It is 14."], ["pos"], id="checked")], "checks")
    of = campaign(store, TRACES, gold_rate=0.5, gold_dataset="checks")
    ada = person(store, "ada")
    for _ in range(4):
        task = take(store, of, ada)
        label_all(store, task, ada, ["pos"] * len(task.trace.steps))
    found = read_ratings(store, of)
    assert [trace.external_id for trace in found.hidden.traces] == ["checked"]
    assert {trace.external_id for trace in found.queue.traces} == {"two", "three", "one"}
    np.testing.assert_array_equal(found.hidden.gold, [POS])
    np.testing.assert_array_equal(found.hidden.last.codes, [[POS]])


def test_people_need_not_be_named(store):
    of = campaign(store, (TWO,), overlap=2)
    for name in ("ada", "bo"):
        answer(store, of, person(store, name), ["pos", "neg"])
    assert read_ratings(store, of, named=False).queue.last.people == ("annotator 1", "annotator 2")


def test_people_without_names_do_not_stand_by_name(store):
    of = campaign(store, (TWO,), overlap=2)
    answer(store, of, person(store, "ada"), ["pos", "neg"])
    answer(store, of, person(store, "bo"), ["pos", "pos"])
    orders = set()
    for number in range(20):
        with store.write() as session:
            session.execute(update(ServerSecretRow).values(secret=bytes([number])))
        orders.add(tuple(read_ratings(store, of, named=False).queue.last.codes[:, 1].tolist()))
    assert orders == {(NEG, POS), (POS, NEG)}
    assert read_ratings(store, of).queue.last.codes[:, 1].tolist() == [NEG, POS]


def test_some_traces_in_another_order(store):
    of = campaign(store, (TWO, THREE))
    answer(store, of, person(store, "ada"), ["pos", "neg"], ["neu", "unsure", "pos"])
    turned = read_ratings(store, of).queue.of_traces([1, 0])
    assert [trace.external_id for trace in turned.traces] == ["three", "two"]
    np.testing.assert_array_equal(turned.last.codes, [[NEU, UNSURE, POS, POS, NEG]])
    np.testing.assert_array_equal(turned.gold, [POS, NEU, POS, POS, NEG])
    assert turned.later.shape == (1, 5)


def test_the_codes_are_the_labels():
    assert RATING_NAMES == ("neg", "neu", "pos", "unsure")
