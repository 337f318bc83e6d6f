"""The Score page as a person uses it, in headless Chromium."""

import json
import re
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import numpy as np
import pytest
from playwright.sync_api import Route, expect

from stepsight.app.score.entered import Entered
from stepsight.core.trace import Trace
from stepsight.storage.database.store import open_store
from stepsight.training.evaluate.strength import read_gallery
from tests.app.browser.acts import PROBLEM, SOLUTION, Traffic, bars, overflow, score
from tests.app.held_up import hold_up
from tests.browser import until
from tests.serving import served

STEPS = [line.split(". ", 1)[1] for line in SOLUTION.splitlines()]


def enter(page, solution):
    page.goto("/")
    page.get_by_role("textbox", name="Solution").fill(solution)
    expect(page.locator("ol.preview li")).not_to_have_count(0)


def solution_box(page):
    return page.get_by_role("textbox", name="Solution")


def expect_steps(page, *texts):
    expect(page.locator("ol.preview > li > .t")).to_have_text(list(texts))


def test_a_result_is_shared_compared_and_saved(opened):
    with opened(permissions=["clipboard-read", "clipboard-write"]) as page:
        score(page, PROBLEM, SOLUTION)
        expect(page.locator("ol.steps > li")).to_have_count(5)
        exposes_the_factorisation(page)
        comes_back_by_its_link(page)
        copies_a_snippet(page)
        looks_right_again_without_the_check(page)
        is_saved_and_found_again(page)


def exposes_the_factorisation(page):
    online, offline = bars(page, "online"), bars(page, "offline")
    for bar in online + offline:
        assert sum(bar.values()) == pytest.approx(1, abs=0.02)
    # The roots of step 4 look right, and so does the solution, until step 5 multiplies them.
    assert 1 - online[3]["neg"] >= 0.5
    assert 1 - offline[3]["neg"] < 0.5
    expect(page.locator(".sum")).to_contain_text(re.compile("Online: all 5 .*Offline: 1 of 5 ", re.DOTALL))
    # The last step has nothing after it: both modes are the same input.
    assert online[4] == offline[4]
    drawn = page.locator(".c[data-mode=offline] .bar i.neg").nth(3)
    width = drawn.evaluate("i => i.getBoundingClientRect().width / i.parentElement.getBoundingClientRect().width")
    assert width == pytest.approx(offline[3]["neg"], abs=0.02)
    expect(page.locator(".steps .katex").first).to_be_visible()


def comes_back_by_its_link(page):
    link = page.get_by_role("link", name="Link to this result")
    expect(link).to_be_visible()
    before = bars(page, "offline")
    href = link.get_attribute("href") or ""
    page.wait_for_url(lambda url: url.endswith(href))
    page.reload()
    expect(page.locator("ol.steps > li")).to_have_count(5)
    assert bars(page, "offline") == before
    expect(page.get_by_label("Problem")).to_have_value(PROBLEM)


def more(page):
    """Open what a result has behind *More*, unless an earlier result had it open."""
    page.locator(".further").evaluate("(details) => { details.open = true; }")


def copies_a_snippet(page):
    page.get_by_text("More: thresholds").click()
    page.get_by_role("button", name="Copy").click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied.startswith("from stepsight import ")


def thresholds_judge_anew_around_the_sliders(page):
    expect(page.locator(".sum .bad")).to_have_count(1)
    expect(page.locator(".said[data-mode=offline] strong")).to_contain_text(
        re.compile("^[1-9] of 5 steps not valid")
    )
    sentence = page.locator(".conclusion")
    expect(sentence).to_contain_text("mini-bidir, a demonstration, blames step")
    more(page)
    slider = page.get_by_label("Valid from")
    slider.focus()
    page.keyboard.press("Home")
    expect(page.locator(".sum .bad")).to_have_count(0)
    expect(page.locator("ol.steps .mark", has_text="✕")).to_have_count(0)
    expect(page.locator(".said[data-mode=offline] strong")).to_contain_text("all 5 steps valid")
    label = page.locator(".c[data-mode=offline] .bar").nth(1)
    expect(label).to_have_attribute("aria-label", re.compile("; (valid|redundant)$"))
    page.keyboard.press("End")
    expect(page.locator("ol.steps .mark", has_text="✕")).to_have_count(10)
    page.keyboard.press("ArrowLeft")
    expect(slider).to_be_focused()
    expect(sentence).to_contain_text("blames steps 1, 2, 3, 4 and 5")
    expect(page.locator("code").first).to_contain_text("Thresholds(validity=0.99, redundancy=0.15)")
    with page.expect_download() as download:
        page.get_by_role("link", name="Download JSON").click()
    assert json.loads(Path(download.value.path()).read_text())["judgments"][0]["thresholds"]["validity"] == 0.99
    page.reload()
    more(page)
    expect(page.locator(".thresholds output").first).to_have_text("0.99")
    page.get_by_role("button", name="Defaults").click()
    expect(page.locator(".sum .bad")).to_have_count(1)
    expect(page.get_by_role("button", name="Defaults")).to_be_disabled()


def looks_right_again_without_the_check(page):
    """Take the last step away: the verdict on step 4 turns, and the page says so."""
    page.wait_for_url(re.compile(r"\?s="))
    before = page.url
    exposed = 1 - bars(page, "offline")[3]["neg"]
    page.get_by_role("button", name="Correct step 5").click()
    page.get_by_role("button", name="Delete").click()
    expect(page.locator("ol.steps > li")).to_have_count(4)
    unseen = 1 - bars(page, "offline")[3]["neg"]
    assert exposed < 0.5 <= unseen
    told = page.locator("ol.steps > li").nth(3).locator(".was")
    expect(told).to_have_text(f"was {exposed:.2f}, now {unseen:.2f}")
    expect(page.locator(".earlier")).to_contain_text(re.compile(r"Step \d rose from 0\.\d\d to 0\.\d\d offline"))
    expect(page.locator(".earlier")).to_contain_text("Removed: step 5")
    # The address holds both, and Back leads to the result before.
    page.wait_for_url(lambda url: set(parse_qs(urlsplit(url).query)) == {"s", "before"})
    page.reload()
    expect(page.locator(".earlier")).to_contain_text("Removed: step 5")
    page.go_back()
    expect(page.locator("ol.steps > li")).to_have_count(5)
    assert page.url == before
    page.go_forward()
    expect(page.locator(".earlier")).to_be_visible()


def is_saved_and_found_again(page):
    more(page)
    page.get_by_label("Dataset").fill("by hand")
    for told in ("Saved as", "Already saved as"):
        page.get_by_role("button", name="Save as a trace").click()
        expect(page.locator("#saved")).to_contain_text(told)
    page.locator("#saved").get_by_role("link", name="Browse").click()
    expect(page.locator("#browse")).to_contain_text("has two roots. Which?")
    expect(page.locator("ol.steps > li")).to_have_count(4)


@pytest.mark.slow
def test_the_split_of_a_solution_is_corrected(page):
    typed_anew(page)
    by_button(page)
    by_key(page)


def typed_anew(page):
    enter(page, "one\ntwo")
    expect(page.locator("[data-history=undo]")).to_be_disabled()
    page.get_by_role("button", name="Correct step 1").click()
    page.get_by_role("button", name="Delete").click()
    expect_steps(page, "two")
    page.get_by_role("textbox", name="Solution").fill("three\nfour")
    expect_steps(page, "three", "four")
    page.get_by_role("button", name="Undo").click()
    expect_steps(page, "two")
    expect(solution_box(page)).to_have_value("two")
    page.get_by_role("button", name="Undo").click()
    expect_steps(page, "one", "two")
    expect(solution_box(page)).to_have_value("one\ntwo")
    for _ in range(2):
        page.get_by_role("button", name="Redo").click()
    expect_steps(page, "three", "four")
    expect(solution_box(page)).to_have_value("three\nfour")


def by_button(page):
    solution_box(page).fill("one two\nthree\nfour")
    expect_steps(page, "one two", "three", "four")
    page.get_by_role("button", name="Correct step 1").click()
    page.get_by_role("button", name="Edit or split").click()
    area = page.get_by_label("Text of step 1")
    area.evaluate("area => area.setSelectionRange(4, 4)")
    page.get_by_role("button", name="Split at the cursor").click()
    expect_steps(page, "one", "two", "three", "four")
    page.get_by_role("button", name="Correct step 3").click()
    page.get_by_role("button", name="Merge with next").click()
    expect_steps(page, "one", "two", "three\nfour")
    page.get_by_role("button", name="Move up").click()
    expect_steps(page, "one", "three\nfour", "two")
    page.get_by_role("button", name="Insert after").click()
    page.get_by_label("Text of step 3").fill("2 < 3 & <b>so</b> $x^2$")
    page.get_by_role("button", name="Done").click()
    expect(page.locator("ol.preview .katex")).to_have_count(1)
    wanted = [["one"], ["three\nfour"], ["2 < 3 & <b>so</b> $x^2$"], ["two"]]
    listed = """(wanted) =>
      JSON.stringify(JSON.parse(document.querySelector("ol.preview").dataset.steps)) === JSON.stringify(wanted)"""
    until(page, listed, arg=wanted)
    page.get_by_role("button", name="Delete").click()
    expect_steps(page, "one", "three\nfour", "two")
    for _ in range(5):
        page.get_by_role("button", name="Undo").click()
    expect_steps(page, "one two", "three", "four")
    for _ in range(5):
        page.get_by_role("button", name="Redo").click()
    expect_steps(page, "one", "three\nfour", "two")
    expect(solution_box(page)).to_have_value("1. one\n2. three\nfour\n3. two")


def by_key(page):
    solution_box(page).fill("one\ntwo\nthree")
    expect_steps(page, "one", "two", "three")
    page.get_by_role("button", name="Correct step 1").focus()
    page.keyboard.press("Enter")
    page.keyboard.press("ArrowDown")
    expect(page.get_by_role("button", name="Correct step 2")).to_be_focused()
    page.keyboard.press("Alt+ArrowUp")
    expect_steps(page, "two", "one", "three")
    page.keyboard.press("e")
    expect(page.get_by_label("Text of step 1")).to_be_focused()
    page.keyboard.press("ControlOrMeta+a")
    page.keyboard.type("m is a letter here")
    page.get_by_role("button", name="Done").press("Enter")
    expect_steps(page, "m is a letter here", "one", "three")
    page.keyboard.press("m")
    expect_steps(page, "m is a letter here\none", "three")
    page.keyboard.press("i")
    expect(page.get_by_label("Text of step 2")).to_be_focused()
    page.keyboard.type("between")
    page.keyboard.press("Escape")
    # What was typed is dropped, and the empty step with it.
    expect_steps(page, "m is a letter here\none", "three")
    page.keyboard.press("Delete")
    expect_steps(page, "three")
    page.keyboard.press("Control+z")
    expect_steps(page, "m is a letter here\none", "three")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_contain_text("merge it with the next")
    page.keyboard.press("Escape")


@pytest.mark.slow
def test_an_evaluator_that_gives_validity_only_is_never_called_redundant(opened, sqlite_store, mixed):
    token = Entered.of(Trace.of(PROBLEM, STEPS[:3]), ["tiny", "two"]).token()
    with served(sqlite_store, mixed) as base, opened(base) as page:
        page.goto(f"/?s={token}")
        # A permalink is followed for its result.
        expect(page.locator(".said strong").first).to_be_in_viewport()
        page.goto(f"/evidence?s={token}&evaluator=two")
        bar = page.locator("ol.steps .bar").first
        page.get_by_label("Steps revealed").fill("1")
        expect(bar).to_have_attribute("aria-label", re.compile(r"^after step 1: validity \d\.\d\d; (not )?valid$"))


def place_of(part):
    """The box of a part of a page within the document, however far that is scrolled."""
    x, y, width, height = (part.bounding_box()[key] for key in ("x", "y", "width", "height"))
    left, top = part.evaluate("() => [scrollX, scrollY]")
    return [x + left, y + top, width, height]


@pytest.mark.slow
def test_nothing_moves_that_a_person_aims_at_and_evaluators_fit_side_by_side(opened):
    with opened(width=390) as page:
        page.goto("/")
        button = page.get_by_role("button", name="Score", exact=True)
        before = place_of(button)
        page.get_by_label("Problem").fill(PROBLEM * 6)
        page.get_by_role("textbox", name="Solution").fill(
            "\n".join(f"{number}. {'1 + 1 = 2. ' * 30}" for number in range(1, 31))
        )
        expect(page.locator("ol.preview > li")).to_have_count(30)
        page.get_by_role("button", name="Correct step 1", exact=True).click()
        page.get_by_role("button", name="Delete").click()
        expect(page.locator("ol.preview > li")).to_have_count(29)
        # Browsers round to parts of a pixel.
        assert place_of(button) == pytest.approx(before, abs=1)
        page.get_by_label("mini-causal", exact=True).check()
        page.get_by_role("link", name="From factors to roots").click()
        expect(page.locator("#result ol.steps > li")).to_have_count(5)
        expect(page.locator("ol.steps > li").first.locator(".bar")).to_have_count(4)
        expect(page.locator(".who strong")).to_have_text(["mini-bidir", "mini-causal"])
        assert overflow(page) <= 0
        inner = page.locator(".wide").evaluate("box => [box.scrollWidth, box.clientWidth]")
        assert inner[0] <= inner[1]


def test_a_solution_that_cannot_be_scored_stays_with_a_notice_and_an_example_is_scored(page):
    example = read_gallery()[0]
    page.goto("/")
    page.get_by_label("mini-bidir").uncheck()
    page.get_by_role("link", name=example.meta["title"]).click()
    expect(page.locator("#refusal .notice")).to_contain_text("No evaluator is chosen.")
    expect(page.get_by_label("Problem")).to_have_value(example.problem)
    page.get_by_label("mini-bidir").check()
    page.get_by_label("Problem").fill("q")
    page.get_by_role("textbox", name="Solution").fill('["a", 3]')
    page.get_by_role("button", name="Score", exact=True).click()
    expect(page.locator("#refusal .notice")).to_contain_text("step 2 of the list is 3")
    expect(page.get_by_label("Problem")).to_have_value("q")
    expect(page.get_by_role("textbox", name="Solution")).to_have_value('["a", 3]')
    page.reload()
    expect(page.get_by_label("Problem")).to_have_value("q")
    expect(page.get_by_role("textbox", name="Solution")).to_have_value('["a", 3]')
    page.get_by_role("link", name=example.meta["title"]).click()
    expect(page.locator("#result ol.steps > li")).to_have_count(len(example.steps))
    expect(page.get_by_label("Problem")).to_have_value(example.problem)
    expect(page.locator(".reveals")).to_contain_text("step")


def test_a_paste_that_is_too_long_is_refused_where_one_looks(page):
    """Before it is in the box, whose layout would take minutes."""
    enter(page, SOLUTION)
    solution_box(page).fill("x = 1.\n" * 43_000)
    expect(page.locator("#preview")).to_have_text(
        "The text is longer than 300,000 characters. Score a shorter solution."
    )
    assert len(solution_box(page).input_value()) < 1_000


def test_a_step_is_edited_where_it_stands_and_scored_when_typing_pauses(page):
    # On a busy machine scoring takes seconds, and what is typed would be scored once the edit ends.
    page.add_init_script("performance.now = () => 0")
    score(page, PROBLEM, SOLUTION)
    expect(page.locator("ol.steps > li")).to_have_count(5)
    page.wait_for_url(re.compile(r"\?s="))
    token, was = (
        parse_qs(urlsplit(page.url).query)["s"][0],
        page.locator("ol.steps > li").last.locator(".num").last.text_content(),
    )
    page.get_by_role("button", name="Edit step 5").click()
    area = page.get_by_label("Text of step 5")
    expect(area).to_be_focused()
    page.keyboard.press("Control+a")
    page.keyboard.type("Check: $2")
    expect(page.locator(".earlier")).to_contain_text("1 edited")
    # The box, the list and the result say the same, and typing goes on.
    expect(solution_box(page)).to_have_value(re.compile(r"\n5\. Check: \$2$"))
    expect(page.locator("ol.preview > li").last).to_contain_text("Check: $2")
    expect(area).to_be_focused()
    page.keyboard.type(" \\cdot 3 = 6$, as it should be.")
    expect(solution_box(page)).to_have_value(re.compile("as it should be.$"))
    # It is still compared with what stood there before the edit, which Back brings back.
    page.wait_for_url(lambda url: parse_qs(urlsplit(url).query).get("before") == [token])
    page.keyboard.press("Control+Enter")
    expect(page.locator("ol.steps textarea")).to_have_count(0)
    expect(page.locator("#announced")).to_contain_text(re.compile("mini-bidir (blames|is|does)"))
    expect(page.locator("ol.steps > li").last.locator(".katex")).to_have_count(1)
    page.go_back()
    expect(page.locator("ol.steps > li").last.locator(".num").last).to_have_text(was)
    expect(solution_box(page)).to_have_value(SOLUTION)
    is_given_up_with_escape(page)
    thresholds_judge_anew_around_the_sliders(page)


def is_given_up_with_escape(page):
    row = page.locator("ol.steps > li").nth(1)
    # Not `inner_text`: that of a step whose drawing Chromium puts off is empty.
    before = row.text_content()
    row.locator(".t").click()
    page.keyboard.type(" And more.")
    expect(page.locator(".earlier")).to_contain_text("1 edited")
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name="Edit step 2")).to_be_focused()
    expect(page.locator(".step-change")).to_have_count(0)
    expect(solution_box(page)).to_have_value(SOLUTION)
    assert row.text_content() == before
    # A step cannot be emptied: what was there comes back.
    row.locator(".t").click()
    page.keyboard.press("Control+a")
    page.keyboard.press("Delete")
    page.get_by_label("Problem").click()
    expect(page.locator("ol.steps textarea")).to_have_count(0)
    assert row.text_content() == before


@pytest.mark.slow
def test_keys_score_from_every_text_and_a_long_solution_has_a_strip_of_marks(page):
    for key in ("Control+Enter", "Shift+Enter"):
        page.goto("/")
        page.get_by_role("textbox", name="Solution").fill("\n".join(f"{i}. This is {i}." for i in range(1, 13)))
        page.get_by_label("Problem").fill("Count to 12.")
        page.keyboard.press(key)
        expect(page.locator("ol.steps > li")).to_have_count(12)
        expect(page.locator("#announced")).to_have_text(
            re.compile("mini-bidir (blames|is|,)|^No step is called wrong")
        )
        page.get_by_role("button", name="Correct step 2", exact=True).click()
        page.keyboard.press("e")
        page.get_by_label("Text of step 2").fill("It is 2, again.")
        page.keyboard.press(key)
        expect(page.locator("ol.steps > li .t").nth(1)).to_have_text(re.compile("^It is 2, again."))
    expect(page.locator(".overview .place")).to_have_text(re.compile(r" · \d+ flags?$"))
    more(page)
    page.get_by_label("Valid from").fill("1")
    expect(page.locator(".overview .place")).to_have_text(re.compile(" · 12 flags$"))
    strip = page.get_by_role("slider", name="Place in the solution")
    strip.press("End")
    expect(strip).to_have_attribute("aria-valuetext", "Step 12: online not valid, offline not valid")
    expect(page.get_by_role("button", name="Edit step 12")).to_be_in_viewport()
    expect(page.locator("#result")).not_to_have_attribute("data-stale", "")
    page.get_by_label("Problem").fill("Count to 13.")
    expect(page.locator("#result")).to_have_attribute("data-stale", "")


def test_a_result_is_of_what_is_entered_although_the_text_is_split_after_it(page):
    held: list[Route] = []
    page.route("**/score/split", lambda route: held.append(route))
    page.goto("/")
    page.get_by_label("Problem").fill("Count to 3.")
    page.get_by_role("textbox", name="Solution").fill("1. One.\n2. Two.\n3. Three.")
    page.keyboard.press("Control+Enter")
    expect(page.locator("#result ol.steps > li")).to_have_count(3)
    expect(page.locator("#preview ol.preview > li")).to_have_count(0)
    expect(page.locator("#result")).not_to_have_attribute("data-stale", "")
    for route in held:
        route.continue_()
    expect(page.locator("#preview ol.preview > li")).to_have_count(3)
    expect(page.locator("#result")).not_to_have_attribute("data-stale", "")
    page.unroute("**/score/split")
    page.get_by_role("textbox", name="Solution").fill("1. One.\n2. Two.\n3. Four.")
    expect(page.locator("#result")).to_have_attribute("data-stale", "")
    page.get_by_role("textbox", name="Solution").fill("1. One.\n2. Two.\n3. Three.")
    expect(page.locator("#result")).not_to_have_attribute("data-stale", "")


@pytest.mark.slow
def test_what_is_judged_so_far_is_shown_until_the_result_is_there(opened, tiny, tmp_path):
    evaluators, scorer = hold_up(tiny)
    scorer.known = [np.array([0.9, 0.05, 0.05], np.float32)]
    with (
        open_store(str(tmp_path / "store.db")) as store,
        served(store, evaluators) as base,
        opened(base=base) as page,
    ):
        score(page, PROBLEM, SOLUTION)
        expect(page.locator("#result .running .mark")).to_have_text(["✕1"])
        expect(page.locator("#result .running .flagged")).to_contain_text("Step 1")
        scorer.go.set()
        expect(page.locator("ol.steps > li")).to_have_count(5)
        expect(page.locator("#result .running")).to_have_count(0)


def test_the_last_of_several_clicks_counts_and_one_can_be_cancelled(opened):
    """Also those that come while an answer is on its way, or is drawn; and the server may be away meanwhile."""
    with opened(expected=("ERR_FAILED", "Failed to fetch")) as page:
        traffic = Traffic(page, "**/score/score")
        score(page, PROBLEM, SOLUTION)
        expect(page.locator("ol.steps > li")).to_have_count(5)
        traffic.state = "held"
        button = page.locator("#score")
        page.get_by_role("textbox", name="Solution").fill("1. First.")
        button.click()
        expect(button).to_have_text("Scoring")
        page.get_by_role("textbox", name="Solution").fill("1. Second.\n2. And so on.")
        button.click()
        traffic.let_go(2)
        expect(page.locator("ol.steps > li")).to_have_count(2)
        expect(button).to_have_text("Score")
        page.get_by_role("textbox", name="Solution").fill("1. Third.")
        button.click()
        page.get_by_role("button", name="Cancel").click()
        expect(page.locator("#scoring")).to_have_text("Cancelled.")
        expect(button).to_have_text("Score")
        expect(page.locator("ol.steps > li")).to_have_count(2)
        page.evaluate("window.sameDocument = true")
        traffic.state = "broken"
        button.click()
        expect(page.locator("body > .away")).to_have_text(re.compile("The server does not answer"))
        traffic.state = ""
        expect(page.locator("body > .away")).to_have_count(0, timeout=20_000)
        button.click()
        expect(page.locator("#result ol.steps > li")).to_have_count(1)
        expect(page.get_by_role("button", name="Cancel")).to_be_hidden()
        assert page.evaluate("window.sameDocument")
