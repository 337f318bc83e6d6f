"""The page on which disagreements are decided: what it shows, what it keeps to itself, and decisions over HTTP."""

import re
from dataclasses import replace

import pytest
from sqlalchemy import update

from stepsight.app.annotate.adjudicate import AdjudicationAddress, adjudication_html, with_letters
from stepsight.app.annotate.campaigns import choose_html
from stepsight.storage.database.people_schema import ServerSecretRow
from stepsight.storage.database.schema import TraceRow
from stepsight.storage.labelling.adjudication import decide, read_adjudication, read_decisions
from stepsight.storage.labelling.queue import list_turns
from stepsight.storage.people.users import Role
from tests.app.annotate.disagreeing import disagreeing
from tests.app.client import PAGE, asking
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


def steps(html):
    """The steps that can be decided, by number, each with its state."""
    return {number: state for state, number in re.findall(r'<li class="(open|decided)" id="step-(\d+)"', html)}


def test_disagreements_and_neither_names_nor_times_nor_gold(sqlite_store, made, judge):
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
    assert not re.search(r"annotator|20\d\d-|gold", html)
    form = html.split("<form")[1].split("</form>")[0]
    assert re.findall(r'value="(\w*)" required\s*> <kbd>(\d)</kbd>', form) == [
        ("neg", "1"), ("neu", "2"), ("pos", "3"), ("", "0"),
    ]  # fmt: skip
    # It does nothing before the script is there.
    assert ' class="decision" method="dialog" data-majority="neg">' in form
    assert ">Decide</button>" in form


def test_the_labels_of_a_step_are_listed(sqlite_store, made, items, judge):
    of, (anna, *_) = made
    slot = list_turns(sqlite_store, of.id, anna)[-1].slot
    for kind, *about in (("reopen",), ("label", 0, "pos"), ("label", 1, "unsure"), ("submit",)):
        do(sqlite_store, slot, anna, kind, *about)
    row = page(sqlite_store, of, judge).split('id="step-2"')[1].split("</li>")[0]
    rows = re.findall(r"<tr><th scope=\"row\">(.*?)</tr>", row, re.DOTALL)
    assert [one[0] for one in rows] == ["A", "B", "C"]
    (hers,) = [one for one in rows if "? unsure" in one]
    # Who is not called neg names no kind of error.
    assert "contradicts a step" not in hers


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


@pytest.mark.parametrize(("label", "value"), [("pos", "pos"), (None, "")])
def test_a_decision_and_those_before_it(sqlite_store, made, items, label, value):
    of, (anna, *_) = made
    item = items[0].about.item_id
    assert "one of them is yours" in page(sqlite_store, of, anna)
    decide(sqlite_store, of.id, item, 1, "neg", "First <it>.", anna, key())
    decide(sqlite_store, of.id, item, 1, label, "So.", anna, key())
    html = page(sqlite_store, of, anna)
    assert re.findall(r'value="(\w*)" required\s+checked', html) == [value]
    assert ">Change</button>" in html
    assert "annotator 1, who labelled it too, 20" in html
    # The earlier one stays to be seen.
    assert html.index("Earlier decisions") < html.index("First &lt;it&gt;.")


def test_from_one_trace_to_the_next(sqlite_store, made, items, judge):
    of, (one, two) = made[0], [item.about.item_id for item in items]
    assert "yours" not in page(sqlite_store, of, judge)
    decide(sqlite_store, of.id, one, 1, "neg", "It is 2.", judge, key())
    html = page(sqlite_store, of, judge)
    assert steps(html) == {"2": "decided", "3": "open"}
    assert "1 of 3 steps decided" in html
    decide(sqlite_store, of.id, one, 2, None, "Cannot be told.", judge, key())
    # Its address leads back to it; without one, to what is open.
    html = page(sqlite_store, of, judge, one)
    assert "This trace is decided." in html
    assert f'href="/annotate/adjudicate?campaign={of.id}&amp;item={two}">Next trace' in html
    assert "trace 2 of 2" in page(sqlite_store, of, judge)
    assert "Nobody disagrees on that trace; here is the next one." in page(sqlite_store, of, judge, 99999)
    decide(sqlite_store, of.id, two, 0, "pos", "Needed.", judge, key())
    assert "Every step of this campaign is decided." in page(sqlite_store, of, judge)


def test_nothing_to_decide(sqlite_store, judge):
    def links() -> str:
        return choose_html(sqlite_store, "Adjudicate", AdjudicationAddress.PATH)

    assert "There is no campaign yet." in links()
    of = campaign(sqlite_store, name="<new>")
    html = page(sqlite_store, of, judge)
    assert "There is no disagreement so far." in html
    assert "Adjudicate: &lt;new&gt;" in html
    assert f'<a href="/annotate/adjudicate?campaign={of.id}">&lt;new&gt;</a>' in links()


def test_a_trace_that_has_changed(sqlite_store, made, items, judge):
    with sqlite_store.write() as session:
        changed = update(TraceRow).where(TraceRow.id == items[0].about.trace_id)
        session.execute(changed.values(problem="What is 1 + 2?", digest="0" * 64))
    html = page(sqlite_store, made[0], judge)
    assert "The trace has changed since it was labelled" in html
    assert "<form" not in html


ROUTE = "/annotate/adjudicate/decisions"


@pytest.fixture
def client(sqlite_store, evaluators):
    with asking(sqlite_store, evaluators) as opened:
        yield opened


def test_decisions_over_http(sqlite_store, made, items, client):
    of, item = made[0], items[0].about.item_id
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
