"""The list of public evaluators, with facts stated by their authors and the sources of these facts, and built-in
stepsight.json values for those whose repositories have no such file.

`assets/evaluators.json` lists them by their id on the model hub. A fact that no source states is missing in the
file, and is None or empty here. The built-in values are in `assets/cards.yaml`; a folder's own stepsight.json
overrides them key by key. Does not need PyTorch.
"""

import json
from collections.abc import Collection, Mapping
from enum import StrEnum
from functools import cache
from typing import Annotated, Any, Literal

from pydantic import Field
from pydantic.dataclasses import dataclass as record

from stepsight.core.errors import UserError
from stepsight.core.files.whole_files import read_json
from stepsight.core.files.yaml_files import parse_yaml
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
        return {"olympiadbench": "OlympiadBench", "omnimath": "Omni-MATH"}.get(self.value, self.value.upper())

    @property
    def dataset(self) -> str:
        """The name of the part's dataset in StepSight."""
        return f"processbench-{self}"


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
        return getattr(self, part.value)


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
    evaluators need a second model for comparison, which has `extra_parameters`. `note` is a remark for readers of
    the evaluator's results. `missing` is a sentence on facts that are needed to read the evaluator but
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
    extra_parameters: Annotated[int, Field(ge=0)] = 0
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
        return (self.bytes or 2 * self.parameters) + 2 * self.extra_parameters

    @property
    def all_parameters(self) -> int:
        """The number of parameters, including those of the comparison model, if there is one."""
        return self.parameters + self.extra_parameters

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
    return tuple(sorted(evaluators, key=lambda evaluator: evaluator.parameters))


def find_public(repo: str) -> PublicEvaluator | None:
    """Return the public evaluator with this hub id, or None if the list does not contain it."""
    return next((evaluator for evaluator in public_evaluators() if evaluator.id == repo), None)


def unreadable(evaluator: PublicEvaluator, formats: Collection[str]) -> str:
    """Return the reason why an evaluator cannot be loaded, or "" if it can. `formats` holds the checkpoint formats
    that this version supports."""
    if evaluator.missing:
        return evaluator.missing
    return "" if evaluator.format in formats else f"Its format, {evaluator.format}, cannot be read by this version."


Card = Mapping[str, Any]
"""The values of a stepsight.json."""

_STATE = (
    "State it in a stepsight.json, in the model's folder or for the fetch (stepsight evaluators fetch --card),"
    " such as"
)
_EXAMPLES: Card = {"attention": "causal", "template": {"separator": "\n"}}


@cache
def _cards() -> Mapping[str, Card]:
    """Return the built-in values by repository."""
    entries = parse_yaml(asset("cards.yaml").read_text(encoding="utf-8"))
    return {repo: entry["card"] for entry in entries for repo in entry["models"]}


def _namesakes(name: str) -> list[str]:
    """Return the listed repositories with this name, of any owner."""
    return [repo for repo in _cards() if repo.partition("/")[2].casefold() == name.casefold()]


def known_card(name: str) -> Card:
    """Return the built-in values for a repository, given as `OWNER/NAME`, or for a folder called `NAME`.

    The result is empty if there are none. A folder's name is ignored if several owners have a model of that name. A
    repository of a different owner is not mistaken for the listed one.
    """
    if "/" not in name and len(repos := _namesakes(name)) == 1:
        name = repos[0]
    return next((card for repo, card in _cards().items() if repo.casefold() == name.casefold()), {})


def with_known(name: str, own: Card) -> dict[str, Any]:
    """Merge the built-in values for `name` with `own`, the content of a folder's stepsight.json. Values in `own`
    take precedence.

    The built-in values are ignored if `own` names a different format. Raises `UserError` if the list says that no
    source states how the evaluator is read, and `own` does not state it either.
    """
    _check_stated(name, own)
    built_in = known_card(name)
    if "format" in own and own["format"] != built_in.get("format", own["format"]):
        return dict(own)
    card = {**built_in, **own}
    if isinstance(own.get("template"), Mapping) and "template" in built_in:
        card["template"] = {**built_in["template"], **own["template"]}
    return card


def check_separator(place: str, card: Card) -> None:
    """Raise `UserError` if `card`, the values for a token classifier, names neither a separator nor another token
    at which steps are read. TRL's trainer accepts any text as separator and does not record it."""
    template = card.get("template")
    template = template if isinstance(template, Mapping) else {}
    if "separator" in template or template.get("read", "separator") != "separator":
        return
    raise UserError(
        f"{place}: its separator, the text after each step at which the step is judged, is unknown.",
        f"Use the one from its training, step_separator in TRL. {_STATE} {_example(['template'])}.",
    )


def namesake(name: str) -> str:
    """Return the listed `OWNER/NAME` with the same name as the repository `name` but another owner, or ""."""
    repos = _namesakes(name.partition("/")[2])
    return repos[0] if len(repos) == 1 and repos[0].casefold() != name.casefold() else ""


def _check_stated(name: str, own: Card) -> None:
    """Raise `UserError` if the public evaluator with this hub id or bare name lacks facts that `own` does not state
    either."""
    unstated = (evaluator for evaluator in public_evaluators() if evaluator.missing)
    public = next((evaluator for evaluator in unstated if name in (evaluator.id, evaluator.name)), None)
    if public is None or all(key in own for key in public.asks or ("format",)):
        return
    reason = public.missing[0].lower() + public.missing[1:]
    if not public.asks:
        raise UserError(
            f"{name} cannot be read: {reason}",
            "Score with its authors' code, and read the scores with stepsight import-scores.",
        )
    raise UserError(
        f"{name} cannot be read as it is: {reason}", f"Ask its authors. {_STATE} {_example(public.asks)}."
    )


def _example(keys: Collection[str]) -> str:
    return json.dumps({key: value for key, value in _EXAMPLES.items() if key in keys})
