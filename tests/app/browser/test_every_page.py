"""Every page, visited once and looked at in each way that holds for all of them: axe-core in light and dark, the
hints on words, and the focus on a desk and a phone, within which it fits."""

import pytest
from playwright.sync_api import expect

from tests.app.browser import test_accessibility as accessibility
from tests.app.browser import test_focus as focus
from tests.app.browser import test_hints as hints
from tests.app.browser.acts import listening, overflow

PAGES = list(dict.fromkeys([*accessibility.PAGES, *focus.PAGES, *hints.MET]))
# Large ones, of which there is a like beside them.
SLOW = (
    "/api/v1/docs",
    "/browse?trace=abc",
    "/browse?dataset=gallery&field=focus&bin=right-0.95",
    "/results?dataset=gallery",
    "/results?dataset=gallery&card=mini-bidir",
)


@pytest.mark.parametrize(
    "path", [pytest.param(path, marks=[pytest.mark.slow] if path in SLOW else []) for path in PAGES]
)
def test_it_can_be_read_its_words_are_explained_and_the_focus_is_seen(opened, path):
    expected = [] if path in hints.MET else ["status of 4"]
    # Colours that fade would be read while they do. Loaded on a phone, where more of a page scrolls by itself and
    # so takes the focus.
    with opened(width=390, reduced_motion="reduce", expected=expected) as page:
        page.goto(path)
        expect(page.locator("main [data-again]")).to_have_count(0)
        wrong = {"too wide for a phone": overflow(page)}
        page.set_viewport_size({"width": 1280, "height": 1000})
        expect(page.locator("main [data-again]")).to_have_count(0)
        if path in accessibility.PAGES:
            wrong["axe-core"] = accessibility.in_both_schemes(page, accessibility.PAGES[path])
        if path in hints.MET:
            listening(page)
            hints.explains(page, path)
        if path in focus.PAGES:
            expect(page.locator(focus.PAGES[path]).first).to_be_visible()
            wrong["the focus at 1280"] = focus.in_both_schemes(page)
            page.set_viewport_size({"width": 390, "height": 1000})
            wrong["the focus at 390"] = focus.in_both_schemes(page)
        assert {check: found for check, found in wrong.items() if found} == {}
