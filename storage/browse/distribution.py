"""The distribution of an evaluator's validities over the steps of some traces, by the gold of each step."""

from dataclasses import dataclass

import numpy as np

from stepsight.core.arrays import Ints
from stepsight.storage.browse.filter_columns import BrowseColumns
from stepsight.storage.browse.filters import FILE_ORDER, TraceFilter
from stepsight.storage.browse.verdict_columns import BINS, STEP_GOLD
from stepsight.storage.database.store import Store
from stepsight.storage.judgments.evaluators import thresholds_in_force


@dataclass(frozen=True, eq=False)
class Distribution:
    """The number of steps with a validity in each of `BINS` bins of equal width, by the index of their gold in
    `STEP_GOLD`, shape (3, BINS); steps without gold or validity are in none. A step is valid from `threshold` on.
    """

    counts: Ints
    threshold: float


def read_distribution(store: Store, dataset_id: int, where: TraceFilter) -> Distribution:
    """The distribution for the filter's evaluator, which must be named, in the filter's mode, over the traces that
    meet its conditions other than the one on a bin."""
    assert where.evaluator is not None
    with store.read() as session:
        columns = BrowseColumns(store, session, dataset_id, where.without("bin"), FILE_ORDER)
        chosen = columns.match().chosen
        cells = columns.step_cells()
        threshold = thresholds_in_force(session, where.evaluator).validity
        of_chosen = cells[np.repeat(chosen, columns.traces.steps)]
    counts = np.bincount(of_chosen[of_chosen >= 0], minlength=len(STEP_GOLD) * BINS)
    return Distribution(counts.reshape(len(STEP_GOLD), BINS), threshold)
