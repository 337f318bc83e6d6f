"""The configuration of a training run: a YAML file, checked before any work."""

import dataclasses
import difflib
import types
import typing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from core.errors import UserError
from core.evaluator import ATTENTIONS
from training.data import TRUNCATIONS, Data, check_data

PRECISIONS = ("float16", "bfloat16", "float32")


@dataclass(frozen=True)
class Backbone:
    """Dimensions of a Llama backbone trained from scratch; `mlp` is the width of its feed-forward layer and
    `context` its longest input in tokens."""

    hidden: int
    layers: int
    heads: int
    mlp: int
    context: int = 4096


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
    data has them (`training.continuation`); as-labelled keeps traces as they are.
    """

    attention: str
    data: Data
    backbone: Backbone | None = None
    init: str | None = None
    vocabulary: int = 1024
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


def read_config(path: str | Path) -> TrainConfig:
    """Read and check a YAML file.

    Raises `UserError` naming the file and key on an unknown key (with the nearest valid one), a wrong type or
    an impossible combination.
    """
    try:
        values = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror}).", "Check the path.") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: not YAML ({' '.join(str(error).split())}).") from None
    try:
        config: TrainConfig = _build(TrainConfig, values, "")
        _check(config)
    except UserError as error:
        raise error.at(str(path)) from None
    return config


def _check(config: TrainConfig) -> None:
    _one_of("attention", config.attention, ATTENTIONS)
    _one_of("truncation", config.truncation, TRUNCATIONS)
    if (config.backbone is None) == (config.init is None):
        raise UserError("give either backbone (from scratch) or init (a folder), not both.")
    if config.backbone:
        _above_zero(config.backbone, ("hidden", "layers", "heads", "mlp", "context"), "backbone.")
        if config.backbone.hidden % (2 * config.backbone.heads):
            raise UserError("backbone.hidden is not an even multiple of backbone.heads.")
    check_data(config.data, config.truncation)
    if not 0 <= config.seed < 2**32:
        raise UserError(f"seed is {config.seed}, expected 0 to {2**32 - 1}.")
    _check_optimiser(config)
    _check_hardware(config)


def _check_optimiser(config: TrainConfig) -> None:
    _above_zero(config, ("vocabulary", "epochs", "batch_size", "learning_rate", "clip", "save_steps"))
    for key in ("warmup_steps", "weight_decay"):
        if not getattr(config, key) >= 0:
            raise UserError(f"{key} is {getattr(config, key)}, expected 0 or more.")
    if not all(0 <= beta < 1 for beta in config.betas):
        raise UserError(f"betas is {list(config.betas)}, expected two numbers from 0 to below 1.")


def _check_hardware(config: TrainConfig) -> None:
    _one_of("saved_dtype", config.saved_dtype, PRECISIONS)
    _above_zero(config, ("accumulation",))
    if config.batch_size % config.accumulation:
        raise UserError(
            f"batch_size {config.batch_size} is no multiple of accumulation {config.accumulation}.",
            "batch_size counts the traces of a whole optimiser step.",
        )
    if config.max_length is None:
        return
    _above_zero(config, ("max_length",))
    if config.backbone and config.max_length > config.backbone.context:
        raise UserError(f"max_length is {config.max_length}, over backbone.context {config.backbone.context}.")


def _above_zero(values: object, keys: tuple[str, ...], prefix: str = "") -> None:
    for key in keys:
        value = getattr(values, key)
        # NaN is not above zero either, though no comparison says so.
        if not value > 0:
            raise UserError(f"{prefix}{key} is {value}, expected more than 0.")


def _one_of(key: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise UserError(f"{key} is {value!r}, expected one of {', '.join(allowed)}.")


def _build(kind: Any, values: object, prefix: str) -> Any:
    if not isinstance(values, dict):
        where = prefix.rstrip(".") or "the file"
        raise UserError(f"{where} is {type(values).__name__}, expected keys with values.")
    fields = {item.name: item for item in dataclasses.fields(kind)}
    for key in values:
        if key not in fields:
            near = difflib.get_close_matches(str(key), fields, 1, 0.5)
            hint = f"Did you mean {prefix}{near[0]}?" if near else f"Known keys: {', '.join(fields)}."
            raise UserError(f"unknown key {prefix}{key}.", hint)
    hints = typing.get_type_hints(kind)
    for key, item in fields.items():
        required = item.default is dataclasses.MISSING and item.default_factory is dataclasses.MISSING
        if required and key not in values:
            raise UserError(f"the key {prefix}{key} is missing.")
    return kind(**{key: _convert(hints[key], value, prefix + key) for key, value in values.items()})


def _convert(hint: Any, value: object, key: str) -> Any:
    """`value` as the type `hint`, or a `UserError` naming `key`."""
    if isinstance(hint, types.UnionType):
        inner = next(part for part in typing.get_args(hint) if part is not type(None))
        return None if value is None else _convert(inner, value, key)
    if dataclasses.is_dataclass(hint):
        return _build(hint, value, f"{key}.")
    if typing.get_origin(hint) is tuple:
        parts = typing.get_args(hint)
        count = "" if parts[-1] is Ellipsis else f" of {len(parts)}"
        if not isinstance(value, list) or (count and len(value) != len(parts)):
            raise UserError(f"{key} is {value!r}, expected a list{count}.")
        return tuple(_convert(parts[0], item, f"{key}[{number}]") for number, item in enumerate(value))
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if not isinstance(value, hint) or (hint is not bool and isinstance(value, bool)):
        raise UserError(f"{key} is {value!r}, expected {hint.__name__}.", _scientific(hint, value))
    return value


def _scientific(hint: Any, value: object) -> str:
    looks_like_number = isinstance(value, str) and "e" in value.lower()
    return "YAML reads 1e-3 as text; write 1.0e-3." if hint is float and looks_like_number else ""
