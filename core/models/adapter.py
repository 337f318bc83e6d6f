"""Reading LoRA adapters in PEFT's layout.

adapter_config.json, abbreviated:

    {"peft_type": "LORA", "task_type": "CAUSAL_LM", "base_model_name_or_path": "Qwen/Qwen2.5-Math-7B-Instruct",
     "revision": null, "r": 8, "lora_alpha": 32, "use_rslora": false, "target_modules": ["q_proj", "v_proj"],
     "modules_to_save": null, "rank_pattern": {}, "alpha_pattern": {}, "fan_in_fan_out": false, …}

adapter_model.safetensors holds tensors such as `base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight`,
shape (r, inputs), and `….lora_B.weight`, shape (outputs, r). A module that was fully trained is stored under a name
such as `base_model.model.score.weight`. The merged weight is `W + lora_alpha / r · B A`, or with the square root of
r if `use_rslora` is true (`core.models.weights.LowRank`).
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from stepsight.core.errors import UserError
from stepsight.core.hubs.checkpoint_files import (
    ADAPTER,
    ADAPTER_PICKLE,
    ADAPTER_WEIGHTS,
    NAME_BASE,
    read_adapter_file,
)
from stepsight.core.models import llada
from stepsight.core.models.weights import CheckpointWeights, LowRank, names_in, read_pickle

_PREFIX = "base_model.model."
_PAIR = re.compile(r"(?P<module>.+)\.lora_(?P<embedding>embedding_)?(?P<side>[AB])(?:\.[^.]+)??(?:\.weight)?")
_WHOLE = re.compile(r"\.(?:modules_to_save(?:\.default)?|base_layer)(?=\.)")
_MERGE = "Merge it with PEFT (merge_and_unload, then save_pretrained), and give that folder."
_SIDES = ("lora_A.default.weight", "lora_B.default.weight")
_OF_EMBEDDING = ("lora_embedding_A.default", "lora_embedding_B.default")
# Initialisations that change the base.
_OTHER_BASES = ("pissa", "olora", "loftq", "corda")


@dataclass(frozen=True)
class Adapter:
    """The contents of an adapter's folder.

    `config` is its adapter_config.json. `pairs` holds the matrices A and B of each changed module, and `whole` the
    tensors that were fully trained. The keys of both are names as in the base model.
    """

    folder: Path
    config: Mapping[str, Any]
    pairs: Mapping[str, Mapping[str, Tensor]]
    whole: Mapping[str, Tensor]

    @classmethod
    def open(cls, folder: Path) -> "Adapter":
        """Read the adapter in a folder. Raises `UserError` if it is not plain LoRA, or a file is missing or
        damaged."""
        config = read_adapter_file(folder)
        _check_plain(folder, config)
        pairs: dict[str, dict[str, Tensor]] = {}
        whole: dict[str, Tensor] = {}
        for key, tensor in _tensors(folder).items():
            name = key.removeprefix(_PREFIX)
            pair = _PAIR.fullmatch(name)
            if "lora_magnitude" in name or name.endswith("lora_B.bias"):
                raise UserError(f"{folder}: {key} is not part of a plain LoRA.", _MERGE)
            if pair is None:
                whole[_WHOLE.sub("", name)] = tensor
            else:
                side = (_OF_EMBEDDING if pair["embedding"] else _SIDES)["AB".index(pair["side"])]
                pairs.setdefault(pair["module"], {})[side] = tensor
        return cls(folder, config, pairs, whole)

    @property
    def rows(self) -> Mapping[str, int]:
        """The number of rows of each fully trained tensor, by name. For a score head, this is its number of
        classes."""
        return {name: len(tensor) for name, tensor in self.whole.items() if tensor.ndim}

    def on(self, base: CheckpointWeights) -> CheckpointWeights:
        """Return the weights of the base model as the adapter changes them. No weights are read.

        Raises `UserError` if a weight that the adapter changes is missing or has a different shape.
        """
        names = {llada.renamed(name): name for name in base}
        changes = {}
        for module in self.pairs:
            name = self._candidate(f"{module}.weight", names)
            if name is None:
                raise UserError(
                    f"{self.folder}: the adapter changes {module}.weight, which its base does not have.", NAME_BASE
                )
            first, second, scale = self._matrices(module)
            shape, changed = base.shape(names[name]), (len(second), first.shape[1])
            # The shape is transposed in embeddings, and in most layers of the networks that `fan_in_fan_out` names.
            is_turned = self._is_embedding(module) or (
                bool(self.config.get("fan_in_fan_out")) and shape == changed[::-1]
            )
            if shape != (changed[::-1] if is_turned else changed):
                raise UserError(
                    f"{self.folder}: the adapter's change to {name} has shape {changed}, but in its base it has "
                    f"shape {shape}.",
                    NAME_BASE,
                )
            changes[names[name]] = LowRank(first, second, scale, is_turned)
        # A head that the base does not have keeps its name.
        tensors = {}
        for name, tensor in self.whole.items():
            base_name = self._candidate(name, names)
            tensors[names[base_name] if base_name else name] = tensor
        paths = sorted(path for path in self.folder.glob("adapter_*") if path.is_file())
        return CheckpointWeights(tensors=tensors, changes=changes, base=base, paths=paths)

    def _matrices(self, module: str) -> tuple[Tensor, Tensor, float]:
        """Return the matrices A and B of a module, and the factor by which their product is scaled. Raises
        `UserError` if the matrices do not fit each other or the rank in the config."""
        sides = _OF_EMBEDDING if self._is_embedding(module) else _SIDES
        first, second = (self.pairs[module].get(side) for side in sides)
        if first is None or second is None or first.ndim != 2 or second.ndim != 2 or len(first) != second.shape[1]:
            raise UserError(
                f"{self.folder}: the matrices A and B of {module} do not fit together.", "Copy it again."
            )
        rank = self._module_value(module, "rank_pattern", "r")
        if len(first) != rank:
            raise UserError(
                f"{self.folder}: {module} has rank {len(first)}, but adapter_config.json says {rank:g}.",
                "Copy it again.",
            )
        root = rank**0.5 if self.config.get("use_rslora") else rank
        return first, second, self._module_value(module, "alpha_pattern", "lora_alpha") / root

    def _is_embedding(self, module: str) -> bool:
        return _OF_EMBEDDING[0] in self.pairs[module]

    def _module_value(self, module: str, others: str, key: str) -> float:
        """Return the config's value of `key` for a module, such as its rank. If the config's mapping `others` has
        an entry whose key is the module's name or the end of it, that entry is used instead. Raises `UserError`
        unless the value is positive."""
        named, parts = self.config.get(others) or {}, module.split(".")
        # Looked up by the ends of its name, since an untrusted file may list many names.
        ends = {end for start in range(len(parts)) if (end := ".".join(parts[start:])) in named}
        name = next((name for name in named if name in ends), None) if len(ends) > 1 else next(iter(ends), None)
        value = self.config.get(key) if name is None else named[name]
        if isinstance(value, bool) or not isinstance(value, int | float) or value <= 0:
            raise UserError(f"{self.folder}/{ADAPTER}: {key} is {value!r:.40}, expected a number above 0.")
        return value

    @staticmethod
    def _candidate(name: str, base: Mapping[str, object]) -> str | None:
        """Return the name that the base model uses for a tensor of the adapter, or None if it has none. If a
        network is saved without its head, the first component of its names is missing."""
        name = llada.renamed(name)
        candidates = (name, name.partition(".")[2], f"model.{name}")
        return next((candidate for candidate in candidates if candidate in base), None)


def _check_plain(folder: Path, config: Mapping[str, Any]) -> None:
    kind = str(config.get("peft_type"))
    if kind.upper() != "LORA":
        raise UserError(f"{folder}/{ADAPTER}: peft_type is {kind:.40}, expected LORA.", _MERGE)
    start = str(config.get("init_lora_weights")).lower()
    others = ("use_dora", "layer_replication", "lora_bias", "target_parameters", "alora_invocation_tokens")
    unsupported = next((key for key in (*others, "trainable_token_indices") if config.get(key)), None)
    if unsupported is None and start.startswith(_OTHER_BASES):
        unsupported = f"init_lora_weights {start:.40}"
    if unsupported:
        raise UserError(f"{folder}/{ADAPTER}: {unsupported} is not supported, only plain LoRA is.", _MERGE)


def _tensors(folder: Path) -> dict[str, Tensor]:
    path = folder / ADAPTER_WEIGHTS
    if not path.is_file() and (folder / ADAPTER_PICKLE).is_file():
        return read_pickle(folder / ADAPTER_PICKLE)
    if not path.is_file():
        raise UserError(f"{folder}: {ADAPTER_WEIGHTS} is missing.", "Copy the adapter again.")
    weights = CheckpointWeights(names_in(path))
    return {name: weights.read(name) for name in weights}
