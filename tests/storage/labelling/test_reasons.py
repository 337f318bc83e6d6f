"""Texts beside labels."""

import pytest

from stepsight.core.errors import UserError
from stepsight.storage.labelling.annotation import LONGEST, check_reason


def test_outer_white_space_goes() -> None:
    assert check_reason(" so.\n", "none") == "so."


@pytest.mark.parametrize("text", ["", " \n", None, 3])
def test_nothing_is_refused(text: object) -> None:
    with pytest.raises(UserError, match="No reason"):
        check_reason(text, "No reason.")


@pytest.mark.parametrize(("text", "message"), [("x" * (LONGEST + 1), "4,001 characters"), ("a\x00", "NUL")])
def test_reasons_that_cannot_be_stored_are_refused(text: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        check_reason(text, "none")
