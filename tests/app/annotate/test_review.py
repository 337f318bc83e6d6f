"""A submitted trace beside what others say of it."""

from stepsight.app.annotate.review import agrees, review_html, skipped_html
from stepsight.core.label import Label
from stepsight.core.trace import Step
from stepsight.storage.judgments.judgments import save_judgments
from stepsight.storage.labelling.campaigns import close_campaign
from stepsight.storage.labelling.queue import open_slot
from stepsight.storage.labelling.record import read_annotation
from stepsight.storage.labelling.review import read_review
from stepsight.storage.traces.queries import get_trace
from tests.app.elements import read
from tests.cases import each
from tests.storage.labelling.samples import TWO, campaign, do, label_all, people, person, take
from tests.storage.samples import evaluator, judge


def page_of(store, slot_id, user):
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
    page = page_of(sqlite_store, task.slot_id, ann)
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
    page = page_of(sqlite_store, task.slot_id, ann)
    assert page.one("button")["data-reopen"] == f"/annotate/slots/{task.public_id}/events"
    close_campaign(sqlite_store, made.id)
    assert page_of(sqlite_store, task.slot_id, ann).all("button") == []


def test_hidden_where_the_trace_is_ahead_in_another_campaign(sqlite_store):
    made = campaign(sqlite_store, [TWO], after_submission="everything")
    campaign(sqlite_store, None, name="second", after_submission="everything")
    ann = person(sqlite_store, "ann")
    task = take(sqlite_store, made, ann)
    label_all(sqlite_store, task, ann, ["neg", "pos"])
    page = page_of(sqlite_store, task.slot_id, ann)
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
