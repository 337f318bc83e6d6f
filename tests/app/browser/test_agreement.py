"""The page of agreement in a real browser: by keyboard, on a phone, for everybody."""

import pytest
from playwright.sync_api import expect

from stepsight.core.trace import Trace
from tests.app.annotate.test_agreement import PATH
from tests.app.browser.acts import overflow
from tests.serving import served
from tests.storage.labelling.samples import campaign, label_all, person, take

LONG = Trace.of("Add up.", [f"Step {i}." for i in range(1, 21)], ["pos"] * 20, id="a-long-trace-" + "x" * 60)
SHORT = Trace.of("What is 1 + 1?", ["It is a sum.", "So 3."], ["pos", "neg"], id="short")
# Of the long trace everybody differs in every other step, of the short one in its first.
SAID = {
    "ada": (["pos"] * 20, ["pos", "neg"]),
    "bo": (["pos", "neg"] * 10, ["pos", "neg"]),
    "a person with a rather long name": (["pos", "neu"] * 10, ["neu", "neg"]),
}


@pytest.fixture(scope="module")
def address(module_store, evaluators):
    of = campaign(module_store, (LONG, SHORT), overlap=3)
    for name, answers in SAID.items():
        user = person(module_store, name)
        for labels in answers:
            label_all(module_store, take(module_store, of, user), user, labels)
    with served(module_store, evaluators) as base:
        yield base


@pytest.mark.slow
def test_arrows_move_through_the_heatmap_and_enter_opens_the_trace(page):
    page.goto(f"{PATH}?campaign=1")
    first = page.get_by_role("link", name="a-long-trace")
    first.focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator(":focus")).to_have_attribute("aria-label", "step 1: 3 pos; gold pos")
    for _ in range(4):
        page.keyboard.press("ArrowRight")
    expect(page.locator(":focus")).to_have_attribute("aria-label", "step 5: 3 pos; gold pos")
    # The trace below ends earlier.
    page.keyboard.press("ArrowDown")
    expect(page.locator(":focus")).to_have_attribute("aria-label", "step 2: 3 neg; gold neg")
    # At the edge nothing moves.
    page.keyboard.press("ArrowDown")
    expect(page.locator(":focus")).to_have_attribute("aria-label", "step 2: 3 neg; gold neg")
    # Who comes back by Tab finds the cell last moved to.
    assert page.locator("table[data-moves] td a[tabindex='0']").count() == 1
    page.keyboard.press("Enter")
    page.wait_for_url("**/annotate/adjudicate?campaign=1&item=2")


@pytest.mark.slow
def test_the_heatmap_scrolls_within_a_phone(opened):
    with opened(width=390, height=800) as page:
        page.goto(f"{PATH}?campaign=1")
        heat = page.get_by_role("region", name="Agreement step by step")
        assert heat.evaluate("region => region.scrollWidth > region.clientWidth")
        assert overflow(page) == 0
