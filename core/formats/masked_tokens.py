"""PathFinder-PRM: a language model that fills in marks for arithmetic, consistency and correctness, step by step.

Its config.json is the same as any Qwen2's (abbreviated):

    {"architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2", "hidden_size": 3584, "vocab_size": 152064, …}

A repository is therefore recognised by its name, or by `{"format": "masked-tokens"}` in stepsight.json. Tensors:
`model.embed_tokens.weight`, …, `lm_head.weight`, of which only the rows of <+> and <-> are kept. These two and
<extra> are added tokens, whose ids the tokenizer knows.

The model is queried twice about each step, in the folder's own chat template. The user's turn has the instruction
and the problem. The assistant's turn has the earlier steps, the step itself, and marks to be filled in, each of
which is read at the token before it. The first call asks for arithmetic and consistency. If the model fills in <->
for either, the step is wrong, and its probability is 0. Otherwise the second call has both marks filled in with <+>
and asks for correctness. The softmax over <+> and <-> at that mark is the probability that the step is valid. This
is the authors' reward model. Because only <+> is ever filled in, both calls can be made at the same time.

The authors' script for ProcessBench uses only the first two marks, and their script for PRMBench uses other words
and the softmax over the whole vocabulary. Neither variant is supported here.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from stepsight.core.arrays import Floats32
from stepsight.core.errors import UserError
from stepsight.core.formats.answers import answer_head, answer_ids, check_language_head, exact_id
from stepsight.core.formats.chat import rendered_chat
from stepsight.core.formats.format import Loaded
from stepsight.core.models.checkpoint import Checkpoint
from stepsight.core.models.placement import Placement
from stepsight.core.prompts.encoding import Encoded, Encoder, Mark
from stepsight.core.trace import Label, Trace

NAME = "masked-tokens"

_RIGHT, _WRONG, _MASK = "<+>", "<->", "<extra>"
_INSTRUCTION = (
    "You are a Math Teacher. Given a question and a student's solution, evaluate the mathematical correctness, "
    "logic consistency of the current step and whether it will lead to the correct final solution\n\n Question: "
)
_CURRENT = "Current Step: "
_MARKS = (" Math reasoning: ", ", Consistency: ", ", Correctness: ")
_PROBLEM, _ANSWER = "⟦problem⟧", "⟦answer⟧"


class MaskedTokensEncoder(Encoder):
    """An encoder that makes the two calls about each step, whose inputs contain all steps before it. The template's
    separator is the mark to be filled in."""

    asks_each_step = True

    def encode(self, trace: Trace) -> Encoded:
        steps = [self.template.step_text(number, text) for number, text in enumerate(trace.substeps, start=1)]
        opening = list(self._opening(trace))
        calls = tuple(
            tuple(self._encoded([*opening, *parts]) for parts in self._questions(steps[:number]))
            for number in range(1, len(steps) + 1)
        )
        longest = max((call for step in calls for call in step), key=len)
        places = np.full(len(steps), len(longest) - 1, dtype=np.int64)
        return Encoded(longest.ids, places, places, calls)

    def _questions(self, steps: Sequence[str]) -> Iterable[Sequence[int | str | Mark]]:
        """Yield the part of the input that follows the prompt, for both calls about the last of these steps, with a
        mark after each position that is read."""
        *before, step = steps
        text = "".join(f"{one}{self.template.between}" for one in before) + _CURRENT + step
        mask, right = self.separator, self._token(_RIGHT)
        arithmetic, consistency, correctness = _MARKS
        yield [text + arithmetic, Mark.END, mask, consistency, Mark.END]
        yield [text + arithmetic, right, consistency, right, correctness, Mark.END]

    def verdict(self, probs: Floats32) -> Floats32:
        marks, correctness = probs[:-1], super().verdict(probs)
        return (
            correctness if (marks[:, Label.POS] >= marks[:, Label.NEG]).all() else np.array([1, 0, 0], np.float32)
        )


ENCODER = MaskedTokensEncoder


def template(checkpoint: Checkpoint) -> Mapping[str, Any]:
    chat = rendered_chat(checkpoint, [(_INSTRUCTION + _PROBLEM, _ANSWER)])
    prompt, found, _ = chat.partition(_ANSWER)
    before, problem, after = prompt.partition(_PROBLEM)
    if not found or not problem:
        raise UserError(
            f"{checkpoint.folder}: its chat template leaves out a turn.",
            "Copy tokenizer_config.json again, or name the template in stepsight.json.",
        )
    return {
        "prompt": f"{before}{{problem}}{after}",
        "separator": _MASK,
        "between": "\n\n",
        "opening": False,
        "joined": True,
    }


def load(checkpoint: Checkpoint, place: Placement) -> Loaded:
    check_language_head(checkpoint, "marks to be filled in")
    tokens = {"right": exact_id(checkpoint, _RIGHT), "wrong": exact_id(checkpoint, _WRONG)}
    ids = answer_ids(checkpoint, tokens)
    loaded = answer_head(checkpoint, place, ids)
    return Loaded(loaded.backbone, loaded.head, loaded.rows, tuple(ids))
