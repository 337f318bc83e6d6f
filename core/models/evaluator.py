"""An evaluator that runs a model with its tokenizer and prompt template, loaded from a Hugging Face folder."""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from stepsight.core.arrays import Floats32
from stepsight.core.errors import UserError, located
from stepsight.core.evaluator_summary import OWN_READING, Reading
from stepsight.core.hubs.checkpoint_files import CARD, CARD_VERSION, TOKENIZER, WEIGHTS
from stepsight.core.models.checkpoint import ATTENTIONS, Checkpoint
from stepsight.core.models.devices import dtype_name
from stepsight.core.models.evaluator_base import Evaluator
from stepsight.core.models.model import StepModel, context_of
from stepsight.core.prompts.encoding import Encoded, Encoder, encode_in_windows
from stepsight.core.prompts.template import Read
from stepsight.core.scores import Outputs, Thresholds
from stepsight.core.trace import Label, Trace


@dataclass(frozen=True, eq=False, kw_only=True)
class ModelEvaluator(Evaluator):
    """An evaluator that scores traces with a model.

    `format` is the format of its checkpoint. `outputs` is three-way or validity; for validity `v`, the
    probabilities are `(1 - v, 0, v)` and redundancy is meaningless. `identify` computes the fingerprint. It is
    called only when needed, because reading all weights of a large model takes longer than judging a trace. If
    `reading` has a window, long traces are read in windows of at most that many tokens (see
    `core.prompts.encoding`).
    """

    model: StepModel
    encoder: Encoder
    identify: Callable[[], str]
    format: str = "stepsight"

    @cached_property
    def fingerprint(self) -> str:
        """The hash of the weights, tokenizer and template. Raises `UserError` if the files have changed since the
        evaluator was loaded."""
        return self.identify()

    @property
    def is_causal(self) -> bool:
        """True if no token sees a later token, as recorded in the backbone's config."""
        return bool(getattr(self.model.config, "is_causal", True))

    def read_as(self, reading: Reading) -> "ModelEvaluator":
        """Like `Evaluator.read_as`, for windows: the copy reads long traces in them, and shares the model.
        `core.evaluators.both_orders.read_as` also has a model read in both orders."""
        reading.check(self.name, is_causal=self.is_causal, context=self.context)
        windows = Reading(window=reading.window)
        if windows in (OWN_READING, self.reading):
            return self
        return replace(
            self,
            name=f"{self.name}{windows}",
            identify=lambda: windows.fingerprint(self.fingerprint),
            reading=windows,
        )

    @property
    def attention(self) -> str:
        """Like `Evaluator.attention`. The mask is causal if `is_causal` is True."""
        return ATTENTIONS[self.is_causal]

    @cached_property
    def context(self) -> int:
        context = context_of(self.model.model)
        assert context is not None
        return context

    @property
    def dtype(self) -> str:
        return dtype_name(next(self.model.parameters()).dtype)

    @property
    def parameters(self) -> int:
        return sum(parameter.numel() for parameter in self.model.parameters())

    @property
    def described(self) -> str:
        """One line that names the format, the backbone, the attention, the label classes, the token at which the
        score of a step is read, and the maximum input length."""
        classes = "neg, neu and pos" if self.outputs == Outputs.THREE_WAY else "validity only"
        read = self.encoder.template.read
        place = "the separator" if read == Read.SEPARATOR else f"the {read} token"
        kind = self.model.config.model_type
        return (
            f"{self.name}: {self.format} format, {kind} backbone, {self.attention}, {classes}, "
            f"each step read at {place}, inputs of up to {self.context:,} tokens."
        )

    def encode(self, trace: Trace) -> Encoded:
        """Return the token ids of the whole trace.

        Raises `UserError`, with a message that names the trace, its token count and the limit, if the trace is
        longer than the context, or if it is read in windows and one of its steps is longer than a window.
        """
        if self.reading.window is not None:
            one_pass = self.is_causal or self.encoder.asks_each_step
            with located(named(trace)):
                return encode_in_windows(self.encoder, trace, self.reading.window, one_pass=one_pass)
        encoded = self.encoder.encode(trace)
        if len(encoded) <= self.context:
            return encoded
        raise UserError(
            f"{named(trace)} has {len(encoded):,} tokens, but {self.name} reads at most {self.context:,}.",
            f"Shorten it (or read windows of it with --window {self.context}, or use --skip-too-long).",
        )

    def check_numbers(self, probs: Iterable[Floats32], trace: Trace | None = None) -> None:
        """Raise `UserError`, with a message that names the trace, if a probability is not a number. This happens
        when weights overflow in their data type."""
        check_numbers(self.name, probs, trace)


def check_numbers(name: str, probs: Iterable[Floats32], trace: Trace | None = None) -> None:
    """Raise `UserError`, with a message that names trace and evaluator, if a probability is not a number."""
    if not all(np.isfinite(row).all() for row in probs):
        raise UserError(
            f"{named(trace)}: {name} returned probabilities that are not numbers.",
            "If its weights are in float16, use bfloat16 or float32 (--dtype); otherwise they are damaged.",
        )


def named(trace: Trace | None) -> str:
    """Return the words for a trace in messages, such as `trace '17'`, or `the trace` if it has no id."""
    return f"trace {trace.id!r}" if trace is not None and trace.id else "the trace"


def save_evaluator(
    folder: Path,
    model: StepModel,
    encoder: Encoder,
    provenance: dict[str, Any],
    thresholds: Thresholds | None = None,
    dtype: torch.dtype = torch.float32,
) -> None:
    """Write the folder of an evaluator: config.json, model.safetensors, tokenizer.json and stepsight.json. `dtype`
    is the type of the stored weights. Raises `UserError` unless the head is linear with three classes, because such
    a folder can hold no other head."""
    head = model.score
    if not isinstance(head, nn.Linear) or (head.bias is not None and head.bias.isinf().any()):
        raise UserError("the evaluator's head is not a linear layer for neg, neu and pos.", "Train such a head.")
    folder.mkdir(parents=True, exist_ok=True)
    tensors = {name: value.detach().to("cpu", dtype).contiguous() for name, value in _named_tensors(model)}
    save_file(tensors, folder / WEIGHTS, metadata={"format": "pt"})
    # float16 only makes the file smaller; the evaluator was trained and measured in float32.
    extra = {"dtype": "float32"} if dtype == torch.float16 else None
    write_description(folder, model, encoder, provenance, thresholds, dtype_name(dtype), extra)


def write_description(
    folder: Path,
    model: StepModel,
    encoder: Encoder,
    provenance: Mapping[str, Any],
    thresholds: Thresholds | None = None,
    dtype: str = "float32",
    extra: Mapping[str, Any] | None = None,
) -> None:
    """Write the files that accompany weights of type `dtype`: config.json, tokenizer.json and stepsight.json. The
    keys in `extra` are added to stepsight.json."""
    thresholds = thresholds or Thresholds()
    config = model.config.to_dict() | {"dtype": dtype}
    # A path on this machine.
    config.pop("_name_or_path", None)
    config["architectures"] = [type(model.model).__name__.replace("Model", "ForTokenClassification")]
    # Servers such as vLLM read the number of classes from here.
    config["id2label"] = {str(int(label)): label.text for label in Label}
    config["label2id"] = {label.text: int(label) for label in Label}
    _write_json(folder / "config.json", config)
    encoder.tokenizer.save(str(folder / TOKENIZER))
    card = {
        "format": "stepsight",
        "version": CARD_VERSION,
        "attention": ATTENTIONS[bool(getattr(model.config, "is_causal", True))],
        "template": encoder.template.to_dict(),
        "thresholds": {"validity": thresholds.validity, "redundancy": thresholds.redundancy},
        **(extra or {}),
        "provenance": dict(provenance),
    }
    _write_json(folder / CARD, card)


def _named_tensors(model: StepModel) -> Iterator[tuple[str, Tensor]]:
    """Yield the weights under the names that Transformers expects.

    The names begin with the prefix of the backbone's class, such as `model` for Llama, `bert` for BERT and
    `transformer` for GPT-2.
    """
    prefix = model.model.base_model_prefix
    for name, value in model.model.state_dict().items():
        yield f"{prefix}.{name}" if prefix else name, value
    for name, value in model.score.state_dict().items():
        yield f"score.{name}", value


def fingerprint(checkpoint: Checkpoint, template: dict[str, Any], attention: str, *extra: Any) -> str:
    """Return the SHA-256 of everything that determines an evaluator's scores.

    It covers every tensor (name, type, shape, bytes), what an adapter changes of its base, the tokenizer, the
    template, the mask, and the values in `extra`, which determine how the weights are read.
    """
    digest = hashlib.sha256()
    checkpoint.weights.update(digest)
    for path in checkpoint.tokenizer.read:
        digest.update(path.read_bytes())
    values = [template, attention, *extra, *(checkpoint.tokenizer.added and [checkpoint.tokenizer.added])]
    digest.update(json.dumps(values, sort_keys=True).encode())
    return digest.hexdigest()


def _write_json(path: Path, value: dict[str, Any]) -> None:
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False, sort_keys=False) + "\n", encoding="utf-8")
