"""The list of public evaluators, with facts stated by their authors and the sources of these facts.

`assets/evaluators.json` lists them by their id on the model hub. A fact that no source states is missing in the
file, and is None or empty here. Does not need PyTorch.
"""

from collections.abc import Collection
from enum import StrEnum
from functools import cache
from typing import Annotated, Literal

from pydantic import Field
from pydantic.dataclasses import dataclass as record

from stepsight.core.files.json_values import read_json
from stepsight.core.paths import asset
from stepsight.core.validation import STRICT, ListOf, Record, validate

Percent = Annotated[float, Field(ge=0, le=100)]


class BenchmarkPart(StrEnum):
    """One of the four datasets that ProcessBench consists of."""

    GSM8K = "gsm8k"
    MATH = "math"
    OLYMPIADBENCH = "olympiadbench"
    OMNIMATH = "omnimath"

    @property
    def called(self) -> str:
        """The name of this part of ProcessBench as its authors write it."""
        return _TITLES[self]

    @property
    def dataset(self) -> str:
        """The name of the part's dataset in StepSight."""
        return f"processbench-{self}"


_TITLES = {
    BenchmarkPart.GSM8K: "GSM8K",
    BenchmarkPart.MATH: "MATH",
    BenchmarkPart.OLYMPIADBENCH: "OlympiadBench",
    BenchmarkPart.OMNIMATH: "Omni-MATH",
}


@record(frozen=True, config=STRICT)
class ProcessBenchFigures(Record):
    """The F1 on each part of ProcessBench and the plain mean of the four, in percent, with the source of these
    numbers."""

    gsm8k: Percent
    math: Percent
    olympiadbench: Percent
    omnimath: Percent
    average: Percent
    source: str

    def of(self, part: BenchmarkPart) -> float:
        number: float = getattr(self, part.value)
        return number


@record(frozen=True, config=STRICT)
class PrmBenchFigure(Record):
    """The PRMScore on PRMBench in percent, and its source."""

    score: Percent
    source: str


@record(frozen=True, config=STRICT)
class PublicEvaluator(Record):
    """A public evaluator, identified by its hub `id`.

    `parameters` is the rounded number given by the authors, and `bytes` the size of the weights if known. `weights`
    is "pickle" only if there are no safetensors. `format` is the checkpoint format used to load the evaluator, and
    `threshold` the threshold that its authors chose. `brings` names the models that are downloaded with it. Some
    evaluators need a second model for comparison, and `beside` is its parameter count. `note` is a remark for
    readers of the evaluator's results. `missing` is a sentence on facts that are needed to read the evaluator but
    that no source states, and `asks` lists the keys of stepsight.json that can state them. If there are no such
    keys, `format` is "".
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
    note: str = ""
    missing: str = ""
    asks: ListOf[str] = ()

    @property
    def name(self) -> str:
        """The name of the model without its owner."""
        return self.id.partition("/")[2]

    @property
    def size(self) -> int:
        """The size of all weights in bytes, including those of the comparison model, if there is one. An unknown
        size is estimated at two bytes per parameter."""
        return (self.bytes or 2 * self.parameters) + 2 * self.beside

    @property
    def all_parameters(self) -> int:
        """The number of parameters, including those of the comparison model, if there is one."""
        return self.parameters + self.beside

    @property
    def stored(self) -> str:
        """The data type of the stored weights, inferred from their size. 16-bit weights are assumed to be bfloat16,
        because most are."""
        return "float32" if self.size >= 3 * self.all_parameters else "bfloat16"

    @property
    def redundancy(self) -> bool:
        """True if the evaluator judges redundancy as well as validity."""
        return self.judges == "both"


@record(frozen=True, config=STRICT)
class _Catalogue(Record):
    evaluators: ListOf[PublicEvaluator]


@cache
def public_evaluators() -> tuple[PublicEvaluator, ...]:
    """Return all public evaluators in display order, smallest first. Raises `UserError` if assets/evaluators.json
    is invalid."""
    evaluators = validate(_Catalogue, read_json(asset("evaluators.json")), "evaluators.json").evaluators
    return tuple(sorted(evaluators, key=lambda one: one.parameters))


def find_public(repo: str) -> PublicEvaluator | None:
    """Return the public evaluator with this hub id, or None if the list does not contain it."""
    return next((one for one in public_evaluators() if one.id == repo), None)


def find_unstated(name: str) -> PublicEvaluator | None:
    """Return the public evaluator with the hub id or bare name `name` if no source states how it is read, and
    otherwise None."""
    return next((one for one in public_evaluators() if one.missing and name in (one.id, one.name)), None)


def unreadable(one: PublicEvaluator, formats: Collection[str]) -> str:
    """Return the reason why an evaluator cannot be loaded, or "" if it can. `formats` holds the checkpoint formats
    that this version supports."""
    if one.missing:
        return one.missing
    return "" if one.format in formats else f"Its format, {one.format}, cannot be read by this version."
