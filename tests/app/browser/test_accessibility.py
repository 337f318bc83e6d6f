"""Every page under axe-core, light and dark: no serious or critical violation."""

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from tests.app.browser.acts import PROBLEM, SOLUTION, score

AXE = Axe()
# Where each page's content is there.
PAGES = {
    "/": "#examples",
    "/evidence": "main h1",
    "/evidence?trace=1": "main h1",
    "/browse": "#browse a[data-go]",
    "/browse?trace=1": "ol.steps > li",
    "/browse?trace=abc": ".notice",
    "/results": "main h1",
    "/results?dataset=gallery": "main h1",
    "/jobs": "main h1",
    "/api/v1/docs": "main h1",
}


def violations(page: Page) -> list[str]:
    """What axe-core calls serious or critical: the rule, the first element, and what is wrong with it."""
    found = AXE.run(page).response["violations"]
    return [
        f"{rule['id']}: {node['html'][:160]} {node['failureSummary'][:300]}"
        for rule in found
        if rule["impact"] in ("serious", "critical")
        for node in rule["nodes"][:3]
    ]


def settled(page: Page, there: str) -> None:
    expect(page.locator(there).first).to_be_visible()
    expect(page.locator("h1")).to_have_count(1)
    page.wait_for_timeout(400)


@pytest.mark.parametrize("path", PAGES)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_page_has_no_serious_violation(opened, path, scheme):
    with opened(color_scheme=scheme, expected=["status of 4"]) as page:
        page.goto(path)
        settled(page, PAGES[path])
        assert violations(page) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_scored_solution_has_none(opened, scheme):
    with opened(color_scheme=scheme) as page:
        score(page, PROBLEM, SOLUTION)
        settled(page, "#result ol.steps > li")
        assert violations(page) == []
        page.keyboard.press("Escape")
        page.locator(".keys-button").click()
        expect(page.locator("dialog.keys")).to_be_visible()
        assert violations(page) == []


def test_axe_finds_what_is_wrong(page):
    page.goto("/browse")
    settled(page, PAGES["/browse"])
    page.evaluate(
        "document.querySelector('main').insertAdjacentHTML('beforeend', '<button></button><img src=data:,>')"
    )
    assert {text.split(":")[0] for text in violations(page)} == {"button-name", "image-alt"}
