"""Measuring how often each way of choosing finds a right candidate, for each number of candidates."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from stepsight.core.arrays import Bools, Floats64, Ints
from stepsight.core.metrics.best_of_n import (
    NO_ANSWER,
    Aggregation,
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

    `numbers` are their indices in the pool. `logs` holds the log scores by each rule, with -inf for a candidate
    without scores. `groups` is the same for candidates with equal answers. `sizes` holds the number of characters
    in each candidate's steps. `correct` is True for right candidates. It is None if this is unknown for any
    candidate.
    """

    numbers: tuple[int, ...]
    logs: dict[Aggregation, Floats64]
    groups: Ints
    sizes: Ints
    correct: Bools | None


@dataclass(frozen=True)
class Way:
    """A way of choosing a candidate. It is either a method with a rule that scores candidates, or needs no scores.

    `key` is the name of the way in files, and `by` is the rule that turns the scores of steps into the score of a
    candidate.
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
    Way(f"{method.value}-{by.value}", f"{title} by {by.words}", method, by)
    for method, title in ((RankingMethod.BEST_OF_N, "best of N"), (RankingMethod.WEIGHTED_VOTE, "weighted vote"))
    for by in Aggregation
)
WAYS = (*BASELINES, *SCORED, PASS)
_VOTES = tuple(way for way in WAYS if way.method is not None and way.method.votes)


def best_by(by: Aggregation) -> Way:
    """Return the way that chooses the candidate with the highest score by the rule `by`."""
    return next(way for way in SCORED if way.method == RankingMethod.BEST_OF_N and way.by == by)


@dataclass(frozen=True, eq=False)
class Accuracy:
    """The accuracy of each way of choosing, for each number of candidates.

    `means` holds the fraction of problems for which the choice is right, for each way and each number of candidates
    in `sizes`, with intervals over the problems. They are computed from `rates`, an array of shape (problems,
    ways, sizes) with the ways in the order of `WAYS`. `lacking` maps each way that cannot choose to the reason.
    `problems` counts the problems whose right answer is known, and `unknown` those whose right answer is not.

    `fewer` counts the problems with fewer candidates than the largest size. At larger sizes, all candidates of
    these problems are used, so that every size is measured on the same problems.
    """

    sizes: tuple[int, ...]
    problems: int
    fewer: int
    unknown: int
    means: dict[Way, tuple[Value, ...]]
    rates: Floats64
    lacking: dict[Way, str]
    draws: int = DRAWS

    @property
    def candidates(self) -> int:
        """The largest number of candidates that any problem has."""
        return self.sizes[-1]

    @property
    def shown_sizes(self) -> list[int]:
        """The sizes shown in tables: the powers of two and the largest size."""
        return sizes_up_to(self.candidates, every=0)

    def of_all(self, way: Way) -> Value:
        """Return the accuracy of a way that chooses among all candidates."""
        return self.means[way][-1]

    def best(self, preferred: Way | None = None) -> Way:
        """Return the way that uses scores and is most often right with all candidates.

        If several ways are equally good, return `preferred` if it is one of them, and the first of them otherwise.
        """
        scored = [way for way in SCORED if way not in self.lacking]
        return max(scored, key=lambda way: (self.of_all(way).number, way == preferred))


def differences(pairs: Sequence[tuple[Accuracy, Way, Accuracy, Way]]) -> list[Value]:
    """Return, for each pair of ways, the accuracy of the first minus that of the second, with all candidates.

    The intervals are over the problems, by which the two accuracies are paired. Raises `ValueError` if the
    accuracies of a pair cover different problems.
    """
    if not pairs:
        return []
    columns = []
    for first, way, second, other in pairs:
        if first.rates.shape != second.rates.shape:
            raise ValueError("accuracies of other problems")
        columns.append(first.rates[:, WAYS.index(way), -1] - second.rates[:, WAYS.index(other), -1])
    rates, (accuracy, *_) = np.stack(columns, axis=1), pairs[0]
    draws = weighted_totals(rates, resamples(len(rates), accuracy.draws)) / len(rates)
    values = []
    for place, (first, way, second, other) in enumerate(pairs):
        reason = first.lacking.get(way) or second.lacking.get(other)
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
    lacking = {} if has_answers else dict.fromkeys(_VOTES, _NO_ANSWERS)
    # Shape (problems, ways, sizes).
    rates = np.array([_rates(problem, sizes, ties, lacking) for problem in shown(judged)])
    draws_of = weighted_totals(rates.reshape(len(judged), -1), resamples(len(judged), draws)) / len(judged)
    draws_of = draws_of.reshape(-1, len(WAYS), len(sizes))
    means = {
        way: tuple(
            Value.none(lacking[way])
            if way in lacking
            else interval(Value(float(rates[:, i, j].mean())), draws_of[:, i, j])
            for j in range(len(sizes))
        )
        for i, way in enumerate(WAYS)
    }
    fewer = int((counts < sizes[-1]).sum())
    unknown = len(ranked) - len(judged)
    return Accuracy(sizes, len(judged), fewer, unknown, means, rates, lacking, draws)


def _rates(problem: Ranked, sizes: Sequence[int], ties: Ties, lacking: Mapping[Way, str]) -> Floats64:
    """Return how often each way chooses right over all subsets of a problem's candidates. The result has shape
    (ways, sizes)."""
    correct = problem.correct
    assert correct is not None
    votes = [way for way in _VOTES if way not in lacking]
    rates = {way: np.zeros(len(sizes)) for way in WAYS}
    rates[FIRST] += float(correct[0])
    rates[RANDOM] += float(correct.mean())
    rates[PASS] += [pass_at(correct, size) for size in sizes]
    rates[SHORTEST] += best_of(correct, -problem.sizes.astype(np.float64), sizes, ties)
    for way in SCORED:
        if way.method == RankingMethod.BEST_OF_N and way.by is not None:
            rates[way] += best_of(correct, problem.logs[way.by], sizes, ties)
    if votes:
        ballots = [(way.method, problem.logs[way.by or Aggregation.MIN]) for way in votes if way.method is not None]
        rates |= zip(votes, voted(correct, ballots, problem.groups, sizes, ties), strict=True)
    return np.array([rates[way] for way in WAYS])
