"""Hidden gold items: which traces can be some."""

from dataclasses import replace

import pytest
from sqlalchemy import select

from stepsight.core.label import Label
from stepsight.core.trace import Step, Trace
from stepsight.storage.browse.filters import TraceFilter
from stepsight.storage.database.labelling_schema import ItemRow, SlotRow
from stepsight.storage.database.schema import TraceRow
from stepsight.storage.judgments.judgments import save_judgments
from tests.messages import refused
from tests.storage.labelling.samples import campaign
from tests.storage.samples import add, evaluator, judge, many

# 40 to be labelled, and a few of which more or less is known.
TASKS = [Trace.of(f"Task {i}", ["One."], id=f"task {i}") for i in range(40)]
KNOWN = [
    Trace.of("Clean", ["a", "b"], ["pos", "neu"], id="clean"),
    Trace("error", "Error", (Step(("a",), valid=True), Step(("b",), Label.NEG), Step(("c",)))),
]
UNKNOWN = [
    Trace("half", "Half", (Step(("a",), valid=True), Step(("b",)))),
    Trace("gap", "Gap", (Step(("a",)), Step(("b",), Label.NEG))),
]


def gold_items(store, of):
    with store.read() as session:
        found = select(TraceRow.external_id).join(ItemRow, ItemRow.trace_id == TraceRow.id)
        gold = found.where(ItemRow.campaign_id == of.id, ItemRow.chosen == "gold")
        return list(session.scalars(gold.order_by(ItemRow.place)))


def make(store, **changes):
    return campaign(store, None, conditions=TraceFilter(text="Task"), gold_rate=0.2, **changes)


def test_they_are_the_rest_of_the_dataset_as_far_as_its_gold_says_all(store):
    add(store, [*TASKS, *KNOWN, *UNKNOWN], "sums")
    made = make(store)
    assert sorted(gold_items(store, made)) == ["clean", "error"]
    assert made.items == 40
    with store.read() as session:
        gold = select(SlotRow.id).join(ItemRow, ItemRow.id == SlotRow.item_id).where(ItemRow.chosen == "gold")
        assert session.scalars(gold).all() == []


def test_gold_items_come_from_the_gallery_if_the_dataset_has_none(store):
    add(store, [*TASKS, *UNKNOWN], "sums")
    add(store, KNOWN[:1], "gallery")
    assert gold_items(store, make(store)) == ["clean"]


def test_a_dataset_that_is_named_is_the_only_one(store):
    add(store, [*TASKS, *KNOWN], "sums")
    add(store, [Trace.of("Other", ["a"], ["neg"], id="other")], "others")
    add(store, UNKNOWN, "unknown")
    assert gold_items(store, make(store, gold_dataset="others")) == ["other"]
    with refused():
        make(store, name="second", gold_dataset="unknown")


def test_there_are_as_many_as_one_person_needs_and_a_few_more(store):
    add(store, TASKS, "sums")
    # Two of three have gold: 200.
    add(store, many(300), "others")
    made = make(store, gold_dataset="others")
    # Who labels all 40, of which with gold 80 % are not gold, gets 40 * 0.2 / 0.8 = 10 of them; 10 are to spare.
    assert len(gold_items(store, made)) == 20
    again = make(store, name="second", gold_dataset="others")
    other = make(store, name="third", gold_dataset="others", seed=1)
    assert gold_items(store, again) == gold_items(store, made) != gold_items(store, other)


def test_at_rate_0_there_are_none(store):
    add(store, [*TASKS, *KNOWN], "sums")
    assert gold_items(store, campaign(store, None, conditions=TraceFilter(text="Task"))) == []


def answered(trace, answer):
    return replace(trace, meta={} if answer is None else {"ground_truth_answer": answer})


@pytest.mark.parametrize("answer", ["6", None])
def test_the_reference_answer_does_not_tell_them(store, answer):
    add(
        store,
        [*(answered(one, answer) for one in TASKS), answered(KNOWN[0], "3"), answered(KNOWN[1], None)],
        "sums",
    )
    # Those have one that are as the others.
    assert gold_items(store, make(store)) == (["clean"] if answer else ["error"])
    assert len(gold_items(store, make(store, name="hidden", shows_answer=False))) == 2
    add(store, [answered(KNOWN[0], None if answer else "3")], "unlike")
    with refused():
        make(store, name="unlike", gold_dataset="unlike")


def test_gold_items_may_lack_an_answer_if_some_traces_do(store):
    tasks = [answered(one, "6" if number % 2 else None) for number, one in enumerate(TASKS)]
    add(store, [*tasks, answered(KNOWN[0], "3"), answered(KNOWN[1], None)], "sums")
    assert len(gold_items(store, make(store))) == 2


def test_scores_do_not_tell_them(store):
    stored = add(store, [*TASKS, *KNOWN], "sums")
    judged = evaluator(store)
    save_judgments(store, judged.id, [judge(trace, "offline") for trace in stored[: len(TASKS) + 1]])
    assert gold_items(store, make(store, shows="scores", evaluator=judged.id)) == ["clean"]
