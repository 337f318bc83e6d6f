"""The Evidence page as a person uses it: the gallery, one trace, and the file to send to someone."""

import json
import re

import pytest
from playwright.sync_api import expect

from tests.app.browser.acts import PROBLEM, SOLUTION, beat, hold_pace, overflow
from tests.app.entries import typed
from tests.app.injection import HTML

# A solution of the gallery, whose second step loses 0.20 of its validity without the first.
RESTING = """Both sides have the factor x.
Dividing by x gives x = 5 as the only solution.
But x = 0 gives 0 * 0 = 0 and 5 * 0 = 0, so 0 is also a solution, a contradiction.
The solutions are 0 and 5."""
LAST = 4
"""The place of the last step of `SOLUTION`."""


def open_trace(page):
    page.goto(f"/evidence?s={typed(PROBLEM, SOLUTION, ('mini-bidir',)).token()}")
    expect(page.locator(".matrix tbody td.now, .matrix td[tabindex]")).to_have_count(1)


def cell(page, after, step):
    """Of the matrix, both counted from 0."""
    return page.locator(".matrix tbody tr").nth(after).locator("td").nth(step)


def shown(page):
    """The validities beside the bars that are shown."""
    return [float(item.text_content()) for item in page.locator("li:not(.unrevealed) .num").all()]


def test_a_solution_is_revealed_played_and_walked(page):
    open_trace(page)
    reveals_step_by_step(page)
    plays_to_the_end(page)
    is_walked_by_keyboard(page)
    shows_what_rests_on_what(page)


def reveals_step_by_step(page):
    told = page.locator(".told:visible")
    # What the sentence says stands in the matrix, in two rows of one column.
    said = re.fullmatch(
        r"Step (\d) (?:fell|rose) from (0\.\d\d) to (0\.\d\d) when step (\d) was revealed\.(?: At the end .*)?",
        told.locator(".say").text_content() or "",
    )
    assert said is not None
    step, revealed = int(said[1]) - 1, int(said[4]) - 1
    expect(cell(page, revealed - 1, step)).to_have_text(said[2])
    expect(cell(page, revealed, step)).to_have_text(said[3])
    expect(told.locator(".without")).to_have_text(re.compile(r"^Without step \d its validity would be 0\.\d\d"))
    offline = [float(cell(page, LAST, i).text_content()) for i in range(5)]
    assert shown(page) == offline
    # The slider takes steps back: the bars are then those of that row of the matrix.
    slider = page.get_by_label("Steps revealed")
    slider.focus()
    page.keyboard.press("ArrowLeft")
    expect(page.locator(".player .now")).to_have_text("after step 4 of 5")
    expect(page.locator("li.unrevealed")).to_have_count(1)
    assert shown(page) == [float(cell(page, 3, i).text_content()) for i in range(4)]
    assert cell(page, 3, step).text_content() != cell(page, LAST, step).text_content()
    expect(page.locator(f"svg[aria-label^='Validity of step {step + 1}']")).to_be_visible()
    # The address follows, and opens the same again.
    assert "after=4" in page.url
    again = page.context.new_page()
    again.goto(page.url)
    expect(again.locator(".player .now")).to_have_text("after step 4 of 5")


def plays_to_the_end(page):
    page.keyboard.press("ArrowRight")
    expect(page.locator(".player .now")).to_have_text("after step 5 of 5")
    hold_pace(page)
    page.get_by_role("button", name="Play").click()
    expect(page.locator(".player .now")).to_have_text("after step 1 of 5")
    expect(page.locator("li.unrevealed")).to_have_count(4)
    for told in (".told:not([hidden])", ".opened .conclusion", "li.unrevealed .t", ".matrix tr.later td"):
        expect(page.locator(told).first).to_be_hidden()
    assert beat(page)
    expect(page.locator(".player .now")).to_have_text("after step 2 of 5")
    page.get_by_role("button", name="Pause").click()
    page.keyboard.press("ArrowRight")
    expect(page.locator(".player .now")).to_have_text("after step 3 of 5")
    assert not beat(page)
    page.keyboard.press("p")
    assert beat(page)
    assert beat(page)
    expect(page.locator(".player .now")).to_have_text("after step 5 of 5")
    expect(page.get_by_role("button", name="Play")).to_be_visible()
    expect(page.locator(".opened .conclusion")).to_be_visible()


def is_walked_by_keyboard(page):
    cell(page, LAST, 1).click()
    page.keyboard.press("ArrowRight")
    expect(cell(page, LAST, 2)).to_be_focused()
    expect(page.locator(".told:visible")).to_have_attribute("data-of", "2")
    page.keyboard.press("ArrowUp")
    expect(cell(page, 3, 2)).to_be_focused()
    expect(cell(page, 3, 2)).to_have_accessible_name(
        re.compile(r"validity 0\.\d\d, (not valid|valid|redundant), after step 4")
    )
    expect(cell(page, 2, 2)).to_have_accessible_name(re.compile(", online$"))
    page.keyboard.press("ArrowUp")
    # Above the diagonal a row is the step that is left out, and what is revealed stays.
    page.keyboard.press("ArrowUp")
    expect(cell(page, 1, 2)).to_be_focused()
    expect(cell(page, 1, 2)).to_have_attribute("title", re.compile(r"^step 3 without step 2: [+−]?\d\.\d\d$"))
    page.keyboard.press("ArrowDown")
    expect(cell(page, 2, 2)).to_be_focused()
    expect(page.locator(".player .now")).to_have_text("after step 3 of 5")
    page.get_by_role("button", name="Step 2", exact=True).click()
    colour = "e => getComputedStyle(e).backgroundColor"
    page.keyboard.press("p")
    assert beat(page)
    assert beat(page)
    expect(page.locator(".player .now")).to_have_text("after step 5 of 5")
    found = [page.locator(f".matrix td.{kind}").first.evaluate(colour) for kind in ("yes", "no")]
    assert found[0] != found[1]
    page.get_by_text("More: steps left out").click()
    expect(page.locator(".curve-key")).to_contain_text("Validity of step 2")


def shows_what_rests_on_what(page):
    page.goto(f"/evidence?s={typed('Find all solutions of x^2 = 5x.', RESTING, ('mini-causal',)).token()}")
    expect(page.locator(".constant")).to_contain_text("mini-causal reads a solution from left to right")
    # It begins with a step that others rest on. Each has an arc, and its loss both beside its text and in a cell.
    marks = page.locator("li.related .rest-mark")
    expect(marks.first).to_have_text(re.compile(r"^rests on \d \(−0\.\d\d\)$"))
    carrying = int(page.locator("li.chosen .pick").text_content() or "") - 1
    assert page.locator("svg.arcs path.carries").count() == marks.count()
    losses = {cell(page, carrying, i).text_content() for i in range(carrying + 1, 4)}
    assert {re.sub(r".*\((.*)\)", r"\1", mark) for mark in marks.all_text_contents()} <= losses
    told = page.locator(".told:visible")
    expect(told.locator(".rests")).to_have_text(re.compile(rf"^Without step {carrying + 1}, steps? "))
    # The step that rests on it says so too.
    page.locator("li.related .pick").first.click()
    expect(page.locator("svg.arcs path.rests-on").first).to_be_attached()
    expect(told.locator(".rests")).to_contain_text(f"rests on step {carrying + 1}")


def test_the_gallery_leads_from_trace_to_trace(page):
    page.goto("/evidence")
    first = page.locator("ol.turns li").first
    first.locator("a").click()
    expect(page.locator(".pager")).to_contain_text("gallery · ")
    opened = page.url
    expect(page.locator(".told:visible")).to_contain_text("agrees with the revision")
    page.keyboard.press("j")
    page.wait_for_url(lambda url: url != opened)
    page.keyboard.press("k")
    page.wait_for_url(lambda url: url == opened.partition("&step=")[0])
    trace = re.search(r"trace=(\d+)", opened)
    assert trace is not None
    expect(page.locator(f".pager[data-trace='{trace[1]}']")).to_be_visible()


@pytest.mark.slow
def test_a_long_solution_fits_and_is_read_from_flag_to_flag_and_group_by_group(opened):
    steps = "\n".join(f"{i}. Then $x_{{{i}}} = {i} + {i} = {2 * i + (i == 50)}$." for i in range(1, 70))
    # A table of a step is none of the page's own.
    steps += "\n\n| a | b |\n|---|---|\n| 1 | 2 |"
    # At this threshold the evaluator calls nothing wrong.
    address = f"/evidence?s={typed('What is $x$?', steps, ('mini-causal',), validity=0.0, redundancy=1.0).token()}"
    with opened(width=390) as page:
        page.goto(address)
        expect(page.locator(".matrix td[tabindex]")).to_have_count(1)
        for width in (390, 1280):
            page.set_viewport_size({"width": width, "height": 1000})
            assert overflow(page) <= 0
            matrix = page.locator(".matrix").bounding_box()
            table = page.locator(".matrix table").bounding_box()
            assert table["width"] <= matrix["width"] + 1
        # The curve stands beside the matrix.
        assert page.locator(".story").bounding_box()["x"] > table["x"] + table["width"]
        is_read_from_flag_to_flag(page)
        opens_group_by_group(page)


def is_read_from_flag_to_flag(page):
    expect(page.locator(".overview .place")).to_have_text("69 steps · 1 flag")
    item = page.locator("ol.steps > li")
    page.keyboard.press("n")
    expect(item.nth(49)).to_be_focused()
    expect(item.nth(49)).to_be_in_viewport()
    expect(page.locator("#announced")).to_have_text("Step 50: an equation fails")


def opens_group_by_group(page):
    names = page.locator(".matrix thead th")
    # Groups of nine: that of the chosen step is open, beside seven others.
    expect(names).to_have_count(9 + 7)
    page.locator(".matrix thead th[title='steps 46 to 54']").click()
    expect(page.locator(".matrix thead th:not([data-group])")).to_have_text([str(i) for i in range(46, 55)])
    expect(page.locator(".matrix td[data-equation]")).not_to_have_count(0)
    page.locator(".matrix td[tabindex]").focus()
    for _ in range(9):
        page.keyboard.press("ArrowRight")
    # The next group opens when the last step of this one is left.
    expect(page.locator(".matrix thead th:not([data-group])").first).to_have_text("55")
    expect(page.locator(".matrix td[tabindex]")).to_be_focused()


@pytest.mark.slow
def test_the_file_works_by_itself(page, browser, tmp_path):
    steps = [f"{text} $x^{{{i}}}$" for i, text in enumerate(HTML[:12])]
    form = typed(HTML[1] + " Solve $x^2$.", json.dumps(steps), ("mini-bidir",))
    page.goto(f"/evidence?s={form.token()}")
    expect(page.locator(".matrix td[tabindex]")).to_have_count(1)
    page.get_by_role("button", name="Step 3", exact=True).click()
    with page.expect_download() as download:
        page.get_by_role("link", name="Download as a file").click()
    path = tmp_path / download.value.suggested_filename
    download.value.save_as(path)
    assert path.stat().st_size < 1_000_000
    context = browser.new_context(offline=True)
    troubles: list[str] = []
    context.on("console", lambda message: troubles.append(message.text) if message.type == "error" else None)
    context.on("weberror", lambda error: troubles.append(str(error.error)))
    context.on("dialog", lambda dialog: (troubles.append(dialog.message), dialog.dismiss()))
    context.on("request", lambda r: None if r.url.startswith(("file:", "data:")) else troubles.append(r.url))
    there = context.new_page()
    there.goto(path.as_uri())
    expect(there.locator(".told:visible")).to_have_attribute("data-of", "2")
    expect(there.locator(".told:visible .without")).not_to_be_empty()
    expect(there.locator(".steps .katex")).to_have_count(12)
    assert there.evaluate("document.fonts.check('16px KaTeX_Math')")
    there.keyboard.press("ArrowLeft")
    expect(there.locator(".player .now")).to_have_text("after step 11 of 12")
    there.keyboard.press("?")
    expect(there.locator("dialog.keys")).to_contain_text("reveal the next step")
    there.keyboard.press("Escape")
    for step, text in enumerate(HTML[:12]):
        expect(there.locator("ol.steps .t").nth(step)).to_contain_text(text)
    assert there.evaluate("window.hit ?? null") is None
    context.close()
    assert troubles == []
