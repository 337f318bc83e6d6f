"""The distribution of an evaluator's step validities over a set of traces, split by the steps' gold labels."""

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
    """A histogram of step validities, split by gold label.

    The array `counts` of shape (3, BINS) has a row for each kind of gold label in `STEP_GOLD` and a column for each
    of the equally wide bins. Steps without a gold label or a validity are left out. A step counts as valid if its
    validity is at least `threshold`.
    """

    counts: Ints
    threshold: float


def read_distribution(store: Store, dataset_id: int, where: TraceFilter) -> Distribution:
    """Return the distribution of the step validities that the filter's evaluator gave in the filter's mode.

    The filter must name an evaluator, and its condition `bin` is ignored.
    """
    assert where.evaluator is not None
    with store.read() as session:
        columns = BrowseColumns(store, session, dataset_id, where.without("bin"), FILE_ORDER)
        chosen = columns.match().chosen
        cells = columns.step_cells()
        threshold = thresholds_in_force(session, where.evaluator).validity
        of_chosen = cells[np.repeat(chosen, columns.traces.steps)]
    counts = np.bincount(of_chosen[of_chosen >= 0], minlength=len(STEP_GOLD) * BINS)
    return Distribution(counts.reshape(len(STEP_GOLD), BINS), threshold)
