"""An evaluator: a step model with its tokenizer and template, on disk a folder in Hugging Face layout."""

import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

from core.checkpoint import WEIGHTS, read_tensor, tensor_files
from core.encoding import Encoded, Encoder
from core.errors import UserError
from core.model import StepModel
from core.scores import Thresholds
from core.trace import Trace

CARD = "stepsight.json"
TOKENIZER = "tokenizer.json"
ATTENTIONS = ("bidirectional", "causal")


@dataclass(frozen=True, eq=False)
class Evaluator:
    """What turns traces into probabilities.

    `format` names the checkpoint layout it came from, `fingerprint` is the hash of weights, tokenizer and
    template that every stored judgment carries, `provenance` says how it was trained.
    """

    name: str
    model: StepModel
    encoder: Encoder
    fingerprint: str
    format: str = "stepsight"
    thresholds: Thresholds = field(default_factory=Thresholds)
    provenance: dict[str, Any] = field(default_factory=dict)

    @property
    def attention(self) -> str:
        """`bidirectional` or `causal`: one value of the backbone's config, nothing else differs."""
        return ATTENTIONS[bool(getattr(self.model.config, "is_causal", True))]

    @property
    def context(self) -> int:
        """The longest input in tokens."""
        return int(self.model.config.max_position_embeddings)

    @property
    def parameters(self) -> int:
        return sum(parameter.numel() for parameter in self.model.parameters())

    def encode(self, trace: Trace) -> Encoded:
        """Token ids of the whole trace.

        Raises `UserError` naming the trace, its token count and the limit where it is longer than the context.
        """
        encoded = self.encoder.encode(trace)
        if len(encoded) > self.context:
            which = f"trace {trace.id!r}" if trace.id else "the trace"
            raise UserError(
                f"{which} has {len(encoded):,} tokens, {self.name} reads at most {self.context:,}.",
                "Shorten it, or leave such traces out with --skip-too-long.",
            )
        return encoded


def save_evaluator(
    folder: Path,
    model: StepModel,
    encoder: Encoder,
    provenance: dict[str, Any],
    thresholds: Thresholds | None = None,
    dtype: torch.dtype = torch.float32,
) -> None:
    """Write an evaluator's folder: config.json, model.safetensors, tokenizer.json and stepsight.json."""
    thresholds = thresholds or Thresholds()
    folder.mkdir(parents=True, exist_ok=True)
    config = model.config.to_dict() | {"dtype": str(dtype).removeprefix("torch.")}
    config["architectures"] = [type(model.model).__name__.replace("Model", "ForTokenClassification")]
    _write_json(folder / "config.json", config)
    tensors = {name: value.detach().to("cpu", dtype).contiguous() for name, value in model.state_dict().items()}
    save_file(tensors, folder / WEIGHTS, metadata={"format": "pt"})
    encoder.tokenizer.save(str(folder / TOKENIZER))
    card = {
        "format": "stepsight",
        "attention": ATTENTIONS[bool(getattr(model.config, "is_causal", True))],
        "template": encoder.template.to_dict(),
        "thresholds": {"validity": thresholds.validity, "redundancy": thresholds.redundancy},
        "provenance": provenance,
    }
    _write_json(folder / CARD, card)


def fingerprint(folder: Path, template: dict[str, Any], attention: str) -> str:
    """SHA-256 over every tensor (name, type, shape, bytes), the tokenizer, the template and the mask."""
    digest = hashlib.sha256()
    files = tensor_files(folder)
    for name in sorted(files):
        tensor = read_tensor(files, [name])
        assert tensor is not None
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.contiguous().flatten().view(torch.uint8).numpy().tobytes())
    digest.update((folder / TOKENIZER).read_bytes())
    digest.update(json.dumps([template, attention], sort_keys=True).encode())
    return digest.hexdigest()


def _write_json(path: Path, value: dict[str, Any]) -> None:
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False, sort_keys=False) + "\n", encoding="utf-8")
