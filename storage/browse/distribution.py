"""Distribution of an evaluator's validities over the steps of some traces, by what the gold says of each step."""

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
    """How many steps have a validity in each of `BINS` bins of the same width, by the place in `STEP_GOLD` of their
    gold, shape (3, BINS); steps of which gold or evaluator say nothing are in none. From `threshold` on a step is
    valid."""

    counts: Ints
    threshold: float


def read_distribution(store: Store, dataset_id: int, where: TraceFilter) -> Distribution:
    """The validities that the filter's evaluator, which it has to name, gives in its mode to the steps of the
    traces that meet its conditions, but for that on a bin."""
    assert where.evaluator is not None
    with store.read() as session:
        columns = BrowseColumns(store, session, dataset_id, where.without("bin"), FILE_ORDER)
        chosen = columns.match().chosen
        cells = columns.step_cells()
        threshold = thresholds_in_force(session, where.evaluator).validity
        of_chosen = cells[np.repeat(chosen, columns.traces.steps)]
    counts = np.bincount(of_chosen[of_chosen >= 0], minlength=len(STEP_GOLD) * BINS)
    return Distribution(counts.reshape(len(STEP_GOLD), BINS), threshold)
