"""What scripts of the pages decide as the server does, each in a blank page: annotation events folded, verdicts."""

import numpy as np

from stepsight.core.scores import Outputs, Thresholds, verdict_word
from tests.app.browser.acts import run_script
from tests.storage.labelling.folds import CASES, as_json, states

_FOLDS = """({ fold }, cases) => {
  const key = (entry) => (typeof entry === "object" ? entry.key : entry);
  return cases.map(({ states, events, stored }) => states.map((state, count) => {
    const known = new Map(stored.slice(0, count).map((event) => [event.key, event]));
    const { undo, redo, ...rest } = fold(state, events.slice(count), known);
    return { ...rest, undo: undo.map(key), redo: redo.map(key) };
  }));
}"""


def test_the_script_folds_events_as_the_server_does(browser):
    """However many of the events the server has answered: the others are folded into what it said."""
    prepared = [_prepare(case) for case in CASES]
    found = run_script(browser, "annotate/annotation.js", _FOLDS, prepared)
    for case, folded in zip(prepared, found, strict=True):
        last = case["states"][-1]
        for count, state in enumerate(folded):
            # An earlier answer does not tell how many steps there are, which a submission reveals.
            unknown = len(case["states"][count]["labels"]) < len(last["labels"])
            if not (unknown and any(event["kind"] == "submit" for event in case["events"][count:])):
                whole = {name: _as_long(value, last[name]) for name, value in state.items()}
                assert whole == last, (case["name"], count)


def _as_long(value, other):
    return value + [None] * (len(other) - len(value)) if isinstance(value, list) else value


def _prepare(case):
    stages = []
    for log in states(case):
        stages.append(as_json(log.annotation))
    names = ("id", "kind", "step", "old", "new", "cause", "of", "key")
    stored = [{name: getattr(event, name) for name in names} for event in log.events]
    events = [
        {"step": None, "new": None} | event | {"key": f"k{place}"}
        for place, event in enumerate(case["events"], start=1)
    ]
    return {"name": case["name"], "states": stages, "events": events, "stored": stored}


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
