"""What the page to label on holds, and what it does not, before and after submission."""

import json

import pytest

from stepsight.app.annotate.label import (
    ERROR_NAMES,
    agrees,
    label_html,
    review_html,
    score_bars,
    skipped_html,
    steps_html,
)
from stepsight.app.web.html import macro
from stepsight.core.judgment import Mode
from stepsight.core.trace import Label, Step, Trace
from stepsight.storage.judgments.judgments import save_judgments
from stepsight.storage.labelling.campaigns import close_campaign
from stepsight.storage.labelling.queue import open_slot
from stepsight.storage.labelling.review import ShownScores, read_review
from stepsight.storage.people.users import Role
from stepsight.storage.traces.queries import get_trace
from tests.app.elements import read
from tests.cases import each
from tests.storage.labelling.samples import PRMBENCH_KINDS, TRACES, TWO, Scene, person
from tests.storage.samples import evaluator, judge


def page_of(scene, by="ann"):
    """The page to label the person's trace on."""
    html = label_html(scene.store, scene.tasks[by], scene.annotation(by), scene.who(by))
    return read(html).one(id="labelling")


def review_of(scene, by="ann"):
    """The page of what they submitted."""
    slot, user = scene.tasks[by].slot, scene.who(by)
    task, review = open_slot(scene.store, slot, user), read_review(scene.store, slot, user)
    return read(review_html(task, scene.annotation(by), review, user.id))


def judge_trace(scene, trace_id, mode):
    """Have an evaluator judge it, which the campaign knows already if it shows scores."""
    id = scene.campaign.evaluator_id or evaluator(scene.store).id
    save_judgments(scene.store, id, [judge(get_trace(scene.store, trace_id), mode)])


def test_a_whole_trace_and_nothing_that_anybody_says_of_it(sqlite_store):
    scene = Scene(sqlite_store, overlap=2)
    scene.label("unsure unsure", by="bob")
    task, ann = scene.take(), scene.who("ann")
    judge_trace(scene, task.trace.trace_id, "offline")
    scene.do("label", 0, "neu")
    page = page_of(scene)
    assert (page["data-slot"], page["data-person"], page["data-guideline"], page["data-steps"]) == (
        task.slot, str(ann.id), "1", "2",
    )  # fmt: skip
    assert json.loads(page["data-annotation"])["labels"] == ["neu", None]
    rows = page.one("ol", cls="steps").all("li")
    assert [row["data-step"] for row in rows] == ["0", "1"]
    assert [part.text for part in rows[1].all(cls="t")] == ["2.1So 3.", "2.2Done."]
    labels = [button["data-label"] for button in rows[0].one(cls="labels").all("button")]
    assert labels == ["neg", "neu", "pos", "unsure"]
    assert [chip["data-error"] for chip in rows[0].one(cls="kinds").all("button")] == list(PRMBENCH_KINDS)
    assert rows[1].one(data_field="correction")["data-source"] == "So 3.\nDone."
    # Neither gold nor scores nor others, and the guideline is open for who begins.
    assert (page.all(cls="g"), page.all(cls="bar"), page.all(cls="wrong")) == ([], [], [])
    assert [word for word in ("two", "mini", "bob") if word in page.text] == []
    assert page.one("details").attributes["open"] is None
    assert page.one(cls="place").text == "0 submitted by you"
    scene.label("pos neg")
    scene.take()
    assert "open" not in page_of(scene).one("details").attributes


def test_only_who_adjudicates_is_told_how_far_all_are(sqlite_store):
    person(sqlite_store, "judy", Role.ADJUDICATOR)
    scene = Scene(sqlite_store)
    scene.label(by="judy")
    scene.take("judy")
    assert page_of(scene, "judy").one(cls="place").text == "1 submitted by you · 1 of 3 by all"


def test_tables_of_a_problem_are_drawn(sqlite_store):
    traces = [Trace.of("Sum:\n| n | 2n |\n|---|---|\n| 1 | <b> |", ["One."], id="table")]
    scene = Scene(sqlite_store, traces)
    scene.take()
    assert [cell.text for cell in page_of(scene).one(cls="problem").one("table").all("td")] == ["1", "<b>"]


FAILS = Trace.of("Of 74 are 5 taken.", ["74 - 5 = 70 are left.", ["A pair.", "So $70 + 2 = 73$."]], id="fails")
FAULTS = ["74 - 5 is 69, not 70", "70 + 2 is 72, not 73"]


@pytest.mark.parametrize("marks", [True, False])
def test_equations_that_fail_are_marked_where_the_campaign_says_so(sqlite_store, marks):
    scene = Scene(sqlite_store, [FAILS], shows_equations=marks)
    scene.take()
    page = page_of(scene)
    assert [mark["title"] for mark in page.all("mark")] == (FAULTS if marks else [])
    # What is heard of it.
    assert [line.text for line in page.all("small", cls="fails")] == [f"✕ {fault}" for fault in FAULTS if marks]
    assert [part.text.split("✕")[0] for part in page.one("ol", cls="steps").all(cls="t")] == [
        "74 - 5 = 70 are left.", "2.1A pair.", "2.2So 70 + 2 = 73.",
    ]  # fmt: skip
    scene.label("neg neg")
    assert len(review_of(scene).all("mark")) == (2 if marks else 0)


def test_step_by_step_only_what_is_revealed(sqlite_store):
    mini = evaluator(sqlite_store).id
    scene = Scene(sqlite_store, [FAILS], view="stepwise", shows="scores", evaluator=mini, shows_equations=True)
    judge_trace(scene, scene.take().trace.trace_id, "hindsight")
    page = page_of(scene)
    assert [row["data-step"] for row in page.one("ol", cls="steps").all("li")] == ["0"]
    assert ("A pair." in page.text, [mark["title"] for mark in page.all("mark")]) == (False, FAULTS[:1])
    # What was said of step 1 when it was the last, which its offline verdict is not.
    assert page.one(cls="who").text == "mini, online"
    scene.do("label", 0, "pos")
    scene.do("reveal", None, 2)

    def steps(start: int) -> str:
        return steps_html(sqlite_store, scene.tasks["ann"], scene.annotation(), scene.who("ann"), start)

    added = read(steps(1))
    assert [row["data-step"] for row in added.all("li")] == ["1"]
    assert ("A pair." in added.text, [mark["title"] for mark in added.all("mark")]) == (True, FAULTS[1:])
    assert steps(2) == ""


def test_every_kind_of_prmbench_has_a_name():
    assert list(ERROR_NAMES) == list(PRMBENCH_KINDS)


def test_a_bar_for_each_evaluator_that_scores_the_step():
    scores = ShownScores("a <b>", Mode.ONLINE, (0.75, None), (0.25, None))
    (bar,) = score_bars([scores], 0)
    assert (bar.name, bar.title) == ("a <b>, online", "a <b>, online: validity 0.75, redundancy 0.25")
    # 1 - 0.75 is neg, and of the validity 0.25 is neu, which leaves 0.5 to pos.
    assert bar.parts == {"neg": 0.25, "neu": 0.25, "pos": 0.5}
    assert score_bars([scores], 1) == score_bars([], 0) == []
    shown = read(macro("annotate/parts.html", "scores", [bar]))
    assert (shown.one(cls="who").text, shown.one(cls="num").text) == ("a <b>, online", "0.75")
    assert [part["style"] for part in shown.all("i")] == ["width:25.0%", "width:25.0%", "width:50.0%"]
    # An evaluator may give validity alone.
    (bar,) = score_bars([ShownScores("PRM", Mode.OFFLINE, (0.75,), (None,))], 0)
    assert (bar.title, bar.parts) == ("PRM, offline: validity 0.75", {"neg": 0.25, "pos": 0.75})


def test_a_verdict_in_words_has_words_and_no_bar():
    scores = ShownScores("GPT", Mode.OFFLINE, (1.0, 0.0, 1.0, None), (0.0, 0.0, 1.0, None), in_words=True)
    bars = [score_bars([scores], step) for step in range(4)]
    assert [bar.label for shown in bars for bar in shown] == ["pos", "neg", "neu"]
    for shown, expected in zip(bars, ("✓ not marked", "✕ marked wrong", "○ marked redundant"), strict=False):
        html = read(macro("annotate/parts.html", "scores", shown))
        assert html.one(cls="word").text == expected
        assert html.all(cls="bar") == html.all(cls="num") == []


def said(row):
    names, labels = row.one("dl").all("dt"), row.one("dl").all("dd")
    return {name.text: " ".join(label.text.split()) for name, label in zip(names, labels, strict=True)}


def test_own_gold_and_other_labels_side_by_side(sqlite_store):
    scene = Scene(sqlite_store, [TWO], overlap=2, after_submission="everything")
    scene.take("bob")
    scene.do("error", 1, "circular", by="bob")
    scene.label("unsure neg", by="bob")
    task = scene.take()
    scene.do("comment", 0, "<i>Hm</i>")
    scene.label("neg pos")
    judge_trace(scene, task.trace.trace_id, "offline")
    page = review_of(scene)
    first, second = page.one("ol").all("li")
    assert said(first) == {"You": "✕ neg", "Gold": "✓ pos differs dispute", "Other 1": "? unsure"}
    assert said(second) == {"You": "✓ pos", "Gold": "✕ neg differs dispute", "Other 1": "✕ neg circular differs"}
    assert first.one(cls="said-text").text == "Comment <i>Hm</i>"
    assert second.one(cls="dispute")["href"] == f"/annotate/dispute?trace={task.trace.trace_id}&step=2"
    assert second.one(cls="who").text == "mini, offline"
    # Of two steps none agrees; the first error is step 1 for the person and step 2 for the gold.
    assert page.one(cls="lead").text.replace("\n", " ") == (
        "You agree with the gold on none of the 2 steps. First error: you step 1, gold step 2, not the same."
    )
    assert page.one(cls="next")["href"] == f"/annotate/label?campaign={scene.campaign.id}"
    # What has been shown cannot be unseen.
    assert page.all("button") == []


def test_labels_can_be_taken_back_while_the_campaign_is_open_and_shows_nothing(sqlite_store):
    scene = Scene(sqlite_store, [TWO])
    task = scene.label()
    assert review_of(scene).one("button")["data-reopen"] == f"/annotate/slots/{task.slot}/events"
    close_campaign(sqlite_store, scene.campaign.id)
    assert review_of(scene).all("button") == []


def test_a_review_that_is_hidden_and_a_skipped_trace_say_so(sqlite_store):
    scene = Scene(sqlite_store, TRACES, after_submission="everything")
    Scene(sqlite_store, None, name="second")
    scene.label("neg pos")
    page = review_of(scene)
    assert "stay hidden" in page.one(cls="hint").text
    assert [said(row) for row in page.one("ol").all("li")] == [{"You": "✕ neg"}, {"You": "✓ pos"}]
    scene.take()
    scene.do("skip", None, "odd")
    skipped = open_slot(sqlite_store, scene.tasks["ann"].slot, scene.who("ann"))
    assert "You skipped this trace" in read(skipped_html(skipped)).text


@each(
    "label, gold, expected",
    [
        ("pos", Step(("a",), Label.POS), True),
        ("neu", Step(("a",), Label.POS), False),
        ("neg", Step(("a",), Label.NEG), True),
        ("unsure", Step(("a",), Label.NEG), None),
        (None, Step(("a",), Label.NEG), None),
        ("pos", Step(("a",)), None),
        # Gold that knows of validity alone cannot tell pos from neu.
        ("neu", Step(("a",), valid=True), True),
        ("neg", Step(("a",), valid=True), False),
        ("neg", Step(("a",), valid=False), True),
    ],
)
def test_agreement_with_gold(label, gold, expected):
    assert agrees(label, gold) is expected
