import sys
from dataclasses import asdict, field, replace
from subprocess import run
from typing import Annotated, Any, Literal

import pytest
from pydantic import Field, PositiveInt, Strict, model_validator
from pydantic.dataclasses import dataclass

from stepsight.core.errors import UserError
from stepsight.core.validation import STRICT, ListOf, Model, Record, choice, invalid, validate
from tests.cases import each

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
QUOTES = "Put quotes around names that are numbers."
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
    "changes, message",
    [
        ({"epoch": 1}, "unknown key epoch. Did you mean epochs?"),
        ({"xyzzy": 1}, f"unknown key xyzzy. {KEYS}"),
        ({7: 1}, f"unknown key 7. {KEYS}"),
        ({"start": {"knd": "store"}}, "unknown key start.knd. Did you mean start.kind?"),
        (
            {"sources": [{"kind": "store"}, {"knd": "store"}]},
            "unknown key sources[1].knd. Did you mean sources[1].kind?",
        ),
        ({"start": {"size": 3}}, "the key start.kind is missing."),
        ({"start": 3}, "start is 3, expected keys with values."),
        ({"sources": []}, "sources is empty. Give at least one."),
        ({"sources": {}}, "sources is {}, expected a list."),
        ({"start": {"kind": "stor"}}, "start.kind is 'stor', expected one of prm800k, store. Did you mean store?"),
        ({"start": {"kind": "store", "size": 1}}, "start: size does not go with kind store. Remove it."),
        ({"start": {"kind": "store", "families": [1]}}, "start.families[0] is 1, expected text."),
        ({"loss": "al"}, "loss is 'al', expected one of response, all. Did you mean all?"),
        ({"loss": None}, "loss is None, expected one of response, all."),
        ({"epochs": "1"}, "epochs is '1', expected a whole number."),
        ({"epochs": True}, "epochs is True, expected a whole number."),
        ({"epochs": 1.0}, "epochs is 1.0, expected a whole number."),
        ({"epochs": 0}, "epochs is 0, expected more than 0."),
        ({"rate": "1e-3"}, "rate is '1e-3', expected a number. YAML reads 1e-3 as text; write 1.0e-3."),
        ({"rate": True}, "rate is True, expected a number."),
        ({"rate": float("nan")}, "rate is nan, expected a finite number."),
        ({"betas": [0.9]}, "betas is [0.9], expected a list of 2 or more."),
        ({"betas": [0.9, 0, 0]}, "betas is [0.9, 0, 0], expected a list of 2 at most."),
        ({"betas": [0.9, 2]}, "betas[1] is 2, expected 1 or less."),
        ({"fast": 1}, "fast is 1, expected true or false."),
        ({"sizes": {"a": 3}}, "sizes.a is 3, expected keys with values."),
        ({"sizes": {1: {}}}, f"sizes is {{1: {{}}}}, expected keys with values. {QUOTES}"),
        ({"notes": ["x" * 50]}, f"notes is ['{'x' * 37}…, expected text."),
    ],
)  # fmt: skip
def test_a_mistake_is_reported_with_its_place_and_the_expected_value(changes, message):
    with pytest.raises(UserError) as caught:
        validate(Recipe, SMALL | changes)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([{"problem": "p", "steps": []}, {"steps": []}], "row 2: the key problem is missing."),
        ([{"problem": "p", "steps": ["a", ["b", 5]]}], "row 1: steps[1][1] is 5, expected text."),
        ([{"problem": "p", "steps": [5]}], "row 1: steps[0] is 5, expected text or a list."),
        ([{"problem": "p", "steps": [], "lable": "neg"}], "row 1: unknown key lable. Did you mean label?"),
        ([5], "row 1 is 5, expected keys with values."),
        ([{"problem": "", "steps": []}], "row 1: a trace has a problem. Write it."),
        (None, "the answers is empty, expected a list."),
    ],
)
def test_rows_count_from_one(rows, message):
    with pytest.raises(UserError) as caught:
        validate(list[Row], rows, "the answers")
    assert str(caught.value) == message


def test_the_errors_alone_import_no_pydantic():
    code = "import sys, stepsight.core.errors; sys.exit('pydantic' in sys.modules)"
    assert run([sys.executable, "-c", code], check=False).returncode == 0
