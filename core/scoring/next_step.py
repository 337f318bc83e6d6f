"""Inputs with a common prefix, which is read once and continued for each: candidates for the next step of an
unfinished solution, and a solution with each of its steps left out.
"""

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch

from stepsight.core.arrays import Floats32, Ints
from stepsight.core.errors import Check, UserError, never_cancel
from stepsight.core.evidence import Gap, LeaveOneOut, shortened
from stepsight.core.models.evaluator import ModelEvaluator
from stepsight.core.prompts.encoding import Encoded
from stepsight.core.scores import StepScores
from stepsight.core.scoring.forward import Forward, Input, call_inputs, chunks, run_all, verdicts
from stepsight.core.scoring.packed import PackedForward
from stepsight.core.scoring.prefixes import Prefix, PrefixContinuation, Prefixes, can_continue, shared
from stepsight.core.trace import Label, Trace, check_candidates

# Tokens of a batch: those of the prefix and the longest input, times the number of inputs.
_BUDGET = 16_384


class ContinuedForward:
    """A forward pass for causal models that continues from the keys and values of a prefix.

    The most recent prefixes are kept for later calls. Several threads can use it at once.
    """

    def __init__(self, evaluator: ModelEvaluator, forward: Forward) -> None:
        self._evaluator = evaluator
        self._forward = forward
        self._lock = threading.Lock()

    @property
    def continues(self) -> bool:
        """True if inputs can continue from a prefix. Otherwise each input has to be read from its start."""
        return not self._evaluator.encoder.asks_each_step and (self._continuation or self._prefixes) is not None

    def run(
        self,
        inputs: Sequence[Input],
        starts: Sequence[int],
        prefix: Input,
        check: Check = never_cancel,
    ) -> list[Floats32]:
        """Return the probabilities at the read positions of `prefix`, followed by the probabilities for each input.

        Each result has the shape (reads, 3). Input `i` begins with the first `starts[i]` tokens of the prefix, and
        all its read positions come after these tokens. An error that `check` raises stops the work. Raises
        `ValueError` if inputs cannot continue from a prefix.
        """
        with self._lock:
            if self._continuation is not None:
                return self._continuation.run(inputs, starts, prefix, check)
            if self._prefixes is None:
                raise ValueError(f"{self._evaluator.name} reads every input from its start")
            kept = self._prefixes.find(prefix.ids[: prefix.length])
            read = run_all(self._forward, [prefix] if len(prefix.reads) else [])
            first = read[0] if read else np.zeros((0, 3), np.float32)
            return [first, *self._after(self._prefixes, kept, inputs, starts, check)]

    def _after(
        self,
        prefixes: Prefixes,
        kept: Prefix,
        inputs: Sequence[Input],
        starts: Sequence[int],
        check: Check,
    ) -> list[Floats32]:
        results = [np.zeros((0, 3), np.float32)] * len(inputs)
        # Inputs that share the same part of the prefix are run side by side.
        order = sorted(range(len(inputs)), key=lambda number: (starts[number], inputs[number].length))
        for start in dict.fromkeys(starts[number] for number in order):
            alike = [(number, inputs[number]) for number in order if starts[number] == start]
            for batch in chunks(alike, _BUDGET, padded=True):
                check()
                rows = self._batch(prefixes, kept.first(start), [item for _, item in batch])
                for (number, _), row in zip(batch, rows, strict=True):
                    results[number] = row
        return results

    @torch.inference_mode()
    def _batch(self, prefixes: Prefixes, prefix: Prefix, batch: Sequence[Input]) -> list[Floats32]:
        start = len(prefix)
        rows: Ints = np.zeros((len(batch), max(item.length for item in batch) - start), np.int64)
        reads: Ints = np.zeros((len(batch), max(len(item.reads) for item in batch)), np.int64)
        for row, item in enumerate(batch):
            rows[row, : item.length - start] = item.ids[start : item.length]
            reads[row, : len(item.reads)] = item.reads - start
        probs = self._evaluator.model.rows_at(prefixes.after(prefix, rows), torch.from_numpy(reads)).cpu().numpy()
        return [probs[row, : len(item.reads)] for row, item in enumerate(batch)]

    @cached_property
    def _continuation(self) -> PrefixContinuation | None:
        """The implementation for a causal decoder on the CPU, or None for any other model."""
        model, forward = self._evaluator.model, self._forward
        if not isinstance(forward, PackedForward) or not forward.network.config.is_causal:
            return None
        return PrefixContinuation(model, forward.network)

    @cached_property
    def _prefixes(self) -> Prefixes | None:
        """The prefix cache for a backbone without a `_continuation`. None if the backbone cannot continue from a
        prefix."""
        if not self._evaluator.is_causal or not can_continue(self._evaluator.model.model):
            return None
        return Prefixes(self._evaluator.model.model, states=self._evaluator.model.states)


def leave_out(
    evaluator: ModelEvaluator, forward: ContinuedForward, trace: Trace, gap: Gap, check: Check
) -> LeaveOneOut:
    """Score a trace with a causal model, both complete and with each of its sub-steps left out in turn. The trace
    must have several sub-steps.

    The sub-steps before the omitted one keep the scores that they have in the whole trace. The whole trace is read
    once, then about half of the tokens of the n shortened traces. Raises `UserError` if the trace, or a version of
    it with a placeholder, is longer than the context.
    """
    whole, n = evaluator.encode(trace), len(trace.substeps)
    inputs, starts, read = [], [], []
    for place, shorter in enumerate(shortened(trace, gap)):
        check()
        encoded = evaluator.encode(shorter)
        reads = encoded.reads[place + (gap == Gap.PLACEHOLDER) :]
        if not len(reads):
            continue
        inputs.append(Input(encoded.ids, len(encoded), reads))
        # A step that is read at the token before its last may be read in the shared part.
        starts.append(min(shared([whole.ids, encoded.ids]), int(reads[0])))
        read.append(place)
    probs, *others = forward.run(inputs, starts, Input(whole.ids, len(whole), whole.reads), check)
    evaluator.check_numbers([probs, *others], trace)
    after = dict(zip(read, others, strict=True))
    rows = {
        place: np.concatenate([probs[:place, :3], after[place][:, :3] if place in after else probs[:0, :3]])
        for place in range(n)
    }
    return LeaveOneOut.of(StepScores.from_rows(probs), rows, gap)


@dataclass(frozen=True, eq=False)
class Candidates:
    """Encoded candidates for the next step.

    `unique` holds the distinct ones among the `texts`, and `encoded` their encodings. The tokens that all
    candidates share are kept for later calls, but at most the first `end` tokens. If `end` is None, because there
    is no earlier step, all shared tokens are kept.
    """

    texts: tuple[str, ...]
    unique: tuple[str, ...]
    encoded: tuple[Encoded, ...]
    end: int | None

    @cached_property
    def inputs(self) -> list[Input]:
        """An input for each distinct candidate: the problem, the earlier steps and the candidate. It is read only
        at the end of the candidate."""
        return [Input(encoded.ids, len(encoded), encoded.reads[-1:]) for encoded in self.encoded]

    @cached_property
    def shared(self) -> int:
        """The number of shared leading tokens to keep. Only tokens of the problem and the earlier steps count, not
        a common beginning of the candidates."""
        tokens = shared([item.ids for item in self.inputs])
        # A step that is read at the token before its last can be read in the prefix.
        return min(tokens, *(int(item.reads[0]) for item in self.inputs), *([] if self.end is None else [self.end]))


class NextSteps:
    """A scorer of candidates for the next step with one evaluator. Several threads can use it at once.

    A causal evaluator reads the problem and the steps once, keeps the keys and values, and continues from them with
    all candidates at once. A later call continues from the longest matching prefix. With a bidirectional evaluator,
    every candidate changes every step, so everything is read again for each candidate, in batches.
    """

    def __init__(self, evaluator: ModelEvaluator, forward: Forward, continued: ContinuedForward) -> None:
        self._evaluator = evaluator
        self._forward = forward
        self._continued = continued

    def score(
        self,
        problem: str,
        steps: Sequence[str | Sequence[str]],
        candidates: Sequence[str],
    ) -> Floats32:
        """Like `Scorer.score_next`."""
        return self.score_encoded(self.encode(problem, steps, candidates))

    def encode(
        self,
        problem: str,
        steps: Sequence[str | Sequence[str]],
        candidates: Sequence[str],
    ) -> Candidates:
        """Encode candidates for `score_encoded`. Raises `UserError` in the same cases as `Scorer.score_next`."""
        unique: dict[str, int] = {}
        for number, text in enumerate(check_candidates(candidates), start=1):
            unique.setdefault(text, number)
        encoded = []
        for text, number in unique.items():
            try:
                encoded.append(self._evaluator.encode(Trace.of(problem, [*steps, text])))
            except UserError as error:
                raise error.at(f"candidate {number}") from None
        # The steps before the last: a template may put something between two.
        end = len(self._evaluator.encode(Trace.of(problem, steps))) if len(steps) else None
        return Candidates(tuple(candidates), tuple(unique), tuple(encoded), end)

    def tokens(self, candidates: Candidates) -> int:
        """Return an upper bound on the number of tokens to compute. Tokens that the candidates share count once if
        the evaluator can continue from a prefix."""
        if self.asks_each_step:
            return sum(len(call) for encoded in candidates.encoded for call in encoded.calls[-1])
        if not self.keeps_prefixes:
            return sum(map(len, candidates.encoded))
        return candidates.shared + sum(len(encoded) - candidates.shared for encoded in candidates.encoded)

    @property
    def asks_each_step(self) -> bool:
        """True if the evaluator needs separate inputs for each step."""
        return self._evaluator.encoder.asks_each_step

    @property
    def keeps_prefixes(self) -> bool:
        """True if tokens shared by the candidates are read only once."""
        return self._continued.continues

    def score_encoded(self, candidates: Candidates) -> Floats32:
        """Return the probabilities of each candidate, with shape (candidates, 3)."""
        if self.asks_each_step:
            calls = [encoded.calls[-1] for encoded in candidates.encoded]
            outputs = run_all(self._forward, call_inputs(calls))
            rows = list(verdicts(self._evaluator.encoder, calls, outputs)[:, None])
        elif self.keeps_prefixes:
            inputs, shared_tokens = candidates.inputs, candidates.shared
            prefix = Input(inputs[0].ids, shared_tokens, np.zeros(0, np.int64))
            _, *rows = self._continued.run(inputs, [shared_tokens] * len(inputs), prefix)
        else:
            rows = run_all(self._forward, candidates.inputs)
        self._evaluator.check_numbers(rows)
        scored = dict(zip(candidates.unique, rows, strict=True))
        return np.concatenate([scored[text][:, : len(Label)] for text in candidates.texts])
