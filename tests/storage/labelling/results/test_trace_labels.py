from stepsight.core.trace import Trace
from stepsight.storage.database.store import Store
from stepsight.storage.labelling.results.consensus import read_trace_labels
from tests.storage.labelling.labelled_sums import AGREED, HOW, labelled
from tests.storage.labelling.samples import TWO, campaign, label_all, people, take
from tests.storage.samples import add


def test_the_labels_of_a_trace_in_each_campaign(store: Store) -> None:
    labelled(store)
    other = campaign(store, None, name="second")
    first = people(store, 1)[0]
    label_all(store, take(store, other, first), first, ["neu", "neu"])
    (found,) = read_trace_labels(store, 2, None)
    assert (found.consensus.trace_id, found.campaign.name, found.ahead) == (2, "first", False)
    assert (found.consensus.labels, found.consensus.how) == (AGREED["three"], HOW["three"])
    assert [answer.user for answer in found.annotations] == ["annotator 1", "annotator 2", "annotator 3"]
    # The newest campaign comes first.
    assert [one.campaign.name for one in read_trace_labels(store, 1, None)] == ["second", "first"]
    assert read_trace_labels(store, 99, None) == []


def test_a_person_who_has_begun_with_a_trace_has_it_ahead(store: Store) -> None:
    made = campaign(store, [TWO], overlap=2)
    first, second = people(store, 2)
    task = take(store, made, first)
    label_all(store, task, first, ["pos", "neg"])

    def ahead(user) -> bool:
        (found,) = read_trace_labels(store, task.trace.trace_id, user)
        return found.ahead

    assert (ahead(first), ahead(second), ahead(None)) == (False, False, False)
    task = take(store, made, second)
    assert ahead(second)
    label_all(store, task, second, ["pos", "neg"])
    assert not ahead(second)


def test_hidden_gold_items_stay_hidden(store: Store) -> None:
    (hidden,) = add(store, [Trace.of("What is 9 + 9?", ["18."], ["pos"], id="hidden")], "known")
    made = campaign(store, [TWO], gold_rate=0.5, gold_dataset="known")
    (user,) = people(store, 1)
    for _ in range(2):
        task = take(store, made, user)
        label_all(store, task, user, ["pos"] * len(task.trace.steps))
    assert read_trace_labels(store, hidden.trace_id, None) == []
    assert len(read_trace_labels(store, 2, None)) == 1
