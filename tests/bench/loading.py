"""How soon a page is there, and how far it moves before anybody touches it.

    python -m tests.bench loading

Each page in a new context of headless Chromium, on a desktop's and a phone's width: first and largest contentful
paint in milliseconds and cumulative layout shift, medians of `ROUNDS`.
"""

import statistics
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

from tests.bench.figures import Figure
from tests.browser import launch
from tests.serving import serving

PAGES = (
    "/", "/evidence", "/evidence?trace=1", "/browse", "/browse?trace=1", "/results", "/results?dataset=gallery",
    "/jobs", "/data", "/annotate",
)  # fmt: skip
WIDTHS = (1280, 390)
ROUNDS = 3
_SETTLED = 2000
_WATCH = """window.seen = { FCP: 0, LCP: 0, CLS: 0 };
const watch = (type, look) =>
  new PerformanceObserver((list) => list.getEntries().forEach(look)).observe({ type, buffered: true });
watch("paint", ({ name, startTime }) => name === "first-contentful-paint" && (seen.FCP = startTime));
watch("largest-contentful-paint", ({ startTime }) => (seen.LCP = startTime));
watch("layout-shift", ({ value, hadRecentInput }) => (seen.CLS += hadRecentInput ? 0 : value));"""


def load(browser, address, width):
    """What one loading of a page took."""
    context = browser.new_context(viewport={"width": width, "height": 900})
    page = context.new_page()
    page.add_init_script(_WATCH)
    page.goto(address)
    page.wait_for_timeout(_SETTLED)
    measures = page.evaluate("seen")
    context.close()
    return measures


def medians(browser, address, width):
    """The median of each measure; the first loading, which fills the server's caches, does not count."""
    rounds = [load(browser, address, width) for _ in range(ROUNDS + 1)][1:]
    return {name: statistics.median(one[name] for one in rounds) for name in rounds[0]}


def figures():
    """Measure each page and width; print all, and return the greatest."""
    measured = []
    with tempfile.TemporaryDirectory() as folder, serving(Path(folder)) as base, sync_playwright() as playwright:
        browser = launch(playwright)
        for path in PAGES:
            for width in WIDTHS:
                measures = medians(browser, base + path, width)
                measured.append(measures)
                shown = f"FCP {measures['FCP']:5.0f}  LCP {measures['LCP']:5.0f}  CLS {measures['CLS']:.3f}"
                print(f"{path:26} {width:5}  {shown}", flush=True)
        browser.close()
    pages = f"of {len(PAGES)} pages at {len(WIDTHS)} widths"
    yield Figure(f"first paint, greatest {pages}", max(measures["FCP"] for measures in measured), "ms", 200)
    yield Figure(f"largest paint, greatest {pages}", max(measures["LCP"] for measures in measured), "ms", 600)
    yield Figure(f"shift of the layout, greatest {pages}", max(measures["CLS"] for measures in measured), "", 0.02)
