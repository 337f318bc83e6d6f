"""ReasonEval's protocol by hand, and on the scores that its authors released."""

import json
import math

import numpy as np
import pytest

from stepsight.core.metrics.binary import auc, macro_f1
from stepsight.core.metrics.figures import Subject, protocol
from stepsight.core.metrics.reasoneval import CATEGORIES, Errors, Level, items, prm_items
from stepsight.core.scores import Outputs, Thresholds
from stepsight.storage.importers import KINDS
from tests.core.metrics.tables import SILENT, VALID, WRONG, judged_table, table, three_way, trace


def test_steps_after_the_first_error_are_left_out():
    found = items(table(([VALID, WRONG, SILENT], [0.9, 0.2, 0.6])), Errors.INVALID, Level.STEP)
    np.testing.assert_allclose(found.scores, [0.9, 0.2], atol=1e-6)
    assert found.gold.tolist() == [True, False]
    # A step labelled after the first error is left out as well.
    found = items(table((["pos", "neg", "pos"], [0.9, 0.2, 0.6])), Errors.INVALID, Level.STEP)
    assert found.gold.tolist() == [True, False]


def test_a_solution_has_the_least_validity_of_all_its_steps():
    # The least validity of the first is that of the step after the error.
    judged = table(([VALID, WRONG, SILENT], [0.9, 0.4, 0.1]), ([VALID, VALID], [0.8, 0.7]))
    found = items(judged, Errors.INVALID, Level.SOLUTION)
    np.testing.assert_allclose(found.scores, [0.1, 0.7], atol=1e-6)
    assert found.gold.tolist() == [False, True]
    assert found.predicted.tolist() == [False, True]


def test_a_solution_of_which_the_gold_says_too_little_does_not_count():
    judged = table(([VALID, SILENT], [0.9, 0.9]), ([VALID, VALID], [0.8, 0.7]))
    assert items(judged, Errors.INVALID, Level.SOLUTION).trace.tolist() == [1]


def test_redundancy_is_ranked_by_minus_s_red():
    judged = three_way(["pos", "neu", "neg"], [[0.1, 0.1, 0.8], [0.2, 0.5, 0.3], [0.8, 0.2, 0.0]])
    found = items(judged, Errors.REDUNDANT, Level.STEP)
    np.testing.assert_allclose(found.scores, [-0.1, -0.5, -0.2], atol=1e-6)
    assert found.gold.tolist() == [True, False, True]
    assert found.predicted.tolist() == [True, False, False]
    whole = items(judged, Errors.REDUNDANT, Level.SOLUTION)
    assert (whole.gold.tolist(), whole.predicted.tolist()) == ([False], [False])


def test_thresholds_are_met_by_equality():
    # 0.3 is no binary fraction: stored in single precision it still equals a threshold of 0.3.
    judged = three_way(["pos", "pos"], [[0.7, 0.0, 0.3], [0.1, 0.15, 0.75]])
    found = items(judged, Errors.INVALID, Level.STEP, thresholds=Thresholds(validity=0.3))
    assert found.predicted.tolist() == [True, True]
    found = items(judged, Errors.REDUNDANT, Level.STEP)
    # s_red = 0.15 reaches the threshold: redundant.
    assert found.predicted.tolist() == [True, False]


def test_validity_alone_is_its_own_score_of_redundancy():
    judged = three_way(["pos", "neu"], [[0.4, 0, 0.6], [0.7, 0, 0.3]])
    found = items(judged, Errors.REDUNDANT, Level.STEP, Outputs.VALIDITY)
    np.testing.assert_allclose(found.scores, [0.6, 0.3], atol=1e-6)
    assert found.predicted.tolist() == [True, False]


def test_one_score_for_a_solution_says_nothing_of_steps():
    judged = judged_table((trace("pos", "neg"), None, 0.02), (trace("pos"), None, 0.03))
    assert len(items(judged, Errors.INVALID, Level.STEP, Outputs.SOLUTION)) == 0
    whole = items(judged, Errors.INVALID, Level.SOLUTION, Outputs.SOLUTION)
    assert (whole.gold.tolist(), whole.predicted.tolist()) == ([False, True], [False, True])


def test_steps_that_a_verdict_leaves_unread_count_as_wrong():
    # It blames the first step, the gold the third: the two between are unread.
    blamed = trace("pos", "pos", "neg"), [[1, 0, 0], [0, 0, 0], [0, 0, 0]], 0.0
    judged = judged_table(blamed, (trace("pos"), [[0, 0, 1]]))
    steps = items(judged, Errors.INVALID, Level.STEP, Outputs.VERDICT)
    assert steps.gold.tolist() == [True, True, False, True]
    assert steps.predicted.tolist() == [False, False, True, True]
    whole = items(judged, Errors.INVALID, Level.SOLUTION, Outputs.VERDICT)
    assert (whole.gold.tolist(), whole.predicted.tolist()) == ([False, True], [False, False])
    assert math.isnan(auc(whole).number)


def test_a_verdict_that_cannot_be_read_finds_no_wrong_step_as_in_the_official_script():
    unread = trace("pos", "neg"), np.zeros((2, 3))
    judged = judged_table(unread, (trace("pos", "neg"), [[0, 0, 1], [1, 0, 0]], 0.0))
    for strict, predicted in ((False, [True, True, True, False]), (True, [False, True, True, False])):
        steps = items(judged, Errors.INVALID, Level.STEP, Outputs.VERDICT, strict=strict)
        assert steps.predicted.tolist() == predicted
    assert items(judged, Errors.INVALID, Level.SOLUTION, Outputs.VERDICT).predicted.tolist() == [True, False]
    weights = np.ones((1, 2), np.uint8)
    # F1 of right steps 4/5 and of wrong ones 2/3; counted as wrong, of 4 two are right: 1/2 each.
    measured = protocol(Subject(judged, Outputs.VERDICT, Thresholds()), Errors.INVALID, weights)["step_f1"]
    assert measured.number == pytest.approx((4 / 5 + 2 / 3) / 2)
    assert measured.reason.endswith("counted as wrong, it is 50.0 %")


def _lines(path):
    return path.read_text(encoding="utf-8").splitlines()


def released(data, errors, name):
    folder = data / "mr-math"
    traces = folder / f"mr-math_{errors}_errors.json"
    scores = folder / "scores" / errors / f"{name}_eval_results.json"
    parse = KINDS[f"mr-math-{errors}"].parse
    rows = []
    for line, said in zip(_lines(traces), _lines(scores), strict=True):
        probs = np.array(json.loads(said)["scores"])
        whole = float(probs) if probs.ndim == 0 else None
        if probs.ndim < 2:
            probs = None if whole is not None else np.stack([1 - probs, 0 * probs, probs], axis=1)
        rows.append((parse(json.loads(line), "here"), probs, whole))
    return judged_table(*rows)


@pytest.mark.parametrize(
    ("errors", "name", "outputs", "published"),
    [
        ("invalid", "math-shepherd_mistral-7b", "validity", (70.1, 77.3, 60.0, 77.2)),
        ("invalid", "reasoneval_mistral-7b", "three-way", (78.0, 85.1, 68.6, 85.7)),
        ("invalid", "reasoneval_wizardmath-7b-v1.1", "three-way", (78.6, 87.5, 73.9, 89.5)),
        ("invalid", "roscoe-sa", "solution", (48.2, 57.5, None, None)),
        ("redundant", "math-shepherd_mistral-7b", "validity", (50.4, 54.5, 42.7, 53.0)),
        ("redundant", "reasoneval_mistral-7b", "three-way", (60.7, 63.4, 59.7, 70.9)),
        ("redundant", "reasoneval_wizardmath-7b-v1.1", "three-way", (61.6, 64.8, 59.7, 72.2)),
        ("redundant", "roscoe-sa", "solution", (50.7, 53.9, None, None)),
    ],
)
def test_published_rows_to_the_printed_digit(data, errors, name, outputs, published):
    judged = released(data, errors, name)
    values = [
        metric(items(judged, Errors(errors), level, Outputs(outputs)))
        for level in (Level.SOLUTION, Level.STEP)
        for metric in (macro_f1, auc)
    ]
    assert [round(100 * v.number, 1) if v.exists else None for v in values] == list(published)


def test_every_labelled_step_counts_also_after_the_error():
    found = prm_items(table((["pos", "neg", "pos", None], [0.9, 0.6, 0.7, 0.1]), groups=["deception"]))
    assert found.gold.tolist() == [True, False, True]
    # Positive F1: TP 2, FP 1: 4 / 5; negative F1 0.
    assert macro_f1(found).number == pytest.approx(2 / 5)


def test_in_simplicity_the_error_is_redundancy():
    probs = [[0.1, 0.1, 0.8], [0.1, 0.6, 0.3], [0.1, 0.3, 0.6]]
    found = prm_items(judged_table((trace("pos", "neu", "pos"), probs, None, "redundency")))
    assert found.gold.tolist() == [True, False, True]
    assert found.predicted.tolist() == [True, False, False]


def test_without_redundancy_validity_tells_of_simplicity_too():
    # (1 - v, 0, v): the redundant step is called wrong.
    probs = [[0.1, 0, 0.9], [0.8, 0, 0.2], [0.3, 0, 0.7]]
    judged = judged_table((trace("pos", "neu", "pos"), probs, None, "circular"))
    found = prm_items(judged, outputs=Outputs.VALIDITY)
    assert found.scores == pytest.approx([0.9, 0.2, 0.7])
    assert found.predicted.tolist() == found.gold.tolist() == [True, False, True]
    assert macro_f1(found).number == 1
    # By redundancy no step would ever be wrong: positive F1 4 / 5, negative 0.
    assert macro_f1(prm_items(judged)).number == pytest.approx(2 / 5)


def test_some_classes_only():
    both = table((["pos"], [0.9]), (["neg"], [0.2]), groups=["deception", "confidence"])
    assert len(prm_items(both, classes=CATEGORIES["soundness"])) == 1
    assert len(prm_items(both)) == 2


def test_a_score_at_the_threshold_counts_as_in_the_official_script():
    found = prm_items(table((["pos", "neg", "pos"], [0.5, 0.5, 0.51]), groups=["deception"]))
    assert found.predicted.tolist() == [False, False, True]
    judged = judged_table((trace("pos", "neu"), [[0, 0.15, 0.85], [0, 0.16, 0.84]], None, "circular"))
    assert prm_items(judged).predicted.tolist() == [True, False]
