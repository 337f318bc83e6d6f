"""How long the Score page takes from the click to the picture, the scoring itself left out.

    python -m tests.bench page

A trace of 30 steps with formulas, in headless Chromium. Two solutions that differ in one step are scored in turn:
after the first rounds both judgments are kept, so that what remains is the page's own share: the request, the HTML
with the comparison of the two, and the browser drawing it, formulas included.

Then long solutions are pasted and scored: the seconds from the click until the first marks are seen, and until all
steps are judged.
"""

import statistics
import tempfile
import time
from pathlib import Path

from playwright.sync_api import sync_playwright

from tests.bench.figures import Figure
from tests.browser import launch, until
from tests.serving import serving

STEPS = 30
WARM, ROUNDS = 4, 30
LONG = {120: "{0} + {1} = {2}, so we have {2} apples.", 500: "{0}+{1}={2}"}
"""The steps of long solutions by their number. 500 of them fill mini-bidir's context of 4,096 tokens."""

# From the click until the frame in which the new result stands with all its formulas has been painted.
_CLICK = """() => new Promise((resolve) => {
  const old = document.querySelector("#result section.scored");
  const start = performance.now();
  const look = () => {
    const section = document.querySelector("#result section.scored");
    const isThere = section && section !== old && !section.querySelector(".math:not([data-done])");
    if (!isThere) return requestAnimationFrame(look);
    requestAnimationFrame(() => setTimeout(() => resolve(performance.now() - start)));
  };
  document.querySelector("#score").click();
  requestAnimationFrame(look);
})"""


def solution(ending):
    """A numbered solution of `STEPS` steps."""
    lines = [
        f"{n}. We have $x_{{{n}}} = \\frac{{{n}}}{{2}} + {n}^2$ and so $y = {n + 3}$." for n in range(1, STEPS)
    ]
    return "\n".join([*lines, f"{STEPS}. {ending}"])


def measure(page, evaluators):
    """Milliseconds from click to picture, a value per round."""
    page.goto("/")
    page.get_by_label("Problem").fill("Add up $x_1 + \\dots + x_{29}$.")
    for box in page.locator("#evaluators input").all()[:evaluators]:
        box.check()
    times = []
    for number in range(WARM + ROUNDS):
        ending = f"So the answer is ${number % 2}$."
        page.get_by_role("textbox", name="Solution").fill(solution(ending))
        page.locator("ol.preview > li").last.get_by_text("So the answer is").wait_for()
        until(page, "n => document.querySelector('ol.preview').dataset.steps.includes(n)", arg=ending)
        taken = float(page.evaluate(_CLICK))
        if number >= WARM:
            times.append(taken)
    return times


def long_solution(steps):
    """A numbered solution of this many additions."""
    total, lines = 0, []
    for number in range(steps):
        other = number % 7 + 2
        lines.append(f"{number + 1}. " + LONG[steps].format(total, other, total + other))
        total = (total + other) % 90
    return "\n".join(lines)


def measure_long(page, steps):
    """Seconds from the click until the first marks are seen, and until the result is."""
    page.goto("/")
    page.get_by_label("Problem").fill("Add the numbers.")
    page.get_by_role("textbox", name="Solution").fill(long_solution(steps))
    page.locator("ol.preview > li").nth(steps - 1).wait_for()
    start = time.perf_counter()
    page.locator("#score").click()
    page.locator("#result :is(.running .mark, section.scored)").first.wait_for()
    first = time.perf_counter() - start
    page.locator("#result section.scored").wait_for(timeout=600_000)
    return first, time.perf_counter() - start


def figures():
    """Measure one and two evaluators, then long solutions."""
    with tempfile.TemporaryDirectory() as folder, serving(Path(folder)) as address, sync_playwright() as playwright:
        browser = launch(playwright)
        for evaluators in (1, 2):
            page = browser.new_page(base_url=address, viewport={"width": 1280, "height": 1000})
            times = sorted(measure(page, evaluators))
            many = "2 evaluators" if evaluators == 2 else "1 evaluator"
            what = f"Score, {STEPS} steps, {many}: click to picture without the scoring"
            yield Figure(what, statistics.median(times), "ms", 100)
            page.close()
        page = browser.new_page(base_url=address, viewport={"width": 1280, "height": 1000})
        for steps in LONG:
            first, last = measure_long(page, steps)
            yield Figure(f"Score, {steps} steps: click to the first marks", first, "s", 1)
            yield Figure("until all its steps are judged, online and offline", last, "s")
        browser.close()
