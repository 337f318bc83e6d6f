"""The line on an evaluator that does not clear the trivial baselines, while a person works on the page."""

import threading

import pytest
from playwright.sync_api import expect

from stepsight.app.scoring.evaluators import Evaluators
from stepsight.core.models.location import EQUATIONS
from stepsight.storage.database.store import open_store
from stepsight.training.evaluate.baseline_check import check_baselines
from tests.app.browser.checks import in_both_schemes
from tests.serving import served
from tests.training.evaluate.test_baseline_check import judged


@pytest.mark.slow
def test_the_line_takes_neither_the_focus_nor_what_is_typed(opened, tmp_path, monkeypatch):
    go = threading.Event()

    def slow(*args):
        assert go.wait(600)
        return check_baselines(*args)

    monkeypatch.setattr("stepsight.app.web.baseline_check.check_baselines", slow)
    with open_store(str(tmp_path / "store.db")) as store:
        judged(store, "many", right=0.5)
        with served(store, Evaluators([EQUATIONS], shipped=False)) as base, opened(base) as page:
            page.goto("/browse?dataset=many&evaluator=many")
            line = page.locator("p.baseline-check")
            expect(line).to_have_attribute("data-again", "2")
            page.locator("input[name=q]").fill("half a wor")
            go.set()
            expect(line).to_contain_text("many does not clear the trivial baselines: offline Step-AUC")
            expect(page.locator("input[name=q]")).to_be_focused()
            expect(page.locator("input[name=q]")).to_have_value("half a wor")
            assert in_both_schemes(page, "p.baseline-check a") == {}
