"""The distribution of an evaluator's scores over a set of traces, split by gold labels: the validities of steps or,
for redundant errors, the redundancies of solutions."""

from dataclasses import dataclass

import numpy as np

from stepsight.core.arrays import Ints
from stepsight.storage.browse.filter_columns import BrowseColumns
from stepsight.storage.browse.filters import FILE_ORDER, TraceFilter
from stepsight.storage.browse.verdict_columns import BINS, SOLUTION_GOLD, STEP_GOLD
from stepsight.storage.database.store import Store
from stepsight.storage.judgments.evaluators import thresholds_in_force


@dataclass(frozen=True, eq=False)
class Distribution:
    """A histogram of step validities or solution redundancies, split by gold label.

    The array `counts` of shape (kinds, BINS) has a row for each kind of gold label in `kinds` and a column for each
    of the equally wide bins. `kinds` is `STEP_GOLD` for the validities of steps, and `SOLUTION_GOLD` for the
    redundancies of solutions, in which case `of_solutions` is True. Items without a gold label or a score are left
    out. A step is valid if its validity is at least `threshold`, and a solution redundant likewise.
    """

    counts: Ints
    threshold: float
    of_solutions: bool = False

    @property
    def kinds(self) -> tuple[str, ...]:
        return SOLUTION_GOLD if self.of_solutions else STEP_GOLD


def read_distribution(store: Store, dataset_id: int, where: TraceFilter) -> Distribution:
    """Return the distribution of the scores that the filter's evaluator gave in the filter's mode.

    The filter must name an evaluator, and its condition `bin` is ignored.
    """
    assert where.evaluator is not None
    with store.read() as session:
        columns = BrowseColumns(store, session, dataset_id, where.without("bin"), FILE_ORDER)
        chosen = columns.match().chosen
        thresholds = thresholds_in_force(session, where.evaluator)
        if columns.on_redundancy:
            threshold, of_chosen = thresholds.redundancy, columns.solution_cells()[chosen]
        else:
            of_steps = np.repeat(chosen, columns.traces.steps)
            threshold, of_chosen = thresholds.validity, columns.step_cells()[of_steps]
    kinds = len(SOLUTION_GOLD if columns.on_redundancy else STEP_GOLD)
    counts = np.bincount(of_chosen[of_chosen >= 0], minlength=kinds * BINS)
    return Distribution(counts.reshape(kinds, BINS), threshold, columns.on_redundancy)
