"""What the page to label on holds, and what it does not, before and after submission."""

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
    return label_html(scene.store, scene.tasks[by], scene.annotation(by), scene.who(by))


def review_of(scene, by="ann"):
    """The page of what they submitted."""
    slot, user = scene.tasks[by].slot, scene.who(by)
    task, review = open_slot(scene.store, slot, user), read_review(scene.store, slot, user)
    return review_html(task, scene.annotation(by), review, user.id)


def judge_trace(scene, trace_id, mode):
    """Have an evaluator judge it, which the campaign knows already if it shows scores."""
    id = scene.campaign.evaluator_id or evaluator(scene.store).id
    save_judgments(scene.store, id, [judge(get_trace(scene.store, trace_id), mode)])


def test_a_whole_trace_and_nothing_that_anybody_says_of_it(sqlite_store, drawn):
    scene = Scene(sqlite_store, overlap=2)
    scene.label("unsure unsure", by="bob")
    judge_trace(scene, scene.take().trace.trace_id, "offline")
    scene.do("label", 0, "neu")
    page = page_of(scene)
    drawn(page, "by who begins")
    assert [word for word in ("two", "mini", "bob") if word in read(page).text] == []
    scene.label("pos neg")
    scene.take()
    # The guideline is closed.
    assert "open" not in read(page_of(scene)).one("details").attributes


def test_only_who_adjudicates_is_told_how_far_all_are(sqlite_store):
    person(sqlite_store, "judy", Role.ADJUDICATOR)
    scene = Scene(sqlite_store)
    scene.label(by="judy")
    scene.take("judy")
    assert read(page_of(scene, "judy")).one(cls="place").text == "1 submitted by you · 1 of 3 by all"


FAILS = Trace.of(
    "Of 74 are 5 taken:\n| n | 2n |\n|---|---|\n| 1 | <b> |",
    ["74 - 5 = 70 are left.", ["A pair.", "So $70 + 2 = 73$."]],
    id="fails",
)


def test_equations_that_fail_are_marked_where_the_campaign_says_so(sqlite_store, drawn):
    # A blind campaign does not give what was shown with marks.
    for marks in (False, True):
        scene = Scene(sqlite_store, [FAILS], name=f"marks {marks}", shows_equations=marks)
        scene.take()
        pages = [page_of(scene)]
        scene.label("neg neg")
        pages.append(review_of(scene))
        for page, title in zip(pages, ("before submission", "after it"), strict=True):
            if marks:
                drawn(page, title)
            else:
                assert read(page).all("mark") == []
        close_campaign(sqlite_store, scene.campaign.id)


def test_step_by_step_only_what_is_revealed(sqlite_store, drawn):
    mini = evaluator(sqlite_store).id
    scene = Scene(sqlite_store, [FAILS], view="stepwise", shows="scores", evaluator=mini, shows_equations=True)
    judge_trace(scene, scene.take().trace.trace_id, "hindsight")
    # What was said of step 1 when it was the last, which its offline verdict is not.
    drawn(page_of(scene), "the first step")
    scene.do("label", 0, "pos")
    scene.do("reveal", None, 2)
    for start in (1, 2):
        steps = steps_html(sqlite_store, scene.tasks["ann"], scene.annotation(), scene.who("ann"), start)
        drawn(steps, f"steps from {start + 1} on")


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


def test_own_gold_and_other_labels_side_by_side(sqlite_store, drawn):
    scene = Scene(sqlite_store, [TWO], overlap=2, after_submission="everything")
    scene.take("bob")
    scene.do("error", 1, "circular", by="bob")
    scene.label("unsure neg", by="bob")
    task = scene.take()
    scene.do("comment", 0, "<i>Hm</i>")
    scene.label("neg pos")
    judge_trace(scene, task.trace.trace_id, "offline")
    # Of two steps none agrees, and what has been shown cannot be unseen: it is not taken back.
    drawn(review_of(scene))


def test_what_a_campaign_shows_that_keeps_all_to_itself(sqlite_store, drawn):
    scene = Scene(sqlite_store, [TWO])
    scene.label()
    drawn(review_of(scene), "it can be taken back")
    close_campaign(sqlite_store, scene.campaign.id)
    assert read(review_of(scene)).all("button") == []


def test_a_review_that_is_hidden_and_a_skipped_trace_say_so(sqlite_store, drawn):
    scene = Scene(sqlite_store, TRACES, after_submission="everything")
    Scene(sqlite_store, None, name="second")
    scene.label("neg pos")
    drawn(review_of(scene), "the same trace is to come in another campaign")
    scene.take()
    scene.do("skip", None, "odd")
    drawn(skipped_html(open_slot(sqlite_store, scene.tasks["ann"].slot, scene.who("ann"))), "skipped")


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
