"""Scoring a pool chunk by chunk.

Every row is checked first, so that a bad row is reported at once rather than after hours.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch

from stepsight.core.errors import UserError
from stepsight.core.models.evaluator_base import Evaluator
from stepsight.core.scores import Outputs, StepScores, judge_solution
from stepsight.core.scoring.packed import PackedForward
from stepsight.core.scoring.scorer import Scorer
from stepsight.training.experiments.filtering.pool import BadRow, Chunks, Entry, Overlap, Pool, Solution
from stepsight.training.experiments.filtering.scores import OverlappingRow, ScoredRow, ScoreRow, UnscoredRow
from stepsight.training.runs.progress import Watch

CHUNK = 128
"""The number of rows scored and stored together: small enough to lose little, large enough to fill a GPU's
batches."""
SHOWN = 5
"""The number of bad rows that an error names."""
_NO_FAULT = np.array([0.0, 0.0, 1.0], np.float32)


class ChunkScorer:
    """A callable that scores a chunk of the pool and returns its rows for the score file.

    The scores of a solution do not depend on what was scored before. With
    the fast forward pass on a CPU, they are also identical to the last bit for any number of threads.
    """

    def __init__(self, pool: Pool, scorer: Scorer, size: int = CHUNK) -> None:
        self._chunks, self._size = Chunks(pool, size), size
        self._evaluator = scorer.evaluator
        self._scorer = scorer

    def __call__(self, number: int) -> list[ScoreRow]:
        """Score the chunk with the index `number`, counted from 0."""
        return list(self._score(self._chunks[number], number * self._size + 1))

    def _score(self, entries: list[Entry], first: int) -> Iterator[ScoreRow]:
        reasons = [fault(entry, self._evaluator) for entry in entries]
        good = [entry for entry, reason in zip(entries, reasons, strict=True) if reason is None]
        traces = [entry.trace for entry in good if isinstance(entry, Solution)]
        forward = self._scorer.forward
        with _one_thread(isinstance(forward, PackedForward) and forward.is_prepared):
            judgments = iter(list(self._scorer.score(traces)))
        for row, (entry, reason) in enumerate(zip(entries, reasons, strict=True), start=first):
            if isinstance(entry, Overlap):
                yield OverlappingRow(row, entry.benchmark)
                continue
            if reason is not None or not isinstance(entry, Solution):
                yield UnscoredRow(row, str(reason))
                continue
            scores = next(judgments).offline
            assert scores is not None
            if self._evaluator.outputs.in_words:
                # Steps that it does not judge count as faultless.
                scores = StepScores(np.where(scores.probs.sum(axis=1, keepdims=True) > 0, scores.probs, _NO_FAULT))
            verdict = judge_solution(scores)
            redundancy = verdict.redundancy if self._evaluator.outputs == Outputs.THREE_WAY else None
            yield ScoredRow(row, entry.digest, len(scores), verdict.validity, redundancy)


def fault(entry: Entry, evaluator: Evaluator) -> UserError | None:
    """Return the error of a row that cannot be scored, or None if the row can be scored or overlaps a benchmark. A
    row cannot be scored if it does not hold a solution or exceeds the evaluator's context."""
    if isinstance(entry, BadRow):
        return entry.error
    if isinstance(entry, Overlap):
        return None
    try:
        evaluator.encode(entry.trace)
    except UserError as error:
        return UserError(f"{entry.where}: {error.message}")
    return None


@contextmanager
def _one_thread(wanted: bool) -> Iterator[None]:
    """If `wanted` is True, make PyTorch use a single thread within the `with` block. The fast forward pass has its
    own threads, and the last bit of its results depends on PyTorch's thread count."""
    before = torch.get_num_threads()
    if wanted:
        torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def check_pool(pool: Pool, evaluator: Evaluator, skip_bad: bool, watch: Watch) -> int:
    """Check every row of the pool and return the number of rows.

    Raises `UserError` if no row can be scored, or if some row cannot be scored and `skip_bad` is not set. The error
    lists the first few of these rows.
    """
    rows = bad = overlapping = 0
    first: list[str] = []
    for rows, entry in enumerate(pool, start=1):
        watch("rows checked", rows, None)
        overlapping += isinstance(entry, Overlap)
        error = fault(entry, evaluator)
        if error is None:
            continue
        bad += 1
        if len(first) < SHOWN:
            first.append(str(error))
    if not rows:
        raise UserError("there is no row in the pool.", "Write one object with query and response a line.")
    if overlapping == rows:
        raise UserError(f"all {rows:,} rows are problems of the benchmarks.", "Nothing is left to choose from.")
    if bad + overlapping == rows:
        raise UserError(f"none of {rows:,} rows can be scored: {first[0]}")
    if bad and not skip_bad:
        raise refusal(rows, bad, first)
    return rows


def refusal(rows: int, bad: int, first: list[str]) -> UserError:
    """Return an error saying that `bad` of the pool's `rows` rows cannot be scored. `first` describes the first few
    of them."""
    if bad == 1:
        return UserError(first[0], "Fix the row, or leave it out with --skip-bad.")
    lines = [f"  {line}" for line in first]
    more = [f"  and {bad - len(first):,} more"] if bad > len(first) else []
    head = f"{bad:,} of {rows:,} rows cannot be scored; fix them, or leave them out with --skip-bad."
    return UserError("\n".join([head, *lines, *more]))
