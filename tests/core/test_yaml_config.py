from dataclasses import dataclass
from typing import Any

import pytest

from stepsight.core.errors import UserError
from stepsight.core.yaml_config import above_zero, build, one_of, read_yaml


@dataclass(frozen=True)
class Inner:
    size: int


@dataclass(frozen=True)
class Outer:
    parts: dict[str, dict[str, Any]]
    inner: Inner | None = None
    share: float = 0.5


def test_names_of_ones_own_are_kept_with_whatever_they_hold():
    found = build(Outer, {"parts": {"a": {"x": 1, "y": [2]}, "b": {}}, "inner": {"size": 3}, "share": 1})
    assert found == Outer({"a": {"x": 1, "y": [2]}, "b": {}}, Inner(3), 1.0)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"parts": [1]}, r"parts is \[1\], expected keys with values\. Put quotes"),
        ({"parts": {1: {}}}, r"parts is \{1: \{\}\}, expected keys with values\. Put quotes"),
        ({"parts": {"a": 1}}, r"parts\.a is 1, expected keys with values"),
        ({"parts": {}, "inner": {"sise": 1}}, r"unknown key inner\.sise\. Did you mean inner\.size\?"),
        ({}, "the key parts is missing"),
        ([], "the file is list, expected keys with values"),
    ],
)
def test_what_does_not_fit_is_named(values, message):
    with pytest.raises(UserError, match=message):
        build(Outer, values)


def test_a_file_that_is_not_there_or_no_yaml_is_named(tmp_path):
    with pytest.raises(UserError, match=r"nowhere\.yaml: cannot be read"):
        read_yaml(tmp_path / "nowhere.yaml")
    (tmp_path / "bad.yaml").write_text("a: [")
    with pytest.raises(UserError, match=r"bad\.yaml: not YAML"):
        read_yaml(tmp_path / "bad.yaml")


def test_numbers_and_choices_are_checked():
    above_zero(Inner(1), ("size",))
    with pytest.raises(UserError, match=r"inner\.size is 0, expected more than 0"):
        above_zero(Inner(0), ("size",), "inner.")
    one_of("mask", "causal", ("causal",))
    with pytest.raises(UserError, match="mask is 'x', expected one of causal"):
        one_of("mask", "x", ("causal",))
