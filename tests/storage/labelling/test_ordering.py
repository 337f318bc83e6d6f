"""The order of the queue, the share of it that is drawn by chance, and which traces can be hidden gold items."""

from dataclasses import replace

import pytest
from sqlalchemy import func, select

from stepsight.core.trace import Label, Step, Trace
from stepsight.storage.browse.filters import TraceFilter
from stepsight.storage.database.labelling_schema import ItemRow, SlotRow
from stepsight.storage.database.schema import TraceRow
from stepsight.storage.judgments.judgments import save_judgments
from stepsight.storage.labelling.plan import ORDERED, RANDOM, CampaignPlan, Ordering, arrange
from tests.messages import refused
from tests.storage.labelling.samples import campaign
from tests.storage.samples import add, evaluator, judge, many


def places(ordering, seed=0):
    plan = CampaignPlan(name="first", dataset="sums", guideline="Text.", ordering=ordering, seed=seed)
    return arrange(range(10, 20), plan)


def test_as_in_the_file_or_by_chance():
    assert places(Ordering.FILE) == [(id, ORDERED) for id in range(10, 20)]
    shuffled = places(Ordering.RANDOM)
    assert sorted(shuffled) == [(id, RANDOM) for id in range(10, 20)]
    assert shuffled == places(Ordering.RANDOM) != places(Ordering.RANDOM, 1)


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


def gold_of(store, **changes):
    """The hidden gold items of a campaign of all tasks."""
    name = f"campaign {len(changes)} {changes.get('gold_dataset')} {changes.get('seed')}"
    given = {"name": name, "gold_rate": 0.2} | changes
    made = campaign(store, None, conditions=TraceFilter(text="Task"), **given)
    assert made.items == 40
    items = select(TraceRow.external_id).join(ItemRow, ItemRow.trace_id == TraceRow.id)
    gold = items.where(ItemRow.campaign_id == made.id, ItemRow.chosen == "gold")
    with store.read() as session:
        # A gold item gets a slot when it is given to somebody.
        assert session.scalar(select(func.count()).where(SlotRow.campaign_id == made.id)) == 40
        return list(session.scalars(gold.order_by(ItemRow.place)))


def test_they_are_the_rest_of_the_dataset_as_far_as_its_gold_says_all(store):
    add(store, [*TASKS, *KNOWN, *UNKNOWN], "sums")
    assert sorted(gold_of(store)) == ["clean", "error"]
    assert gold_of(store, gold_rate=0) == []


def test_gold_items_come_from_the_gallery_if_the_dataset_has_none(store):
    add(store, [*TASKS, *UNKNOWN], "sums")
    add(store, KNOWN[:1], "gallery")
    assert gold_of(store) == ["clean"]


def test_a_dataset_that_is_named_is_the_only_one(store):
    add(store, [*TASKS, *KNOWN], "sums")
    add(store, [Trace.of("Other", ["a"], ["neg"], id="other")], "others")
    add(store, UNKNOWN, "unknown")
    assert gold_of(store, gold_dataset="others") == ["other"]
    with refused():
        gold_of(store, gold_dataset="unknown")


def test_there_are_as_many_as_one_person_needs_and_a_few_more(store):
    add(store, TASKS, "sums")
    # Two of three have gold: 200.
    add(store, many(300), "others")
    drawn, again, other = (
        gold_of(store, gold_dataset="others", name=f"seed {n}", seed=seed) for n, seed in enumerate((0, 0, 1))
    )
    # Who labels all 40, of which with gold 80 % are not gold, gets 40 * 0.2 / 0.8 = 10 of them; 10 are to spare.
    assert (len(drawn), again == drawn, other == drawn) == (20, True, False)


def answered(trace, answer):
    return replace(trace, meta={} if answer is None else {"ground_truth_answer": answer})


@pytest.mark.parametrize("answer", ["6", None])
def test_the_reference_answer_does_not_tell_them(store, answer):
    known = [answered(KNOWN[0], "3"), answered(KNOWN[1], None)]
    add(store, [*(answered(one, answer) for one in TASKS), *known], "sums")
    # Those have one that are as the others.
    assert gold_of(store) == (["clean"] if answer else ["error"])
    assert len(gold_of(store, shows_answer=False)) == 2
    add(store, [answered(KNOWN[0], None if answer else "3")], "unlike")
    with refused():
        gold_of(store, gold_dataset="unlike")


def test_gold_items_may_lack_an_answer_if_some_traces_do(store):
    tasks = [answered(one, "6" if number % 2 else None) for number, one in enumerate(TASKS)]
    add(store, [*tasks, answered(KNOWN[0], "3"), answered(KNOWN[1], None)], "sums")
    assert len(gold_of(store)) == 2


def test_scores_do_not_tell_them(store):
    stored = add(store, [*TASKS, *KNOWN], "sums")
    judged = evaluator(store)
    save_judgments(store, judged.id, [judge(trace, "offline") for trace in stored[: len(TASKS) + 1]])
    assert gold_of(store, shows="scores", evaluator=judged.id) == ["clean"]
