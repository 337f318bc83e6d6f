import re
from typing import Any

import pytest

from stepsight.core.errors import UserError
from stepsight.storage.importers import fields


def test_good_values() -> None:
    row = {"text": " a ", "id": 7, "name": "x", "steps": [["a", "b"], ["c"]], "other": None}
    assert fields.text(row, "text") == " a "
    assert fields.identifier(row, "id") == "7"
    assert fields.identifier(row, "name") == "x"
    assert fields.steps(row, "steps") == [("a", "b"), ("c",)]
    assert fields.rest(row, "text", "id", "steps") == {"name": "x", "other": None}


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (3, "is int, expected text"),
        ("", "is empty"),
        ("a\x00", "NUL byte"),
    ],
)
def test_text(value: object, message: str) -> None:
    with pytest.raises(UserError, match=f"the field 'k' .*{message}|the field 'k' {message}"):
        fields.text({"k": value}, "k")


@pytest.mark.parametrize("value", [None, True, 1.0, [], {}, "", " "])
def test_identifier(value: object) -> None:
    with pytest.raises(UserError, match="the field 'k' is"):
        fields.identifier({"k": value}, "k")


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("text", "the field 'k' is 'text', expected a list of steps"),
        (["text"], "step 1 is 'text', expected a list of texts"),
        ([["a"], [3]], "step 2 is int, expected text"),
        ([["a"], [" "]], "step 2 is empty"),
    ],
)
def test_steps(value: object, message: str) -> None:
    with pytest.raises(UserError, match=message):
        fields.steps({"k": value}, "k")


def test_a_missing_field_names_those_that_are_there() -> None:
    with pytest.raises(UserError, match=re.escape("the field 'k' is missing (found: 'a', 'b').")):
        fields.field({"b": 1, "a": 2}, "k")
    with pytest.raises(UserError, match=re.escape("(found: none)")):
        fields.field({}, "k")


def test_located_puts_the_place_first() -> None:
    with (
        pytest.raises(UserError, match=r"^f\.jsonl line 3: the field 'k' is missing"),
        fields.located("f.jsonl line 3"),
    ):
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
