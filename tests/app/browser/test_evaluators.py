"""The Evaluators page as a person uses it, and Score while an evaluator is loaded."""

import threading

import pytest
from playwright.sync_api import expect

from stepsight.app.jobs.worker import Worker
from stepsight.app.scoring.evaluators import Evaluators
from stepsight.app.scoring.gallery_seed import seed
from stepsight.core.evaluators import loading
from stepsight.core.evaluators.loading import load_fetched
from stepsight.core.evaluators.opening import describe_fetched
from stepsight.core.hubs.hub_download import fetch
from stepsight.core.hubs.hub_lookup import look_up
from stepsight.core.models.placement import Placement
from stepsight.storage.database.store import open_store
from tests.app.browser.acts import PROBLEM, SOLUTION, listening, overflow, score
from tests.app.browser.checks import violations
from tests.checkpoints import write_token_classifier
from tests.hub import Hub, point_to
from tests.serving import served

REPO = "trl-lib/Qwen2-0.5B-Reward-Math-Sheperd"
NAME = "Qwen2-0.5B-Reward-Math-Sheperd"


@pytest.fixture
def hub(tmp_path, monkeypatch):
    one = Hub()
    one.folders[REPO] = tmp_path / "published"
    write_token_classifier(one.folders[REPO], "qwen2", max_position_embeddings=4096)
    point_to(monkeypatch, one.url, tmp_path / "hub")
    monkeypatch.setenv("STEPSIGHT_CACHE", str(tmp_path / "cache"))
    with one.running():
        yield one


@pytest.fixture
def fresh(tmp_path, hub, tiny):
    """A store as a first start leaves it, and the address of its server."""
    evaluators = Evaluators([tiny], shipped=False, fetched=True)
    with open_store(str(tmp_path / "store.db")) as store, served(store, evaluators) as address:
        seed(store, evaluators, ())
        yield store, address


def test_a_model_is_refused_where_one_looks_or_fetched_and_led_on_from(opened, fresh, hub):
    store, address = fresh
    hub.gated = {REPO}
    with opened(base=address, expected=["status of 422"]) as page:
        page.goto("/evaluators")
        listening(page)
        # Whether it is among those in view depends on the memory of this machine.
        page.locator("[data-key=folded] > summary").click()
        button = page.get_by_role("button", name=f"Fetch {REPO}")
        button.press("Enter")
        expect(page.get_by_role("alert")).to_contain_text(f"{REPO} is gated")
        expect(button).to_be_focused()
        page.get_by_label("OWNER/NAME").fill("lab/none")
        page.get_by_label("OWNER/NAME").press("Enter")
        expect(page.get_by_role("alert")).to_contain_text("The model hub has no model 'lab/none'")
        expect(page.get_by_label("OWNER/NAME")).to_have_value("lab/none")
        page.set_viewport_size({"width": 390, "height": 1000})
        assert overflow(page) <= 0
        assert violations(page) == []
        hub.gated = set()
        button.click()
        expect(page.get_by_role("heading", name="Being fetched")).to_be_visible()
        expect(page.get_by_role("progressbar", name=REPO)).to_be_visible()
        assert Worker(store).work_one()
        page.get_by_role("link", name=f"Judge a dataset with {NAME}").click()
        expect(page.get_by_role("heading", name="Being fetched")).to_have_count(0)
        expect(page.get_by_label("Evaluator")).to_have_value(NAME)
        expect(page.get_by_label("Dataset")).to_have_value("gallery")


@pytest.mark.slow
def test_score_waits_for_an_evaluator_that_is_being_loaded_and_goes_on_by_itself(opened, fresh, monkeypatch):
    _, address = fresh
    describe_fetched(fetch(look_up(REPO)), Placement())
    monkeypatch.setattr("stepsight.app.scoring.evaluators._PATIENCE", 0.1)
    let = threading.Event()

    def load(*args):
        let.wait(60)
        return load_fetched(*args)

    monkeypatch.setattr(loading, "load_fetched", load)
    with opened(base=address) as page:
        page.goto("/")
        page.get_by_role("checkbox", name="tiny").uncheck()
        page.get_by_role("checkbox", name=NAME).check()
        score(page, PROBLEM, SOLUTION)
        page.get_by_role("checkbox", name="tiny").uncheck()
        page.get_by_role("checkbox", name=NAME).check()
        page.get_by_role("button", name="Score").click()
        expect(page.locator("#refusal .notice")).to_contain_text(f"{NAME} has been loading")
        let.set()
        expect(page.locator("#result section.scored")).to_contain_text(NAME)
        expect(page.locator("#refusal [data-again]")).to_have_count(0)
