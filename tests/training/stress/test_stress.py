"""Measures of stress tests, on scores whose figures are known."""

import json

import numpy as np
import pytest

from stepsight.core.evaluators.loading import load_evaluator
from stepsight.core.scores import StepScores
from stepsight.core.scoring.scorer import Scorer
from stepsight.core.trace import Trace
from stepsight.training.evaluate.strength import read_gallery
from stepsight.training.stress.stress_test import StressTest, measure, read_result, result_lines, stress_tables
from stepsight.training.stress.transforms import TRANSFORMS, Demand, find_transform
from tests.messages import refused

ALL = list(TRANSFORMS.values())
TRACES = read_gallery()[:12]


@pytest.fixture(scope="module")
def test():
    return StressTest.of(ALL, TRACES)


def scores(*validity):
    values = np.array(validity, np.float32)
    return StepScores(np.stack([1 - values, 0 * values, values], axis=1))


def figures(records):
    """The figures of an evaluator on each transform that has variants, by the transform's name and their keys."""
    return {
        name: {column.key: cell for column, cell in measure(own, find_transform(name).demand).items()}
        for name in TRANSFORMS
        if (own := [record for record in records if record["transform"] == name])
    }


def test_a_constant_never_moves(test):
    constant = [record for record in test.baselines() if record["evaluator"] == "baseline:constant"]
    for name, measured in figures(constant).items():
        assert measured["as_demanded"].number == (0 if TRANSFORMS[name].demand == Demand.CHANGE else 1)
        assert (measured["elsewhere"].number, measured["inflation"].number) == (0, 0)


def test_length_falls_by_what_a_longer_step_loses(test):
    judged = [
        record
        for record in test.baselines()
        if (record["transform"], record["evaluator"]) == ("filler", "baseline:length")
    ]
    assert judged
    for record in judged:
        now, was = record["steps"], test.traces[record["trace"]].substeps
        rises = [1 / (1 + len(text) / 500) - 1 / (1 + len(old) / 500) for text, old in zip(now, was, strict=True)]
        assert figures([record])["filler"]["inflation"].number == pytest.approx(np.mean(rises), abs=1e-6)


def test_equations_finds_every_wrong_calculation_and_no_rewriting(test):
    measured = figures(list(test.judge("equations", Scorer(load_evaluator("equations")).offline_scores, 0.5)))
    proved = [measured[name] for name in ("number-replaced", "sign-turned", "false-conclusion")]
    assert [(one["as_demanded"].number, one["variants"] > 5) for one in proved] == [(1, True)] * 3
    stayed = {name: one for name, one in measured.items() if TRANSFORMS[name].demand == Demand.STAY}
    moved = {name: one["steps"] * (1 - one["as_demanded"].number) for name, one in stayed.items()}
    # Roots that contradict the equation of the step before are not seen behind a sentence that says nothing.
    assert {name: count for name, count in moved.items() if count} == {"filler": pytest.approx(1)}


def test_a_step_without_scores_is_not_called_wrong():
    test = StressTest.of([find_transform("false-conclusion")], [Trace.of("Add.", ["2 + 3 = 5.", "Done."])])
    before, after = np.eye(3)[[2, 2]], np.array([[0, 0, 1], [0, 0, 0], [0, 0, 1]])
    (record,) = test.judge("it", lambda traces: [StepScores(before), StepScores(after)], 0.5)
    assert (record["targets"], record["after"]) == ([1], [1.0, None, 1.0])
    measured = figures([record])["false-conclusion"]
    assert (measured["as_demanded"].number, measured["steps"], measured["fall"].exists) == (0, 1, False)
    assert (measured["elsewhere"].number, measured["inflation"].number) == (0, 0)


def test_targets_others_and_inflation_are_told_apart():
    trace = Trace.of("Add.", ["2 + 3 = 5.", "5 + 1 = 6.", "The answer is 6."])
    test = StressTest.of([find_transform("number-replaced")], [trace])
    ((_, made),) = test.variants[0]
    (target,) = made.targets
    before, after = [0.9, 0.8, 0.7], [0.95, 0.85, 0.4]
    after[target] = 0.2
    others = [place for place in range(3) if place != target]
    (record,) = test.judge("it", lambda traces: [scores(*before), scores(*after)], 0.5)
    measured = figures([record])["number-replaced"]
    rises = [after[place] - before[place] for place in others]
    assert measured["inflation"].number == pytest.approx(np.mean(rises), abs=1e-6)
    assert measured["fall"].number == pytest.approx(before[target] - 0.2, abs=1e-6)
    # The target turned, and so did the last step.
    assert (measured["as_demanded"].number, measured["elsewhere"].number, measured["steps"]) == (1, 1, 1)
    # A target that was not valid before is no step that must turn.
    measured = figures([record | {"threshold": 0.99}])["number-replaced"]
    assert not measured["as_demanded"].exists
    assert measured["steps"] == 0


def test_what_cannot_be_scored_is_left_out():
    test = StressTest.of([find_transform("filler")], TRACES[:2])
    known = iter([[scores(*[0.9] * len(TRACES[0].substeps)), None], [None, None]])
    assert list(test.judge("it", lambda traces: next(known), 0.5)) == []


def test_nothing_to_stress_is_refused():
    with refused():
        StressTest.of(ALL, [])
    with refused():
        StressTest.of(ALL, [Trace.of("Why?", ["— 因为"])])


def test_figures_of_several_variants_by_hand(tmp_path):
    """The verdict on the target turns in the first of two solutions, and that on the last step in the second."""
    steps = ["2 + 3 = 5.", "5 + 1 = 6.", "The answer is 6."]
    test = StressTest.of([find_transform("number-replaced")], [Trace.of(q, steps) for q in ("Add.", "Add it up.")])
    targets = [variant.targets[0] for ((_, variant),) in test.variants]
    before, after = [0.9, 0.8, 0.7], [[0.9, 0.8, 0.7], [0.9, 0.8, 0.3]]
    after[0][targets[0]], after[1][targets[1]] = 0.1, 0.6
    given = iter([[scores(*before), scores(*now)] for now in after])
    records = list(test.judge("one", lambda traces: next(given), 0.5))
    measured = figures(records)["number-replaced"]
    assert (measured["variants"], measured["steps"]) == (2, 2)
    falls = [before[targets[0]] - 0.1, before[targets[1]] - 0.6]
    assert measured["fall"].number == pytest.approx(np.mean(falls))
    assert measured["inflation"].number == pytest.approx((0 + (0.3 - 0.7) / 2) / 2)
    # Of two solutions both, one or none are drawn.
    for name in ("as_demanded", "elsewhere"):
        assert (measured[name].number, measured[name].low, measured[name].high) == (0.5, 0, 1)
    # A result file has the same figures, to the last digit.
    path = tmp_path / "result.jsonl"
    path.write_text("".join(result_lines("sums", test, records)), encoding="utf-8")
    (section,) = read_result(str(path)).sections
    (table,) = stress_tables(records, test.transforms, 2)
    assert [table.rows for table in section.contents] == [table.rows]
    assert section.contents[0].name == "sums-stress-change"


@pytest.mark.parametrize(
    "lines", [[], ["{}"], ["no JSON"], [{"source": "a", "traces": 1, "transforms": ["filler"]}, {}]]
)
def test_a_file_that_is_no_result_is_refused(tmp_path, lines):
    path = tmp_path / "result.jsonl"
    path.write_text("".join(f"{line if isinstance(line, str) else json.dumps(line)}\n" for line in lines))
    with refused():
        read_result(str(path))
