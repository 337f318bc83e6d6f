import numpy as np
import pytest

from stepsight.core.metrics.bootstrap import resamples
from stepsight.core.metrics.first_error import (
    FirstErrors,
    Outcome,
    accuracy_on_right,
    accuracy_on_wrong,
    count_outcomes,
    first_errors,
    matthews,
    process_bench_f1,
    process_bench_f1_draws,
)
from stepsight.core.metrics.table import SILENT as NONE
from tests.core.metrics.tables import SILENT, VALID, WRONG, table

# Found, found too early, missed; right and seen so, right and blamed.
JUDGED = table(
    ([VALID, WRONG, SILENT], [0.9, 0.1, 0.1]),
    ([VALID, WRONG], [0.4, 0.1]),
    ([WRONG, SILENT], [0.9, 0.9]),
    ([VALID, VALID], [0.9, 0.5]),
    ([VALID], [0.2]),
)


def test_process_bench_by_hand():
    found = first_errors(JUDGED)
    assert found.gold.tolist() == [1, 1, 0, NONE, NONE]
    assert found.predicted.tolist() == [1, 0, NONE, NONE, 0]
    assert accuracy_on_wrong(found).number == pytest.approx(1 / 3)
    assert accuracy_on_right(found).number == pytest.approx(1 / 2)
    # 2 * (1/3) * (1/2) / (1/3 + 1/2) = (1/3) / (5/6)
    assert process_bench_f1(found).number == pytest.approx(2 / 5)


def test_outcomes_by_hand():
    # By the comment on JUDGED: found, another step, missed, right, a false alarm.
    assert count_outcomes(first_errors(JUDGED)) == {
        Outcome.RIGHT: 2, Outcome.MISSED: 1, Outcome.FALSE_ALARM: 1, Outcome.WRONG_STEP: 1
    }  # fmt: skip


def test_matthews_by_hand():
    # Wrong and called so 2, wrong and not 1, right and not 1, right and called wrong 1:
    # (2 * 1 - 1 * 1) / sqrt((2 + 1) (2 + 1) (1 + 1) (1 + 1)) = 1 / 6
    assert matthews(first_errors(JUDGED)).number == pytest.approx(1 / 6)


def test_a_trace_whose_gold_is_not_known_does_not_count():
    judged = table(([VALID, SILENT], [0.9, 0.1]), ([VALID, WRONG], [0.9, 0.1]))
    found = first_errors(judged)
    assert found.trace.tolist() == [1]
    assert accuracy_on_right(found).reason == "every trace has an error"
    assert process_bench_f1(found).reason == "every trace has an error"
    assert matthews(found).reason == "the gold has one class only"


def test_only_right_traces_and_none_at_all():
    found = first_errors(table(([VALID], [0.9])))
    assert accuracy_on_wrong(found).reason == "no trace has an error"
    empty = FirstErrors(*(np.empty(0, np.int64),) * 3)
    assert accuracy_on_right(empty).reason == "there is nothing to measure"


def test_no_hit_at_all_is_zero():
    assert process_bench_f1(first_errors(table(([WRONG], [0.9]), ([VALID], [0.1])))).number == 0


def test_draws_equal_the_metric_on_repeated_traces():
    found = first_errors(JUDGED)
    weights = resamples(5, 40)
    for row, value in zip(weights, process_bench_f1_draws(found, weights), strict=True):
        chosen = np.repeat(np.arange(5), row.astype(int))
        part = FirstErrors(found.gold[chosen], found.predicted[chosen], found.trace[chosen])
        expected = process_bench_f1(part)
        assert (np.isnan(value) and not expected.exists) or value == pytest.approx(expected.number)
