"""Next-step scores: candidates for the next step of an unfinished solution, each scored as that step."""

import threading
from collections.abc import Sequence
from dataclasses import dataclass
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
from stepsight.core.scoring.packed import PackedForward
from stepsight.core.scoring.prefix_continuation import PrefixContinuation
from stepsight.core.trace import Trace, check_candidates

# Tokens of a batch: those of the prefix and the longest candidate, times the number of candidates.
_BUDGET = 16_384


@dataclass(frozen=True, eq=False)
class Asked:
    """Encoded candidates for the next step: `encoded` holds those of the `unique` texts. At most the first `end`
    tokens are kept as their prefix, all shared ones if None, before the first step."""

    candidates: tuple[str, ...]
    unique: tuple[str, ...]
    encoded: tuple[Encoded, ...]
    end: int | None

    @cached_property
    def inputs(self) -> list[Input]:
        """Each unique candidate with everything before it, read at its end."""
        return [Input(one.ids, len(one), one.reads[-1:]) for one in self.encoded]

    @cached_property
    def shared(self) -> int:
        """The number of shared first tokens to keep: at most those of the steps, not the beginnings that candidates
        share."""
        tokens = shared([item.ids for item in self.inputs])
        # A step that is read at the token before its last can be read in the prefix.
        return min(tokens, *(int(item.reads[0]) for item in self.inputs), *([] if self.end is None else [self.end]))


class NextSteps:
    """Scores candidates with one evaluator. Safe to use from several threads.

    A causal evaluator reads the problem and the steps once, keeps the keys and values, and continues from them with
    all candidates at once; a later call continues from the longest matching prefix. For a bidirectional evaluator
    every candidate changes every step, so it reads everything again, in batches.
    """

    def __init__(self, evaluator: ModelEvaluator, forward: Forward) -> None:
        self._evaluator = evaluator
        self._forward = forward
        self._lock = threading.Lock()

    def score(self, problem: str, steps: Sequence[str | Sequence[str]], candidates: Sequence[str]) -> Floats32:
        """See `Scorer.score_next`."""
        return self.score_encoded(self.encode(problem, steps, candidates))

    def encode(self, problem: str, steps: Sequence[str | Sequence[str]], candidates: Sequence[str]) -> Asked:
        """The argument of `score_encoded`. Raises `UserError` as `Scorer.score_next` does."""
        unique: dict[str, int] = {}
        for number, text in enumerate(check_candidates(candidates), start=1):
            unique.setdefault(text, number)
        encoded = tuple(self._encode(problem, [*steps, text], f"candidate {unique[text]}") for text in unique)
        # The steps before the last: a template may put something between two.
        end = len(self._evaluator.encode(Trace.of(problem, steps))) if len(steps) else None
        return Asked(tuple(candidates), tuple(unique), encoded, end)

    def tokens(self, asked: Asked) -> int:
        """An upper bound of the tokens to compute: shared ones count once if they can be kept."""
        if self.asks_each_step:
            return sum(len(call) for one in asked.encoded for call in one.calls[-1])
        if not self.keeps_prefixes:
            return sum(map(len, asked.encoded))
        return asked.shared + sum(len(one) - asked.shared for one in asked.encoded)

    @property
    def asks_each_step(self) -> bool:
        """True if the evaluator gets a separate input for each step."""
        return self._evaluator.encoder.asks_each_step

    @property
    def keeps_prefixes(self) -> bool:
        """True if the tokens that candidates share are read once."""
        return not self.asks_each_step and (self._continuation or self._prefixes) is not None

    def score_encoded(self, asked: Asked) -> Floats32:
        """The probabilities of each candidate, shape (candidates, 3)."""
        if self.asks_each_step:
            calls = [one.calls[-1] for one in asked.encoded]
            rows = list(verdicts(self._evaluator.encoder, calls, self._forward.run(call_inputs(calls)))[:, None])
        elif self._continuation is not None:
            with self._lock:
                rows = self._continuation.run(asked.inputs, asked.shared)
        elif self._prefixes is not None:
            rows = self._continue(self._prefixes, asked.inputs, asked.shared)
        else:
            rows = self._forward.run(asked.inputs)
        self._evaluator.check_numbers(rows)
        scored = dict(zip(asked.unique, rows, strict=True))
        return np.concatenate([scored[text][:, : len(Label)] for text in asked.candidates])

    @cached_property
    def _continuation(self) -> PrefixContinuation | None:
        """The continuation for a causal decoder on a processor, else None."""
        model, forward = self._evaluator.model, self._forward
        if (
            not isinstance(forward, PackedForward)
            or not forward.network.config.is_causal
            or model.mixture is not None
        ):
            return None
        return PrefixContinuation(model, forward.network)

    @cached_property
    def _prefixes(self) -> Prefixes | None:
        """The prefixes of any other backbone that can continue from one; None if it reads every input from its
        start."""
        if self._evaluator.attention != "causal" or not can_continue(self._evaluator.model.model):
            return None
        return Prefixes(self._evaluator.model.model, states=self._evaluator.model.states)

    def _encode(self, problem: str, steps: Sequence[str | Sequence[str]], which: str) -> Encoded:
        try:
            return self._evaluator.encode(Trace.of(problem, steps))
        except UserError as error:
            raise error.at(which) from None

    def _continue(self, prefixes: Prefixes, inputs: Sequence[Input], tokens: int) -> list[Floats32]:
        """The probabilities of each input, shape (1, 3), continued from their first `tokens`, which they share."""
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
