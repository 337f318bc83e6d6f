"""The limits on computation for one request, and the cost of a solution. This module does not import PyTorch."""

from dataclasses import dataclass
from typing import Final, Literal

REQUEST_TOKENS = 2_100_000
"""The number of tokens computed: 1,000 steps of a full context of 4,096 in hindsight stay below."""

REQUEST_SECONDS = 120.0
"""The time for which a program's request is computed."""

AUTOMATIC: Final = "auto"
"""The budget that reads all prefixes if the limit of a request allows them, or else an eighth of their tokens."""

HindsightBudget = int | Literal["auto"] | None
"""The largest number of tokens to read of a solution in hindsight, `AUTOMATIC`, or None to read all prefixes. The
whole solution is always read, so that with 1 it is read alone."""

# With so few of the tokens the top evidence is mostly found (`tests.bench.sampling`).
_SHARE = 8


@dataclass(frozen=True)
class ScoringCost:
    """The number of tokens that an evaluator reads for one solution: `whole` in a pass over all of it, `prefixes`
    in hindsight. They are equal if one pass gives everything. `limit` is the maximum for a request."""

    whole: int
    prefixes: int
    limit: int

    def budget(self, asked: HindsightBudget) -> int | None:
        """Return the tokens to which the budget `asked` limits hindsight, or None if all prefixes are read."""
        if asked is None or self.prefixes == self.whole:
            return None
        if isinstance(asked, str):
            asked = self.prefixes if self.prefixes <= self.limit else min(self.limit, self.prefixes // _SHARE)
        return None if asked >= self.prefixes else max(1, asked)

    def tokens(self, asked: HindsightBudget) -> int:
        """Return the largest number of tokens that are read in hindsight with the budget `asked`."""
        budget = self.budget(asked)
        return self.prefixes if budget is None else max(self.whole, budget)
