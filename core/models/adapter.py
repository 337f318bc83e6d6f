"""LoRA adapters in PEFT's own layout, merged into the weights of their base in memory, without PEFT.

adapter_config.json, abbreviated:

    {"peft_type": "LORA", "task_type": "CAUSAL_LM", "base_model_name_or_path": "Qwen/Qwen2.5-Math-7B-Instruct",
     "revision": null, "r": 8, "lora_alpha": 32, "use_rslora": false, "target_modules": ["q_proj", "v_proj"],
     "modules_to_save": null, "rank_pattern": {}, "alpha_pattern": {}, "fan_in_fan_out": false, …}

Tensors of adapter_model.safetensors: `base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight`, shape
(r, inputs), and `….lora_B.weight`, shape (outputs, r); `base_model.model.score.weight` for a module that was
trained whole. The merged weight is `W + lora_alpha / r · B A`, with the square root of r where `use_rslora`
says so, computed in float32, whatever the type of W.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn

from stepsight.core.errors import UserError
from stepsight.core.hubs.layout import ADAPTER, ADAPTER_PICKLE, ADAPTER_WEIGHTS
from stepsight.core.models import llada
from stepsight.core.models.checkpoint import read_tensor
from stepsight.core.models.config_files import read_adapter_file
from stepsight.core.models.pickles import read_pickle

_PREFIX = "base_model.model."
_PAIR = re.compile(r"(?P<module>.+)\.lora_(?P<embedding>embedding_)?(?P<side>[AB])(?:\.[^.]+)??(?:\.weight)?")
_WHOLE = re.compile(r"\.(?:modules_to_save(?:\.default)?|base_layer)(?=\.)")
LAYER = re.compile(r"\b(?:layers|layer|h|blocks)\.(\d{1,6})\.")
"""The number of the layer in a module's name: of Llama's kind, of BERT's, of GPT-2's, of LLaDA's."""
_MERGE = "Merge it with PEFT (merge_and_unload, then save_pretrained), and give that folder."
_NAME_BASE = 'Name the base that it was trained on in stepsight.json, such as {"base": "OWNER/NAME"}.'
_UNMERGED = "unmerged-"
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
        config = read_adapter_file(folder)
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
        """The bytes of what `written` gives, at most."""
        changed = (a.shape[1] * len(b) for a, b in self._written_pairs())
        return 4 * sum(changed) + sum(tensor.nbytes for tensor in self.whole.values())

    def _written_pairs(self) -> Iterator[tuple[Tensor, Tensor]]:
        for module, sides in self.pairs.items():
            if not _is_in_layer(module):
                first, second, _ = self._matrices(module, sides)
                yield first, second

    def check(self, base: Mapping[str, Path]) -> None:
        """Raises `UserError` where the base, its tensors' files by name, has no weight that the adapter changes, or
        one of another shape. No weight is read."""
        names = _with_our_names(base)
        for module, sides in self.pairs.items():
            name = self._in_base(f"{module}.weight", names)
            with safe_open(names[name][1], framework="pt") as file:
                shape = tuple(file.get_slice(names[name][0]).get_shape())
            self._check_shape(name, module, sides, shape)

    def written(self, base: Mapping[str, Path]) -> Iterator[tuple[str, Tensor]]:
        """The weights that differ from those of `base`, its tensors' files by name, and are in no layer of the
        network: heads and embeddings, which more than the network reads."""
        names = _with_our_names(base)
        for module, sides in self.pairs.items():
            if _is_in_layer(module):
                continue
            name = self._in_base(f"{module}.weight", names)
            weight = read_tensor(dict(base), [names[name][0]])
            assert weight is not None
            yield names[name][0], self._merged(weight, module, sides)
        for name, tensor in self.whole.items():
            # A head that the base does not have keeps its name.
            found = self._candidates(name, names)
            yield names[found][0] if found else name, tensor

    @torch.no_grad()
    def merge_into(self, model: nn.Module, layers: int) -> None:
        """Change the weights of the first `layers` layers of a network, which has no more; each in its own type and
        place. Raises `UserError` where it has no such weight, or Accelerate keeps it out of memory."""
        modules = dict(model.named_modules())
        for module, sides in self.pairs.items():
            number = LAYER.search(module)
            if number is None or int(number[1]) >= layers:
                continue
            name = self._candidates(our_name(module), modules)
            part: Any = modules[name] if name is not None else None
            if part is None:
                raise self._missing(f"{module}.weight")
            if part.weight.is_meta:
                raise UserError(
                    f"{self.folder}: {module} is not in memory, so the adapter cannot be merged into it.",
                    "Write the merged evaluator with stepsight evaluators merge, and give that folder.",
                )
            self._check_shape(f"{module}.weight", module, sides, tuple(part.weight.shape))
            part.weight.data = self._merged(part.weight.data, module, sides).to(part.weight.dtype)

    def update(self, digest: Any) -> None:
        """Add what is merged in memory to a hash."""
        for module in sorted(filter(_is_in_layer, self.pairs)):
            first, second, scale = self._matrices(module, self.pairs[module])
            digest.update(f"{module} {scale} {tuple(first.shape)} {tuple(second.shape)}".encode())
            for matrix in (first, second):
                digest.update(matrix.float().contiguous().numpy().data)

    def _merged(self, weight: Tensor, module: str, sides: Mapping[str, Tensor]) -> Tensor:
        first, second, scale = self._matrices(module, sides)
        first, second = first.to(weight.device).float(), second.to(weight.device).float()
        if self._is_turned(sides):
            first, second = second.T, first.T
        return torch.addmm(weight.float(), second, first, alpha=scale)

    def _is_turned(self, sides: Mapping[str, Tensor]) -> bool:
        """Whether the weight is the other way round, as those of embeddings and of GPT-2 are."""
        return "embedding_A" in sides or bool(self.config.get("fan_in_fan_out"))

    def _check_shape(self, name: str, module: str, sides: Mapping[str, Tensor], shape: tuple[int, ...]) -> None:
        first, second, _ = self._matrices(module, sides)
        changed = (len(second), first.shape[1])
        changed = changed[::-1] if self._is_turned(sides) else changed
        if changed != shape:
            raise UserError(
                f"{self.folder}: the adapter changes {name} by a matrix of shape {changed}, in the base it has "
                f"shape {shape}.",
                _NAME_BASE,
            )

    def _matrices(self, module: str, sides: Mapping[str, Tensor]) -> tuple[Tensor, Tensor, float]:
        """A and B, with what their product is multiplied by. Raises `UserError` where they do not fit."""
        embedding = "embedding_" if "embedding_A" in sides else ""
        first, second = (sides.get(f"{embedding}{side}") for side in "AB")
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
        root = rank**0.5 if self.config.get("use_rslora") else rank
        return first, second, self._of(module, "alpha_pattern", "lora_alpha") / root

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

    def _in_base(self, name: str, base: Mapping[str, object]) -> str:
        found = self._candidates(our_name(name), base)
        if found is None:
            raise self._missing(name)
        return found

    def _missing(self, name: str) -> UserError:
        return UserError(f"{self.folder}: the adapter changes {name}, which its base does not have.", _NAME_BASE)

    @staticmethod
    def _candidates(name: str, base: Mapping[str, object]) -> str | None:
        """The base's name for a part: a network saved without its head has names without their first part."""
        return next((one for one in (name, name.partition(".")[2], f"model.{name}") if one in base), None)


def keep_unmerged(folder: Path, adapters: Sequence[Path], link: Callable[[Path, Path], None]) -> None:
    """Put adapters into a folder that was put together, for `unmerged` to find in this order."""
    for number, adapter in enumerate(adapters, start=1):
        target = folder / f"{_UNMERGED}{number:02d}"
        target.mkdir()
        for name in (ADAPTER, ADAPTER_WEIGHTS, ADAPTER_PICKLE):
            if (adapter / name).is_file():
                link(adapter / name, target / name)


def unmerged_folders(folder: Path) -> list[Path]:
    return sorted(folder.glob(f"{_UNMERGED}*"))


def unmerged(folder: Path) -> list[Adapter]:
    """The adapters that are to be merged into the layers of a folder's network as it is loaded."""
    return [Adapter.open(one) for one in unmerged_folders(folder)]


def our_name(name: str) -> str:
    """The name in Transformers' network of what LLaDA's own names stand for; any other as it is."""
    closed = f"{name}."
    for pattern, ours in llada.NAMES.items():
        if (found := re.sub(pattern, ours, closed)) != closed:
            return found.removesuffix(".")
    return name


def _with_our_names(base: Mapping[str, Path]) -> dict[str, tuple[str, Path]]:
    """The name and the file of each tensor of a base, by the name in Transformers' network."""
    return {our_name(name): (name, path) for name, path in base.items()}


def _is_in_layer(module: str) -> bool:
    return LAYER.search(module) is not None


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
