import numpy as np
import pytest

from stepsight.app.web.judged import (
    bar_html,
    judged_html,
    legend_html,
    notice_html,
    plain_html,
    signed,
    solution_html,
    step_name,
)
from stepsight.core.judgment import Judgment, Mode
from stepsight.core.label import Label
from stepsight.core.scores import Hindsight, Outputs, StepScores, Thresholds
from stepsight.core.trace import Step, Trace
from tests.app.markup import INJECTIONS, read

DEFAULT = Thresholds()


def row(*probs):
    return np.array(probs, np.float32)


# Online the steps are valid with 0.9, 0.8, 0.3; revealing the third moves the second to 0.25.
TRIANGLE = Hindsight(
    (
        row([0.1, 0.05, 0.85]),
        row([0.1, 0.05, 0.85], [0.2, 0.5, 0.3]),
        row([0.1, 0.05, 0.85], [0.75, 0.125, 0.125], [0.7, 0.1, 0.2]),
    )
)
STEPS = ["Add $x$.", "So 3.", "Done."]


def view(trace, triangle=TRIANGLE, thresholds=DEFAULT):
    return read(judged_html(Judgment(trace, Mode.HINDSIGHT, triangle), "mini", thresholds))


@pytest.fixture
def page():
    return view(Trace.of("What is $1 + 1$?", STEPS))


def bars(page, mode):
    return page.all("div", cls="c", data_mode=mode)


def test_every_step_has_its_text_and_a_bar_for_each_mode(page):
    rows = page.one("ol", cls="steps").all("li")
    assert [item.one("b").text for item in rows] == ["1", "2", "3"]
    assert [item.one("div", cls="t").text for item in rows] == ["Add x.", "So 3.", "Done."]
    assert [[bar["data-mode"] for bar in item.all("div", cls="c")] for item in rows] == [["online", "offline"]] * 3


def test_bars_show_the_diagonal_and_the_last_row(page):
    assert [bar.one(cls="num").text for bar in bars(page, "online")] == ["0.90", "0.80", "0.30"]
    assert [bar.one(cls="num").text for bar in bars(page, "offline")] == ["0.90", "0.25", "0.30"]
    assert [item.text.split()[-1] for item in page.all("div", cls="d")] == ["0.00", "−0.55", "0.00"]


def test_a_bar_is_as_wide_as_its_probabilities_and_says_so(page):
    bar = bars(page, "offline")[1].one("div", cls="bar")
    assert [(part["class"], part["style"]) for part in bar.all("i")] == [
        ("neg", "width:75.0%"),
        ("neu", "width:12.5%"),
        ("pos", "width:12.5%"),
    ]
    assert bar["role"] == "img"
    # 0.125 is written with two digits, to even.
    assert bar["aria-label"] == bar["title"] == "offline: neg 0.75, neu 0.12, pos 0.12; not valid"


def test_of_an_evaluator_that_gives_validity_only_nothing_else_is_told():
    # At a threshold of redundancy of 0 the neu of 0 that stands for "not said" would count.
    strict, probs = Thresholds(0.5, 0.0), row(0.25, 0, 0.75)
    bar = read(bar_html("online", probs, strict, "PRM", Outputs.VALIDITY)).one("div", cls="c")
    widths = {part["class"]: part["style"] for part in bar.all("i")}
    assert widths == {"neg": "width:25.0%", "pos": "width:75.0%"}
    assert bar.one("div", cls="bar")["aria-label"] == "PRM, online: validity 0.75; valid"
    assert [bar.one(cls=name).text for name in ("mark", "num")] == ["✓", "0.75"]
    assert bar.all(cls="three") == []
    scores = StepScores(np.stack([probs]))
    assert "redundant" in solution_html(scores, strict)
    assert "redundant" not in solution_html(scores, strict, Outputs.VALIDITY)


@pytest.mark.parametrize(
    ("outputs", "told"),
    [
        ([Outputs.THREE_WAY], True),
        ([Outputs.VALIDITY, Outputs.THREE_WAY], True),
        ([Outputs.VALIDITY], False),
        ([Outputs.VALIDITY, Outputs.VERDICT], False),
    ],
)
def test_the_key_tells_of_redundancy_where_somebody_does(outputs, told):
    assert ("redundant" in legend_html(outputs)) is told


def test_marks_follow_the_thresholds():
    def marks(thresholds):
        page = view(Trace.of("q", STEPS), thresholds=thresholds)
        return "".join(bar.one("span", cls="mark").text for bar in bars(page, "online"))

    # Validities 0.9, 0.8, 0.3; redundancies 0.05, 0.5, 0.1.
    assert marks(Thresholds(0.5, 0.15)) == "✓○✕"
    assert marks(Thresholds(0.5, 0.6)) == "✓✓✕"
    assert marks(Thresholds(0.2, 0.15)) == "✓○✓"
    assert marks(Thresholds(0.95, 0.0)) == "✕✕✕"


def test_the_summary_judges_the_solution_in_both_modes_and_names_the_largest_change(page):
    online, offline, change, evaluator = (part.text for part in page.one("div", cls="sum").children)
    # Online min(0.9, 0.8, 0.3), max(0.05, 0.5, 0.1); offline min 0.25, max(0.05, 0.125, 0.1) < 0.15.
    assert online == "Online: not valid 0.30 · redundant 0.50"
    assert offline == "Offline: not valid 0.25"
    assert change == "largest retroactive change: step 2, −0.55"
    assert evaluator == "evaluator mini"
    lax = view(Trace.of("q", STEPS), thresholds=Thresholds(0.28, 0.6)).one("div", cls="sum").children
    assert [part.text for part in lax[:2]] == ["Online: valid 0.30", "Offline: not valid 0.25"]


def test_a_causal_judgment_changes_nothing():
    page = view(Trace.of("q", STEPS), Hindsight.constant(TRIANGLE.offline))
    assert page.one("div", cls="sum").children[2].text == "largest retroactive change: none"
    assert {item["class"].strip() for item in page.one("ol").all("div", cls="d")} == {"d"}


def test_changes_from_a_tenth_on_are_set_in_colour():
    first, second = [0.5, 0.0, 0.5], [0.3, 0.0, 0.7]
    triangle = Hindsight((row(first), row([0.39, 0, 0.61], second), row([0.39, 0, 0.61], [0.41, 0, 0.59], first)))
    kinds = [
        item["class"].split()[1:] for item in view(Trace.of("q", STEPS), triangle).one("ol").all("div", cls="d")
    ]
    # 0.61 − 0.5 = 0.11 and 0.59 − 0.7 = −0.11 are; 0 is not.
    assert kinds == [["rise"], ["fall"], []]


def test_gold_is_shown_and_a_step_without_it_is_visibly_unlabelled():
    trace = Trace("", "q", (Step(("x",), valid=True), Step(("y",), Label.NEG), Step(("z",))))
    page = view(trace)
    assert "gold" in page.one("section")["class"].split()
    assert [mark.text for mark in page.all("span", cls="g")] == ["✓ valid", "✕ neg", "unlabelled"]
    assert page.all("span", cls="g")[2]["title"] == "the benchmark says nothing of this step"
    wrong = page.one("li", cls="wrong")
    assert (wrong.one("b").text, wrong.one("em").text) == ("2", "gold: first error")


def test_the_three_labels_are_told_apart_and_only_the_first_error_is_called_so():
    page = view(Trace.of("q", STEPS, ["neu", "neg", "neg"]))
    assert [mark.text for mark in page.all("span", cls="g")] == ["○ neu", "✕ neg", "✕ neg"]
    assert [item.one("b").text for item in page.all("li", cls="wrong")] == ["2", "3"]
    assert len(page.all("em")) == 1


def test_without_gold_there_is_no_column_for_it(page):
    assert page.one("section")["class"] == "judged"
    assert page.all("span", cls="g") == []


def test_substeps_are_numbered_within_their_step_and_share_its_gold():
    trace = Trace.of("q", ["x", ["y", "z"]], ["pos", "neg"])
    assert [step_name(trace, i) for i in range(3)] == ["1", "2.1", "2.2"]
    page = view(trace)
    assert [item.one("b").text for item in page.all("li")] == ["1", "2.1", "2.2"]
    assert [len(item.all("span", cls="g")) for item in page.all("li")] == [1, 1, 0]
    # The whole step is wrong, its first error is named once.
    assert [item.one("b").text for item in page.all("li", cls="wrong")] == ["2.1", "2.2"]
    assert [item.one("b").text for item in page.all("li", cls="more")] == ["2.2"]
    assert len(page.all("em")) == 1


def test_a_trace_that_was_not_scored_still_shows_its_steps_and_gold():
    trace = Trace.of("What is $1 + 1$?", ["x", ["y", "z"]], ["pos", None])
    page = read(plain_html(trace, "It is too long."))
    assert page.one(role="alert").text == "It is too long."
    assert page.one("p", cls="q").text == "What is 1 + 1?"
    assert [item.one("b").text for item in page.all("li")] == ["1", "2.1", "2.2"]
    assert [mark.text for mark in page.all("span", cls="g")] == ["✓ pos", "unlabelled"]
    assert page.all("div", cls="c") == []


@pytest.mark.parametrize("text", INJECTIONS)
def test_problem_steps_and_evaluator_are_escaped(text):
    trace = Trace.of(text, [text, text, text])
    page = read(judged_html(Judgment(trace, Mode.HINDSIGHT, TRIANGLE), text, DEFAULT))
    clean = view(Trace.of("q", ["x", "y", "z"]))
    found = [element.tag for element in page.all() if "math" not in element.attributes.get("class", "")]
    assert found == [element.tag for element in clean.all()]
    assert page.one("div", cls="sum").children[3].text == f"evaluator {text}"
    assert read(plain_html(trace, text)).one(role="alert").text == text


def test_no_notice_is_no_markup():
    assert notice_html("") == ""
    assert read(notice_html("<b>")).text == "<b>"


@pytest.mark.parametrize(
    ("value", "expected"),
    [(0.0, "0.00"), (-0.0, "0.00"), (0.004, "0.00"), (-0.004, "0.00"), (0.256, "+0.26"), (-1.0, "−1.00")],
)
def test_a_change_has_its_sign(value, expected):
    assert signed(value) == expected
