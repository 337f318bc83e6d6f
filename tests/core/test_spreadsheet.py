import pytest

from stepsight.core.files import cell, inert


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", " =1+1", "\n-1"])
def test_what_would_be_a_formula_is_text(text: str) -> None:
    assert inert(text) == f"'{text}"


@pytest.mark.parametrize("text", ["", "1 + 1 = 2", "a-b", "x = 3", "'=1"])
def test_other_texts_stay_as_they_are(text: str) -> None:
    assert inert(text) == text


def test_cells() -> None:
    assert [cell(value) for value in ("=1", None, -1, 0.5)] == ["'=1", None, -1, 0.5]
