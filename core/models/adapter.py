"""Reading LoRA adapters in PEFT's layout, and merging them in memory into their base model's weights with PEFT.

adapter_config.json, abbreviated:

    {"peft_type": "LORA", "task_type": "CAUSAL_LM", "base_model_name_or_path": "Qwen/Qwen2.5-Math-7B-Instruct",
     "revision": null, "r": 8, "lora_alpha": 32, "use_rslora": false, "target_modules": ["q_proj", "v_proj"],
     "modules_to_save": null, "rank_pattern": {}, "alpha_pattern": {}, "fan_in_fan_out": false, …}

adapter_model.safetensors holds tensors such as `base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight`,
shape (r, inputs), and `….lora_B.weight`, shape (outputs, r). A module that was fully trained is stored under a name
such as `base_model.model.score.weight`. The merged weight is `W + lora_alpha / r · B A`, or with the square root of
r if `use_rslora` is true. It is computed in float32, whatever the type of W.

PEFT receives a config built here, which lists modules by their exact names. Given the config of an untrusted
adapter, PEFT would treat names as regular expressions and load pickles.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from torch import Tensor, nn

from stepsight.core.errors import UserError
from stepsight.core.hubs.checkpoint_files import (
    ADAPTER,
    ADAPTER_PICKLE,
    ADAPTER_WEIGHTS,
    check_header,
    read_adapter_file,
)
from stepsight.core.models import llada
from stepsight.core.models.checkpoint import read_tensor
from stepsight.core.models.pickles import read_pickle

_PREFIX = "base_model.model."
_PAIR = re.compile(r"(?P<module>.+)\.lora_(?P<embedding>embedding_)?(?P<side>[AB])(?:\.[^.]+)??(?:\.weight)?")
_WHOLE = re.compile(r"\.(?:modules_to_save(?:\.default)?|base_layer)(?=\.)")
LAYER = re.compile(r"\b(?:layers|layer|h|blocks)\.(\d{1,6})\.")
"""The number of the layer in a module's name: of Llama's kind, of BERT's, of GPT-2's, of LLaDA's."""
_MERGE = "Merge it with PEFT (merge_and_unload, then save_pretrained), and give that folder."
_NAME_BASE = 'Name the base that it was trained on in stepsight.json, such as {"base": "OWNER/NAME"}.'
_SIDES = ("lora_A.default.weight", "lora_B.default.weight")
_OF_EMBEDDING = ("lora_embedding_A.default", "lora_embedding_B.default")
_UNMERGED = "unmerged-"
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
        """Read the adapter in a folder. Raises `UserError` if it is not plain LoRA, a file is missing or damaged,
        or PEFT is not installed."""
        check_peft()
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

    @property
    def size(self) -> int:
        """An upper bound on the size in bytes of the tensors that `written` yields."""
        pairs = (self._matrices(module) for module in self.pairs if not _is_in_layer(module))
        changed = (first.shape[1] * len(second) for first, second, _ in pairs)
        return 4 * sum(changed) + sum(tensor.nbytes for tensor in self.whole.values())

    def check(self, base: Mapping[str, Path]) -> None:
        """Check that the adapter fits its base model, without reading any weights.

        `base` maps the names of the base model's tensors to files. Raises `UserError` if a weight that the adapter
        changes is missing or has a different shape.
        """
        names = _with_our_names(base)
        for module in self.pairs:
            name = self._in_base(f"{module}.weight", names)
            with safe_open(names[name][1], framework="pt") as file:
                shape = tuple(file.get_slice(names[name][0]).get_shape())
            first, second, _ = self._matrices(module)
            changed = (len(second), first.shape[1])
            # The other way round in embeddings, and in most layers of the networks that `fan_in_fan_out` names.
            turned = changed[::-1] if self._is_embedding(module) else changed
            if shape != turned and not (self._is_turned and shape == changed[::-1]):
                raise UserError(
                    f"{self.folder}: the adapter changes {name} by a matrix of shape {changed}, in the base it has "
                    f"shape {shape}.",
                    _NAME_BASE,
                )

    def written(self, base: Mapping[str, Path]) -> Iterator[tuple[str, Tensor]]:
        """Yield the names and changed weights of modules outside the layers (heads and embeddings). These weights
        are stored in the assembled folder; those in the layers are merged in memory.

        `base` maps the names of the base model's tensors to files.
        """
        names = _with_our_names(base)
        for module in self.pairs:
            if not _is_in_layer(module):
                stored = names[self._in_base(f"{module}.weight", names)][0]
                weight = read_tensor(dict(base), [stored])
                assert weight is not None
                kind = nn.Embedding.from_pretrained if self._is_embedding(module) else _linear
                alone = nn.ModuleDict({"part": kind(weight.float())})
                self._merge(alone, {module: "part"})
                yield stored, alone.get_parameter("part.weight").detach()
        for name, tensor in self.whole.items():
            # A head that the base does not have keeps its name.
            found = self._candidates(name, names)
            yield names[found][0] if found else name, tensor

    def merge_into(self, model: nn.Module, layers: int) -> None:
        """Merge the adapter into a network that has only its first `layers` layers. The network is changed in
        place.

        Every weight keeps its type and its device. Raises `UserError` if the network lacks a weight that the
        adapter changes, or if Accelerate keeps such a weight out of memory.
        """
        modules, names = dict(model.named_modules()), {}
        for module in self.pairs:
            number = LAYER.search(module)
            if number is None or int(number[1]) >= layers:
                continue
            name = self._candidates(our_name(module), modules)
            if name is None:
                raise self._missing(f"{module}.weight")
            if modules[name].get_parameter("weight").is_meta:
                raise UserError(
                    f"{self.folder}: {module} is not in memory, so the adapter cannot be merged into it.",
                    "Merge it with its base first (stepsight evaluators merge), and give that folder.",
                )
            names[module] = name
        self._merge(model, names)

    def _merge(self, network: nn.Module, names: Mapping[str, str]) -> None:
        """Merge modules of the adapter into a network. `names` maps the modules of the adapter to those of the
        network."""
        peft = load_peft()
        alike: defaultdict[tuple[int, float], dict[str, str]] = defaultdict(dict)
        for module, name in names.items():
            first, _, scale = self._matrices(module)
            alike[len(first), scale][module] = name
        # PEFT freezes the whole network.
        trainable = [weight for weight in network.parameters() if weight.requires_grad]
        for (rank, scale), some in alike.items():
            config = peft.LoraConfig(
                r=rank, lora_alpha=scale * rank, target_modules=[*some.values()], fan_in_fan_out=self._is_turned
            )
            adapted = peft.LoraModel(network, config, "default", low_cpu_mem_usage=True)
            tensors = {
                f"model.{name}.{side}": tensor.to(
                    network.get_submodule(name).get_parameter("weight").device
                ).float()
                for module, name in some.items()
                for side, tensor in self.pairs[module].items()
            }
            loaded = adapted.load_state_dict(tensors, strict=False, assign=True)
            assert not loaded.unexpected_keys, loaded
            adapted.merge_and_unload()
        for weight in trainable:
            weight.requires_grad_(True)

    def update(self, digest: Any) -> None:
        """Update a hash with the adapter's matrices for modules in the layers, which are merged in memory."""
        for module in sorted(filter(_is_in_layer, self.pairs)):
            first, second, scale = self._matrices(module)
            digest.update(f"{module} {scale} {tuple(first.shape)} {tuple(second.shape)}".encode())
            for matrix in (first, second):
                digest.update(matrix.float().contiguous().numpy().data)

    def _matrices(self, module: str) -> tuple[Tensor, Tensor, float]:
        """Return the matrices A and B of a module, and the factor by which their product is scaled. Raises
        `UserError` if the matrices do not fit each other or the rank in the config."""
        sides = _OF_EMBEDDING if self._is_embedding(module) else _SIDES
        first, second = (self.pairs[module].get(side) for side in sides)
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

    @property
    def _is_turned(self) -> bool:
        return bool(self.config.get("fan_in_fan_out"))

    def _is_embedding(self, module: str) -> bool:
        return _OF_EMBEDDING[0] in self.pairs[module]

    def _of(self, module: str, others: str, key: str) -> float:
        """Return the config's value of `key` for a module, such as its rank. If the config's mapping `others` has
        an entry whose key is the module's name or the end of it, that entry is used instead. Raises `UserError`
        unless the value is positive."""
        named, parts = self.config.get(others) or {}, module.split(".")
        # Looked up by its ends, since a stranger may name many.
        ends = {end for start in range(len(parts)) if (end := ".".join(parts[start:])) in named}
        name = next((name for name in named if name in ends), None) if len(ends) > 1 else next(iter(ends), None)
        value = self.config.get(key) if name is None else named[name]
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
        """Return the name that the base model uses for a module or tensor of the adapter, or None if it has none.
        If a network is saved without its head, the first component of its names is missing."""
        return next((one for one in (name, name.partition(".")[2], f"model.{name}") if one in base), None)


def check_peft() -> None:
    """Check that PEFT is installed, without importing it. Raises `UserError` if it is not."""
    if find_spec("peft") is None:
        raise UserError("LoRA adapters need peft.", "Run: pip install 'stepsight[lora]'")


def load_peft() -> Any:
    """Import and return the package `peft`. Raises `UserError` if it is not installed."""
    check_peft()
    # It brings Transformers.
    import peft

    return peft


def keep_unmerged(folder: Path, adapters: Sequence[Path], link: Callable[[Path, Path], None]) -> None:
    """Link the files of adapters into numbered subfolders of an assembled folder, so that `unmerged` finds them in
    the same order."""
    for number, adapter in enumerate(adapters, start=1):
        target = folder / f"{_UNMERGED}{number:02d}"
        target.mkdir()
        for name in (ADAPTER, ADAPTER_WEIGHTS, ADAPTER_PICKLE):
            if (adapter / name).is_file():
                link(adapter / name, target / name)


def unmerged_folders(folder: Path) -> list[Path]:
    return sorted(folder.glob(f"{_UNMERGED}*"))


def unmerged(folder: Path) -> list[Adapter]:
    """Open the adapters that must be merged into the layers when the network in `folder` is loaded."""
    return [Adapter.open(one) for one in unmerged_folders(folder)]


def our_name(name: str) -> str:
    """Translate one of LLaDA's own weight or module names to the name in Transformers. Any other name is returned
    unchanged."""
    closed = f"{name}."
    for pattern, ours in llada.NAMES.items():
        if (found := re.sub(pattern, ours, closed)) != closed:
            return found.removesuffix(".")
    return name


def _linear(weight: Tensor) -> nn.Linear:
    layer = nn.Linear(weight.shape[1], weight.shape[0], bias=False, device="meta")
    layer.weight = nn.Parameter(weight)
    return layer


def _with_our_names(base: Mapping[str, Path]) -> dict[str, tuple[str, Path]]:
    """Map the names of a base model's tensors in Transformers to their stored names and files."""
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
    check_header(path)
    try:
        with safe_open(path, framework="pt") as file:
            return {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError) as error:
        raise UserError(f"{path}: not a whole safetensors file ({error}).", "Copy it again.") from None
