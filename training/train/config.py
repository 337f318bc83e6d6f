"""The configuration of a training run: a YAML file, checked before any work."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from stepsight.core.errors import UserError
from stepsight.core.models.evaluator import ATTENTIONS
from stepsight.core.yaml_config import above_zero, build, one_of, read_yaml
from stepsight.training.data.sources_config import TRUNCATIONS, Data, check_data

PRECISIONS = ("float16", "bfloat16", "float32")
INITIALISATIONS = ("library", "mitchell")
ORDERS = ("mixed", "sorted")


@dataclass(frozen=True)
class Backbone:
    """Dimensions of a Llama backbone; `mlp` is the width of its feed-forward layer, `context` its longest input in
    tokens, and `kv_heads` the heads of keys and values where they are fewer than `heads`."""

    hidden: int
    layers: int
    heads: int
    mlp: int
    context: int = 4096
    kv_heads: int | None = None
    rope_theta: float = 10_000.0


@dataclass(frozen=True)
class Expected:
    """What a recipe is written for, from which `stepsight train --plan` tells its needs before anything is loaded.

    `gpu` is a name of `training.train.estimate` and `devices` how many of them. `traces` and `tokens`, the mean of
    a trace, stand for data that is not on this machine; `backbone` and `vocabulary` for an `init` that is not.
    """

    gpu: str | None = None
    devices: int = 1
    traces: int | None = None
    tokens: int | None = None
    backbone: Backbone | None = None
    vocabulary: int | None = None


@dataclass(frozen=True)
class TrainConfig:
    """One training run.

    `batch_size` is the traces of one optimiser step, over all processes; `accumulation` the parts that a process
    computes its share in, one after the other. Neither that nor `activation_checkpointing`, which computes a
    layer's activations again where they are needed, changes what is learnt. `fsdp` shards weights, gradients and
    optimiser state over the processes. `bf16` computes in bfloat16 and keeps the weights in float32;
    `saved_dtype` is what the evaluator is written in. A trace of more than `max_length` tokens (the backbone's
    context if not given) is left out and counted.

    `truncation` random cuts every second trace after a step drawn uniformly, so that where a trace ends says
    nothing of its last step; continued first appends the steps that were generated but not labelled, where the
    data has them (`training.data.transforms`); as-labelled keeps traces as they are.

    `tokenizer` is the folder of the one to use from scratch, for which the embedding has `vocabulary` rows; without
    it one of that size is learnt from the data. `initialisation` mitchell is LLaDA's (`training.train.init`).
    `order` sorted takes the traces of an epoch from the longest to the shortest; mixed is in
    `training.runs.batches`. `plan` changes nothing of what is learnt.
    """

    attention: str
    data: Data
    backbone: Backbone | None = None
    init: str | None = None
    vocabulary: int = 1024
    tokenizer: str | None = None
    initialisation: str = "library"
    order: str = "mixed"
    truncation: str = "random"
    epochs: int = 1
    batch_size: int = 32
    learning_rate: float = 1e-3
    betas: tuple[float, float] = (0.9, 0.95)
    weight_decay: float = 0.1
    warmup_steps: int = 100
    clip: float = 1.0
    seed: int = 13
    max_length: int | None = None
    accumulation: int = 1
    activation_checkpointing: bool = False
    fsdp: bool = False
    bf16: bool = False
    saved_dtype: str = "float16"
    save_steps: int = 200
    notes: str = field(default="", compare=False)
    plan: Expected | None = field(default=None, compare=False)


class Optimisation(Protocol):
    """The keys that say how a run learns, as `TrainConfig` and the recipe of a fine-tuning run have them."""

    @property
    def accumulation(self) -> int: ...
    @property
    def epochs(self) -> int: ...
    @property
    def learning_rate(self) -> float: ...
    @property
    def betas(self) -> tuple[float, float]: ...
    @property
    def weight_decay(self) -> float: ...
    @property
    def warmup_steps(self) -> int: ...
    @property
    def clip(self) -> float: ...
    @property
    def bf16(self) -> bool: ...
    @property
    def seed(self) -> int: ...
    @property
    def save_steps(self) -> int: ...
    @property
    def activation_checkpointing(self) -> bool: ...
    @property
    def fsdp(self) -> bool: ...
    @property
    def batch_size(self) -> int: ...
    @property
    def saved_dtype(self) -> str: ...


def read_config(path: str | Path) -> TrainConfig:
    """Read and check a YAML file.

    Raises `UserError` naming the file and key on an unknown key (with the nearest valid one), a wrong type or
    an impossible combination.
    """
    values = read_yaml(path)
    try:
        return config_of(values)
    except UserError as error:
        raise error.at(str(path)) from None


def config_of(values: object) -> TrainConfig:
    """A configuration from the keys and values of a YAML file; raises `UserError` as `read_config`, without the
    file."""
    config: TrainConfig = build(TrainConfig, values)
    _check(config)
    return config


def _check(config: TrainConfig) -> None:
    one_of("attention", config.attention, ATTENTIONS)
    one_of("truncation", config.truncation, TRUNCATIONS)
    if (config.backbone is None) == (config.init is None):
        raise UserError("give either backbone (from scratch) or init (a folder), not both.")
    one_of("initialisation", config.initialisation, INITIALISATIONS)
    one_of("order", config.order, ORDERS)
    if config.backbone:
        check_backbone(config.backbone, "backbone.")
    _check_scratch(config)
    if config.plan:
        _check_plan(config.plan)
    check_data(config.data, config.truncation)
    above_zero(config, ("vocabulary",))
    check_learning(config, "traces")
    _check_length(config)


def check_backbone(backbone: Backbone, prefix: str) -> None:
    """Raises `UserError` naming the first dimension that means nothing; `prefix` is where its keys stand."""
    above_zero(backbone, ("hidden", "layers", "heads", "mlp", "context", "rope_theta"), prefix)
    if backbone.hidden % (2 * backbone.heads):
        raise UserError(f"{prefix}hidden is not an even multiple of {prefix}heads.")
    if backbone.kv_heads is not None:
        above_zero(backbone, ("kv_heads",), prefix)
        if backbone.heads % backbone.kv_heads:
            raise UserError(
                f"{prefix}heads {backbone.heads} is no multiple of {prefix}kv_heads {backbone.kv_heads}."
            )


def _check_scratch(config: TrainConfig) -> None:
    if config.init is None:
        return
    for key, value, default in (
        ("tokenizer", config.tokenizer, None),
        ("initialisation", config.initialisation, INITIALISATIONS[0]),
    ):
        if value != default:
            raise UserError(f"{key} means nothing with init, which has its own.", f"Remove {key}, or init.")


def _check_plan(plan: Expected) -> None:
    above_zero(plan, ("devices",), "plan.")
    given = tuple(key for key in ("traces", "tokens", "vocabulary") if getattr(plan, key) is not None)
    above_zero(plan, given, "plan.")
    if plan.backbone:
        check_backbone(plan.backbone, "plan.backbone.")


def check_learning(settings: Optimisation, counted: str) -> None:
    """Check the optimiser and its steps; `counted` is what a batch is of. Raises `UserError` naming the first key
    whose value means nothing."""
    above_zero(settings, ("epochs", "batch_size", "learning_rate", "clip", "save_steps", "accumulation"))
    for key in ("warmup_steps", "weight_decay"):
        if not getattr(settings, key) >= 0:
            raise UserError(f"{key} is {getattr(settings, key)}, expected 0 or more.")
    if not all(0 <= beta < 1 for beta in settings.betas):
        raise UserError(f"betas is {list(settings.betas)}, expected two numbers from 0 to below 1.")
    if not 0 <= settings.seed < 2**32:
        raise UserError(f"seed is {settings.seed}, expected 0 to {2**32 - 1}.")
    one_of("saved_dtype", settings.saved_dtype, PRECISIONS)
    if settings.batch_size % settings.accumulation:
        raise UserError(
            f"batch_size {settings.batch_size} is no multiple of accumulation {settings.accumulation}.",
            f"batch_size counts the {counted} of a whole optimiser step.",
        )


def _check_length(config: TrainConfig) -> None:
    if config.max_length is None:
        return
    above_zero(config, ("max_length",))
    if config.backbone and config.max_length > config.backbone.context:
        raise UserError(f"max_length is {config.max_length}, over backbone.context {config.backbone.context}.")
