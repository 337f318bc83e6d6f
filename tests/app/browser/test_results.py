"""The Results page: from the overview to a dataset, its figures, and the traces behind a number."""

import csv
import re
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import expect

from tests.app.browser.acts import overflow
from tests.browser import until

# Measuring takes seconds, on a busy machine many.
MEASURED = 120_000


def query(page):
    return {key: value for key, (value,) in parse_qs(urlsplit(page.url).query).items()}


def test_from_the_overview_to_the_traces_behind_a_number(page):
    page.goto("/results")
    expect(page.get_by_role("heading", level=1)).to_have_text("Results")
    row = page.get_by_role("row").filter(has=page.get_by_role("rowheader", name="mini-bidir"))
    expect(row).to_be_visible(timeout=MEASURED)
    expect(page.locator("[data-again]")).to_have_count(0, timeout=MEASURED)
    page.get_by_label("Figure").select_option("sol_f1")
    expect(page.locator(".finding .caption")).to_contain_text("Sol-F1, offline")
    # The form is new, the focus stays.
    expect(page.get_by_label("Figure")).to_be_focused()
    page.get_by_label("Difference from").select_option("mini-causal")
    expect(row.locator("small.minus").first).to_have_text(re.compile(r"^[+-]?\d+\.\d \["), timeout=MEASURED)
    assert query(page) == {"figure": "sol_f1", "mode": "offline", "against": "mini-causal"}

    page.get_by_role("link", name="gallery, invalid errors").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("gallery")
    page.get_by_text("More: curves").click(timeout=MEASURED)
    confusion = page.get_by_role("region", name="labels by the gold and by argmax")
    expect(confusion).to_be_visible()
    page.locator(".finding summary").first.click()
    with page.expect_download() as download:
        page.locator(".finding").first.get_by_role("link", name="CSV").click()
    rows = list(csv.DictReader(Path(download.value.path()).read_text(encoding="utf-8-sig").splitlines()))
    assert {"mini-bidir", "baseline:length"} <= {row["evaluator"] for row in rows}

    # A number of the table leads to its traces, by keyboard.
    link = confusion.get_by_role("link").nth(1)
    link.focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**/browse?**")
    found = query(page)
    assert (found["dataset"], found["evaluator"], found["mode"]) == ("gallery", "mini-bidir", "offline")
    assert re.fullmatch("(neg|neu|pos)-(neg|neu|pos)", found["cell"])


@pytest.mark.slow
def test_figures_are_drawn_when_they_are_near_and_their_cells_lead_on_also_on_a_phone(page):
    page.goto("/results?dataset=gallery&mode=online")
    page.get_by_text("More: curves").click(timeout=MEASURED)
    expect(page.locator(".plot").first).to_be_visible()
    expect(page.locator(".plot .main-svg").first).to_be_attached(timeout=MEASURED)
    assert page.locator(".plot:has(.main-svg)").count() < page.locator(".plot").count()
    button = page.locator(".legend button").first
    button.click()
    expect(button).to_have_attribute("aria-pressed", "false")
    light = page.evaluate("getComputedStyle(document.querySelector('.xtick text')).fill")
    page.emulate_media(color_scheme="dark")
    until(page, "light => getComputedStyle(document.querySelector('.xtick text')).fill !== light", arg=light)
    # A picture is dark on white, also from a dark page, and has the curves that are shown.
    with page.expect_download() as download:
        page.get_by_role("button", name="Download as SVG").first.click()
    assert download.value.suggested_filename == "roc-of-validity-step-level-online.svg"
    picture = Path(download.value.path()).read_text(encoding="utf-8-sig")
    assert re.match(r"<svg [^>]*><rect [^>]*fill: rgb\(255, 255, 255\)", picture)
    assert "mini-causal, AUC" in picture
    assert "mini-bidir, AUC" not in picture
    assert light in picture
    assert set(re.findall("font-family: ([^,;]*)", picture)) == {"Arial"}
    # The print dialog has the picture alone, and what saves it as PDF takes its fonts along.
    page.evaluate("() => { window.print = () => document.documentElement.setAttribute('data-printed', ''); }")
    page.get_by_role("button", name="Download as PDF").first.click()
    expect(page.locator("html[data-printed] .picture-page svg").first).to_be_attached()
    pdf = page.pdf(prefer_css_page_size=True)
    assert (pdf.count(b"/Type /Page\n"), pdf.count(b"MediaBox [0 0 570")) == (1, 1)
    assert b"/FontFile2" in pdf
    page.evaluate("window.dispatchEvent(new Event('afterprint'))")
    expect(page.locator(".picture-page")).to_have_count(0)
    assert page.locator(".modebar-btn[data-title*='hare']").count() == 0
    matrix = page.get_by_label("Confusion matrix of").first
    matrix.scroll_into_view_if_needed()
    expect(matrix.locator(".heatmaplayer .hm image")).to_be_attached(timeout=MEASURED)
    plane = matrix.locator(".nsewdrag").bounding_box()
    # The first row is gold neg, the last column predicted pos.
    page.mouse.click(plane["x"] + plane["width"] * 5 / 6, plane["y"] + plane["height"] / 6)
    page.wait_for_url("**/browse?**")
    assert query(page)["cell"] == "neg-pos"
    assert query(page)["mode"] == "online"
    page.set_viewport_size({"width": 390, "height": 800})
    for path in ("/results", "/results?dataset=gallery"):
        page.goto(path)
        expect(page.locator(".finding").first).to_be_visible(timeout=MEASURED)
        assert overflow(page) <= 0
