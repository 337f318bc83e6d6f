"""The estimate of a run: what it needs and how long it takes, before anything is loaded.

stepsight train training/configs/llada-prm-8b.yaml --plan --gpu h100-80gb
"""

import math
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NoReturn

import torch
from transformers import PretrainedConfig

from stepsight.core.errors import UserError
from stepsight.core.hubs.layout import is_hub_id
from stepsight.core.models.config_files import read_config_file
from stepsight.core.models.location import cached
from stepsight.core.models.model import StepModel
from stepsight.core.models.pretrained import keep_layers, read_config
from stepsight.core.places import asset
from stepsight.training.data.mixture import Mixture
from stepsight.training.train.config import Expected, Head, TrainConfig
from stepsight.training.train.init import llama_config
from stepsight.training.train.lora import adapted_layers

GIB = 2**30
# The share of the memory that a run may fill: the rest goes to the driver, the library and what lies idle between.
USABLE = 0.92
# The share of the peak that training reaches where it does not wait for anything.
UTILISATION = 0.4
# Characters for each token, where no tokenizer has counted them.
CHARACTERS = 3
# A layer's number in the name of a weight: of Llama's kind, of BERT's, of GPT-2's.
_LAYER_NUMBER = re.compile(r"\.(?:layers|layer|h)\.(\d+)\.")
# Bytes kept for the backward pass, as measured in tests/training/train/test_estimate.py: for each token and layer
# of a Llama so many times the width, and the width of the feed-forward layer; and before and after all layers.
_LAYER = {2: (34, 8), 4: (40, 16)}
_ENDS = 14
_STATES = 2


@dataclass(frozen=True)
class Gpu:
    """A graphics processor: `memory` in GiB, `peak` in FLOP/s, `link` in bytes a second.

    Memory and peak are the makers' figures: bfloat16 with float32 sums, without sparsity. `link` is what one device
    is assumed to send, and at the same time to receive, when weights are gathered from all: about three quarters of
    NVLink, and of PCIe what devices that have no other way to each other keep up.
    """

    name: str
    memory: float
    peak: float
    link: float

    @property
    def usable(self) -> float:
        """Bytes that a run may fill."""
        return self.memory * GIB * USABLE


_GPUS = (
    Gpu("rtx-4090", 24, 165e12, 12e9),
    Gpu("a40", 48, 150e12, 12e9),
    Gpu("l40s", 48, 362e12, 12e9),
    Gpu("rtx-6000-pro", 96, 500e12, 25e9),
    Gpu("a100-40gb", 40, 312e12, 225e9),
    Gpu("a100-80gb", 80, 312e12, 225e9),
    Gpu("h100-80gb", 80, 989e12, 335e9),
    Gpu("h200", 141, 989e12, 335e9),
    Gpu("b200", 180, 2250e12, 675e9),
)
GPUS = {gpu.name: gpu for gpu in _GPUS}
DEFAULT = "h100-80gb"


def find_gpu(name: str) -> Gpu:
    """The GPU of that name. Raises `UserError` naming those there are."""
    if name not in GPUS:
        raise UserError(f"there is no figure of the GPU {name!r}.", f"There are {', '.join(GPUS)}.")
    return GPUS[name]


@dataclass(frozen=True)
class Network:
    """The size of a network: `parameters` of the backbone and the score head, of which `layer` are in the largest
    layer and `rest` in none; `embedding` of them only look tokens up. `layers`, `hidden`, `mlp` are dimensions.

    With LoRA `adapters` are the parameters beside these, `head` those of the score head, and `inputs` the width of
    the inputs of all layers that have an adapter, added up.
    """

    parameters: int
    layer: int
    rest: int
    embedding: int
    layers: int
    hidden: int
    mlp: int
    adapters: int = 0
    head: int = 0
    inputs: int = 0

    @property
    def frozen(self) -> int:
        """The parameters that stay as they are."""
        return self.parameters - self.head if self.adapters else 0

    @property
    def trained(self) -> int:
        """The parameters that have a gradient."""
        return self.parameters + self.adapters - self.frozen


def network_of(config: TrainConfig, root: Path) -> Network:
    """The network that a run trains, from its configuration alone; `root` is the folder of the configuration.

    That of `init` is in its config.json where it is on this machine, and else in the recipe's `plan`. Nothing is
    fetched. Raises `UserError` where neither has it.
    """
    head = config.head or Head()
    values = _config(config, root)
    if head.depth:
        keep_layers(values, head.depth, "head.layers")
    with torch.device("meta"):
        model = StepModel.from_config(values, mixed=head.mixed)
    sizes = {name: parameter.numel() for name, parameter in model.named_parameters()}
    layers: dict[str, int] = {}
    for name, size in sizes.items():
        if (match := _LAYER_NUMBER.search(name)) is not None:
            layers[match[1]] = layers.get(match[1], 0) + size
    total = sum(sizes.values())
    hidden = int(model.config.hidden_size)
    adapted = adapted_layers(config.lora, model.model) if config.lora else []
    rank = config.lora.rank if config.lora else 0
    return Network(
        parameters=total,
        layer=max(layers.values(), default=0),
        rest=total - sum(layers.values()),
        embedding=model.model.get_input_embeddings().get_parameter("weight").numel(),
        layers=len(layers),
        hidden=hidden,
        # GPT-2 and its like name no width of the feed-forward layer where it is four times the model's.
        mlp=int(getattr(model.config, "intermediate_size", 4 * hidden)),
        adapters=sum(rank * (layer.in_features + layer.out_features) for layer in adapted),
        head=sum(size for name, size in sizes.items() if not name.startswith("model.")),
        inputs=sum(layer.in_features for layer in adapted),
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
            f"init: {config.init} is not on this machine, and nothing tells its dimensions.",
            "Put it there, or give plan.backbone and plan.vocabulary.",
        )
    return llama_config(plan.backbone, plan.vocabulary, config.attention)


def _folder(init: str, root: Path) -> Path | None:
    """The folder that `init` names where it is here: nothing is fetched."""
    for folder in (root / init, Path(init), asset("evaluators", init)):
        if (folder / "config.json").is_file():
            return folder
    snapshot = cached(init) if is_hub_id(init) else None
    return snapshot if snapshot is not None and (snapshot / "config.json").is_file() else None


@dataclass(frozen=True)
class Work:
    """What is learnt from: traces of an epoch and the mean of their tokens, `counted` or taken from the recipe."""

    traces: int
    tokens: float
    counted: bool


@dataclass(frozen=True)
class Estimate:
    """The needs of a run on `devices` devices of one kind."""

    config: TrainConfig
    network: Network
    work: Work
    gpu: Gpu
    devices: int

    @property
    def sharded(self) -> bool:
        return self.config.fsdp and self.devices > 1

    @property
    def steps(self) -> int:
        """Optimiser steps of all epochs."""
        return math.ceil(self.work.traces / self.config.batch_size) * self.config.epochs

    @property
    def tokens(self) -> float:
        """Tokens that are computed, without padding."""
        return self.work.traces * self.work.tokens * self.config.epochs

    @property
    def per_device(self) -> int:
        """Traces that a device computes at once."""
        return math.ceil(self.config.batch_size / self.config.accumulation / self.devices)

    @property
    def longest(self) -> int:
        """The longest trace that is learnt from, in tokens."""
        if self.config.max_length:
            return self.config.max_length
        backbone = self.config.backbone or (self.config.plan.backbone if self.config.plan else None)
        return backbone.context if backbone else 4096

    @property
    def width(self) -> int:
        """Bytes of a number that is computed with."""
        return 2 if self.config.bf16 else 4

    @cached_property
    def memory(self) -> Mapping[str, float]:
        """Bytes on each device, at the longest traces.

        Weights, gradients and AdamW's two moments in float32 for each parameter that is trained, the others as they
        are held; what FSDP gathers, the two layers at hand beside what is in no layer, with a layer's gradients;
        without it the copy that mixed precision works with, and among several devices the gradients once more, as
        they are sent; and what is kept for the backward pass (with checkpointing, the layers' inputs and all of one
        layer).
        """
        net, share, width = self.network, self.devices if self.sharded else 1, self.width
        returned = 0 if net.frozen else max(net.rest, net.layer)
        gathered = (net.rest + 2 * net.layer + returned) * width if self.sharded else 0
        copy = net.trained * width if self.config.bf16 and not self.sharded else 0
        return {
            "weights": (4 * net.trained + width * net.frozen) / share,
            "gradients": 4 * net.trained / share * (1 if share == self.devices else 2),
            "optimiser": 4 * _STATES * net.trained / share,
            "gathered weights" if self.sharded else "bfloat16 copy": float(gathered or copy),
            "activations": self.activations(self.config.activation_checkpointing),
        }

    def activations(self, checkpointing: bool) -> float:
        """Bytes kept for the backward pass on each device."""
        wide, fed = _LAYER[self.width]
        layer: float = wide * self.network.hidden + fed * self.network.mlp
        if self.config.lora and self.config.lora.dropout:
            # Each adapter keeps what dropout left of its input, and where.
            layer += (self.width + 1) * self.network.inputs / self.network.layers
        kept = (
            4 * self.network.hidden * self.network.layers + layer if checkpointing else layer * self.network.layers
        )
        return float(self.per_device * self.longest * (kept + _ENDS * self.network.hidden))

    @property
    def states(self) -> float:
        """Bytes of weights, gradients and optimiser state on each device: no setting but sharding lessens them."""
        return sum(self.memory[name] for name in ("weights", "gradients", "optimiser"))

    @property
    def needed(self) -> float:
        """Bytes on each device."""
        return sum(self.memory.values())

    @property
    def fits(self) -> bool:
        return self.needed <= self.gpu.usable

    @property
    def computing(self) -> float:
        """Hours of arithmetic: 6 operations for each weight and token, 8 with checkpointing, and as many times two
        for each pair of tokens and unit of width in every layer's attention (Kaplan et al. 2020; Korthikanti et al.
        2022). A frozen weight has no gradient: two operations fewer."""
        passes, net = 4 if self.config.activation_checkpointing else 3, self.network
        frozen = 2 * max(net.frozen - net.embedding, 0)
        trained = 2 * (net.parameters + net.adapters - net.embedding) - frozen
        attention = 4 * net.layers * net.hidden * self.work.tokens
        operations = (passes * (trained + attention) + (passes - 1) * frozen) * self.tokens
        return operations / (self.devices * self.gpu.peak * UTILISATION) / 3600

    @property
    def sending(self) -> float:
        """Hours in which devices exchange weights and gradients: with FSDP all weights are gathered twice, and the
        gradients scattered once, in each part of a step; without it the gradients are summed once a step."""
        if self.devices == 1:
            return 0.0
        others, net = (self.devices - 1) / self.devices, self.network
        part = self.width * (2 * (net.parameters + net.adapters) + net.trained)
        size = part * self.config.accumulation if self.sharded else 2 * 4 * net.trained
        return self.steps * size * others / self.gpu.link / 3600

    @property
    def hours(self) -> float:
        """Arithmetic and exchange, one after the other."""
        return self.computing + self.sending

    def check(self) -> None:
        """Raises `UserError` where the devices' memory is too small, with what would help."""
        if not self.fits:
            self.refuse(self.needed)

    def refuse(self, needed: float) -> NoReturn:
        """Raise the error that a run of so many bytes on each device does not fit."""
        raise UserError(
            f"the run needs {needed / GIB:.1f} GiB on each device; of {self.devices} x {self.gpu.name} "
            f"{self.gpu.usable / GIB:.1f} GiB can be filled.",
            f"{_begin('; or '.join(self._remedies()))}.",
        )

    def _remedies(self) -> list[str]:
        remedies = []
        if not self.config.activation_checkpointing and self.activations(True) < 0.9 * self.activations(False):
            remedies.append("set activation_checkpointing: true")
        if self.per_device > 1:
            remedies.append(f"raise accumulation above {self.config.accumulation}")
        if not self.config.bf16:
            remedies.append("set bf16: true")
        if self.config.fsdp:
            remedies.append(f"use more than {self.devices} {'device' if self.devices == 1 else 'devices'}")
        elif self.states > self.gpu.usable / 2:
            remedies.append("set fsdp: true and use several devices")
        if self.config.init and not self.config.lora and self.states > self.gpu.usable / 2:
            remedies.append("train adapters with lora: {rank: 16}")
        if self.longest > 512:
            remedies.append("lower max_length")
        return [*remedies, "take a GPU with more memory"]

    def __str__(self) -> str:
        return "\n".join(f"{name:<14}{text}" for name, text in self._lines())

    def _lines(self) -> Iterator[tuple[str, str]]:
        config, net, gpu = self.config, self.network, self.gpu
        source = "counted" if self.work.counted else "as the recipe says"
        beside = f" and {net.adapters:,} in adapters; {net.trained:,} are trained" if net.adapters else ""
        yield "parameters", f"{net.parameters:,}{beside}"
        yield "data", f"{self.work.traces:,} traces of {self.work.tokens:.0f} tokens ({source})"
        shares = f"{self.devices} devices x {self.per_device} traces x {config.accumulation} parts"
        yield "batch", f"{config.batch_size} traces = {shares}"
        yield "steps", f"{self.steps:,} in {config.epochs} epochs, {self.tokens:,.0f} tokens"
        parts = ", ".join(f"{name} {size / GIB:.1f}" for name, size in self.memory.items() if size)
        yield "memory", f"{self.needed / GIB:.1f} of {gpu.usable / GIB:.1f} GiB on each {gpu.name}: {parts}"
        other = not config.activation_checkpointing
        how = "with" if other else "without"
        yield "", f"activations {how} checkpointing {self.activations(other) / GIB:.1f}"
        arithmetic = f"{_duration(self.computing)} computing at {UTILISATION:.0%} of {gpu.peak / 1e12:.0f} TFLOP/s"
        exchange = f"{_duration(self.sending)} exchanging at {gpu.link / 1e9:.0f} GB/s"
        yield "time", f"{_duration(self.hours)}: {arithmetic}, {exchange}"
        yield "fits", "yes" if self.fits else "no"


def _begin(text: str) -> str:
    return text[:1].upper() + text[1:]


def _duration(hours: float) -> str:
    return f"{hours:.1f} hours" if hours >= 1 else f"{60 * hours:.1f} minutes"


def estimate_run(
    config: TrainConfig, root: Path, gpu: str | None = None, devices: int | None = None, work: Work | None = None
) -> Estimate:
    """The estimate of a configuration in the folder `root`, on the devices that it is written for, or others.

    Raises `UserError` where there is no such GPU, or neither the recipe nor its files show how much is learnt from.
    """
    expected = config.plan or Expected()
    device = find_gpu(gpu or expected.gpu or DEFAULT)
    count = devices or expected.devices
    return Estimate(config, network_of(config, root), work or work_of(config, root), device, count)


def check_devices(config: TrainConfig, root: Path) -> None:
    """Raises `UserError` where weights, gradients and optimiser state alone are more than this machine's GPUs hold,
    before any of it is loaded. Without a GPU, and where nothing tells the dimensions, nothing is checked."""
    if not torch.cuda.is_available():
        return
    device = torch.cuda.get_device_properties(0)
    gpu = Gpu(device.name, device.total_memory / GIB, 1.0, 1.0)
    try:
        network = network_of(config, root)
    except UserError:
        return
    estimate = Estimate(config, network, Work(1, 1.0, counted=False), gpu, int(os.environ.get("WORLD_SIZE", "1")))
    if estimate.states > gpu.usable:
        estimate.refuse(estimate.states)


def work_of(config: TrainConfig, root: Path) -> Work:
    """What the recipe says is learnt from, or what its files hold, a token for every three characters."""
    expected = config.plan or Expected()
    if expected.traces and expected.tokens:
        return Work(expected.traces, float(expected.tokens), counted=False)
    traces = characters = 0
    for trace in Mixture(config.data, root, config.truncation, config.seed):
        traces += 1
        characters += len(trace.problem) + sum(map(len, trace.substeps))
    if not traces:
        raise UserError("no trace is left to learn from.", "Check data.sources.")
    return Work(traces, characters / traces / CHARACTERS, counted=True)
