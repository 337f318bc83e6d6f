"""Takes the README's screenshots from the running application.

python -m tests.screenshots
"""

import tempfile
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

from core.assets import asset
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
    example: str = ""


_EXAMPLE = "A solution that fails the substitution"
SHOTS = (
    Shot("score", "/", "#result .steps .katex", 1130, example=_EXAMPLE),
    Shot("evidence", "/evidence?trace=2", "main .katex", 1000),
    Shot("evidence-dark", "/evidence?trace=2", "main .katex", 1000, scheme="dark"),
    Shot("browse", "/browse?dataset=gallery&gold=error", "#browse .katex", 720),
    Shot("trace", "/browse?trace=2", "ol.steps .katex", 860),
    Shot("results", "/results?dataset=gallery", "main .js-plotly-plot .main-svg", 1130),
)


def main() -> None:
    """Write every picture into assets/screenshots."""
    folder = asset("screenshots")
    folder.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as store, serving(Path(store)) as address, sync_playwright() as playwright:
        browser = launch(playwright)
        for shot in SHOTS:
            take(browser, address, shot, folder / f"{shot.name}.png")
        browser.close()


def take(browser: Browser, address: str, shot: Shot, path: Path) -> None:
    """One picture, in a browser window of its own."""
    size = {"width": 1200, "height": shot.height}
    scheme = "dark" if shot.scheme == "dark" else "light"
    page = browser.new_page(base_url=address, viewport=size, color_scheme=scheme, reduced_motion="reduce")
    # Results are computed while the page waits.
    page.set_default_timeout(120_000)
    page.goto(shot.path)
    if shot.example:
        page.get_by_role("button", name=shot.example).click()
    page.locator(shot.there).first.wait_for()
    page.wait_for_timeout(500)
    page.evaluate("scrollTo(0, 0)")
    page.screenshot(path=path)
    page.context.close()


if __name__ == "__main__":
    main()
