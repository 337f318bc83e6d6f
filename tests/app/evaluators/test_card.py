"""Model cards on the Evaluators page."""

import pytest

from stepsight.app.evaluators.page import card_html, state_html
from stepsight.app.scoring.evaluators import Evaluators
from stepsight.app.web.baseline_check import card_address
from stepsight.core.models.location import EQUATIONS, shipped_evaluators
from stepsight.core.paths import asset
from tests.app.elements import read
from tests.storage.samples import evaluator


@pytest.mark.parametrize("name", shipped_evaluators())
def test_the_card_of_a_shipped_evaluator_is_whole(name):
    text = (asset("evaluators", name) / "README.md").read_text(encoding="utf-8")
    card = read(card_html(name))
    assert len(card.all("h3")) == text.count("\n## ")
    assert len(card.all("table")) == text.count("\n\n|")
    rows = [line for line in text.splitlines() if line.startswith("|") and "---" not in line and line != "| | |"]
    assert len(card.all("tr")) == len(rows)
    assert "parameters" in [head.text for head in card.all("th", scope="row")]
    assert [part.text for part in card.all("p") if "|" in part.text or "**" in part.text] == []


def test_an_evaluator_that_is_not_shipped_has_no_card():
    assert card_html(EQUATIONS) == card_html("../mini-bidir") == card_html("lab/large") == ""


def test_every_evaluator_has_a_place_that_its_card_is_found_at(sqlite_store):
    imported = evaluator(sqlite_store, "imported")
    evaluators = Evaluators([*shipped_evaluators()[:1], EQUATIONS], shipped=False)
    page = read(state_html(sqlite_store, evaluators, may_fetch=False))
    rows = [evaluators.register(sqlite_store, name) for name in evaluators.all_names] + [imported]
    places = [page.one(id=card_address(row).partition("#")[2]) for row in rows]
    assert [place.tag for place in places] == ["div", "tr", "tr"]
    assert page.one("details", cls="model-card").one("summary").text == f"Model card of {rows[0].name}"
