"""The order of the queue, the share of it that is drawn by chance, and which traces can be hidden gold items."""

import random
from dataclasses import replace

import numpy as np
import pytest
from sqlalchemy import select

from stepsight.core.judgment import Judgment, Mode
from stepsight.core.scores import Hindsight, StepScores
from stepsight.core.trace import Label, Step, Trace
from stepsight.storage.browse.filters import TraceFilter
from stepsight.storage.database.labelling_schema import ItemRow, SlotRow
from stepsight.storage.database.schema import TraceRow
from stepsight.storage.judgments.judgments import save_judgments
from stepsight.storage.labelling.ordering import ORDERED, RANDOM, arrange, mix
from stepsight.storage.labelling.plan import CampaignPlan, Ordering
from tests.messages import refused
from tests.storage.labelling.samples import campaign
from tests.storage.samples import add, evaluator, judge, many

FOUR = [Trace.of(f"Problem {i}", ["One.", "Two."], id=str(i)) for i in range(4)]


def plan(**changes):
    return CampaignPlan(name="first", dataset="sums", guideline="Text.", **({"random_share": 0.0} | changes))  # type: ignore[arg-type]


def places(store, traces, of):
    """The positions of the traces in the order of the plan, with how each was chosen."""
    position = {trace.trace_id: trace.position for trace in traces}
    with store.read() as session:
        found = arrange(session, traces[0].dataset_id, list(position), of)
    return [(position[one.trace_id], one.chosen) for one in found]


def scored(trace, *validity):
    rows = [[1 - value, 0, value] for value in validity]
    return Judgment(trace, Mode.OFFLINE, StepScores(np.array(rows, np.float32)))


def hindsight(trace, online, offline):
    """The first step is judged so at first and so in the end."""
    triangle = ([[1 - online, 0, online]], [[1 - offline, 0, offline], [0, 0, 1]])
    return Judgment(trace, Mode.HINDSIGHT, Hindsight(tuple(np.array(row, np.float32) for row in triangle)))


def test_as_in_the_file_or_by_chance(store):
    traces = add(store, FOUR)
    assert places(store, traces, plan(ordering=Ordering.FILE)) == [(place, ORDERED) for place in range(4)]
    shuffled = places(store, traces, plan(ordering=Ordering.RANDOM))
    assert sorted(shuffled) == [(place, RANDOM) for place in range(4)]
    assert shuffled == places(store, traces, plan(ordering=Ordering.RANDOM))
    others = [places(store, traces, plan(ordering=Ordering.RANDOM, seed=seed)) for seed in range(8)]
    assert any(other != shuffled for other in others)


def test_the_largest_disagreement_comes_first(store):
    traces = add(store, FOUR)
    one, other = evaluator(store, "one"), evaluator(store, "other")
    # Solution validity, the least of the steps: 0.9, 0.2, 0.5 against 0.8, 0.9, 0.1; spreads 0.1, 0.7, 0.4. Nobody
    # but one judged the last.
    save_judgments(
        store, one.id, [scored(traces[0], 0.9, 1), scored(traces[1], 1, 0.2), scored(traces[2], 0.5, 0.5)]
    )
    save_judgments(store, one.id, [scored(traces[3], 0, 0)])
    save_judgments(
        store, other.id, [scored(traces[0], 0.8, 1), scored(traces[1], 0.9, 1), scored(traces[2], 0.1, 1)]
    )
    assert places(store, traces, plan(ordering=Ordering.DISAGREEMENT)) == [
        (1, ORDERED), (2, ORDERED), (0, ORDERED), (3, ORDERED),
    ]  # fmt: skip


def test_the_verdict_on_the_whole_solution_counts(store):
    traces = add(store, FOUR[:2])
    one, other = evaluator(store, "one"), evaluator(store, "other")
    # Offline, hindsight says 0.8 of the first and 0.5 of the second; what was said online is passed over.
    save_judgments(store, one.id, [hindsight(traces[0], 0.0, 0.8), hindsight(traces[1], 0.8, 0.5)])
    online = [Judgment(trace, Mode.ONLINE, scored(trace, 0, 0).result) for trace in traces]
    save_judgments(store, one.id, online)
    save_judgments(store, other.id, [scored(traces[0], 0.8, 0.8), scored(traces[1], 0.8, 0.8)])
    assert [place for place, _ in places(store, traces, plan(ordering=Ordering.DISAGREEMENT))] == [1, 0]


def test_a_share_of_the_places_is_filled_by_chance():
    order = list(range(100, 200))
    mixed = mix(order, 0.2, random.Random(0))
    assert sorted(one.trace_id for one in mixed) == order
    drawn = [one.trace_id for one in mixed if one.chosen == RANDOM]
    assert len(drawn) == 20
    kept = [one.trace_id for one in mixed if one.chosen == ORDERED]
    assert kept == sorted(kept)
    # Neither the places nor the traces are the first or the last twenty.
    spots = [place for place, one in enumerate(mixed) if one.chosen == RANDOM]
    assert min(spots) < 30 < 70 < max(spots)
    assert min(drawn) < 130 < 170 < max(drawn)


@pytest.mark.parametrize(("share", "count"), [(0.0, 0), (1.0, 5), (0.5, 2)])
def test_no_share_and_all_of_it(share, count):
    # Of five, half is 2.5, which rounds to 2.
    mixed = mix([1, 2, 3, 4, 5], share, random.Random(1))
    assert sum(one.chosen == RANDOM for one in mixed) == count
    assert sorted(one.trace_id for one in mixed) == [1, 2, 3, 4, 5]


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
