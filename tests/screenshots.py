"""Takes the README's screenshots from the running application.

python -m tests.screenshots
"""

import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

from core.assets import asset
from tests.browser import launch
from tests.serving import serving


def main() -> None:
    """Write assets/screenshots/score.png and browse.png."""
    folder = asset("screenshots")
    folder.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as store, serving(Path(store)) as address, sync_playwright() as playwright:
        browser = launch(playwright)
        page = browser.new_page(viewport={"width": 1200, "height": 1130})
        page.goto(address)
        page.get_by_role("button", name="A factorisation that looks right").click()
        page.locator(".steps .katex").first.wait_for()
        page.screenshot(path=folder / "score.png")
        page.set_viewport_size({"width": 1200, "height": 640})
        page.goto(f"{address}/browse?dataset=gallery&gold=error")
        page.locator("ol.traces").wait_for()
        page.locator(".traces .katex").first.wait_for()
        page.screenshot(path=folder / "browse.png")
        browser.close()


if __name__ == "__main__":
    main()
