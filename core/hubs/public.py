"""The public evaluators: what their authors say of each, and where that is printed.

`assets/evaluators.json` has them by their id on the model hub. What we found in no source is left out there, and
None or empty here. Needs no PyTorch.
"""

from collections.abc import Collection
from enum import StrEnum
from functools import cache
from typing import Annotated, Literal

from pydantic import Field
from pydantic.dataclasses import dataclass as record

from stepsight.core.files.json_values import read_json
from stepsight.core.places import asset
from stepsight.core.validation import STRICT, ListOf, Record, validate

Percent = Annotated[float, Field(ge=0, le=100)]


class Part(StrEnum):
    """A part of ProcessBench."""

    GSM8K = "gsm8k"
    MATH = "math"
    OLYMPIADBENCH = "olympiadbench"
    OMNIMATH = "omnimath"

    @property
    def called(self) -> str:
        """Its name as its authors write it."""
        return _TITLES[self]

    @property
    def dataset(self) -> str:
        """The dataset that it becomes."""
        return f"processbench-{self}"


# Of the trace that times are given for.
_STEPS = 10
_TITLES = {Part.GSM8K: "GSM8K", Part.MATH: "MATH", Part.OLYMPIADBENCH: "OlympiadBench", Part.OMNIMATH: "Omni-MATH"}


@record(frozen=True, config=STRICT)
class ProcessBenchFigures(Record):
    """F1 on each part and the plain mean of the four, in percent, and where they are printed."""

    gsm8k: Percent
    math: Percent
    olympiadbench: Percent
    omnimath: Percent
    average: Percent
    source: str

    def of(self, part: Part) -> float:
        """The figure of a part."""
        number: float = getattr(self, part.value)
        return number


@record(frozen=True, config=STRICT)
class PrmBenchFigure(Record):
    """The PRMScore in percent, and where it is printed."""

    score: Percent
    source: str


@record(frozen=True, config=STRICT)
class PublicEvaluator(Record):
    """An evaluator by its hub `id`.

    `parameters` are those that its authors round to, `bytes` those of its weights where we know them; these are
    `safetensors`, or a `pickle` where there is nothing else. `format` is the checkpoint format that reads it.
    `threshold` is its authors' own. `brings` names what is fetched with it, and `beside` has the parameters of a
    second model that it is compared with. `calls` says how often it is asked about each step by itself, 0 where one
    pass judges all; `note` is what a reader of its figures should know.
    """

    id: str
    parameters: Annotated[int, Field(gt=0)]
    format: str
    judges: Literal["validity", "both"] = "validity"
    weights: Literal["safetensors", "pickle"] = "safetensors"
    bytes: int | None = None
    base: str = ""
    licence: str = ""
    context: int | None = None
    threshold: float | None = None
    processbench: ProcessBenchFigures | None = None
    prmbench: PrmBenchFigure | None = None
    brings: str = ""
    beside: Annotated[int, Field(ge=0)] = 0
    calls: Annotated[int, Field(ge=0)] = 0
    note: str = ""

    @property
    def name(self) -> str:
        """The model's own name, without its owner's."""
        return self.id.partition("/")[2]

    @property
    def size(self) -> int:
        """The bytes of all weights: those that are known, else two for each parameter, as most are stored."""
        return (self.bytes or 2 * self.parameters) + 2 * self.beside

    @property
    def all_parameters(self) -> int:
        """Those of a second model too."""
        return self.parameters + self.beside

    def tokens_read(self, tokens: int) -> int:
        """How many tokens it reads for a trace of so many."""
        return tokens * self.calls * (_STEPS + 1) // 2 if self.calls else tokens

    @property
    def stored(self) -> str:
        """The type that its weights are stored in, by their bytes; 16 bits are taken for bfloat16, as most are."""
        return "float32" if self.size >= 3 * self.parameters else "bfloat16"

    @property
    def redundancy(self) -> bool:
        """Whether it judges redundancy beside validity."""
        return self.judges == "both"


@record(frozen=True, config=STRICT)
class _Catalogue(Record):
    evaluators: ListOf[PublicEvaluator]


@cache
def public_evaluators() -> tuple[PublicEvaluator, ...]:
    """All of them, in the order in which they are shown: the small ones first. Raises `UserError` where the file
    holds something else."""
    evaluators = validate(_Catalogue, read_json(asset("evaluators.json")), "evaluators.json").evaluators
    return tuple(sorted(evaluators, key=lambda one: one.parameters))


def find_public(repo: str) -> PublicEvaluator | None:
    """The one with that hub id, None where it is not among them."""
    return next((one for one in public_evaluators() if one.id == repo), None)


def unreadable(one: PublicEvaluator, formats: Collection[str]) -> str:
    """Why an evaluator cannot be read here, "" where it can: `formats` are those of this version."""
    return "" if one.format in formats else f"Its format, {one.format}, cannot be read by this version."
