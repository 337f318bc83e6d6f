"""Formats of language models that answer each step with one of two tokens, for right and wrong."""

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from stepsight.core.arrays import Floats32
from stepsight.core.errors import UserError
from stepsight.core.formats.chat import rendered_chat
from stepsight.core.formats.format import CheckpointFormat, Loaded, check_language_head, head_rows, load_beside
from stepsight.core.models.checkpoint import Checkpoint
from stepsight.core.models.model import VALIDITY, linear_head
from stepsight.core.models.placement import Placement
from stepsight.core.prompts.encoding import Encoded, Encoder, Mark
from stepsight.core.prompts.template import Separator, Strip
from stepsight.core.trace import Label, Trace

# Texts that do not occur in any chat template.
_PROBLEM, _STEP, _ANSWER = "⟦problem⟧", "⟦step⟧", "⟦answer⟧"


ANSWERS, VOCABULARY = "answers", "vocabulary"
"""The tokens over which the probability of the token for right is normalised: the two answer tokens, or all."""


class VocabularyHead(nn.Module):
    """A head whose logits have the softmax `(1 - v, 0, v)`, where `v` is one token's probability in the whole
    vocabulary."""

    def __init__(self, weight: Tensor, token: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(weight)
        self.token = token

    def forward(self, hidden: Tensor) -> Tensor:
        logits = functional.linear(hidden, self.weight).float()
        right = logits[..., self.token]
        others = logits.clone()
        others[..., self.token] = -torch.inf
        return torch.stack([others.logsumexp(-1), torch.full_like(right, -torch.inf), right], dim=-1)


class AnswerFormat(CheckpointFormat):
    """The base class of these formats. Of the language model's head, only the rows of the two tokens are loaded.

    With `{"softmax": "vocabulary"}` in stepsight.json, the softmax is over the whole vocabulary. `kind` names the
    format in the refusal of another architecture.
    """

    kind: ClassVar[str]
    order = VALIDITY

    @abstractmethod
    def answers(self, checkpoint: Checkpoint) -> list[int]:
        """Return the ids of the tokens for wrong and right, in this order. Raises `UserError` if they are not
        known, or if the weights have no row for one."""

    def identity(self, checkpoint: Checkpoint) -> tuple[object, ...]:
        return (*super().identity(checkpoint), *self.answers(checkpoint), softmax_of(checkpoint))

    def load(self, checkpoint: Checkpoint, place: Placement) -> Loaded:
        check_language_head(checkpoint, self.kind)
        ids, softmax = self.answers(checkpoint), softmax_of(checkpoint)
        head: nn.Module = (
            VocabularyHead(head_rows(checkpoint), ids[1])
            if softmax == VOCABULARY
            else linear_head(head_rows(checkpoint, ids), order=self.order)
        )
        return load_beside(checkpoint, place, head, self.order)


class MathShepherd(AnswerFormat):
    r"""Math-Shepherd-Mistral-7B-PRM: a language model that answers + or - after each step.

    Its config.json is the same as any Mistral's (abbreviated):

        {"architectures": ["MistralForCausalLM"], "model_type": "mistral", "hidden_size": 4096, "vocab_size": 32000,
         "sliding_window": 4096, "tie_word_embeddings": false, …}

    The hub repository, or a folder with exactly its name, is therefore known by that name, and any other folder by
    `{"format": "math-shepherd"}` in stepsight.json. OpenRLHF's models on the same data have the same prompt without
    a begin-of-sequence token, `{"template": {"bos": null}}`, because its trainer adds none. Tensors:
    `model.embed_tokens.weight`, …, `model.norm.weight`, `lm_head.weight`.

    The input is "PROBLEM Step 1: … ки\nStep 2: … ки". At each tag (the token ▁ки, 12902) the softmax over the
    logits of ▁+ (648) and ▁- (387) gives the probability that the step is valid. Only these two rows of the
    language-modelling head are loaded. Tags are inserted as token ids at known positions, so letters in a step that
    spell the tag are not mistaken for one.
    """

    name, kind, is_served = "math-shepherd", "Math-Shepherd", True

    def template(self, checkpoint: Checkpoint) -> Mapping[str, Any]:
        return {
            "prompt": "{problem} ",
            "separator": "▁ки",
            "bos": checkpoint.special_token("bos_token") or "<s>",
            "step": "Step {number}: {step}",
            "between": "\n",
            "opening": False,
            "joined": True,
        }

    def answers(self, checkpoint: Checkpoint) -> list[int]:
        return [exact_id(checkpoint, token) for token in ("▁-", "▁+")]

    def identity(self, checkpoint: Checkpoint) -> tuple[object, ...]:
        softmax = softmax_of(checkpoint)
        return (self.name, self.order, *([] if softmax == ANSWERS else [softmax]))


class TwoToken(AnswerFormat):
    r"""Language models that answer each step with one of two tokens, read at a tag.

    Examples are Math-psa, VersaPRM, ER-PRM, and models trained as process reward models with OpenRLHF. Their
    config.json is the same as any language model's (abbreviated):

        {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 4096, "vocab_size": 128256, …}

    The model is therefore described by stepsight.json, as in this example for Math-psa:

        {"format": "two-token", "tokens": {"right": " +", "wrong": " -"},
         "template": {"prompt": "{problem} ", "step": "Step {number}: {step}", "separator": " \n\n\n\n\n",
          "between": " "}}

    A public repository that is recognised by its name needs no such file. Tensors: `model.embed_tokens.weight`, …,
    `lm_head.weight`, of which two rows are kept. Many checkpoints are LoRA adapters of such a model.

    `separator` is the text of the tag. At its last token, the softmax over the logits of the two answer tokens
    gives the probability that the step is valid. `tokens` are ids, or texts whose last token is used. With
    `{"softmax": "vocabulary"}` the softmax is over the whole vocabulary, which is one of OpenRLHF's two methods. As
    in the authors' code, the tokenizer decides whether the input begins with a special token.
    """

    name, kind, is_served = "two-token", "two tokens", True

    def template(self, checkpoint: Checkpoint) -> Mapping[str, Any]:
        own = checkpoint.card.get("template")
        missing = [key for key in ("prompt", "separator") if not isinstance(own, dict) or key not in own]
        if missing:
            raise UserError(
                f"{checkpoint.folder}/stepsight.json: the template has no {' and no '.join(missing)}.",
                'Name the text before the steps and the tag, such as {"template": {"prompt": "{problem} ", '
                '"separator": " ки"}}.',
            )
        return {
            "separator_is": Separator.TEXT,
            "bos": checkpoint.vocabulary.first_token(),
            "opening": False,
            "joined": True,
        }

    def answers(self, checkpoint: Checkpoint) -> list[int]:
        return answer_ids(checkpoint)


class ChatTwoToken(AnswerFormat):
    """RLHFlow's Llama3.1-8B-PRM: a chat in which each user turn is a step and the assistant answers + or -.

    Its config.json is the same as any Llama's (abbreviated):

        {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 4096, "vocab_size": 128256, …}

    The repository is therefore recognised by its name, or by `{"format": "chat-two-token"}` in stepsight.json.
    Tensors: `model.embed_tokens.weight`, …, `lm_head.weight`, of which only the rows of + and - are kept.

    The first user turn is the problem, a space and the first step, and each later turn is one step. All of them are
    stripped of surrounding white space. The authors query the model once per step about the last turn only, with
    all earlier turns answered by +. A single pass over the chat with + everywhere, read at the positions just
    before each answer, gives the same result. The texts between the turns come from the folder's own chat template.
    If the template inserts a date, it is always the default date of Llama 3.1's template.

    With `{"softmax": "vocabulary"}` in stepsight.json the softmax is over the whole vocabulary, as in PRMBench.
    `{"tokens": {"right": …, "wrong": …}}` names other answer tokens.
    """

    name, kind, is_served = "chat-two-token", "answers in a chat", True
    _answers: ClassVar[Mapping[str, str]] = {"right": "+", "wrong": "-"}

    def template(self, checkpoint: Checkpoint) -> Mapping[str, Any]:
        steps = [f"{_PROBLEM} {_STEP}", _STEP, _STEP]
        before, *others = rendered_chat(checkpoint, [(step, _ANSWER) for step in steps]).split(_STEP)
        turns = [text.split(_ANSWER) for text in others]
        prompt, separated, _ = before.partition(f"{_PROBLEM} ")
        if not separated or len(turns) != 3 or any(len(turn) != 2 for turn in turns) or turns[0] != turns[1]:
            raise UserError(
                f"{checkpoint.folder}: its chat template does not write all turns in the same way.",
                "Copy tokenizer_config.json again, or name the template in stepsight.json.",
            )
        closing, opening = turns[0]
        right = {**self._answers, **checkpoint.card.get("tokens", {})}["right"]
        return {
            "prompt": f"{prompt}{{problem}} ",
            "separator": closing,
            "separator_is": Separator.TEXT,
            "bos": None,
            "between": f"{right}{opening}",
            "opening": False,
            "joined": True,
            "strip": Strip.ALL,
        }

    def answers(self, checkpoint: Checkpoint) -> list[int]:
        return answer_ids(checkpoint, self._answers)


class MaskedTokensEncoder(Encoder):
    """An encoder that makes the two calls about each step, whose inputs contain all steps before it. The template's
    separator is the mark to be filled in."""

    asks_each_step = True

    def encode(self, trace: Trace) -> Encoded:
        steps = [self.template.step_text(number, text) for number, text in enumerate(trace.substeps, start=1)]
        opening = list(self._opening(trace))
        calls = tuple(
            tuple(self._encode_parts([*opening, *parts]) for parts in self._questions(steps[:number]))
            for number in range(1, len(steps) + 1)
        )
        longest = max((call for step in calls for call in step), key=len)
        places = np.full(len(steps), len(longest) - 1, dtype=np.int64)
        return Encoded(longest.ids, places, places, calls)

    def _questions(self, steps: Sequence[str]) -> Iterable[Sequence[int | str | Mark]]:
        """Yield the part of the input that follows the prompt, for both calls about the last of these steps, with a
        mark after each position that is read."""
        *before, step = steps
        text = "".join(f"{earlier}{self.template.between}" for earlier in before) + f"Current Step: {step}"
        mask, right = self.separator, self._token(MaskedTokens.right)
        arithmetic, consistency, correctness = " Math reasoning: ", ", Consistency: ", ", Correctness: "
        yield [text + arithmetic, Mark.END, mask, consistency, Mark.END]
        yield [text + arithmetic, right, consistency, right, correctness, Mark.END]

    def verdict(self, probs: Floats32) -> Floats32:
        marks, correctness = probs[:-1], super().verdict(probs)
        return (
            correctness if (marks[:, Label.POS] >= marks[:, Label.NEG]).all() else np.array([1, 0, 0], np.float32)
        )


class MaskedTokens(AnswerFormat):
    """PathFinder-PRM: a language model that fills in marks for arithmetic, consistency and correctness, step by
    step.

    Its config.json is the same as any Qwen2's (abbreviated):

        {"architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2", "hidden_size": 3584, "vocab_size": 152064, …}

    A repository is therefore recognised by its name, or by `{"format": "masked-tokens"}` in stepsight.json.
    Tensors: `model.embed_tokens.weight`, …, `lm_head.weight`, of which only the rows of <+> and <-> are kept. These
    two and <extra> are added tokens, whose ids the tokenizer knows.

    The model is queried twice about each step, in the folder's own chat template. The user's turn has the
    instruction and the problem. The assistant's turn has the earlier steps, the step itself, and marks to be filled
    in, each of which is read at the token before it. The first call asks for arithmetic and consistency. If the
    model fills in <-> for either, the step is wrong, and its probability is 0. Otherwise the second call has both
    marks filled in with <+> and asks for correctness. The softmax over <+> and <-> at that mark is the probability
    that the step is valid. This is the authors' reward model. Because only <+> is ever filled in, both calls can be
    made at the same time.

    The authors' script for ProcessBench uses only the first two marks, and their script for PRMBench uses other
    words and the softmax over the whole vocabulary. Neither variant is supported here.
    """

    name, kind, encoder = "masked-tokens", "marks to be filled in", MaskedTokensEncoder
    right: ClassVar[str] = "<+>"
    _instruction: ClassVar[str] = (
        "You are a Math Teacher. Given a question and a student's solution, evaluate the mathematical correctness, "
        "logic consistency of the current step and whether it will lead to the correct final solution\n\n "
        "Question: "
    )

    def template(self, checkpoint: Checkpoint) -> Mapping[str, Any]:
        chat = rendered_chat(checkpoint, [(self._instruction + _PROBLEM, _ANSWER)])
        prompt, answered, _ = chat.partition(_ANSWER)
        before, problem, after = prompt.partition(_PROBLEM)
        if not answered or not problem:
            raise UserError(
                f"{checkpoint.folder}: its chat template leaves out a turn.",
                "Copy tokenizer_config.json again, or name the template in stepsight.json.",
            )
        return {
            "prompt": f"{before}{{problem}}{after}",
            "separator": "<extra>",
            "between": "\n\n",
            "opening": False,
            "joined": True,
        }

    def answers(self, checkpoint: Checkpoint) -> list[int]:
        tokens = {"right": exact_id(checkpoint, self.right), "wrong": exact_id(checkpoint, "<->")}
        return answer_ids(checkpoint, tokens)

    def identity(self, checkpoint: Checkpoint) -> tuple[object, ...]:
        return (self.name, self.order, *self.answers(checkpoint))


def answer_ids(checkpoint: Checkpoint, otherwise: Mapping[str, str | int] | None = None) -> list[int]:
    """Return the ids of the tokens for wrong and right, from stepsight.json or else from `otherwise`.

    Tokens are given as ids, or as texts whose last token is used. Raises `UserError` if neither source names the
    tokens, or if the weights have no row for a token.
    """
    tokens = checkpoint.card.get("tokens", otherwise)
    if not isinstance(tokens, Mapping) or set(tokens) != {"right", "wrong"}:
        raise UserError(
            f"{checkpoint.folder}: the tokens for right and wrong are not known.",
            'Name them in stepsight.json, such as {"tokens": {"right": " +", "wrong": " -"}}.',
        )
    ids = [_token_id(checkpoint, tokens[answer]) for answer in ("wrong", "right")]
    if ids[0] == ids[1]:
        raise UserError(
            f"{checkpoint.folder}: {tokens['right']!r} and {tokens['wrong']!r} are the same token, {ids[0]}.",
            "Name two different tokens.",
        )
    return ids


def exact_id(checkpoint: Checkpoint, token: str) -> int:
    """Return the id of a token of exactly this name. Raises `UserError` if there is none, or if the weights have no
    row for it."""
    number = checkpoint.vocabulary.token_id(token)
    return _token_id(checkpoint, -1 if number is None else number, token)


def _token_id(checkpoint: Checkpoint, token: object, name: object = None) -> int:
    number: int | None = None
    if isinstance(token, int) and not isinstance(token, bool):
        number = token
    elif isinstance(token, str) and token:
        (ids,) = checkpoint.vocabulary.encode([token])
        number = ids[-1] if ids else None
    if number is None or not 0 <= number < checkpoint.size("vocab_size"):
        raise UserError(
            f"{checkpoint.folder}: the tokenizer lacks the token {name or token!r} of the weights.",
            "Copy the tokenizer that belongs to the checkpoint.",
        )
    return number


def softmax_of(checkpoint: Checkpoint) -> str:
    """Return the tokens over which stepsight.json has the probabilities normalised, by default the answers."""
    value = checkpoint.card.get("softmax", ANSWERS)
    if value not in (ANSWERS, VOCABULARY):
        raise UserError(
            f"{checkpoint.folder}/stepsight.json: softmax is {value!r:.40}.",
            f"Give one of: {ANSWERS}, {VOCABULARY}.",
        )
    return str(value)
