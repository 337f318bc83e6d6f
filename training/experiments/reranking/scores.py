"""The scores of candidates as a file that grows: a run that was stopped goes on from it, and one that chooses in
another way needs no evaluator's pass.

The first line says whose scores of which candidates they are, then each has a line, in order:

    {"evaluator": "mini-bidir", "fingerprint": "5b1…", "mode": "offline", "candidates": "e3b0…"}
    {"line": 1, "steps": [[0.91, 0.04, 0.05], [0.2, 0.1, 0.7]]}
    {"line": 2, "too_long": "trace 'candidates.jsonl line 2' has 5,012 tokens, mini-bidir reads at most 4,096."}
"""

import fcntl
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np

from stepsight.core.errors import UserError
from stepsight.core.judgment import Judgment, Mode
from stepsight.core.scores import StepScores
from stepsight.core.scoring.scorer import Scorer
from stepsight.core.trace import Trace
from stepsight.training.experiments.reranking.candidates import Pool

Scored = StepScores | None
"""The scores of a candidate's steps; None where it is too long for the evaluator."""

Watch = Callable[[Iterator[Scored], int], Iterator[Scored]]
"""Goes through scores, of which there will be so many, such as under a progress bar."""


def score_pool(
    scorer: Scorer,
    pool: Pool,
    mode: Mode,
    path: Path | None,
    skip: Callable[[UserError], None] | None = None,
    watch: Watch = lambda scores, count: scores,
) -> list[Scored]:
    """The scores of every candidate, one row per step; those that the file at `path` has are not computed again.

    A run that was stopped and goes on gives the scores of one that was not. Raises `UserError` at a candidate
    longer than the evaluator's context, which with `skip` is told and left without scores, and where the file holds
    scores of something else, cannot be written, or another process writes it.
    """
    head = {
        "evaluator": scorer.evaluator.name,
        "fingerprint": scorer.evaluator.fingerprint,
        "mode": mode.value,
        "candidates": pool.digest,
    }
    with _held(path) as file:
        found = [] if path is None else _read(path, head, pool, scorer.window)
        if file is not None:
            _cut(file, head, len(found))
        for scored in watch(_score(scorer, pool, mode, len(found), file, skip), len(pool.candidates) - len(found)):
            found.append(scored)
    return found


def _score(
    scorer: Scorer,
    pool: Pool,
    mode: Mode,
    start: int,
    file: IO[str] | None,
    skip: Callable[[UserError], None] | None,
) -> Iterator[Scored]:
    """Score the candidates from number `start` on, and write them as they come."""
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
        name = f"{pool.path} line {candidate.line}"
        if judgment is not None and judgment.trace.id == name:
            scores = _by_step(judgment)
            # Nine digits are enough to give the same float32 again.
            row["steps"] = [[float(f"{number:.9g}") for number in probs] for probs in scores.probs.tolist()]
            judgment = next(judgments, None)
        else:
            row["too_long"] = too_long[name]
        if file is not None:
            file.write(json.dumps(row) + "\n")
            file.flush()
        yield scores


def _by_step(judgment: Judgment) -> StepScores:
    scores = judgment.result
    assert isinstance(scores, StepScores)
    return scores.by_step(judgment.trace.owners)


def _read(path: Path, head: dict[str, Any], pool: Pool, window: int) -> list[Scored]:
    """What the file holds, up to the end of the last window of the scorer's that is in it whole: what is scored
    together decides the last digit of a score. A line that was cut off counts as not written."""
    try:
        with open(path, encoding="utf-8") as file:
            first = _line(next(file, ""))
            rows = [] if first is None else list(_rows(file))
    except FileNotFoundError:
        return []
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: cannot be read ({error}).", "Name another file for the scores.") from None
    if first is None:
        if os.path.getsize(path):
            raise UserError(f"{path}: not a file of scores.", "Name another file for the scores.")
        return []
    for key, expected in head.items():
        if first.get(key) != expected:
            told = {"candidates": "of other candidates", "mode": f"of mode {first.get('mode')!r:.20}"}
            other = told.get(key, f"of another evaluator, {first.get('evaluator')!r:.60}")
            raise UserError(f"{path}: holds scores {other}.", "Remove it, or name another file with --scores.")
    kept = _whole_windows(rows[: len(pool.candidates)], window, len(pool.candidates))
    return [_scored(row, candidate.line, path) for row, candidate in zip(kept, pool.candidates, strict=False)]


def _whole_windows(rows: list[dict[str, Any]], window: int, expected: int) -> list[dict[str, Any]]:
    if len(rows) == expected:
        return rows
    ends = np.flatnonzero(["steps" in row for row in rows])
    whole = len(ends) // window * window
    return rows[: int(ends[whole - 1]) + 1] if whole else []


def _rows(file: IO[str]) -> Iterator[dict[str, Any]]:
    for text in file:
        row = _line(text)
        if row is None:
            return
        yield row


def _line(text: str) -> dict[str, Any] | None:
    if not text.endswith("\n"):
        return None
    try:
        row = json.loads(text)
    except ValueError:
        return None
    return row if isinstance(row, dict) else None


def _scored(row: dict[str, Any], line: int, path: Path) -> Scored:
    try:
        if row["line"] != line:
            raise ValueError(f"line {row['line']!r:.20} where {line} belongs")
        return None if "too_long" in row else StepScores(np.array(row["steps"], np.float32))
    except (KeyError, TypeError, ValueError) as error:
        raise UserError(f"{path}: not a file of scores ({error}).", "Remove it.") from None


def _cut(file: IO[str], head: dict[str, Any], rows: int) -> None:
    """Cut the file off after its head and so many rows, to be written on."""
    file.seek(0)
    for _ in range(rows + 1 if rows else 0):
        file.readline()
    file.truncate(file.tell())
    if not rows:
        file.write(json.dumps(head) + "\n")


@contextmanager
def _held(path: Path | None) -> Iterator[IO[str] | None]:
    """The file, held by this process alone."""
    if path is None:
        yield None
        return
    try:
        with open(path, "a+", encoding="utf-8") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise UserError(f"{path}: another process is at it.", "Wait until it has ended.") from None
            yield file
    except OSError as error:
        raise UserError(f"{path}: cannot be written ({error.strerror}).", "Choose another file.") from None
