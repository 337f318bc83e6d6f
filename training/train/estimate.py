"""Whether a run fits into the memory of its devices, before anything is loaded.

stepsight train training/configs/llada-prm-8b.yaml --plan --gpu 80
"""

import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NoReturn

import torch
from transformers import PretrainedConfig

from stepsight.core.errors import UserError
from stepsight.core.hubs.checkpoint_files import is_hub_id, read_config_file
from stepsight.core.models.location import cached
from stepsight.core.models.model import StepModel
from stepsight.core.models.pretrained import read_config
from stepsight.core.paths import asset
from stepsight.training.data.mixture import Mixture
from stepsight.training.train.config import Expected, TrainConfig
from stepsight.training.train.init import llama_config
from stepsight.training.train.lora import adapted_layers

GIB = 2**30
# The share of the memory that a run may fill; the rest is for the driver, the library and fragmentation.
USABLE = 0.92
# The GiB of an H100.
DEFAULT_MEMORY = 80.0
# Characters per token, assumed without a tokenizer.
CHARACTERS = 3
# Bytes for each parameter that is trained: its weight, its gradient and AdamW's two moments, in float32.
_STATE = {"weights": 4, "gradients": 4, "optimiser": 8}
# Bytes per token kept for the backward pass, as measured in tests/training/train/test_estimate.py: in each layer of
# a Llama, factors of its width and of the feed-forward layer's width; outside the layers, a factor of the width.
_LAYER = {2: (34, 8), 4: (40, 16)}
_ENDS = 14


@dataclass(frozen=True)
class Network:
    """The size of a network.

    `parameters` counts the parameters of the backbone and the score head, including the `embedding`. `layers`,
    `hidden` and `mlp` are the dimensions. With LoRA, `adapters` counts the additional parameters and `head` the
    parameters of the score head.
    """

    parameters: int
    embedding: int
    layers: int
    hidden: int
    mlp: int
    adapters: int = 0
    head: int = 0

    @property
    def frozen(self) -> int:
        """The number of parameters that are not trained."""
        return self.parameters - self.head if self.adapters else 0

    @property
    def trained(self) -> int:
        """The number of parameters that are trained."""
        return self.parameters + self.adapters - self.frozen


def network_of(config: TrainConfig, root: Path) -> Network:
    """Return the size of the network that a run trains, from its configuration alone.

    `root` is the folder of the configuration. The dimensions of the model named by `init` come from its config.json
    if it is on this machine, and otherwise from the recipe's `plan`. Nothing is downloaded. Raises `UserError` if
    neither source gives the dimensions.
    """
    values = _config(config, root)
    with torch.device("meta"):
        model = StepModel.from_config(values)
    sizes = {name: parameter.numel() for name, parameter in model.named_parameters()}
    hidden = int(model.config.hidden_size)
    adapted = adapted_layers(config.lora, model.model) if config.lora else []
    rank = config.lora.rank if config.lora else 0
    return Network(
        parameters=sum(sizes.values()),
        embedding=model.model.get_input_embeddings().get_parameter("weight").numel(),
        layers=int(model.config.num_hidden_layers),
        hidden=hidden,
        # GPT-2 and similar models give no width of the feed-forward layer if it is four times the model's.
        mlp=int(getattr(model.config, "intermediate_size", 4 * hidden)),
        adapters=sum(rank * (layer.in_features + layer.out_features) for layer in adapted),
        head=sum(size for name, size in sizes.items() if not name.startswith("model.")),
    )


def _config(config: TrainConfig, root: Path) -> PretrainedConfig:
    plan = config.plan
    if config.init is None:
        assert config.backbone is not None
        return llama_config(config.backbone, config.vocabulary, config.attention)
    folder = _folder(config.init, root)
    if folder is not None:
        return read_config(folder, read_config_file(folder), config.attention)
    if plan is None or plan.backbone is None or plan.vocabulary is None:
        raise UserError(
            f"init: {config.init} is not on this machine, and its dimensions are unknown.",
            "Put it there, or give plan.backbone and plan.vocabulary.",
        )
    return llama_config(plan.backbone, plan.vocabulary, config.attention)


def _folder(init: str, root: Path) -> Path | None:
    """Return the folder that `init` names, or None if it is not on this machine."""
    for folder in (root / init, Path(init), asset("evaluators", init)):
        if (folder / "config.json").is_file():
            return folder
    snapshot = cached(init) if is_hub_id(init) else None
    return snapshot if snapshot is not None and (snapshot / "config.json").is_file() else None


@dataclass(frozen=True)
class Work:
    """The amount of training data: the number of traces in an epoch and their mean number of tokens.

    `counted` is True if the numbers were counted in the data, and False if they come from the recipe.
    """

    traces: int
    tokens: float
    counted: bool


@dataclass(frozen=True)
class Estimate:
    """The estimated needs of a run on `devices` identical devices with `gpu` GiB of memory each."""

    config: TrainConfig
    network: Network
    work: Work
    gpu: float
    devices: int

    @property
    def steps(self) -> int:
        """The number of optimiser steps in all epochs."""
        return math.ceil(self.work.traces / self.config.batch_size) * self.config.epochs

    @property
    def tokens(self) -> float:
        """The number of tokens in all epochs, without padding."""
        return self.work.traces * self.work.tokens * self.config.epochs

    @property
    def per_device(self) -> int:
        """The number of traces that a device processes at once."""
        return math.ceil(self.config.batch_size / self.config.accumulation / self.devices)

    @property
    def longest(self) -> int:
        """The maximum length of a trace in tokens."""
        if self.config.max_length:
            return self.config.max_length
        backbone = self.config.backbone or (self.config.plan.backbone if self.config.plan else None)
        return backbone.context if backbone else 4096

    @property
    def width(self) -> int:
        """The number of bytes per number in the type that the run computes with."""
        return 2 if self.config.bf16 else 4

    @cached_property
    def memory(self) -> Mapping[str, float]:
        """The bytes needed on each device when it processes the longest traces, keyed by purpose.

        The purposes are weights, gradients, optimiser state and activations. With FSDP, the devices share all but
        the activations.
        """
        share = self.devices if self.config.fsdp else 1
        states = {name: size * self.network.trained / share for name, size in _STATE.items()}
        states["weights"] += self.width * self.network.frozen / share
        return states | {"activations": self.activations}

    @property
    def activations(self) -> float:
        """The bytes of activations that each device keeps for the backward pass.

        With activation checkpointing, these are the inputs of all layers and the activations of a single layer.
        """
        net, (wide, fed) = self.network, _LAYER[self.width]
        layer = wide * net.hidden + fed * net.mlp
        checkpointing = self.config.activation_checkpointing
        kept = 4 * net.hidden * net.layers + layer if checkpointing else layer * net.layers
        return float(self.per_device * self.longest * (kept + _ENDS * net.hidden))

    @property
    def states(self) -> float:
        """The bytes of weights, gradients and optimiser state on each device, which only sharding reduces."""
        return sum(self.memory[name] for name in _STATE)

    @property
    def needed(self) -> float:
        """The total number of bytes needed on each device."""
        return sum(self.memory.values())

    @property
    def usable(self) -> float:
        """The number of bytes of a device's memory that a run may use."""
        return self.gpu * GIB * USABLE

    @property
    def fits(self) -> bool:
        return self.needed <= self.usable

    def check(self) -> None:
        """Raise `UserError` if the run does not fit in the devices' memory."""
        if not self.fits:
            self.refuse(self.needed)

    def refuse(self, needed: float) -> NoReturn:
        """Raise `UserError`, saying that the run needs `needed` bytes on each device and does not fit."""
        raise UserError(
            f"the run needs {needed / GIB:.1f} GiB on each device, and may fill {self.usable / GIB:.1f} of its "
            f"{self.gpu:g} GiB.",
            "Set activation_checkpointing or bf16, raise accumulation, lower max_length, divide it among more"
            " devices with fsdp, or train adapters with lora.",
        )

    def __str__(self) -> str:
        return "\n".join(f"{name:<14}{text}" for name, text in self._lines())

    def _lines(self) -> Iterator[tuple[str, str]]:
        config, net = self.config, self.network
        source = "counted" if self.work.counted else "as the recipe says"
        beside = f" and {net.adapters:,} in adapters; {net.trained:,} are trained" if net.adapters else ""
        yield "parameters", f"{net.parameters:,}{beside}"
        yield "data", f"{self.work.traces:,} traces of {self.work.tokens:.0f} tokens ({source})"
        shares = f"{self.devices} devices x {self.per_device} traces x {config.accumulation} parts"
        yield "batch", f"{config.batch_size} traces = {shares}"
        yield "steps", f"{self.steps:,} in {config.epochs} epochs, {self.tokens:,.0f} tokens"
        parts = ", ".join(f"{name} {size / GIB:.1f}" for name, size in self.memory.items())
        yield "memory", f"{self.needed / GIB:.1f} of {self.usable / GIB:.1f} GiB on each device: {parts}"
        yield "fits", "yes" if self.fits else "no"


def estimate_run(config: TrainConfig, root: Path, gpu: float | None = None, devices: int | None = None) -> Estimate:
    """Estimate the needs of a run of a configuration in the folder `root`.

    `gpu` is the memory of each of the `devices` in GiB; both default to the recipe's. Raises `UserError` if neither
    the recipe nor the data files tell the amount of data.
    """
    expected = config.plan or Expected()
    memory, count = gpu or expected.gpu or DEFAULT_MEMORY, devices or expected.devices
    return Estimate(config, network_of(config, root), work_of(config, root), memory, count)


def check_devices(config: TrainConfig, root: Path) -> None:
    """Raise `UserError` if this machine's GPUs cannot even hold the weights, gradients and optimiser state.

    Call this before anything is loaded. It does nothing if there is no GPU or the dimensions are unknown.
    """
    if not torch.cuda.is_available():
        return
    gpu = torch.cuda.get_device_properties(0).total_memory / GIB
    try:
        network = network_of(config, root)
    except UserError:
        return
    estimate = Estimate(config, network, Work(1, 1.0, counted=False), gpu, int(os.environ.get("WORLD_SIZE", "1")))
    if estimate.states > estimate.usable:
        estimate.refuse(estimate.states)


def work_of(config: TrainConfig, root: Path) -> Work:
    """Return the amount of data that the recipe states or, if it states none, the amount counted in the data files.

    Counting assumes a fixed number of characters per token (`CHARACTERS`). Raises `UserError` if there are no
    traces to learn from.
    """
    expected = config.plan or Expected()
    if expected.traces and expected.tokens:
        return Work(expected.traces, float(expected.tokens), counted=False)
    traces = characters = 0
    for trace in Mixture(config.data, root, config.truncation, config.seed, config.needs_labels):
        traces += 1
        characters += len(trace.problem) + sum(map(len, trace.substeps))
    if not traces:
        raise UserError("no trace is left to learn from.", "Check data.sources.")
    return Work(traces, characters / traces / CHARACTERS, counted=True)
