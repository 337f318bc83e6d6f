"""Choosing the prefixes that are read in hindsight if a budget does not allow all of them.

The whole solution is read first. Its verdicts serve as flags: for each step called wrong, the prefix that ends with
the step is read, and then prefixes that narrow down where its verdict changed most, until a single later step is
left. The step with the largest revision comes first. Verdicts that rose leave no flag. Most of them are on the
first steps, which an evaluator reads with little in view, so the shortest prefixes are all read; together they cost
less than one pass over the whole. Then come steps whose verdicts could have moved further without a flag, and the
rest of the budget goes to evenly spaced prefixes.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from stepsight.core.arrays import Floats32, Ints
from stepsight.core.evidence import Revision, largest_revision, revisions
from stepsight.core.left_out import NOTABLE
from stepsight.core.scores import Hindsight
from stepsight.core.trace import Trace

# The passes over the whole solution that are kept for the evidence of a revision which an evenly spaced prefix
# shows.
_KEPT = 2.0
# The passes over the whole solution that the shortest prefixes may cost together. Between a half and three quarters
# the evidence found on chains of 45 to 75 steps is the same.
_SHORTEST = 0.6


@dataclass(frozen=True)
class PrefixChoice:
    """The choice of prefixes of `trace`, given those that have been read.

    `costs[j]` is the number of tokens of the inputs of row `j`. A step counts as valid if its validity reaches
    `threshold`.
    """

    trace: Trace
    costs: Ints
    threshold: float

    def next_row(self, found: Mapping[int, Floats32], left: float) -> int | None:
        """Return the index of the row to read next, or None if `left` tokens allow none.

        `found` holds the rows that have been read, which must include the last one.
        """
        matrix = Hindsight.from_rows(len(self.costs), found)
        matrix = Hindsight(matrix.rows, None, self.trace.step_ends, matrix.sampled)
        moved = revisions(matrix, self.trace, self.threshold)
        wanted = [row for row in self._near_flags(matrix, moved) if self.costs[row] <= left]
        return wanted[0] if wanted else self._between(matrix.read, left)

    def _near_flags(self, matrix: Hindsight, moved: list[Revision]) -> list[int]:
        """Return the rows that would reveal most about the flags, in order."""
        top = largest_revision(moved)
        assert top is not None
        validity, ends = matrix.offline.validity, self.trace.step_ends
        unread = [i for i in np.argsort(validity, kind="stable") if matrix.first(i) != ends[i]]
        # Steps that could have moved clearly further than the largest revision so far, had they been valid online.
        further = [i for i in unread if 1 - validity[i] > abs(top.change) + NOTABLE]
        wrong = [i for i in unread if validity[i] < np.float32(self.threshold)]
        by_change = sorted(moved, key=lambda one: -abs(one.change))
        evidence = [self._evidence(matrix, one) for one in by_change if abs(one.change) >= NOTABLE]
        rows = [
            *(int(ends[i]) for i in further if validity[i] < np.float32(self.threshold)),
            *evidence[:1],
            *np.setdiff1d(self._shortest, matrix.read).tolist(),
            *(int(ends[i]) for i in [*further, *wrong]),
            *evidence[1:],
        ]
        return [row for row in rows if row is not None]

    @cached_property
    def _shortest(self) -> Ints:
        """The rows of the shortest prefixes, as many as together cost at most `_SHORTEST` passes over the whole."""
        return np.flatnonzero(self.costs.cumsum() <= _SHORTEST * self.costs[-1])

    def _evidence(self, matrix: Hindsight, revision: Revision) -> int | None:
        """Return the row that narrows down which later sub-step moved a verdict, or None if that is known."""
        end = int(self.trace.step_ends[revision.substep])
        if matrix.first(revision.substep) != end:
            return end
        if revision.jump is None or not revision.jump.skipped:
            return None
        after = revision.jump.revealed
        before = after - 1 - revision.jump.skipped
        # Evidence is mostly close to its step, so the search goes forward in growing strides.
        return min(before + max(1, before - end), (before + after) // 2)

    def _between(self, read: Ints, left: float) -> int | None:
        """Return the row in the middle of the widest gap between prefixes that were read, or None."""
        edges = np.append(-1, read)
        gaps = np.diff(edges)
        widest = int(gaps.argmax())
        row = int(edges[widest] + gaps[widest] // 2)
        is_free = gaps[widest] > 1 and self.costs[row] + _KEPT * self.costs[-1] <= left
        return row if is_free else None
