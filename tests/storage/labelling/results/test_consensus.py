from stepsight.core.trace import Trace
from stepsight.storage.labelling.results.annotations import vote
from stepsight.storage.labelling.results.consensus import read_trace_labels
from tests.cases import each
from tests.storage.labelling.labelled_sums import AGREED, HOW, labelled
from tests.storage.labelling.samples import THREE, TWO, campaign, label_all, people, take, together
from tests.storage.samples import add


@each(
    "labels, expected",
    [
        (["pos"], ("pos", "majority")),
        (["pos", "pos", "neg"], ("pos", "majority")),
        # More than any other is enough, though it is not more than half: 2 of 5.
        (["neg", "neg", "neu", "pos", "unsure"], ("neg", "majority")),
        (["pos", "neg"], (None, "tie")),
        (["neg", "neu", "pos"], (None, "tie")),
        (["pos", "unsure"], (None, "tie")),
        (["unsure", "unsure", "pos"], (None, "unsure")),
        # Who did not label the step takes no part.
        (["pos", None, None], ("pos", "majority")),
        ([None, None], (None, "none")),
        ([], (None, "none")),
    ],
)
def test_the_label_of_a_step(labels, expected):
    assert vote(labels) == expected


def test_the_consensus_of_annotators(store):
    made = labelled(store)
    found = together(store, made.id)
    assert {one.trace.id: one.labels for one in found} == AGREED
    assert {one.trace.id: one.how for one in found} == HOW
    assert [one.trace.id for one in found] == ["two", "three", "one"]
    assert {len(one.annotations) for one in found} == {3}
    (decision,) = found[1].decisions
    assert (decision.step, decision.label, decision.user) == (1, "neu", "eve")


def test_nothing_follows_the_error_where_no_labels_were_asked_for_after_it(store):
    made = campaign(store, [THREE], overlap=3, after_error=False)
    said = (["neg"], ["neg"], ["pos", "pos", "neg"])
    for user, labels in zip(people(store, 3), said, strict=True):
        label_all(store, take(store, made, user), user, labels)
    (found,) = together(store, made.id)
    # Only the one who missed the error saw reason to label what follows.
    assert (found.labels, found.how) == (("neg", None, None), ("majority", "none", "none"))


def test_a_trace_that_nobody_labelled_has_none(store):
    made = campaign(store, [TWO], overlap=2)
    assert together(store, made.id) == []


def test_the_labels_of_a_trace_in_each_campaign(store):
    labelled(store)
    other = campaign(store, None, name="second")
    first = people(store, 1)[0]
    label_all(store, take(store, other, first), first, ["neu", "neu"])
    (found,) = read_trace_labels(store, 2)
    assert (found.consensus.trace_id, found.campaign.name) == (2, "first")
    assert (found.consensus.labels, found.consensus.how) == (AGREED["three"], HOW["three"])
    assert [answer.user for answer in found.annotations] == ["annotator 1", "annotator 2", "annotator 3"]
    # The newest campaign comes first.
    assert [one.campaign.name for one in read_trace_labels(store, 1)] == ["second", "first"]
    assert read_trace_labels(store, 99) == []


def test_hidden_gold_items_stay_hidden(store):
    (hidden,) = add(store, [Trace.of("What is 9 + 9?", ["18."], ["pos"], id="hidden")], "known")
    made = campaign(store, [TWO], gold_rate=0.5, gold_dataset="known")
    (user,) = people(store, 1)
    for _ in range(2):
        task = take(store, made, user)
        label_all(store, task, user, ["pos"] * len(task.trace.steps))
    assert read_trace_labels(store, hidden.trace_id) == []
    assert len(read_trace_labels(store, 2)) == 1
