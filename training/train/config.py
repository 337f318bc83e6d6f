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
    """The dimensions of a Llama backbone."""

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
    """The data and hardware that a recipe was written for, on which `stepsight train --plan` bases its estimate."""

    gpu: Annotated[PositiveFloat, Strict(False)] | None = None
    devices: PositiveInt = 1
    traces: PositiveInt | None = None
    tokens: PositiveInt | None = None
    backbone: Backbone | None = None
    vocabulary: PositiveInt | None = None


@dataclass(frozen=True, config=STRICT)
class Lora(Record):
    """Low-rank adapters `W + alpha / rank · B A`, trained while the weights `W` stay frozen (Hu et al. 2022)."""

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
    """The configuration of a training run. `docs/training.md` says what each key means, here and in the records
    that it holds. `loss: example` is the paper's equation in section 3.3."""

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
                raise invalid(f"{key} cannot be used with init, which has its own.", f"Remove {key}, or init.")
        if self.lora is not None and self.fsdp and self.activation_checkpointing:
            # With wrappers that recompute activations, the sharded checkpoint lacks the adapters.
            raise invalid(
                "lora, fsdp and activation_checkpointing cannot be used together: such a run could not be resumed.",
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
