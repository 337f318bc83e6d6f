"""LoRA adapters in PEFT's own layout, merged into the weights of their base without PEFT.

adapter_config.json, abbreviated:

    {"peft_type": "LORA", "task_type": "CAUSAL_LM", "base_model_name_or_path": "Qwen/Qwen2.5-Math-7B-Instruct",
     "revision": null, "r": 8, "lora_alpha": 32, "use_rslora": false, "target_modules": ["q_proj", "v_proj"],
     "modules_to_save": null, "rank_pattern": {}, "alpha_pattern": {}, "fan_in_fan_out": false, …}

Tensors of adapter_model.safetensors: `base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight`, shape
(r, inputs), and `….lora_B.weight`, shape (outputs, r); `base_model.model.score.weight` for a module that was
trained whole. The merged weight is `W + lora_alpha / r · B A`, with the square root of r where `use_rslora`
says so, computed in float64 and kept in float32, whatever the type of W.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from torch import Tensor

from stepsight.core.errors import UserError
from stepsight.core.files import read_json
from stepsight.core.models.checkpoint import read_tensor
from stepsight.core.models.location import ADAPTER, ADAPTER_PICKLE, ADAPTER_WEIGHTS
from stepsight.core.models.pickles import read_pickle

_PREFIX = "base_model.model."
_PAIR = re.compile(r"(?P<module>.+)\.lora_(?P<embedding>embedding_)?(?P<side>[AB])(?:\.[^.]+)??(?:\.weight)?")
_WHOLE = re.compile(r"\.(?:modules_to_save(?:\.default)?|base_layer)(?=\.)")
_MERGE = "Merge it with PEFT (merge_and_unload, then save_pretrained), and give that folder."
# These begin from a base that they changed.
_OTHER_BASES = ("pissa", "olora", "loftq", "corda")


@dataclass(frozen=True)
class Adapter:
    """An adapter's folder: `config` is its adapter_config.json, `tensors` are its weights by the names in the base,
    with the pairs `(A, B)` of `pairs` by the module that they change."""

    folder: Path
    config: Mapping[str, Any]
    pairs: Mapping[str, Mapping[str, Tensor]]
    whole: Mapping[str, Tensor]

    @classmethod
    def open(cls, folder: Path) -> "Adapter":
        """Raises `UserError` where it is no plain LoRA, or a file is missing or damaged."""
        config = read_json(folder / ADAPTER)
        _check_plain(folder, config)
        pairs: dict[str, dict[str, Tensor]] = {}
        whole: dict[str, Tensor] = {}
        for key, tensor in _tensors(folder).items():
            name = key.removeprefix(_PREFIX)
            pair = _PAIR.fullmatch(name)
            if "lora_magnitude" in name or name.endswith("lora_B.bias"):
                raise UserError(f"{folder}: {key} is no part of a plain LoRA.", _MERGE)
            if pair is None:
                whole[_WHOLE.sub("", name)] = tensor
            else:
                side = f"{pair['embedding'] or ''}{pair['side']}"
                pairs.setdefault(pair["module"], {})[side] = tensor
        return cls(folder, config, pairs, whole)

    @property
    def rows(self) -> Mapping[str, int]:
        """The number of rows of each tensor that was trained whole, such as the classes of a score head."""
        return {name: len(tensor) for name, tensor in self.whole.items() if tensor.ndim}

    @property
    def size(self) -> int:
        """The bytes that the merged weights take."""
        matrices = (list(sides.values()) for sides in self.pairs.values())
        # B has as many rows as W, A as many columns: their elements are r times one or the other.
        changed = (
            a.numel() * b.numel() // min(a.shape) ** 2 for a, b in (pair for pair in matrices if len(pair) == 2)
        )
        return 4 * sum(changed) + sum(tensor.nbytes for tensor in self.whole.values())

    def merged(self, base: Mapping[str, Path]) -> Iterator[tuple[str, Tensor]]:
        """The weights that differ from those of `base`, its tensors' files by name.

        Raises `UserError` where the base has no such weight, or one of another shape.
        """
        for module, sides in self.pairs.items():
            name = self._in_base(f"{module}.weight", base)
            weight = read_tensor(dict(base), [name])
            assert weight is not None
            change = self._change(module, sides)
            if change.shape != weight.shape:
                raise UserError(
                    f"{self.folder}: the adapter changes {name} by a matrix of shape {tuple(change.shape)}, in the "
                    f"base it has shape {tuple(weight.shape)}.",
                    'Name the base that it was trained on in stepsight.json, such as {"base": "OWNER/NAME"}.',
                )
            yield name, (weight.double() + change).float()
        for name, tensor in self.whole.items():
            # A head that the base does not have keeps its name.
            yield self._candidates(name, base) or name, tensor

    def _change(self, module: str, sides: Mapping[str, Tensor]) -> Tensor:
        embedding = "embedding_A" in sides
        first, second = (sides.get(f"{'embedding_' if embedding else ''}{side}") for side in "AB")
        if first is None or second is None or first.ndim != 2 or second.ndim != 2 or len(first) != second.shape[1]:
            raise UserError(
                f"{self.folder}: the matrices A and B of {module} do not fit each other.", "Copy it again."
            )
        rank = self._of(module, "rank_pattern", "r")
        if len(first) != rank:
            raise UserError(
                f"{self.folder}: {module} has rank {len(first)}, adapter_config.json says {rank:g}.",
                "Copy it again.",
            )
        scale = self._of(module, "alpha_pattern", "lora_alpha") / (
            rank**0.5 if self.config.get("use_rslora") else rank
        )
        product = second.double() @ first.double() * scale
        return product.T if embedding or self.config.get("fan_in_fan_out") else product

    def _of(self, module: str, pattern: str, key: str) -> float:
        """A number of the config, which may be another one for some modules."""
        others = self.config.get(pattern) or {}
        value = next(
            (one for name, one in others.items() if re.fullmatch(rf"(?:.*\.)?(?:{name})", module)),
            self.config.get(key),
        )
        if isinstance(value, bool) or not isinstance(value, int | float) or value <= 0:
            raise UserError(f"{self.folder}/{ADAPTER}: {key} is {value!r:.40}, expected a number above 0.")
        return value

    def _in_base(self, name: str, base: Mapping[str, Path]) -> str:
        found = self._candidates(name, base)
        if found is None:
            raise UserError(
                f"{self.folder}: the adapter changes {name}, which its base does not have.",
                'Name the base that it was trained on in stepsight.json, such as {"base": "OWNER/NAME"}.',
            )
        return found

    @staticmethod
    def _candidates(name: str, base: Mapping[str, Path]) -> str | None:
        """The base's name for a weight: a network saved without its head has names without their first part."""
        return next((one for one in (name, name.partition(".")[2], f"model.{name}") if one in base), None)


def _check_plain(folder: Path, config: Mapping[str, Any]) -> None:
    kind = str(config.get("peft_type"))
    if kind.upper() != "LORA":
        raise UserError(f"{folder}/{ADAPTER}: peft_type is {kind:.40}, expected LORA.", _MERGE)
    start = str(config.get("init_lora_weights")).lower()
    others = ("use_dora", "layer_replication", "lora_bias", "target_parameters", "alora_invocation_tokens")
    found = next((key for key in (*others, "trainable_token_indices") if config.get(key)), None)
    if found is None and start.startswith(_OTHER_BASES):
        found = f"init_lora_weights {start:.40}"
    if found:
        raise UserError(f"{folder}/{ADAPTER}: {found} is not supported, only plain LoRA is.", _MERGE)


def _tensors(folder: Path) -> dict[str, Tensor]:
    path = folder / ADAPTER_WEIGHTS
    if not path.is_file() and (folder / ADAPTER_PICKLE).is_file():
        return read_pickle(folder / ADAPTER_PICKLE)
    if not path.is_file():
        raise UserError(f"{folder}: {ADAPTER_WEIGHTS} is missing.", "Copy the adapter again.")
    try:
        with safe_open(path, framework="pt") as file:
            return {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError) as error:
        raise UserError(f"{path}: not a whole safetensors file ({error}).", "Copy it again.") from None
