"""The verdicts of the pages' scripts beside the server's."""

import numpy as np

from stepsight.core.scores import Outputs, Thresholds, verdict_word
from tests.app.browser.acts import run_script

_VERDICTS = """({ verdictOf }, cases) => cases.map(([value, threshold]) => [
  verdictOf(value, null, { validity: threshold, redundancy: 0 }),
  verdictOf(1, value, { validity: 0, redundancy: threshold }),
])"""


def test_scripts_and_server_agree_at_every_place_of_the_sliders(browser):
    """Half of the numbers in single precision lie below the threshold in double precision that they equal, such as
    0.7, which is 0.69999999 there."""
    thresholds = [place / 100 for place in range(101)]
    cases = [
        (float(value), at)
        for at in thresholds
        for value in (np.float32(at), np.nextafter(np.float32(at), np.float32(-1)), np.nextafter(np.float32(at), 2))
    ]
    read = run_script(browser, "shared/verdicts.js", _VERDICTS, cases)
    expected = [
        [
            verdict_word([0, 0, value], Thresholds(at, 0), Outputs.VALIDITY),
            verdict_word([0, value, 1], Thresholds(0, at), Outputs.THREE_WAY),
        ]
        for value, at in cases
    ]
    assert read == expected
    assert float(np.float32(0.7)) < 0.7
