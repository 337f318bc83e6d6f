"""What all pages share, in headless Chromium."""

import re

import pytest
from playwright.sync_api import expect

STEPS = [
    "Then $x^2$, not $x^ and \\(\\frac{1}{2\\), for $5.",
    "\\[\\begin{pmatrix}1\\end{pmatrix}\\] and $$y$$.",
]


def ready(page):
    """The page's script has run, and its content is there."""
    expect(page.locator(".maths-switch")).to_be_visible()
    expect(page).to_have_title(re.compile(" · StepSight$"))
    expect(page.get_by_role("heading", level=1)).to_have_count(1)


def test_the_frame_of_a_page_by_keyboard(page):
    leaves_keys_to_a_text(page)
    flips_every_formula(page)
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


def flips_every_formula(page):
    page.get_by_role("textbox", name="Solution").fill("\n".join(STEPS))
    switch = page.get_by_role("button", name="TeX source")
    expect(page.locator("ol.preview .katex")).to_have_count(3)
    # What cannot be read is shown as it was written.
    expect(page.locator("ol.preview .math.source")).to_have_text("\\(\\frac{1}{2\\)")
    expect(switch).to_have_attribute("aria-pressed", "false")
    switch.click()
    expect(page.locator("ol.preview li")).to_have_text(STEPS)
    expect(page.locator(".katex")).to_have_count(0)
    expect(switch).to_have_attribute("aria-pressed", "true")
    page.goto("/browse?trace=2")
    expect(page.locator("ol.steps .math.source").first).to_be_visible()
    expect(page.locator(".katex")).to_have_count(0)
    page.get_by_role("button", name="TeX source").click()
    expect(page.locator("ol.steps .katex").first).to_be_visible()


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


def test_reduced_motion_stops_transitions_and_print_is_only_the_content(opened):
    with opened(reduced_motion="reduce") as page:
        page.goto("/browse?trace=1")
        ready(page)
        moving = "[...document.querySelectorAll('*')].filter(e => getComputedStyle(e).transitionDuration !== '0s')"
        assert page.evaluate(f"{moving}.length") == 0
        page.emulate_media(media="print")
        expect(page.get_by_role("navigation", name="Pages")).to_be_hidden()
        expect(page.locator("ol.steps > li").first).to_be_visible()
