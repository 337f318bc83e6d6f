"""Comparing the outcomes of two evaluators, by counting the traces with each pair."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from stepsight.core.metrics.first_error import OUTCOMES, Outcome
from stepsight.core.metrics.table import SILENT
from stepsight.storage.browse.filter_columns import BrowseColumns
from stepsight.storage.browse.filters import FILE_ORDER, TraceFilter
from stepsight.storage.database.store import Store

_CONDITIONS = ("mistake", "other_mistake", "gold")


@dataclass(frozen=True)
class OutcomePairs:
    """The number of traces with each pair of outcomes: the first evaluator's and the second evaluator's.

    `counts[True]` covers the traces with an error in the gold labels and `counts[False]` those without: a redundant
    error if `on_redundancy` is True. `unknown` is the number of traces for which the gold labels or a verdict are
    missing or incomplete.
    """

    counts: Mapping[bool, Mapping[tuple[Outcome, Outcome], int]]
    unknown: int
    on_redundancy: bool = False

    def count(self, first: bool | Outcome, second: bool | Outcome, errors: tuple[bool, ...] = (True, False)) -> int:
        """Count the traces on which the two evaluators have these outcomes. In place of an outcome, True stands for
        right, and False for every other outcome. `errors` says whether to count traces with a gold error (True),
        without one (False), or both."""
        return sum(
            number
            for error in errors
            for (one, other), number in self.counts[error].items()
            if _fits(one, first) and _fits(other, second)
        )


def _fits(outcome: Outcome, wanted: bool | Outcome) -> bool:
    return (outcome is Outcome.RIGHT) == wanted if isinstance(wanted, bool) else outcome is wanted


def pair_outcomes(store: Store, dataset_id: int, where: TraceFilter) -> OutcomePairs | None:
    """Compare the outcomes of the filter's two evaluators on the traces that match the filter.

    Return None unless the filter names two evaluators.
    """
    if where.evaluator is None or where.other is None:
        return None
    with store.read() as session:
        columns = BrowseColumns(store, session, dataset_id, where.without(*_CONDITIONS), FILE_ORDER)
        chosen = columns.match().chosen
        assert columns.in_mode is not None
        assert columns.other is not None
        first, second = columns.in_mode.mistake[chosen], columns.other.mistake[chosen]
        has_error = columns.has_error[chosen]
    known = (first != SILENT) & (second != SILENT)
    counts = {}
    for error in (True, False):
        some = known & (has_error == error)
        pairs, numbers = np.unique(np.stack([first[some], second[some]]), axis=1, return_counts=True)
        counts[error] = {
            (OUTCOMES[one], OUTCOMES[other]): int(number)
            for one, other, number in zip(*pairs, numbers, strict=True)
        }
    return OutcomePairs(counts, int((~known).sum()), columns.on_redundancy)
