"""Gold of a dataset by a convention."""

from stepsight.core.label import Label
from stepsight.core.repair import Convention
from stepsight.core.trace import Step, Trace
from stepsight.storage.database.store import Store
from stepsight.storage.judgments.columns import read_gold
from stepsight.storage.judgments.gold_conventions import apply_convention
from stepsight.storage.traces.queries import find_dataset
from tests.storage.samples import CLEAN, FIRST_ERROR, add

# neg, repaired by step 3, then neu before the repair and pos from it on.
REPAIRED = Trace(
    "repaired",
    "What is 5 + 5?",
    (Step(("11.",), Label.NEG, repaired=2), Step(("So 11.",), Label.NEU), Step(("No, 10.",), Label.POS, notices=0)),
)


def test_gold_of_a_dataset_follows_a_convention_behind_each_first_error(store: Store) -> None:
    add(store, [CLEAN, REPAIRED, FIRST_ERROR])
    gold = read_gold(store, find_dataset(store, "sums"))
    pos, neu, neg, none = Label.POS, Label.NEU, Label.NEG, -1
    # clean: pos; repaired: neg, neu, pos; first: valid without a label, neg, nothing.
    expected = {
        "": [pos, neg, neu, pos, none, neg, none],
        Convention.FIRST_ERROR: [pos, neg, none, none, none, neg, none],
        Convention.ALL_WRONG: [pos, neg, neg, neg, none, neg, neg],
        Convention.UNTIL_CEASED: [pos, neg, neu, pos, none, neg, none],
        Convention.UNLESS_REPAIRED: [pos, neg, neg, pos, none, neg, neg],
    }
    with store.read() as session:
        for convention, label in expected.items():
            found = apply_convention(session, gold, convention)
            assert found.label.tolist() == label, convention
            assert found.valid.tolist() == [
                1 if place == 4 else -1 if one == none else int(one != neg) for place, one in enumerate(label)
            ]
