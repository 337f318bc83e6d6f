"""Fields of what a form sends."""

import pytest

from stepsight.app.relabel.forms import choice, text, whole
from stepsight.core.errors import UserError


def test_what_is_right() -> None:
    fields = {"step": 0, "reason": "So.", "label": None}
    assert (whole(fields, "step"), text(fields, "reason"), text(fields, "more")) == (0, "So.", "")
    assert choice(fields, "label", ("neg", None)) is None


@pytest.mark.parametrize("value", [None, "1", True, 1.0, -1, 2**31])
def test_no_number(value: object) -> None:
    with pytest.raises(UserError, match=r"step is .* expected a whole number from 0"):
        whole({"step": value}, "step")


@pytest.mark.parametrize("value", [None, 1, ["a"]])
def test_no_text(value: object) -> None:
    with pytest.raises(UserError, match=r"reason is .* expected a text"):
        text({"reason": value}, "reason")


@pytest.mark.parametrize("fields", [{}, {"label": "pos"}, {"label": 0}, {"label": ["neg"]}])
def test_no_choice(fields: dict[str, object]) -> None:
    with pytest.raises(UserError, match=r"label is .* expected one of neg, null"):
        choice(fields, "label", ("neg", None))
