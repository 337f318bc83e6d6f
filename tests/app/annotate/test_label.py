"""What the page to label on holds, and what it does not, before and after submission."""

import json

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
from stepsight.storage.labelling.record import read_annotation
from stepsight.storage.labelling.review import ShownScores, read_review
from stepsight.storage.people.users import Role
from stepsight.storage.traces.queries import get_trace
from tests.app.elements import read
from tests.cases import each
from tests.storage.labelling.samples import (
    PRMBENCH_KINDS,
    TRACES,
    TWO,
    campaign,
    do,
    label_all,
    people,
    person,
    take,
)
from tests.storage.samples import evaluator, judge


def page_of(store, task, user):
    return read(label_html(store, task, read_annotation(store, task.slot_id), user)).one(id="labelling")


def test_a_whole_trace(sqlite_store):
    made = campaign(sqlite_store, TRACES)
    ann = person(sqlite_store, "ann")
    task = take(sqlite_store, made, ann)
    do(sqlite_store, task.slot_id, ann, "label", 0, "neu")
    page = page_of(sqlite_store, task, ann)
    assert (page["data-slot"], page["data-person"], page["data-guideline"], page["data-steps"]) == (
        task.public_id, str(ann.id), "1", "2",
    )  # fmt: skip
    assert json.loads(page["data-annotation"])["labels"] == ["neu", None]
    rows = page.one("ol", cls="steps").all("li")
    assert [row["data-step"] for row in rows] == ["0", "1"]
    assert [part.text for part in rows[1].all(cls="t")] == ["2.1So 3.", "2.2Done."]
    assert [button["data-label"] for button in rows[0].one(cls="labels").all("button")] == [
        "neg",
        "neu",
        "pos",
        "unsure",
    ]
    assert [chip["data-error"] for chip in rows[0].one(cls="kinds").all("button")] == list(PRMBENCH_KINDS)
    assert rows[1].one(data_field="correction")["data-source"] == "So 3.\nDone."
    assert page.one("details").attributes["open"] is None
    assert page.one(cls="place").text == "0 submitted by you"


def test_only_who_adjudicates_is_told_how_far_all_are(sqlite_store):
    made = campaign(sqlite_store, TRACES)
    judge = person(sqlite_store, "judy", Role.ADJUDICATOR)
    label_all(sqlite_store, take(sqlite_store, made, judge), judge, ["pos", "neg"])
    page = page_of(sqlite_store, take(sqlite_store, made, judge), judge)
    assert page.one(cls="place").text == "1 submitted by you · 1 of 3 by all"


def test_nothing_tells_what_the_benchmark_or_anybody_else_says(sqlite_store):
    made = campaign(sqlite_store, TRACES, overlap=2)
    ann, bob = person(sqlite_store, "ann"), person(sqlite_store, "bob")
    label_all(sqlite_store, take(sqlite_store, made, bob), bob, ["unsure", "unsure"])
    task = take(sqlite_store, made, ann)
    judged = get_trace(sqlite_store, task.trace.trace_id)
    save_judgments(sqlite_store, evaluator(sqlite_store).id, [judge(judged, "offline")])
    page = page_of(sqlite_store, task, ann)
    assert (page.all(cls="g"), page.all(cls="bar"), page.all(cls="wrong")) == ([], [], [])
    assert [word for word in ("two", "mini", "bob") if word in page.text] == []
    assert json.loads(page["data-annotation"])["labels"] == [None, None]


def test_tables_of_a_problem_are_drawn(sqlite_store):
    ann = person(sqlite_store, "ann")
    traces = [Trace.of("Sum:\n| n | 2n |\n|---|---|\n| 1 | <b> |", ["One."], id="table")]
    page = page_of(sqlite_store, take(sqlite_store, campaign(sqlite_store, traces), ann), ann)
    assert [cell.text for cell in page.one(cls="problem").one("table").all("td")] == ["1", "<b>"]


FAILS = Trace.of("Of 74 are 5 taken.", ["74 - 5 = 70 are left.", ["A pair.", "So $70 + 2 = 73$."]], id="fails")


def test_equations_that_fail_are_marked_where_the_campaign_says_so(sqlite_store):
    ann, ben = person(sqlite_store, "ann"), person(sqlite_store, "ben")
    plain = campaign(sqlite_store, [FAILS], name="plain")
    marked = campaign(sqlite_store, None, name="marked", shows_equations=True)
    bens = take(sqlite_store, plain, ben)
    assert page_of(sqlite_store, bens, ben).all(cls="fails") == []
    label_all(sqlite_store, bens, ben, ["neg", "neg"])
    task = take(sqlite_store, marked, ann)
    page = page_of(sqlite_store, task, ann)
    assert [mark["title"] for mark in page.all("mark")] == ["74 - 5 is 69, not 70", "70 + 2 is 72, not 73"]
    # What is heard of it.
    assert [line.text for line in page.all("small", cls="fails")] == [
        "✕ 74 - 5 is 69, not 70",
        "✕ 70 + 2 is 72, not 73",
    ]
    assert [part.text.split("✕")[0] for part in page.one("ol", cls="steps").all(cls="t")] == [
        "74 - 5 = 70 are left.", "2.1A pair.", "2.2So 70 + 2 = 73.",
    ]  # fmt: skip
    label_all(sqlite_store, task, ann, ["neg", "neg"])
    for user, slot, marks in ((ann, task, 2), (ben, bens, 0)):
        annotation = read_annotation(sqlite_store, slot.slot_id)
        submitted = read(review_html(slot, annotation, None, user.id))
        assert len(submitted.all("mark")) == marks


def test_step_by_step_marks_come_with_their_steps(sqlite_store):
    made = campaign(sqlite_store, [FAILS], view="stepwise", shows_equations=True)
    ann = person(sqlite_store, "ann")
    task = take(sqlite_store, made, ann)
    page = page_of(sqlite_store, task, ann)
    assert [mark["title"] for mark in page.all("mark")] == ["74 - 5 is 69, not 70"]
    do(sqlite_store, task.slot_id, ann, "label", 0, "neg")
    do(sqlite_store, task.slot_id, ann, "reveal", None, 2)
    new = read(steps_html(sqlite_store, task, read_annotation(sqlite_store, task.slot_id), ann, 1))
    assert [mark["title"] for mark in new.all("mark")] == ["70 + 2 is 72, not 73"]


def test_step_by_step_only_what_is_revealed(sqlite_store):
    made = campaign(sqlite_store, [TWO], view="stepwise", shows="scores", evaluator=evaluator(sqlite_store).id)
    ann = person(sqlite_store, "ann")
    task = take(sqlite_store, made, ann)
    trace = get_trace(sqlite_store, task.trace.trace_id)
    save_judgments(sqlite_store, made.evaluator_id, [judge(trace, "hindsight")])
    page = page_of(sqlite_store, task, ann)
    assert [row["data-step"] for row in page.one("ol", cls="steps").all("li")] == ["0"]
    assert "So 3." not in page.text
    # What was said of step 1 when it was the last, which its offline verdict is not.
    assert page.one(cls="who").text == "mini, online"
    do(sqlite_store, task.slot_id, ann, "label", 0, "pos")
    do(sqlite_store, task.slot_id, ann, "reveal", None, 2)
    annotation = read_annotation(sqlite_store, task.slot_id)
    added = read(steps_html(sqlite_store, task, annotation, ann, 1))
    assert [row["data-step"] for row in added.all("li")] == ["1"]
    assert "So 3." in added.text
    assert steps_html(sqlite_store, task, annotation, ann, 2) == ""


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


def test_no_redundancy_is_shown_for_validity_alone():
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


def test_the_guideline_is_open_for_who_begins(sqlite_store):
    made = campaign(sqlite_store, TRACES)
    ann = person(sqlite_store, "ann")
    label_all(sqlite_store, take(sqlite_store, made, ann), ann, ["pos", "neg"])
    assert "open" not in page_of(sqlite_store, take(sqlite_store, made, ann), ann).one("details").attributes


def review_of(store, slot_id, user):
    task, annotation = open_slot(store, slot_id, user), read_annotation(store, slot_id, user.id)
    return read(review_html(task, annotation, read_review(store, slot_id, user), user.id))


def said(row):
    names, labels = row.one("dl").all("dt"), row.one("dl").all("dd")
    return {name.text: " ".join(label.text.split()) for name, label in zip(names, labels, strict=True)}


def test_own_gold_and_other_labels_side_by_side(sqlite_store):
    made = campaign(sqlite_store, [TWO], overlap=2, after_submission="everything")
    ann, bob = people(sqlite_store, 2)
    task = take(sqlite_store, made, bob)
    do(sqlite_store, task.slot_id, bob, "error", 1, "circular")
    label_all(sqlite_store, task, bob, ["unsure", "neg"])
    task = take(sqlite_store, made, ann)
    do(sqlite_store, task.slot_id, ann, "comment", 0, "<i>Hm</i>")
    label_all(sqlite_store, task, ann, ["neg", "pos"])
    judged = get_trace(sqlite_store, task.trace.trace_id)
    save_judgments(sqlite_store, evaluator(sqlite_store).id, [judge(judged, "offline")])
    page = review_of(sqlite_store, task.slot_id, ann)
    first, second = page.one("ol").all("li")
    assert said(first) == {"You": "✕ neg", "Gold": "✓ pos differs dispute", "Other 1": "? unsure"}
    assert said(second) == {"You": "✓ pos", "Gold": "✕ neg differs dispute", "Other 1": "✕ neg circular differs"}
    assert first.one(cls="said-text").text == "Comment <i>Hm</i>"
    assert second.one(cls="dispute")["href"] == f"/annotate/dispute?trace={judged.trace_id}&step=2"
    assert second.one(cls="who").text == "mini, offline"
    # Of two steps none agrees; the first error is step 1 for the person and step 2 for the gold.
    assert page.one(cls="lead").text.replace("\n", " ") == (
        "You agree with the gold on none of the 2 steps. First error: you step 1, gold step 2, not the same."
    )
    assert page.one(cls="next")["href"] == f"/annotate/label?campaign={made.id}"
    # What has been shown cannot be unseen.
    assert page.all("button") == []


def test_labels_can_be_taken_back_while_the_campaign_is_open_and_shows_nothing(sqlite_store):
    made, ann = campaign(sqlite_store, [TWO]), person(sqlite_store, "ann")
    task = take(sqlite_store, made, ann)
    label_all(sqlite_store, task, ann, ["neg", "pos"])
    page = review_of(sqlite_store, task.slot_id, ann)
    assert page.one("button")["data-reopen"] == f"/annotate/slots/{task.public_id}/events"
    close_campaign(sqlite_store, made.id)
    assert review_of(sqlite_store, task.slot_id, ann).all("button") == []


def test_hidden_where_the_trace_is_ahead_in_another_campaign(sqlite_store):
    made = campaign(sqlite_store, [TWO], after_submission="everything")
    campaign(sqlite_store, None, name="second", after_submission="everything")
    ann = person(sqlite_store, "ann")
    task = take(sqlite_store, made, ann)
    label_all(sqlite_store, task, ann, ["neg", "pos"])
    page = review_of(sqlite_store, task.slot_id, ann)
    assert "stay hidden" in page.one(cls="hint").text
    assert [said(row) for row in page.one("ol").all("li")] == [{"You": "✕ neg"}, {"You": "✓ pos"}]


def test_a_skipped_trace_says_so(sqlite_store):
    made = campaign(sqlite_store, [TWO])
    ann = person(sqlite_store, "ann")
    task = take(sqlite_store, made, ann)
    do(sqlite_store, task.slot_id, ann, "skip", None, "odd")
    assert "You skipped this trace" in read(skipped_html(open_slot(sqlite_store, task.slot_id, ann))).text


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
