"""The configuration of a training run: a YAML file, checked before any work."""

from dataclasses import field
from pathlib import Path
from typing import Literal

from pydantic import PositiveFloat, PositiveInt, model_validator
from pydantic.dataclasses import dataclass

from stepsight.core.validation import STRICT, Record, invalid, validate_yaml
from stepsight.training.data.sources_config import CONTINUED, Data, check_continued
from stepsight.training.runs.optimisation import Optimisation

Attention = Literal["bidirectional", "causal"]
Truncation = Literal["random", "as-labelled", "continued"]
Numbers = Literal["digits", "groups"]
# 256 bytes, 1,100 groups of two or three digits, some special tokens.
_LEAST_WITH_GROUPS = 1400


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
    """The data and hardware that a recipe is written for: `stepsight train --plan` estimates from it what is needed
    before anything is loaded.

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
class TrainConfig(Optimisation):
    """The configuration of a training run.

    `objective` steps learns the labels of steps; masked-tokens pretrains the backbone on the texts of all traces,
    with a label or without one, and leaves the head as it is (`training.train.masked`).

    A trace of more than `max_length` tokens (the backbone's context if not given) is left out and counted.

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
    objective: Literal["steps", "masked-tokens"] = "steps"
    vocabulary: PositiveInt = 1024
    numbers: Numbers = "digits"
    tokenizer: str | None = None
    initialisation: Literal["library", "mitchell"] = "library"
    order: Literal["mixed", "sorted"] = "mixed"
    truncation: Truncation = "random"
    max_length: PositiveInt | None = None
    notes: str = field(default="", compare=False)
    plan: Expected | None = field(default=None, compare=False)

    @model_validator(mode="after")
    def _check(self) -> "TrainConfig":
        if (self.backbone is None) == (self.init is None):
            raise invalid("give either backbone (from scratch) or init (a folder), not both.")
        scratch = (
            ("tokenizer", self.tokenizer),
            ("initialisation", self.initialisation != "library"),
            ("numbers", self.numbers != "digits"),
        )
        for key, changed in scratch:
            if self.init is not None and changed:
                raise invalid(f"{key} means nothing with init, which has its own.", f"Remove {key}, or init.")
        if self.backbone and (self.max_length or 0) > self.backbone.context:
            raise invalid(f"max_length is {self.max_length}, over backbone.context {self.backbone.context}.")
        if self.numbers == "groups" and self.vocabulary < _LEAST_WITH_GROUPS:
            raise invalid(
                f"vocabulary is {self.vocabulary:,}, which leaves no room for words beside groups of digits.",
                f"Expected at least {_LEAST_WITH_GROUPS:,}.",
            )
        if self.truncation == CONTINUED:
            check_continued(self.data)
        return self


def read_config(path: str | Path) -> TrainConfig:
    """The configuration in a YAML file.

    Raises `UserError` naming the file and key on an unknown key (with the nearest valid one), a wrong type or
    an impossible combination.
    """
    return validate_yaml(TrainConfig, path)
