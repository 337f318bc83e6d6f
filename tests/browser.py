"""The Chromium that the browser tests drive: `STEPSIGHT_CHROMIUM`, an installed one, or Playwright's own.

The shell without windows comes first, which is what Playwright's own is: a page costs two thirds of the work there.
"""

import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from playwright.sync_api import Browser, Error, Page, sync_playwright

_NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
# How many pages wait to be used again: each holds some 100 MB.
_KEPT = 4
_ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]


def installed():
    """The path of a Chromium on this machine, or None."""
    return os.environ.get("STEPSIGHT_CHROMIUM") or next(filter(None, map(shutil.which, _NAMES)), None)


def launch(playwright):
    """A headless browser that asks the network for nothing of its own."""
    for path in (installed(), None):
        try:
            return playwright.chromium.launch(executable_path=path, args=_ARGUMENTS)
        except Error as error:
            # What is installed may be a stub that starts nothing; Playwright's own comes next.
            failure = error
    raise failure


def until(page, expression, arg=None, seconds=120):
    """Wait until a page says yes; as JavaScript for `evaluate`.

    Playwright's `wait_for_function`, once it has to wait, evaluates its text within the page, where our policy
    forbids that.
    """
    end = time.monotonic() + seconds
    while not page.evaluate(expression, arg):
        if time.monotonic() > end:
            raise TimeoutError(expression)
        page.wait_for_timeout(20)


class Windows:
    """Pages that are used again, by one test at a time, each in a context of its own.

    A page of Gradio in a new context costs three times the work of one in a window that has shown another: there
    its scripts are loaded and compiled already. What a test did to a page is undone when it is through with it. A
    page that it closed, or in which it failed, is not used again; nor one of a base that is no server.
    """

    def __init__(self, browser: Browser, prepare: Callable[[Page], Page]) -> None:
        self._browser, self._prepare = browser, prepare
        # Those used last at the end.
        self._free: list[tuple[str, Page]] = []

    @contextmanager
    def page(self, base: str, **options: Any) -> Iterator[Page]:
        """One whose addresses begin with `base`; `options` are those of its context."""
        key = repr((base, sorted(options.items())))
        page = self._take(key)
        if page is None:
            page = self._prepare(self._browser.new_context(base_url=base, **options).new_page())
        listeners: list[tuple[Any, Any]] = []
        listen = page.on
        page.on = lambda event, f: (listeners.append((event, f)), listen(event, f))[1]  # type: ignore[method-assign]
        try:
            yield page
        except BaseException as error:
            error.add_note(_shown(page))
            page.context.close()
            raise
        finally:
            page.on = listen  # type: ignore[method-assign]
        for event, f in listeners:
            page.remove_listener(event, f)
        if not _as_new(page, base, options):
            page.context.close()
            return
        self._free.append((key, page))
        if len(self._free) > _KEPT:
            self._free.pop(0)[1].context.close()

    def _take(self, key: str) -> Page | None:
        for place, (other, page) in enumerate(self._free):
            if other == key:
                del self._free[place]
                return page
        return None


def _shown(page):
    """What a page shows, for the report of a test that failed in it."""
    try:
        return f"{page.url} shows:\n{page.locator('body').inner_text(timeout=5_000)[:4_000]}"
    except Error as error:
        return f"The page shows nothing: {error.message}"


def _as_new(page, base, options):
    """Undo what was done to a page; returns whether it is as good as new."""
    if page.is_closed() or not base.startswith("http") or "storage_state" in options:
        return False
    context = page.context
    try:
        for other in context.pages:
            if other is not page:
                other.close()
        context.set_offline(False)
        context.unroute_all()
        page.unroute_all()
        context.clear_cookies()
        # A file of the same origin, so that what the origin keeps can be dropped.
        page.goto(f"{base}/stepsight/style.css")
        page.evaluate("localStorage.clear(); sessionStorage.clear()")
        media = {"color_scheme": "light", "reduced_motion": "no-preference"} | options
        page.emulate_media(media="null", color_scheme=media["color_scheme"], reduced_motion=media["reduced_motion"])
        page.mouse.move(0, 0)
        if "viewport" in options and page.viewport_size != options["viewport"]:
            page.set_viewport_size(options["viewport"])
    except Error:
        return False
    return True


def works():
    """True if a browser can be started."""
    try:
        with sync_playwright() as playwright:
            launch(playwright).close()
    except Exception:  # whatever keeps it from starting, installing one may cure it
        return False
    return True
