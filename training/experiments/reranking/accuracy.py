"""Measuring how often each way of choosing finds a right candidate, for each number of candidates."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from stepsight.core.arrays import Bools, Floats64, Ints
from stepsight.core.metrics.best_of_n import (
    NO_ANSWER,
    RankingMethod,
    Ties,
    best_of,
    pass_at,
    sizes_up_to,
    voted,
)
from stepsight.core.metrics.bootstrap import DRAWS, Value, interval, resamples, weighted_totals

_NO_ANSWERS = "no candidate has an answer"


@dataclass(frozen=True, eq=False)
class Ranked:
    """The n candidates of a problem in the order of the pool, with their scores, in arrays of shape (n,).

    `numbers` are their indices in the pool. `logs` holds the log scores, with -inf for a candidate without scores.
    `groups` is the same for candidates with equal answers. `sizes` holds the number of characters in each
    candidate's steps. `correct` is True for right candidates. It is None if this is unknown for any candidate.
    """

    numbers: tuple[int, ...]
    logs: Floats64
    groups: Ints
    sizes: Ints
    correct: Bools | None


class Way(StrEnum):
    """A way of choosing a candidate: without an evaluator, by its scores, or, as the upper bound, knowing what is
    right. Its `words` name it in tables."""

    words: str

    def __new__(cls, key: str, words: str) -> "Way":
        way = str.__new__(cls, key)
        way._value_, way.words = key, words
        return way

    FIRST = "first", "first candidate"
    RANDOM = "random", "random candidate"
    SHORTEST = "shortest", "shortest candidate"
    MAJORITY = "majority", "majority vote"
    BEST = "best-of-n", "best of N"
    WEIGHTED = "weighted-vote", "weighted vote"
    PASS = "pass", "any candidate right (pass@N)"


BASELINES = (Way.FIRST, Way.RANDOM, Way.SHORTEST, Way.MAJORITY)
"""The ways of choosing that need no evaluator."""
_VOTES = {Way.MAJORITY: RankingMethod.MAJORITY, Way.WEIGHTED: RankingMethod.WEIGHTED_VOTE}


@dataclass(frozen=True, eq=False)
class Accuracy:
    """The accuracy of each way of choosing, for each number of candidates.

    `means` holds the fraction of problems for which the choice is right, for each way and each number of candidates
    in `sizes`, with intervals over the problems. They are computed from `rates`, an array of shape (problems,
    ways, sizes). `problems` counts the problems whose right answer is known, and `unknown` those whose right answer
    is not.

    `fewer` counts the problems with fewer candidates than the largest size. At larger sizes, all candidates of
    these problems are used, so that every size is measured on the same problems.
    """

    sizes: tuple[int, ...]
    problems: int
    fewer: int
    unknown: int
    means: dict[Way, tuple[Value, ...]]
    rates: Floats64
    draws: int = DRAWS

    @property
    def shown_sizes(self) -> list[int]:
        """The sizes shown in tables: the powers of two and the largest size."""
        return sizes_up_to(self.sizes[-1], every=0)

    def of_all(self, way: Way) -> Value:
        """Return the accuracy of a way that chooses among all candidates."""
        return self.means[way][-1]


def differences(pairs: Sequence[tuple[Accuracy, Way, Accuracy, Way]]) -> list[Value]:
    """Return, for each pair of ways, the accuracy of the first minus that of the second, with all candidates.

    The intervals are over the problems, by which the two accuracies are paired. Raises `ValueError` if the
    accuracies of a pair cover different problems.
    """
    if not pairs:
        return []
    columns, ways = [], list(Way)
    for first, way, second, other in pairs:
        if first.rates.shape != second.rates.shape:
            raise ValueError("accuracies of other problems")
        columns.append(first.rates[:, ways.index(way), -1] - second.rates[:, ways.index(other), -1])
    rates, (accuracy, *_) = np.stack(columns, axis=1), pairs[0]
    draws = weighted_totals(rates, resamples(len(rates), accuracy.draws)) / len(rates)
    values = []
    for place, (first, way, second, other) in enumerate(pairs):
        reason = first.of_all(way).reason or second.of_all(other).reason
        value = Value(float(rates[:, place].mean()))
        values.append(Value.none(reason) if reason else interval(value, draws[:, place]))
    return values


def measure(
    ranked: Sequence[Ranked],
    draws: int = DRAWS,
    shown: Callable[[Sequence[Ranked]], Iterable[Ranked]] = lambda problems: problems,
    ties: Ties = Ties.RANDOM,
) -> Accuracy | None:
    """Measure every way of choosing on the problems whose right answer is known. Returns None if there are none.

    `draws` is the number of resamples for intervals. `shown` can wrap the iteration in a progress bar. `ties` says
    how equally good candidates count.
    """
    judged = [problem for problem in ranked if problem.correct is not None]
    if not judged:
        return None
    counts = np.array([len(problem.numbers) for problem in judged])
    sizes = tuple(sizes_up_to(int(counts.max())))
    has_answers = any((problem.groups != NO_ANSWER).any() for problem in judged)
    # Shape (problems, ways, sizes).
    rates = np.array([_rates(problem, sizes, ties, has_answers) for problem in shown(judged)])
    draws_of = weighted_totals(rates.reshape(len(judged), -1), resamples(len(judged), draws)) / len(judged)
    draws_of = draws_of.reshape(-1, *rates.shape[1:])
    means = {
        way: tuple(
            Value.none(_NO_ANSWERS)
            if way in _VOTES and not has_answers
            else interval(Value(float(rates[:, i, j].mean())), draws_of[:, i, j])
            for j in range(len(sizes))
        )
        for i, way in enumerate(Way)
    }
    fewer = int((counts < sizes[-1]).sum())
    return Accuracy(sizes, len(judged), fewer, len(ranked) - len(judged), means, rates, draws)


def _rates(problem: Ranked, sizes: Sequence[int], ties: Ties, has_answers: bool) -> Floats64:
    """Return how often each way chooses right over all subsets of a problem's candidates. The result has shape
    (ways, sizes). If no problem has answers, votes are never right."""
    correct = problem.correct
    assert correct is not None
    rates = {way: np.zeros(len(sizes)) for way in Way}
    rates[Way.FIRST] += float(correct[0])
    rates[Way.RANDOM] += float(correct.mean())
    rates[Way.PASS] += [pass_at(correct, size) for size in sizes]
    rates[Way.SHORTEST] += best_of(correct, -problem.sizes.astype(np.float64), sizes, ties)
    rates[Way.BEST] += best_of(correct, problem.logs, sizes, ties)
    if has_answers:
        ballots = [(method, problem.logs) for method in _VOTES.values()]
        rates |= zip(_VOTES, voted(correct, ballots, problem.groups, sizes, ties), strict=True)
    return np.array(list(rates.values()))
