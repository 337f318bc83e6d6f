"""The page on which disagreements are decided: what it shows, what it keeps to itself, and decisions over HTTP."""

import re
from dataclasses import replace

import pytest
from sqlalchemy import update

from stepsight.app.annotate.adjudicate import AdjudicationAddress, adjudication_html, with_letters
from stepsight.app.annotate.campaigns import choose_html
from stepsight.storage.database.schema import ServerSecretRow, TraceRow
from stepsight.storage.labelling.adjudication import decide, read_adjudication, read_decisions
from stepsight.storage.labelling.queue import list_turns
from stepsight.storage.people.users import Role
from tests.app.annotate.disagreeing import disagreeing
from tests.app.client import PAGE
from tests.storage.labelling.samples import campaign, do, key, person


@pytest.fixture
def made(sqlite_store):
    return disagreeing(sqlite_store)


@pytest.fixture
def items(sqlite_store, made):
    return read_adjudication(sqlite_store, made[0].id).items


@pytest.fixture
def judge(sqlite_store):
    return person(sqlite_store, "judge", Role.ADJUDICATOR)


def page(store, of, user, item=0):
    return adjudication_html(store, AdjudicationAddress(campaign=of.id, item=item), user)


def test_from_the_first_disagreement_to_the_last_decision(sqlite_store, made, items, judge, drawn):
    of, (anna, *_) = made
    first, second = (item.item.id for item in items)
    html = page(sqlite_store, of, judge)
    drawn(html, "two of three traces are disagreed upon")
    assert not re.search(r"annotator|20\d\d-|gold", html)
    decide(sqlite_store, of.id, first, 1, "neg", "First <it>.", anna, key())
    decide(sqlite_store, of.id, first, 1, "pos", "So.", anna, key())
    drawn(page(sqlite_store, of, anna), "a decision that replaced one, for her who took both and labelled it too")
    decide(sqlite_store, of.id, first, 2, None, "Cannot be told.", judge, key())
    drawn(page(sqlite_store, of, judge, first), "a trace that is decided")
    drawn(page(sqlite_store, of, judge, 99999), "instead of one that nobody disagrees on")
    decide(sqlite_store, of.id, second, 0, "pos", "Needed.", judge, key())
    drawn(page(sqlite_store, of, judge), "all is decided")


def test_who_calls_a_step_something_else_than_neg_names_no_kind_of_error(sqlite_store, made, judge):
    of, (anna, *_) = made
    slot = list_turns(sqlite_store, of.id, anna)[-1].slot
    assert "contradicts a step" in page(sqlite_store, of, judge)
    for kind, *about in (("reopen",), ("label", 0, "pos"), ("label", 1, "unsure"), ("submit",)):
        do(sqlite_store, slot, anna, kind, *about)
    assert "contradicts a step" not in page(sqlite_store, of, judge)


def test_letters_cannot_be_followed_nor_worked_out_from_ids(sqlite_store, items):
    def orders() -> list[list[str]]:
        dealt = []
        for item in (*range(30), *range(100, 130)):
            annotations = items[item % 2].annotations
            pairs = with_letters(sqlite_store, item, annotations)
            assert [letter for letter, _ in pairs] == ["A", "B", "C"]
            # The same at every look.
            assert pairs == with_letters(sqlite_store, item, tuple(reversed(annotations)))
            dealt.append([annotation.user for _, annotation in pairs])
        return dealt

    first = orders()
    # Three people can stand in six orders, and in 60 deals all of them come up.
    assert len(set(map(tuple, first))) == 6
    with sqlite_store.write() as session:
        session.execute(update(ServerSecretRow).values(secret=b"another"))
    assert orders() != first
    many = [replace(items[0].annotations[0], user_id=n) for n in range(28)]
    assert [letter for letter, _ in with_letters(sqlite_store, 1, many)][-3:] == ["Z", "A2", "B2"]


def test_nothing_to_decide(sqlite_store, judge, drawn):
    drawn(choose_html(sqlite_store, "Adjudicate", AdjudicationAddress.PATH), "without a campaign")
    drawn(page(sqlite_store, campaign(sqlite_store, name="<new>"), judge), "without a disagreement")
    drawn(choose_html(sqlite_store, "Adjudicate", AdjudicationAddress.PATH), "a campaign to choose")


def test_a_trace_that_has_changed(sqlite_store, made, items, judge):
    with sqlite_store.write() as session:
        changed = update(TraceRow).where(TraceRow.id == items[0].item.trace_id)
        session.execute(changed.values(problem="What is 1 + 2?", digest="0" * 64))
    html = page(sqlite_store, made[0], judge)
    assert "The trace has changed since it was labelled" in html
    assert "<form" not in html


ROUTE = "/annotate/adjudicate/decisions"


def test_decisions_over_http(sqlite_store, made, items, client):
    of, item = made[0], items[0].item.id
    reason = {"label": "neg", "reason": "It is 2."}
    body = {"campaign": of.id, "item": item, "step": 1, **reason, "key": "one", "after": 0}
    for changes, status, message in (
        ({"campaign": 99999}, 404, "no item"),
        ({"item": None}, 422, "item is None"),
        ({"step": 9}, 422, "There is no step 10"),
        ({"label": "unsure"}, 422, "label is 'unsure'"),
        ({"label": "pos", "reason": ""}, 422, "has no reason"),
        ({"reason": 1}, 422, "reason is 1"),
        ({"key": ""}, 422, "The key is ''"),
        ({"after": None}, 422, "after is None"),
        ({"after": 9}, 409, "This step has been decided in the meantime"),
    ):
        answer = client.post(ROUTE, json=body | changes)
        assert (answer.status_code, message in answer.json()["error"]) == (status, True), changes
    assert client.post(ROUTE, content="[").status_code == 422
    assert read_decisions(sqlite_store, of.id) == {}
    answer = client.post(ROUTE, json=body)
    assert (answer.status_code, answer.json().keys()) == (200, {"item", "step", "label", "reason", "moment"})
    # Sent again, its answer having been lost.
    assert client.post(ROUTE, json=body).json() == answer.json()
    decisions = read_decisions(sqlite_store, of.id)
    assert {place: (one.label, one.user) for place, one in decisions.items()} == {(item, 1): ("neg", "local")}
    other = body | {"label": None, "key": "two"}
    # Who has not seen that decision does not replace it.
    assert client.post(ROUTE, json=other).status_code == 409
    (decision,) = decisions.values()
    assert client.post(ROUTE, json=other | {"after": decision.event_id}).json()["label"] is None


def test_pages(made, client):
    for query, status, text in (
        (f"?campaign={made[0].id}", 200, "Adjudicate: first"),
        ("", 200, "first</a>"),
        ("?campaign=x", 422, ""),
        ("?campaign=99999", 404, ""),
    ):
        answer = client.get(f"/annotate/adjudicate{query}", headers=PAGE)
        assert (answer.status_code, text in answer.text) == (status, True)
