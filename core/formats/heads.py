"""Formats of networks with a trained head of their own, which scores the token at which a step is read."""

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from stepsight.core.errors import UserError
from stepsight.core.formats.format import (
    CheckpointFormat,
    Loaded,
    check_language_head,
    head_name,
    head_rows,
    load_beside,
    other_architecture,
)
from stepsight.core.hubs.checkpoint_files import CARD
from stepsight.core.models import llada
from stepsight.core.models.checkpoint import Checkpoint
from stepsight.core.models.model import (
    SIGMOID,
    VALIDITY,
    backbone_of,
    linear_head,
    main_device,
    to_device_of,
)
from stepsight.core.models.placement import Placement
from stepsight.core.prompts.template import Lines, Read, Separator, Strip
from stepsight.core.trace import Label

HEADS = ("score.weight", "score_head.weight", "model.score.weight")
"""Tensor names of a score head in StepSight's own format."""


class StepSight(CheckpointFormat):
    r"""StepSight's own format: any backbone, including LLaDA's, with an added score head and a stepsight.json.

    config.json is the backbone's. The tensors are the backbone's, under the prefix of its class (`model.*`,
    `bert.*`, `transformer.*`), and `score.weight` of shape (3, hidden). stepsight.json, abbreviated:

        {"format": "stepsight", "version": 1, "attention": "bidirectional",
         "template": {"prompt": "Question:\n{problem}\n…", "separator": "<step>", "bos": null},
         "thresholds": {"validity": 0.5, "redundancy": 0.15}, "provenance": {…}}
    """

    name, is_served = "stepsight", True

    def recognises(self, checkpoint: Checkpoint) -> bool:
        return llada.recognises(checkpoint.config)

    def template(self, checkpoint: Checkpoint) -> Mapping[str, Any]:
        if "template" not in checkpoint.card:
            raise UserError(
                f"{checkpoint.folder}: no prompt template; this is a backbone, not an evaluator.",
                f"Train a score head with stepsight train, or write {CARD} with its template.",
            )
        last = {"layers": "last"}
        if (head := checkpoint.card.get("head", last)) != last:
            raise UserError(
                f"{checkpoint.folder}/{CARD}: head is {head!r:.40}, but only heads on the last layer are "
                "supported.",
                "Train a head on the last layer with stepsight train.",
            )
        return {}

    def load(self, checkpoint: Checkpoint, place: Placement) -> Loaded:
        backbone = backbone_of(checkpoint, place)
        name = next((name for name in HEADS if name in checkpoint.weights), None)
        if name is None:
            raise UserError(
                f"{checkpoint.folder}: there is no score head ({HEADS[0]}).", "Train one with stepsight train."
            )
        expected = (len(Label), int(backbone.config.hidden_size))
        if checkpoint.shape(name) != expected:
            raise UserError(
                f"{checkpoint.folder}: the score head has shape {checkpoint.shape(name)}, expected {expected}."
            )
        biased = name.replace(".weight", ".bias")
        bias = checkpoint.weights.read(biased) if biased in checkpoint.weights else None
        return Loaded(backbone, to_device_of(backbone, linear_head(checkpoint.weights.read(name), bias), place))

    def identity(self, checkpoint: Checkpoint) -> tuple[object, ...]:
        return ()


class ReasonEval(CheckpointFormat):
    """ReasonEval's checkpoints: ReasonEval-7B on WizardMath-V1.1 or Mistral, and ReasonEval-34B on Llemma.

    The model is a causal backbone with a linear head of three classes in the order neg, neu, pos. config.json,
    abbreviated:

        {"architectures": ["ReasonEval_7B"], "model_type": "mistral", "hidden_size": 4096, "score_dimension": 3,
         "use_bias": false, "sliding_window": 4096, "vocab_size": 32000, …}
        {"architectures": ["ReasonEval_34B"], "model_type": "llama", "hidden_size": 8192, "score_dim": 3,
         "bias": false, "rope_theta": 1000000, …}

    Tensors: `model.embed_tokens.weight`, `model.layers.0.self_attn.q_proj.weight`, …, `model.norm.weight`,
    `score_head.weight` (and `score_head.bias` if the config says so).

    Prompt and steps are separated by the tokenizer's pad token. It marks where scores are read, at the last token
    of each step, and is removed before the forward pass. In the 7B script, the input also begins with a pad token.
    The script removes this token as well and puts it back without moving the marks, so that each step is read at
    its second-to-last token. The published scores were computed this way, and it is the default for checkpoints
    whose config has `score_dimension`. With `{"template": {"read": "last"}}` in stepsight.json, it is read at its
    last token.
    """

    name, is_served = "reasoneval", True
    # The config keys for the number of classes, in 7B and in 34B, with the keys for the bias.
    _keys: ClassVar[Mapping[str, str]] = {"score_dimension": "use_bias", "score_dim": "bias"}

    def recognises(self, checkpoint: Checkpoint) -> bool:
        return any(key in checkpoint.config for key in self._keys)

    def template(self, checkpoint: Checkpoint) -> Mapping[str, Any]:
        separator = checkpoint.special_token("pad_token")
        own = checkpoint.card.get("template")
        if separator is None and not (isinstance(own, dict) and "separator" in own):
            raise UserError(
                f"{checkpoint.folder}: the tokenizer has no pad token, which ReasonEval puts after each step.",
                "Copy tokenizer_config.json and special_tokens_map.json too.",
            )
        return {
            "separator": separator or "",
            "bos": checkpoint.special_token("bos_token") or "<s>",
            "joined": True,
            "read": Read.SECOND_TO_LAST if "score_dimension" in checkpoint.config else Read.LAST,
        }

    def load(self, checkpoint: Checkpoint, place: Placement) -> Loaded:
        key = next((key for key in self._keys if key in checkpoint.config), None)
        if key is None:
            raise UserError(
                f"{checkpoint.folder}/config.json has neither {' nor '.join(map(repr, self._keys))}, so it is not "
                "ReasonEval's.",
                "Name another format in stepsight.json.",
            )
        if checkpoint.size(key) != len(Label):
            raise UserError(f"{checkpoint.folder}/config.json: {key} is {checkpoint.config[key]}, expected 3.")
        shape = (len(Label), checkpoint.size("hidden_size"))
        weight = checkpoint.tensor("score_head.weight", shape)
        biased = checkpoint.config.get(self._keys[key])
        bias = checkpoint.tensor("score_head.bias", shape[:1]) if biased else None
        return load_beside(checkpoint, place, linear_head(weight, bias))


class QwenPrm(CheckpointFormat):
    """Qwen2.5-Math-PRM, 7B and 72B, and Qwen2.5-Math-7B-PRM800K, loaded without their remote code.

    The model is a causal Qwen2 with a head of two layers and two classes. config.json, abbreviated:

        {"architectures": ["Qwen2ForProcessRewardModel"],
         "auto_map": {"AutoModel": "modeling_qwen2_rm.Qwen2ForProcessRewardModel", …},
         "model_type": "qwen2", "hidden_size": 3584, "max_position_embeddings": 4096, "vocab_size": 152064, …}

    Tensors: `model.embed_tokens.weight`, …, `model.norm.weight`, `score.0.weight`, `score.0.bias`,
    `score.2.weight`, `score.2.bias`, with a ReLU between the two layers.

    The input is the chat template with a system line, and `<extra_0>` (151651) after each step. At that token, the
    softmax probability of the second class is the probability that the step is valid.
    """

    name, order, is_served = "qwen-prm", VALIDITY, True
    _class: ClassVar[str] = "Qwen2ForProcessRewardModel"

    def recognises(self, checkpoint: Checkpoint) -> bool:
        return self._class in checkpoint.architectures

    def template(self, checkpoint: Checkpoint) -> Mapping[str, Any]:
        prompt = (
            "<|im_start|>system\nPlease reason step by step, and put your final answer within \\boxed{}."
            "<|im_end|>\n<|im_start|>user\n{problem}<|im_end|>\n<|im_start|>assistant\n"
        )
        return {"prompt": prompt, "separator": "<extra_0>", "opening": False, "joined": True}

    def load(self, checkpoint: Checkpoint, place: Placement) -> Loaded:
        if not self.recognises(checkpoint):
            raise other_architecture(checkpoint, f"{self._class} for Qwen2.5-Math-PRM")
        width = checkpoint.size("hidden_size")
        first = nn.Linear(width, width)
        first.weight = nn.Parameter(checkpoint.tensor("score.0.weight", (width, width)))
        first.bias = nn.Parameter(checkpoint.tensor("score.0.bias", (width,)))
        weight, bias = checkpoint.tensor("score.2.weight", (2, width)), checkpoint.tensor("score.2.bias", (2,))
        head = nn.Sequential(first, nn.ReLU(), linear_head(weight, bias, self.order))
        return load_beside(checkpoint, place, head, self.order)


class ValueHead(CheckpointFormat):
    r"""Language models with a value head: Skywork-o1-Open-PRM, 1.5B and 7B, and PQM.

    config.json, abbreviated:

        {"architectures": ["Qwen2ForPrmModel"],
         "auto_map": {"AutoModel": "modeling_qwen2_rm.Qwen2ForPrmModel", …},
         "model_type": "qwen2", "hidden_size": 1536, "max_position_embeddings": 4096, "vocab_size": 151936, …}

    Tensors: `model.embed_tokens.weight`, …, `model.norm.weight`, `lm_head.weight` (not used),
    `v_head.summary.weight`, shape (1, hidden), and `v_head.summary.bias`: TRL's value head on the last hidden
    state. In PQM all tensors except those of the head begin with `pretrained_model.`. PQM has neither config nor
    tokenizer, so those of its base model are used, with the token [PRM] added.

    Skywork's input consists of the begin-of-sequence token, the problem and a line break, tokenized as one text,
    and then each line of the solution followed by a line break, each tokenized separately. The sigmoid of the value
    at a line break is the probability that the line is valid. The authors give a score for every line. A step of
    several lines is read at its last line, whose value describes the state after the step; search-and-learn
    likewise uses the last value of a solution. With `{"template": {"lines": "spaces", "strip": "steps"}}` a step is
    written on one line, as in compute-optimal-tts.

    PQM's value is trained by ranking and is unbounded. Its sigmoid is shown, which gives the same ranking and is
    what the authors use to weight votes. A threshold of 0.5 follows from their loss, in which a state before any
    step has the value 0, but they do not name one: use `stepsight calibrate` to choose it. The prompt is the one
    they use in evaluation; they train with `[INST] {problem} [/INST]\n`.
    """

    name, order, is_served = "value-head", SIGMOID, True

    def recognises(self, checkpoint: Checkpoint) -> bool:
        return "Qwen2ForPrmModel" in checkpoint.architectures

    def template(self, checkpoint: Checkpoint) -> Mapping[str, Any]:
        bos = checkpoint.special_token("bos_token")
        own = checkpoint.card.get("template")
        if bos is None and not (isinstance(own, dict) and "bos" in own):
            raise UserError(
                f"{checkpoint.folder}: the tokenizer names no token for the start of an input, which Skywork's "
                "prompt needs.",
                'Copy tokenizer_config.json too, or name it in stepsight.json: {"template": {"bos": '
                '"<|endoftext|>"}}.',
            )
        return {
            "prompt": "{problem}\n",
            "separator": "\n",
            "separator_is": Separator.TEXT,
            "bos": bos,
            "opening": False,
            "lines": Lines.SEPARATORS,
        }

    def load(self, checkpoint: Checkpoint, place: Placement) -> Loaded:
        weight = checkpoint.tensor("v_head.summary.weight", (1, checkpoint.size("hidden_size")))
        bias = checkpoint.tensor("v_head.summary.bias", (1,))
        return load_beside(checkpoint, place, linear_head(weight, bias, self.order), self.order)


class LlemmaPrm(CheckpointFormat):
    r"""Easy-to-hard's process reward models on Llemma: a language model with a reward head of two repeated rows.

    Its config.json is the same as any Llama's (abbreviated):

        {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 4096, "vocab_size": 32016, …}

    A repository is therefore recognised by its name, or by `{"format": "llemma-prm"}` in stepsight.json. Tensors:
    `model.embed_tokens.weight`, …, `lm_head.weight`, in pickle files. The two rows of the reward head are repeated
    over the whole vocabulary, so the mean of all logits is the mean of these two, which is the reward. The
    repositories have no tokenizer; `{"tokenizer": "EleutherAI/llemma_7b"}` names a folder or a hub id that has it.

    The input is "# Question\n\nPROBLEM\n\n# Solution\n\nSTEP\n\nSTEP\n\n…" after the begin-of-sequence token. A
    line break is a token, and a step is read at the first of the two line breaks that end it. The authors rank by
    the reward itself, which was trained with binary cross-entropy. Here the sigmoid of the reward is the
    probability that the step is valid, as in PRMBench. PRMBench also removes line breaks from steps; `{"template":
    {"lines": "spaces"}}` comes close to that.
    """

    name, order = "llemma-prm", SIGMOID

    def template(self, checkpoint: Checkpoint) -> Mapping[str, Any]:
        # Two line breaks in total: the tag, and the one before the next step.
        return {
            "prompt": "# Question\n\n{problem}\n\n# Solution\n\n",
            "separator": "<0x0A>",
            "bos": checkpoint.special_token("bos_token") or "<s>",
            "between": "\n",
            "opening": False,
            "joined": True,
        }

    def load(self, checkpoint: Checkpoint, place: Placement) -> Loaded:
        check_language_head(checkpoint, "Llemma's reward models")
        last = checkpoint.size("vocab_size") - 1
        first, second, *others = head_rows(checkpoint, [0, 1, 2, 3, last - 1, last])
        if not all(torch.equal(row, (first, second)[number % 2]) for number, row in enumerate(others)):
            raise UserError(
                f"{checkpoint.folder}: {head_name(checkpoint)} is not two rows repeated, as in Llemma's reward "
                "models.",
                "Name another format in stepsight.json.",
            )
        weight = ((first.float() + second.float()) / 2)[None]
        return load_beside(checkpoint, place, linear_head(weight, order=self.order), self.order)


class EnsembleHead(nn.Module):
    """A head whose logits have the softmax `(1 - v, 0, v)`, where `v` is the mean sigmoid of an ensemble of heads.

    `layers` holds a pair of weights and biases for each layer, of shapes (heads, inputs, outputs) and (heads,
    outputs). The last layer has one output.
    """

    def __init__(self, layers: list[tuple[Tensor, Tensor]]) -> None:
        super().__init__()
        self.weights = nn.ParameterList([weight.float() for weight, _ in layers])
        self.biases = nn.ParameterList([bias.float() for _, bias in layers])

    def values(self, hidden: Tensor) -> Tensor:
        """Return the logit of each head, with shape (heads, …), for hidden states of shape (…, hidden)."""
        states = hidden.float().flatten(0, -2)[None]
        for place, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            states = torch.matmul(states, weight) + bias[:, None]
            states = functional.relu(states) if place < len(self.weights) - 1 else states
        return states.view(-1, *hidden.shape[:-1])

    def forward(self, hidden: Tensor) -> Tensor:
        values = self.values(hidden)
        # The logarithms of the sums over heads: softmax removes the logarithm of their number.
        right = functional.logsigmoid(values).logsumexp(0)
        wrong = functional.logsigmoid(-values).logsumexp(0)
        return torch.stack([wrong, torch.full_like(right, -torch.inf), right], dim=-1)

    def spread(self, hidden: Tensor) -> Tensor:
        """Return the standard deviation of the heads' sigmoids, or 0 for a single head. As in ActPRM's training,
        the denominator is the number of heads minus one."""
        values = torch.sigmoid(self.values(hidden))
        return values.std(0) if len(values) > 1 else torch.zeros_like(values[0])


class EnsemblePrm(CheckpointFormat):
    """ActPRM and ActPRM-X: a causal Qwen2 with an ensemble of small heads, loaded without their remote code.

    config.json, abbreviated:

        {"architectures": ["Qwen2ForEnsemblePRM"], "model_type": "qwen2", "hidden_size": 3584, "num_ensemble": 8,
         "rr_token": "<extra_0>", "max_position_embeddings": 4096, "vocab_size": 152064, …}

    Tensors: `model.embed_tokens.weight`, …, `model.norm.weight`; `score.model.nn1`, `score.model.nn2` and
    `score.model.nn_out`, each with `.weight`, shape (heads, inputs, outputs), and `.bias`, shape (heads, outputs).
    The first two layers are each followed by a ReLU. All three are computed in float32, whatever the type of the
    backbone. `score.reg_model` is needed only in training and is ignored.

    The input is the chat template with a system line, and `rr_token` after each step. Steps are stripped of
    surrounding white space. At that token, the sigmoids of the heads are averaged to give the probability that the
    step is valid. Their standard deviation, which the authors use as a measure of uncertainty, becomes the `spread`
    of the scores.
    """

    name, order = "ensemble-prm", VALIDITY
    _class: ClassVar[str] = "Qwen2ForEnsemblePRM"
    _prompt: ClassVar[str] = (
        "<|im_start|>system\nYou are a helpful and harmless assistant. You should think step-by-step and put your "
        "final answer within \\boxed{}.<|im_end|>\n<|im_start|>user\n{problem}<|im_end|>\n<|im_start|>assistant\n"
    )

    def recognises(self, checkpoint: Checkpoint) -> bool:
        return self._class in checkpoint.architectures

    def template(self, checkpoint: Checkpoint) -> Mapping[str, Any]:
        # The separator used if the config has no rr_token, and the one used if it is null.
        usual = "<extra_0>"
        token = checkpoint.config.get("rr_token", usual)
        token = " \n\n" if token is None else str(token)
        is_token = token == usual or checkpoint.vocabulary.token_id(token) is not None
        return {
            "prompt": self._prompt,
            "separator": token,
            "separator_is": Separator.TOKEN if is_token else Separator.TEXT,
            "opening": False,
            "joined": True,
            "strip": Strip.STEPS,
        }

    def load(self, checkpoint: Checkpoint, place: Placement) -> Loaded:
        if not self.recognises(checkpoint):
            raise other_architecture(checkpoint, self._class)
        heads, width = checkpoint.size("num_ensemble"), checkpoint.size("hidden_size")
        # The config does not state the width of the inner layers, which is 128 in the published checkpoints.
        inner = (checkpoint.shape("score.model.nn1.bias") or (128,))[-1]
        layers: list[tuple[Tensor, Tensor]] = []
        for name, inputs, outputs in (("nn1", width, inner), ("nn2", inner, inner), ("nn_out", inner, 1)):
            weight = checkpoint.tensor(f"score.model.{name}.weight", (heads, inputs, outputs))
            layers.append((weight, checkpoint.tensor(f"score.model.{name}.bias", (heads, outputs))))
        backbone = backbone_of(checkpoint, place)
        return Loaded(backbone, EnsembleHead(layers).to(main_device(backbone)), self.order)
