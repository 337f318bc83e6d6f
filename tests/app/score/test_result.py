import json
import random
from collections import namedtuple
from dataclasses import replace

import numpy as np
import pytest
import torch

from stepsight.app.score.comparison import StepMatches
from stepsight.app.score.entered import EarlierSolution, Entered
from stepsight.app.score.result import (
    ScoredSolution,
    exports_html,
    python_snippet,
    result_html,
    scored_html,
)
from stepsight.app.scoring.evaluators import Evaluators
from stepsight.app.web.step_bars import TraceJudgments
from stepsight.core.evaluators.loading import load_evaluator
from stepsight.core.judgment import Judgment, Mode
from stepsight.core.models.placement import Placement
from stepsight.core.scores import Hindsight, Outputs, Thresholds, judge_solution
from stepsight.core.scoring.scorer import Scorer
from stepsight.core.trace import Trace
from stepsight.training.evaluate.strength import read_gallery
from tests.app.elements import INJECTIONS, read
from tests.app.entries import typed
from tests.cases import each
from tests.forked import Forked


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
    return scored_html(ScoredSolution(trace, columns, at, before=before, **options))


# The same validities.
VALIDITY = Hindsight(
    (
        row([0.1, 0, 0.9]),
        row([0.1, 0, 0.9], [0.2, 0, 0.8]),
        row([0.1, 0, 0.9], [0.75, 0, 0.25], [0.7, 0, 0.3]),
    )
)
MINI = EvaluatorScores("mini", TRIANGLE)
PRM = EvaluatorScores("PRM", VALIDITY, outputs=Outputs.VALIDITY)
PRM_OF_TEN = EvaluatorScores(
    "PRM", Hindsight(tuple(row(*[[0.1, 0, 0.9]] * (i + 1)) for i in range(10))), outputs=Outputs.VALIDITY
)


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


def compared():
    matches = StepMatches.of(TRACE.substeps, EDITED.substeps)
    return view(
        EDITED,
        scores=(EvaluatorScores("mini", AFTER, TRIANGLE),),
        earlier=EarlierSolution(TRACE, matches, "TOKEN"),
    )


FAILING = Trace.of("What is $50 - 5$?", ["Take $5$.", "So $45 - 15 = 20$.", "Done."])


def test_a_solution_with_its_scores(drawn):
    # Online validities 0.9, 0.8, 0.3, redundancies 0.05, 0.5, 0.1; offline 0.9, 0.25, 0.3 and 0.05, 0.125, 0.1.
    drawn(view(), "one evaluator")
    drawn(view(thresholds=Thresholds(0.2, 0.1)), "at other thresholds")
    # A threshold of 0 is reached by the 0 that stands for what it does not say.
    drawn(view(scores=(PRM,), thresholds=Thresholds(0.5, 0.0)), "one that gives validity only")
    drawn(view(FAILING, scores=(MINI, PRM)), "beside one that gives three, and an equation fails")
    drawn(view(Trace.of("q", ["a", ["b", "c"]]), problems=("other: long.",), note="Look.", thinking=2), "and more")
    # The second has another text in the same place; the fourth is new; the first did not move.
    drawn(compared(), "an edit")


@each(
    "steps, triangle, lines",
    [
        (["Done.", "So 3."], Hindsight((row([0.3, 0, 0.7]), row([0.3, 0, 0.7], [0.1, 0, 0.9]))),
         ["Step 2 rose from 0.25 to 0.90 offline, its text unchanged.",
          "Steps: 1 moved. Removed: step 1, “Add x.”."]),
        ([*STEPS, "More."], Hindsight((*TRIANGLE.rows, np.vstack([TRIANGLE.rows[-1], row([0.5, 0, 0.5])]))),
         ["No score of a shared step has moved.", "Steps: 1 new."]),
    ],
)  # fmt: skip
def test_what_an_edit_moved_is_told(steps, triangle, lines):
    now = Trace.of("q", steps)
    earlier = EarlierSolution(TRACE, StepMatches.of(TRACE.substeps, now.substeps), "T")
    page = read(view(now, scores=(EvaluatorScores("mini", triangle, TRIANGLE),), earlier=earlier))
    assert page.one("section")["data-before"] == "T"
    paragraphs = [line.text.strip() for line in page.one("div", cls="earlier").all("p")]
    assert paragraphs == ["Against the result before the edit", *lines]


def test_a_long_solution_has_room_for_a_strip_with_a_lane_for_each_bar_and_for_failing_equations():
    steps = [f"Step {i}: 1 + 1 = {2 + (i == 3)}." for i in range(10)]
    scores = Hindsight(tuple(row(*[[0.1, 0, 0.9]] * (i + 1)) for i in range(10)))
    page = read(view(Trace.of("q", steps), scores=(EvaluatorScores("mini", scores), PRM_OF_TEN)))
    strip = page.one("div", cls="overview")
    names = ["mini online", "mini offline", "PRM online", "PRM offline"]
    assert json.loads(strip["data-lanes"]) == [*names, "equations"]
    assert strip["data-columns"] == str(len(names))


PROBLEM, SOLUTION = "What is 2 + 3?", "1. 2 + 3 = 5.\n2. So the answer is 5."
FORM = typed(PROBLEM, SOLUTION, ("tiny",))


def notices(html):
    return [alert.text for alert in read(html).all("div", role="alert")]


@pytest.mark.parametrize("names", [("tiny",), ("tiny-causal", "tiny")])
def test_a_solution_is_judged_with_the_evaluators_numbers(evaluators, names):
    page = read(result_html(evaluators, typed(PROBLEM, SOLUTION, names)))
    trace = Trace.of(PROBLEM, ["2 + 3 = 5.", "So the answer is 5."])
    for i, item in enumerate(page.one("ol", cls="steps").all("li")):
        expected = []
        for name in names:
            hindsight = evaluators.judge(name, trace).hindsight
            expected += [hindsight.online.validity[i], hindsight.offline.validity[i]]
        assert [bar.one(cls="num").text for bar in item.all("div", cls="c")] == [f"{v:.2f}" for v in expected]
    assert page.one("div", cls="q").text == PROBLEM


def test_a_solution_is_compared_only_with_one_that_it_is_an_edit_of(evaluators):
    other = typed(PROBLEM, "1. Nothing\n2. in common.", ("tiny",))
    # The same solution has nothing to tell of itself.
    for form, token in ((other, FORM.token()), (FORM, FORM.token()), (FORM, "cut off")):
        html = result_html(evaluators, replace(form, before=(token,)))
        assert read(html).all("div", cls="earlier") == []


def test_a_trace_of_the_gallery_comes_with_its_sentence(evaluators):
    trace = read_gallery()[0]
    page = read(result_html(evaluators, Entered.of(trace, ["tiny"])))
    assert page.one("p", cls="reveals").text == f"About this solution: {trace.meta['note']}"
    assert read(result_html(evaluators, FORM)).all("p", cls="reveals") == []


def test_a_failing_equation_is_told_of_a_solution_that_no_evaluator_can_read(evaluators):
    """A step of 20,000 digits fits into no window."""
    html = result_html(evaluators, typed(PROBLEM, f"1. 2 + 3 = 6.\n2. {'7' * 20_000}", ("tiny",)))
    assert read(html).one("p", cls="conclusion").text.startswith("Step 1 is wrong: 2 + 3 is 5, not 6.")
    assert "tiny reads at most 1,024." in notices(html)[0]


@each(
    "form, message",
    [
        (typed("", SOLUTION, ("tiny",)), "The problem is empty. Enter the problem, then score again."),
        (typed(PROBLEM, "7" * 20_000, ("tiny",)), "tokens, but tiny reads at most 1,024."),
        (typed(PROBLEM, SOLUTION, ()), "No evaluator is chosen. Choose one or more, then score again."),
        (
            typed(PROBLEM, SOLUTION, ("gone",)),
            "There is no evaluator 'gone'. Choose one of: tiny, tiny-causal.",
        ),
    ],
)
def test_a_solution_that_cannot_be_scored_gets_a_notice(evaluators, form, message):
    html = result_html(evaluators, form)
    assert len(notices(html)) == 1
    assert message in notices(html)[0]
    assert read(html).all("section") == []


def test_one_that_cannot_judge_does_not_keep_the_others_from_it(evaluators):
    html = result_html(evaluators, typed(PROBLEM, SOLUTION, ("gone", "tiny")))
    assert notices(html) == ["There is no evaluator 'gone'. Choose one of: tiny, tiny-causal."]
    page = read(html)
    assert [who.one("strong").text for who in page.all("span", cls="who")] == ["tiny"]
    assert Entered.from_token(page.one("section")["data-token"]).evaluators == ("tiny",)


EXPORTED = typed("What is 2 + 3?", "1. 2 + 3 = 5.\n2. So 5.", ("tiny", "tiny-causal"), 0.4, 0.2)


def exports(evaluators, form=EXPORTED, **options):
    return read(exports_html(evaluators, form.trace, form.evaluators, form.thresholds, form.token(), **options))


def test_links_lead_to_the_result_its_evidence_and_its_files(evaluators):
    links = {link.text: link["href"] for link in exports(evaluators).all("a")}
    token = EXPORTED.token()
    assert links == {
        "Link to this result": f"/?s={token}",
        "Evidence": f"/evidence?s={token}",
        "Download JSON": f"/score/result.json?s={token}",
        "Download CSV": f"/score/result.csv?s={token}",
    }


def test_a_read_only_page_has_no_form_and_tells_no_folder(evaluators, tiny):
    page = exports(evaluators, read_only=True)
    assert page.all("form", cls="save") == []
    assert str(tiny) not in page.text
    assert "'tiny': 'tiny'" in page.text
    saving = exports(evaluators)
    assert saving.one("form", cls="save").one("input")["value"] == "saved"
    assert str(tiny) in saving.text


def test_the_type_of_the_weights_comes_back_with_the_code(tiny):
    placed = Evaluators([tiny, "mini-causal"], shipped=False, place=Placement(dtype="bfloat16"))
    form = replace(EXPORTED, evaluators=("tiny (bfloat16)", "mini-causal (bfloat16)"))
    assert f"'tiny (bfloat16)': ({str(tiny)!r}, 'bfloat16')" in exports(placed, form).text
    public = exports(placed, form, read_only=True).text
    assert "'tiny (bfloat16)': ('tiny', 'bfloat16')" in public
    assert "'mini-causal (bfloat16)': ('mini-causal', 'bfloat16')" in public
    # One that was asked for in float32 may be stored in another type.
    asked = Evaluators([tiny], shipped=False, place=Placement(dtype="float32"))
    assert f"'tiny': ({str(tiny)!r}, 'float32')" in exports(asked, replace(EXPORTED, evaluators=("tiny",))).text


def test_a_solution_too_long_for_a_link_says_how_to_go_on(evaluators):
    draw = random.Random(0)
    noise = "".join(chr(draw.randrange(0x4E00, 0x9FFF)) for _ in range(8000))
    page = exports(evaluators, typed("q", noise, ("tiny",)))
    assert page.all("a") == []
    assert "Too long for a link: save it to a dataset." in page.text


WILD = Trace.of(
    "What's \"$2 + 3$\"?\n'''\\", ["It is 5.\\n", ["{value}", "$(touch x) `id` !! %s"], *INJECTIONS, "é 数 \u202e"]
)


@pytest.mark.slow
def test_the_program_runs_and_prints_what_the_page_shows(evaluators, tiny, tiny_causal, tmp_path):
    trace = Trace.of('What\'s "2 + 3"?', ["2 + 3 = 5.\n'''", ["So {it}", "is \\5 é."]])
    thresholds = Thresholds(0.45, 0.15)
    specs = {name: evaluators.spec(name) for name in ("tiny", "tiny-causal")}
    assert specs == {"tiny": str(tiny), "tiny-causal": str(tiny_causal)}
    program = python_snippet(trace, specs, thresholds)
    with Forked(program, []) as run:
        printed, complaints = run.communicate()
    assert run.returncode == 0, complaints
    expected = []
    for name in specs:
        hindsight = evaluators.judge(name, trace).hindsight
        for mode, scores in (("online", hindsight.online), ("offline", hindsight.offline)):
            verdict = "valid" if judge_solution(scores, thresholds).valid else "not valid"
            expected.append(" ".join([name, mode, *(f"{value:.4f}" for value in scores.validity), verdict]))
    assert printed.splitlines() == expected


def test_the_program_holds_every_text_as_it_is():
    program = python_snippet(WILD, {"it's": "a\\b"}, Thresholds())
    before_evaluators = program.split("thresholds = ")[0].replace("from stepsight", "# from stepsight")
    found = {"Trace": Trace}
    exec(before_evaluators, found)  # only literals and Trace.of are left
    assert found["trace"] == WILD
    assert found["evaluators"] == {"it's": "a\\b"}


def test_the_type_of_the_weights_stands_in_the_program(tiny, capsys):
    """Where one of them is not float32; run here, since the program above is run by itself."""
    trace, specs = Trace.of("What is 2 + 3?", ["It is 5."]), {"tiny": str(tiny), "tiny (bfloat16)": str(tiny)}
    exec(python_snippet(trace, specs, Thresholds(), {"tiny (bfloat16)": "bfloat16"}), {})
    printed = capsys.readouterr().out.splitlines()
    assert [line.rpartition(" o")[0] for line in printed] == ["tiny"] * 2 + ["tiny (bfloat16)"] * 2
    for dtype, line in zip((torch.float32, torch.bfloat16), printed[::2], strict=True):
        evaluator = load_evaluator(tiny, dtype=dtype)
        assert line.startswith(f"{evaluator.name} ")
        online = Scorer(evaluator).score_one(trace).hindsight.online
        assert f" online {online.validity[0]:.4f} " in line
    assert "dtype" not in python_snippet(trace, specs, Thresholds())
