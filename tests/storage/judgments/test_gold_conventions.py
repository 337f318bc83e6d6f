"""Gold of a dataset by a convention."""

import pytest

from stepsight.core.errors import UserError
from stepsight.core.label import Label
from stepsight.core.repair import Convention
from stepsight.core.trace import Step, Trace
from stepsight.storage.database.store import Store
from stepsight.storage.judgments.columns import read_gold
from stepsight.storage.judgments.gold_conventions import apply_convention
from stepsight.storage.traces.queries import find_dataset, iterate_traces
from stepsight.storage.traces.writer import TraceWriter, rows_of
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


def test_gold_that_follows_a_convention_of_its_own_is_read_by_it(sqlite_store: Store) -> None:
    neg = Label.NEG
    all_wrong = Trace(
        "a", "2 + 2?", (Step(("5.",), neg, repaired=2), Step(("So 5.",), neg), Step(("No, 4.",), neg))
    )
    with sqlite_store.write() as session:
        writer = TraceWriter(session, "wrong", "jsonl", "", Convention.ALL_WRONG)
        writer.add_rows(rows_of([("line 1", all_wrong)], convention=Convention.ALL_WRONG))
    dataset = find_dataset(sqlite_store, "wrong")
    # Step 3 is wrong by the rule alone, so the error is repaired.
    assert (dataset.convention, dataset.repaired) == (Convention.ALL_WRONG, 1)
    gold = read_gold(sqlite_store, dataset)
    (trace,) = iterate_traces(sqlite_store, dataset.id)
    expected = {"all-wrong": "neg neg neg", "unless-repaired": "neg neg None", "until-ceased": "neg neg None",
                "first-error": "neg None None"}  # fmt: skip
    for name, labels in expected.items():
        converted = trace.in_convention(name)
        assert " ".join(str(step.gold) for step in converted.steps) == labels
        assert [step.gold for step in converted.in_convention(name).steps] == [
            step.gold for step in converted.steps
        ]
        with sqlite_store.read() as session:
            codes = apply_convention(session, gold, name).label.tolist()
        assert codes == [{"neg": 0, "None": -1}[label] for label in labels.split()], name


def test_an_import_that_goes_against_its_convention_is_refused(sqlite_store: Store) -> None:
    with pytest.raises(
        UserError, match="line 1: step 2 is neu, and by all-wrong it is neg, after the error in step 1"
    ):
        list(rows_of([("line 1", REPAIRED)], convention=Convention.ALL_WRONG))
    add(sqlite_store, [CLEAN])
    with sqlite_store.write() as session, pytest.raises(UserError, match="follows no named convention"):
        TraceWriter(session, "sums", "plain", "", Convention.ALL_WRONG)
