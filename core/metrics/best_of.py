"""How often a choice among fewer candidates than there are is right, over all subsets of them.

With `n` candidates of a problem, the mean over all its subsets of `k` is an unbiased estimate of what choosing
among `k` drawn from the same source does, and uses all of them. Among equals the choice is taken to be random: to
take the first would measure the order of the candidates too.
"""

from functools import lru_cache
from itertools import combinations
from math import comb

import numpy as np
from numpy.typing import NDArray

from core.rerank import Ballots, Flags, Logs, Method, Places

MOST_SUBSETS = 1000
"""Beyond so many subsets, so many drawn at random stand for all."""


def sizes_up_to(most: int) -> list[int]:
    """1, 2, 4, …, and `most` itself."""
    return sorted({1 << power for power in range(most.bit_length())} | {most}) if most > 0 else []


def best_of(correct: Flags, logs: Logs, size: int) -> float:
    """The share of the subsets of `size` candidates whose best-scored one is correct.

    With candidates by rising score, the best of a subset is the `i`-th in C(i - 1, k - 1) of C(n, k) subsets
    (Hilton and Gao 2022, "Measuring Goodhart's law"). A `size` beyond the number of candidates means all of them.
    """
    order = np.argsort(logs, kind="stable")
    first, place = np.unique(logs[order], return_index=True, return_inverse=True)[1:]
    # Each of equals is the best as often as the others.
    shares = np.add.reduceat(correct[order].astype(np.float64), first) / np.diff([*first, len(logs)])
    return float(_best_weights(len(logs), min(size, len(logs))) @ shares[place])


def pass_at(correct: Flags, size: int) -> float:
    """The share of the subsets of `size` candidates that hold a correct one: 1 - C(n - c, k) / C(n, k) (Chen et al.
    2021). No choice can do better."""
    count, size = len(correct), min(size, len(correct))
    return 1.0 - comb(count - int(correct.sum()), size) / comb(count, size)


def voted(correct: Flags, method: Method, logs: Logs, groups: Places, size: int) -> float:
    """The share of the subsets of `size` candidates whose vote chooses a correct one, over all of them, or over
    `MOST_SUBSETS` drawn at random, always the same, which is unbiased too."""
    subsets = _subsets(len(logs), min(size, len(logs)))
    return float(Ballots.of(method, logs, groups, subsets).right(correct[subsets]).mean())


@lru_cache(maxsize=256)
def _best_weights(count: int, size: int) -> NDArray[np.float64]:
    total = comb(count, size)
    return np.array([comb(below, size - 1) / total for below in range(count)])


@lru_cache(maxsize=256)
def _subsets(count: int, size: int) -> Places:
    """Subsets of `size` of the numbers below `count`, shape (m, size), each in rising order."""
    if comb(count, size) <= MOST_SUBSETS:
        return np.array(list(combinations(range(count), size)), np.int64)
    order = np.random.default_rng([count, size]).random((MOST_SUBSETS, count)).argsort(axis=1)
    return np.sort(order[:, :size], axis=1).astype(np.int64)
