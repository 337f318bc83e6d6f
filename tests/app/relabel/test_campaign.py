"""A campaign for those who run it."""

import pytest

from stepsight.app.relabel.campaign import campaign_html
from stepsight.storage.database.store import NotFoundError
from stepsight.storage.labelling.campaigns import add_guideline, close_campaign
from stepsight.storage.people.users import Role
from tests.app.markup import INJECTIONS, read
from tests.storage.labelling.samples import GUIDELINE, campaign, do, label_all, people, person, take


def shown(store, made):
    return read(campaign_html(store, made.id, person(store, "boss", Role.ADMIN)))


def test_who_has_done_how_much(sqlite_store):
    made = campaign(sqlite_store, overlap=2)
    one, two = people(sqlite_store, 2)
    page = shown(sqlite_store, made)
    assert "Nobody has begun yet." in page.text
    label_all(sqlite_store, take(sqlite_store, made, one), one, ["pos", "neg"])
    take(sqlite_store, made, one)
    do(sqlite_store, take(sqlite_store, made, two).slot_id, two, "skip", None, "no idea")
    rows = shown(sqlite_store, made).one("tbody").all("tr")
    assert [[cell.text for cell in row.children] for row in rows] == [
        ["annotator 1", "1", "1", "0"],
        ["annotator 2", "0", "0", "1"],
    ]


def test_the_guideline_and_those_before_it(sqlite_store):
    made = campaign(sqlite_store)
    boss = person(sqlite_store, "boss", Role.ADMIN)
    for text in INJECTIONS:
        add_guideline(sqlite_store, made.id, text, boss)
    page = shown(sqlite_store, made)
    newest = len(INJECTIONS) + 1
    assert page.one("textarea").text == INJECTIONS[-1]
    assert page.one("form").one("button").text == f"Put into force as version {newest + 1}"
    earlier = page.all("details", cls="guideline")
    assert [one.one("summary").text for one in earlier] == [
        f"Guideline, version {number}" for number in range(newest - 1, 0, -1)
    ]
    assert GUIDELINE in earlier[-1].text


def test_nothing_is_to_be_done_once_it_is_closed(sqlite_store):
    made = campaign(sqlite_store)
    ending = shown(sqlite_store, made).one(cls="ending")
    assert ending.one("button")["data-post"] == f"/relabel/campaigns/{made.id}/close"
    close_campaign(sqlite_store, made.id)
    page = shown(sqlite_store, made)
    assert (page.all("button"), page.all("form")) == ([], [])
    assert "closed on" in page.text


def test_one_that_is_not_there(sqlite_store):
    with pytest.raises(NotFoundError):
        campaign_html(sqlite_store, 7, person(sqlite_store, "boss", Role.ADMIN))


def test_whoever_runs_it_can_begin_to_label(sqlite_store):
    made = campaign(sqlite_store)
    link = shown(sqlite_store, made).one("a", cls="primary")
    assert (link.text, link["href"]) == ("Start", f"/relabel/label?campaign={made.id}")
    close_campaign(sqlite_store, made.id)
    assert shown(sqlite_store, made).all("a", cls="primary") == []
