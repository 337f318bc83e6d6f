"""The measures, on the traces of `tests.training.hand`, worked out by hand."""

import numpy as np
import pytest
from scipy.stats import spearmanr

from stepsight.core.metrics.bootstrap import resamples
from stepsight.core.metrics.figures import SHARES, Subject, as_json, common, prm_scores, protocol, three_way
from stepsight.core.metrics.reasoneval import Errors, kinds_of_error
from stepsight.core.metrics.table import build_table
from stepsight.core.scores import Outputs, StepScores, Thresholds
from stepsight.core.trace import Step, Trace
from tests.core.metrics.tables import judged_table
from tests.training.hand import GOLDS, SAID, traces

WEIGHTS = resamples(4, 200)


def table(group="", only="ABCD"):
    return judged_table(*((trace, SAID[trace.id], None, group) for trace in traces({id: GOLDS[id] for id in only})))


def subject(outputs=Outputs.THREE_WAY, **thresholds):
    return Subject(table(), outputs, Thresholds(**thresholds))


def numbers(measured):
    return {name: found.number for name, found in measured.items()}


def test_invalid_errors():
    """Steps, without A 3 and D 2 after the first error: 4 valid ones called valid, 1 (B 2) called wrong; of the
    wrong ones D 1 found, A 2 missed.

    F1 of valid 8 / (8 + 1 + 1) = 0.8, of wrong 2 / (2 + 1 + 1) = 0.5. AUC: of 5 x 2 pairs only B 2 (0.4) is below
    A 2 (0.61). Solutions: 0.61 and 0.1 wrong, 0.4 and 0.7 right; each class has one found and one missed; of four
    pairs only B below A is out of order.
    """
    found = numbers(protocol(subject(), Errors.INVALID, WEIGHTS))
    assert found == pytest.approx({"sol_f1": 0.5, "sol_auc": 0.75, "step_f1": 0.65, "step_auc": 0.9})


def test_redundant_errors():
    """Steps, all of them: C 1 (0.15, a tie) found; A 2 and C 2 called so and are not; 6 of 8 others right.

    F1 12 / (12 + 2) and 2 / (2 + 2). AUC: of 8 pairs A 2 and C 2 have more than 0.15. Solutions: C found (0.3), A
    called so (0.2): F1 4 / (4 + 1) and 2 / (2 + 1), mean 11 / 15; C has the largest of all.
    """
    found = numbers(protocol(subject(), Errors.REDUNDANT, WEIGHTS))
    assert found == pytest.approx(
        {"sol_f1": 11 / 15, "sol_auc": 1.0, "step_f1": (6 / 7 + 0.5) / 2, "step_auc": 6 / 8}
    )


def test_thresholds_move_f1_and_not_auc():
    """From 0.65 on A 2 is found as well: F1 of valid 8 / (8 + 1), of wrong 4 / (4 + 1)."""
    found = numbers(protocol(subject(validity=0.65), Errors.INVALID, WEIGHTS))
    assert found["step_f1"] == pytest.approx((8 / 9 + 4 / 5) / 2)
    assert found["step_auc"] == pytest.approx(0.9)


def test_three_classes():
    """Argmax is right but for A 2 and C 1, called pos, and B 2, called neg. F1: neg 2 / (2 + 2), neu 0, pos
    10 / (6 + 7).

    AUC: neg 0.39 and 0.9 against 7 others, of which B 2 (0.6) is above 0.39: 13 of 14. neu 0.15 against 8, of which
    A 2 and C 2 have more: 6 of 8. pos: 6 against 0.41, 0.55, 0.1: B 2 (0.35) beats only 0.1: 16 of 18.
    """
    found = numbers(three_way(subject(), WEIGHTS))
    aucs = {"neg_auc": 13 / 14, "neu_auc": 6 / 8, "pos_auc": 16 / 18}
    expected = {"accuracy": 6 / 9, "macro_f1": (0.5 + 0 + 10 / 13) / 3, "macro_auc": sum(aucs.values()) / 3}
    assert found == pytest.approx(expected | aucs)


def test_validity_alone_has_no_three_classes():
    assert numbers(three_way(subject(Outputs.VALIDITY), WEIGHTS)) == pytest.approx({"neg_auc": 13 / 14})


def test_first_errors_and_calibration():
    """A: none predicted, the second is wrong; B: the second predicted, none is wrong; C and D right.

    One of two with an error and one of two without: 0.5 each, and no correlation of verdicts. Brier: the mean of
    0.01, 0.3721, 0.04, 0.36, 0.09, 0.01, 0.01. Calibration: of ten bins 0.9 twice, both valid (0.1 off), 0.61
    wrong, 0.8, 0.4 and 0.7 valid, 0.1 wrong: (0.2 + 0.61 + 0.2 + 0.6 + 0.3 + 0.1) / 7.
    """
    found = numbers(common(subject(), WEIGHTS))
    expected = {"first_error_accuracy": 0.5, "processbench_f1": 0.5, "mr_mcc": 0.0}
    expected |= {"ece": 2.01 / 7, "brier": 0.8921 / 7}
    assert {name: found[name] for name in expected} == pytest.approx(expected, abs=1e-6)


def test_an_evaluator_without_steps_has_no_step_figures():
    assert common(subject(Outputs.SOLUTION), WEIGHTS) == {}
    found = protocol(subject(Outputs.SOLUTION), Errors.INVALID, WEIGHTS)
    assert found["step_f1"].reason == found["step_auc"].reason == "the evaluator gives no verdicts on steps"
    assert found["step_auc"].draws is None


def test_a_verdict_has_no_curve():
    found = protocol(subject(Outputs.VERDICT), Errors.INVALID, WEIGHTS)
    assert found["step_auc"].reason == "the evaluator gives no scores to rank by"
    assert found["step_f1"].exists
    assert three_way(subject(Outputs.VERDICT), WEIGHTS) == {}


def test_a_class_that_is_missing_has_a_reason_and_no_draws():
    # B and C have no invalid error.
    judged = Subject(table(only="BC"), Outputs.THREE_WAY, Thresholds())
    found = protocol(judged, Errors.INVALID, resamples(2, 50))
    assert {measured.reason for measured in found.values()} == {"the gold has one class only"}
    assert all(measured.draws is None for measured in found.values())


def test_every_interval_holds_its_figure():
    for errors in Errors:
        for name, value in protocol(subject(), errors, WEIGHTS).items():
            assert value.low <= value.number <= value.high, (errors, name)
            assert value.draws.shape == (200,)


def test_kinds_of_error():
    assert kinds_of_error(table()) == [Errors.INVALID, Errors.REDUNDANT]
    assert kinds_of_error(table(only="ABD")) == [Errors.INVALID]
    assert kinds_of_error(table(only="C")) == [Errors.REDUNDANT]
    assert kinds_of_error(table(only="B")) == [Errors.INVALID]


def test_prm_scores_are_given_for_the_classes_there_are():
    """All steps are of one class, so that the score of the class, its category and all of them are the same."""
    found = prm_scores(Subject(table("deception"), Outputs.THREE_WAY, Thresholds()), WEIGHTS)
    assert set(found) == {"prmscore", "prmscore_sensitivity", "prmscore_deception"}
    assert len({measured.number for measured in found.values()}) == 1


def test_prm_scores_of_validity_alone_are_of_validity():
    """In a class of simplicity the same table gives other figures by validity than by redundancy."""
    three, two = (
        numbers(prm_scores(Subject(table("circular"), outputs, Thresholds(redundancy=0.25)), WEIGHTS))
        for outputs in (Outputs.THREE_WAY, Outputs.VALIDITY)
    )
    assert three.keys() == two.keys()
    assert three["prmscore_circular"] != two["prmscore_circular"]


def test_as_json_is_fractions_and_null():
    judged = Subject(table(only="BC"), Outputs.THREE_WAY, Thresholds())
    shown = as_json(protocol(judged, Errors.INVALID, resamples(2, 50)))
    reason = "the gold has one class only"
    names = ["sol_f1", "sol_auc", "step_f1", "step_auc"]
    assert shown == dict.fromkeys(names) | {
        "intervals": {name: [None, None] for name in names},
        "reasons": dict.fromkeys(names, reason),
    }
    shown = as_json(protocol(subject(), Errors.INVALID, WEIGHTS))
    assert shown["step_f1"] == pytest.approx(0.65)
    assert shown["reasons"] == {}


def subject_of_shares(*traces, outputs=Outputs.VALIDITY):
    """An evaluator of traces whose steps have these pairs of validity and share."""
    judged = []
    for number, pairs in enumerate(traces):
        steps = tuple(Step(("s",), share=share) for _, share in pairs)
        scores = StepScores(np.array([[1 - validity, 0, validity] for validity, _ in pairs], np.float32))
        judged.append((Trace(str(number), "q", steps), scores))
    return Subject(build_table(judged), outputs, Thresholds())


def measure(found, draws=50):
    return common(found, resamples(found.table.traces, draws))


def share_numbers(found):
    return {name: one.number for name, one in measure(found).items() if name in SHARES}


def test_steps_without_a_share_do_not_count():
    # Squares: 0.04, 0.01, 0.16. Pairs within traces: (1, 0.5) in order; (0.25, 0.75) tied.
    found = share_numbers(subject_of_shares([(0.8, 1.0), (0.9, None), (0.4, 0.5)], [(0.65, 0.25), (0.65, 0.75)]))
    assert found["share_brier"] == pytest.approx((0.04 + 0.01 + 0.16 + 0.01) / 4)
    assert found["share_order"] == pytest.approx((1 + 0.5) / 2)
    assert found["share_spearman"] == pytest.approx(
        spearmanr([0.8, 0.4, 0.65, 0.65], [1, 0.5, 0.25, 0.75]).statistic
    )


def test_intervals_hold_the_value_and_draws_are_those_of_the_resampled_traces():
    rng = np.random.default_rng(0)
    shares = rng.random((40, 4)).round(1)
    validities = np.clip(shares + rng.normal(size=shares.shape) / 4, 0, 1)
    found = subject_of_shares(
        *[list(zip(*pair, strict=True)) for pair in zip(validities.tolist(), shares.tolist(), strict=True)]
    )
    measured = measure(found, 200)
    assert all(one.low < one.number < one.high for name, one in measured.items() if name in SHARES)
    drawn = np.repeat(np.arange(40), resamples(40, 200)[7])
    errors = ((found.table.validity.reshape(40, 4) - shares) ** 2)[drawn]
    assert measured["share_brier"].draws[7] == pytest.approx(errors.mean(), abs=1e-6)


def test_a_constant_has_half_of_the_pairs_and_no_correlation():
    measured = measure(subject_of_shares([(0.5, 1.0), (0.5, 0.0)], [(0.5, 0.5)]))
    assert measured["share_order"].number == 0.5
    assert measured["share_brier"].number == pytest.approx(1 / 6)
    assert measured["share_spearman"].reason == "all scores or all shares are the same"


def test_figures_that_cannot_be_given_say_why():
    reasons = {
        "words": measure(subject_of_shares([(1, 0.5), (0, 0.25)], outputs=Outputs.VERDICT)),
        "same": measure(subject_of_shares([(0.9, 0.5), (0.1, 0.5)])),
    }
    assert reasons["words"]["share_brier"].reason == "the evaluator gives no scores to rank by"
    assert reasons["same"]["share_order"].reason == "no trace has steps with different shares"
    assert not set(SHARES) & set(measure(subject_of_shares([(0.9, None)])))
