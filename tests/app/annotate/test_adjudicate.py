"""The page on which disagreements are decided: what it shows, and what it keeps to itself."""

import re
from dataclasses import replace

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
from stepsight.storage.labelling.results.decisions import decide
from stepsight.storage.labelling.results.disagreements import read_adjudication
from stepsight.storage.people.users import Role
from tests.app.annotate.disagreeing import disagreeing
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
