"""The page of stress tests: its picture, the worst examples, and a variant beside its original."""

import re

import pytest

from stepsight.app.results import stress
from stepsight.core.evaluators.loading import load_evaluator
from stepsight.core.stress.stress import scored_by_rule
from stepsight.core.trace import Trace
from stepsight.storage.judgments.evaluators import register_loaded
from stepsight.storage.judgments.stress_tests import StressPlan, score_stress_test
from tests.app.client import asking
from tests.storage.samples import add

PAGE = "/results/stress?dataset=sums"
WILD = "<script>alert(1)</script>"
STEPS = ["2 + 3 = 5.", f"So it is 5. {WILD}", "The answer is 5."]
TRACES = [Trace.of("Add 2 and 3.", STEPS, id=f"sum-{n}") for n in range(3)]


@pytest.fixture
def client(sqlite_store, evaluators, monkeypatch):
    # The first request waits for the figures.
    monkeypatch.setattr(stress, "_PATIENCE", 60)
    with asking(sqlite_store, evaluators) as client:
        yield client


def stress_sums(store):
    """Store a test in which an evaluator has the scores of a constant."""
    dataset_id = add(store, TRACES)[0].dataset_id
    row = register_loaded(store, load_evaluator("mini-bidir"))
    plan = StressPlan(transforms=("number-replaced", "filler", "decimal-comma"))
    score = scored_by_rule("baseline:constant")
    for _ in score_stress_test(store, score, dataset_id, row.id, plan, lambda trace, error: None):
        pass
    return row


def test_a_test_is_shown_with_its_shares_its_worst_examples_and_both_texts_of_one(sqlite_store, client):
    row = stress_sums(sqlite_store)
    page = client.get(PAGE)
    assert page.status_code == 200
    assert WILD not in page.text
    shares = re.findall(r'class="track" role="img" aria-label="([^"]*)"', page.text)
    # A constant calls nothing wrong, and moves nothing.
    assert [share.split(",")[0] for share in shares] == ["0.0 %", "100.0 %"]
    assert "nothing to change" in page.text
    (link, *others) = re.findall(r'href="(/results/stress\?[^"]*trace=[^"]*)"', page.text)
    assert len(others) == 2
    variant = client.get(link.replace("&amp;", "&"))
    assert variant.status_code == 200
    assert variant.text.count('class="pair changed"') == 1
    assert "must be called wrong, and is not." in variant.text
    assert WILD not in variant.text
    by_fingerprint = client.get(f"{PAGE}&evaluator={row.fingerprint}&transform=filler")
    assert "Everything moved as it must." in by_fingerprint.text
    # Nothing reaches a threshold of 100 %.
    assert "No target was valid before." in client.get(f"{PAGE}&validity=100").text


def test_the_page_says_what_is_not_there(sqlite_store, client):
    assert "The store is empty." in client.get("/results/stress").text
    add(sqlite_store, TRACES)
    page = client.get(PAGE)
    assert "No evaluator has been tested on sums yet." in page.text
    assert 'name="stress.transforms" value="number-replaced"' in page.text
    assert client.get(f"{PAGE}&evaluator=gone").status_code == 404
    stress_sums(sqlite_store)
    gone = client.get(f"{PAGE}&transform=filler&trace=gone")
    assert (gone.status_code, "There is no variant of" in gone.text) == (404, True)
