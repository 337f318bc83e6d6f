import random

import pytest

from stepsight.training.synth.wording import bounded, breaks, leads_back, opener, returns, verdict


@pytest.mark.parametrize("words", [verdict, returns, leads_back])
def test_a_passing_check_never_sounds_like_a_failing_one(words):
    passing = {words(84, 84, random.Random(seed)) for seed in range(300)}
    failing = {words(84, 94, random.Random(seed)) for seed in range(300)}
    assert len(passing) > 5
    assert len(failing) > 5
    assert not any("not" in text or "wrong" in text or "mistake" in text for text in passing)
    assert all("94" in text for text in failing)
    # Some words do not tell: whoever reads them has to compare the numbers.
    neutral = {text.replace("84", "#") for text in passing} & {text.replace("94", "#") for text in failing}
    assert neutral


def test_the_number_is_written_as_it_stands():
    texts = {verdict(1, 2, random.Random(seed), "\\frac{1}{2}") for seed in range(50)}
    assert all("\\frac{1}{2}" in text for text in texts)


def test_bounds_and_breaks():
    kept = {bounded(True, random.Random(seed)) for seed in range(100)}
    broken = {bounded(False, random.Random(seed)) for seed in range(100)}
    assert not kept & broken
    assert len({breaks(random.Random(seed)) for seed in range(100)}) > 2


def test_openers_vary():
    assert len({opener(random.Random(seed)) for seed in range(300)}) > 10
