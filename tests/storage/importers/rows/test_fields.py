from typing import Any

import pytest

from stepsight.storage.importers.rows import fields
from tests.messages import refused


def test_good_values() -> None:
    row = {"text": " a ", "id": 7, "name": "x", "steps": [["a", "b"], ["c"]], "other": None}
    assert fields.text(row, "text") == " a "
    assert fields.identifier(row, "id") == "7"
    assert fields.identifier(row, "name") == "x"
    assert fields.steps(row, "steps") == [("a", "b"), ("c",)]
    assert fields.rest(row, "text", "id", "steps") == {"name": "x", "other": None}


@pytest.mark.parametrize("value", [3, "", "a\x00"])
def test_text(value: object) -> None:
    with refused():
        fields.text({"k": value}, "k")


@pytest.mark.parametrize("value", [None, True, 1.0, [], {}, "", " "])
def test_identifier(value: object) -> None:
    with refused():
        fields.identifier({"k": value}, "k")


@pytest.mark.parametrize("value", ["text", ["text"], [["a"], [3]], [["a"], [" "]]])
def test_steps(value: object) -> None:
    with refused():
        fields.steps({"k": value}, "k")


def test_a_missing_field_names_those_that_are_there() -> None:
    with refused():
        fields.field({"b": 1, "a": 2}, "k")
    with refused():
        fields.field({}, "k")


def test_located_puts_the_place_first() -> None:
    with refused(), fields.located("f.jsonl line 3"):
        fields.field({}, "k")


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (None, "null"),
        (True, "true"),
        (False, "false"),
        ({}, "an object"),
        ([1], "a list"),
        (2.5, "2.5"),
        ("a", "'a'"),
    ],
)
def test_describe(value: Any, words: str) -> None:
    assert fields.describe(value) == words
    assert len(fields.describe("x" * 1000)) == 60
