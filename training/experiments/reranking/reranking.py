"""Choosing among the candidates of a dataset by the stored scores of evaluators, and how often the choice is right.

A file of candidates has one in each line and is imported as a dataset:

    {"problem": "What is 2 + 3?", "solution": "2 + 3 = 6.\\nSo 6.", "answer": "6", "gold": "5"}
    {"problem": "What is 2 + 3?", "steps": ["2 + 3 = 5.", "So 5."], "answer": "5", "gold": "5", "id": "b"}

`answer` defaults to the content of the solution's last box, or to the text after its `####`. `gold` is the right
answer of the problem, and `correct` marks a candidate as right or wrong, whatever its answer. These are stored as
StrictPRMBench names them: `extracted_answer`, `answer`, which pages show as the right answer, and `is_correct`.
Problems are identified by `problem_id` if it is given, and otherwise by their text.

The command, its report and Python code all use this module:

    from stepsight.storage.database.store import open_store
    from stepsight.storage.judgments.evaluators import evaluators_of
    from stepsight.storage.traces.queries import find_dataset
    from stepsight.training.experiments.reranking.reranking import CandidateSet, rerank

    with open_store() as store:
        dataset = find_dataset(store, "strict-prmbench")
        result = rerank(CandidateSet.read(store, dataset), evaluators_of(store, dataset.id))
        result.frame()
"""

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from stepsight.core.errors import UserError
from stepsight.core.files.jsonl import format_trace
from stepsight.core.files.text_lines import stem_of
from stepsight.core.judgment import Mode
from stepsight.core.metrics.best_of_n import (
    NO_ANSWER,
    OFFICIAL_RULES,
    Aggregation,
    RankingMethod,
    Ties,
    choose,
    log_score,
    official_rule,
)
from stepsight.core.metrics.bootstrap import DRAWS
from stepsight.core.scores import Outputs, StepScores
from stepsight.core.trace import Trace, check_text, find_answer
from stepsight.storage.database.store import Store
from stepsight.storage.importers.benchmarks.strict_prmbench import identify
from stepsight.storage.importers.column_mapping import ColumnMap
from stepsight.storage.importers.guesses import rival_columns
from stepsight.storage.importers.rows.kind import Row
from stepsight.storage.judgments.columns import read_gold, read_table
from stepsight.storage.judgments.evaluators import StoredEvaluator, with_distinct_names
from stepsight.storage.traces.queries import Dataset, StoredTrace, iterate_traces, trace_batches
from stepsight.training.experiments.answers import AnswerComparer, answer_of
from stepsight.training.experiments.reranking.accuracy import Accuracy, Ranked, measure
from stepsight.training.experiments.solutions import SOLUTION_TEXT, import_solutions, solution_text

# The field by which StrictPRMBench's rows are recognised, and its names for the fields of a file.
_NUMBER = "candidate_index"
_STORED = {"answer": "extracted_answer", "gold": "answer", "correct": "is_correct"}
_COLUMNS = tuple(ColumnMap(problem="problem", steps=steps) for steps in ("steps", "solution"))


def import_candidates(store: Store, path: Path, dataset: str | None = None, *, skip_bad: bool = False) -> Dataset:
    """Import a file of candidates as a dataset, named after the file by default.

    Raises `UserError` in the same cases as `import_solutions`, and if a row states its answers in a wrong type or
    has other solutions too.
    """
    name = dataset or stem_of(path.resolve())
    return import_solutions(store, {path: _COLUMNS}, name, _with_facts, skip_bad=skip_bad)


def _with_facts(row: Row, columns: ColumnMap, trace: Trace) -> Trace:
    if _NUMBER in row:
        return replace(trace, id=identify(row))
    if "steps" in row and "solution" in row:
        raise UserError("both 'steps' and 'solution' found.", "Each row needs exactly one of them.")
    if columns.steps == "solution" and (rivals := rival_columns([row], "solution")):
        raise UserError(
            f"'solution' and {rivals[0]!r:.60} may each hold the candidates.",
            "Write one candidate in each line, as its 'solution', and leave the other field out.",
        )
    if not isinstance(row.get("correct"), bool | None):
        raise UserError(f"correct is {row['correct']!r:.40}, expected true or false.")
    for key in ("answer", "gold", "problem_id"):
        if row.get(key) is not None and _short_text(row[key]) is None:
            raise UserError(f"{key} is {row[key]!r:.40}, expected a text or a number.")
    id = row.get("id")
    meta = {key: value for key, value in _rename_fields(trace.meta).items() if key != "id"}
    is_named = isinstance(id, str | int) and not isinstance(id, bool)
    return replace(trace, id=check_text(str(id), "the id") if is_named else trace.id, meta=meta)


def _rename_fields(meta: Mapping[str, Any]) -> dict[str, Any]:
    """Return metadata with the names of a file replaced by those that are stored."""
    return {_STORED.get(key, key): value for key, value in meta.items() if value is not None}


def _short_text(value: object) -> str | None:
    """Return a text or number as text, or None if it is empty or something else."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return json.dumps(value)
    return value.strip() or None if isinstance(value, str) else None


@dataclass(frozen=True, slots=True)
class Candidate:
    """The facts about a candidate solution that are kept in memory.

    `line` is its position in the dataset, counted from 1, and `size` the number of characters of its steps.
    `answer` and `correct` are None if unknown.
    """

    trace_id: int
    id: str
    line: int
    size: int
    answer: str | None
    correct: bool | None


@dataclass(slots=True)
class ProblemGroup:
    """A problem with the indices of its candidates, in the order of the dataset, and its right answer if known."""

    text: str
    gold: str | None = None
    candidates: list[int] = field(default_factory=list)


@dataclass(frozen=True, eq=False)
class CandidateSet:
    """The candidates of a dataset, and their problems in order of first occurrence. Texts are not kept."""

    store: Store
    dataset: Dataset
    candidates: tuple[Candidate, ...]
    problems: tuple[ProblemGroup, ...]

    @classmethod
    def read(cls, store: Store, dataset: Dataset) -> "CandidateSet":
        """Read the candidates. Raises `UserError` if traces of a problem disagree about its text or answer."""
        candidates: list[Candidate] = []
        problems: dict[tuple[str, str], ProblemGroup] = {}
        for trace in iterate_traces(store, dataset.id):
            meta = _rename_fields(trace.meta) if trace.meta.keys() & {"gold", "correct"} else trace.meta
            named = _short_text(meta.get("problem_id"))
            key = ("text", trace.problem) if named is None else ("id", named)
            problem = problems.setdefault(key, ProblemGroup(trace.problem))
            gold = find_answer(meta)
            if problem.text != trace.problem:
                raise UserError(
                    f"{dataset.name} {trace.id!r}: the problem {named!r} has a different text in an earlier row.",
                    "Give each problem an id of its own.",
                )
            if gold and problem.gold and gold != problem.gold:
                raise UserError(
                    f"{dataset.name} {trace.id!r}: two right answers, {problem.gold!r:.60} and {gold!r:.60}.",
                    "A problem has one right answer; a candidate's own answer is its extracted_answer.",
                )
            problem.gold = problem.gold or gold
            problem.candidates.append(len(candidates))
            answer = _short_text(meta.get("extracted_answer")) or answer_of(solution_text(trace))
            correct = meta.get("is_correct")
            size = sum(map(len, trace.substeps))
            is_correct = correct if isinstance(correct, bool) else None
            candidates.append(Candidate(trace.trace_id, trace.id, trace.position + 1, size, answer, is_correct))
        return cls(store, dataset, tuple(candidates), tuple(problems.values()))

    def traces(self, numbers: Iterable[int]) -> Iterator[StoredTrace]:
        """Read the candidates with these indices again, with their texts."""
        ids = [self.candidates[number].trace_id for number in numbers]
        return chain.from_iterable(trace_batches(self.store, ids))

    def check_answers(self, method: str) -> None:
        """Raise `UserError` if no candidate has an answer, which the voting `method` counts."""
        if not any(candidate.answer is not None for candidate in self.candidates):
            raise UserError(
                f"{self.dataset.name}: no candidate has an answer, and {method} counts answers.",
                "Give each an answer, or use --method best-of-n.",
            )


OFFICIAL = "official"
"""The name of the rule that each evaluator's authors use."""
_DIGITS = 6

CandidateScores = StepScores | None
"""The scores of a candidate's steps; None if it is too long for the evaluator."""
Shown = Callable[[Sequence[Ranked]], Iterable[Ranked]]


@dataclass(frozen=True, eq=False)
class RankedPool:
    """Candidates ranked by the evaluator called `name`, with the rule `by` that scores a candidate: the `scores` of
    each candidate, the candidates of each problem with them, and the accuracy of every way of choosing, or None if
    no right answer is known."""

    name: str
    by: Aggregation
    outputs: Outputs
    scores: Sequence[CandidateScores]
    ranked: Sequence[Ranked]
    accuracy: Accuracy | None


def rule_of(evaluator: str, by: str) -> Aggregation:
    """Return the rule called `by`, which may stand for the rule of the evaluator's authors. Raises `UserError` if
    they state none."""
    if by != OFFICIAL:
        return Aggregation(by)
    rule = official_rule(evaluator)
    if rule is None:
        names = ", ".join(name for name, *_ in OFFICIAL_RULES)
        raise UserError(
            f"StepSight knows no rule published by the authors of {evaluator!r}.",
            f"Name one with --by. Rules are known for evaluators called {names} and so on.",
        )
    return rule


@dataclass(frozen=True, eq=False)
class Reranking:
    """Candidates ranked by one or more evaluators in a mode. `compared` says how answers were compared, and `ties`
    says how the accuracies treat equally good candidates."""

    pool: CandidateSet
    mode: Mode
    evaluators: tuple[RankedPool, ...]
    compared: str
    ties: Ties

    @property
    def has_answers(self) -> bool:
        """True if the right answer of at least one problem is known."""
        return any(ranking.accuracy is not None for ranking in self.evaluators)

    def choices(self, method: RankingMethod) -> Iterator[dict[str, Any]]:
        """Yield a row for each evaluator and problem, with the chosen candidate and all candidates.

        The chosen candidate comes with its text. Every candidate has its answer, its score, and the validity and
        redundancy of its steps, if the evaluator gives redundancy. If the method is a vote, the row also lists the
        answers with their votes.
        """
        for ranking in self.evaluators:
            places = [choose(method, problem.logs, problem.groups) for problem in ranking.ranked]
            chosen = self.pool.traces(
                problem.numbers[place] for problem, place in zip(ranking.ranked, places, strict=True)
            )
            for problem, place, trace in zip(ranking.ranked, places, chosen, strict=True):
                row: dict[str, Any] = {"evaluator": ranking.name, "mode": self.mode.value}
                if trace.meta.get("problem_id") is not None:
                    row["problem_id"] = trace.meta["problem_id"]
                candidates = [self._candidate(ranking, problem, i) for i in range(len(problem.numbers))]
                text = trace.meta.get(SOLUTION_TEXT)
                solution = {"steps": format_trace(trace)["steps"]} if text is None else {"solution": text}
                row |= {"problem": trace.problem, "method": method.value, "by": ranking.by.value}
                row |= {"choice": candidates[place] | solution, "candidates": candidates}
                if method.votes:
                    row["votes"] = self._votes(problem, method)
                yield row

    def _candidate(self, ranking: RankedPool, problem: Ranked, place: int) -> dict[str, Any]:
        candidate, scores = self.pool.candidates[problem.numbers[place]], ranking.scores[problem.numbers[place]]
        row: dict[str, Any] = {"id": candidate.id, "line": candidate.line, "answer": candidate.answer}
        if problem.correct is not None:
            row["correct"] = bool(problem.correct[place])
        if scores is None:
            return row | {"too_long": True}
        row["score"] = _round_short(math.exp(problem.logs[place]))
        row["validity"] = [_round_short(number) for number in scores.validity.tolist()]
        if ranking.outputs == Outputs.THREE_WAY:
            row["redundancy"] = [_round_short(number) for number in scores.redundancy.tolist()]
        return row

    def _votes(self, problem: Ranked, method: RankingMethod) -> list[dict[str, Any]]:
        """Return the answers to a problem with their votes, the answer with the most votes first."""
        votes = []
        for group in sorted(set(problem.groups.tolist()) - {NO_ANSWER}):
            places = np.flatnonzero(problem.groups == group)
            is_weighted = method == RankingMethod.WEIGHTED_VOTE
            weight = np.exp(problem.logs[places]).sum() if is_weighted else len(places)
            answer = self.pool.candidates[problem.numbers[places[0]]].answer
            votes.append({"answer": answer, "candidates": len(places), "weight": _round_short(float(weight))})
        return sorted(votes, key=lambda vote: -vote["weight"])

    def frame(self) -> pd.DataFrame:
        """Return the accuracies as a data frame.

        Its columns are evaluator, way, n (the number of candidates), accuracy, and low and high, the 95 % interval
        over problems.
        """
        rows = [
            (ranking.name, way.value, size, value.number, value.low, value.high)
            for ranking in self.evaluators
            if ranking.accuracy is not None
            for way, values in ranking.accuracy.means.items()
            for size, value in zip(ranking.accuracy.sizes, values, strict=True)
            if value.exists
        ]
        return pd.DataFrame(rows, columns=["evaluator", "way", "n", "accuracy", "low", "high"])


def rerank(
    pool: CandidateSet,
    evaluators: Iterable[StoredEvaluator],
    mode: Mode = Mode.OFFLINE,
    by: str = Aggregation.MIN.value,
    *,
    skip_missing: bool = False,
    ties: Ties = Ties.RANDOM,
    draws: int = DRAWS,
    shown: Shown = lambda problems: problems,
) -> Reranking:
    """Rank the candidates by the standing judgments of each evaluator with the rule `by`, and measure every way of
    choosing.

    `draws` is the number of resamples for intervals, and `shown` can wrap the problems in a progress bar. Raises
    `UserError` if the authors of an evaluator state no rule but shall, or if a candidate has no scores of its
    steps, unless `skip_missing` is set, with which it is chosen only if nothing else can be.
    """
    gold = read_gold(pool.store, pool.dataset)
    ruled = [(evaluator, rule_of(evaluator.name, by)) for evaluator in with_distinct_names(evaluators)]
    rankings = []
    with AnswerComparer() as answers:
        compared = answers.described
        for evaluator, rule in ruled:
            table = read_table(pool.store, gold, evaluator.id, mode)
            ends = np.searchsorted(table.trace, np.arange(len(gold.ids) + 1)).tolist()
            scores = [
                StepScores(table.probs[start:end])
                if end > start and not np.isnan(table.probs[start:end]).any()
                else None
                for start, end in pairwise(ends)
            ]
            _check_all_scored(f"{evaluator.name}, {mode}", scores, pool, skip_missing)
            ranked = rank(pool, scores, rule, answers)
            accuracy = measure(ranked, draws, shown, ties)
            rankings.append(RankedPool(evaluator.name, rule, evaluator.outputs, scores, ranked, accuracy))
    return Reranking(pool, mode, tuple(rankings), compared, ties)


def rank(
    pool: CandidateSet, scored: Sequence[CandidateScores], by: Aggregation, answers: AnswerComparer
) -> list[Ranked]:
    """Return the candidates of every problem with their scores and answer groups, in the order of the pool."""
    ranked = []
    for problem in pool.problems:
        candidates = [pool.candidates[number] for number in problem.candidates]
        scores = [scored[number] for number in problem.candidates]
        logs = np.array([-math.inf if steps is None else log_score(steps, by) for steps in scores])
        groups = np.array(answers.groups([candidate.answer for candidate in candidates]), np.int64)
        right = [candidate.correct for candidate in candidates]
        if problem.gold is not None:
            # Equal answers are all right or all wrong.
            verdicts: dict[int, bool] = {NO_ANSWER: False}
            for place, group in enumerate(groups.tolist()):
                answer = candidates[place].answer
                if group not in verdicts:
                    verdicts[group] = answer is not None and answers.same(problem.gold, answer)
                right[place] = verdicts[group] if right[place] is None else right[place]
        correct = None if None in right else np.array(right, np.bool_)
        sizes = np.array([candidate.size for candidate in candidates], np.int64)
        ranked.append(Ranked(tuple(problem.candidates), logs, groups, sizes, correct))
    return ranked


def _check_all_scored(
    source: str, scores: Sequence[CandidateScores], pool: CandidateSet, skip_missing: bool
) -> None:
    """Raise `UserError`, naming the first candidate without scores, unless all have some or may lack them."""
    missing = [number for number, steps in enumerate(scores) if steps is None]
    if not missing or (skip_missing and len(missing) < len(scores)):
        return
    count = "" if len(missing) == 1 else f"; {len(missing):,} of {len(scores):,} candidates have none"
    raise UserError(
        f"{source}: no score of the candidate {pool.candidates[missing[0]].id!r} of {pool.dataset.name}{count}.",
        "Every candidate needs one, unless --skip-too-long leaves those without one out.",
    )


def _round_short(number: float) -> float:
    """Round to six significant digits, since a product over many steps can be too small for a fixed number of
    decimals."""
    return float(f"{number:.{_DIGITS}g}")
