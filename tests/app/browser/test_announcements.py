"""What a screen reader hears of itself: one sentence for what has changed, and never the page."""

import pytest
from playwright.sync_api import expect

from stepsight.core.trace import Trace
from stepsight.storage.labelling.campaigns import create_campaign
from stepsight.storage.labelling.plan import CampaignPlan
from stepsight.storage.people.users import local_user
from tests.app.browser.acts import PROBLEM, SOLUTION, listening, score
from tests.browser import until
from tests.serving import served
from tests.storage.samples import add, many

LONGEST = 200
# Keeps what each live region says whenever it changes, as a screen reader does: the whole of an atomic one, what is
# new of any other. An alert speaks when it comes.
LISTENER = """
window.heard = [];
const LIVE = "[aria-live]:not([aria-live=off]), [role=status], [role=alert], [role=log], output";
const said = (node) => node.innerText?.trim() ?? node.textContent.trim();
const hear = (text, region) => text && heard.push({ text, region: region.id || region.className || region.role });
new MutationObserver((changes) => {
  const atomic = new Set();
  for (const { type, target, addedNodes } of changes) {
    const node = type === "characterData" ? target.parentElement : target;
    const region = node?.closest?.(LIVE);
    if (region?.closest(".thresholds")) continue;
    if (region && (region.ariaAtomic === "true" || region.role === "status")) atomic.add(region);
    else if (region && type === "characterData") hear(said(node), region);
    else if (region) for (const added of addedNodes) hear(said(added), region);
    for (const added of addedNodes) {
      if (added.matches?.("[role=alert]")) hear(said(added), added);
      for (const alert of added.querySelectorAll?.("[role=alert]") ?? []) hear(said(alert), alert);
    }
  }
  for (const region of atomic) hear(said(region), region);
}).observe(document, { subtree: true, childList: true, characterData: true });
"""
STEPS = [
    f"Step {number} is written so that it takes a whole line of the page, and {number} is right."
    for number in range(9)
]
LONG = Trace.of("What is the sum of all that was said before? " * 6, STEPS, ["pos"] * 9, id="long")


@pytest.fixture(scope="module")
def store(module_store):
    add(module_store, [LONG, *many(60)])
    return module_store


@pytest.fixture(scope="module")
def address(store, evaluators):
    with served(store, evaluators) as base:
        yield base


@pytest.fixture
def page(opened):
    """A page that notes what is read out."""
    with opened(expected=["status of 4"]) as page:
        page.add_init_script(LISTENER)
        yield page


def heard(page, *expected):
    """Each of these was read out, and nothing that is longer than a sentence; what was read out is forgotten."""
    for text in expected:
        until(page, "(text) => heard.some((one) => one.text.includes(text))", arg=text)
    found = page.evaluate("heard.splice(0)")
    assert [one for one in found if len(one["text"]) > LONGEST] == []


@pytest.mark.slow
def test_a_change_of_a_page_is_read_out_in_one_sentence(page, store):
    while_scoring_and_editing(page)
    in_a_list_and_its_traces(page)
    in_results(page)
    in_jobs(page)
    while_labelling(page, store)
    in_evidence_and_a_presentation(page)


def while_scoring_and_editing(page):
    score(page, PROBLEM, SOLUTION)
    heard(page, "tiny")
    page.locator("ol.steps > li .t").nth(1).click()
    page.keyboard.press("End")
    page.keyboard.type(" And so on.")
    expect(page.locator("#result .earlier")).to_be_visible()
    heard(page)
    page.keyboard.press("Escape")
    page.locator(".further > summary").click()
    page.get_by_label("Dataset").fill("kept")
    page.get_by_role("button", name="Save as a trace").click()
    heard(page, "Saved as")
    page.get_by_role("button", name="Undo").first.click()
    page.get_by_label("Problem").fill("")
    page.get_by_role("button", name="Score").click()
    heard(page, "The problem is empty.")


def in_a_list_and_its_traces(page):
    page.goto("/browse?dataset=sums")
    listening(page)
    page.get_by_role("link", name="has an error").click()
    heard(page, "sums: 20 traces")
    page.get_by_role("link", name="Remove Gold: has an error").click()
    heard(page, "sums: 61 traces")
    page.get_by_role("link", name="Next", exact=True).click()
    heard(page, "sums: 61 traces, page 2")
    page.get_by_role("link", name="Previous", exact=True).click()
    expect(page.locator(".pager[data-page='1']")).to_be_visible()
    page.locator("a.open").first.click()
    heard(page, "sums · long, 1 of 61")
    page.keyboard.press("j")
    heard(page, "sums · 0, 2 of 61")
    page.goto("/browse?dataset=sums&q=zzzz&gold=any")
    listening(page)
    page.get_by_role("searchbox").fill("nothing")
    page.keyboard.press("Enter")
    heard(page, "sums: 0 traces")


def in_results(page):
    page.goto("/results")
    listening(page)
    page.get_by_label("Mode").select_option("online")
    heard(page, "Results, online")
    page.get_by_role("link", name="sums").first.click()
    heard(page, "sums")
    expect(page.locator("main [data-again]")).to_have_count(0)
    heard(page)


def in_jobs(page):
    page.goto("/jobs")
    listening(page)
    page.get_by_role("button", name="Start").click()
    page.get_by_role("button", name="Cancel").first.click()
    expect(page.get_by_role("button", name="Resume").first).to_be_visible()
    page.locator("select[name=dataset] option").first.evaluate("option => option.value = 'gone'")
    page.get_by_role("button", name="Start").click()
    heard(page, "There is no dataset 'gone'")


def while_labelling(page, store):
    plan = CampaignPlan(
        name="heard",
        dataset="sums",
        guideline="Say what is right. " * 40,
        ordering="file",
        after_submission="everything",
    )
    create_campaign(store, plan, local_user(store))
    page.goto("/annotate/label?campaign=1")
    listening(page)
    expect(page.locator("ol.steps > li[aria-current]")).to_have_count(1)
    page.keyboard.press("1")
    heard(page, "Step 1: neg.")
    page.keyboard.press("z")
    page.keyboard.press("Enter")
    heard(page, "Step 1 has no label yet.")
    for _ in STEPS:
        page.keyboard.press("3")
    heard(page, "Every step has its label. Enter submits.")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Submitted")).to_be_visible()
    heard(page)
    page.keyboard.press("n")
    expect(page.locator("ol.steps > li[aria-current]")).to_have_count(1)
    heard(page)


def in_evidence_and_a_presentation(page):
    page.goto("/evidence?trace=1&evaluator=tiny")
    listening(page)
    heard(page)
    page.get_by_role("button", name="Step 2").click()
    heard(page, "tep 2")
    page.get_by_role("link", name="Present", exact=True).click()
    expect(page.locator(".presents[data-started]")).to_be_visible()
    for _ in range(4):
        page.keyboard.press("ArrowRight")
    heard(page, "Step 1:")
