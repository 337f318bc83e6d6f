"""Texts beside labels."""

import pytest

from stepsight.storage.labelling.annotation import LONGEST, check_reason
from tests.messages import refused


def test_outer_white_space_goes():
    assert check_reason(" so.\n", "none") == "so."


@pytest.mark.parametrize("text", ["", " \n", None, 3])
def test_nothing_is_refused(text):
    with refused():
        check_reason(text, "No reason.")


@pytest.mark.parametrize("text", ["x" * (LONGEST + 1), "a\x00"])
def test_reasons_that_cannot_be_stored_are_refused(text):
    with refused():
        check_reason(text, "none")
