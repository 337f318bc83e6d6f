"""Scoring candidates and keeping the scores in a file.

With this file, an interrupted run can be resumed, and other ways of choosing can be tried without the evaluator.
The first line identifies the evaluator and the candidates. A line for each candidate follows, in order:

    {"evaluator": "mini-bidir", "fingerprint": "5b1…", "mode": "offline", "candidates": "e3b0…"}
    {"line": 1, "steps": [[0.91, 0.04, 0.05], [0.2, 0.1, 0.7]]}
    {"line": 2, "too_long": "trace 'candidates.jsonl line 2' has 5,012 tokens, mini-bidir reads at most 4,096."}
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from stepsight.core.errors import UserError
from stepsight.core.judgment import Judgment, Mode
from stepsight.core.scores import StepScores
from stepsight.core.scoring.scorer import Scorer
from stepsight.core.trace import Trace
from stepsight.training.experiments.reranking.candidates import CandidateScores, CandidateSet
from stepsight.training.experiments.reranking.pool_scores import parse_kept
from stepsight.training.runs.folder import locked
from stepsight.training.runs.row_file import RowFile

Shown = Callable[[Iterator[CandidateScores], int], Iterator[CandidateScores]]
"""Wraps an iteration over a known number of scores, for example in a progress bar."""


def score_candidates(
    scorer: Scorer,
    pool: CandidateSet,
    mode: Mode,
    path: Path | None,
    skip: Callable[[UserError], None] | None = None,
    shown: Shown = lambda scores, count: scores,
) -> list[CandidateScores]:
    """Return the scores of every candidate, one row per step, and keep them in the file `path`.

    Scores already in the file are not computed again, and a resumed run gives the same scores as an uninterrupted
    one. If `path` is None, no file is used. A candidate that is longer than the evaluator's context raises
    `UserError` or, with `skip`, is reported and left without scores. Also raises `UserError` if the file belongs to
    other candidates or a different evaluator, cannot be written, or is being written by a different process.
    """
    if path is None:
        return list(shown(_score(scorer, pool, mode, 0, None, skip), len(pool)))
    head = {
        "evaluator": scorer.evaluator.name,
        "fingerprint": scorer.evaluator.fingerprint,
        "mode": mode.value,
        "candidates": pool.digest,
    }
    with RowFile(path) as file, locked(path.with_name(f"{path.name}.lock"), path):
        scores = _read(file, head, pool, scorer.window)
        if scores:
            file.keep(1 + len(scores))
        else:
            file.keep(0)
            file.add([head])
        missing = _score(scorer, pool, mode, len(scores), file, skip)
        return scores + list(shown(missing, len(pool) - len(scores)))


def _score(
    scorer: Scorer,
    pool: CandidateSet,
    mode: Mode,
    start: int,
    file: RowFile | None,
    skip: Callable[[UserError], None] | None,
) -> Iterator[CandidateScores]:
    """Score the candidates from index `start` on, and write each to the file as soon as it is scored."""
    too_long: dict[str, str] = {}

    def on_skip(trace: Trace, error: UserError) -> None:
        assert skip is not None
        skip(error)
        too_long[trace.id] = error.message

    judgments = scorer.score(pool.traces(start), mode, None if skip is None else on_skip)
    judgment = next(judgments, None)
    for candidate in pool.candidates[start:]:
        scores = None
        row: dict[str, Any] = {"line": candidate.line}
        name = pool.place(candidate)
        if judgment is not None and judgment.trace.id == name:
            scores = _by_step(judgment)
            # Nine digits are enough to give the same float32 again.
            row["steps"] = [[float(f"{number:.9g}") for number in probs] for probs in scores.probs.tolist()]
            judgment = next(judgments, None)
        else:
            row["too_long"] = too_long[name]
        if file is not None:
            file.add([row])
        yield scores


def _by_step(judgment: Judgment) -> StepScores:
    scores = judgment.result
    assert isinstance(scores, StepScores)
    return scores.by_step(judgment.trace.owners)


def _read(file: RowFile, head: dict[str, Any], pool: CandidateSet, window: int) -> list[CandidateScores]:
    """Return the scores in the file, up to the last complete window of the scorer. Candidates scored in the same
    window affect each other's last digit, so a partial window is scored again."""
    rows = iter(file)
    first = next(rows, None)
    if first is None:
        if not file.is_empty:
            raise UserError(f"{file.path}: not a file of scores.", "Name another file for the scores.")
        return []
    _check_head(first, head, file.path)
    whole = _whole_windows(list(rows)[: len(pool)], window, len(pool))
    return [parse_kept(row, candidate, file.path) for row, candidate in zip(whole, pool.candidates, strict=False)]


def _check_head(first: dict[str, Any], head: dict[str, Any], path: Path) -> None:
    differing = [key for key in head if first.get(key) != head[key]]
    if not differing:
        return
    other = {"candidates": "of other candidates", "mode": f"of mode {first.get('mode')!r:.20}"}.get(
        differing[0], f"of another evaluator, {first.get('evaluator')!r:.60}"
    )
    raise UserError(f"{path}: holds scores {other}.", "Remove it, or name another file with --scores.")


def _whole_windows(rows: list[dict[str, Any]], window: int, expected: int) -> list[dict[str, Any]]:
    if len(rows) == expected:
        return rows
    ends = np.flatnonzero(["steps" in row for row in rows])
    whole = len(ends) // window * window
    return rows[: int(ends[whole - 1]) + 1] if whole else []
