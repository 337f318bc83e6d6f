"""Texts to compare belong to tests that there are."""

import pytest

from tests.messages import dangling


@pytest.mark.slow
def test_every_text_belongs_to_a_test():
    assert dangling() == [], "pytest --new-messages, with the tests of these files, takes them out"
