"""The configuration of a training run: a YAML file that is validated before any work is done."""

from dataclasses import field
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, PositiveFloat, PositiveInt, Strict, model_validator
from pydantic.dataclasses import dataclass

from stepsight.core.files.yaml_files import validate_yaml
from stepsight.core.validation import STRICT, ListOf, Record, invalid
from stepsight.training.data.sources_config import CONTINUED, Data, check_continued
from stepsight.training.runs.optimisation import Optimisation

Attention = Literal["bidirectional", "causal"]
Truncation = Literal["random", "as-labelled", "continued"]
Loss = Literal["pooled", "example"]
TooLong = Literal["drop", "truncate"]


@dataclass(frozen=True, config=STRICT)
class Backbone(Record):
    """The dimensions of a Llama backbone.

    `mlp` is the width of the feed-forward layers. `context` is the longest input in tokens. `kv_heads` is the
    number of key and value heads, which defaults to `heads`.
    """

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
            raise invalid(f"heads {self.heads} is not a multiple of kv_heads {self.kv_heads}.")
        return self


@dataclass(frozen=True, config=STRICT)
class Expected(Record):
    """The data and hardware that a recipe was written for. `stepsight train --plan` makes its estimate from them.

    `gpu` is the memory of each of the `devices` in GiB. `traces` and `tokens` (the mean per trace) are used if the
    data is not on this machine. `backbone` and `vocabulary` are used if the model named by `init` is not on this
    machine.
    """

    gpu: Annotated[PositiveFloat, Strict(False)] | None = None
    devices: PositiveInt = 1
    traces: PositiveInt | None = None
    tokens: PositiveInt | None = None
    backbone: Backbone | None = None
    vocabulary: PositiveInt | None = None


@dataclass(frozen=True, config=STRICT)
class Lora(Record):
    """Low-rank adapters `W + alpha / rank · B A`, trained while the weights `W` stay frozen (Hu et al. 2022).

    `alpha` defaults to twice the rank. `dropout` applies to the input of an adapter. `targets` lists the layers
    that get an adapter by the ends of their names, as in PEFT, and defaults to all linear layers of the blocks.
    """

    rank: PositiveInt = 16
    alpha: PositiveFloat | None = None
    dropout: Annotated[float, Field(ge=0, lt=1)] = 0.0
    targets: ListOf[str] = ()

    @property
    def scale(self) -> float:
        """The value of `alpha`, or its default of twice the rank."""
        return 2 * self.rank if self.alpha is None else self.alpha


@dataclass(frozen=True, config=STRICT)
class TrainConfig(Optimisation):
    """The configuration of a training run.

    `loss: pooled` is the mean over all labelled step ends of an optimiser step. `loss: example`, as in the paper's
    equation in section 3.3, first takes the mean within each trace, so that every trace counts equally.

    A trace of more than `max_length` tokens (by default the backbone's context) is left out and counted. With
    `too_long: truncate` the trace is cut there instead, and step ends after the cut are lost.

    `truncation: random` cuts half of the traces after a step chosen uniformly at random, so that the end of a trace
    reveals nothing about its last step. `truncation: continued` first appends the steps that were generated but not
    labelled, if the data has them (`training.data.transforms`). `truncation: as-labelled` leaves traces uncut.

    `tokenizer` is the folder of a tokenizer for training from scratch, and `vocabulary` is the number of rows of
    the embedding. Without `tokenizer`, one with `vocabulary` tokens is trained on the data. `initialisation:
    mitchell` is LLaDA's initialisation (`training.train.init`). `order: sorted` takes the traces of an epoch from
    longest to shortest; `order: mixed` is described in `training.data.examples`. `plan` only serves to estimate the
    run.

    With `lora`, the model named by `init` stays frozen, and only adapters and the head are trained. If `bf16` is
    also set, the frozen weights are held in bfloat16.
    """

    attention: Attention
    data: Data
    backbone: Backbone | None = None
    init: str | None = None
    loss: Loss = "pooled"
    vocabulary: PositiveInt = 1024
    tokenizer: str | None = None
    initialisation: Literal["library", "mitchell"] = "library"
    lora: Lora | None = None
    order: Literal["mixed", "sorted"] = "mixed"
    truncation: Truncation = "random"
    max_length: PositiveInt | None = None
    too_long: TooLong = "drop"
    notes: str = field(default="", compare=False)
    plan: Expected | None = field(default=None, compare=False)

    @model_validator(mode="after")
    def _check(self) -> "TrainConfig":
        if (self.backbone is None) == (self.init is None):
            raise invalid("give either backbone (from scratch) or init (a folder), not both.")
        scratch = {"tokenizer": self.tokenizer, "initialisation": self.initialisation != "library"}
        for key, changed in scratch.items():
            if self.init is not None and changed:
                raise invalid(f"{key} does not go with init, which has its own.", f"Remove {key}, or init.")
        if self.lora is not None and self.fsdp and self.activation_checkpointing:
            # With wrappers that recompute activations, the sharded checkpoint lacks the adapters.
            raise invalid(
                "lora, fsdp and activation_checkpointing do not go together: such a run could not be resumed.",
                "Set one of the last two to false.",
            )
        if self.lora is not None and self.init is None:
            raise invalid("lora needs init: from scratch, all weights are trained.", "Remove lora.")
        if self.backbone and (self.max_length or 0) > self.backbone.context:
            raise invalid(f"max_length is {self.max_length}, over backbone.context {self.backbone.context}.")
        if self.truncation == CONTINUED:
            check_continued(self.data)
        return self


def read_config(path: str | Path) -> TrainConfig:
    """Read the configuration in a YAML file. Raises `UserError`, naming the file and the key, if a key is unknown
    (suggesting the nearest valid key), if a value has the wrong type, or if keys contradict each other."""
    return validate_yaml(TrainConfig, path)
