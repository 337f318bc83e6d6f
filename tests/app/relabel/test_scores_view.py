"""Scores beside a step."""

from stepsight.app.relabel.label import scores_html
from stepsight.core.judgment import Mode
from stepsight.storage.labelling.comparison import ShownScores
from tests.app.markup import read

SAID = ShownScores("a <b>", Mode.ONLINE, (0.75, None), (0.25, None))


def test_a_line_for_each_that_says_something():
    shown = read(scores_html([SAID], 0))
    assert shown.one(cls="who").text == "a <b>, online"
    assert shown.one(cls="bar")["aria-label"] == "a <b>, online: validity 0.75, redundancy 0.25"
    # 1 - 0.75 is neg, and of the validity 0.25 is neu, which leaves 0.5 to pos.
    widths = {part["class"]: part["style"] for part in shown.all("i")}
    assert widths == {"neg": "width:25.0%", "neu": "width:25.0%", "pos": "width:50.0%"}
    assert shown.one(cls="num").text == "0.75"


def test_nothing_where_nobody_says_anything():
    assert scores_html([SAID], 1) == scores_html([], 0) == ""


def test_where_only_validity_is_said_no_redundancy_is():
    shown = read(scores_html([ShownScores("PRM", Mode.OFFLINE, (0.75,), (None,))], 0))
    assert shown.one(cls="bar")["aria-label"] == "PRM, offline: validity 0.75"
    assert {part["class"]: part["style"] for part in shown.all("i")} == {"neg": "width:25.0%", "pos": "width:75.0%"}
