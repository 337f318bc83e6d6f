"""The verdicts of the pages' scripts beside the server's."""

import numpy as np
from playwright.sync_api import Browser

from stepsight.core.paths import asset
from stepsight.core.scores import Outputs, Thresholds, verdict_word

_VERDICTS = """async ([source, cases]) => {
  const { verdictOf } = await import(URL.createObjectURL(new Blob([source], { type: "text/javascript" })));
  return cases.map(([value, threshold]) => [
    verdictOf(value, null, { validity: threshold, redundancy: 0 }),
    verdictOf(1, value, { validity: 0, redundancy: threshold }),
  ]);
}"""


def test_scripts_and_server_agree_at_every_place_of_the_sliders(browser: Browser) -> None:
    """Half of the numbers in single precision lie below the threshold in double precision that they equal, such as
    0.7, which is 0.69999999 there."""
    thresholds = [place / 100 for place in range(101)]
    cases = [
        (float(value), at)
        for at in thresholds
        for value in (np.float32(at), np.nextafter(np.float32(at), np.float32(-1)), np.nextafter(np.float32(at), 2))
    ]
    page = browser.new_page()
    try:
        source = asset("web", "js", "shared", "verdicts.js").read_text(encoding="utf-8")
        read = page.evaluate(_VERDICTS, [source, cases])
    finally:
        page.close()
    expected = [
        [
            verdict_word([0, 0, value], Thresholds(at, 0), Outputs.VALIDITY),
            verdict_word([0, value, 1], Thresholds(0, at), Outputs.THREE_WAY),
        ]
        for value, at in cases
    ]
    assert read == expected
    assert float(np.float32(0.7)) < 0.7
