"""The size of a network, exact and without allocating any of it."""

import re
from dataclasses import dataclass
from pathlib import Path

import torch
from transformers import PretrainedConfig

from core.assets import asset
from core.backbone import read_config
from core.errors import UserError
from core.hub import cached, is_hub_id
from core.json_file import read_json
from core.model import StepModel
from training.config import TrainConfig
from training.start import llama_config

# A layer's number in the name of a weight: of Llama's kind, of BERT's, of GPT-2's.
_LAYER = re.compile(r"\.(?:layers|layer|h)\.(\d+)\.")


@dataclass(frozen=True)
class Network:
    """`parameters` of the backbone and the score head, of which `layer` are in the largest layer and `rest` in
    none; `embedding` of them only look tokens up. `layers`, `hidden` and `mlp` are its dimensions."""

    parameters: int
    layer: int
    rest: int
    embedding: int
    layers: int
    hidden: int
    mlp: int


def network_of(config: TrainConfig, root: Path) -> Network:
    """The network that a run trains, from its configuration alone; `root` is the folder of the configuration.

    That of `init` is told by its config.json where it is on this machine, and else by the recipe's `plan`. Nothing
    is fetched. Raises `UserError` where neither tells.
    """
    with torch.device("meta"):
        model = StepModel.from_config(_config(config, root))
    sizes = {name: parameter.numel() for name, parameter in model.named_parameters()}
    layers: dict[str, int] = {}
    for name, size in sizes.items():
        if (found := _LAYER.search(name)) is not None:
            layers[found[1]] = layers.get(found[1], 0) + size
    total = sum(sizes.values())
    hidden = int(model.config.hidden_size)
    return Network(
        parameters=total,
        layer=max(layers.values(), default=0),
        rest=total - sum(layers.values()),
        embedding=model.model.get_input_embeddings().get_parameter("weight").numel(),
        layers=len(layers),
        hidden=hidden,
        # GPT-2 and its like name no width of the feed-forward layer where it is four times the model's.
        mlp=int(getattr(model.config, "intermediate_size", 4 * hidden)),
    )


def _config(config: TrainConfig, root: Path) -> PretrainedConfig:
    plan = config.plan
    if config.init is None:
        assert config.backbone is not None
        return llama_config(config.backbone, config.vocabulary, config.attention)
    folder = _folder(config.init, root)
    if folder is not None:
        return read_config(folder, read_json(folder / "config.json"), config.attention)
    if plan is None or plan.backbone is None or plan.vocabulary is None:
        raise UserError(
            f"init: {config.init} is not on this machine, and nothing tells its dimensions.",
            "Put it there, or give plan.backbone and plan.vocabulary.",
        )
    return llama_config(plan.backbone, plan.vocabulary, config.attention)


def _folder(init: str, root: Path) -> Path | None:
    """The folder that `init` names where it is here: nothing is fetched."""
    for folder in (root / init, Path(init), asset("evaluators", init)):
        if (folder / "config.json").is_file():
            return folder
    found = cached(init) if is_hub_id(init) else None
    return found if found is not None and (found / "config.json").is_file() else None
