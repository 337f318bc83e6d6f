"""The limits on computation for one request, and the cost of a solution. This module does not import PyTorch."""

from dataclasses import dataclass

REQUEST_TOKENS = 2_100_000
"""The number of tokens computed: 1,000 steps of a full context of 4,096 in hindsight stay below."""

REQUEST_SECONDS = 120.0
"""The time for which a program's request is computed."""


@dataclass(frozen=True)
class ScoringCost:
    """The number of tokens that an evaluator reads for one solution: `whole` in a pass over all of it, `prefixes`
    in hindsight. They are equal if one pass gives everything. `limit` is the maximum for a request."""

    whole: int
    prefixes: int
    limit: int

    @property
    def fits(self) -> bool:
        """True if a request may judge the solution in hindsight."""
        return self.prefixes <= self.limit
