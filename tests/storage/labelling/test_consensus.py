"""The label of a step by the votes of several people, and of a trace in every campaign."""

from stepsight.core.trace import Trace
from stepsight.storage.judgments.columns import read_gold
from stepsight.storage.labelling.consensus import find_consensus, read_trace_labels, read_votes
from stepsight.storage.labelling.submissions import vote
from stepsight.storage.traces.queries import find_dataset
from tests.cases import each
from tests.storage.labelling.labelled_sums import AGREED, HOW, labelled
from tests.storage.labelling.samples import THREE, TWO, Scene, campaign, label_all, together
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


def test_the_labels_of_traces_in_a_campaign_and_of_a_trace_in_each_campaign(store):
    made = labelled(store)
    traces = together(store, made.id)
    assert [one.trace.id for one in traces] == ["two", "three", "one"]
    assert {one.trace.id: one.labels for one in traces} == AGREED
    assert {one.trace.id: one.how for one in traces} == HOW
    assert {len(one.annotations) for one in traces} == {3}
    (decision,) = traces[1].annotated.decisions.values()
    assert (decision.step, decision.label, decision.user) == (1, "neu", "eve")
    Scene(store, None, name="second").label("neu neu")
    ((first, item),) = read_trace_labels(store, 2)
    assert (first.name, find_consensus(item, after_error=True)) == ("first", (AGREED["three"], HOW["three"]))
    assert [answer.user for answer in item.annotations] == ["annotator 1", "annotator 2", "annotator 3"]
    # The newest campaign comes first.
    assert [campaign.name for campaign, _ in read_trace_labels(store, 1)] == ["second", "first"]
    assert read_trace_labels(store, 99) == []


def test_nothing_follows_the_error_where_no_labels_were_asked_for_after_it(store):
    scene = Scene(store, [THREE], overlap=3, after_error=False)
    for name, labels in (("ann", "neg"), ("bob", "neg"), ("cy", "pos pos neg")):
        scene.label(labels, by=name)
    (one,) = together(store, scene.campaign.id)
    # Only the one who missed the error saw reason to label what follows.
    assert (one.labels, one.how) == (("neg", None, None), ("majority", "none", "none"))


def test_a_trace_that_nobody_labelled_has_none_and_hidden_gold_items_stay_hidden(store):
    assert together(store, campaign(store, [TWO], name="empty").id) == []
    (hidden,) = add(store, [Trace.of("What is 9 + 9?", ["18."], ["pos"], id="hidden")], "known")
    scene = Scene(store, None, gold_rate=0.5, gold_dataset="known")
    while scene.next() is not None:
        scene.label()
    assert "gold" in {answer.item.chosen for answer in scene.answers()}
    assert (read_trace_labels(store, hidden.trace_id), len(read_trace_labels(store, 1))) == ([], 1)


def test_votes_of_all_campaigns_add_up_where_nobody_has_decided(store):
    labelled(store)

    def votes(dataset="sums"):
        counted = read_votes(store, read_gold(store, find_dataset(store, dataset)))
        return {step: (votes.valid, votes.wrong) for step, votes in counted.items()}

    # Steps 0 and 1 are of "two", 2 to 4 of "three", whose second is decided as if by two people.
    assert votes() == {0: (3, 0), 1: (0, 3), 2: (3, 0), 3: (2, 0), 4: (1, 0), 5: (2, 0)}
    add(store, [Trace.of("What is 9 + 9?", ["18."], ["pos"], id="known")], "known")
    scene = Scene(store, None, name="second", gold_rate=0.5, gold_dataset="known")
    while (task := scene.next()) is not None:
        label_all(store, task, scene.who("ann"), ["neg", "pos", "pos"][: len(task.trace.steps)])
    assert votes() == {0: (3, 1), 1: (1, 3), 2: (3, 1), 3: (2, 0), 4: (2, 0), 5: (2, 1)}
    assert "gold" in {answer.item.chosen for answer in scene.answers()}
    assert votes("known") == {}
    # What was labelled is no longer what gold describes.
    scene.change_trace("two")
    assert votes() == {2: (3, 1), 3: (2, 0), 4: (2, 0), 5: (2, 1)}
