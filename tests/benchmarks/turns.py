"""How long it takes from the key that submits a trace to the next one, painted.

    python -m tests.benchmarks.turns [FILE]

Headless Chromium labels MR-MATH from `FILE` (default: `../shared/data/mr-math/mr-math_invalid_errors.json`) on a
server of this machine: in a campaign that shows nothing after submission, where the next trace follows the key, and
in one that shows everything, where first the submitted trace and then, by another key, the next one does. A time is
from the key's own moment to the frame after the one in which the trace stood, formulas included. Prints median and
largest of `TURNS`. Exits with 1 where a median is above `LIMIT` milliseconds.
"""

import statistics
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Page, expect, sync_playwright

from stepsight.app.scoring.evaluators import Evaluators
from stepsight.storage.database.store import Store, open_store
from stepsight.storage.labelling.campaigns import create_campaign
from stepsight.storage.labelling.plan import AfterSubmission, CampaignPlan
from stepsight.storage.people.users import local_user
from stepsight.storage.traces.imports import import_file
from tests.browser import launch, until
from tests.serving import served

TURNS = 20
LIMIT = 150.0
# Milliseconds after which the last frame is counted.
_SETTLED = 200
KIND = "mr-math-invalid"
MR_MATH = Path(__file__).parents[3] / "shared" / "data" / "mr-math" / "mr-math_invalid_errors.json"

_WATCH = """
window.turns = [];
let pressed = 0;
addEventListener("keydown", (event) => { if (event.key === "Enter") pressed = event.timeStamp; }, true);
const isTurn = ({ addedNodes }) => [...addedNodes].some(({ id }) => id === "labelling" || id === "review");
new MutationObserver((changes) => {
  if (!changes.some(isTurn)) return;
  const from = pressed;
  requestAnimationFrame(() => requestAnimationFrame(() => window.turns.push(performance.now() - from)));
}).observe(document.querySelector("main"), { childList: true, subtree: true });
"""


def measure(page: Page, store: Store, after: AfterSubmission) -> list[float]:
    """Milliseconds from each Enter to what it led to, painted; where everything is shown, to the review and to the
    next trace by turns."""
    plan = CampaignPlan(f"turns, {after}", KIND, "Say what is right.", after_submission=after)
    made = create_campaign(store, plan, local_user(store))
    page.goto(f"/relabel/label?campaign={made.id}")
    until(page, "window.early === null")
    page.evaluate(_WATCH)
    for _ in range(TURNS):
        here = page.locator("#labelling")
        slot = here.get_attribute("data-slot")
        for _ in range(here.locator("ol.steps > li").count()):
            page.keyboard.press("3")
        expect(page.locator(".status")).to_contain_text("all saved")
        page.keyboard.press("Enter")
        if after is not AfterSubmission.NOTHING:
            expect(page.locator("#review")).to_be_visible()
            page.wait_for_timeout(_SETTLED)
            page.keyboard.press("Enter")
        expect(page.locator(f"#labelling:not([data-slot='{slot}']) li[aria-current]")).to_be_visible()
        page.wait_for_timeout(_SETTLED)
    times: list[float] = page.evaluate("window.turns")
    return times


def main() -> int:
    """Print the times; returns the exit code."""
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else MR_MATH
    medians = []
    with open_store(str(Path(tempfile.mkdtemp()) / "store.db")) as store, sync_playwright() as playwright:
        import_file(store, KIND, path)
        browser = launch(playwright)
        with served(store, Evaluators()) as base:
            page = browser.new_page(base_url=base)
            for after in AfterSubmission:
                times = measure(page, store, after)
                parts = {"to the next trace": times}
                if after is not AfterSubmission.NOTHING:
                    parts = {"to the submitted trace": times[::2], "from there to the next": times[1::2]}
                for name, part in parts.items():
                    medians.append(statistics.median(part))
                    figures = f"median {medians[-1]:4.0f} ms, largest {max(part):4.0f} ms, of {len(part)}"
                    print(f"{after:10} {name:24} {figures}", flush=True)
        browser.close()
    return 0 if max(medians) <= LIMIT else 1


if __name__ == "__main__":
    sys.exit(main())
