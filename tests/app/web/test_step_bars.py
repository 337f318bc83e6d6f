import numpy as np
import pytest
from markupsafe import Markup

from stepsight.app.web.step_bars import (
    bar_html,
    change_html,
    gold_html,
    note_html,
    notice_html,
    signed,
)
from stepsight.core.scores import Outputs, StepScores, Thresholds
from stepsight.core.trace import Label, Step
from tests.app.elements import read

DEFAULT = Thresholds()
# Validities 0.9, 0.8, 0.3; redundancies 0.05, 0.5, 0.1.
PROBS = np.array([[0.1, 0.05, 0.85], [0.2, 0.5, 0.3], [0.7, 0.1, 0.2]], np.float32)


def bar(probs, thresholds=DEFAULT, *options):
    scores = StepScores(np.array([probs], np.float32))
    return read(bar_html("offline", scores, 0, thresholds, *options)).one("div", cls="c", data_mode="offline")


@pytest.mark.parametrize(
    ("thresholds", "marks"), [((0.5, 0.15), "✓○✕"), ((0.5, 0.6), "✓✓✕"), ((0.2, 0.15), "✓○✓"), ((0.95, 0.0), "✕✕✕")]
)
def test_marks_follow_the_thresholds(thresholds, marks):
    assert "".join(bar(row, Thresholds(*thresholds)).one("span", cls="mark").text for row in PROBS) == marks


@pytest.mark.parametrize(("value", "kind"), [(0.11, "rise"), (-0.11, "fall"), (0.09, ""), (0.0, "")])
def test_changes_from_a_tenth_on_are_set_in_colour(value, kind):
    shown = read(change_html(value)).one("div", cls="d")
    assert shown["class"].split()[1:] == ([kind] if kind else [])
    assert shown.text == f"change {signed(value)}"


def test_gold_is_shown_and_a_step_without_it_is_visibly_unlabelled():
    steps = [Step(("x",), label) for label in Label] + [
        Step(("x",), valid=True),
        Step(("x",), valid=False),
        Step(("x",), Label.POS, share=2 / 3),
        Step(("x",), share=0.0),
        Step(("x",)),
    ]
    golds = [read(gold_html(step)).one("span", cls="g") for step in steps]
    assert [gold.text for gold in golds] == [
        "✕ neg",
        "○ neu",
        "✓ pos",
        "✓ valid",
        "✕ not valid",
        "✓ pos · 0.67",
        "0.00",
        "unlabelled",
    ]
    assert golds[-1]["title"] == "the benchmark does not label this step"


def test_no_message_is_no_markup():
    assert notice_html("") == note_html("") == note_html(None) == ""
    assert isinstance(notice_html("<b>"), Markup)


@pytest.mark.parametrize(
    ("value", "expected"),
    [(0.0, "0.00"), (-0.0, "0.00"), (0.004, "0.00"), (-0.004, "0.00"), (0.256, "+0.26"), (-1.0, "−1.00")],
)
def test_a_change_has_its_sign(value, expected):
    assert signed(value) == expected


def test_the_spread_of_an_ensemble_is_a_line_across_the_border():
    spread = np.array([0.125, 0.5], np.float32)
    scores = StepScores(np.array([[0.25, 0, 0.75], [0.25, 0, 0.75]], np.float32), spread)
    bars = [read(bar_html("offline", scores, i, DEFAULT, "PRM", Outputs.VALIDITY)).one(cls="bar") for i in (0, 1)]
    assert bars[0]["title"] == "PRM, offline: validity 0.75, spread 0.12; valid"
    # No further than the bar.
    lines = [bar.one("b", cls="spread")["style"] for bar in bars]
    assert lines == ["left:12.5%;width:25.0%", "left:0.0%;width:75.0%"]
    assert bar([0.25, 0, 0.75]).all("b") == []
