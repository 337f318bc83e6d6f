"""AgentProcessBench's metrics of agents' turns, all of which have labels, even after an error.

Both metrics are taken from the benchmark's own script (`eval/compare.py`), under the names that it prints. A turn
without a verdict counts as judged wrongly, and is not blamed. An evaluator's verdict is the most probable of its
three labels or, in a tie, the first of neg, neu and pos.
"""

import numpy as np

from stepsight.core.arrays import Bools, Floats32, Floats64, Ints
from stepsight.core.label import Label
from stepsight.core.metrics.bootstrap import Value, Weights, weighted_sums
from stepsight.core.metrics.table import NO_ITEMS, SILENT, StepTable


def step_hits(table: StepTable) -> tuple[Bools, Ints]:
    """Return two arrays for the labelled turns: True if the verdict equals the label, and the index of the
    trace."""
    labelled = table.label != SILENT
    return (most_probable(table.probs) == table.label)[labelled], table.trace[labelled].astype(np.int64)


def first_error_hits(table: StepTable) -> tuple[Bools, Ints]:
    """Return two arrays for the traces with a labelled turn: True if the first turn labelled neg is also the first
    that the evaluator calls neg, or if there is neither; and the index of the trace."""
    traces = np.unique(table.trace[table.label != SILENT]).astype(np.int64)
    same = table.first(table.label == Label.NEG) == table.first(most_probable(table.probs) == Label.NEG)
    return same[traces], traces


def share(hits: Bools) -> Value:
    """Return the share of hits. It is undefined if nothing is labelled."""
    return Value(float(hits.mean())) if len(hits) else Value.none(NO_ITEMS)


def share_draws(sample: tuple[Bools, Ints], weights: Weights) -> Floats64:
    """Return the share of hits on each resample of traces."""
    hits, trace = sample
    hit, total = weighted_sums([hits, np.ones_like(hits)], trace, weights)
    with np.errstate(invalid="ignore"):
        draws: Floats64 = hit / total
    return draws


def most_probable(probs: Floats32) -> Ints:
    """Return the most probable label of each step, or `SILENT` where it has no scores. `probs` has the shape
    (n, 3)."""
    unread: Bools = np.isnan(probs.sum(axis=1))
    return np.where(unread, SILENT, np.where(unread[:, None], 0, probs).argmax(axis=1))
