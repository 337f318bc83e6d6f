"""Whether a run fits into the memory of its devices, before anything is loaded.

stepsight train training/configs/llada-prm-8b.yaml --plan --gpu 80
"""

import math
import os
from dataclasses import dataclass
from pathlib import Path

import torch

from stepsight.core.errors import UserError
from stepsight.core.hubs.checkpoint_files import is_hub_id
from stepsight.core.models.checkpoint import Checkpoint
from stepsight.core.models.location import cached
from stepsight.core.models.model import StepModel
from stepsight.core.models.pretrained import read_config
from stepsight.core.paths import asset
from stepsight.training.data.mixture import Mixture
from stepsight.training.train.config import Expected, TrainConfig
from stepsight.training.train.init import llama_config, longest_input
from stepsight.training.train.lora import adapted_layers

_GIB = 2**30
# Characters per token, assumed without a tokenizer.
CHARACTERS = 3
# The share of the memory that a run may fill; the rest is for the driver, the library and fragmentation.
_USABLE = 0.92
# The memory of an H100 in GiB.
_DEFAULT_MEMORY = 80.0
# Bytes per trained parameter: its weight, its gradient and AdamW's two moments, in float32.
_STATE = {"weights": 4, "gradients": 4, "optimiser": 8}
# Bytes per token kept for the backward pass, as measured in tests/training/train/test_estimate.py: in each layer of
# a Llama, factors of its width and of the feed-forward layer's width; outside the layers, a factor of the width.
_LAYER = {2: (34, 8), 4: (40, 16)}
_ENDS = 14


@dataclass(frozen=True)
class Network:
    """The size of a network: the parameters of the backbone and the score head, how many of these are in the
    `embedding` and the `head`, those of adapters (the rest is then frozen), and the longest input, `context`."""

    parameters: int
    embedding: int
    layers: int
    hidden: int
    mlp: int
    context: int
    adapters: int = 0
    head: int = 0


def network_of(config: TrainConfig, root: Path) -> Network:
    """Return the size of the network that a run trains, from its configuration alone.

    `root` is the folder of the configuration. The dimensions of the model named by `init` come from its config.json
    if it is on this machine, and otherwise from the recipe's `plan`. Nothing is downloaded. Raises `UserError` if
    neither source gives the dimensions.
    """
    backbone, vocabulary, init, values = config.backbone, config.vocabulary, config.init, None
    if init is not None:
        snapshot = cached(init) if is_hub_id(init) else None
        folders = [root / init, Path(init), asset("evaluators", init), *([snapshot] if snapshot else [])]
        folder = next((folder for folder in folders if (folder / "config.json").is_file()), None)
        if folder is not None:
            values = read_config(Checkpoint.open(folder), config.attention)
        elif config.plan and config.plan.vocabulary:
            backbone, vocabulary = config.plan.backbone, config.plan.vocabulary
    if values is None:
        if backbone is None:
            raise UserError(
                f"init: {init} is not on this machine, and its dimensions are unknown.",
                "Put it there, or give plan.backbone and plan.vocabulary.",
            )
        values = llama_config(backbone, vocabulary, config.attention)
    with torch.device("meta"):
        model = StepModel.from_config(values)
    hidden, lora = int(model.config.hidden_size), config.lora
    adapted = adapted_layers(lora, model.model) if lora else []
    return Network(
        parameters=sum(parameter.numel() for parameter in model.parameters()),
        embedding=model.model.get_input_embeddings().get_parameter("weight").numel(),
        layers=int(model.config.num_hidden_layers),
        hidden=hidden,
        # GPT-2 and similar models omit the width of the feed-forward layer if it is four times the model's.
        mlp=int(getattr(model.config, "intermediate_size", 4 * hidden)),
        context=longest_input(model.model, init),
        adapters=sum(lora.rank * (layer.in_features + layer.out_features) for layer in adapted) if lora else 0,
        head=sum(parameter.numel() for parameter in model.score.parameters()),
    )


@dataclass(frozen=True)
class Estimate:
    """The estimated needs of a run with `traces` traces in an epoch, of `tokens` tokens on average, on `devices`
    devices with `gpu` GiB of memory each."""

    config: TrainConfig
    network: Network
    gpu: float
    devices: int
    traces: int = 1
    tokens: float = 1.0

    @property
    def steps(self) -> int:
        """The number of optimiser steps in all epochs."""
        return math.ceil(self.traces / self.config.batch_size) * self.config.epochs

    @property
    def memory(self) -> dict[str, float]:
        """The bytes needed on each device when it processes the longest traces: weights, gradients, optimiser state
        and activations. With FSDP, the devices share all but the activations. With activation checkpointing, these
        are the inputs of all layers and the activations of a single layer."""
        config, net = self.config, self.network
        width, share = 2 if config.bf16 else 4, self.devices if config.fsdp else 1
        trained = net.head + net.adapters if net.adapters else net.parameters
        states = {name: size * trained / share for name, size in _STATE.items()}
        if net.adapters:
            states["weights"] += width * (net.parameters - net.head) / share
        wide, fed = _LAYER[width]
        layer = wide * net.hidden + fed * net.mlp
        kept = 4 * net.hidden * net.layers + layer if config.activation_checkpointing else layer * net.layers
        traces = math.ceil(config.batch_size / config.accumulation / self.devices)
        longest = min(net.context, config.max_length or net.context)
        return states | {"activations": float(traces * longest * (kept + _ENDS * net.hidden))}

    def check(self, activations: bool = True) -> None:
        """Raise `UserError` if the run, with or without its `activations`, does not fit in the devices' memory."""
        needed = sum(size for name, size in self.memory.items() if activations or name in _STATE)
        if needed > self.gpu * _GIB * _USABLE:
            raise UserError(
                f"the run needs {needed / _GIB:.1f} GiB on each device, but may use only "
                f"{self.gpu * _USABLE:.1f} of its {self.gpu:g} GiB.",
                "Set activation_checkpointing or bf16, raise accumulation, lower max_length, divide it among more"
                " devices with fsdp, or train adapters with lora.",
            )

    def __str__(self) -> str:
        net, parts = self.network, {name: size / _GIB for name, size in self.memory.items()}
        trained = f", of which {net.adapters + net.head:,} are trained" if net.adapters else ""
        tokens = self.traces * self.tokens * self.config.epochs
        return (
            f"parameters    {net.parameters + net.adapters:,}{trained}\n"
            f"tokens        {tokens:,.0f}, of {self.traces:,} traces in {self.steps:,} steps\n"
            f"memory        {sum(parts.values()):.1f} of {self.gpu * _USABLE:.1f} GiB on each of {self.devices}: "
            f"{', '.join(f'{name} {size:.1f}' for name, size in parts.items())}"
        )


def estimate_run(config: TrainConfig, root: Path, gpu: float | None = None, devices: int | None = None) -> Estimate:
    """Estimate the needs of a run of a configuration in the folder `root`.

    `gpu` is the memory of each of the `devices` in GiB; both default to the recipe's. The traces are counted if the
    recipe does not state their number. Raises `UserError` if there are none, or if the dimensions are unknown.
    """
    expected = config.plan or Expected()
    traces, tokens = expected.traces, float(expected.tokens or 0)
    if not (traces and tokens):
        mixture = Mixture(config.data, root, config.truncation, config.seed)
        sizes = [len(trace.problem) + sum(map(len, trace.substeps)) for trace in mixture]
        if not sizes:
            raise UserError("no trace is left to learn from.", "Check data.sources.")
        traces, tokens = len(sizes), sum(sizes) / len(sizes) / CHARACTERS
    memory, count = gpu or expected.gpu or _DEFAULT_MEMORY, devices or expected.devices
    return Estimate(config, network_of(config, root), memory, count, traces, tokens)


def check_devices(config: TrainConfig, root: Path) -> None:
    """Raise `UserError` if this machine's GPUs cannot even hold the weights, gradients and optimiser state.

    Call this before anything is loaded. It does nothing if there is no GPU or the dimensions are unknown.
    """
    if not torch.cuda.is_available():
        return
    gpu = torch.cuda.get_device_properties(0).total_memory / _GIB
    try:
        network = network_of(config, root)
    except UserError:
        return
    Estimate(config, network, gpu, int(os.environ.get("WORLD_SIZE", "1"))).check(activations=False)
