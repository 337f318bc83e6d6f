"""Choosing among candidates by the scores of one or more evaluators, and measuring how often the choice is right.

The command, its report and Python code all use this module:

    from pathlib import Path
    from stepsight.core.judgment import Mode
    from stepsight.training.experiments.reranking.candidates import read_candidates
    from stepsight.training.experiments.reranking.pool_scores import read_score_file
    from stepsight.training.experiments.reranking.reranking import rerank

    pool = read_candidates(Path("candidates.jsonl"))
    result = rerank(pool, [read_score_file(Path("scores.jsonl"), pool, Mode.OFFLINE)])
    result.frame()
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from stepsight.core.errors import UserError
from stepsight.core.metrics.best_of_n import Aggregation, RankingMethod, Ties
from stepsight.core.metrics.bootstrap import DRAWS
from stepsight.core.metrics.official_rules import OFFICIAL_RULES, official_rule
from stepsight.training.experiments.reranking.accuracy import WAYS, Accuracy, measure
from stepsight.training.experiments.reranking.answers import AnswerComparer
from stepsight.training.experiments.reranking.candidates import CandidateSet
from stepsight.training.experiments.reranking.choices import Ranked, choices, rank
from stepsight.training.experiments.reranking.pool_scores import EvaluatorScores

OFFICIAL = "official"
"""The name of the rule that each evaluator's authors use."""

Shown = Callable[[Sequence[Ranked]], Iterable[Ranked]]


@dataclass(frozen=True, eq=False)
class RankedPool:
    """A pool ranked by one evaluator: the candidates of each problem with scores, and the accuracy of every way.
    `accuracy` is None if no right answer is known."""

    scored: EvaluatorScores
    ranked: list[Ranked]
    accuracy: Accuracy | None

    @property
    def name(self) -> str:
        return self.scored.evaluator

    def rule(self, by: str) -> Aggregation:
        """Return the rule called `by`, which may stand for the rule of the evaluator's authors. Raises `UserError`
        if `by` stands for the authors' rule and they state none."""
        if by != OFFICIAL:
            return Aggregation(by)
        official = official_rule(self.name)
        if official is None:
            known = ", ".join(rule.names[0] for rule in OFFICIAL_RULES)
            raise UserError(
                f"the authors of {self.name!r} state no rule that is known here.",
                f"Name one with --by; known are those of evaluators called {known} and so on.",
            )
        return official.by


@dataclass(frozen=True, eq=False)
class Reranking:
    """A pool ranked by one or more evaluators. `compared` says how answers were compared, and `ties` says how the
    accuracies treat equally good candidates."""

    pool: CandidateSet
    evaluators: tuple[RankedPool, ...]
    compared: str
    ties: Ties

    @property
    def has_answers(self) -> bool:
        """True if the right answer of at least one problem is known."""
        return any(one.accuracy is not None for one in self.evaluators)

    def choices(self, method: RankingMethod, by: str) -> Iterator[dict[str, Any]]:
        """Yield the rows of `choices.choices` for each evaluator and problem. Raises `UserError` in the same cases
        as `RankedPool.rule`, before the first row."""
        rules = [one.rule(by) for one in self.evaluators]
        return self._choices(method, rules)

    def _choices(self, method: RankingMethod, rules: Sequence[Aggregation]) -> Iterator[dict[str, Any]]:
        for one, by in zip(self.evaluators, rules, strict=True):
            head = {"evaluator": one.name, "mode": one.scored.mode.value}
            for row in choices(self.pool, one.scored.scores, one.ranked, method, by, one.scored.outputs):
                yield head | row

    def frame(self) -> pd.DataFrame:
        """Return the accuracies as a data frame.

        Its columns are evaluator, way, n (the number of candidates), accuracy, and low and high, the 95 % interval
        over problems.
        """
        rows = [
            (one.name, way.key, size, value.number, value.low, value.high)
            for one in self.evaluators
            if one.accuracy is not None
            for way in WAYS
            if way not in one.accuracy.lacking
            for size, value in zip(one.accuracy.sizes, one.accuracy.means[way], strict=True)
        ]
        return pd.DataFrame(rows, columns=["evaluator", "way", "n", "accuracy", "low", "high"])


def rerank(
    pool: CandidateSet,
    scored: Sequence[EvaluatorScores],
    ties: Ties = Ties.RANDOM,
    draws: int = DRAWS,
    shown: Shown = lambda problems: problems,
) -> Reranking:
    """Rank the candidates of a pool by each evaluator's scores, and measure every way of choosing.

    Raises `UserError` if two evaluators have the same name.
    """
    names = [one.evaluator for one in scored]
    for name in names:
        if names.count(name) > 1:
            raise UserError(f"{name!r} has two sets of scores.", "Give each evaluator once.")
    with AnswerComparer() as answers:
        ranked = [rank(pool, one.scores, answers) for one in scored]
        compared = answers.described
    evaluators = tuple(
        RankedPool(one, theirs, measure(theirs, draws, shown, ties))
        for one, theirs in zip(scored, ranked, strict=True)
    )
    return Reranking(pool, evaluators, compared, ties)
