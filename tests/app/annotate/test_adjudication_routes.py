"""Decisions over HTTP."""

from typing import Any

import pytest

from stepsight.storage.labelling.results.decisions import read_decisions
from stepsight.storage.labelling.results.disagreements import read_adjudication
from tests.app.annotate.disagreeing import disagreeing
from tests.app.client import PAGE, asking

ROUTE = "/annotate/adjudicate/decisions"


@pytest.fixture
def of(sqlite_store):
    return disagreeing(sqlite_store)[0]


@pytest.fixture
def body(sqlite_store, of):
    item = read_adjudication(sqlite_store, of.id).disagreements[0].item_id
    said = {"label": "neg", "reason": "It is 2."}
    return {"campaign": of.id, "item": item, "step": 1, **said, "key": "one", "after": 0}


@pytest.fixture
def client(sqlite_store, evaluators):
    with asking(sqlite_store, evaluators) as client:
        yield client


def test_a_decision(sqlite_store, of, body, client):
    answer = client.post(ROUTE, json=body)
    assert answer.status_code == 200
    assert answer.json().keys() == {"item", "step", "label", "reason", "moment"}
    # Sent again, its answer having been lost.
    assert client.post(ROUTE, json=body).json() == answer.json()
    found = read_decisions(sqlite_store, of.id)
    assert {place: (one.label, one.user) for place, one in found.items()} == {(body["item"], 1): ("neg", "local")}
    other = body | {"label": None, "key": "two"}
    # Who has not seen that decision does not replace it.
    assert client.post(ROUTE, json=other).status_code == 409
    (decision,) = found.values()
    assert client.post(ROUTE, json=other | {"after": decision.event_id}).json()["label"] is None


REFUSED: tuple[tuple[dict[str, Any], int, str], ...] = (
    ({"campaign": 99999}, 404, "no item"),
    ({"item": None}, 422, "item is None"),
    ({"step": 9}, 422, "There is no step 10"),
    ({"label": "unsure"}, 422, "label is 'unsure'"),
    ({"label": "pos", "reason": ""}, 422, "has no reason"),
    ({"reason": " "}, 422, "has no reason"),
    ({"reason": 1}, 422, "reason is 1"),
    ({"key": ""}, 422, "The key is ''"),
    ({"after": None}, 422, "after is None"),
    ({"after": 9}, 409, "This step has been decided in the meantime"),
)


def test_refusals(sqlite_store, of, body, client):
    for changes, status, message in REFUSED:
        answer = client.post(ROUTE, json=body | changes)
        assert answer.status_code == status, changes
        assert message in answer.json()["error"], changes
        assert read_decisions(sqlite_store, of.id) == {}, changes


def test_the_same_key_for_something_else(body, client):
    assert client.post(ROUTE, json=body).status_code == 200
    assert client.post(ROUTE, json=body | {"label": "pos"}).status_code == 409


def test_no_json(client):
    assert client.post(ROUTE, content="[").status_code == 422


def test_pages(of, client):
    assert "Adjudicate: first" in client.get(f"/annotate/adjudicate?campaign={of.id}", headers=PAGE).text
    assert "first</a>" in client.get("/annotate/adjudicate", headers=PAGE).text
    assert client.get("/annotate/adjudicate?campaign=x", headers=PAGE).status_code == 422
    assert client.get("/annotate/adjudicate?campaign=99999", headers=PAGE).status_code == 404
