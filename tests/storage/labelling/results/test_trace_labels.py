from stepsight.core.trace import Trace
from stepsight.storage.labelling.results.consensus import read_trace_labels
from tests.storage.labelling.labelled_sums import AGREED, HOW, labelled
from tests.storage.labelling.samples import TWO, campaign, label_all, people, take
from tests.storage.samples import add


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
