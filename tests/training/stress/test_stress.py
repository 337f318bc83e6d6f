"""Measures of stress tests, on scores whose figures are known."""

import numpy as np
import pytest

from stepsight.core.evaluators.loading import load_evaluator
from stepsight.core.scores import StepScores
from stepsight.core.scoring.scorer import Scorer
from stepsight.core.trace import Trace
from stepsight.training.evaluate.strength import read_gallery
from stepsight.training.stress.stress_test import StressedTrace, StressTest, scored_by_rule
from stepsight.training.stress.transforms import find_transform
from stepsight.training.stress.variant import TRANSFORMS, Demand, Variant
from tests.messages import refused

ALL = list(TRANSFORMS.values())
TRACES = read_gallery()[:12]


@pytest.fixture(scope="module")
def test():
    return StressTest.of(ALL, TRACES)


def scores(*validity):
    values = np.array(validity, np.float32)
    return StepScores(np.stack([1 - values, 0 * values, values], axis=1))


def test_a_constant_never_moves(test):
    for one in test.figures("constant", test.judge(scored_by_rule("baseline:constant")), 0.5):
        if one.variants:
            assert one.as_demanded.number == (0 if one.demand == Demand.CHANGE else 1)
            assert (one.elsewhere.number, one.inflation.number) == (0, 0)


def test_length_falls_by_what_a_longer_step_loses(test):
    judged = [one for one in test.judge(scored_by_rule("baseline:length")) if one.transform.name == "filler"]
    assert judged
    for one in judged:
        now, was = one.variant.trace.substeps, test.traces[one.number].substeps
        rises = [1 / (1 + len(text) / 500) - 1 / (1 + len(old) / 500) for text, old in zip(now, was, strict=True)]
        assert one.rise == pytest.approx(np.mean(rises), abs=1e-6)


def test_equations_finds_every_wrong_calculation_and_no_rewriting(test):
    judged = test.judge(Scorer(load_evaluator("equations")).offline_scores)
    figures = {one.transform: one for one in test.figures("equations", judged, 0.5)}
    proved = [figures[name] for name in ("number-replaced", "sign-turned", "false-conclusion")]
    assert [(one.as_demanded.number, one.variants > 5) for one in proved] == [(1, True)] * 3
    stayed = [one for one in figures.values() if one.demand == Demand.STAY and one.variants]
    moved = {one.transform: one.steps * (1 - one.as_demanded.number) for one in stayed}
    # Roots that contradict the equation of the step before are not seen behind a sentence that says nothing.
    assert {name: count for name, count in moved.items() if count} == {"filler": pytest.approx(1)}


def test_a_step_without_scores_is_not_called_wrong():
    """A step of another problem that has no equation is not judged by `equations`."""
    variant = Variant(
        Trace.of("Add.", ["2 + 3 = 5.", "So it is.", "Done."]), (0, None, 1), (1,), "A step is put in."
    )
    before, after = StepScores(np.eye(3)[[2, 2]]), StepScores(np.array([[0, 0, 1], [0, 0, 0], [0, 0, 0]]))
    one = StressedTrace(0, find_transform("foreign-step"), variant, before, after)
    assert one.turned(0.5) == [(1, False)]
    assert one.moved(0.5) == []
    assert one.rise == 0


def test_targets_others_and_inflation_are_told_apart():
    trace = Trace.of("Add.", ["2 + 3 = 5.", "5 + 1 = 6.", "The answer is 6."])
    test = StressTest.of([find_transform("number-replaced")], [trace])
    ((_, made),) = test.variants[0]
    (target,) = made.targets
    before, after = [0.9, 0.8, 0.7], [0.95, 0.85, 0.4]
    after[target] = 0.2
    (one,) = test.judge(lambda traces: [scores(*before), scores(*after)])
    assert one.turned(0.5) == [(target, True)]
    assert one.moved(0.5) == [2]
    others = [place for place in range(3) if place != target]
    assert one.rise == pytest.approx(np.mean([after[place] - before[place] for place in others]), abs=1e-6)
    assert one.fall == pytest.approx(before[target] - 0.2, abs=1e-6)
    (figures,) = test.figures("one", [one], 0.5)
    assert (figures.as_demanded.number, figures.elsewhere.number, figures.steps) == (1, 1, 1)
    # A target that was not valid before is no step that must turn.
    (figures,) = test.figures("one", [one], 0.99)
    assert not figures.as_demanded.exists
    assert figures.steps == 0


def test_what_cannot_be_scored_is_left_out():
    test = StressTest.of([find_transform("filler")], TRACES[:2])
    known = iter([[scores(*[0.9] * len(TRACES[0].substeps)), None], [None, None]])
    assert list(test.judge(lambda traces: next(known))) == []


def test_traces_beyond_a_context_are_passed_over_by_a_scorer():
    scorer = Scorer(load_evaluator("mini-causal"))
    trace, long = Trace.of("Add.", ["1 + 1 = 2."]), Trace.of("Add.", ["1 + 1 = 2. " * 3000])
    first, second, third = scorer.offline_scores([trace, long, trace])
    assert second is None
    assert np.array_equal(first.probs, third.probs)


def test_nothing_to_stress_is_refused():
    with refused():
        StressTest.of(ALL, [])
    with refused():
        StressTest.of(ALL, [Trace.of("Why?", ["— 因为"])])


def test_figures_of_several_variants_by_hand():
    """The verdict on the target turns in the first of two solutions, and that on the last step in the second."""
    steps = ["2 + 3 = 5.", "5 + 1 = 6.", "The answer is 6."]
    test = StressTest.of([find_transform("number-replaced")], [Trace.of(q, steps) for q in ("Add.", "Add it up.")])
    targets = [variant.targets[0] for ((_, variant),) in test.variants]
    before, after = [0.9, 0.8, 0.7], [[0.9, 0.8, 0.7], [0.9, 0.8, 0.3]]
    after[0][targets[0]], after[1][targets[1]] = 0.1, 0.6
    given = iter([[scores(*before), scores(*now)] for now in after])
    (figures,) = test.figures("one", test.judge(lambda traces: next(given)), 0.5)
    assert (figures.variants, figures.steps) == (2, 2)
    falls = [before[targets[0]] - 0.1, before[targets[1]] - 0.6]
    assert figures.fall.number == pytest.approx(np.mean(falls))
    assert figures.inflation.number == pytest.approx((0 + (0.3 - 0.7) / 2) / 2)
    # Of two solutions both, one or none are drawn.
    for value in (figures.as_demanded, figures.elsewhere):
        assert (value.number, value.low, value.high) == (0.5, 0, 1)
