"""Annotations as arrays."""

import numpy as np
from sqlalchemy import update

from stepsight.core.metrics.agreement import NO_ERROR, RATING_NAMES, UNLABELLED
from stepsight.core.trace import Step, Trace
from stepsight.storage.database.schema import ServerSecretRow
from stepsight.storage.labelling.ratings import read_ratings
from tests.storage.labelling.samples import THREE, TRACES, TWO, Scene
from tests.storage.samples import add

NONE = np.nan
NEG, NEU, POS, UNSURE = range(4)
equal = np.testing.assert_array_equal


def test_answers_become_arrays_in_the_order_of_the_queue(store):
    assert RATING_NAMES == ("neg", "neu", "pos", "unsure")
    scene = Scene(store, (TWO, THREE), overlap=3)
    scene.label("pos neg", by="bo")
    scene.label("neu unsure pos", by="bo")
    scene.label("pos neu", by="ada")
    # Withdrawn and unfinished answers are no ratings.
    scene.label(by="cy")
    scene.do("withdraw", by="cy")
    scene.take("cy")
    scene.do("label", 0, "pos", by="cy")
    rated = read_ratings(store, scene.campaign)
    ratings = rated.queue.last
    # By name, whoever came first; ada has not come to the second trace.
    assert ratings.people == ("ada", "bo")
    equal(ratings.codes, [[POS, NEU, UNLABELLED, UNLABELLED, UNLABELLED], [POS, NEG, NEU, UNSURE, POS]])
    equal(ratings.trace, [0, 0, 1, 1, 1])
    equal(ratings.position, [0, 1, 0, 1, 2])
    equal(ratings.first_errors, [[NO_ERROR, NONE], [1, NONE]])
    assert [trace.external_id for trace in rated.queue.traces] == ["two", "three"]
    assert (rated.annotations, rated.changed) == (3, 0)
    # The gold of the two traces; of validity it says what follows from its labels.
    equal(rated.queue.gold, [POS, NEG, POS, NEU, POS])
    equal(rated.queue.valid, [1, 0, 1, 1, 1])
    equal(rated.queue.first.codes, ratings.codes)
    turned = rated.queue.of_traces([1, 0])
    assert [trace.external_id for trace in turned.traces] == ["three", "two"]
    equal(turned.last.codes[1], [NEU, UNSURE, POS, POS, NEG])
    equal(turned.gold, [POS, NEU, POS, POS, NEG])
    assert turned.later.shape == (2, 5)
    # The gold of a trace that has changed since is that of another.
    scene.change_trace("two", problem="What is 1 + 2?")
    later = read_ratings(store, scene.campaign)
    assert later.changed == 1
    equal(later.queue.gold, [NONE, NONE, POS, NEU, POS])


def test_gold_that_tells_validity_alone_is_no_label(store):
    steps = (Step(("A sum.",), valid=True), Step(("So 9.",), valid=False), Step(("Done.",)))
    scene = Scene(store, (Trace("known", "What is 5 + 5?", steps),))
    scene.label("pos neg neg")
    rated = read_ratings(store, scene.campaign).queue
    assert np.isnan(rated.gold).all()
    equal(rated.valid, [1, 0, NONE])


def test_a_stepwise_campaign_has_first_labels_and_when_they_changed(store):
    scene = Scene(store, (THREE,), view="stepwise")
    scene.take()
    scene.do("label", 0, "pos")
    scene.do("reveal", None, 2)
    # With one later step in view ann thinks again, and is asked which one it was.
    scene.do("label", 0, "neg")
    scene.do("label", 1, "neu")
    scene.do("reveal", None, 3)
    scene.do("label", 2, "pos")
    scene.do("submit")
    rated = read_ratings(store, scene.campaign).queue
    equal(rated.first.codes, [[POS, NEU, POS]])
    equal(rated.last.codes, [[NEG, NEU, POS]])
    equal(rated.later, [[1, 0, 0]])
    equal(rated.evidence, [[1, NONE, NONE]])


def test_hidden_gold_items_stand_apart(store):
    add(store, [Trace.of("What is 7 + 7?", ["It is 14."], ["pos"], id="checked")], "checks")
    scene = Scene(store, TRACES, gold_rate=0.5, gold_dataset="checks")
    for _ in range(4):
        scene.label()
    rated = read_ratings(store, scene.campaign)
    assert [trace.external_id for trace in rated.hidden.traces] == ["checked"]
    assert {trace.external_id for trace in rated.queue.traces} == {"two", "three", "one"}
    equal(rated.hidden.gold, [POS])
    equal(rated.hidden.last.codes, [[POS]])


def test_people_without_names_do_not_stand_by_name(store):
    scene = Scene(store, (TWO,), overlap=2)
    scene.label("pos neg", by="ada")
    scene.label("pos pos", by="bo")
    orders = set()
    for number in range(20):
        with store.write() as session:
            session.execute(update(ServerSecretRow).values(secret=bytes([number])))
        ratings = read_ratings(store, scene.campaign, named=False).queue.last
        assert ratings.people == ("annotator 1", "annotator 2")
        orders.add(tuple(ratings.codes[:, 1].tolist()))
    assert orders == {(NEG, POS), (POS, NEG)}
    assert read_ratings(store, scene.campaign).queue.last.codes[:, 1].tolist() == [NEG, POS]
