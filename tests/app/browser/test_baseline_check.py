"""The line on an evaluator that does not clear the trivial baselines, in a browser."""

import threading

import pytest
from playwright.sync_api import expect

from stepsight.app.scoring.evaluators import Evaluators
from stepsight.core.models.location import EQUATIONS
from stepsight.storage.database.store import open_store
from stepsight.training.evaluate.baseline_check import check_baselines
from tests.app.browser.test_accessibility import in_both_schemes
from tests.serving import served
from tests.training.evaluate.test_baseline_check import judged

# Where what a person aims at stands.
PLACES = "all => all.map(one => one.getBoundingClientRect().top)"


@pytest.mark.parametrize("width", [1280, 390])
def test_it_comes_into_its_room_and_moves_nothing(opened, tmp_path, monkeypatch, width):
    go = threading.Event()

    def slow(*args):
        assert go.wait(600)
        return check_baselines(*args)

    monkeypatch.setattr("stepsight.app.web.baseline_check.check_baselines", slow)
    with open_store(str(tmp_path / "store.db")) as store:
        judged(store, "many", right=0.5)
        evaluators = Evaluators([EQUATIONS], shipped=False)
        with served(store, evaluators) as base, opened(base, width=width, reduced_motion="reduce") as page:
            page.goto("/browse?dataset=many&evaluator=many")
            line, aims = page.locator("p.baseline-check"), page.locator("main :is(form, a.open, summary)")
            expect(line).to_have_attribute("data-again", "2")
            expect(aims.last).to_be_attached()
            before = aims.evaluate_all(PLACES)
            assert len(before) > 20
            go.set()
            expect(line).to_contain_text("many does not clear the trivial baselines: offline Step-AUC")
            assert aims.evaluate_all(PLACES) == before
            assert in_both_schemes(page, "p.baseline-check a") == {}
            page.get_by_role("link", name="Its card").click()
            expect(page.locator("tr:target")).to_contain_text("many")
