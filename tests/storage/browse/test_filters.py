from typing import Any

import pytest

from stepsight.core.errors import UserError
from stepsight.core.label import Label
from stepsight.storage.browse.filters import TraceFilter


@pytest.mark.parametrize("field", ["gold", "error_at", "mode", "verdict", "mistake", "modes", "relabelled"])
def test_another_word_is_refused_with_those_that_there_are(field: str) -> None:
    what = field.replace("_", " ")
    with pytest.raises(UserError, match=rf"The {what} filter is 'certainly'\. Expected \w+, "):
        TraceFilter(**{field: "certainly"})  # type: ignore[arg-type]


def test_a_text_that_cannot_be_searched_for() -> None:
    with pytest.raises(UserError, match="the text to search for holds a NUL byte"):
        TraceFilter(text="a\x00")
    with pytest.raises(UserError, match="the text to search for holds half of a surrogate pair"):
        TraceFilter(text="a\ud800")
    with pytest.raises(UserError, match=r"too long. Use at most 1,000"):
        TraceFilter(text="x" * 1001)
    assert TraceFilter(text="  ").text == "  "


@pytest.mark.parametrize("change", [-0.1, 1.1, float("nan"), float("inf")])
def test_a_change_that_there_is_not(change: float) -> None:
    with pytest.raises(UserError, match=r"The change filter is .*Expected a number from 0 to 1"):
        TraceFilter(change=change)


CONDITIONS: list[tuple[dict[str, Any], str | None]] = [
    ({}, None),
    ({"gold": "error", "text": "a", "group": "b", "error_at": "late", "relabelled": "no"}, None),
    ({"mode": "online", "evaluator": 3}, None),
    ({"verdict": "valid"}, "verdict"),
    ({"mistake": "right"}, "mistake"),
    ({"modes": "agree"}, "modes"),
    ({"against": 1}, "against"),
    ({"change": 0.1}, "change"),
    ({"cell": (Label.NEG, Label.POS)}, "cell"),
]


@pytest.mark.parametrize(("fields", "needing"), CONDITIONS)
def test_which_conditions_are_about_judgments(fields: dict[str, Any], needing: str | None) -> None:
    where = TraceFilter(**fields)
    assert where.needing_evaluator() == needing
    assert {name for name in TraceFilter.__dataclass_fields__ if where.is_set(name)} == set(fields)
