"""The configuration of a training run: a YAML file, checked before any work."""

from dataclasses import field
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt, Strict, model_validator
from pydantic.dataclasses import dataclass

from stepsight.core.validation import STRICT, Record, invalid, validate_yaml
from stepsight.training.data.sources_config import CONTINUED, Data, check_continued
from stepsight.training.runs.optimisation import Precision, check_batches

Attention = Literal["bidirectional", "causal"]
Truncation = Literal["random", "as-labelled", "continued"]
Seed = Annotated[int, Field(ge=0, lt=2**32)]
Beta = Annotated[float, Field(ge=0, lt=1)]
Betas = Annotated[tuple[Beta, Beta], Strict(False)]


@dataclass(frozen=True, config=STRICT)
class Backbone(Record):
    """Dimensions of a Llama backbone; `mlp` is the width of its feed-forward layer, `context` its longest input in
    tokens, and `kv_heads` the heads of keys and values where they are fewer than `heads`."""

    hidden: PositiveInt
    layers: PositiveInt
    heads: PositiveInt
    mlp: PositiveInt
    context: PositiveInt = 4096
    kv_heads: PositiveInt | None = None
    rope_theta: PositiveFloat = 10_000.0

    @model_validator(mode="after")
    def _check_heads(self) -> "Backbone":
        if self.hidden % (2 * self.heads):
            raise invalid(f"hidden {self.hidden} is not an even multiple of heads {self.heads}.")
        if self.heads % (self.kv_heads or self.heads):
            raise invalid(f"heads {self.heads} is no multiple of kv_heads {self.kv_heads}.")
        return self


@dataclass(frozen=True, config=STRICT)
class Expected(Record):
    """What a recipe is written for, from which `stepsight train --plan` tells its needs before anything is loaded.

    `gpu` is a name of `training.train.estimate` and `devices` how many of them. `traces` and `tokens`, the mean of
    a trace, stand for data that is not on this machine; `backbone` and `vocabulary` for an `init` that is not.
    """

    gpu: str | None = None
    devices: PositiveInt = 1
    traces: PositiveInt | None = None
    tokens: PositiveInt | None = None
    backbone: Backbone | None = None
    vocabulary: PositiveInt | None = None


@dataclass(frozen=True, config=STRICT)
class TrainConfig(Record):
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

    attention: Attention
    data: Data
    backbone: Backbone | None = None
    init: str | None = None
    vocabulary: PositiveInt = 1024
    tokenizer: str | None = None
    initialisation: Literal["library", "mitchell"] = "library"
    order: Literal["mixed", "sorted"] = "mixed"
    truncation: Truncation = "random"
    epochs: PositiveInt = 1
    batch_size: PositiveInt = 32
    learning_rate: PositiveFloat = 1e-3
    betas: Betas = (0.9, 0.95)
    weight_decay: NonNegativeFloat = 0.1
    warmup_steps: NonNegativeInt = 100
    clip: PositiveFloat = 1.0
    seed: Seed = 13
    max_length: PositiveInt | None = None
    accumulation: PositiveInt = 1
    activation_checkpointing: bool = False
    fsdp: bool = False
    bf16: bool = False
    saved_dtype: Precision = "float16"
    save_steps: PositiveInt = 200
    notes: str = field(default="", compare=False)
    plan: Expected | None = field(default=None, compare=False)

    @model_validator(mode="after")
    def _check(self) -> "TrainConfig":
        if (self.backbone is None) == (self.init is None):
            raise invalid("give either backbone (from scratch) or init (a folder), not both.")
        for key, changed in (("tokenizer", self.tokenizer), ("initialisation", self.initialisation != "library")):
            if self.init is not None and changed:
                raise invalid(f"{key} means nothing with init, which has its own.", f"Remove {key}, or init.")
        if self.backbone and (self.max_length or 0) > self.backbone.context:
            raise invalid(f"max_length is {self.max_length}, over backbone.context {self.backbone.context}.")
        if self.truncation == CONTINUED:
            check_continued(self.data)
        check_batches(self, "traces")
        return self


def read_config(path: str | Path) -> TrainConfig:
    """The configuration in a YAML file.

    Raises `UserError` naming the file and key on an unknown key (with the nearest valid one), a wrong type or
    an impossible combination.
    """
    return validate_yaml(TrainConfig, path)
