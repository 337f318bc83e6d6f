"""The order of the queue, and the share of it that is drawn by chance."""

import random

import numpy as np
import pytest

from stepsight.core.judgment import Judgment, Mode
from stepsight.core.scores import Hindsight, StepScores
from stepsight.core.trace import Trace
from stepsight.storage.judgments.judgments import save_judgments
from stepsight.storage.labelling.ordering import ORDERED, RANDOM, arrange, mix
from stepsight.storage.labelling.plan import CampaignPlan, Ordering
from tests.storage.samples import add, evaluator

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
