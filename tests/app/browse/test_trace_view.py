import numpy as np
import pytest

from stepsight.app.browse.page import BrowsePages
from stepsight.app.browse.trace_view import (
    PeopleLabels,
    dispute_links,
    first_wrong,
    outcome_words,
    trace_html,
    verdict_pieces,
)
from stepsight.app.web.step_bars import ONLY_VALIDITY, TraceJudgments
from stepsight.core.judgment import Judgment, Mode, Usage
from stepsight.core.scores import Hindsight, Outputs, StepScores, Thresholds
from stepsight.core.trace import Label, Step, Trace
from stepsight.storage.labelling.campaigns import close_campaign
from stepsight.storage.labelling.disputes import DisputeState, add_entry, open_dispute
from stepsight.storage.people.users import Role, local_user
from stepsight.storage.traces.queries import StoredTrace
from tests.app.elements import read
from tests.storage.labelling.labelled_sums import labelled
from tests.storage.labelling.samples import person
from tests.storage.samples import ERROR, MISSING, add, by_mode

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


# Two steps, the second of two sub-steps.
LABELLED = Trace.of("q", ["x", ["y", "z"]], ["pos", "neg"])
PLAIN = Trace.of("q", ["x", ["y", "z"]])
CLEAN = Trace.of("q", ["x", ["y", "z"]], ["pos", "pos"])
WRONG, REDUNDANT, RIGHT, SILENT = [1, 0, 0], [0, 1, 0], [0, 0, 1], [0, 0, 0]


def judged(rows, outputs=Outputs.THREE_WAY, solution=None, trace=LABELLED, thresholds=None):
    judgment = Judgment(trace, Mode.OFFLINE, StepScores(np.array(rows, np.float32)), solution)
    return TraceJudgments("it", outputs, thresholds or Thresholds(), by_mode(judgment))


def words(*args, **options):
    found = judged(*args, **options)
    return [read(piece).text for piece in verdict_pieces(found, found.judgments[0].trace)]


def test_an_evaluator_of_steps_has_a_verdict_per_mode_and_a_change():
    # Online 0.8, 0.9, 0.3, offline 0.25, 0.9, 0.3: step 1 falls by 0.55.
    first, second, fallen, third = [0.1, 0, 0.9], [0.2, 0.5, 0.3], [0.75, 0.125, 0.125], [0.7, 0.1, 0.2]
    rows = [np.array(row, np.float32) for row in ([second], [second, first], [fallen, first, third])]
    judgment = Judgment(LABELLED, Mode.HINDSIGHT, Hindsight(tuple(rows)))
    found = verdict_pieces(TraceJudgments("it", Outputs.THREE_WAY, Thresholds(), by_mode(judgment)), LABELLED)
    assert [read(piece).text for piece in found] == [
        "Online: not valid 0.30 · redundant 0.50, finds the error in step 2",
        "Offline: not valid 0.25, first error at step 1, gold at step 2",
        "moved most by later steps: step 1, −0.55",
    ]


def test_a_change_of_nothing_is_none():
    judgment = Judgment(LABELLED, Mode.HINDSIGHT, Hindsight.constant(StepScores(np.array([RIGHT] * 3, np.float32))))
    found = verdict_pieces(TraceJudgments("it", Outputs.THREE_WAY, Thresholds(), by_mode(judgment)), LABELLED)
    assert read(found[-1]).text == "moved most by later steps: none"


def test_an_evaluator_of_validity_says_nothing_of_redundancy():
    assert words([[0.4, 0, 0.6], [0.2, 0, 0.8], [0.3, 0, 0.7]], Outputs.VALIDITY) == [
        "Offline: valid 0.60, misses the error in step 2",
        "gives validity only, not redundancy",
    ]


def test_one_number_is_one_number():
    assert words([SILENT] * 3, Outputs.SOLUTION, 0.0354) == ["score of the solution: 0.0354"]
    assert words([SILENT] * 3, Outputs.SOLUTION) == ["no verdict on the solution"]


@pytest.mark.parametrize(
    ("rows", "solution", "expected"),
    [
        ([RIGHT, WRONG, WRONG], 0.0, "wrong from step 2, agrees with gold"),
        ([WRONG, SILENT, SILENT], 0.0, "wrong from step 1, gold at step 2"),
        ([REDUNDANT, REDUNDANT, REDUNDANT], 0.0, "redundant: steps 1, 2"),
        ([RIGHT, REDUNDANT, REDUNDANT], 0.0, "redundant: step 2"),
        ([RIGHT, RIGHT, RIGHT], 1.0, "finds no error, misses the error in step 2"),
        ([RIGHT, RIGHT, RIGHT], 0.0, "finds an error, names no step"),
        ([RIGHT, RIGHT, RIGHT], None, "its verdict could not be read"),
    ],
)
def test_a_verdict_is_told_in_words(rows, solution, expected):
    assert words(rows, Outputs.VERDICT, solution) == [expected]


@pytest.mark.parametrize(
    ("rows", "trace", "expected"),
    [
        ([RIGHT, RIGHT, RIGHT], CLEAN, "finds no error, agrees with gold"),
        ([WRONG, SILENT, SILENT], CLEAN, "wrong from step 1, a false alarm"),
        ([RIGHT, RIGHT, RIGHT], PLAIN, "finds no error"),
        ([WRONG, SILENT, SILENT], PLAIN, "wrong from step 1"),
        # Of a benchmark of redundant steps: what it finds no error with may be meant of those.
        ([RIGHT, RIGHT, RIGHT], Trace.of("q", ["x", ["y", "z"]], ["pos", "neu"]), "finds no error"),
    ],
)
def test_a_verdict_in_words_beside_other_gold(rows, trace, expected):
    assert words(rows, Outputs.VERDICT, float(rows[0] == RIGHT), trace) == [expected]


def test_silence_on_every_step_is_told():
    assert words([SILENT] * 3) == ["Offline: no scores for the steps"]


def test_the_first_wrong_step_follows_the_threshold_and_passes_over_silence():
    rows = [[0.4, 0, 0.6], SILENT, [0.9, 0, 0.1]]
    assert first_wrong(judged(rows), Mode.OFFLINE, LABELLED) == 1
    assert first_wrong(judged(rows, thresholds=Thresholds(0.65)), Mode.OFFLINE, LABELLED) == 0
    assert first_wrong(judged(rows, thresholds=Thresholds(0.05)), Mode.OFFLINE, LABELLED) is None


@pytest.mark.parametrize(
    ("found", "trace", "expected"),
    [
        (1, LABELLED, "finds the error in step 2"),
        (0, LABELLED, "first error at step 1, gold at step 2"),
        (None, LABELLED, "misses the error in step 2"),
        (None, CLEAN, "agrees with gold"),
        (0, CLEAN, "false alarm at step 1"),
        (0, PLAIN, "first wrong step 1"),
        (None, PLAIN, ""),
        # Gold that says nothing of some step does not say that there is no error.
        (None, Trace("", "q", (Step(("x",), Label.POS), Step(("y",)))), ""),
    ],
)
def test_an_outcome_in_words(found, trace, expected):
    assert outcome_words(found, trace) == expected


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([SILENT, SILENT, SILENT], "nothing to check"),
        ([RIGHT, SILENT, SILENT], "every equation that it can check holds, in 1 of 2 steps"),
        ([SILENT, RIGHT, WRONG], "wrong in step 2, agrees with gold"),
        ([WRONG, SILENT, SILENT], "wrong in step 1, gold at step 2"),
    ],
)
def test_checks_say_what_fails_and_how_much_was_checked(rows, said):
    assert words(rows, Outputs.CHECKS) == [said]


@pytest.fixture
def made(sqlite_store):
    return labelled(sqlite_store)


def table(said):
    """The rows of the only table, cell by cell."""
    rows = read(said.html()).one("table").all("tr")
    return [[cell.text.strip() for cell in row.children] for row in rows]


def test_agreed_labels_stand_at_each_step(sqlite_store, made, evaluators):
    page = read(BrowsePages(sqlite_store, evaluators).content({"trace": "2"}, local_user(sqlite_store)).html)
    notes = [em.text for em in page.one("ol", cls="steps").all("em", cls="people")]
    # Of the last step two were unsure, so that there is nothing to say.
    assert notes == ["people: ✓ pos", "people: ○ neu"]
    assert "people’s labels 3 annotators in first" in page.one("p", cls="meta").text


def test_everybodys_labels_once_the_campaign_is_closed(sqlite_store, made):
    viewer = person(sqlite_store, "vic", Role.VIEWER)
    agreed = [["Step", "Agreed"], ["1", "✓ pos majority"], ["2", "○ neu decided"], ["3", "unlabelled unsure"]]
    assert table(PeopleLabels(sqlite_store, 2, viewer)) == agreed
    close_campaign(sqlite_store, made.id)
    assert table(PeopleLabels(sqlite_store, 2, viewer)) == [
        ["Step", "Agreed", "annotator 1", "annotator 2", "annotator 3"],
        ["1", "✓ pos majority", "✓ pos", "✓ pos", "✓ pos"],
        ["2", "○ neu decided", "✕ neg", "○ neu", "✓ pos"],
        ["3", "unlabelled unsure", "? unsure", "? unsure", "✓ pos"],
    ]


def test_notes_stand_with_the_labels(sqlite_store, made):
    said = PeopleLabels(sqlite_store, 1, local_user(sqlite_store))
    cells = [row[2] for row in table(said)]
    assert cells[1:] == [
        "✓ pos=1+1 begins like a formula, “quoted”",
        "✕ negcounterfactualshould read: So 2.\nDone.",
    ]
    assert "annotator 1 on the problem: The question is odd." in read(said.html()).one("p", cls="hint").text


def test_somebody_unknown_sees_what_closed_campaigns_agree_on(sqlite_store, made):
    assert PeopleLabels(sqlite_store, 2, None).html() == ""
    assert PeopleLabels(sqlite_store, 2, None).words == "none yet"
    close_campaign(sqlite_store, made.id)
    assert [row[:2] for row in table(PeopleLabels(sqlite_store, 2, None))][1] == ["1", "✓ pos majority"]
    assert {len(row) for row in table(PeopleLabels(sqlite_store, 2, None))} == {2}


@pytest.fixture
def traces(sqlite_store):
    return add(sqlite_store, [ERROR, MISSING])


@pytest.fixture
def user(sqlite_store):
    return local_user(sqlite_store)


def test_each_step_links_to_its_dispute_and_to_a_new_one(sqlite_store, traces, user):
    made = open_dispute(sqlite_store, traces[0].trace_id, 1, "pos", "So.", user)
    gone = open_dispute(sqlite_store, traces[0].trace_id, 1, "neu", "So.", user)
    add_entry(sqlite_store, gone.id, user, "", DisputeState.WITHDRAWN)
    one, two = dispute_links(sqlite_store, traces[0], user)
    assert one == (
        f'<a class="dispute file" href="/annotate/dispute?trace={traces[0].trace_id}&amp;step=1" '
        'aria-label="Dispute the gold of step 1">Dispute</a>'
    )
    known = f'<a class="dispute" href="/annotate/disputes/{made.id}" title="should say ✓ pos">'
    assert two.startswith(f"{known}disputed</a><a")
    assert f"/annotate/dispute?trace={traces[0].trace_id}&amp;step=2" in two
    add_entry(sqlite_store, made.id, user, "", DisputeState.ACCEPTED)
    assert f"{known}dispute accepted</a>" in dispute_links(sqlite_store, traces[0], user)[1]


def test_a_viewer_sees_disputes_and_no_link_to_a_new_one(sqlite_store, traces, user):
    made = open_dispute(sqlite_store, traces[0].trace_id, 1, "pos", "So.", user)
    for who in (None, person(sqlite_store, "viewer", Role.VIEWER)):
        one, two = dispute_links(sqlite_store, traces[0], who)
        assert one == ""
        assert two.endswith("disputed</a>")
        assert f"/annotate/disputes/{made.id}" in two


def test_without_gold_there_is_nothing_to_dispute(sqlite_store, traces, user):
    assert dispute_links(sqlite_store, traces[1], user) == ()


def test_on_the_page_of_a_trace(sqlite_store, traces, evaluators, user):
    page = BrowsePages(sqlite_store, evaluators).content({"trace": str(traces[0].trace_id)}, user).html
    assert page.count('<div class="disputable"><span class="g"') == 2
    page = BrowsePages(sqlite_store, evaluators).content({"trace": str(traces[0].trace_id)}, None).html
    assert "disputable" not in page
