"""Takes the README's screenshots from the running application.

python -m tests.screenshots
"""

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

from stepsight.core.paths import asset
from tests.browser import launch
from tests.serving import serving


@dataclass(frozen=True)
class Shot:
    """One picture: where, what must be there before it is taken, and how high; 1200 pixels wide."""

    name: str
    path: str
    there: str
    height: int
    scheme: str = "light"
    first: Callable[[Page], None] | None = None


def _score_example(page: Page) -> None:
    page.get_by_role("link", name="A solution that fails the substitution").click()


def _begin_to_label(page: Page) -> None:
    """Make a campaign, and label some steps of its first trace."""
    page.get_by_label("Name", exact=True).fill("Gallery, once more")
    page.locator("select[name=ordering]").select_option("file")
    page.get_by_role("button", name="Make the campaign").click()
    page.get_by_role("link", name="Start labelling").click()
    page.locator("#labelling .labels").first.wait_for()
    page.wait_for_load_state()
    for step, label in enumerate(("pos", "neg")):
        page.locator(f"li[data-step='{step}'] [data-label={label}]").click()
        page.locator(f"li[data-step='{step}'] [aria-pressed=true]").wait_for()


SHOTS = (
    Shot("score", "/", "#result .steps .katex", 1130, first=_score_example),
    Shot("evidence", "/evidence?trace=2", "text=rests on 2", 1110),
    Shot("evidence-dark", "/evidence?trace=2", "text=rests on 2", 1110, scheme="dark"),
    Shot("browse", "/browse?dataset=gallery&gold=error", "#browse .katex", 720),
    Shot("trace", "/browse?trace=2", "ol.steps .katex", 860),
    Shot("results", "/results?dataset=gallery", "main .js-plotly-plot .main-svg", 1130),
    Shot("annotate", "/annotate/new", "#labelling .labels", 800, first=_begin_to_label),
)


def main() -> None:
    """Write every picture into assets/screenshots."""
    folder = asset("screenshots")
    folder.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as store, serving(Path(store)) as address, sync_playwright() as playwright:
        browser = launch(playwright)
        _wait_for_baselines(browser, address)
        for shot in SHOTS:
            take(browser, address, shot, folder / f"{shot.name}.png")
        browser.close()


def _wait_for_baselines(browser: Browser, address: str) -> None:
    """Let the gallery be compared with the baselines: until then pages keep a line free for the outcome."""
    page = browser.new_page(base_url=address)
    page.goto("/evidence?trace=2")
    page.locator("main .katex").first.wait_for()
    page.locator(".baseline-check[data-again]").wait_for(state="detached", timeout=120_000)
    page.context.close()


def take(browser: Browser, address: str, shot: Shot, path: Path) -> None:
    """One picture, in a browser window of its own."""
    size = {"width": 1200, "height": shot.height}
    scheme = "dark" if shot.scheme == "dark" else "light"
    page = browser.new_page(base_url=address, viewport=size, color_scheme=scheme, reduced_motion="reduce")
    # Results are computed while the page waits.
    page.set_default_timeout(120_000)
    page.goto(shot.path)
    if shot.first is not None:
        shot.first(page)
    page.locator(shot.there).first.wait_for()
    page.wait_for_timeout(500)
    page.evaluate("scrollTo(0, 0)")
    page.screenshot(path=path)
    page.context.close()


if __name__ == "__main__":
    main()
