"""The view of an evaluator's card, its links and its files."""

import json

import pytest
from fastapi.testclient import TestClient

from stepsight.app.results.measurements import Measurements
from stepsight.app.results.page import ResultsPage
from stepsight.storage.judgments.evaluators import register_evaluator
from tests.app.client import let_in
from tests.app.elements import read
from tests.app.results.measured import measured
from tests.storage.samples import add
from tests.training.judged import NAME, fill


@pytest.fixture
def results(sqlite_store):
    """The measurements of a store whose dataset is measured."""
    fill(sqlite_store)
    made = Measurements(sqlite_store)
    for one in measured(sqlite_store, NAME, made).evaluators:
        made.find_card(one.fingerprint, patience=60)
    return made


@pytest.fixture
def show(sqlite_store, evaluators, results):
    return lambda **query: read(ResultsPage(sqlite_store, evaluators, results).content(query).html)


def test_a_card_has_its_sections_and_its_files(show):
    page = show(card="one_mind")
    assert page.one("h1").text == "one_mind"
    titles = [one.text for one in page.all("h2")]
    assert titles[:2] == ["Solutions and steps", "Calibration of validity"]
    assert titles[-3:] == ["Length and place of a step", "Agreement with people", "What was measured"]
    assert page.all("div", cls="plot")
    links = (link["href"] for link in page.one("p", cls="out").all("a"))
    files = [href for href in links if "format=" in href]
    assert [href.partition("format=")[2] for href in files] == ["markdown", "json"]
    assert page.all("p", role="status") == []


def test_a_card_is_found_by_fingerprint_and_from_its_dataset(show):
    links = [link["href"] for link in show(dataset=NAME).all("a")]
    assert f"/results?dataset={NAME}&card=f1" in links
    assert show(card="f1", dataset=NAME).one("h1").text == "one_mind"


def test_what_has_no_card_is_said(sqlite_store, show):
    add(sqlite_store, dataset="other")
    register_evaluator(sqlite_store, name="idle", fingerprint="f9", format="stepsight", attention="causal")
    said = [show(**query).one("div", cls="notice").text for query in (
        {"card": "nobody"}, {"card": "idle"}, {"card": "one_mind", "dataset": "other"},
    )]  # fmt: skip
    assert said == [
        "There is no evaluator 'nobody' in the store. It has idle, one_mind, words.",
        "idle has judged no dataset. Have it judge one on the Jobs page.",
        f"one_mind has not judged other. It has judged {NAME}.",
    ]


def test_files_have_the_card(sqlite_store, evaluators, results):
    client = TestClient(let_in(ResultsPage(sqlite_store, evaluators, results).files()))
    asked = {"dataset": NAME, "card": "one_mind"}
    answer = client.get("/results/card", params=asked | {"format": "json"})
    assert json.loads(answer.text)["title"] == f"one_mind on {NAME}"
    answer = client.get("/results/card", params=asked)
    assert answer.text.startswith("## one\\_mind on three\\_way\n")
    assert answer.headers["content-disposition"] == 'attachment; filename="one-mind-on-three-way-card.md"'
