"""The Browse page as a person uses it, in headless Chromium."""

import re
import time
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import expect

from tests.app.browser.acts import Traffic
from tests.serving import serving
from tests.storage.samples import write_lines


def asked(url):
    """The parts of an address of this page."""
    assert urlsplit(url).path == "/browse"
    return {name: values[-1] for name, values in parse_qs(urlsplit(url).query).items()}


def facet(page, title, value):
    section = page.locator(".facets section", has=page.locator("h3", has_text=title))
    return section.locator("a", has_text=value)


def sticking_out(page):
    """What reaches beyond the right edge of the window, but for what scrolls within a text or is cut there."""
    return page.evaluate("""() => [...document.querySelectorAll("#browse *")]
      .filter((one) => !one.parentElement.closest(".t, .q, a.open, .hit, .unseen"))
      .filter((one) => one.getBoundingClientRect().right > document.documentElement.clientWidth + 1)
      .map((one) => one.outerHTML.slice(0, 120))""")


def opened_trace(page):
    return page.locator("#browse .pager").get_attribute("data-trace") or ""


def test_a_list_is_walked_by_key_from_trace_to_trace_and_back(page):
    page.goto("/browse?dataset=gallery")
    facet(page, "Gold", "has an error").click()
    # The focus stays on the condition, which is set now.
    expect(page.locator(".facets a[aria-current]")).to_be_focused()
    page.keyboard.press("j")
    expect(page.locator("a.open").first).to_be_focused()
    page.keyboard.press("j")
    page.keyboard.press("k")
    page.keyboard.press("Enter")
    expect(page.locator(".pager .place")).to_have_text(re.compile("^1 of "))
    first = page.url
    assert asked(first)["gold"] == "error"
    page.keyboard.press("j")
    page.wait_for_url(lambda url: url != first)
    second = page.url
    page.keyboard.press("k")
    page.wait_for_url(first)
    page.go_back()
    page.wait_for_url(second)
    trace = asked(second)["trace"]
    expect(page.locator(f".pager[data-trace='{trace}']")).to_be_visible()
    # Back to the list, on the row of the trace last seen.
    page.keyboard.press("u")
    expect(page.locator(f"a.open[data-key='trace {trace}']")).to_be_focused()


@pytest.mark.slow
def test_the_gallery_is_filtered_by_metadata_and_bins(page):
    page.goto("/browse?dataset=gallery")
    metadata = page.locator(".metadata")
    metadata.get_by_text("Metadata").click()
    metadata.get_by_text("focus").click()
    opened = metadata.locator("a[aria-expanded=true]")
    # The focus stays on the field, which is open now.
    expect(opened).to_be_focused()
    metadata.get_by_label("from").fill("2")
    metadata.get_by_label("from").press("Enter")
    expect(page.locator(".chips .chip")).to_have_text(re.compile("focus ≥ 2"))
    assert asked(page.url) == {"dataset": "gallery", "field": "focus", "meta": "focus>=2"}
    expect(metadata.get_by_label("from")).to_have_value("2")
    metadata.locator(".values a[data-key='meta focus=3']").click()
    expect(page.locator(".chips .chip")).to_have_count(2)
    assert parse_qs(urlsplit(page.url).query)["meta"] == ["focus>=2", "focus=3"]
    page.locator(".chips .chip", has_text="focus ≥ 2").click()
    expect(page.locator(".chips .chip")).to_have_count(1)
    expect(page.locator(".chips .chip")).to_have_text(re.compile("focus: 3"))
    page.locator(".distribution summary").click()
    page.locator(".distribution td a").first.click()
    expect(page.locator(".distribution .chosen")).to_have_count(1)
    expect(page.locator(".chips .chip")).to_have_count(2)
    # What was unfolded stays so.
    expect(page.locator(".distribution td a[aria-current=true]")).to_be_visible()
    assert sticking_out(page) == []


@pytest.mark.slow
def test_keys_that_are_quicker_than_the_page_lead_on(page):
    page.goto("/browse?dataset=gallery")
    page.locator("a.open").first.click()
    expect(page.locator("ol.steps > li").first).to_be_visible()
    first = int(opened_trace(page))
    for _ in range(6):
        page.keyboard.press("j")
    expect(page.locator(f".pager[data-trace='{first + 6}']")).to_be_visible()
    page.keyboard.press("?")
    expect(page.locator("dialog.keys")).to_contain_text("next trace")
    page.keyboard.press("Escape")


@pytest.mark.slow
def test_a_phone_has_the_conditions_in_a_sheet(opened):
    with opened(width=390, height=800) as page:
        page.goto("/browse?dataset=gallery")
        expect(page.locator("a.open").first).to_be_visible()
        expect(page.locator(".facets")).to_be_hidden()
        page.get_by_role("button", name="Filters").click()
        facet(page, "Gold", "has an error").click()
        # It stays open, so that another can be chosen.
        expect(page.get_by_role("button", name="Filters (1)")).to_have_attribute("aria-expanded", "true")
        expect(page.locator(".facets a[aria-current]")).to_be_visible()
        assert sticking_out(page) == []
        page.get_by_role("button", name="Filters (1)").click()
        expect(page.locator(".facets")).to_be_hidden()
        page.locator("a.open").first.click()
        expect(page.locator("ol.steps > li").first).to_be_visible()
        page.get_by_role("checkbox", name="mini-causal").check()
        expect(page.locator("section.side.n2")).to_be_visible()
        assert sticking_out(page) == []


@pytest.mark.slow
def test_buttons_keys_and_fields_work_before_the_script_is_there(opened):
    """However late the page's script comes: buttons, keys, fields and links."""

    def late(page):
        page.route("**/pages.js*", lambda route: (time.sleep(1.5), route.continue_()))

    with opened(width=390, height=800) as page:
        late(page)
        page.goto("/browse?dataset=gallery", wait_until="commit")
        page.get_by_role("button", name="Filters").click()
        expect(page.locator(".facets")).to_be_visible()
    with opened() as page:
        late(page)
        page.goto("/browse?dataset=gallery", wait_until="commit")
        expect(page.locator("a.open").first).to_be_visible()
        for _ in range(3):
            page.keyboard.press("j")
        expect(page.locator("a.open").nth(2)).to_be_focused()
        page.goto("/browse?dataset=gallery&gold=error", wait_until="commit")
        page.get_by_text("More: order").click()
        page.get_by_label("Order").select_option(index=2)
        page.wait_for_url(re.compile("gold=error.*sort=|sort=.*gold=error"))
        page.goto("/browse?dataset=gallery", wait_until="commit")
        page.get_by_label("Search").fill("roots")
        page.get_by_role("button", name="Show").click()
        page.wait_for_url(re.compile("q=roots"))


@pytest.mark.slow
def test_pages_go_on_when_the_server_is_back(opened):
    """What was asked for while nobody answered comes when somebody does, without loading the page again."""
    acts = {
        "/browse?dataset=gallery": (lambda page: page.locator("a.open").first.click(), "trace="),
        "/evidence": (lambda page: page.locator("nav.kinds a").last.click(), "kind="),
        "/results": (lambda page: page.locator("select[name=figure]").select_option(index=1), "figure="),
    }
    with opened(expected=("ERR_FAILED", "Failed to fetch", "Could not resolve")) as page:
        traffic = Traffic(page)
        for path, (act, part) in acts.items():
            page.goto(path)
            page.wait_for_load_state()
            page.evaluate("window.sameDocument = true")
            before = page.locator("main [data-part]").inner_html()
            traffic.state = "broken"
            act(page)
            expect(page.locator("body > .away")).to_have_text(re.compile("The server does not answer"))
            traffic.state = ""
            expect(page.locator("body > .away")).to_have_count(0, timeout=20_000)
            assert part in page.url
            assert page.locator("main [data-part]").inner_html() != before
            assert page.evaluate("window.sameDocument")


@pytest.fixture(scope="module")
def awkward(tmp_path_factory, seeded_file):
    """The address of an application with a trace of 200 steps, one with a stretch without a flag, and one of
    long words and formulas."""
    folder = tmp_path_factory.mktemp("awkward")
    words, formula = "pneumono" * 6, "$" + "+".join(f"x_{{{i}}}^2" for i in range(60)) + "$"
    tall = r"\[\frac{" + "+".join(f"a_{{{i}}}" for i in range(40)) + r"}{b}\]"
    sums = ["It is 2 + 2 = 5."] * 4
    thought = ["We count.", *["And so on."] * 4, "Wait, that is off.", "Let me check.", *sums, "Answer: 5"]
    rows = [
        {"id": "long", "problem": "Count.", "steps": [f"{i}+1={i + 1}" for i in range(200)]},
        {"id": "wide", "problem": f"{words} {formula}", "steps": [words, formula, [tall, f"{words} {words}"]]},
        {"id": "thought", "problem": "Count.", "steps": thought, "labels": ["pos"] * 7 + ["neg"] + ["pos"] * 4},
    ]
    path = write_lines(folder / "awkward.jsonl", rows)
    with serving(folder, {"jsonl": path}, seeded_file) as address:
        yield address


def stays_within(page):
    """Nothing of the page sticks out of a phone's window or a desk's."""
    for width in (1280, 390):
        page.set_viewport_size({"width": width, "height": 800})
        assert sticking_out(page) == [], width


@pytest.mark.slow
def test_long_traces_words_and_formulas_stay_within_the_page(opened, awkward):
    with opened(awkward, width=390, height=800) as page:
        page.goto("/browse?dataset=gallery&field=focus&meta=focus>=2")
        # Another dataset has other fields.
        page.get_by_label("Dataset").select_option("jsonl")
        expect(page.get_by_role("heading", name="jsonl")).to_be_visible()
        assert asked(page.url) == {"dataset": "jsonl"}
        page.goto("/browse?dataset=jsonl&evaluator=mini-causal")
        expect(page.locator("a.open")).to_have_count(3)
        stays_within(page)
        page.locator("a.open").first.click()
        expect(page.locator("ol.steps > li")).to_have_count(200)
        expect(page.locator("ol.steps .bar")).to_have_count(2 * 200)
        stays_within(page)
        page.keyboard.press("j")
        expect(page.locator(".steps .katex").first).to_be_visible()
        page.get_by_role("checkbox", name="mini-bidir").check()
        expect(page.locator("section.side.n2 .steps .katex").first).to_be_visible()
        expect(page.get_by_role("checkbox", name="mini-bidir")).to_be_focused()
        assert parse_qs(urlsplit(page.url).query)["beside"] == ["mini-bidir", "mini-causal"]
        stays_within(page)
        # The focus is on the box, and keys go on working.
        page.keyboard.press("u")
        expect(page.locator("a.open")).to_have_count(3)
