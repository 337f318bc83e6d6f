"""Every page, visited once and looked at in each way that holds for all of them: axe-core in light and dark, the
hints on words, and the focus on a desk and a phone, within which it fits; and what all pages share."""

import re
from typing import NamedTuple

import pytest
from playwright.sync_api import expect

from stepsight.app.markup.text import TERMS
from stepsight.app.web.access import PAGES
from stepsight.storage.labelling.disputes import open_dispute
from stepsight.storage.people.users import local_user
from tests.app.annotate.disagreeing import disagreeing
from tests.app.browser.acts import PROBLEM, SOLUTION, listening, overflow, score
from tests.app.browser.checks import (
    COLOURS,
    FOCUS,
    hidden_focus,
    hidden_focus_in_both_schemes,
    in_both_schemes,
    settled,
    violations,
)
from tests.serving import served
from tests.storage.samples import ERROR, add


class Visit(NamedTuple):
    """How a page is looked at: by axe-core once what `read` selects is there, by Tab once what `tabbed` selects is,
    and by its `terms`, the words that are first met on it, in their order. `quick` ones are in `make test`, in
    light colours."""

    read: str = ""
    tabbed: str = ""
    terms: str | None = None
    quick: bool = False


# Of the gallery.
VISITS = {page.path: Visit("main h1") for page in PAGES} | {
    "/": Visit("#examples", "", "evaluator online offline", quick=True),
    "/evidence": Visit("main h1", "ol.turns", "online offline hindsight"),
    "/evidence?trace=1": Visit("main h1"),
    "/evidence?trace=1&present=4": Visit(".presents li.newest"),
    "/evidence?trace=1&present=gold": Visit(".presents .g"),
    "/evidence?trace=2": Visit("", "table[role=grid]", "equations hindsight", quick=True),
    "/browse?trace=abc": Visit("#browse .notice ~ .shelf a.open"),
    "/browse?dataset=gallery": Visit("", "a.open", "offline", quick=True),
    "/browse?dataset=gallery&gold=error&q=lamps": Visit("#browse mark"),
    "/browse?dataset=gallery&gold=error&q=zzz": Visit(".empty a"),
    "/browse?dataset=gallery&field=focus&bin=right-0.95": Visit("#browse .distribution .chosen"),
    "/browse?trace=1": Visit(
        "ol.steps > li", "ol.steps", "equations online offline retroactive-change neg neu pos", quick=True
    ),
    "/results": Visit("main h1", "main table", "offline online", quick=True),
    "/results?dataset=gallery": Visit("main h1", "main table", "offline online hindsight neg neu pos"),
    "/data": Visit("main h1", quick=True),
    "/jobs": Visit("main h1", "form", "online offline hindsight", quick=True),
    "/annotate/new?dataset=gallery": Visit("", "form"),
    "/people": Visit("", "h1"),
    "/nowhere": Visit("main h1", "h1"),
    "/api/v1/docs": Visit("main h1"),
}


@pytest.mark.parametrize(
    ("path", "scheme"),
    [
        pytest.param(path, scheme, marks=[] if visit.quick and scheme == "light" else [pytest.mark.slow])
        for path, visit in VISITS.items()
        for scheme in ("light", "dark")
    ],
)
def test_it_can_be_read_its_words_are_explained_and_the_focus_is_seen(opened, path, scheme):
    read, tabbed, terms, _ = VISITS[path]
    expected = [] if terms else ["status of 4"]
    # Colours that fade would be read while they do. Loaded on a phone, where more of a page scrolls by itself and
    # so takes the focus.
    with opened(width=390, color_scheme=scheme, reduced_motion="reduce", expected=expected) as page:
        page.goto(path)
        expect(page.locator("main [data-again]")).to_have_count(0)
        wrong = {"too wide for a phone": overflow(page)}
        page.set_viewport_size({"width": 1280, "height": 1000})
        settled(page, read or "h1")
        if read:
            wrong["axe-core"] = violations(page, COLOURS if scheme == "dark" else ())
        if terms and scheme == "light":
            listening(page)
            explains(page, terms.split())
        if tabbed:
            expect(page.locator(tabbed).first).to_be_visible()
            for width in (1280, 390):
                page.set_viewport_size({"width": width, "height": 1000})
                wrong[f"the focus at {width}"] = hidden_focus(page)
        assert {check: faults for check, faults in wrong.items() if faults} == {}


@pytest.fixture(scope="module")
def campaigns(module_store, evaluators):
    """A campaign whose annotators disagree, and a dispute."""
    disagreeing(module_store)
    (trace,) = add(module_store, [ERROR], "disputed")
    open_dispute(module_store, trace.trace_id, 0, "neu", "So.", local_user(module_store))
    assert trace.trace_id == 4
    with served(module_store, evaluators) as base:
        yield base


@pytest.mark.slow
def test_a_scored_solution_can_be_read_and_its_focus_is_seen_in_a_step_that_is_edited_too(opened):
    with opened(reduced_motion="reduce") as page:
        score(page, PROBLEM, SOLUTION)
        assert in_both_schemes(page, "#result ol.steps > li") == {}
        for width in (1280, 390):
            page.set_viewport_size({"width": width, "height": 1000})
            assert hidden_focus_in_both_schemes(page) == {}, width
        for width, step in ((1280, 2), (390, 3)):
            page.set_viewport_size({"width": width, "height": 1000})
            text = page.locator("ol.steps > li .t").nth(step - 1)
            for row in (text, page.get_by_role("button", name=f"Correct step {step}")):
                row.click()
                page.keyboard.press("e")
                focus = page.evaluate(FOCUS)
                assert focus["name"].startswith("textarea")
                assert focus["outline"] == "solid 2px"
                assert focus["cut"] <= 0.5
                page.keyboard.press("Escape")
        page.locator(".keys-button").click()
        assert in_both_schemes(page, "dialog.keys") == {}


@pytest.mark.slow
def test_the_focus_is_seen_around_a_campaign(opened, campaigns):
    with opened(base=campaigns, reduced_motion="reduce") as page:
        for name in ("campaign", "agreement", "adjudicate"):
            page.goto(f"/annotate/{name}?campaign=1")
            listening(page)
            for width in (1280, 390):
                page.set_viewport_size({"width": width, "height": 1000})
                assert hidden_focus_in_both_schemes(page) == {}, (name, width)


@pytest.mark.slow
def test_the_pages_of_a_campaign_can_be_read_and_fit_a_phone(opened, campaigns):
    """What is decided and disputed is pressed on a phone, too."""
    wrong = {}
    with opened(base=campaigns, reduced_motion="reduce", has_touch=True, expected=["status of 4"]) as page:
        for path, there in {
            "/annotate": "main h1",
            "/annotate/new": "main h1",
            "/annotate/campaign?campaign=1": "main h1",
            "/annotate/agreement?campaign=1&page=1": "#agreement .figures",
            "/annotate/adjudicate?campaign=1": "#step-2",
            "/annotate/dispute?trace=4&step=2": "form",
            "/annotate/disputes": "table",
            "/annotate/disputes/1": ".entries",
            "/browse?trace=4": "a.dispute:not(.file)",
            "/people": "main h1",
        }.items():
            page.set_viewport_size({"width": 1280, "height": 1000})
            page.goto(path)
            wrong[path] = in_both_schemes(page, there)
            page.set_viewport_size({"width": 390, "height": 844})
            page.goto(path)
            expect(page.locator(there).first).to_be_visible()
            wrong[f"{path} on a phone"] = overflow(page) or violations(page, ("target-size",))
    assert {path: faults for path, faults in wrong.items() if faults} == {}


@pytest.mark.slow
def test_a_hidden_focus_is_found(page):
    page.goto("/jobs")
    listening(page)
    style = (
        ".places a:focus-visible { outline: none !important } .places { overflow: hidden } form * { --focus: #fff }"
    )
    page.add_style_tag(content=style)
    wrong = hidden_focus(page)
    assert any("Score" in text and "none" in text for text in wrong)
    assert any("Start" in text and "contrast 1" in text for text in wrong)


def start(page, path):
    page.goto(path)
    listening(page)
    expect(page.locator("main [data-again]")).to_have_count(0)


def term(page, name):
    return page.locator(f"button.term[data-hint={name}]").first


def hint(page):
    return page.locator(".meaning:popover-open")


def box(of):
    found = of.bounding_box()
    assert found is not None
    return dict(found)


def explains(page, terms):
    """Each word of a page is explained once, to a keyboard and to a screen reader."""
    words = page.locator("main button.term")
    assert words.evaluate_all("found => found.map(one => one.dataset.hint)") == terms
    for word in words.all():
        word.focus()
        name = (word.get_attribute("data-hint") or "").replace("-", " ")
        expect(hint(page)).to_have_text(f"{name} {TERMS[name]}")
        expect(word).to_have_accessible_description(f"{name} {TERMS[name]}")
    page.keyboard.press("Escape")
    expect(hint(page)).to_have_count(0)


@pytest.mark.slow
def test_a_hint_comes_with_a_pointer_that_rests_and_with_the_focus(page):
    start(page, "/")
    before = box(page.get_by_label("Problem"))
    term(page, "offline").hover()
    expect(hint(page)).to_have_text(f"offline {TERMS['offline']}")
    # Nothing has moved, and what stands below is free.
    assert box(page.get_by_label("Problem")) == before
    assert box(hint(page))["y"] + box(hint(page))["height"] <= box(term(page, "offline"))["y"]
    # The pointer may go over to it, to read or to copy.
    hint(page).hover()
    page.wait_for_timeout(500)
    expect(hint(page)).to_have_count(1)
    page.mouse.move(5, 500)
    expect(hint(page)).to_have_count(0)
    # Escape closes one that a pointer has opened, too, and it does not come back by itself.
    term(page, "evaluator").hover()
    expect(hint(page)).to_have_text(f"evaluator {TERMS['evaluator']}")
    page.keyboard.press("Escape")
    expect(hint(page)).to_have_count(0)
    page.mouse.move(5, 500)
    term(page, "evaluator").hover()
    expect(hint(page)).to_have_count(1)
    opens_nothing_for_a_pointer_that_passes_by(page)
    goes_with_the_focus(page)


def opens_nothing_for_a_pointer_that_passes_by(page):
    page.mouse.move(5, 500)
    expect(hint(page)).to_have_count(0)
    # In one turn of the page's script: a busy machine would let the pointer rest.
    term(page, "online").evaluate(
        """term => {
          window.opened = 0;
          addEventListener("beforetoggle", () => window.opened++, true);
          for (const place of [term, document.body]) {
            place.dispatchEvent(new PointerEvent("pointerover", { bubbles: true, pointerType: "mouse" }));
          }
        }"""
    )
    page.wait_for_timeout(500)
    assert page.evaluate("window.opened") == 0


def goes_with_the_focus(page):
    page.mouse.move(5, 500)
    term(page, "evaluator").focus()
    expect(hint(page)).to_have_text(f"evaluator {TERMS['evaluator']}")
    page.keyboard.press("Tab")
    expect(hint(page)).to_have_text(f"online {TERMS['online']}")
    for _ in range(2):
        page.keyboard.press("Tab")
    expect(page.get_by_label("Problem")).to_be_focused()
    expect(hint(page)).to_have_count(0)


@pytest.mark.slow
def test_a_finger_opens_a_hint_within_a_phone_and_another_place_closes_it(opened):
    with opened(width=390, height=800, has_touch=True, reduced_motion="reduce") as page:
        start(page, "/")
        for name in ("evaluator", "online", "offline"):
            term(page, name).tap()
            expect(hint(page)).to_have_text(f"{name} {TERMS[name]}")
            at = box(hint(page))
            assert at["x"] >= 0
            assert at["x"] + at["width"] <= 390
            assert overflow(page) <= 0
        assert in_both_schemes(page, ".meaning:popover-open") == {}
        page.get_by_label("Problem").tap()
        expect(page.get_by_label("Problem")).to_be_focused()
        expect(hint(page)).to_have_count(0)


@pytest.mark.slow
def test_without_a_script_a_press_opens_it(browser, address):
    context = browser.new_context(base_url=address, java_script_enabled=False)
    try:
        page = context.new_page()
        page.goto("/jobs")
        term(page, "hindsight").click()
        expect(hint(page)).to_have_text(f"hindsight {TERMS['hindsight']}")
        page.keyboard.press("Escape")
        expect(hint(page)).to_have_count(0)
    finally:
        context.close()


STEPS = [
    "Then $x^2$, not $x^ and \\(\\frac{1}{2\\), for $5.",
    "\\[\\begin{pmatrix}1\\end{pmatrix}\\] and $$y$$.",
]


def ready(page):
    """The page's script has run, and its content is there."""
    expect(page.locator(".keys-button")).to_be_visible()
    expect(page).to_have_title(re.compile(" · StepSight$"))
    expect(page.get_by_role("heading", level=1)).to_have_count(1)


def test_the_frame_of_a_page_by_keyboard(page):
    leaves_keys_to_a_text(page)
    draws_every_formula(page)
    skips_to_the_content(page)
    lists_its_keys(page)


def leaves_keys_to_a_text(page):
    page.goto("/")
    ready(page)
    page.keyboard.press("?")
    expect(page.locator("dialog.keys kbd", has_text="?")).to_have_count(1)
    # Browse's keys do nothing here.
    expect(page.locator("dialog.keys kbd", has_text="j")).to_have_count(0)
    page.get_by_role("button", name="Close").click()
    page.get_by_label("Problem").press_sequentially("why?")
    expect(page.get_by_label("Problem")).to_have_value("why?")
    expect(page.locator("dialog.keys")).to_have_count(0)


def draws_every_formula(page):
    page.get_by_role("textbox", name="Solution").fill("\n".join(STEPS))
    expect(page.locator("ol.preview .katex")).to_have_count(3)
    # What cannot be read is shown as it was written.
    expect(page.locator("ol.preview .math.source")).to_have_text("\\(\\frac{1}{2\\)")


def skips_to_the_content(page):
    page.goto("/browse?trace=1")
    ready(page)
    before = page.url
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    assert page.locator(".skip").bounding_box()["y"] >= 0
    page.keyboard.press("Enter")
    expect(page.locator("#content")).to_be_focused()
    assert page.url == before
    page.keyboard.press("Tab")
    assert page.evaluate("document.querySelector('.page').contains(document.activeElement)")


def lists_its_keys(page):
    page.goto("/browse?trace=2")
    ready(page)
    expect(page.locator("ol.steps > li").first).to_be_visible()
    page.keyboard.press("?")
    dialog = page.get_by_role("dialog", name="Keys of this page")
    expect(dialog).to_be_visible()
    expect(dialog.locator("kbd", has_text="j")).to_have_count(1)
    # What is behind the list stays as it is.
    address = page.url
    page.keyboard.press("j")
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    assert page.url == address
    button = page.get_by_role("button", name="Keys")
    button.click()
    expect(dialog).to_be_visible()
    page.keyboard.press("?")
    expect(dialog).to_have_count(0)
    expect(button).to_be_focused()
    page.keyboard.press("j")
    page.wait_for_url(lambda url: url != address)


@pytest.mark.parametrize("path", ["/", "/annotate/new", "/jobs", pytest.param("/demo", marks=pytest.mark.slow)])
def test_fields_on_a_touch_screen_have_letters_that_no_phone_zooms_in_on(opened, path):
    """Safari zooms into a field of less than 16 px."""
    with opened(width=390, has_touch=True, is_mobile=True) as page:
        page.goto(path)
        fields = page.locator("input:is([type=text], [type=search], [type=number], :not([type])), select, textarea")
        expect(fields.locator("visible=true").first).to_be_attached()
        sizes = fields.evaluate_all("fields => fields.map((field) => parseFloat(getComputedStyle(field).fontSize))")
        assert min(sizes) >= 16


@pytest.mark.slow
def test_reduced_motion_stops_transitions_and_print_is_only_the_content(opened):
    with opened(reduced_motion="reduce") as page:
        page.goto("/browse?trace=1")
        ready(page)
        moving = "[...document.querySelectorAll('*')].filter(e => getComputedStyle(e).transitionDuration !== '0s')"
        assert page.evaluate(f"{moving}.length") == 0
        page.emulate_media(media="print")
        expect(page.get_by_role("navigation", name="Pages")).to_be_hidden()
        expect(page.locator("ol.steps > li").first).to_be_visible()


# Half of what stood there at bd9a3cdf, without the frame.
MOST_CONTROLS = {
    "/": 15,
    "/evidence?trace=2": 15,
    "/browse?dataset=gallery&evaluator=mini-bidir&other=mini-causal": 63,
    "/results?dataset=gallery": 39,
    "/data": 47,
    "/evaluators": 40,
    "/jobs": 27,
}
CONTROLS = "main :is(a[href], button, input:not([type=hidden]), select, textarea, summary) >> visible=true"


@pytest.mark.slow
@pytest.mark.parametrize("path", MOST_CONTROLS)
def test_a_page_has_few_controls_in_view(opened, path):
    with opened(height=720) as page:
        page.goto(path)
        listening(page)
        expect(page.locator("main [data-again]")).to_have_count(0)
        controls = page.locator(CONTROLS).evaluate_all("all => all.map((one) => one.outerHTML.slice(0, 80))")
        assert len(controls) <= MOST_CONTROLS[path], controls
