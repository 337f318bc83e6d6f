"""The accuracy of choosing among candidates, by the number of candidates."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from stepsight.core.arrays import Floats64
from stepsight.core.metrics.best_of_n import Aggregation, RankingMethod, best_of, pass_at, sizes_up_to, voted
from stepsight.core.metrics.bootstrap import DRAWS, Value, interval, resamples, weighted_totals
from stepsight.training.experiments.reranking.choices import Ranked

_NO_ANSWERS = "no candidate has an answer"


@dataclass(frozen=True)
class Way:
    """A way of choosing: a method together with a score, or a method that needs no score.

    `key` is its name in files.
    """

    key: str
    title: str
    method: RankingMethod | None = None
    by: Aggregation | None = None


FIRST = Way("first", "first candidate")
RANDOM = Way("random", "random candidate")
SHORTEST = Way("shortest", "shortest candidate")
MAJORITY = Way("majority", "majority vote", RankingMethod.MAJORITY)
BASELINES = (FIRST, RANDOM, SHORTEST, MAJORITY)
"""The ways of choosing that need no evaluator."""
PASS = Way("pass", "any candidate right (pass@N)")
SCORED = tuple(
    Way(f"{method.value}-{by.value}", f"{title} by {by}", method, by)
    for method, title in ((RankingMethod.BEST_OF_N, "best of N"), (RankingMethod.WEIGHTED_VOTE, "weighted vote"))
    for by in Aggregation
)
WAYS = (*BASELINES, *SCORED, PASS)


@dataclass(frozen=True, eq=False)
class Accuracy:
    """The accuracy of each way of choosing, by the number of candidates.

    `means` holds the share of problems for which the choice is right, for each way and each number of candidates in
    `sizes`, with intervals over the problems. `gains` holds differences between two ways with all candidates,
    paired by problem. `problems` counts the problems with a right answer to compare with, and `unknown` those
    without.

    `fewer` counts the problems with fewer candidates than the largest size. For a size beyond theirs all their
    candidates are used, so that every size is measured on the same problems.
    """

    sizes: tuple[int, ...]
    problems: int
    fewer: int
    unknown: int
    means: dict[Way, tuple[Value, ...]]
    gains: dict[tuple[Way, Way], Value]

    @property
    def candidates(self) -> int:
        """The largest number of candidates of a problem."""
        return self.sizes[-1]


def measure(
    ranked: Sequence[Ranked],
    draws: int = DRAWS,
    shown: Callable[[Sequence[Ranked]], Iterable[Ranked]] = lambda problems: problems,
) -> Accuracy | None:
    """Measure the accuracy of every way over the problems that have a right answer, or return None if there are
    none.

    `shown` wraps the iteration, for example in a progress bar.
    """
    judged = [one for one in ranked if one.correct is not None]
    if not judged:
        return None
    counts = np.array([len(one.numbers) for one in judged])
    sizes = tuple(sizes_up_to(int(counts.max())))
    # Shape (problems, ways, sizes).
    rates = np.array([[[_rate(one, way, size) for size in sizes] for way in WAYS] for one in shown(judged)])
    draws_of = weighted_totals(rates.reshape(len(judged), -1), resamples(len(judged), draws)) / len(judged)
    draws_of = draws_of.reshape(-1, len(WAYS), len(sizes))
    votes = any(one.has_answers for one in judged)
    means = {
        way: tuple(_value(way, rates[:, i, j], draws_of[:, i, j], votes) for j in range(len(sizes)))
        for i, way in enumerate(WAYS)
    }
    gains = {
        (way, other): _value(way, rates[:, i, -1] - rates[:, j, -1], draws_of[:, i, -1] - draws_of[:, j, -1], votes)
        for i, way in enumerate(WAYS)
        if way in (*SCORED, MAJORITY)
        for j, other in enumerate(WAYS)
        if other in BASELINES and (votes or other != MAJORITY)
    }
    fewer = int((counts < sizes[-1]).sum())
    return Accuracy(sizes, len(judged), fewer, len(ranked) - len(judged), means, gains)


def _rate(one: Ranked, way: Way, size: int) -> float:
    """Return the share of a problem's subsets of this size from which the way chooses a right candidate."""
    assert one.correct is not None
    if way == FIRST:
        return float(one.correct[0])
    if way == RANDOM:
        return float(one.correct.mean())
    if way == SHORTEST:
        return best_of(one.correct, -one.sizes.astype(np.float64), size)
    if way == PASS:
        return pass_at(one.correct, size)
    assert way.method is not None
    logs = one.logs[way.by or Aggregation.MIN]
    if way.method == RankingMethod.BEST_OF_N:
        return best_of(one.correct, logs, size)
    return voted(one.correct, way.method, logs, one.groups, size)


def _value(way: Way, numbers: Floats64, draws: Floats64, votes: bool) -> Value:
    if way.method is not None and way.method.votes and not votes:
        return Value.none(_NO_ANSWERS)
    return interval(Value(float(numbers.mean())), draws)
