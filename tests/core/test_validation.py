import sys
from dataclasses import asdict, field, replace
from subprocess import run
from typing import Annotated, Any, Literal

import pytest
from pydantic import Field, PositiveInt, Strict, model_validator
from pydantic.dataclasses import dataclass

from stepsight.core.validation import STRICT, ListOf, Model, Record, choice, invalid, validate
from tests.cases import each
from tests.messages import refused

Share = Annotated[float, Field(ge=0, le=1)]


@dataclass(frozen=True, config=STRICT)
class Source(Record):
    kind: Annotated[str, choice(("prm800k", "store"))]
    size: PositiveInt | None = None
    families: ListOf[str] = ()

    @model_validator(mode="after")
    def _check(self) -> "Source":
        if self.kind == "store" and self.size:
            raise invalid("size does not go with kind store.", "Remove it.")
        return self


@dataclass(frozen=True, config=STRICT)
class Recipe(Record):
    sources: Annotated[ListOf[Source], Field(min_length=1)]
    loss: Literal["response", "all"] = "response"
    epochs: PositiveInt = 1
    rate: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 1.0
    betas: Annotated[tuple[Share, Share], Strict(False)] = (0.5, 0.5)
    fast: bool = False
    sizes: dict[str, dict[str, Any]] = field(default_factory=dict)
    start: Source | None = None
    notes: str = field(default="", compare=False)


class Row(Model):
    problem: str
    steps: list[str | list[str]]
    label: Literal["neg", "neu", "pos"] | None = None

    @model_validator(mode="after")
    def _check(self) -> "Row":
        if not self.problem:
            raise invalid("a trace has a problem.", "Write it.")
        return self


KEYS = "The keys are sources, loss, epochs, rate, betas, fast, sizes, start, notes."
SMALL = {"sources": [{"kind": "prm800k"}]}


def test_keys_and_values_become_a_frozen_instance():
    values = {"sources": [{"kind": "prm800k", "families": ["age"]}], "rate": 2, "betas": [0, 1.0], "notes": "why"}
    recipe = validate(Recipe, values | {"sizes": {"a": {"x": [1]}}, "start": {"kind": "store"}})
    source = Source("prm800k", families=("age",))
    assert recipe == Recipe((source,), rate=2.0, betas=(0.0, 1.0), sizes={"a": {"x": [1]}}, start=Source("store"))
    assert (type(recipe.rate), recipe.notes) == (float, "why")
    assert asdict(replace(recipe, epochs=3))["sources"] == (asdict(source),)
    assert validate(Row, {"problem": "p", "steps": ["a", ["b", "c"]]}).steps == ["a", ["b", "c"]]


@each(
    "changes",
    [
        {"epoch": 1},
        {"xyzzy": 1},
        {7: 1},
        {"start": {"knd": "store"}},
        {"sources": [{"kind": "store"}, {"knd": "store"}]},
        {"start": {"size": 3}},
        {"start": 3},
        {"sources": []},
        {"sources": {}},
        {"start": {"kind": "stor"}},
        {"start": {"kind": "store", "size": 1}},
        {"start": {"kind": "store", "families": [1]}},
        {"loss": "al"},
        {"loss": None},
        {"epochs": "1"},
        {"epochs": True},
        {"epochs": 1.0},
        {"epochs": 0},
        {"rate": "1e-3"},
        {"rate": True},
        {"rate": float("nan")},
        {"betas": [0.9]},
        {"betas": [0.9, 0, 0]},
        {"betas": [0.9, 2]},
        {"fast": 1},
        {"sizes": {"a": 3}},
        {"sizes": {1: {}}},
        {"notes": ["x" * 50]},
    ],
)  # fmt: skip
def test_a_mistake_is_reported_with_its_place_and_the_expected_value(changes):
    with refused():
        validate(Recipe, SMALL | changes)


@pytest.mark.parametrize(
    "rows",
    [
        [{"problem": "p", "steps": []}, {"steps": []}],
        [{"problem": "p", "steps": ["a", ["b", 5]]}],
        [{"problem": "p", "steps": [5]}],
        [{"problem": "p", "steps": [], "lable": "neg"}],
        [5],
        [{"problem": "", "steps": []}],
        None,
    ],
)
def test_rows_count_from_one(rows):
    with refused():
        validate(list[Row], rows, "the answers")


def test_the_errors_alone_import_no_pydantic():
    code = "import sys, stepsight.core.errors; sys.exit('pydantic' in sys.modules)"
    assert run([sys.executable, "-c", code], check=False).returncode == 0
