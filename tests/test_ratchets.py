"""Measures of the structure may only fall: each failure says what to do instead of raising a limit."""

import json

import pytest

from tests.ratchets import ADVICE, LIMITS, exceeds, measures

MEASURED = measures()


@pytest.mark.parametrize("measure", ADVICE)
def test_a_measure_of_the_structure_does_not_rise(measure: str) -> None:
    above = exceeds(MEASURED[measure], json.loads(LIMITS.read_text())[measure])
    assert not above, f"{measure} rose: {'; '.join(above)}. {ADVICE[measure]}"


@pytest.mark.parametrize("measure", ADVICE)
def test_a_measure_that_fell_is_written_down(measure: str) -> None:
    left = exceeds(json.loads(LIMITS.read_text())[measure], MEASURED[measure])
    assert not left, f"{measure} fell: run python -m tests.ratchets and commit tests/ratchets.json."
