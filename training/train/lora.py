"""LoRA: training adapters through PEFT instead of all weights, and writing them to a folder.

The folder has PEFT's own layout, plus the base model's config.json as used in training, StepSight's stepsight.json
and the tokenizer.
"""

import copy
import difflib
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from stepsight.core.errors import UserError
from stepsight.core.hubs.checkpoint_files import ADAPTER_WEIGHTS, is_hub_id, read_config_file
from stepsight.core.hubs.hub_cache import is_hash
from stepsight.core.models.checkpoint_resolver import BASE_HASH, open_checkpoint
from stepsight.core.models.devices import dtype_name
from stepsight.core.models.evaluator import write_description
from stepsight.core.models.location import shipped_folder
from stepsight.core.models.model import StepModel
from stepsight.core.prompts.encoding import Encoder
from stepsight.training.train.config import Lora

if TYPE_CHECKING:
    from peft import LoraConfig, PeftModel

_PREFIX = "base_model.model."
_LAYER = re.compile(r"\b(?:layers|layer|h|blocks)\.\d{1,6}\.")
"""The number of the layer in a module's name: of Llama's kind, of BERT's, of GPT-2's, of LLaDA's."""


def check_peft() -> None:
    """Check that PEFT is installed, without importing it. Raises `UserError` if it is not."""
    if find_spec("peft") is None:
        raise UserError("Training LoRA adapters needs peft.", "Run: pip install 'stepsight[lora]'")


def load_peft() -> Any:
    """Import and return the package `peft`. Raises `UserError` if it is not installed."""
    check_peft()
    # This import loads Transformers.
    import peft

    return peft


def trained_targets(lora: Lora, backbone: nn.Module) -> list[str]:
    """Return the names of the layers that get adapters, in the form that PEFT accepts.

    A name matches every layer whose full name equals it or ends with a dot and the name. By default, all linear
    layers of the network's blocks get adapters. `backbone` may be without weights. Raises `UserError` if a name in
    `lora.targets` matches no layer.
    """
    linear = [name for name, module in backbone.named_modules() if isinstance(module, nn.Linear)]
    inside = [name for name in linear if _LAYER.search(name)]
    ends = list(dict.fromkeys(_shortest_end(name, set(linear) - set(inside)) for name in inside))
    for target in lora.targets:
        if not any(_is_meant(name, target) for name in inside):
            near = difflib.get_close_matches(target, ends, 1, 0.5)
            raise UserError(
                f"lora.targets: no linear layer of the backbone is called {target!r:.60}.",
                f"Did you mean {near[0]}?" if near else f"There are {', '.join(ends) or 'none'}.",
            )
    if not ends:
        raise UserError("lora: the backbone has no linear layers for adapters.", "Choose another.")
    return list(lora.targets) or ends


def adapted_layers(lora: Lora, backbone: nn.Module) -> list[nn.Linear]:
    """Return the layers that get adapters. Raises `UserError` in the same cases as `trained_targets`."""
    targets = trained_targets(lora, backbone)
    return [
        module
        for name, module in backbone.named_modules()
        if isinstance(module, nn.Linear) and any(_is_meant(name, target) for target in targets)
    ]


def _shortest_end(name: str, others: set[str]) -> str:
    """Return the shortest dotted suffix of a layer's name that matches none of the names `others`."""
    parts = name.split(".")
    ends = (".".join(parts[start:]) for start in range(len(parts) - 1, -1, -1))
    return next((end for end in ends if not any(_is_meant(other, end) for other in others)), name)


def _is_meant(name: str, target: str) -> bool:
    return name == target or name.endswith(f".{target}")


def adapted(model: StepModel, lora: Lora, seed: int) -> "PeftModel":
    """Return the model with new adapters initialised with `seed`. Only the adapters and the head can be trained.
    The adapters and the head are in float32, whatever the type of the frozen weights."""
    peft = load_peft()
    model.score.float()
    config = peft.LoraConfig(
        r=lora.rank,
        lora_alpha=lora.scale,
        lora_dropout=lora.dropout,
        target_modules=trained_targets(lora, model.model),
        modules_to_save=["score"],
        bias="none",
    )
    torch.manual_seed(seed)
    return cast("PeftModel", peft.get_peft_model(model, config))


def trained_weights(model: nn.Module) -> dict[str, Tensor]:
    return {name: weight.detach() for name, weight in model.named_parameters() if weight.requires_grad}


@dataclass(frozen=True)
class AdapterBase:
    """The model that an adapter was trained on.

    `folder` is the model's location. `name` is how the adapter's config refers to the model, and `revision` is the
    model's revision if it comes from a hub. `sha256` is the hash of the model's weights.
    """

    folder: Path
    name: str
    revision: str | None
    sha256: str

    @classmethod
    def of(cls, init: str, folder: Path, output: Path) -> "AdapterBase":
        """Return the base model of a run, where `init` is its name in the configuration and `folder` is its
        location. The path of a local folder is stored relative to `output`, so that both folders can be moved
        together."""
        if shipped_folder(init) == folder or (is_hub_id(init) and folder.parent.name == "snapshots"):
            name = init
        else:
            name = os.path.relpath(folder.resolve(), output.resolve())
        revision = folder.name if name == init and is_hash(folder.name) else None
        return cls(folder, name, revision, open_checkpoint(folder).weights.sha256)


def save_adapter(
    folder: Path,
    model: StepModel,
    config: "LoraConfig",
    weights: Mapping[str, Tensor],
    encoder: Encoder,
    base: AdapterBase,
    provenance: Mapping[str, Any],
    dtype: torch.dtype,
) -> None:
    """Write an adapter to `folder` in PEFT's layout. `config` is PEFT's configuration of the adapter. `weights` are
    the trained weights, keyed by their names in PEFT's model."""
    folder.mkdir(parents=True, exist_ok=True)
    tensors = {_stored_name(name, model): weight.to("cpu", dtype).contiguous() for name, weight in weights.items()}
    save_file(tensors, folder / ADAPTER_WEIGHTS, metadata={"format": "pt"})
    stored = copy.deepcopy(config)
    # PEFT holds a set, whose order differs between processes.
    stored.target_modules = sorted(config.target_modules or ())
    stored.base_model_name_or_path, stored.revision = base.name, base.revision
    stored.task_type, stored.inference_mode = "TOKEN_CLS", True
    stored.save_pretrained(str(folder))
    held = read_config_file(base.folder)
    kept = held.get("dtype") or held.get("torch_dtype") or dtype_name(model.model.dtype)
    write_description(folder, model, encoder, provenance, dtype=str(kept), extra={BASE_HASH: base.sha256})


def _stored_name(name: str, model: StepModel) -> str:
    """Return the name under which PEFT stores a weight. The stored name lacks the adapter's name `default` and
    includes the prefix of the backbone's class."""
    name = name.removeprefix(_PREFIX).replace(".modules_to_save.default.", ".").replace(".default.", ".")
    if name.startswith("model."):
        prefix = model.model.base_model_prefix
        name = f"{prefix}{'.' if prefix else ''}{name.removeprefix('model.')}"
    return f"{_PREFIX}{name}"
