"""Labelling in a real browser: every key, nothing lost, nothing doubled, and nothing seen before its time."""

import re
from itertools import count

import pytest
from playwright.sync_api import Route, expect
from sqlalchemy import select

from stepsight.app.web.access import COOKIE
from stepsight.core.trace import Trace
from stepsight.storage.database.labelling_schema import EventRow
from stepsight.storage.database.schema import UserRow
from stepsight.storage.labelling.campaigns import add_guideline, close_campaign, create_campaign
from stepsight.storage.labelling.plan import CampaignPlan
from stepsight.storage.labelling.queue import assign_next
from stepsight.storage.labelling.record import read_annotation
from stepsight.storage.labelling.submissions import iterate_annotations
from stepsight.storage.people.logins import log_in, log_out
from stepsight.storage.people.users import Role, add_user, local_user
from tests.app.browser.acts import Traffic, listening, overflow
from tests.app.browser.checks import in_both_schemes
from tests.app.elements import INJECTIONS
from tests.browser import until
from tests.serving import served
from tests.storage.labelling.samples import PRMBENCH_KINDS, do, expire, person
from tests.storage.samples import add

NUMBERS = count(1)
TROUBLES = ("ERR_INTERNET_DISCONNECTED", "ERR_FAILED", "status of 4")
GUIDELINE = "Say of each step whether $it$ is right."


@pytest.fixture(scope="module")
def address(store, evaluators):
    with served(store, evaluators) as base:
        yield base


def trace(steps, name="", labels=None):
    """A trace whose texts tell of themselves: `problem`, then `first`, `second` and so on."""
    texts = [f"{word(step)} thought of {name or 'it'}." for step in range(steps)]
    return Trace.of(f"What is the problem {name}?", texts, labels, id=f"the-id-{name}")


def word(step):
    return ("first", "second", "third", "fourth")[step] if step < 4 else f"number {step + 1}"


def campaign(store, *traces, **changes):
    """A campaign of the local user over these traces, in their order, in a dataset of its own."""
    name = f"campaign {next(NUMBERS)}"
    add(store, traces, name)
    plan = {
        "name": name,
        "dataset": name,
        "guideline": GUIDELINE,
        "ordering": "file",
        "error_kinds": PRMBENCH_KINDS,
        "after_submission": "everything",
    }
    plan |= changes
    return create_campaign(store, CampaignPlan(**plan), local_user(store))


def start(page, made):
    page.goto(f"/annotate/label?campaign={made.id}")
    expect(page.locator("ol.steps > li[aria-current]")).to_have_count(1)
    listening(page)


def stored(page):
    """Every event has been answered. The status tells so a frame later."""
    until(page, "!Object.keys(localStorage).some((key) => key.startsWith('stepsight.unsent.'))")


def saved(page):
    stored(page)
    expect(page.locator(".status")).to_contain_text("all saved")


def here(page, step):
    """The cursor is at a step, 0-based."""
    expect(page.locator("ol.steps > li[aria-current]")).to_have_attribute("data-step", str(step))


def said(page, step, label):
    pressed = page.locator(f"ol.steps > li[data-step='{step}'] [data-label][aria-pressed=true]")
    expect(pressed).to_have_count(1)
    expect(pressed).to_have_attribute("data-label", label)


def events(store, made, *kinds, by=""):
    """Kind, step and new value of what was stored, in order; of all kinds and people where none is named."""
    stored = select(EventRow).join(UserRow, UserRow.id == EventRow.user_id).order_by(EventRow.id)
    with store.read() as session:
        rows = session.scalars(stored.where(EventRow.campaign_id == made.id, UserRow.name.contains(by))).all()
        return [(row.kind, row.step, row.new) for row in rows if not kinds or row.kind in kinds]


def slot_of(page):
    return page.locator("#labelling").get_attribute("data-slot") or ""


def test_a_journey_by_keys(store, page):
    made = campaign(store, trace(3, "a", ["pos", "neg", None]), trace(1, "b"), overlap=2)
    page.goto("/annotate")
    page.get_by_role("link", name=f"Start labelling {made.name}", exact=True).click()
    here(page, 0)
    expect(page.locator("details.guideline")).to_have_attribute("open", "")
    listening(page)
    page.keyboard.press("3")
    here(page, 1)
    page.keyboard.press("j")
    page.keyboard.press("n")
    here(page, 1)
    page.keyboard.press("Enter")
    expect(page.locator(".said")).to_have_text("Step 2 has no label yet.")
    page.keyboard.press("1")
    page.keyboard.press("k")
    here(page, 1)
    page.keyboard.press("c")
    page.keyboard.type("1 is not 2")
    page.keyboard.press("Enter")
    page.keyboard.press("e")
    expect(page.get_by_label("Step 2 as it should be")).to_have_value("second thought of a.")
    page.get_by_label("Step 2 as it should be").fill("a better thought.")
    page.keyboard.press("Escape")
    page.get_by_role("button", name="false certainty").first.click()
    page.keyboard.press("j")
    page.keyboard.press("2")
    page.keyboard.press("z")
    expect(page.locator("li[data-step='2'] [aria-pressed=true]")).to_have_count(0)
    page.keyboard.press("Shift+Z")
    said(page, 2, "neu")
    page.keyboard.press("f")
    page.keyboard.type("It is no problem.")
    page.keyboard.press("Enter")
    expect(page.locator(".flagged")).to_contain_text("It is no problem.")
    saved(page)
    page.keyboard.press("Enter")
    expect(page.locator("#review h1")).to_have_text("Submitted")
    assert events(store, made) == [
        ("label", 0, "pos"),
        ("label", 1, "neg"),
        ("comment", 1, "1 is not 2"),
        ("correction", 1, "a better thought."),
        ("error", 1, "confidence"),
        ("label", 2, "neu"),
        # Undo stores what was before, redo what was taken back.
        ("label", 2, None),
        ("label", 2, "neu"),
        ("flag", None, "It is no problem."),
        ("submit", None, None),
    ]
    (answer,) = iterate_annotations(store, made.id)
    assert (answer.labels, answer.guideline) == (("pos", "neg", "neu"), 1)
    assert 0 < answer.seconds < 60
    # Of the three steps the gold says something of two, and both times the same.
    expect(page.locator("#review .lead")).to_contain_text("You agree with the gold on 2 of 2 steps.")
    listening(page)
    page.keyboard.press("n")
    expect(page.locator("#labelling .q")).to_contain_text("problem b")
    expect(page.locator(".pager .place")).to_contain_text("1 submitted by you")
    here(page, 0)
    page.keyboard.press("3")
    page.keyboard.press("Enter")
    expect(page.locator("#review h1")).to_have_text("Submitted")
    listening(page)
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_have_text("Nothing is left for you")


@pytest.mark.slow
def test_the_next_trace_comes_without_a_page_load_where_nothing_is_shown(store, opened):
    traces = [trace(1, "0", ["neg"]), trace(2, "1"), trace(3, "2"), trace(1, "3"), trace(1, "4")]
    made = campaign(store, *traces, after_submission="nothing")
    with opened(expected=TROUBLES) as page:
        traffic = Traffic(page, "**/events")
        start(page, made)
        page.evaluate("window.loaded = 'once'")
        address = page.url
        page.keyboard.press("3")
        saved(page)
        page.keyboard.press("Enter")
        asked(page, 1)
        can_be_taken_back(page)
        asked(page, 1)
        start(page, made)
        page.evaluate("window.loaded = 'once'")
        takes_keys_that_come_early(page, traffic)
        asked(page, 3)
        comes_once_the_server_is_back(page, traffic)
        page.keyboard.press("3")
        saved(page)
        page.keyboard.press("Enter")
        expect(page.locator("h1")).to_have_text("Nothing is left for you")
        assert page.evaluate("window.loaded") == "once"
        assert page.title() == "Nothing is left for you · StepSight"
        assert page.url != address
        page.go_back()
        expect(page).not_to_have_url(address)
    # Only what the person said was in view: no gold, and nothing of a submitted trace.
    assert [kind for kind, *_ in events(store, made)] == [
        *("label", "submit", "reopen", "label", "label", "label", "submit"),
        *("label", "label", "submit"),
        *("label", "label", "label", "submit"),
        *("label", "submit") * 2,
    ]
    first, *_ = iterate_annotations(store, made.id)
    assert first.labels == ("unsure",)


def asked(page, number):
    """The page asks for the trace of this number, after all before it."""
    expect(page.locator("#labelling .q")).to_have_text(f"What is the problem {number}?")
    expect(page.locator(".pager .place")).to_contain_text(f"{number} submitted by you")
    here(page, 0)


def can_be_taken_back(page):
    page.get_by_role("link", name="Previous trace").click()
    expect(page.locator("#review .hint")).to_contain_text("keeps gold, scores and others’ labels hidden")
    expect(page.locator("#review dl")).to_have_text("You✓ pos")
    listening(page)
    page.get_by_role("button", name="Take back").click()
    said(page, 0, "pos")
    listening(page)
    # It goes on where it was: the label of before can be undone.
    page.keyboard.press("z")
    expect(page.locator("#labelling [data-label][aria-pressed=true]")).to_have_count(0)
    page.keyboard.press("1")
    said(page, 0, "neg")
    page.keyboard.press("u")
    saved(page)
    page.keyboard.press("Enter")


def takes_keys_that_come_early(page, traffic):
    page.keyboard.type("33")
    saved(page)
    traffic.state = "held"
    page.keyboard.press("Enter")
    expect(page.locator("[data-act=submit]")).to_be_disabled()
    # Meant for the trace that is on its way; what is two seconds old would not be, however slow this machine is.
    page.evaluate("() => { const now = performance.now(); performance.now = () => now; }")
    page.keyboard.type("12")
    traffic.state = ""
    traffic.let_go()
    here(page, 2)
    said(page, 0, "neg")
    said(page, 1, "neu")
    page.evaluate("() => delete performance.now")
    page.keyboard.press("3")
    saved(page)
    page.keyboard.press("Enter")


def comes_once_the_server_is_back(page, traffic):
    page.keyboard.press("3")
    saved(page)
    traffic.state = "broken"
    page.keyboard.press("Enter")
    expect(page.locator(".status")).to_contain_text("1 not saved yet: the server does not answer")
    # What is pressed meanwhile is not meant for a trace that comes much later.
    page.keyboard.press("1")
    page.wait_for_timeout(2_100)
    traffic.state = ""
    asked(page, 4)
    expect(page.locator("#labelling [data-label][aria-pressed=true]")).to_have_count(0)


@pytest.mark.slow
def test_problem_and_answer_stay_in_view(store, opened):
    long = Trace.of(
        "What is $1 + 1$?", [f"Thought {n}. " * 40 for n in range(12)], id="long", meta={"answer": "\\frac{4}{2}"}
    )
    made = campaign(store, long)
    for width in (1280, 390):
        with opened(width=width, height=800) as page:
            start(page, made)
            for _ in range(11):
                page.keyboard.press("j")
            here(page, 11)
            problem, step = page.locator(".problem"), page.locator("li[aria-current]")
            expect(problem.locator(".answer")).to_contain_text("Reference answer")
            expect(problem.locator(".answer .katex")).to_have_count(1)
            box = problem.bounding_box()
            assert -1 <= box["y"] < 2
            assert box["height"] <= 0.33 * 800
            # Back up, the step is below the problem and not under it.
            for _ in range(6):
                page.keyboard.press("k")
            page.wait_for_timeout(200)
            box = problem.bounding_box()
            assert step.bounding_box()["y"] >= box["y"] + box["height"]
            assert overflow(page) == 0
    hidden = campaign(store, long, shows_answer=False)
    with opened() as page:
        start(page, hidden)
        expect(page.locator(".problem")).to_contain_text("What is")
        expect(page.locator(".answer")).to_have_count(0)


@pytest.mark.slow
def test_a_campaign_has_kinds_of_error_and_an_end_of_its_own_and_a_trace_can_be_skipped(store, page):
    kinds = ("sign", "unit <b>")
    made = campaign(store, trace(20, "odd"), trace(4, "even"), error_kinds=kinds, after_error=False)
    start(page, made)
    slot = slot_of(page)
    # However quick the keys, they are events in their order.
    keys = "23u" * 4
    page.keyboard.type(keys)
    saved(page)
    labels = {"2": "neu", "3": "pos", "u": "unsure"}
    assert events(store, made) == [("label", step, labels[key]) for step, key in enumerate(keys)]
    page.keyboard.press("x")
    page.keyboard.press("Enter")
    expect(page.locator(".said")).to_have_text("Give a short reason.")
    page.keyboard.type("No idea.")
    page.keyboard.press("Enter")
    expect(page.locator("#labelling .q")).to_contain_text("problem even")
    assert events(store, made)[-1] == ("skip", None, "No idea.")
    assert assign_next(store, made.id, person(store, "another")).trace.problem == "What is the problem odd?"
    assert not read_annotation(store, slot).submitted
    page.keyboard.press("3")
    page.keyboard.press("1")
    expect(page.locator("li[data-step='2'] .kept")).to_have_text("not asked")
    expect(page.locator("li[data-step='2'] [data-label=pos]")).to_be_disabled()
    expect(page.locator(".status")).to_contain_text("2 of 2 labelled")
    shown = page.locator("li[data-step='1'] .kinds button")
    expect(shown).to_have_text(["4sign", "5unit <b>"])
    shown.first.click()
    page.keyboard.press("5")
    saved(page)
    page.keyboard.press("Enter")
    expect(page.locator("#review .kind")).to_have_text("unit <b>")
    assert ("error", 1, "unit <b>") in events(store, made)


def test_labels_wait_while_offline_and_arrive_once(store, opened):
    made = campaign(store, trace(4))
    lost: list[bool] = []

    def lose(route: Route) -> None:
        if len(lost) == 2:
            route.continue_()
            return
        # It arrives and is stored; nobody hears of it.
        lost.append(route.fetch().json()["repeated"])
        route.abort()

    with opened(expected=TROUBLES) as page:
        # Before there is a page: a request that follows at once may pass a route by.
        page.route("**/events", lose)
        start(page, made)
        page.keyboard.press("3")
        saved(page)
        assert lost == [False, True]
        page.context.set_offline(True)
        page.keyboard.press("1")
        page.keyboard.press("2")
        page.keyboard.press("z")
        page.keyboard.press("3")
        said(page, 1, "neg")
        said(page, 2, "pos")
        # Of the four acts one is in an attempt that fails.
        expect(page.locator(".status")).to_contain_text("4 not saved yet: the server does not answer")
        expect(page.locator("li[data-step='1'] .kept")).to_have_text("saving")
        assert warns(page)
        page.context.set_offline(False)
        saved(page)
        said(page, 2, "pos")
        assert not warns(page)
    first = [("label", 0, "pos"), ("label", 1, "neg")]
    assert events(store, made) == [*first, ("label", 2, "neu"), ("label", 2, None), ("label", 2, "pos")]


def warns(page):
    """Whether the page would ask before it is left."""
    leaving = "new Event('beforeunload', {cancelable: true})"
    return page.evaluate(
        f"(() => {{ const e = {leaving}; window.dispatchEvent(e); return e.defaultPrevented; }})()"
    )


@pytest.mark.slow
def test_a_closed_tab_sends_the_rest_later_and_one_resumes_where_one_was(store, opened):
    made = campaign(store, trace(5))
    is_away = False

    def answer(route: Route) -> None:
        if is_away:
            route.abort("internetdisconnected")
        else:
            route.continue_()

    with opened(expected=TROUBLES) as page:
        # Before there is a page, or a request that follows at once may pass the route by. The network's own switch
        # lets through what an open connection still takes.
        page.route("**/annotate/slots/**", answer)
        start(page, made)
        for key in "333k":
            page.keyboard.press(key)
        saved(page)
        page.reload()
        here(page, 2)
        listening(page)
        is_away = True
        page.keyboard.press("1")
        page.keyboard.press("c")
        page.keyboard.type("half a sent")
        expect(page.locator(".status")).to_contain_text("2 not saved yet")
        context = page.context
        page.close()
        assert events(store, made) == [("label", step, "pos") for step in range(3)]
        page = context.new_page()
        with page.expect_response("**/events") as response:
            page.goto("/annotate")
        assert response.value.status == 200
        assert events(store, made)[3:] == [("label", 2, "neg")]
        start(page, made)
        here(page, 3)
        said(page, 2, "neg")
        expect(page.get_by_label("Comment on step 4", exact=True).last).to_have_value("half a sent")


@pytest.mark.slow
def test_two_windows_on_one_trace_agree(store, opened):
    made = campaign(store, trace(3), trace(1, "next"), after_submission="nothing")
    me = local_user(store)
    with opened(expected=TROUBLES) as page:
        start(page, made)
        other = page.context.new_page()
        start(other, made)
        page.keyboard.press("1")
        said(other, 0, "neg")
        expect(other.locator(".said")).to_have_text("Changed in another window: step 1.")
        other.keyboard.press("c")
        other.keyboard.type("Why?")
        other.keyboard.press("Enter")
        expect(page.get_by_role("textbox", name="Comment on step 1")).to_have_value("Why?")
        # Undo goes back over what either has done.
        page.keyboard.press("z")
        page.keyboard.press("z")
        expect(other.locator("[data-label][aria-pressed=true]")).to_have_count(0)
        # Another browser is heard of once the person comes back: undo takes back nothing that is not in view.
        assignment = assign_next(store, made.id, me)
        do(store, assignment.slot, me, "label", 1, "pos")
        page.keyboard.press("2")
        said(page, 1, "pos")
        do(store, assignment.slot, me, "label", 2, "neu")
        page.keyboard.press("z")
        expect(page.locator(".notice")).to_contain_text("The labels have changed in the meantime.")
        said(page, 2, "neu")
        # What is typed here is not lost without a word once the other window submits.
        other.bring_to_front()
        other.keyboard.press("c")
        other.keyboard.type("Hm")
        page.keyboard.press("Enter")
        expect(page.locator("#labelling .q")).to_contain_text("problem next")
        expect(other.locator(".notice")).to_contain_text("You submitted this trace in another window.")
        expect(other.locator(".notice")).to_contain_text("not stored is lost once you leave")
        other.close()
    assert events(store, made, "label", "submit")[-3:] == [
        ("label", 0, "neu"), ("label", 2, "neu"), ("submit", None, None),
    ]  # fmt: skip


@pytest.mark.slow
def test_step_by_step_reveals_nothing_early(store, opened):
    made = campaign(store, trace(3, "a", ["pos", "pos", "neg"]), trace(3, "b"), view="stepwise")
    bodies: list[str] = []
    with opened() as page:
        traffic = Traffic(page, "**/annotate/label/steps*")
        page.on("response", lambda response: bodies.append(text_of(response)))
        start(page, made)
        for step in range(3):
            expect(page.locator("ol.steps > li")).to_have_count(step + 1)
            here(page, step)
            expect(page.locator("ol.steps > li").last).to_contain_text(f"{word(step)} thought")
            seen = page.content() + "".join(bodies)
            assert word(0) in seen
            assert not [later for later in range(step + 1, 3) if f"{word(later)} thought" in seen]
            page.keyboard.press("3")
        expect(page.locator(".said")).to_have_text("Every step has its label. Enter submits.")
        page.keyboard.press("k")
        page.keyboard.press("1")
        saved(page)
        page.keyboard.press("Enter")
        expect(page.locator("#review")).to_be_visible()
        listening(page)
        page.keyboard.press("n")
        expect(page.locator("#labelling .q")).to_contain_text("problem b")
        listening(page)
        traffic.state = "held"
        page.keyboard.press("3")
        # A key for a step that is on its way is not for the present one.
        page.keyboard.press("1")
        expect(page.locator(".said")).to_have_text("The next step is on its way.")
        said(page, 0, "pos")
        traffic.let_go()
        here(page, 1)
        page.keyboard.press("2")
        saved(page)
    (answer,) = iterate_annotations(store, made.id)
    assert (answer.first, answer.labels) == (("pos", "pos", "pos"), ("pos", "neg", "pos"))
    reveals = [("reveal", None, 2), ("reveal", None, 3)]
    assert events(store, made, "reveal")[:2] == reveals
    assert events(store, made, "label")[-2:] == [("label", 0, "pos"), ("label", 1, "neu")]


def text_of(response):
    """What a response brought, as far as it brought something to read."""
    kind = response.headers.get("content-type", "")
    return response.text() if response.ok and re.search("html|json", kind) else ""


@pytest.mark.slow
def test_a_refused_event_says_why_and_goes_on_once_that_is_settled(store, opened):
    """A text that is too long, a new guideline, a trace that somebody else took, and a campaign that is closed."""
    made = campaign(store, trace(3, "mine"), trace(2, "next"))
    with opened(expected=TROUBLES) as page:
        start(page, made)
        stays_in_its_field(page)
        page.keyboard.press("3")
        saved(page)
        add_guideline(store, made.id, "Look twice.", local_user(store))
        page.keyboard.press("1")
        page.keyboard.press("2")
        expect(page.locator("details.guideline")).to_contain_text("Look twice.")
        expect(page.locator(".status")).to_contain_text("2 not saved yet")
        # Also after the page was closed meanwhile: what was said was said under the old one.
        other = page.context.new_page()
        page.close()
        page = other
        start(page, made)
        expect(page.locator(".status")).to_contain_text("2 not saved yet")
        page.get_by_role("button", name="Continue under version 2").click()
        saved(page)
        expect(page.locator(".notice")).to_have_count(0)
        expire(store, slot_of(page))
        assert assign_next(store, made.id, person(store, "a quick one")) is not None
        page.keyboard.press("k")
        page.keyboard.press("u")
        expect(page.locator(".notice")).to_contain_text("somebody else has it now")
        expect(page.locator("li[data-step='1'] .kept")).to_have_text("not stored")
        said(page, 1, "unsure")
        expect(page.locator("li[data-step='2'] [data-label=pos]")).to_be_disabled()
        page.get_by_role("link", name="Next trace").click()
        expect(page.locator("#labelling .q")).to_contain_text("problem next")
        listening(page)
        close_campaign(store, made.id)
        page.keyboard.press("1")
        expect(page.locator(".notice")).to_contain_text("The campaign is closed.")
        expect(page.locator("li[data-step='0'] .kept")).to_have_text("not stored")
    with store.read() as session:
        found = select(EventRow.new, EventRow.guideline).where(EventRow.campaign_id == made.id)
        stored = session.execute(found.order_by(EventRow.id)).all()
    assert stored == [("short", 1), ("pos", 1), ("neg", 2), ("neu", 2)]


def stays_in_its_field(page):
    page.keyboard.press("c")
    text = page.get_by_label("Comment on step 1", exact=True).last
    text.fill("x" * 10_001)
    page.keyboard.press("Escape")
    expect(page.locator(".notice")).to_contain_text("10,001 characters")
    expect(text).to_have_value("x" * 10_001)
    expect(page.locator(".status")).to_contain_text("1 not saved yet")
    text.fill("short")
    page.keyboard.press("Enter")


def log_in_on(store, page, base, name):
    """Log somebody in on the page; gives the token."""
    token = log_in(store, name, "a long password", "127.0.0.1")
    page.context.add_cookies([{"name": f"{COOKIE}-{base.rpartition(':')[2]}", "value": token, "url": base}])
    return token


@pytest.mark.slow
def test_a_login_that_ran_out_loses_nothing(evaluators, sqlite_store, opened):
    store = sqlite_store
    ann = add_user(store, "ann", Role.ANNOTATOR, "a long password")
    made = campaign(store, trace(3))

    with served(store, evaluators) as base, opened(base=base, expected=TROUBLES) as page:
        token = log_in_on(store, page, base, "ann")
        start(page, made)
        page.keyboard.press("3")
        saved(page)
        log_out(store, token)
        page.keyboard.press("1")
        expect(page.get_by_role("link", name="Log in")).to_have_attribute(
            "href", re.compile("^/login.next=%2Fannotate")
        )
        page.keyboard.press("2")
        expect(page.locator(".status")).to_contain_text("2 not saved yet")
        log_in_on(store, page, base, "ann")
        other = page.context.new_page()
        page.close()
        start(other, made)
        saved(other)
    assert events(store, made) == [("label", 0, "pos"), ("label", 1, "neg"), ("label", 2, "neu")]
    with store.read() as session:
        assert set(session.scalars(select(EventRow.user_id))) == {ann.id}


@pytest.mark.slow
def test_typed_text_is_hidden_from_the_next_person_at_the_same_browser(evaluators, sqlite_store, opened):
    store = sqlite_store
    made = campaign(store, trace(2))
    for name in ("ada", "bob"):
        add_user(store, name, Role.ANNOTATOR, "a long password")
    with served(store, evaluators) as base, opened(base=base, expected=TROUBLES) as page:
        log_in_on(store, page, base, "ada")
        start(page, made)
        slot = slot_of(page)
        # Only what a closing page sends may arrive. A whole context that was offline may leave the next page so.
        page.route("**/*", lambda route: route.abort("internetdisconnected"))
        page.keyboard.press("c")
        page.keyboard.type("What Ada thinks.")
        context = page.context
        page.close()
        other = context.new_page()
        log_in_on(store, other, base, "bob")
        # A request that her page had sent as it closed would renew what she holds, so it has to be over first.
        other.goto("/annotate", wait_until="networkidle")
        expire(store, slot)
        start(other, made)
        assert slot_of(other) == slot
        expect(other.get_by_label("Comment on step 1", exact=True).last).to_have_value("")
        other.keyboard.type("33")
        other.keyboard.press("Enter")
        expect(other.locator("#review")).to_be_visible()
        # It is there when Ada comes back.
        assert "What Ada thinks." in other.evaluate("Object.values(localStorage)")
    assert events(store, made, by="bob") == [("label", 0, "pos"), ("label", 1, "pos"), ("submit", None, None)]


@pytest.mark.slow
def test_texts_with_markup_stay_texts(store, page):
    payloads = [text for text in INJECTIONS if "<" in text][:7]
    hostile = Trace.of(payloads[0], payloads, id="hostile")
    made = campaign(store, hostile, view="stepwise", guideline="\n".join(payloads))
    start(page, made)
    for step, text in enumerate(payloads):
        here(page, step)
        expect(page.locator("ol.steps > li").nth(step).locator(".t")).to_have_text(text, use_inner_text=True)
        page.keyboard.press("c")
        page.keyboard.insert_text(text)
        page.keyboard.press("Enter")
        page.keyboard.press("1")
    page.keyboard.press("f")
    page.keyboard.insert_text(payloads[1])
    page.keyboard.press("Enter")
    saved(page)
    add_guideline(store, made.id, payloads[2], local_user(store))
    expect(page.locator(".flagged span")).to_have_text(payloads[1])
    assert page.locator("main :is(script, img, iframe, svg, style, base)").count() == 0
    page.reload()
    here(page, len(payloads) - 1)
    listening(page)
    page.keyboard.press("Enter")
    expect(page.locator("#review .said-text").first).to_contain_text(payloads[0])
    assert page.locator("main :is(script, img, iframe, svg, style, base)").count() == 0


@pytest.mark.slow
def test_labelling_and_what_is_shown_afterwards_can_be_read(store, opened):
    made = campaign(store, trace(2, "seen", ["pos", "neg"]), guideline="To $x$.")
    with opened(reduced_motion="reduce") as page:
        start(page, made)
        for key in ("1", "2", "k", "c"):
            page.keyboard.press(key)
        page.keyboard.type("note")
        page.keyboard.press("Escape")
        page.keyboard.press("x")
        saved(page)
        assert in_both_schemes(page, "form[data-panel=skip] input") == {}
        page.keyboard.press("Escape")
        page.keyboard.press("Enter")
        expect(page.locator("#review")).to_be_visible()
        page.wait_for_load_state()
        assert in_both_schemes(page, "#review") == {}
