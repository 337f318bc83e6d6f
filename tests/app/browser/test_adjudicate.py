"""Deciding disagreements and disputing labels in a real browser."""

import pytest
from playwright.sync_api import expect

from stepsight.storage.labelling.adjudication import decide as decide_there
from stepsight.storage.labelling.adjudication import past_decisions, read_adjudication, read_decisions
from stepsight.storage.labelling.disputes import DisputeState, get_dispute, list_disputes
from tests.app.annotate.disagreeing import disagreeing
from tests.app.browser.acts import Traffic, listening
from tests.serving import served
from tests.storage.labelling.samples import person
from tests.storage.samples import ERROR, add

TROUBLES = ("ERR_FAILED", "status of 4")


@pytest.fixture(scope="module")
def address(store, evaluators):
    with served(store, evaluators) as base:
        yield base


@pytest.fixture
def made(store, request):
    return disagreeing(store, request.node.name[:60])[0]


def start(page, made):
    page.goto(f"/annotate/adjudicate?campaign={made.id}")
    expect(page.locator("#step-2.open")).to_be_visible()
    listening(page)


def decide(page, keys, reason):
    page.keyboard.press(keys)
    expect(page.locator("input[name=reason]:focus")).to_have_count(1)
    page.keyboard.type(reason)
    page.keyboard.press("Enter")


def test_a_campaign_is_decided_by_keys(store, made, page):
    start(page, made)
    first, second = read_adjudication(store, made.id).items
    expect(page.locator(".progress")).to_contain_text("0 of 3 steps decided")
    # The first open step, without going there.
    page.keyboard.press("1")
    page.locator("#step-2 input[name=reason]").fill("It is 2, not 3.")
    page.keyboard.press("Enter")
    expect(page.locator("#step-2.decided .past")).to_contain_text("It is 2, not 3.")
    expect(page.locator("#step-3")).to_be_focused()
    expect(page.locator(".progress")).to_contain_text("1 of 3 steps decided")
    decide(page, "0", "Cannot be told.")
    expect(page.get_by_role("status")).to_have_text("This trace is decided.")
    expect(page.get_by_role("link", name="Next trace")).to_be_focused()
    # Another mind: back to the first, from its reason to it, and further.
    page.keyboard.press("k")
    expect(page.locator("#step-2, #step-3").and_(page.locator(":focus"))).to_have_count(1)
    page.keyboard.press("k")
    expect(page.locator("#step-2")).to_be_focused()
    decide(page, "2", "Nothing needs it.")
    expect(page.locator("#step-2 .past")).to_contain_text("Nothing needs it.")
    expect(page.locator("#step-2 .past summary")).to_have_text("Earlier decisions")
    page.keyboard.press("n")
    page.wait_for_url(f"**/annotate/adjudicate?campaign={made.id}&item={second.item.id}")
    expect(page.locator("#step-1.open")).to_be_visible()
    decide(page, "3", "Needed.")
    expect(page.get_by_role("status")).to_have_text("Every step of this campaign is decided.")
    assert {place: one.label for place, one in read_decisions(store, made.id).items()} == {
        (first.item.id, 1): "neu",
        (first.item.id, 2): None,
        (second.item.id, 0): "pos",
    }
    assert [one.label for one in past_decisions(store, first.item.id)] == ["neg", None, "neu"]


@pytest.mark.slow
def test_the_label_that_most_gave_is_taken_with_one_key(store, made, page):
    first, second = read_adjudication(store, made.id).items
    start(page, made)
    expect(page.get_by_role("button", name="Take the majority’s label: ✕ neg")).to_be_visible()
    # Two of three said neg of step 2; of step 3 everybody says something else. A key that comes while the first
    # decision is on its way is not lost.
    page.keyboard.press("m")
    page.keyboard.press("m")
    expect(page.locator("#step-2.decided .past")).to_contain_text("✕ neg as most said")
    expect(page.locator("#step-3 .notice")).to_contain_text("No label was given more often than any other")
    # Another label than most gave is not stored without a reason.
    page.locator("#step-2").focus()
    page.keyboard.press("3")
    page.keyboard.press("Enter")
    expect(page.locator("#step-2 input[name=reason]:invalid")).to_be_focused()
    page.keyboard.press("Escape")
    page.keyboard.press("1")
    expect(page.locator("#step-2 input[name=reason]:invalid")).to_have_count(0)
    page.keyboard.press("Escape")
    # What is decided is not decided again: the key goes to the next open step, and from the last to the next trace.
    page.keyboard.press("m")
    expect(page.locator("#step-3")).to_be_focused()
    decide(page, "2", "Divided.")
    expect(page.get_by_role("link", name="Next trace")).to_be_focused()
    page.keyboard.press("m")
    page.wait_for_url(f"**/annotate/adjudicate?campaign={made.id}&item={second.item.id}")
    listening(page)
    page.keyboard.press("m")
    expect(page.get_by_role("status")).to_have_text("Every step of this campaign is decided.")
    assert {place: (one.label, one.reason) for place, one in read_decisions(store, made.id).items()} == {
        (first.item.id, 1): ("neg", ""),
        (first.item.id, 2): ("neu", "Divided."),
        (second.item.id, 0): ("pos", ""),
    }
    assert len(past_decisions(store, first.item.id)) == 2


@pytest.mark.slow
def test_a_decision_made_elsewhere_meanwhile_is_shown_before_another_is_stored(store, made, opened):
    boss, item = person(store, "boss"), read_adjudication(store, made.id).items[0].item.id
    with opened(expected=TROUBLES) as page:
        start(page, made)
        page.locator("#step-3 input[name=reason]").fill("Later.")
        decide_there(store, made.id, item, 1, "pos", "The end needs it.", boss, "boss-1")
        page.locator("#step-2").focus()
        decide(page, "1", "It is 2, not 3.")
        expect(page.locator("#step-2 .notice")).to_contain_text("This step has been decided in the meantime")
        expect(page.locator("#step-2 .past")).to_contain_text("The end needs it.")
        # What was typed is still there, and is stored once it is meant.
        expect(page.locator("#step-2 input[name=reason]")).to_have_value("It is 2, not 3.")
        expect(page.locator("#step-2 .choice.neg input")).to_be_checked()
        expect(page.locator("#step-3 input[name=reason]")).to_have_value("Later.")
        page.locator("#step-2 .button.primary").click()
        expect(page.locator("#step-2 .past")).to_contain_text("It is 2, not 3.")
        expect(page.locator("#step-2 .notice")).to_have_count(0)
        # A form that nobody touched turns no decision back: drawn anew, it shows what is in force.
        expect(page.locator("#step-2 .choice.neg input")).to_be_checked()
        decide_there(store, made.id, item, 1, "pos", "The end needs it.", boss, "boss-2")
        page.locator("#step-3 .choice.neg").click()
        page.locator("#step-3 .button.primary").click()
        expect(page.locator("#step-3.decided")).to_be_visible()
        expect(page.locator("#step-2 .choice.pos input")).to_be_checked()
    assert [one.label for one in past_decisions(store, item)][:3] == ["pos", "neg", "pos"]


@pytest.mark.slow
def test_a_reason_typed_of_a_trace_stays_out_of_another(store, made, page):
    first, second = read_adjudication(store, made.id).items
    start(page, made)
    page.locator("#step-3 input[name=reason]").fill("Later.")
    # Nobody disagrees on it any more once the decision is there: the server shows the next one.
    other = f"/annotate/adjudicate?campaign={made.id}&item={second.item.id}"
    answer = page.request.get(other).text().replace('id="step-1"', 'id="step-3" data-was="1"')
    answer = answer.replace('data-step="0"', 'data-step="2"')
    drawn = f"**/annotate/adjudicate?campaign={made.id}&item={first.item.id}"
    page.route(drawn, lambda route: route.fulfill(body=answer))
    page.locator("#step-2").focus()
    decide(page, "1", "It is 2, not 3.")
    expect(page.locator(f'ol[data-item="{second.item.id}"]')).to_be_visible()
    expect(page.locator("#step-3 input[name=reason]")).to_have_value("")


@pytest.mark.slow
def test_a_typed_decision_stays_while_the_server_is_away(store, made, opened):
    with opened(expected=TROUBLES) as page:
        traffic = Traffic(page, "**/annotate/adjudicate/decisions")
        start(page, made)
        page.locator("#step-3 input[name=reason]").fill("Later.")
        page.locator("#step-3 .choice.neu").click()
        traffic.state = "lost"
        page.locator("#step-2 .choice.neg").click()
        page.locator("#step-2 input[name=reason]").fill("It is 2.")
        page.locator("#step-2 .button.primary").click()
        expect(page.locator("#step-2 .notice")).to_contain_text("The server does not answer.")
        expect(page.locator("#step-2 input[name=reason]")).to_have_value("It is 2.")
        traffic.state = ""
        page.locator("#step-2 .button.primary").click()
        expect(page.locator("#step-2.decided")).to_be_visible()
        # Once, though it was sent twice; and the other form is as it was.
        assert [one.reason for one in read_decisions(store, made.id).values()] == ["It is 2."]
        item = read_adjudication(store, made.id).items[0].item.id
        assert len(past_decisions(store, item)) == 1
        expect(page.locator("#step-3 input[name=reason]")).to_have_value("Later.")
        expect(page.locator("#step-3 .choice.neu input")).to_be_checked()
        # What the server refuses is told beside it.
        page.locator("#step-3 input[name=reason]").fill("  ")
        page.locator("#step-3 .button.primary").click()
        expect(page.locator("#step-3 .notice")).to_have_text("The decision has no reason. Give a short reason.")


@pytest.mark.slow
def test_a_label_is_disputed_once_and_the_dispute_is_accepted(store, opened):
    (trace,) = add(store, [ERROR])
    with opened(expected=TROUBLES) as page:
        for _ in range(2):
            page.goto(f"/annotate/dispute?trace={trace.trace_id}&step=2")
            page.get_by_label("✓ pos").check()
            page.get_by_label("Why").fill("It is $2$.")
            page.get_by_role("button", name="File the dispute").click()
            expect(page.locator("h1:text-is('Dispute 1'), .notice")).to_be_visible()
        expect(page.locator(".notice")).to_have_text("You have already disputed this label. Add to dispute 1.")
        expect(page.get_by_label("Why")).to_have_value("It is $2$.")
        page.goto("/annotate/disputes/1")
        expect(page.locator(".entries .katex")).to_have_count(1)
        page.get_by_label("Comment", exact=True).fill("See step 1.")
        page.get_by_role("button", name="Add").click()
        expect(page.locator(".entries > li")).to_have_count(2)
        listening(page)
        page.get_by_role("button", name="Accept").click()
        expect(page.locator(".lead .state")).to_have_text("accepted")
        found = get_dispute(store, 1)
        assert [(one.text, one.state) for one in found.entries] == [
            ("See step 1.", None),
            ("", DisputeState.ACCEPTED),
        ]
        assert [dispute.id for dispute in list_disputes(store)] == [found.id]
        page.goto("/annotate/disputes")
        page.get_by_role("link", name="accepted (1)").click()
        page.wait_for_url("**/annotate/disputes?state=accepted")
        expect(page.get_by_role("row", name="sums · error, step 2")).to_contain_text("✕ neg")
