"""Takes the pictures of the README and the manual from the running application.

    python -m tests.screenshots

Each file also holds the outline of its page, with which a slow test compares the page of today: pixels differ
between machines.
"""

import re
import tempfile
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import unified_diff
from pathlib import Path

from PIL import Image, PngImagePlugin
from playwright.sync_api import Page, sync_playwright

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
    first: Callable[[Page], None] | None = None


def _score_example(page):
    page.get_by_role("link", name="A solution that fails the substitution").click()


def _begin_to_label(page):
    """Make a campaign, and label some steps of its first trace."""
    page.get_by_label("Name", exact=True).fill("Gallery, once more")
    page.locator("details.more > summary").click()
    page.locator("select[name=ordering]").select_option("file")
    page.get_by_role("button", name="Create the campaign").click()
    page.get_by_role("link", name="Start labelling").click()
    page.locator("#labelling .labels").first.wait_for()
    page.wait_for_load_state()
    for step, label in enumerate(("pos", "neg")):
        page.locator(f"li[data-step='{step}'] [data-label={label}]").click()
        page.locator(f"li[data-step='{step}'] [aria-pressed=true]").wait_for()


SHOTS = (
    Shot("score", "/", "#result .steps .katex", 1130, first=_score_example),
    Shot("evidence", "/evidence?trace=2", "text=rests on 2", 1110),
    Shot("browse", "/browse?dataset=gallery&gold=error", "#browse .katex", 720),
    Shot("trace", "/browse?trace=2", "ol.steps .katex", 860),
    Shot("results", "/results?dataset=gallery", "main table caption, main table tbody", 1130),
    Shot("annotate", "/annotate/new", "#labelling .labels", 800, first=_begin_to_label),
)


FOLDER = asset("screenshots")
_OUTLINE = "Outline"
_NUMBER = re.compile(r"\d+(?:\.\d+)?")


def main():
    """Write every picture into assets/screenshots."""
    FOLDER.mkdir(exist_ok=True)
    with running() as (browser, address):
        for shot in SHOTS:
            with page_of(browser, address, shot) as page:
                path = picture(shot)
                page.screenshot(path=path)
                _add_outline(path, outline(page))


@contextmanager
def running():
    """A browser, and the address of the application with its gallery."""
    with tempfile.TemporaryDirectory() as store, serving(Path(store)) as address, sync_playwright() as playwright:
        browser = launch(playwright)
        _wait_for_baselines(browser, address)
        yield browser, address
        browser.close()


def _wait_for_baselines(browser, address):
    """Let the gallery be compared with the baselines: until then pages say that it is."""
    page = browser.new_page(base_url=address)
    page.goto("/evidence?trace=2")
    page.locator("main .katex").first.wait_for()
    page.locator(".baseline-check[data-again]").wait_for(state="detached", timeout=120_000)
    page.context.close()


@contextmanager
def page_of(browser, address, shot):
    """The page of a picture, as it is taken, in a browser window of its own."""
    size = {"width": 1200, "height": shot.height}
    page = browser.new_page(base_url=address, viewport=size, color_scheme="light", reduced_motion="reduce")
    # Results are computed while the page waits.
    page.set_default_timeout(120_000)
    page.goto(shot.path)
    if shot.first is not None:
        shot.first(page)
    page.locator(shot.there).first.wait_for()
    page.wait_for_timeout(500)
    page.evaluate("scrollTo(0, 0)")
    yield page
    page.context.close()


def picture(shot):
    return FOLDER / f"{shot.name}.png"


def outline(page):
    """Headings, text, links, tables and forms of a page, as a screen reader has them, without announcements."""
    page.locator("#announced").evaluate("place => place.textContent = ''")
    return page.locator("body").aria_snapshot()


def _add_outline(path, text):
    info = PngImagePlugin.PngInfo()
    info.add_itxt(_OUTLINE, text, zip=True)
    with Image.open(path) as image:
        image.save(path, pnginfo=info, optimize=True)


def stored_outline(shot):
    """The outline of the page as it was when the picture was taken, "" if the picture has none."""
    with Image.open(picture(shot)) as image:
        return str(image.info.get(_OUTLINE, ""))


def differences(before, after):
    """How two outlines differ, "" if they do not. The last decimal of a number may: machines round differently."""
    numbers = zip(_NUMBER.findall(before), _NUMBER.findall(after), strict=False)
    if _NUMBER.sub("0", before) == _NUMBER.sub("0", after) and all(_is_close(*pair) for pair in numbers):
        return ""
    return "\n".join(unified_diff(before.splitlines(), after.splitlines(), "picture", "page", lineterm="", n=1))


def _is_close(before, after):
    """True if two numbers have as many decimals, and differ by one in the last of them at most."""
    decimals = len(before.partition(".")[2])
    if len(after.partition(".")[2]) != decimals:
        return False
    return before == after or (decimals > 0 and abs(float(before) - float(after)) < 1.5 / 10**decimals)


if __name__ == "__main__":
    main()
