"""The copy of the fold of annotation events in the page's script."""

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
        assert folded == [case["states"][-1]] * len(case["states"]), case["name"]


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
