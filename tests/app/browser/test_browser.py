"""The pages as a person uses them, in headless Chromium."""

import json
import os
import re
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

import pytest
from playwright.sync_api import Page, expect, sync_playwright

from tests.browser import launch
from tests.serving import serving

DATA = Path(os.environ.get("STEPSIGHT_DATA", Path(__file__).parents[3] / "shared" / "data"))
MR_MATH = DATA / "mr-math" / "mr-math_invalid_errors.json"

PROBLEM = "The equation $x^2 - 5x + 6 = 0$ has two roots. Which?"
SOLUTION = """1. We look for two numbers that add to $-5$ and multiply to $6$.
2. The numbers are $-6$ and $1$, and $-6 + 1 = -5$.
3. The factors are $(x - 6)(x + 1) = 0$.
4. Hence $x = 6$ or $x = -1$.
5. Check: $6 \\cdot (-1) = -6$, not $6$, so the factoring is wrong."""


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    files = {"mr-math-invalid": MR_MATH} if MR_MATH.is_file() else {}
    with serving(tmp_path_factory.mktemp("served"), files) as address:
        yield address


@pytest.fixture(scope="module")
def browser():
    with sync_playwright() as playwright:
        browser = launch(playwright)
        yield browser
        browser.close()


@pytest.fixture
def page(browser, address):
    """A page that may speak to nobody but us, and complain of nothing."""
    context = browser.new_context(base_url=address, viewport={"width": 1280, "height": 1000})
    troubles = []
    context.on("console", lambda message: troubles.append(message.text) if message.type == "error" else None)
    context.on("weberror", lambda error: troubles.append(str(error.error)))
    context.on("dialog", lambda dialog: (troubles.append(f"dialog: {dialog.message}"), dialog.dismiss()))
    local = (address, "data:", "blob:")
    context.on("request", lambda r: None if r.url.startswith(local) else troubles.append(f"left: {r.url}"))
    page = context.new_page()
    yield page
    context.close()
    assert not troubles


def score(page: Page, problem: str, solution: str) -> None:
    page.goto("/")
    # The page is listening once the preview answers.
    page.get_by_label("Solution").fill("first")
    expect(page.locator("ol.preview li")).to_have_text(["first"])
    page.get_by_label("Problem").fill(problem)
    page.get_by_label("Solution").fill(solution)
    page.get_by_role("button", name="Score").click()


def bars(page: Page, mode: str) -> list[dict[str, float]]:
    """Each bar's probabilities as its label tells them."""
    labels = page.locator(f".c[data-mode={mode}] .bar").all()
    texts = [bar.get_attribute("aria-label") or "" for bar in labels]
    return [{name: float(value) for name, value in re.findall(r"(neg|neu|pos) (\d\.\d\d)", text)} for text in texts]


def test_the_factorisation_is_exposed_by_the_check(page):
    score(page, PROBLEM, SOLUTION)
    expect(page.locator("ol.steps > li")).to_have_count(5)
    online, offline = bars(page, "online"), bars(page, "offline")
    for bar in online + offline:
        assert sum(bar.values()) == pytest.approx(1, abs=0.02)
    # The wrong numbers of step 2 look right, and so does the solution, until step 5 multiplies the roots.
    assert 1 - online[1]["neg"] >= 0.5
    assert 1 - offline[1]["neg"] < 0.5
    expect(page.locator(".sum")).to_contain_text(re.compile("Online: valid.*Offline: not valid", re.DOTALL))
    # The last step has nothing after it: both modes are the same input.
    assert online[4] == offline[4]
    drawn = page.locator(".c[data-mode=offline] .bar i.neg").nth(1)
    width = drawn.evaluate("i => i.getBoundingClientRect().width / i.parentElement.getBoundingClientRect().width")
    assert width == pytest.approx(offline[1]["neg"], abs=0.02)
    expect(page.locator(".steps .katex").first).to_be_visible()


def test_the_preview_follows_what_is_typed(page):
    page.goto("/")
    page.get_by_label("Solution").fill("one\ntwo")
    expect(page.locator("ol.preview li")).to_have_text(["one", "two"])
    page.get_by_label("Solution").fill('["only one"]')
    expect(page.locator("ol.preview li")).to_have_text(["only one"])


def test_a_link_brings_the_same_page_back_and_the_download_holds_the_numbers(page):
    score(page, PROBLEM, SOLUTION)
    link = page.get_by_role("link", name="Link to this result")
    expect(link).to_be_visible()
    before = bars(page, "offline")
    page.goto(link.get_attribute("href"))
    expect(page.locator("ol.steps > li")).to_have_count(5)
    assert bars(page, "offline") == before
    expect(page.get_by_label("Problem")).to_have_value(PROBLEM)
    with page.expect_download() as download:
        page.get_by_role("link", name="Download JSON").click()
    record = json.loads(Path(download.value.path()).read_text())
    assert [round(step["neg"], 2) for step in record["offline"]["steps"]] == [bar["neg"] for bar in before]
    assert [len(row) for row in record["hindsight"]] == [1, 2, 3, 4, 5]


def test_an_example_fills_the_page_and_is_scored(page):
    page.goto("/")
    page.get_by_role("button", name="A factorisation that looks right").click()
    expect(page.locator("ol.steps > li")).to_have_count(5)
    expect(page.get_by_label("Problem")).to_have_value(PROBLEM)


def test_thresholds_judge_anew(page):
    score(page, PROBLEM, SOLUTION)
    expect(page.locator(".sum .bad")).to_have_count(1)
    page.locator("#validity input[type=number]").fill("0")
    page.locator("#validity input[type=number]").press("Enter")
    page.get_by_role("button", name="Score").click()
    expect(page.locator(".sum .bad")).to_have_count(0)


def test_a_threshold_moved_on_an_empty_page_says_nothing(page):
    page.goto("/")
    page.get_by_label("Solution").fill("first")
    expect(page.locator("ol.preview li")).to_have_text(["first"])
    page.get_by_label("Solution").fill("")
    page.locator("#validity input[type=range]").click()
    page.wait_for_timeout(700)
    expect(page.locator("#result .notice")).to_have_count(0)


def test_a_cleared_threshold_comes_back(page):
    score(page, PROBLEM, SOLUTION)
    expect(page.locator(".sum .bad")).to_have_count(1)
    page.locator("#validity input[type=number]").fill("")
    page.get_by_role("button", name="Score").click()
    expect(page.locator("#validity input[type=number]")).to_have_value("0.5")
    expect(page.locator(".sum .bad")).to_have_count(1)


@pytest.mark.parametrize(
    ("problem", "solution", "message"),
    [
        ("", "1. a\n2. b", "The problem is empty"),
        ("q", "  ", "There are no steps"),
        ("q", '["a", 3]', "step 2 of the JSON list is 3"),
        ("q", "12345 " * 4000, "reads at most"),
        ("q", "\n".join("ab" * 201), "this page scores at most 200"),
    ],
)
def test_what_cannot_be_scored_gets_a_notice(page, problem, solution, message):
    score(page, problem, solution)
    expect(page.locator("#result .notice")).to_contain_text(message)


ATTACKS = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "<svg onload=alert(1)>",
    "</span><iframe srcdoc='<script>alert(1)</script>'>",
    "${alert(1)}",
    "{{alert(1)}} {% alert %} `<%= alert(1) %>`",
    "$\\href{javascript:alert(1)}{x}$ $\\htmlData{x=1}{y}$",
    "[x](javascript:alert(1)) ![x](http://example.org/x.png)",
    "<style>body{display:none}</style>",
]


def test_pasted_markup_is_text(page):
    score(page, "Solve <b>this</b> & \"that\" <script>alert('q')</script>", "\n".join(ATTACKS))
    steps = page.locator("ol.steps > li .t")
    expect(steps).to_have_count(len(ATTACKS))
    for attack, step in zip(ATTACKS, steps.all(), strict=True):
        if "$\\" not in attack:
            expect(step).to_have_text(attack)
    expect(page.locator(".judged .q")).to_have_text("Solve <b>this</b> & \"that\" <script>alert('q')</script>")
    for element in ("img", "script", "iframe", "a", "style", "svg[onload]"):
        expect(page.locator(f":is(.steps, .q, .preview) {element}")).to_have_count(0)


def trace_of(url: str) -> str:
    return parse_qs(urlsplit(url).query)["trace"][0]


@pytest.mark.skipif(not MR_MATH.is_file(), reason="the benchmark file is not there; set STEPSIGHT_DATA")
def test_mr_math_is_browsed_by_filter_link_and_key(page):
    page.goto("/browse")
    page.get_by_label("Dataset").select_option("mr-math-invalid")
    expect(page.get_by_role("heading", name="mr-math-invalid")).to_be_visible()
    page.get_by_label("Gold").select_option("error")
    expect(page.locator(".pager")).to_contain_text("1–25 of 83")
    page.locator("ol.traces a").first.click()
    expect(page.locator("ol.steps > li").first).to_be_visible()
    first = page.url
    assert "trace=" in first
    assert "gold=error" in first
    expect(page.locator("em", has_text="gold: first error")).to_have_count(1)
    expect(page.locator(".g.none").first).to_have_text("unlabelled")
    page.keyboard.press("j")
    page.wait_for_url(lambda url: url != first)
    second = page.url
    expect(page.locator("em", has_text="gold: first error")).to_have_count(1)
    page.keyboard.press("k")
    page.wait_for_url(first)
    page.go_back()
    page.wait_for_url(second)
    expect(page.locator(f".pager[data-trace='{trace_of(second)}']")).to_be_visible()
    # The address alone brings the trace back. In a page of its own: Gradio logs an error when a page is left
    # while it still listens for the end of an event.
    other = page.context.new_page()
    other.goto(second)
    expect(other.locator("ol.steps > li").first).to_be_visible()
    assert len(bars(other, "online")) == len(bars(other, "offline")) == other.locator("ol.steps > li").count()


def test_search_finds_traces_and_says_where_there_are_none(page):
    page.goto("/browse?dataset=gallery")
    page.get_by_label("Search").fill("lamps")
    page.get_by_label("Search").press("Enter")
    expect(page.locator("ol.traces li")).to_have_count(1)
    assert "q=lamps" in unquote(page.url)
    page.get_by_label("Search").fill("no such words 100%")
    page.get_by_role("button", name="Show", exact=True).click()
    expect(page.get_by_text("No trace meets these conditions.")).to_be_visible()


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("trace=99999999", "There is no trace 99999999"),
        ("trace=abc", "trace is 'abc', expected a number"),
        ("dataset=nowhere", "There is no dataset 'nowhere'"),
        ("gold=sideways", "The gold filter is 'sideways'"),
        ("page=-3", "page is '-3', expected a number"),
    ],
)
def test_an_address_that_makes_no_sense_gets_a_notice(page, query, message):
    page.goto(f"/browse?{query}")
    expect(page.locator(".notice")).to_contain_text(message)


def test_the_pages_fit_a_phone(browser, address):
    context = browser.new_context(base_url=address, viewport={"width": 390, "height": 800})
    page = context.new_page()
    page.goto("/")
    page.get_by_role("button", name="A factorisation that looks right").click()
    expect(page.locator("ol.steps > li")).to_have_count(5)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.goto("/browse")
    expect(page.locator("ol.traces li").first).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    context.close()
