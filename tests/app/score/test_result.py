import json
from collections import namedtuple

import numpy as np
import pytest

from stepsight.app.score.comparison import StepMatches
from stepsight.app.score.entered import EarlierSolution
from stepsight.app.score.result import ScoredSolution, scored_html
from stepsight.app.web.step_bars import TraceJudgments
from stepsight.core.judgment import Judgment, Mode
from stepsight.core.scores import Hindsight, Outputs, Thresholds
from stepsight.core.trace import Trace
from tests.app.elements import read


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
TRACE = Trace.of("What is $1 + 1$?", STEPS)


EvaluatorScores = namedtuple("EvaluatorScores", "name now before outputs", defaults=(None, Outputs.THREE_WAY))


def view(trace=TRACE, thresholds=None, **options):
    scores, at = options.pop("scores", (MINI,)), thresholds or Thresholds()
    columns = tuple(
        TraceJudgments(name, outputs, at, dict.fromkeys(Mode, Judgment(trace, Mode.HINDSIGHT, now)))
        for name, now, _, outputs in scores
    )
    before = {name: triangle for name, _, triangle, _ in scores if triangle is not None}
    return read(scored_html(ScoredSolution(trace, columns, at, before=before, **options)))


def said(page):
    return [" ".join(part.text.split()) for part in page.all("span", cls="said")]


def test_every_step_has_its_text_and_a_bar_for_each_mode():
    rows = view().one("ol", cls="steps").all("li")
    assert [item.one("div", cls="t").text for item in rows] == ["Add x.", "So 3.", "Done."]
    for mode, expected in (("online", "0.90 0.80 0.30"), ("offline", "0.90 0.25 0.30")):
        shown = [item.one("div", cls="c", data_mode=mode).one(cls="num").text for item in rows]
        assert " ".join(shown) == expected
    assert [item.one("div", cls="d").text.split()[-1] for item in rows] == ["0.00", "−0.55", "0.00"]


# The same validities.
VALIDITY = Hindsight(
    (
        row([0.1, 0, 0.9]),
        row([0.1, 0, 0.9], [0.2, 0, 0.8]),
        row([0.1, 0, 0.9], [0.75, 0, 0.25], [0.7, 0, 0.3]),
    )
)
MINI = EvaluatorScores("mini", TRIANGLE)
OTHER = EvaluatorScores("other", Hindsight.constant(TRIANGLE.online))
PRM = EvaluatorScores("PRM", VALIDITY, outputs=Outputs.VALIDITY)
PRM_OF_TEN = EvaluatorScores(
    "PRM", Hindsight(tuple(row(*[[0.1, 0, 0.9]] * (i + 1)) for i in range(10))), outputs=Outputs.VALIDITY
)


def test_of_one_that_gives_validity_only_no_redundancy_is_made_up():
    # A threshold of 0 is reached by the 0 that stands for what it does not say.
    page = view(scores=(PRM,), thresholds=Thresholds(0.5, 0.0))
    assert said(page) == [
        "Online: not valid 0.30 1 of 3 steps not valid",
        "Offline: not valid 0.25 2 of 3 steps not valid",
    ]
    assert "gives validity only, not redundancy" in page.one("div", cls="sum").text
    assert [slider["name"] for slider in page.all("input", type="range")] == ["validity"]
    assert page.all("i", cls="neu") == page.all("span", cls="three") == page.all("span", cls="also") == []
    rows = page.one("ol", cls="steps").all("li")
    assert [mark.text for item in rows for mark in item.all("span", cls="mark")] == ["✓", "✓", "✓", "✕", "✕", "✕"]
    for item, online, offline in zip(rows, (0.9, 0.8, 0.3), (0.9, 0.25, 0.3), strict=True):
        numbers = json.loads(item["data-scores"])
        assert [number[0] for number in numbers] == pytest.approx([online, offline])
        assert [number[1] for number in numbers] == [None, None]


def test_beside_one_that_gives_three_each_is_told_by_itself():
    page = view(scores=(MINI, PRM))
    assert [slider["name"] for slider in page.all("input", type="range")] == ["validity", "redundancy"]
    assert ["gives validity only" in line.text for line in page.all("div", cls="sum")] == [False, True]
    second = json.loads(page.one("ol", cls="steps").all("li")[1]["data-scores"])
    assert [redundancy for _, redundancy in second] == [0.5, 0.125, None, None]
    assert len(page.all("i", cls="neu")) == 3 + 2 * 3 - 2


def test_the_verdicts_and_counts_follow_the_thresholds():
    # Online validities 0.9, 0.8, 0.3, redundancies 0.05, 0.5, 0.1; offline 0.9, 0.25, 0.3 and 0.05, 0.125, 0.1.
    assert said(view()) == [
        "Online: not valid 0.30 · redundant 0.50 1 of 3 steps not valid, 1 redundant",
        "Offline: not valid 0.25 · redundant 0.12 2 of 3 steps not valid",
    ]
    assert said(view(thresholds=Thresholds(0.2, 0.1)))[1] == (
        "Offline: valid 0.25 · redundant 0.12 all 3 steps valid, 2 redundant"
    )
    # What is not redundant is there for the script, hidden.
    assert ["hidden" in also.attributes for also in view().all("span", cls="also")] == [False, True]


def test_evaluators_stand_side_by_side_under_their_names():
    page = view(
        scores=(EvaluatorScores("mini", TRIANGLE), EvaluatorScores("other", Hindsight.constant(TRIANGLE.online)))
    )
    assert [name.text for name in page.all("span", cls="name")] == ["mini", "other"]
    assert page.one("section")["class"] == "judged scored by2"
    assert page.one("div", cls="wide")["aria-label"] == "Scores of 2 evaluators"
    second = page.one("ol", cls="steps").all("li")[1]
    labels = [bar["aria-label"].split(":")[0] for bar in second.all("div", cls="bar")]
    assert labels == ["mini, online", "mini, offline", "other, online", "other, offline"]
    assert [part.one("strong").text for part in page.all("span", cls="who")] == ["mini", "other"]
    assert [part.children[-1].text for part in page.all("div", cls="sum")] == [
        "moved most by later steps: step 2, −0.55",
        "moved most by later steps: none",
    ]


def test_one_evaluator_needs_no_names_and_nothing_to_scroll():
    page = view()
    assert page.all("span", cls="name") == []
    assert "tabindex" not in page.one("div", cls="wide").attributes


EDITED = Trace.of("q", ["Add $x$.", "So 4.", "Done.", "Check."])
# Offline 0.9, 0.5, 0.8, 0.7; the third online 0.3, as before.
AFTER = Hindsight(
    (
        TRIANGLE.rows[0],
        row([0.1, 0, 0.9], [0.5, 0, 0.5]),
        row([0.1, 0, 0.9], [0.5, 0, 0.5], [0.7, 0.1, 0.2]),
        row([0.1, 0, 0.9], [0.5, 0, 0.5], [0.2, 0, 0.8], [0.3, 0, 0.7]),
    )
)


def compared(**options):
    matches = StepMatches.of(TRACE.substeps, EDITED.substeps)
    return view(
        EDITED,
        scores=(EvaluatorScores("mini", AFTER, TRIANGLE),),
        earlier=EarlierSolution(TRACE, matches, "TOKEN", **options),
    )


def test_an_edit_shows_how_each_score_moved():
    page = compared()
    rows = page.one("ol", cls="steps").all("li")
    was = [[" ".join(was.text.split()) for was in item.all("span", cls="was")] for item in rows]
    # The second has another text in the same place; the fourth is new; the first did not move.
    assert was == [[], ["was 0.80, now 0.50", "was 0.25, now 0.50"], ["was 0.30, now 0.80"], []]
    assert [[note.text for note in item.all("small")] for item in rows] == [[], ["edited"], [], ["new"]]
    classes = [was["class"] for was in page.all("span", cls="was")]
    assert classes == ["was fall", "was rise", "was rise"]


def test_the_largest_move_of_an_unchanged_step_is_told():
    told = [line.text.strip() for line in compared().one("div", cls="earlier").all("p")]
    assert told == [
        "Against the result before the edit",
        "Step 3 rose from 0.30 to 0.80 offline, its text unchanged.",
        "Steps: 1 new, 1 edited.",
    ]
    assert compared().one("section")["data-before"] == "TOKEN"
    kept = compared(kept=True)
    assert "Against the result kept as comparison" in kept.one("div", cls="earlier").text
    assert kept.one("section")["data-kept"] == "TOKEN"


def test_moved_and_gone_steps_are_named():
    now = Trace.of("q", ["Done.", "Add $x$."])
    triangle = Hindsight((row([0.3, 0, 0.7]), row([0.3, 0, 0.7], [0.1, 0, 0.9])))
    earlier = EarlierSolution(TRACE, StepMatches.of(TRACE.substeps, now.substeps), "T")
    page = view(now, scores=(EvaluatorScores("mini", triangle, TRIANGLE),), earlier=earlier)
    notes = [note.text for note in page.all("small")]
    assert len(notes) == 1
    assert notes[0] in ("moved, was step 3", "moved, was step 1")
    assert page.one("div", cls="earlier").all("p")[2].text.strip() == "Steps: 1 moved. Gone: step 2, “So 3.”."


def test_where_nothing_moved_it_says_so():
    longer = Trace.of("q", [*STEPS, "More."])
    triangle = Hindsight((*TRIANGLE.rows, np.vstack([TRIANGLE.rows[-1], row([0.5, 0, 0.5])])))
    earlier = EarlierSolution(TRACE, StepMatches.of(TRACE.substeps, longer.substeps), "T")
    page = view(longer, scores=(EvaluatorScores("mini", triangle, TRIANGLE),), earlier=earlier)
    assert "No score of a shared step has moved." in page.one("div", cls="earlier").text
    other = Trace.of("q", ["w", "x", "y"])
    earlier = EarlierSolution(TRACE, StepMatches.of(TRACE.substeps, other.substeps), "T", kept=True)
    page = view(other, scores=(EvaluatorScores("mini", TRIANGLE, TRIANGLE),), earlier=earlier)
    assert "The two have no step in common." in page.one("div", cls="earlier").text


def test_problems_stand_above_the_result_and_the_note_within():
    page = view(problems=("other: too long.",), note="Step 3 exposes step 2.")
    assert page.one("div", role="alert").text == "other: too long."
    assert page.one("p", cls="reveals").text == "About this solution: Step 3 exposes step 2."


def test_the_sentence_heads_the_result_and_is_announced():
    trace = Trace.of("What is $50 - 5$?", ["Take $5$.", "So $45 - 15 = 20$.", "Done."])
    section = view(trace, scores=(MINI, PRM)).one("section")
    first = section.children[0]
    assert first["class"] == "conclusion accuses"
    assert first["data-said"] == "Step 2 is wrong: 45 - 15 is 30, not 20. mini and PRM blame it too."
    assert "valid" not in first.text
    # Offline validities 0.9, 0.25 and 0.3, online 0.9, 0.8 and 0.3: the third step made the second fall from 0.8.
    said = view().one("p", cls="conclusion")["data-said"]
    assert said == "mini blames steps 2 and 3; step 3 is its evidence."


def test_the_sentence_says_which_step_belongs_to_the_thinking():
    said = view(thinking=2).one("p", cls="conclusion")["data-said"]
    assert said.endswith("Step 2 belongs to the thinking before the solution.")


def test_the_script_finds_the_steps_that_are_edited_in_place():
    page = view(Trace.of("q", ["a", ["b", "c"]]))
    assert json.loads(page.one("ol", cls="steps")["data-steps"]) == [["a"], ["b", "c"]]
    assert [button["aria-label"] for button in page.one("ol", cls="steps").all("button")] == [
        "Edit step 1", "Edit step 2.1", "Edit step 2.2"
    ]  # fmt: skip


def test_a_long_solution_has_room_for_a_strip_with_a_lane_for_each_bar_and_for_failing_equations():
    assert view().all("div", cls="overview") == []
    steps = [f"Step {i}: 1 + 1 = {2 + (i == 3)}." for i in range(10)]
    scores = Hindsight(tuple(row(*[[0.1, 0, 0.9]] * (i + 1)) for i in range(10)))
    strip = view(Trace.of("q", steps), scores=(EvaluatorScores("mini", scores), PRM_OF_TEN)).one(
        "div", cls="overview"
    )
    names = ["mini online", "mini offline", "PRM online", "PRM offline"]
    assert json.loads(strip["data-lanes"]) == [*names, "equations"]
    assert strip["data-columns"] == str(len(names))
