"""Hints on the words that a newcomer asks about, in headless Chromium: by pointer, focus and finger. The pages
of `MET` are gone through in `test_every_page`."""

from playwright.sync_api import expect

from stepsight.app.markup.text import TERMS
from tests.app.browser.acts import listening, overflow
from tests.app.browser.test_accessibility import in_both_schemes

# The words that are first met on each page, in their order.
MET = {
    "/": ["evaluator", "neg", "neu", "valid", "pos", "online", "offline"],
    "/evidence": ["online", "offline", "hindsight"],
    "/evidence?trace=2": ["equations", "hindsight"],
    "/browse?dataset=gallery": ["offline"],
    "/browse?trace=1": ["equations", "online", "offline", "retroactive-change", "neg", "neu", "pos"],
    "/results": ["offline", "online"],
    "/results?dataset=gallery": ["offline", "online", "hindsight", "neg", "neu", "pos"],
    "/jobs": ["online", "offline", "hindsight"],
}


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


def explains(page, path):
    """Each word of a page is explained once, to a keyboard and to a screen reader."""
    words = page.locator("main button.term")
    assert words.evaluate_all("found => found.map(one => one.dataset.hint)") == MET[path]
    for word in words.all():
        word.focus()
        name = (word.get_attribute("data-hint") or "").replace("-", " ")
        expect(hint(page)).to_have_text(f"{name} {TERMS[name]}")
        expect(word).to_have_accessible_description(f"{name} {TERMS[name]}")
    page.keyboard.press("Escape")
    expect(hint(page)).to_have_count(0)


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
    term(page, "neg").hover()
    expect(hint(page)).to_have_text(f"neg {TERMS['neg']}")
    page.keyboard.press("Escape")
    expect(hint(page)).to_have_count(0)
    page.mouse.move(5, 500)
    term(page, "neg").hover()
    expect(hint(page)).to_have_count(1)
    opens_nothing_for_a_pointer_that_passes_by(page)
    goes_with_the_focus(page)
    is_there_for_a_choice(page)


def opens_nothing_for_a_pointer_that_passes_by(page):
    page.mouse.move(5, 500)
    expect(hint(page)).to_have_count(0)
    # In one turn of the page's script: a busy machine would let the pointer rest.
    term(page, "pos").evaluate(
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
    term(page, "neg").focus()
    expect(hint(page)).to_have_text(f"neg {TERMS['neg']}")
    page.keyboard.press("Tab")
    expect(hint(page)).to_have_text(f"neu {TERMS['neu']}")
    for _ in range(5):
        page.keyboard.press("Tab")
    expect(page.get_by_label("Problem")).to_be_focused()
    expect(hint(page)).to_have_count(0)


def is_there_for_a_choice(page):
    start(page, "/evidence?trace=2")
    page.locator("label[data-hint=neu]").click()
    expect(page.locator("input[value=neu]")).to_be_checked()
    expect(hint(page)).to_have_text(f"neu {TERMS['neu']}")
    page.keyboard.press("ArrowRight")
    expect(hint(page)).to_have_text(f"pos {TERMS['pos']}")


def test_a_finger_opens_a_hint_within_a_phone_and_another_place_closes_it(opened):
    with opened(width=390, height=800, has_touch=True, reduced_motion="reduce") as page:
        start(page, "/")
        for name in ("neg", "pos", "offline"):
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
