"""Scores for candidates for the next step of an unfinished solution. Each candidate is scored as if it were that
step."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from stepsight.core.arrays import Floats32
from stepsight.core.errors import UserError
from stepsight.core.label import Label
from stepsight.core.models.evaluator import ModelEvaluator
from stepsight.core.prompts.encoding import Encoded
from stepsight.core.scoring.continued_forward import ContinuedForward
from stepsight.core.scoring.forward import Forward, Input, call_inputs, verdicts
from stepsight.core.scoring.kv_cache import shared
from stepsight.core.trace import Trace, check_candidates


@dataclass(frozen=True, eq=False)
class Asked:
    """Encoded candidates for the next step.

    `unique` holds the distinct texts among the `candidates`, and `encoded` their encodings. The tokens that all
    candidates share are kept for later calls, but at most the first `end` tokens. If `end` is None, because there
    is no earlier step, all shared tokens are kept.
    """

    candidates: tuple[str, ...]
    unique: tuple[str, ...]
    encoded: tuple[Encoded, ...]
    end: int | None

    @cached_property
    def inputs(self) -> list[Input]:
        """An input for each distinct candidate: the problem, the earlier steps and the candidate. It is read only
        at the end of the candidate."""
        return [Input(one.ids, len(one), one.reads[-1:]) for one in self.encoded]

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
    ) -> Asked:
        """Encode candidates for `score_encoded`. Raises `UserError` in the same cases as `Scorer.score_next`."""
        unique: dict[str, int] = {}
        for number, text in enumerate(check_candidates(candidates), start=1):
            unique.setdefault(text, number)
        encoded = tuple(self._encode(problem, [*steps, text], f"candidate {unique[text]}") for text in unique)
        # The steps before the last: a template may put something between two.
        end = None
        if len(steps):
            end = len(self._evaluator.encode(Trace.of(problem, steps)))
        return Asked(tuple(candidates), tuple(unique), encoded, end)

    def tokens(self, asked: Asked) -> int:
        """Return an upper bound on the number of tokens to compute. Tokens that the candidates share count once if
        the evaluator can continue from a prefix."""
        if self.asks_each_step:
            return sum(len(call) for one in asked.encoded for call in one.calls[-1])
        if not self.keeps_prefixes:
            return sum(map(len, asked.encoded))
        return asked.shared + sum(len(one) - asked.shared for one in asked.encoded)

    @property
    def asks_each_step(self) -> bool:
        """True if the evaluator needs separate inputs for each step."""
        return self._evaluator.encoder.asks_each_step

    @property
    def keeps_prefixes(self) -> bool:
        """True if tokens shared by the candidates are read only once."""
        return self._continued.continues

    def score_encoded(self, asked: Asked) -> Floats32:
        """Return the probabilities of each candidate, with shape (candidates, 3)."""
        if self.asks_each_step:
            calls = [one.calls[-1] for one in asked.encoded]
            rows = list(verdicts(self._evaluator.encoder, calls, self._forward.run(call_inputs(calls)))[:, None])
        elif self.keeps_prefixes:
            starts = [asked.shared] * len(asked.inputs)
            nothing = np.zeros(0, np.int64)
            _, *rows = self._continued.run(asked.inputs, starts, Input(asked.inputs[0].ids, asked.shared, nothing))
        else:
            rows = self._forward.run(asked.inputs)
        self._evaluator.check_numbers(rows)
        scored = dict(zip(asked.unique, rows, strict=True))
        return np.concatenate([scored[text][:, : len(Label)] for text in asked.candidates])

    def _encode(self, problem: str, steps: Sequence[str | Sequence[str]], which: str) -> Encoded:
        try:
            return self._evaluator.encode(Trace.of(problem, steps))
        except UserError as error:
            raise error.at(which) from None
