"""Next-step scores: candidates for the next step of an unfinished solution, each scored as that step."""

import threading
from collections.abc import Sequence
from functools import cached_property

import numpy as np
import torch

from stepsight.core.arrays import Floats32, Ints
from stepsight.core.errors import UserError
from stepsight.core.label import Label
from stepsight.core.models.evaluator import ModelEvaluator
from stepsight.core.prompts.encoding import Encoded
from stepsight.core.scoring.forward import Forward, Input, call_inputs, chunks, verdicts
from stepsight.core.scoring.kv_cache import Prefix, Prefixes, can_continue, shared
from stepsight.core.trace import Trace, check_text

# Tokens of a batch: those of the prefix and the longest candidate, times the number of candidates.
_BUDGET = 16_384


def check_candidates(candidates: Sequence[str]) -> list[str]:
    """Raises `UserError` where there is no candidate, or one is empty."""
    if isinstance(candidates, str) or not len(candidates):
        raise UserError("there are no candidates for the next step.", "Give a list of at least one text.")
    return [check_text(text, f"candidate {number}") for number, text in enumerate(candidates, start=1)]


class NextSteps:
    """Scores candidates with one evaluator. Safe to use from several threads.

    A causal evaluator reads the problem and the steps once, keeps the keys and values, and continues from them with
    all candidates at a time; a later call continues from the prefix that has most of its tokens. For a
    bidirectional one every candidate changes every step, so that it reads the whole again, in batches.
    """

    def __init__(self, evaluator: ModelEvaluator, forward: Forward) -> None:
        self._evaluator = evaluator
        self._forward = forward
        self._lock = threading.Lock()

    def score(self, problem: str, steps: Sequence[str | Sequence[str]], candidates: Sequence[str]) -> Floats32:
        """See `Scorer.score_next`."""
        unique: dict[str, int] = {}
        for number, text in enumerate(check_candidates(candidates), start=1):
            unique.setdefault(text, number)
        encoded = [self._encode(problem, [*steps, text], f"candidate {unique[text]}") for text in unique]
        inputs = [Input(one.ids, len(one), one.reads[-1:]) for one in encoded]
        if self._evaluator.encoder.asks_each_step:
            calls = [one.calls[-1] for one in encoded]
            rows = list(verdicts(self._evaluator.encoder, calls, self._forward.run(call_inputs(calls)))[:, None])
        elif self._prefixes is None:
            rows = self._forward.run(inputs)
        else:
            end = len(self._evaluator.encode(Trace.of(problem, steps))) if len(steps) else None
            rows = self._continue(self._prefixes, inputs, end)
        self._evaluator.check_numbers(rows)
        scored = dict(zip(unique, rows, strict=True))
        return np.concatenate([scored[text][:, : len(Label)] for text in candidates])

    @cached_property
    def _prefixes(self) -> Prefixes | None:
        """None where every input is read from its start."""
        if self._evaluator.attention != "causal" or not can_continue(self._evaluator.model.model):
            return None
        return Prefixes(self._evaluator.model.model, states=self._evaluator.model.states)

    def _encode(self, problem: str, steps: Sequence[str | Sequence[str]], which: str) -> Encoded:
        try:
            return self._evaluator.encode(Trace.of(problem, steps))
        except UserError as error:
            raise error.at(which) from None

    def _continue(self, prefixes: Prefixes, inputs: Sequence[Input], end: int | None) -> list[Floats32]:
        """The probabilities of each input, shape (1, 3), from the prefix that they share. It ends at `end`, with
        the steps before the candidates, so that what all candidates begin with is not kept."""
        tokens = shared([item.ids for item in inputs])
        # A step that is read at the token before its last can be read in the prefix.
        tokens = min(tokens, *(int(item.reads[0]) for item in inputs), *([] if end is None else [end]))
        results = [np.zeros((0, 3), np.float32)] * len(inputs)
        by_length = sorted(enumerate(inputs), key=lambda pair: pair[1].length)
        with self._lock:
            prefix = prefixes.find(inputs[0].ids[:tokens])
            for batch in chunks(by_length, _BUDGET, padded=True):
                probs = self._batch(prefixes, prefix, [item for _, item in batch])
                for (number, _), row in zip(batch, probs, strict=True):
                    results[number] = row[None]
        return results

    @torch.inference_mode()
    def _batch(self, prefixes: Prefixes, prefix: Prefix, batch: Sequence[Input]) -> Floats32:
        start = len(prefix)
        rows: Ints = np.zeros((len(batch), max(item.length for item in batch) - start), np.int64)
        for row, item in zip(rows, batch, strict=True):
            row[: item.length - start] = item.ids[start : item.length]
        reads = torch.tensor([[int(item.reads[0]) - start] for item in batch])
        probs: Floats32 = self._evaluator.model.rows_at(prefixes.after(prefix, rows), reads)[:, 0].cpu().numpy()
        return probs
