"""Reproducing a published F1 on a part of ProcessBench, with the threshold chosen as the authors did.

According to ProcessBench (Zheng et al., 2024), section 4.1, the threshold of a reward model with numeric scores is
the one with the best F1 on GSM8K, which is then used for all parts. A threshold stated by the evaluator's authors
takes precedence.
"""

from collections.abc import Iterable

import numpy as np

from stepsight.core.errors import UserError
from stepsight.core.metrics.bootstrap import Value, resamples
from stepsight.core.metrics.first_error import first_errors, process_bench_f1
from stepsight.core.metrics.table import StepTable, build_table
from stepsight.core.scores import StepScores
from stepsight.core.trace import Trace

# The most thresholds to try: between neighbouring ones F1 changes by less than its last digit.
_MOST = 2000


def measure_f1(judged: Iterable[tuple[Trace, StepScores]], threshold: float | None) -> tuple[Value, float]:
    """Return ProcessBench's F1 as a fraction with its interval over traces, and the threshold used.

    If `threshold` is None, the threshold with the best F1 is used. Raises `UserError` unless both traces with an
    error and traces without an error exist.
    """
    table = build_table(judged)
    chosen = best_threshold(table) if threshold is None else threshold
    errors = first_errors(table, chosen)
    f1 = process_bench_f1.measure(errors, resamples(table.traces)).value
    if not f1.exists:
        raise UserError(f"F1 cannot be computed: {f1.reason}.", "Verify with more traces.")
    return f1, chosen


def agrees(f1: Value, published: float | None) -> bool | None:
    """True if the published F1, in percent, is within the measured interval, with both rounded to one decimal. None
    if the published F1 or the interval is missing."""
    if published is None or np.isnan(f1.low):
        return None
    return round(100 * f1.low, 1) <= published <= round(100 * f1.high, 1)


def best_threshold(table: StepTable) -> float:
    """Return the threshold with the best F1, or the one nearest to 0.5 if several are equally good.

    Returns 0.5 if there are no scores.
    """
    scores = np.unique(table.validity[~np.isnan(table.validity)])
    if len(scores) > _MOST:
        scores = np.unique(np.quantile(scores, np.linspace(0, 1, _MOST)).astype(np.float32))
    # A step is wrong below the threshold, so all thresholds between two neighbouring scores are equivalent.
    between = (scores[:-1].astype(np.float64) + scores[1:]) / 2
    candidates = sorted({0.5, *between.tolist()}, key=lambda one: abs(one - 0.5))

    def f1(threshold: float) -> float:
        value = process_bench_f1(first_errors(table, threshold))
        return value.number if value.exists else -1.0

    return float(max(candidates, key=f1))
