"""Stress tests of datasets: what is made and scored once, what is read, and what goes on after a stop."""

import pytest
from sqlalchemy import func, select, update

from stepsight.core.evaluators.loading import load_evaluator
from stepsight.core.scoring.scorer import Scorer
from stepsight.core.stress.stress import StressTest
from stepsight.core.stress.transforms import find_transform
from stepsight.core.trace import Trace
from stepsight.storage.database.schema import TraceRow
from stepsight.storage.database.stress_schema import StressScoresRow, StressVariantRow
from stepsight.storage.judgments.evaluators import register_loaded
from stepsight.storage.judgments.judgments import save_judgments
from stepsight.storage.judgments.score_changes import ChangeableScores
from stepsight.storage.judgments.stress_tests import (
    StressPlan,
    count_missing_stress,
    list_seeds,
    read_stress_test,
    score_stress_test,
    stress_tested,
)
from tests.storage.samples import add

SUMS = [
    Trace.of("Add 2, 3 and 4.", ["2 + 3 = 5.", ["5 + 4 = 9.", "So 9."], "The answer is 9."], id=f"sum-{n}")
    for n in range(6)
]
PLAN = StressPlan(transforms=("number-replaced", "renamed-variable", "filler"))


@pytest.fixture(scope="module")
def scorer():
    return Scorer(load_evaluator("equations"))


def run(store, scorer, plan=PLAN, most=None, skipped=None):
    """Test a dataset and return the traces that were scored, of which there are at most `most`."""
    (dataset_id,) = {trace.dataset_id for trace in add_once(store)}
    evaluator = register_loaded(store, scorer.evaluator)
    found = []
    left_out = [] if skipped is None else skipped
    of = dataset_id, evaluator.id, plan
    for trace in score_stress_test(store, scorer.offline_scores, *of, lambda trace, _: left_out.append(trace.id)):
        found.append(trace)
        if len(found) == most:
            break
    return dataset_id, evaluator.id, found


def add_once(store, traces=SUMS):
    with store.read() as session:
        is_there = session.scalar(select(func.count()).select_from(TraceRow))
    return add(store, () if is_there else traces)


def test_what_is_read_is_what_a_test_in_memory_gives(store, scorer):
    dataset_id, evaluator_id, found = run(store, scorer)
    assert {trace.id for trace in found} == {trace.id for trace in SUMS}
    stored = read_stress_test(store, dataset_id, evaluator_id)
    transforms = [find_transform(name) for name in PLAN.transforms]
    test = StressTest.of(transforms, SUMS)
    assert stored.test.variants == test.variants
    assert stored.figures(0.5) == test.figures(test.judge(scorer.offline_scores), 0.5)
    assert (stored.seed, stored.unscored) == (0, 0)
    (_, renamed, _) = stored.figures(0.5)
    # No trace has a variable.
    assert (renamed.variants, renamed.unchanged) == (0, 6)
    assert stress_tested(store) == {dataset_id: {evaluator_id: "equations"}}


def test_a_test_goes_on_where_it_stopped(sqlite_store, scorer, monkeypatch):
    seen = []
    score = Scorer.offline_scores
    monkeypatch.setattr(
        Scorer, "offline_scores", lambda self, traces: (seen.extend(traces), score(self, traces))[1]
    )
    dataset_id, evaluator_id, found = run(sqlite_store, scorer, most=2)
    # A trace and two variants.
    assert len(seen) == 3 * 2
    assert count_missing_stress(sqlite_store, dataset_id, evaluator_id, PLAN) == 4
    half = read_stress_test(sqlite_store, dataset_id, evaluator_id)
    assert {trace.id for trace in half.test.traces} == {trace.id for trace in found}
    _, _, rest = run(sqlite_store, scorer)
    assert len(rest) == 4
    assert len(seen) == 3 * 6
    assert run(sqlite_store, scorer)[2] == []
    # A further transform takes one more variant each; the original is known.
    wider = StressPlan(transforms=(*PLAN.transforms, "confident-words"))
    run(sqlite_store, scorer, wider)
    assert len(seen) == 3 * 6 + 6


def test_all_evaluators_are_tested_on_the_same_variants_and_judgments_are_not_made_again(
    sqlite_store, scorer, monkeypatch
):
    add_once(sqlite_store, [Trace.of("Add.", ["2 + 3 = 5.", "So 5."], id=f"{n}") for n in range(2)])
    run(sqlite_store, scorer)
    with sqlite_store.read() as session:
        made = session.scalar(select(func.count()).select_from(StressVariantRow))
    other = Scorer(load_evaluator("mini-causal"))
    traces = add_once(sqlite_store)
    evaluator = register_loaded(sqlite_store, other.evaluator)
    save_judgments(sqlite_store, evaluator.id, other.score(traces, "hindsight"))
    seen = []
    score = Scorer.offline_scores
    monkeypatch.setattr(
        Scorer, "offline_scores", lambda self, traces: (seen.extend(traces), score(self, traces))[1]
    )
    run(sqlite_store, other)
    with sqlite_store.read() as session:
        assert session.scalar(select(func.count()).select_from(StressVariantRow)) == made
    assert not {trace.substeps for trace in seen} & {trace.substeps for trace in traces}


def test_more_traces_include_those_of_fewer_and_come_in_another_order_with_another_seed(sqlite_store, scorer):
    few, more, other = (
        [trace.id for trace in run(sqlite_store, scorer, StressPlan(seed, number, ("filler",)))[2]]
        for seed, number in ((1, 2), (1, 4), (2, 6))
    )
    assert (len(few), len(more)) == (2, 2)
    assert not set(few) & set(more)
    assert other != sorted(other)
    dataset_id, evaluator_id, _ = run(sqlite_store, scorer, StressPlan(2, 6, ("filler",)))
    assert list_seeds(sqlite_store, dataset_id, evaluator_id) == [2, 1]
    assert read_stress_test(sqlite_store, dataset_id, evaluator_id).seed == 2
    of_two = read_stress_test(sqlite_store, dataset_id, evaluator_id, StressPlan(1, 2, ("filler",)))
    assert sorted(trace.id for trace in of_two.test.traces) == sorted(few)
    assert read_stress_test(sqlite_store, dataset_id, evaluator_id, StressPlan(3)) is None


def test_a_trace_that_is_too_long_is_passed_over_once(sqlite_store):
    skipped = []
    add_once(sqlite_store, [*SUMS[:1], Trace.of("Add.", ["1 + 1 = 2. " * 3000, "So 2."], id="long")])
    dataset_id, evaluator_id, found = run(
        sqlite_store, other := Scorer(load_evaluator("mini-causal")), skipped=skipped
    )
    assert (len(found), skipped) == (1, ["long"])
    assert read_stress_test(sqlite_store, dataset_id, evaluator_id).unscored > 0
    assert run(sqlite_store, other)[2] == []


def test_a_trace_that_has_changed_is_tested_again(store, scorer):
    dataset_id, evaluator_id, found = run(store, scorer)
    with store.write() as session:
        session.execute(
            update(StressVariantRow)
            .where(StressVariantRow.trace_id == found[0].trace_id)
            .values(trace_digest="of before")
        )
    assert count_missing_stress(store, dataset_id, evaluator_id, PLAN) == 1
    assert len(read_stress_test(store, dataset_id, evaluator_id).test.traces) == 5
    assert [trace.id for trace in run(store, scorer)[2]] == [found[0].id]
    assert len(read_stress_test(store, dataset_id, evaluator_id).test.traces) == 6


def test_a_stress_test_is_deleted_with_the_scores_of_its_evaluator(store, scorer):
    dataset_id, evaluator_id, _ = run(store, scorer)
    change = ChangeableScores("sums", evaluator_id)
    with store.read() as session:
        assert change.dependents(session, change.find(session)).lines == ("a stress test with 18 scores",)
    change.delete(store)
    assert read_stress_test(store, dataset_id, evaluator_id) is None
    with store.read() as session:
        assert session.scalar(select(func.count()).select_from(StressScoresRow)) == 0
