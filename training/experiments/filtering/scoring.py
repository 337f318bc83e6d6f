"""Scoring a pool, chunk by chunk: what one machine does by itself and each worker of several does for its part."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from stepsight.core.errors import UserError
from stepsight.core.models.evaluator import Evaluator
from stepsight.core.scores import Outputs, judge_solution
from stepsight.core.scoring.cpu import CpuForward
from stepsight.core.scoring.scorer import Scorer
from stepsight.training.experiments.filtering.candidate import Solution
from stepsight.training.experiments.filtering.pool import BadRow, Chunks, Entry, Overlap, Pool
from stepsight.training.experiments.filtering.scores import LeftOutRow, OverlappingRow, ScoredRow, ScoreRow

CHUNK = 128
"""Rows that are scored and kept together: few enough to lose little, enough to fill a GPU's batches."""


class ChunkScorer:
    """The scores of a chunk of the pool, as rows of a score file.

    What a solution gets does not depend on which process scores it, nor on what was scored before. On a processor
    with the fast forward pass it does not depend on the number of threads either, to the last bit.
    """

    def __init__(self, pool: Pool, evaluator: Evaluator, size: int = CHUNK) -> None:
        self._chunks, self._size = Chunks(pool, size), size
        self._evaluator = evaluator
        self._scorer = Scorer(evaluator)

    def __call__(self, number: int) -> list[ScoreRow]:
        """The rows of the chunk of that number, from 0."""
        return list(self._score(self._chunks[number], number * self._size + 1))

    def _score(self, entries: list[Entry], first: int) -> Iterator[ScoreRow]:
        reasons = [fault(entry, self._evaluator) for entry in entries]
        good = [entry for entry, reason in zip(entries, reasons, strict=True) if reason is None]
        traces = [entry.trace for entry in good if isinstance(entry, Solution)]
        with _one_thread(isinstance(self._scorer.forward, CpuForward)):
            judgments = iter(list(self._scorer.score(traces)))
        for row, (entry, reason) in enumerate(zip(entries, reasons, strict=True), start=first):
            if isinstance(entry, Overlap):
                yield OverlappingRow(row, entry.benchmark)
                continue
            if reason is not None or not isinstance(entry, Solution):
                yield LeftOutRow(row, str(reason))
                continue
            scores = next(judgments).offline
            assert scores is not None
            verdict = judge_solution(scores)
            redundancy = verdict.redundancy if self._evaluator.outputs == Outputs.THREE_WAY else None
            yield ScoredRow(row, entry.digest, len(scores), verdict.validity, redundancy)


def fault(entry: Entry, evaluator: Evaluator) -> UserError | None:
    """What is wrong with a row: it is no candidate, or longer than the evaluator's context."""
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
    """The fast pass has threads of its own; the last bit of what they compute depends on how many threads PyTorch
    thinks that the caller has."""
    before = torch.get_num_threads()
    if wanted:
        torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
