"""The application served once for every browser test, and pages that complain of nothing."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
from playwright.sync_api import ConsoleMessage, Page, expect, sync_playwright

from tests.browser import Windows, launch
from tests.serving import serving

# On a busy machine everything takes its time; milliseconds.
_PATIENCE = 120_000
expect.set_options(timeout=_PATIENCE)


@pytest.fixture(scope="session")
def address(tmp_path_factory, seeded_file):
    """The base address of the application, whose store holds the gallery."""
    with serving(tmp_path_factory.mktemp("served"), seeded=seeded_file) as address:
        yield address


@pytest.fixture(scope="module")
def store(module_store):
    """The store of the module, for those that serve one of their own."""
    return module_store


# Not for the session: no other test can run a loop beside Playwright's. `__init__.py` makes the folder a package.
@pytest.fixture(scope="package")
def browser():
    with sync_playwright() as playwright:
        browser = launch(playwright)
        yield browser
        browser.close()


@pytest.fixture(scope="package")
def windows(browser):
    return Windows(browser, _patient)


@pytest.fixture
def opened(windows, address):
    """`with opened(width=390, color_scheme="dark") as page:` a page that may speak to nobody but us.

    A request to elsewhere, an error on the console or in a script, and a dialog fail the test. `expected` are parts
    of messages that belong to what it does, such as "status of 404".
    """

    @contextmanager
    def opening(
        base: str = address, width: int = 1280, height: int = 1000, expected: Sequence[str] = (), **options: Any
    ) -> Iterator[Page]:
        troubles: list[str] = []

        def complain(text: str) -> None:
            if not any(part in text for part in expected):
                troubles.append(text)

        def heard(message: ConsoleMessage) -> None:
            if message.type == "error":
                complain(f"{message.text} {message.location['url']}")

        local = (base, "data:", "blob:")
        watched: dict[Any, Callable[[Any], Any]] = {
            "console": heard,
            "weberror": lambda error: complain(str(error.error)),
            "dialog": lambda dialog: (troubles.append(f"dialog: {dialog.message}"), dialog.dismiss()),
            "request": lambda r: None if r.url.startswith(local) else troubles.append(f"left: {r.url}"),
        }
        with windows.page(base, viewport={"width": width, "height": height}, **options) as page:
            for event, f in watched.items():
                page.context.on(event, f)
            try:
                yield page
            except Exception as error:
                error.add_note(f"Troubles of the page: {troubles}")
                raise
            finally:
                for event, f in watched.items():
                    page.context.remove_listener(event, f)
        assert troubles == []

    return opening


def _patient(page):
    """The page, which waits for as long as a busy machine takes."""
    page.set_default_timeout(_PATIENCE)
    return page


@pytest.fixture
def page(opened):
    """Such a page, 1280 wide and light."""
    with opened() as page:
        yield page
