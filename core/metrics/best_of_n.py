"""Best-of-n: choosing one of several solutions to a problem by score or by vote, and how often the choice is right.

All computations use logarithms, so that the product over a long solution does not underflow. The accuracy with `k`
of `n` candidates is the mean over all subsets of size `k`, an unbiased estimate that uses every candidate. Ties
count as a random choice by default, since choosing the first tied candidate would also measure the order of the
candidates.

`OFFICIAL_RULES` holds the rules by which the authors of evaluators score whole solutions. An evaluator is
recognised by its name, as spelled on the model hub, in StrictPRMBench's score files, or in the catalogue. Case,
owner, and the choice of hyphens or underscores make no difference.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from itertools import combinations
from math import comb

import numpy as np
from numpy.typing import ArrayLike

from stepsight.core.arrays import Bools, Floats64, Ints
from stepsight.core.scores import StepScores

NO_ANSWER = -1
"""The group of a candidate without an answer."""
MOST_SUBSETS = 1000
"""If there are more subsets than this, that many are drawn at random instead."""
EVERY_SIZE = 64
"""Accuracy is given for every number of candidates up to this one, and beyond it for powers of two."""

# Used as the logarithm of 0 where numbers have to be finite.
_LOWEST = -1e300
# Sums of weights below this may have lost some of the weights to rounding.
_VANISHING = 1e-280


class Aggregation(StrEnum):
    """The rule by which the validities of the steps combine into a solution's score.

    The score is the minimum (Wang et al. 2024, Math-Shepherd), the product, i.e. the probability that all steps are
    valid (Lightman et al. 2023), the validity of the last step (Snell et al. 2024), or the geometric or arithmetic
    mean, which do not penalise long solutions. Like validity itself, Lightman et al. count neutral steps as good.
    """

    MIN = "min"
    PRODUCT = "product"
    LAST = "last"
    GEOMETRIC_MEAN = "geometric-mean"
    MEAN = "mean"

    @property
    def words(self) -> str:
        return self.value.replace("-", " ")


class RankingMethod(StrEnum):
    """The rule by which one of several solutions is chosen.

    - best-of-n: the solution with the best score.
    - weighted-vote: the answer whose solutions have the largest total score (Li et al. 2023).
    - majority: the answer that most solutions give, regardless of score (Wang et al. 2023).
    """

    BEST_OF_N = "best-of-n"
    WEIGHTED_VOTE = "weighted-vote"
    MAJORITY = "majority"

    @property
    def votes(self) -> bool:
        return self != RankingMethod.BEST_OF_N


class Ties(StrEnum):
    """The way ties between candidates are counted: as if one of them were chosen at random, or as if the first were
    chosen."""

    RANDOM = "random"
    FIRST = "first"


def log_score(scores: StepScores, rule: Aggregation) -> float:
    """Return the logarithm of a solution's score, which is -inf for a score of 0.

    Sums are rounded only once, so that solutions with the same validities in a different order tie. Raises
    `ValueError` if there are no steps.
    """
    if not len(scores):
        raise ValueError("a solution without steps has no score")
    # Rounding can lift the sum of two probabilities above 1.
    validity = np.clip(scores.validity.astype(np.float64), 0.0, 1.0)
    with np.errstate(divide="ignore"):
        if rule == Aggregation.MEAN:
            return float(np.log(math.fsum(validity.tolist()) / len(validity)))
        logs = np.log(validity)
    if rule == Aggregation.MIN:
        return float(logs.min())
    if rule == Aggregation.LAST:
        return float(logs[-1])
    total = math.fsum(logs.tolist())
    return total if rule == Aggregation.PRODUCT else total / len(logs)


def choose(method: RankingMethod, logs: ArrayLike, groups: ArrayLike) -> int:
    """Return the index of the chosen candidate. In a tie, the first one is chosen.

    `logs` and `groups` have the shape (n,). `logs` holds the candidates' log scores. `groups` holds equal numbers
    for equal answers, and `NO_ANSWER` for candidates without an answer. The winning answer is represented by its
    best-scored candidate in a weighted vote, and by its first candidate in a majority vote. If answers tie, the
    answer that occurs first wins. If no candidate has an answer, every candidate counts as a separate answer.
    Raises `ValueError` if there is no candidate.
    """
    scored = np.asarray(logs, np.float64)
    if not len(scored):
        raise ValueError("there is no candidate to choose")
    if method == RankingMethod.BEST_OF_N:
        return int(scored.argmax())
    ballots = Ballots.of(method, scored, np.asarray(groups, np.int64), np.arange(len(scored))[None])
    return int(ballots.first()[0])


@dataclass(frozen=True, eq=False)
class Ballots:
    """The votes held in `m` subsets of a problem's candidates, each of size `k`.

    `answers` has the shape (m, k) and holds the answer of each candidate in each subset, numbered from 0 across the
    whole problem. `won` has the shape (m, answers) and marks the answer with the most votes, or several in a tie.
    `stands` has the shape (m, k) and marks the candidates that represent their answer: the best-scored one in a
    weighted vote, all of them in a majority vote.
    """

    answers: Ints
    won: Bools
    stands: Bools

    @classmethod
    def of(cls, method: RankingMethod, logs: Floats64, groups: Ints, subsets: Ints) -> "Ballots":
        """Hold a vote in each subset of the candidates.

        `logs` and `groups` describe the candidates as in `choose`. `subsets` has the shape (m, k) and holds indices
        of candidates.
        """
        weighted = method == RankingMethod.WEIGHTED_VOTE
        scored = np.maximum(logs, _LOWEST)[subsets] if weighted else np.zeros(subsets.shape)
        answers = _number(groups)[subsets]
        rows = np.arange(len(subsets))
        totals = np.full((len(subsets), int(answers.max()) + 1), -1.0)
        best = np.full(totals.shape, -np.inf)
        # A candidate without an answer does not vote, unless no candidate has an answer.
        silent = (groups == NO_ANSWER)[subsets]
        counts = ~silent | silent.all(axis=1, keepdims=True)
        # Relative to the best candidate that votes; relative to one that does not, all weights could vanish.
        highest = np.where(counts, scored, -np.inf).max(axis=1, keepdims=True)
        weights = np.exp(np.minimum(scored - highest, 0.0))
        for place in range(subsets.shape[1]):
            cells = rows, answers[:, place]
            votes = np.maximum(totals[cells], 0.0) + weights[:, place]
            totals[cells] = np.where(counts[:, place], votes, totals[cells])
            best[cells] = np.maximum(best[cells], scored[:, place])
        won = totals == totals.max(axis=1, keepdims=True)
        return cls(answers, won, scored == best[rows[:, None], answers])

    def first(self) -> Ints:
        """Return the position of the chosen candidate within each subset, with shape (m,). In a tie, the first one
        is chosen."""
        rows = np.arange(len(self.answers))
        is_elected = self.won[rows[:, None], self.answers]
        leading = self.answers[rows, is_elected.argmax(axis=1)]
        return (self.stands & (self.answers == leading[:, None])).argmax(axis=1)

    def right(self, correct: Bools, ties: Ties = Ties.RANDOM) -> Floats64:
        """Return the probability that the chosen candidate of each subset is correct, with shape (m,). `correct`
        has the shape (m, k) and marks the correct candidates in each subset."""
        rows = np.arange(len(self.answers))
        if ties == Ties.FIRST:
            return correct[rows, self.first()].astype(np.float64)
        candidates, hits = np.zeros(self.won.shape), np.zeros(self.won.shape)
        for place in range(self.answers.shape[1]):
            cells = rows, self.answers[:, place]
            candidates[cells] += self.stands[:, place]
            hits[cells] += self.stands[:, place] & correct[:, place]
        shares = np.divide(hits, candidates, out=np.zeros(hits.shape), where=candidates > 0)
        return (shares * self.won).sum(axis=1) / self.won.sum(axis=1)


def sizes_up_to(most: int, every: int = EVERY_SIZE) -> list[int]:
    """Return the subset sizes to measure: all sizes from 1 to `every`, then powers of two, and finally `most`. No
    size exceeds `most`."""
    powers = {1 << power for power in range(most.bit_length())}
    return sorted(powers | set(range(1, min(every, most) + 1)) | {most}) if most > 0 else []


def best_of(correct: Bools, logs: Floats64, sizes: Sequence[int], ties: Ties = Ties.RANDOM) -> Floats64:
    """Return, for each size, the share of subsets whose best-scored candidate is correct, with shape (sizes,).

    With candidates in ascending order of score, candidate `i` is the best in C(i - 1, k - 1) of the C(n, k) subsets
    of size `k` (Hilton and Gao 2022, "Measuring Goodhart's law"). If a size exceeds the number of candidates, all
    candidates are used.
    """
    count = len(logs)
    # The first of equal candidates comes last, where it is the best.
    order = np.lexsort((-np.arange(count), logs))
    shares = correct[order].astype(np.float64)
    if ties == Ties.RANDOM:
        first, place = np.unique(logs[order], return_index=True, return_inverse=True)[1:]
        # Each of several equal candidates is the best one equally often.
        shares = (np.add.reduceat(shares, first) / np.diff([*first, count]))[place]
    return _best_weights(count, tuple(min(size, count) for size in sizes)) @ shares


def pass_at(correct: Bools, size: int) -> float:
    """Return the share of subsets of `size` candidates that contain at least one correct candidate.

    With `c` correct candidates among `n`, this is 1 - C(n - c, size) / C(n, size) (Chen et al. 2021), an upper
    bound for every ranking method.
    """
    count, size = len(correct), min(size, len(correct))
    return 1.0 - comb(count - int(correct.sum()), size) / comb(count, size)


def voted(
    correct: Bools,
    votes: Sequence[tuple[RankingMethod, Floats64]],
    groups: Ints,
    sizes: Sequence[int],
    ties: Ties = Ties.RANDOM,
) -> Floats64:
    """Return, for each vote and size, the share of subsets in which the vote chooses a correct candidate.

    A vote is given as a ranking method and the candidates' log scores of shape (n,). The result has the shape
    (votes, sizes). It covers all subsets of a size or, if there are more than `MOST_SUBSETS`, that many chosen at
    random with a fixed seed, which is also unbiased.
    """
    count, answers = len(groups), _number(groups)
    right = np.bincount(answers, correct) / np.bincount(answers)
    # The votes of each candidate for each answer, with all kinds of votes side by side: shape (n, votes * answers).
    weights = np.stack([_weights(method, logs, groups) for method, logs in votes], axis=1)
    votes_by_answer = (weights[:, :, None] * (answers[:, None, None] == np.arange(len(right)))).reshape(count, -1)
    rates = np.empty((len(votes), len(sizes)))
    for column, size in enumerate(min(size, count) for size in sizes):
        totals = (_members(count, size) @ votes_by_answer).reshape(-1, len(votes), len(right))
        highest = totals.max(axis=2, keepdims=True)
        is_winner = totals == highest
        chances = (is_winner * right).sum(axis=2) / is_winner.sum(axis=2)
        # Computed one by one if nobody votes, weights have all but vanished, or an answer is both right and wrong.
        recount = highest[..., 0] < _VANISHING
        if ties == Ties.FIRST:
            recount |= is_winner.sum(axis=2) > 1
        if not np.isin(right, (0.0, 1.0)).all():
            recount[:] = True
        for row, (method, logs) in enumerate(votes):
            subsets = _subsets(count, size)[recount[:, row]]
            if len(subsets):
                one_by_one = Ballots.of(method, logs, groups, subsets).right(correct[subsets], ties)
                chances[recount[:, row], row] = one_by_one
        rates[:, column] = chances.mean(axis=0)
    return rates


def _weights(method: RankingMethod, logs: Floats64, groups: Ints) -> Floats64:
    """Return the weight of each candidate in a vote by `method`. It is 0 for a candidate without an answer."""
    voting = groups != NO_ANSWER
    if method == RankingMethod.MAJORITY:
        return np.array(voting, np.float64)
    scored = np.maximum(logs, _LOWEST)
    weights: Floats64 = np.exp(np.minimum(scored - scored[voting].max(initial=_LOWEST), 0.0))
    weights[~voting] = 0.0
    return weights


@lru_cache(maxsize=256)
def _best_weights(count: int, sizes: tuple[int, ...]) -> Floats64:
    rows = [[comb(below, size - 1) / comb(count, size) for below in range(count)] for size in sizes]
    return np.array(rows, np.float64)


@lru_cache(maxsize=256)
def _members(count: int, size: int) -> Floats64:
    """Return the same subsets as `_subsets`, each as a row of `count` zeros and ones. The result has the shape (m,
    count)."""
    subsets = _subsets(count, size)
    members = np.zeros((len(subsets), count))
    members[np.arange(len(subsets))[:, None], subsets] = 1.0
    return members


@lru_cache(maxsize=256)
def _subsets(count: int, size: int) -> Ints:
    """Return subsets of `size` indices below `count`, each in ascending order, with shape (m, size). These are all
    subsets, or `MOST_SUBSETS` random ones if there are more."""
    if comb(count, size) <= MOST_SUBSETS:
        return np.array(list(combinations(range(count), size)), np.int64)
    order = np.random.default_rng([count, size]).random((MOST_SUBSETS, count)).argsort(axis=1)
    return np.sort(order[:, :size], axis=1).astype(np.int64)


def _number(groups: Ints) -> Ints:
    """Number the distinct answers from 0 and return the number of each candidate. Every candidate without an answer
    gets a number of its own."""
    unanswered = groups == NO_ANSWER
    distinct = groups.astype(np.int64)
    distinct[unanswered] = groups.max(initial=0) + 1 + np.arange(int(unanswered.sum()))
    return np.unique(distinct, return_inverse=True)[1]


OFFICIAL_RULES = {
    # Wang et al. 2024, Math-Shepherd (arXiv 2312.08935): the lowest score of the steps.
    ("math-shepherd",): Aggregation.MIN,
    # SkyworkAI/skywork-o1-prm-inference: the average over the steps.
    ("skywork",): Aggregation.MEAN,
    # RLHFlow/RLHF-Reward-Modeling, math-rm: the average over the steps.
    ("rlhflow", "llama3.1-8b-prm"): Aggregation.MEAN,
    # Zhang et al. 2025, The Lessons of Developing PRMs (arXiv 2501.07301): the product of the steps' scores.
    ("qwen-prm", "qwen-math-prm", "qwen2.5-math-prm", "qwen2.5-math-7b-prm800k"): Aggregation.PRODUCT,
    # Cai et al. 2024, InternLM2 (arXiv 2403.17297): a reward of the whole conversation, read at its end.
    ("internlm2",): Aggregation.LAST,
}
"""The rules as StrictPRMBench applies them in its column `official`, by the beginnings of evaluators' names."""


def official_rule(evaluator: str) -> Aggregation | None:
    """Return the rule of the evaluator's authors, or None if they state none."""
    name = evaluator.rpartition("/")[2].lower().replace("_", "-")
    return next((rule for names, rule in OFFICIAL_RULES.items() if name.startswith(names)), None)
