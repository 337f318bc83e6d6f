"""The page on which disagreements are decided: what it shows, what it keeps to itself, and decisions over HTTP."""

import re
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import update

from stepsight.app.annotate.adjudicate import (
    AdjudicationAddress,
    adjudication_html,
    with_letters,
)
from stepsight.app.annotate.campaigns import choose_html
from stepsight.storage.database.people_schema import ServerSecretRow
from stepsight.storage.database.schema import TraceRow
from stepsight.storage.labelling.queue import open_slot
from stepsight.storage.labelling.results.adjudication import decide, read_adjudication, read_decisions
from stepsight.storage.people.users import Role
from tests.app.annotate.disagreeing import disagreeing
from tests.app.client import PAGE, asking
from tests.storage.labelling.samples import campaign, do, key, person


@pytest.fixture
def made(sqlite_store):
    return disagreeing(sqlite_store)


@pytest.fixture
def judge(sqlite_store):
    return person(sqlite_store, "judge", Role.ADJUDICATOR)


def page(store, of, user, item=0):
    return adjudication_html(store, AdjudicationAddress(campaign=of.id, item=item), user)


def steps(html):
    """The steps that can be decided, by number, each with its state."""
    return {number: state for state, number in re.findall(r'<li class="(open|decided)" id="step-(\d+)"', html)}


def test_only_disagreements(sqlite_store, made, judge):
    html = page(sqlite_store, made[0], judge)
    assert steps(html) == {"2": "open", "3": "open"}
    assert "0 of 3 steps decided" in html
    assert "trace 1 of 2 with disagreements" in html
    # What people wrote is shown as text.
    assert "It is a &lt;b&gt;sum&lt;/b&gt;." in html
    assert "It is &lt;i&gt;2&lt;/i&gt;." in html
    assert '<span class="math" data-source="$2$">2</span>' in html
    assert "contradicts a step" in html
    # Of the first step all say the same.
    assert '<div class="agreed"><span class="label pos">✓ pos</span></div>' in html


def test_no_name_no_time_and_no_gold(sqlite_store, made, judge):
    html = page(sqlite_store, made[0], judge)
    assert not re.search(r"annotator|20\d\d-|gold", html)


def test_the_labels_of_a_step_are_listed(sqlite_store, made, judge):
    of, (anna, *_) = made
    shown = read_adjudication(sqlite_store, of.id).disagreements[0]
    task = open_slot(sqlite_store, shown.annotations[0].slot_id, anna)
    do(sqlite_store, task.slot_id, anna, "reopen")
    do(sqlite_store, task.slot_id, anna, "label", 0, "pos")
    do(sqlite_store, task.slot_id, anna, "label", 1, "unsure")
    do(sqlite_store, task.slot_id, anna, "submit")
    row = page(sqlite_store, of, judge).split('id="step-2"')[1].split("</li>")[0]
    rows = re.findall(r"<tr><th scope=\"row\">(.*?)</tr>", row, re.DOTALL)
    assert [one[0] for one in rows] == ["A", "B", "C"]
    (hers,) = [one for one in rows if "? unsure" in one]
    # Who is not called neg names no kind of error.
    assert "contradicts a step" not in hers


def test_the_form(sqlite_store, made, judge):
    form = page(sqlite_store, made[0], judge).split("<form")[1].split("</form>")[0]
    assert re.findall(r'value="(\w*)" required\s*> <kbd>(\d)</kbd>', form) == [
        ("neg", "1"), ("neu", "2"), ("pos", "3"), ("", "0"),
    ]  # fmt: skip
    # It does nothing before the script is there.
    assert ' class="decision" method="dialog" data-majority="neg">' in form
    assert ">Decide</button>" in form


@pytest.mark.parametrize(("label", "value"), [("pos", "pos"), (None, "")])
def test_a_decision_and_those_before_it(sqlite_store, made, label, value):
    of, (anna, *_) = made
    item = read_adjudication(sqlite_store, of.id).disagreements[0].item_id
    decide(sqlite_store, of.id, item, 1, "neg", "First <it>.", anna, key())
    decide(sqlite_store, of.id, item, 1, label, "So.", anna, key())
    html = page(sqlite_store, of, anna)
    assert re.findall(r'value="(\w*)" required\s+checked', html) == [value]
    assert ">Change</button>" in html
    assert "annotator 1, who labelled it too, 20" in html
    # The earlier one stays to be seen.
    assert html.index("Earlier decisions") < html.index("First &lt;it&gt;.")


def test_letters_cannot_be_followed(sqlite_store, made):
    (one, two) = read_adjudication(sqlite_store, made[0].id).disagreements
    orders = set()
    for more in range(30):
        for shown in (one, two):
            item = shown.item_id + 10 * more
            dealt = with_letters(sqlite_store, item, shown.annotations)
            assert [letter for letter, _ in dealt] == ["A", "B", "C"]
            # The same at every look.
            assert dealt == with_letters(sqlite_store, item, tuple(reversed(shown.annotations)))
            orders.add(tuple(answer.user for _, answer in dealt))
    # Three people can stand in six orders, and in 60 deals all of them come up.
    assert len(orders) == 6


def test_letters_cannot_be_worked_out_from_ids(sqlite_store, made):
    """Nor from seeds and names: with another secret of the server the same people stand in another order."""
    (one, _) = read_adjudication(sqlite_store, made[0].id).disagreements

    def orders() -> list[list[str]]:
        dealt = [with_letters(sqlite_store, item, one.annotations) for item in range(20)]
        return [[annotation.user for _, annotation in letters] for letters in dealt]

    first = orders()
    assert first == orders()
    with sqlite_store.write() as session:
        session.execute(update(ServerSecretRow).values(secret=b"another"))
    assert orders() != first


def test_more_people_than_letters(made, sqlite_store):
    (one, _) = read_adjudication(sqlite_store, made[0].id).disagreements
    dealt = with_letters(sqlite_store, one.item_id, [replace(one.annotations[0], user_id=n) for n in range(28)])
    assert [letter for letter, _ in dealt][-3:] == ["Z", "A2", "B2"]


def test_a_decision_is_stored_with_its_reason(sqlite_store, made, judge):
    of = made[0]
    (one, two) = read_adjudication(sqlite_store, of.id).disagreements
    decide(sqlite_store, of.id, one.item_id, 1, "neu", "First <thought>.", judge, key())
    decide(sqlite_store, of.id, one.item_id, 1, "neg", "It is 2.", judge, key())
    html = page(sqlite_store, of, judge)
    assert steps(html) == {"2": "decided", "3": "open"}
    assert "1 of 3 steps decided" in html
    assert "First &lt;thought&gt;." in html
    assert re.search(r'value="neg" required\s+checked', html)
    decide(sqlite_store, of.id, one.item_id, 2, None, "Cannot be told.", judge, key())
    # Its address leads back to it; without one, to what is open.
    html = page(sqlite_store, of, judge, one.item_id)
    assert "This trace is decided." in html
    assert f'href="/annotate/adjudicate?campaign={of.id}&amp;item={two.item_id}">Next trace' in html
    assert "trace 2 of 2" in page(sqlite_store, of, judge)
    decide(sqlite_store, of.id, two.item_id, 0, "pos", "Needed.", judge, key())
    assert "Every step of this campaign is decided." in page(sqlite_store, of, judge)


def test_an_adjudicator_who_labelled_the_trace_is_told_so(sqlite_store, made, judge):
    of, (anna, *_) = made
    assert "one of them is yours" in page(sqlite_store, of, anna)
    assert "yours" not in page(sqlite_store, of, judge)


def test_a_trace_without_disagreement(sqlite_store, made, judge):
    html = page(sqlite_store, made[0], judge, 99999)
    assert "Nobody disagrees on that trace; here is the next one." in html
    assert steps(html) == {"2": "open", "3": "open"}


def test_nothing_to_decide(sqlite_store, judge):
    def links() -> str:
        return choose_html(sqlite_store, "Adjudicate", AdjudicationAddress.PATH)

    assert "There is no campaign yet." in links()
    of = campaign(sqlite_store, name="<new>")
    html = page(sqlite_store, of, judge)
    assert "There is no disagreement so far." in html
    assert "Adjudicate: &lt;new&gt;" in html
    assert f'<a href="/annotate/adjudicate?campaign={of.id}">&lt;new&gt;</a>' in links()


def test_a_trace_that_has_changed(sqlite_store, made, judge):
    shown = read_adjudication(sqlite_store, made[0].id).disagreements[0]
    with sqlite_store.write() as session:
        found = update(TraceRow).where(TraceRow.id == shown.trace_id)
        session.execute(found.values(problem="What is 1 + 2?", digest="0" * 64))
    html = page(sqlite_store, made[0], judge)
    assert "The trace has changed since it was labelled" in html
    assert "<form" not in html


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
