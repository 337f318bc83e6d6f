import numpy as np

from stepsight.app.browse.trace_view import trace_html
from stepsight.app.web.step_bars import ONLY_VALIDITY, TraceJudgments
from stepsight.core.judgment import Judgment, Mode, Usage
from stepsight.core.scores import Hindsight, Outputs, StepScores, Thresholds
from stepsight.core.trace import Step, Trace
from stepsight.storage.traces.queries import StoredTrace
from tests.app.elements import read
from tests.app.injection import PAYLOADS
from tests.cases import each
from tests.storage.samples import by_mode

MARKDOWN = ("strong", "i", "code", "pre")
POS, NEG, NEU, NOTHING = [0, 0, 1], [1, 0, 0], [0, 1, 0], [0, 0, 0]


def stored(trace):
    return StoredTrace(trace.id, trace.problem, trace.steps, trace.meta,
                       trace_id=7, dataset_id=1, dataset="sums", position=0)  # fmt: skip


TRACE = stored(Trace.of("What is $1 + 1$?", ["A sum.", ["So 3.", "Done."], "Yes."], ["pos", "neg", None], id="one"))


def answer(name, rows, outputs=Outputs.THREE_WAY, mode=Mode.OFFLINE, solution=None):
    judgment = Judgment(TRACE, mode, StepScores(np.array(rows, np.float32)), solution)
    return TraceJudgments(name, outputs, Thresholds(), by_mode(judgment), stored=True)


def both(name, runs=True, saved=True):
    """Validity 0.75 online; offline the second sub-step is at 0.25."""
    first, fallen = [0.25, 0, 0.75], [0.75, 0, 0.25]
    rows = [np.array([first] * (j + 1), np.float32) for j in range(4)]
    rows[-1][1] = fallen
    judgment = Judgment(TRACE, Mode.HINDSIGHT, Hindsight(tuple(rows)))
    return TraceJudgments(name, Outputs.THREE_WAY, Thresholds(), by_mode(judgment), stored=saved, runs=runs)


def view(*answers, wanted="", trace=TRACE):
    return read(trace_html(trace, answers, wanted))


def cells(page, evaluator=0):
    """Of one evaluator, what its cells say: the mark and the rest, for each sub-step."""
    subs = page.one("ol", cls="steps").all("div", cls="sub")
    return [
        [cell.text.strip() for cell in sub.all("div", cls="said")[evaluator].all("div", cls="c")] for sub in subs
    ]


def test_substeps_stand_within_their_step_and_share_its_gold():
    page = view(both("mini"))
    steps = page.one("ol", cls="steps").children
    assert [step.one("b").text for step in steps] == ["1", "2", "3"]
    assert [[sub.one("div", cls="t").text for sub in step.all("div", cls="sub")] for step in steps] == [
        ["A sum."],
        ["2.1So 3.gold: first error", "2.2Done."],
        ["Yes."],
    ]
    assert [step.one("span", cls="g").text for step in steps] == ["✓ pos", "✕ neg", "unlabelled"]
    assert [step.attributes.get("class") for step in steps] == [None, "wrong", None]


def test_without_gold_there_is_no_column_for_it():
    page = view(both("mini"), trace=stored(Trace.of("q", ["a", ["b", "c"], "d"])))
    assert page.all("span", cls="g") == []
    assert page.one("section")["class"] == "judged side n1"


def test_one_evaluator_has_a_column_per_mode_and_the_change():
    page = view(both("mini"))
    assert [title.text for title in page.one("div", cls="head").one("div", cls="said").all("span")] == [
        "Online · sees the steps up to this one",
        "Offline · sees the whole solution",
        "Change",
    ]
    labels = [bar["aria-label"] for bar in page.one("ol", cls="steps").all("div", cls="bar")]
    assert len(labels) == 8
    assert labels[2] == "online: neg 0.25, neu 0.00, pos 0.75; valid"
    assert labels[3] == "offline: neg 0.75, neu 0.00, pos 0.25; not valid"
    assert [d.text for d in page.one("ol", cls="steps").all("div", cls="d")] == [
        "change 0.00", "change −0.50", "change 0.00", "change 0.00",
    ]  # fmt: skip


def test_several_evaluators_stand_side_by_side_under_their_names():
    page = view(both("mini"), both("other"), answer("third", [NEU] * 4))
    assert page.one("section")["class"] == "judged side n3 gold"
    head = page.one("div", cls="head")
    assert [name.text for name in head.all("span", cls="whose")] == ["mini", "other", "third"]
    assert len(head.all("span", cls="order")) == 2
    first = page.one("ol", cls="steps").all("div", cls="sub")[0]
    labels = [
        [bar["aria-label"].split(":")[0] for bar in said.all("div", cls="bar")]
        for said in first.all("div", cls="said")
    ]
    assert labels == [["mini, online", "mini, offline"], ["other, online", "other, offline"], ["third, offline"]]


def test_scores_that_an_evaluator_does_not_give_are_not_shown():
    page = view(
        answer("validity", [[0.4, 0, 0.6], [0.75, 0, 0.25], [0.2, 0, 0.8], NOTHING], Outputs.VALIDITY),
        answer("verdict", [POS, NEG, NEG, NOTHING], Outputs.VERDICT, solution=0.0),
        answer("number", [NOTHING] * 4, Outputs.SOLUTION, solution=0.0354),
    )
    # One number for the solution is no column.
    assert page.one("section")["class"] == "judged side n2 gold"
    bars = [bar["aria-label"] for bar in page.one("ol", cls="steps").all("div", cls="bar")]
    assert bars == [
        "validity, offline: validity 0.60; valid",
        "validity, offline: validity 0.25; not valid",
        "validity, offline: validity 0.80; valid",
    ]
    assert cells(page)[3] == ["–no verdict"]
    assert cells(page, 1) == [["✓not marked"], ["✕marked wrong"], ["✕marked wrong"], ["–no verdict"]]
    lines = [line.text for line in page.one("ul", cls="answers").all("li")]
    assert lines == [
        f"validityOffline: not valid 0.25, finds the error in step 2{ONLY_VALIDITY}",
        "verdictwrong from step 2, agrees with gold",
        "numberscore of the solution: 0.0354",
    ]


def test_the_rationale_of_a_verdict_stands_beside_it():
    scores = StepScores(np.array([POS, NEG, NEG, NOTHING], np.float32))
    judgment = Judgment(TRACE, Mode.OFFLINE, scores, 0.0, "Step 2 is <wrong>: $1 + 1 = 3$.")
    page = view(TraceJudgments("GPT", Outputs.VERDICT, Thresholds(), by_mode(judgment)))
    rationale = page.one("ul", cls="answers").one("details", cls="rationale")
    assert rationale.one("summary").text == "Its rationale"
    assert rationale.one("div", cls="t").text == "Step 2 is <wrong>: 1 + 1 = 3."


def test_calls_and_tokens_of_a_critic_stand_beside_its_verdict():
    scores = StepScores(np.array([POS, NEG, NEG, NEG], np.float32))
    spent = Usage(5, 1, 1500, 260)
    judgment = Judgment(TRACE, Mode.OFFLINE, scores, rationale="**Step 1: pos 4 of 4.** <b>Fine</b>.", spent=spent)
    page = view(TraceJudgments("critic", Outputs.THREE_WAY, Thresholds(), by_mode(judgment), stored=True))
    line = page.one("ul", cls="answers").one("li")
    took = "5 calls, 1,500 tokens read and 260 written, 1 without a readable verdict"
    assert took in [span.text for span in line.all("span")]
    told = line.one("details", cls="rationale").one("div", cls="t")
    assert told.text == "Step 1: pos 4 of 4. <b>Fine</b>."
    assert told.one("strong").text == "Step 1: pos 4 of 4."


def test_an_evaluator_without_a_judgment_says_why():
    page = view(TraceJudgments("mini", Outputs.THREE_WAY, Thresholds(), silence="It is too long."))
    assert page.one("ul", cls="answers").one("li").text == "miniIt is too long."
    assert page.one("section")["class"] == "judged side n0 gold"
    assert page.all("div", cls="t")[0].text == "A sum."
    assert page.all("div", cls="key") == []
    assert page.all("a") == []


def test_evidence_is_a_link_where_there_is_a_triangle():
    page = view(both("a b"), answer("other", [POS] * 4))
    assert page.one("a", cls="evidence")["href"] == "/evidence?trace=7&evaluator=a+b"
    assert "scored for this page, not stored" not in page.text
    assert "scored for this page, not stored" in view(both("mini", saved=False)).text


def test_searched_words_are_marked():
    page = view(both("mini"), wanted="1 + 1")
    assert page.one("div", cls="q").one("mark").text == "1 + 1"
    assert [mark.text for mark in view(both("mini"), wanted="so 3").all("mark")] == ["So 3"]


@each("texts", zip(*[iter((PAYLOADS * 2)[: -(-len(PAYLOADS) // 4) * 4])] * 4, strict=True))
def test_everything_is_escaped(texts):
    text, *others = texts
    steps = (Step((text,), valid=True), Step(tuple(others[:2]), valid=False), Step((others[2],)))
    trace = StoredTrace(text, text, steps, {}, trace_id=7, dataset_id=1, dataset=text, position=0)
    page = view(both(text), both("mini"), trace=trace)
    clean = view(both("a"), both("mini"))
    tags = [
        [e.tag for e in one.all() if "math" not in e.attributes.get("class", "") and e.tag not in MARKDOWN]
        for one in (page, clean)
    ]
    # The clean one has gold labels and a formula of its own; some texts are Markdown.
    assert tags[0] == tags[1]
    assert page.one("ul", cls="answers").all("li")[0].one("a")["aria-label"] == f"Evidence of {text}"


def test_markdown_is_rendered_and_hits_in_it_are_marked():
    trace = stored(
        Trace.of(
            "What is **1**?\n| n | 2n |\n|---|---|\n| 1 | 2 |",
            ["**So** it is:\n```\nif a:\n    b = 3\n```"],
            id="one",
        )
    )
    page = view(wanted="b = 3", trace=trace)
    step = page.one("ol", cls="steps").one("div", cls="t")
    assert step.one("strong").text == "So"
    assert step.one("pre").text == "if a:\n    b = 3"
    assert step.one("pre").one("mark").text == "b = 3"
    problem = page.one("div", cls="q")
    assert problem.one("strong").text == "1"
    assert [cell.text for cell in problem.one("table").all("td")] == ["1", "2"]
