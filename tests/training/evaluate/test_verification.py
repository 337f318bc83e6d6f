"""The threshold of ProcessBench's authors, and F1 at it."""

import numpy as np
import pytest

from stepsight.core.metrics.bootstrap import Value
from stepsight.core.metrics.table import build_table
from stepsight.core.scores import StepScores
from stepsight.core.trace import Step, Trace
from stepsight.training.evaluate.verification import agrees, best_threshold, measure_f1
from tests.messages import refused


def judged(validities, error=None):
    """A trace whose steps have these validities, and whose first error is at the place `error`."""
    steps = tuple(
        Step((f"step {i}",), valid=None if error is not None and i > error else error != i)
        for i in range(len(validities))
    )
    rows = np.array([[1 - v, 0, v] for v in validities], np.float32)
    return Trace("", "a problem", steps), StepScores(rows)


def test_the_best_threshold_separates_errors_from_right_steps():
    # Errors have 0.6 and 0.7, right steps 0.8 and more: at 0.5 nothing is found, at 0.75 everything.
    traces = [judged([0.9, 0.6], 1), judged([0.7, 0.2], 0), judged([0.8, 0.95]), judged([0.85])]
    assert best_threshold(build_table(traces)) == pytest.approx(0.75)
    f1, threshold = measure_f1(build_table(traces), None)
    assert (f1.number, threshold) == (1.0, pytest.approx(0.75))
    # At 0.65 the first error of one of the two is found, and no right one is blamed: 2 · ½ · 1 / 1.5.
    assert measure_f1(build_table(traces), 0.65)[0].number == pytest.approx(2 / 3)
    assert measure_f1(build_table(traces), 0.5)[0].number == 0.0


def test_the_best_threshold_nearest_to_a_half_is_taken():
    traces = [judged([0.9, 0.1], 1), judged([0.9])]
    assert best_threshold(build_table(traces)) == 0.5


def test_the_interval_is_over_traces():
    # Every second error is found, no right one is blamed.
    traces = [judged([0.9, 0.4 if n % 2 else 0.6], 1) for n in range(20)] + [judged([0.9, 0.8])] * 20
    f1, _ = measure_f1(build_table(traces), 0.5)
    assert f1.number == pytest.approx(2 / 3)
    assert 0.4 < f1.low < f1.number < f1.high < 0.9


def test_one_kind_of_traces_has_no_f1():
    with refused():
        measure_f1(build_table([judged([0.9])]), 0.5)


@pytest.mark.parametrize(
    ("published", "low", "expected"),
    [(59.0, 0.5896, True), (59.0, 0.5904, True), (59.0, 0.5906, False), (None, 0.5, None), (59.0, np.nan, None)],
)
def test_a_figure_agrees_where_it_is_within_the_interval_to_its_printed_digit(published, low, expected):
    assert agrees(Value(0.6, low=low, high=0.64), published) is expected
