"""Implicit process reward models (EurusPRM and ImplicitPRM): a language model compared with a reference model.

Their config.json is the same as any language model's (abbreviated):

    {"architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2", "hidden_size": 3584, "vocab_size": 152064, …}

A repository is therefore recognised by its name, or stepsight.json names the format and the reference:

    {"format": "log-ratio", "reference": "Qwen/Qwen2.5-Math-7B-Instruct", "coefficient": 0.001}

Tensors: `model.embed_tokens.weight`, …, `lm_head.weight`, in both models.

The input is the problem and the solution as a chat in the folder's own template, with the steps written as "Step 1:
…" and so on, two line breaks apart. For each token of the solution, the log-probability under the reference is
subtracted from that under the model, and the differences are summed from the first token on. The probability that
the solution is valid so far is the sigmoid of the coefficient times the sum at the end of a step.

A step is read at the same position as in the authors' code. They tokenize the chat up to the step, its end token
and two line breaks, and take the second-to-last log-probability, where the first one belongs to the second token.
This position lies two tokens after the step, in the words "Step 2" that begin the next step; for the last step it
is the token that ends the turn. We do the same, because their published results depend on it.

The authors' code and model card disagree. We follow the card in using the model from which the evaluator was
trained as the reference, and the code in its default coefficient. Their script for ProcessBench uses
Qwen2.5-7B-Instruct, 0.005 and a threshold of 0.5005, chosen on GSM8K. All values are close to 0.5, so use
`stepsight calibrate` to choose a threshold.
"""

import copy
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch
from torch import Tensor, nn

from stepsight.core.errors import UserError
from stepsight.core.formats.chat import rendered_chat
from stepsight.core.formats.format import CheckpointFormat, Loaded, check_language_head
from stepsight.core.hubs.checkpoint_files import CARD
from stepsight.core.models.checkpoint import Checkpoint
from stepsight.core.models.checkpoint_resolver import open_part
from stepsight.core.models.evaluator import fingerprint
from stepsight.core.models.model import SIGMOID, linear_head, main_device
from stepsight.core.models.placement import Placement
from stepsight.core.prompts.encoding import Encoded, Encoder
from stepsight.core.prompts.template import PromptTemplate
from stepsight.core.trace import Trace

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedModel

_COEFFICIENT = 0.001
_LLAMA_END = "<|eot_id|>"
_PROBLEM, _SOLUTION = "⟦problem⟧", "⟦solution⟧"
# The number of tokens whose probabilities are computed at once; each has one for every token of the vocabulary.
_CHUNK = 512


class LogRatioEncoder(Encoder):
    """An encoder that turns a trace into one chat and reads each step at the same position as the authors' code.
    The last token of the chat serves as the separator."""

    def encode(self, trace: Trace) -> Encoded:
        template = self.template
        steps = [template.step_text(number, text) for number, text in enumerate(trace.substeps, start=1)]
        heads = [self._ids(trace, template.between.join(steps[:count])) for count in range(1, len(steps) + 1)]
        ids = [*heads[-1], *self.closing]
        gap = len(self._pieces.encode([template.between], [True])[0])
        before = [len(head) + gap for head in heads[:-1]]
        if self.cuts_end:
            parts = (template.between.join(steps[:count]) for count in range(1, len(steps)))
            before = [len(self._ids(trace, part + template.between)) - 1 for part in parts]
        reads = np.asarray([*before, len(ids) - 1], dtype=np.int64)
        return Encoded(np.asarray(ids, dtype=np.int64), reads, reads)

    @property
    def cuts_end(self) -> bool:
        """True if the authors' code removes the token at the end of a turn before it counts tokens."""
        return self.template.separator == _LLAMA_END

    def opening(self) -> tuple[int, int]:
        """Return the last added token of the prompt, and the distance in tokens from that token to the first token
        of the solution."""
        last = max(place for place, part in enumerate(self._prompt) if isinstance(part, int))
        if self.cuts_end:
            return cast(int, self._prompt[last]), 0
        texts = [part for part in self._prompt[last + 1 :] if isinstance(part, str)]
        tokens = self._pieces.encode(texts, [False] * len(texts))
        return cast(int, self._prompt[last]), 1 + sum(map(len, tokens))

    def _ids(self, trace: Trace, solution: str) -> list[int]:
        """Return the token ids of the prompt and the solution, tokenized as one text."""
        problem = self.template.problem_text(trace.problem)
        parts = [part.replace("{problem}", problem) if isinstance(part, str) else part for part in self._prompt]
        if isinstance(parts[-1], str):
            parts[-1] += solution
        else:
            parts.append(solution)
        texts = [part for part in parts if isinstance(part, str)]
        pieces = iter(self._pieces.encode(texts, [False] * len(texts)))
        return [token for part in parts for token in ([part] if isinstance(part, int) else next(pieces))]


class LogRatio(nn.Module):
    """A language model and its reference, used together as a backbone whose hidden state is a single number.

    This number is the cumulative difference of their log-probabilities from the solution's first token on, in
    float32.
    """

    def __init__(self, model: "PreTrainedModel", reference: "PreTrainedModel", opening: tuple[int, int]) -> None:
        super().__init__()
        self.model, self.reference = model, reference
        self.opening, self._after = opening
        config: Any = copy.deepcopy(model.config)
        # Code that expects the model's original layers must not find them here.
        config.model_type = f"pair of {config.model_type}"
        self.config: PretrainedConfig = config

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> tuple[Tensor]:
        """Return the cumulative differences, with shape (batch, tokens, 1). `input_ids` has the shape (batch,
        tokens)."""
        places = torch.arange(input_ids.shape[1], device=input_ids.device)
        marks = (input_ids == self.opening) & attention_mask.bool()
        start = (marks * places).amax(1, keepdim=True) + self._after
        logs, others = (self._logs(model, input_ids, attention_mask) for model in (self.model, self.reference))
        return (((logs - others) * (places >= start)).cumsum(1).unsqueeze(-1),)

    @staticmethod
    def _logs(model: "PreTrainedModel", input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """Return the log-probability of each token given all earlier tokens, with shape (batch, tokens). It is 0
        for the first token."""
        device = main_device(model, input_ids.device)
        base = model.base_model
        hidden = base(input_ids=input_ids.to(device), attention_mask=attention_mask.to(device), use_cache=False)[0]
        head: nn.Module = model.get_output_embeddings()  # type: ignore[no-untyped-call]
        logs = hidden.new_zeros(input_ids.shape, dtype=torch.float32)
        for row, states in enumerate(hidden):
            for first in range(0, len(states) - 1, _CHUNK):
                targets = input_ids[row, first + 1 : first + 1 + _CHUNK].to(states.device)
                logits = head(states[first : first + len(targets)]).float().log_softmax(-1)
                logs[row, first + 1 : first + 1 + len(targets)] = logits.gather(1, targets[:, None])[:, 0]
        return logs.to(input_ids.device)


class ImplicitPrm(CheckpointFormat):
    """Implicit process reward models, as the module describes them."""

    name, order, encoder = "log-ratio", SIGMOID, LogRatioEncoder

    def template(self, checkpoint: Checkpoint) -> Mapping[str, Any]:
        prompt, solution, after = rendered_chat(checkpoint, [(_PROBLEM, _SOLUTION)]).partition(_SOLUTION)
        before, problem, opening = prompt.partition(_PROBLEM)
        end = checkpoint.vocabulary.first_added(after)
        if not solution or not problem or end is None or checkpoint.vocabulary.first_added(opening) is None:
            raise UserError(
                f"{checkpoint.folder}: its chat template does not end a turn with a token.",
                "Copy tokenizer_config.json again, or name the template in stepsight.json.",
            )
        return {
            "prompt": f"{before}{{problem}}{opening}",
            "separator": end,
            "step": "Step {number}: {step}",
            "between": "\n\n",
            "opening": False,
            "joined": True,
            **({"strip": "all"} if end == _LLAMA_END else {}),
        }

    def load(self, checkpoint: Checkpoint, place: Placement) -> Loaded:
        # This import loads Transformers.
        from stepsight.core.models.pretrained import load_weights, read_config

        check_language_head(checkpoint, "a log-ratio")
        coefficient, reference = _coefficient(checkpoint), _reference(checkpoint)
        check_language_head(reference, "a reference")
        _check_vocabulary(checkpoint, reference)
        values = {**self.template(checkpoint), **checkpoint.card.get("template", {})}
        encoder = LogRatioEncoder(checkpoint.open_vocabulary(), PromptTemplate.from_dict(values))
        model, reference_model = (
            load_weights("AutoModelForCausalLM", part, read_config(part), place).train(False)
            for part in (checkpoint, reference)
        )
        backbone = LogRatio(model, reference_model, encoder.opening())
        head = linear_head(torch.tensor([[coefficient]]), order=self.order).to(main_device(backbone))
        return Loaded(cast("PreTrainedModel", backbone), head, self.order)

    def identity(self, checkpoint: Checkpoint) -> tuple[object, ...]:
        compared = fingerprint(_reference(checkpoint), {}, "")
        return (*super().identity(checkpoint), _coefficient(checkpoint), compared)


def _coefficient(checkpoint: Checkpoint) -> float:
    coefficient = checkpoint.card.get("coefficient", _COEFFICIENT)
    if isinstance(coefficient, bool) or not isinstance(coefficient, int | float) or coefficient <= 0:
        raise UserError(
            f"{checkpoint.folder}/{CARD}: coefficient is {coefficient!r:.40}, expected a number above 0."
        )
    return float(coefficient)


def _reference(checkpoint: Checkpoint) -> Checkpoint:
    return open_part(checkpoint, "reference", "its reference model")


def _check_vocabulary(checkpoint: Checkpoint, reference: Checkpoint) -> None:
    """Raise `UserError` if the reference model lacks a token of the checkpoint or has it under a different id. Both
    models are given the same token ids."""
    own = checkpoint.vocabulary
    has_tokens = reference.tokenizer.read and own.is_within(str(reference.tokenizer.folder))
    if not has_tokens or own.last_id() >= reference.size("vocab_size"):
        raise UserError(
            f"{checkpoint.folder}: its reference {reference.name} has a different vocabulary.",
            f'Name the model that it was trained from in {CARD}, such as {{"reference": "OWNER/NAME"}}.',
        )
