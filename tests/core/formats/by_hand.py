"""Shared by the tests of formats: traces, plain forward passes, and the comparison with every mode."""

import numpy as np
import torch

from stepsight.core.scoring.forward import PaddedForward
from stepsight.core.scoring.scorer import Scorer
from stepsight.core.trace import Trace

EXACT = 1e-5
# Every text is one that the genuine scripts can read: none of them spells a separator.
TRACES = [
    Trace.of(
        "Janet's ducks lay 16 eggs per day.", ["She eats 3 + 4 = 7 eggs.", "She sells 16 - 7 = 9.", "So $18."]
    ),
    Trace.of("What is 2 + 3?", ["2 + 3 = 5.", ["So the answer is 5.", "Check: 5 - 3 = 2."]]),
    Trace.of("三 + é = Ω?", ["Step 1: She eats √2 ≠ 三.", "Q\n\nx", "a"]),
    Trace.of("q", ["5"]),
]


@torch.inference_mode()
def hidden_states(backbone, ids):
    """Hidden states of one input by Transformers' own model, shape (tokens, hidden)."""
    return backbone(input_ids=torch.tensor([ids]))[0][0]


def softmax(logits):
    exponents = np.exp(logits - logits.max(-1, keepdims=True))
    return exponents / exponents.sum(-1, keepdims=True)


def of_two(validity):
    """Rows of neg, neu, pos of an evaluator that gives validity alone."""
    validity = np.asarray(validity)
    return np.stack([1 - validity, np.zeros_like(validity), validity], axis=1)


class CountedForward(PaddedForward):
    """Counts the inputs that are read."""

    read = 0

    def run(self, inputs):
        self.read += len(inputs)
        return super().run(inputs)


def check_modes(evaluator, rows, traces=TRACES, *, one_pass=True):
    """`rows(trace, j)` gives the probabilities of the sub-steps up to `j`, shape (j + 1, 3), with nothing after it.

    Compares all three modes and the last step as a candidate, in batches of inputs of all lengths and one input at
    a time, with them. A causal evaluator must read each trace once, whatever the mode, unless it is asked
    about each step by itself.
    """
    fast, padded = Scorer(evaluator), CountedForward(evaluator.model)
    alone = PaddedForward(evaluator.model, token_budget=1)
    by_prefix = [[rows(trace, j) for j in range(len(trace.substeps))] for trace in traces]
    for scorer in (fast, Scorer(evaluator, padded), Scorer(evaluator, alone)):
        check_judgments(scorer, by_prefix, traces)
        if one_pass and scorer.forward is padded and evaluator.attention == "causal":
            assert padded.read == 3 * len(traces)
        check_candidates(scorer, by_prefix, traces)


def check_judgments(scorer, by_prefix, traces):
    """Compare all three modes with the probabilities for each prefix by hand."""
    judged = {mode: list(scorer.score(traces, mode)) for mode in ("hindsight", "online", "offline")}
    for place, (trace, expected) in enumerate(zip(traces, by_prefix, strict=True)):
        triangle = judged["hindsight"][place].hindsight
        for row, by_hand in zip(triangle.rows, expected, strict=True):
            np.testing.assert_allclose(row, by_hand, atol=EXACT)
        online = judged["online"][place].online.probs
        # A step is judged online when all its sub-steps are there.
        whole = [expected[end][i] for i, end in enumerate(trace.step_ends)]
        np.testing.assert_allclose(online, whole, atol=EXACT)
        np.testing.assert_allclose(judged["offline"][place].offline.probs, expected[-1], atol=EXACT)


def check_candidates(scorer, by_prefix, traces):
    """Compare the last step as a candidate with its probabilities by hand."""
    for trace, expected in zip(traces, by_prefix, strict=True):
        *before, last = trace.substeps
        candidates = scorer.score_next(trace.problem, before, [last])
        np.testing.assert_allclose(candidates, expected[-1][-1:], atol=EXACT)
