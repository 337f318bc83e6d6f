"""What a person does on the pages, and reads there."""

import re

from playwright.sync_api import Page, Route, expect

from stepsight.core.paths import asset
from tests.browser import until

PROBLEM = "The equation $x^2 - 5x + 6 = 0$ has two roots. Which?"
SOLUTION = """1. We look for two numbers that add to $-5$ and multiply to $6$.
2. The numbers are $-6$ and $1$, and $-6 + 1 = -5$.
3. The factors are $(x - 6)(x + 1) = 0$.
4. Hence $x = 6$ or $x = -1$.
5. Check: $6 \\cdot (-1) = -6$, not $6$, so the factoring is wrong."""


def score(page, problem, solution):
    """Enter a solution on the Score page and press the button."""
    page.goto("/")
    # The page is listening once the preview answers.
    page.get_by_role("textbox", name="Solution").fill("first")
    expect(page.locator("ol.preview li")).to_have_text(["first"])
    page.get_by_label("Problem").fill(problem)
    page.get_by_role("textbox", name="Solution").fill(solution)
    page.get_by_role("button", name="Score").click()


def run_script(browser, name, use, arg):
    """What a function of JavaScript returns for what a script of the pages exports, and for `arg`, in a blank page.
    The script has to do without what it imports."""
    source = re.sub("^import .*\n", "", asset("web", "js", name).read_text(encoding="utf-8"), flags=re.MULTILINE)
    imported = 'await import(URL.createObjectURL(new Blob([source], { type: "text/javascript" })))'
    page = browser.new_page()
    try:
        return page.evaluate(f"async ([source, arg]) => ({use})({imported}, arg)", [source, arg])
    finally:
        page.close()


def listening(page):
    """What is pressed is done at once, and not when the page's script is there."""
    page.wait_for_load_state()
    until(page, "window.early === null")


def hold_pace(page):
    """What plays goes on with each `beat` alone, and at no pace of its own, until the page is left."""
    page.evaluate("""() => {
      window.setInterval = (step, pace) => (Object.assign(window, { step, pace }), -1);
      window.clearInterval = () => (window.step = null);
    }""")


def beat(page):
    """One step of what plays; False if nothing does."""
    return bool(page.evaluate("() => Boolean(window.step) && (window.step(), true)"))


def bars(page, mode):
    """Each bar's probabilities as its label tells them."""
    labels = page.locator(f".c[data-mode={mode}] .bar").all()
    texts = [bar.get_attribute("aria-label") or "" for bar in labels]
    return [{name: float(value) for name, value in re.findall(r"(neg|neu|pos) (\d\.\d\d)", text)} for text in texts]


def overflow(page):
    """By how many pixels the page is wider than its window.

    A document can be measured before its style sheets are there, although nothing of it is painted until then.
    """
    page.wait_for_load_state()
    assert page.viewport_size is not None
    return page.evaluate("document.documentElement.scrollWidth") - page.viewport_size["width"]


class Traffic:
    """A page's requests to the addresses of a pattern: let through, `held` up, `broken` off, or `lost`, of which
    the answers are.

    Made before the page acts: a request that follows at once passes a new route by.
    """

    def __init__(self, page: Page, pattern: str = "**/*") -> None:
        self.state = ""
        self._page, self._held = page, list[Route]()
        page.route(pattern, self._meet)

    def _meet(self, route: Route) -> None:
        if self.state == "held":
            self._held.append(route)
        elif self.state == "lost":
            route.fetch()
            route.abort()
        elif self.state == "broken":
            route.abort()
        else:
            route.continue_()

    def let_go(self, count: int = 1) -> None:
        """Wait until so many requests are held, and let the last of them through."""
        while len(self._held) < count:
            self._page.wait_for_timeout(20)
        self._held[count - 1].continue_()
