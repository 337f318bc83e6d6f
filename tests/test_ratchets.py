"""Measures of the structure may only fall: each failure says what to do instead of raising a limit."""

from tests.ratchets import problems


def test_measures_of_the_structure_only_fall():
    assert not (changes := problems()), "\n".join(changes)
