"""Items: the steps or solutions that a two-class metric is computed from."""

from dataclasses import dataclass

import numpy as np

from stepsight.core.arrays import AnyInts, Bools, Floats64

NO_ITEMS = "there is nothing to measure"
ONE_CLASS = "the gold has one class only"
NO_SCORES = "the evaluator gives no scores to rank by"


@dataclass(frozen=True, eq=False)
class Items:
    """`n` steps or solutions, each of shape (n,): `scores`, higher for the positive class, NaN if the evaluator
    gives none; `gold`; `predicted`; and `trace`, the index of the item's trace.

    A prediction that cannot be read is stored as the opposite of the gold (ReasonEval's protocol).
    """

    scores: Floats64
    gold: Bools
    predicted: Bools
    trace: AnyInts

    def __len__(self) -> int:
        return len(self.gold)

    @property
    def problem(self) -> str:
        """The reason why metrics of the predictions are undefined, or ""."""
        if not len(self):
            return NO_ITEMS
        return ONE_CLASS if self.gold.all() or not self.gold.any() else ""

    @property
    def ranking_problem(self) -> str:
        """The reason why metrics of the scores are undefined, or ""."""
        return self.problem or (NO_SCORES if np.isnan(self.scores).any() else "")

    def where(self, chosen: Bools) -> "Items":
        """The chosen items."""
        return Items(self.scores[chosen], self.gold[chosen], self.predicted[chosen], self.trace[chosen])
