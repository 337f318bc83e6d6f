"""The line on an evaluator that does not clear the trivial baselines, in a browser."""

import threading

import pytest
from playwright.sync_api import Locator, Page, expect

from stepsight.app.scoring.evaluators import Evaluators
from stepsight.core.models.location import EQUATIONS
from stepsight.core.trace import Trace
from stepsight.storage.database.store import open_store
from stepsight.training.evaluate.baseline_check import check_baselines
from tests.app.browser.test_accessibility import in_both_schemes
from tests.serving import served
from tests.storage.samples import add
from tests.training.evaluate.test_baseline_check import judged

# Where what a person aims at stands.
PLACES = "all => all.filter((one) => one.checkVisibility()).map((one) => one.getBoundingClientRect().top)"


def test_the_line_comes_into_its_room_and_moves_nothing(opened, tmp_path, monkeypatch):
    go = threading.Event()

    def slow(*args):
        assert go.wait(600)
        return check_baselines(*args)

    monkeypatch.setattr("stepsight.app.web.baseline_check.check_baselines", slow)
    with open_store(str(tmp_path / "store.db")) as store:
        add(store, [Trace.of("What is $x$?", ["$x = 1$."], id="formula")], "many")
        judged(store, "many", right=0.5)
        evaluators = Evaluators([EQUATIONS], shipped=False)
        with (
            served(store, evaluators) as base,
            opened(base, reduced_motion="reduce") as desk,
            opened(base, width=390, reduced_motion="reduce") as phone,
        ):
            before = {page: _places(page) for page in (desk, phone)}
            assert min(map(len, before.values())) > 20
            go.set()
            for page, places in before.items():
                line = page.locator("p.baseline-check")
                expect(line).to_contain_text("many does not clear the trivial baselines: offline Step-AUC")
                # A sign that comes from another font of this machine may make its line half a pixel higher.
                assert _aims(page).evaluate_all(PLACES) == pytest.approx(places, abs=1)
                # The formulas, which a script has drawn since, are no reason to replace everything else.
                expect(page.locator("main form[data-kept]")).to_have_count(1)
                assert in_both_schemes(page, "p.baseline-check a") == {}
            desk.get_by_role("link", name="Its card").click()
            expect(desk.locator("tr:target")).to_contain_text("many")


def _aims(page: Page) -> Locator:
    return page.locator("main :is(form, a.open, summary)")


def _places(page: Page) -> list[float]:
    page.goto("/browse?dataset=many&evaluator=many")
    expect(page.locator("p.baseline-check")).to_have_attribute("data-again", "2")
    expect(_aims(page).last).to_be_attached()
    expect(page.locator("main .math[data-done]")).to_have_count(1)
    page.locator("main form").first.evaluate("form => form.setAttribute('data-kept', '')")
    return list(_aims(page).evaluate_all(PLACES))
