"""Reading existing scores of candidates: from score files, from files kept by an earlier run, and from the store.

Every candidate needs a score. A score file identifies the candidates by their ids, or has one row per candidate in
the same order.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from stepsight.core.errors import UserError
from stepsight.core.files.jsonl import open_input, read_rows
from stepsight.core.judgment import Mode
from stepsight.core.scores import Hindsight, Outputs, StepScores
from stepsight.core.trace import Trace
from stepsight.storage.database.store import Store
from stepsight.storage.exports.frames import named_evaluators
from stepsight.storage.judgments.columns import read_gold, read_table
from stepsight.storage.judgments.score_files import Located, outputs_of, read_scores
from stepsight.storage.traces.queries import find_dataset
from stepsight.training.experiments.reranking.candidates import (
    Candidate,
    CandidateScores,
    CandidateSet,
    stored_candidates,
)

HEAD = ("evaluator", "fingerprint", "mode", "candidates")
"""The keys of the first line of a file of kept scores."""


@dataclass(frozen=True, eq=False)
class EvaluatorScores:
    """An evaluator's scores of every candidate in a pool, in the order of the pool. `unused` counts the rows of the
    score file that belong to no candidate in the pool."""

    evaluator: str
    mode: Mode
    outputs: Outputs
    scores: Sequence[CandidateScores]
    unused: int = 0


def read_score_file(path: Path, pool: CandidateSet, mode: Mode) -> EvaluatorScores:
    """Read an evaluator's scores of a pool, from a score file or from a file kept by an earlier run.

    Hindsight judgments serve both modes, and scores that state no mode are taken to be in `mode`. Raises
    `UserError` if a row is invalid, if an id occurs twice, if a candidate has no scores, or if the scores are in a
    different mode, were made with a step left out, or are not numbers for steps.
    """
    if is_kept(path):
        return _read_kept(path, pool, mode)
    with open_input(path) as file:
        rows, _ = read_scores(file, str(path))
    outputs = outputs_of(rows)
    if rows[0][1].left_out:
        raise UserError(f"{path}: scores with a step left out.", "Name a file with scores of whole candidates.")
    if not _scores_steps(outputs):
        raise UserError(
            f"{path}: holds no scores of steps to choose by.", "Name a file of an evaluator that gives some."
        )
    matched = _match(rows, pool, path)
    traces = pool.traces() if pool.has_texts else iter([None] * len(pool))
    scores = [_by_step(row, trace, mode) for row, trace in zip(matched, traces, strict=True)]
    return EvaluatorScores(rows[0][1].evaluator or path.stem, mode, outputs, scores, len(rows) - len(matched))


def stored_scores(
    store: Store, name: str, evaluators: Sequence[str] | None, mode: Mode
) -> tuple[CandidateSet, list[EvaluatorScores]]:
    """Return the traces of a stored dataset as candidates, with evaluators' scores from the standing judgments.

    `evaluators` lists names; None means all evaluators that have scored steps of the dataset. Raises `UserError` if
    no evaluator has scored steps, if a named evaluator does not score steps, or if a candidate lacks scores.
    """
    dataset = find_dataset(store, name)
    named = named_evaluators(store, dataset, evaluators)
    chosen = [one for one in named if evaluators or _scores_steps(one.outputs)]
    if not chosen:
        raise UserError(
            f"no evaluator has scored the steps of {dataset.name}.",
            f"Score it, stepsight score --dataset {dataset.name}, or import scores.",
        )
    pool, gold = stored_candidates(store, dataset), read_gold(store, dataset)
    found = []
    for evaluator in chosen:
        if not _scores_steps(evaluator.outputs):
            raise UserError(
                f"{evaluator.name} gives no scores of steps to choose by.", "Choose an evaluator that does."
            )
        table = read_table(store, gold, evaluator.id, mode)
        ends = np.searchsorted(table.trace, np.arange(len(gold.ids) + 1))
        scores = [StepScores(table.probs[start:end]) for start, end in pairwise(ends.tolist())]
        lacking = [i for i, one in enumerate(scores) if not len(one) or np.isnan(one.probs).any()]
        _check_all_scored(f"{evaluator.name}, {mode}", lacking, pool)
        found.append(EvaluatorScores(evaluator.name, mode, evaluator.outputs, scores))
    return pool, found


def is_kept(path: Path) -> bool:
    """True if a file was kept by an earlier run, so that its first line identifies the candidates by their hash."""
    with open_input(path) as file:
        first = next(read_rows(file, str(path)), (0, {}))[1]
    return set(HEAD) <= first.keys()


def parse_kept(row: Mapping[str, Any], candidate: Candidate, path: Path) -> CandidateScores:
    """Parse a row of a file kept by an earlier run. Raises `UserError` if it does not have the candidate's line and
    number of steps."""
    try:
        if row["line"] != candidate.line:
            raise ValueError(f"line {row['line']!r:.20} where {candidate.line} belongs")
        if "too_long" in row:
            return None
        scores = StepScores(np.array(row["steps"], np.float32))
        if len(scores) != candidate.steps:
            raise ValueError(f"{len(scores)} scores for the {candidate.steps} steps of line {candidate.line}")
        return scores
    except (KeyError, TypeError, ValueError) as error:
        raise UserError(f"{path}: not a file of scores ({error}).", "Remove it.") from None


def _scores_steps(outputs: Outputs) -> bool:
    """True if an evaluator with these outputs gives a number for each step."""
    return outputs in (Outputs.THREE_WAY, Outputs.VALIDITY)


def _read_kept(path: Path, pool: CandidateSet, mode: Mode) -> EvaluatorScores:
    with open_input(path) as file:
        (_, head), *rows = read_rows(file, str(path))
    if head["candidates"] != pool.digest:
        raise UserError(f"{path}: holds scores of other candidates.", f"Score those of {pool.name}.")
    if head["mode"] != mode:
        raise UserError(f"{path}: holds scores of mode {head['mode']!r:.20}.", "Ask for them with that --mode.")
    scores = [parse_kept(row, candidate, path) for (_, row), candidate in zip(rows, pool.candidates, strict=False)]
    _check_all_scored(str(path), range(len(scores), len(pool)), pool)
    redundant = any(one is not None and one.redundancy.any() for one in scores)
    outputs = Outputs.THREE_WAY if redundant else Outputs.VALIDITY
    return EvaluatorScores(str(head["evaluator"]), mode, outputs, scores)


def _match(rows: list[Located], pool: CandidateSet, path: Path) -> list[Located]:
    """Return the row of each candidate. Rows are matched by id or, in a file without ids, by order."""
    if rows[0][1].id is None or all(candidate.id is None for candidate in pool.candidates):
        if len(rows) != len(pool):
            raise UserError(
                f"{path}: {len(rows):,} rows for {len(pool):,} candidates of {pool.name}, and no ids to match by.",
                "Check that the file belongs to these candidates.",
            )
        return rows
    named: dict[str, Located] = {}
    for where, row in rows:
        assert row.id is not None
        if row.id in named:
            raise UserError(f"{where}: the id {row.id!r} is used earlier in the file.", "Give each its own.")
        named[row.id] = where, row
    first: dict[str, int] = {}
    for candidate in pool.candidates:
        if candidate.id is not None and first.setdefault(candidate.id, candidate.line) != candidate.line:
            raise UserError(
                f"{pool.place(candidate)}: the id {candidate.id!r} is used earlier in the file.",
                "Give each its own.",
            )
    _check_all_scored(str(path), [i for i, one in enumerate(pool.candidates) if one.id not in named], pool)
    return [named[candidate.id] for candidate in pool.candidates if candidate.id is not None]


def _check_all_scored(source: str, lacking: Sequence[int], pool: CandidateSet) -> None:
    """Raise `UserError`, naming the first of the candidates `lacking` scores, unless `lacking` is empty."""
    if not lacking:
        return
    missing = set(lacking)
    problem = next(one for one in pool.problems if lacking[0] in one.candidates)
    candidate = pool.candidates[lacking[0]]
    named = (
        f"{candidate.id!r} ({pool.place(candidate)})" if candidate.id and pool.of_file else pool.place(candidate)
    )
    whole = len(problem.candidates) > 1 and missing.issuperset(problem.candidates)
    also = ", nor of any other of its problem" if whole else ""
    count = "" if len(lacking) == 1 else f"; {len(lacking):,} of {len(pool):,} candidates have none"
    raise UserError(
        f"{source}: no score of the candidate {named}{also}{count}.",
        "Every candidate needs one: add it, or take the candidate out of the pool.",
    )


def _by_step(located: Located, trace: Trace | None, mode: Mode) -> StepScores:
    """Return the scores of a row in the mode `mode`, one per step of its candidate.

    `trace` is the candidate's text, or None if it is unknown.
    """
    where, row = located
    try:
        if row.mode not in (None, mode, Mode.HINDSIGHT):
            raise UserError(f"scores of mode {row.mode}.", f"Ask for them with --mode {row.mode}.")
        if trace is None:
            if row.rows is None:
                raise UserError("a judgment needs the text of its candidate.", "Name the file of candidates too.")
            return StepScores(row.rows)
        scores = row.scores(trace)
        if isinstance(scores, Hindsight):
            scores = scores.online if mode == Mode.ONLINE else scores.offline
        if not scores.probs.sum(axis=1, dtype=np.float32).all():
            raise UserError("a step without a score.", "Every step of a candidate needs one.")
        return scores.by_step(trace.owners)
    except UserError as error:
        raise error.at(where) from None
