"""Ranking the candidates of each problem, and writing the chosen candidate with the scores of all candidates."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from stepsight.core.arrays import Bools, Floats64, Ints
from stepsight.core.metrics.best_of_n import NO_ANSWER, Aggregation, RankingMethod, choose, log_scores
from stepsight.core.scores import Outputs
from stepsight.training.experiments.reranking.answers import AnswerComparer
from stepsight.training.experiments.reranking.candidates import CandidateScores, CandidateSet

_DIGITS = 6
# Fields of a row that are copied to the output if present.
_KEPT = ("id", "steps", "solution")
_NO_SCORES = dict.fromkeys(Aggregation, -math.inf)


@dataclass(frozen=True, eq=False)
class Ranked:
    """The n candidates of a problem in file order, with their scores, in arrays of shape (n,).

    `logs` holds the log scores by each rule, with -inf for a candidate without scores. `groups` is the same for
    candidates with equal answers. `sizes` holds the number of characters in each candidate's steps. `correct` is
    True for right candidates. It is None if this is unknown for any candidate.
    """

    numbers: tuple[int, ...]
    logs: dict[Aggregation, Floats64]
    groups: Ints
    sizes: Ints
    correct: Bools | None

    @property
    def has_answers(self) -> bool:
        return bool((self.groups != NO_ANSWER).any())


def rank(pool: CandidateSet, scored: Sequence[CandidateScores], answers: AnswerComparer) -> list[Ranked]:
    """Return the candidates of every problem with their scores and answer groups. Problems are in the order of the
    pool."""
    ranked = []
    for problem in pool.problems:
        scores = [scored[number] for number in problem.candidates]
        each = [_NO_SCORES if one is None else log_scores(one) for one in scores]
        logs = {by: np.array([one[by] for one in each]) for by in Aggregation}
        theirs = [pool.candidates[number] for number in problem.candidates]
        groups = np.array(answers.groups([one.answer for one in theirs]), np.int64)
        right_or_not = [one.correct for one in theirs]
        if problem.gold is not None:
            # Answers that are the same are right or wrong together.
            verdicts: dict[int, bool] = {NO_ANSWER: False}
            for one, group in zip(theirs, groups.tolist(), strict=True):
                if group not in verdicts:
                    verdicts[group] = one.answer is not None and answers.same(problem.gold, one.answer)
            right_or_not = [
                verdicts[group] if right is None else right
                for group, right in zip(groups.tolist(), right_or_not, strict=True)
            ]
        decided = [right for right in right_or_not if right is not None]
        correct = np.array(decided, np.bool_) if len(decided) == len(right_or_not) else None
        sizes = np.array([one.size for one in theirs], np.int64)
        ranked.append(Ranked(tuple(problem.candidates), logs, groups, sizes, correct))
    return ranked


def choices(
    pool: CandidateSet,
    scored: Sequence[CandidateScores],
    ranked: Sequence[Ranked],
    method: RankingMethod,
    by: Aggregation,
    outputs: Outputs,
) -> Iterator[dict[str, Any]]:
    """Yield a row for each problem, with the chosen candidate and all candidates.

    The chosen candidate comes with its `score` and text. Every candidate has its answer, its score by each rule,
    and the validity and redundancy of its steps, without redundancy if the evaluator's `outputs` do not include it.
    If the method is a vote, the row also lists the answers with their votes.
    """
    for one in ranked:
        place = choose(method, one.logs[by], one.groups)
        rows = list(pool.read(one.numbers))
        row: dict[str, Any] = {"problem": rows[0]["problem"]} if pool.has_texts else {}
        if rows[0].get("problem_id") is not None:
            row = {"problem_id": rows[0]["problem_id"]} | row
        shown = [_candidate(pool, scored, one, i, outputs) for i in range(len(rows))]
        score = _short(math.exp(one.logs[by][place]))
        chosen = {key: rows[place][key] for key in _KEPT if key in rows[place]}
        row |= {"method": method.value, "by": by.value, "choice": shown[place] | chosen | {"score": score}}
        row["candidates"] = [
            {key: theirs[key] for key in ("id",) if key in theirs} | scores
            for theirs, scores in zip(rows, shown, strict=True)
        ]
        if method.votes:
            row["votes"] = _votes(pool, one, method, by)
        yield row


def _candidate(
    pool: CandidateSet, scored: Sequence[CandidateScores], one: Ranked, place: int, outputs: Outputs
) -> dict[str, Any]:
    candidate, scores = pool.candidates[one.numbers[place]], scored[one.numbers[place]]
    row: dict[str, Any] = {"line": candidate.line, "answer": candidate.answer}
    if one.correct is not None:
        row["correct"] = bool(one.correct[place])
    if scores is None:
        return row | {"too_long": True}
    row |= {by.value: _short(math.exp(one.logs[by][place])) for by in Aggregation}
    row["validity"] = [_short(number) for number in scores.validity.tolist()]
    if outputs == Outputs.THREE_WAY:
        row["redundancy"] = [_short(number) for number in scores.redundancy.tolist()]
    return row


def _votes(pool: CandidateSet, one: Ranked, method: RankingMethod, by: Aggregation) -> list[dict[str, Any]]:
    """Return the answers to a problem with their votes, the answer with the most votes first."""
    votes = []
    for group in sorted(set(one.groups.tolist()) - {NO_ANSWER}):
        places = np.flatnonzero(one.groups == group)
        weight = np.exp(one.logs[by][places]).sum() if method == RankingMethod.WEIGHTED_VOTE else len(places)
        answer = pool.candidates[one.numbers[places[0]]].answer
        votes.append({"answer": answer, "candidates": len(places), "weight": _short(float(weight))})
    return sorted(votes, key=lambda vote: -vote["weight"])


def _short(number: float) -> float:
    """Round to six significant digits, since a product over many steps can be too small for a fixed number of
    decimals."""
    return float(f"{number:.{_DIGITS}g}")
