"""The campaigns, as people in different roles see them."""

from stepsight.app.relabel.campaign_list import list_html
from stepsight.storage.labelling.campaigns import close_campaign
from stepsight.storage.people.users import Role
from tests.app.markup import read
from tests.storage.labelling.samples import TWO, campaign, label_all, people, person, take


def test_an_admin_sees_everything(sqlite_store):
    made = campaign(sqlite_store)
    page = read(list_html(sqlite_store, person(sqlite_store, "boss", Role.ADMIN)))
    links = {link.text: link["href"] for link in page.all("a")}
    assert links == {
        "New campaign": "/relabel/new",
        "Disputes": "/relabel/disputes",
        "Start": f"/relabel/label?campaign={made.id}",
        "Agreement": f"/relabel/agreement?campaign={made.id}",
        "Adjudicate": f"/relabel/adjudicate?campaign={made.id}",
        "Manage": f"/relabel/campaign?campaign={made.id}",
    }
    assert page.one("details").one("summary").text == "Guideline, version 1"


def test_an_annotator_sees_where_to_label_and_how_far_they_are(sqlite_store):
    made = campaign(sqlite_store)
    ann = person(sqlite_store, "ann")
    page = read(list_html(sqlite_store, ann))
    # A blind campaign is open: no figures, and no gold.
    assert [link.text for link in page.all("a")] == ["Start"]
    assert page.one(id="relabel")["data-person"] == str(ann.id)
    label_all(sqlite_store, take(sqlite_store, made, ann), ann, ["pos", "neg"])
    page = read(list_html(sqlite_store, ann))
    assert [link.text for link in page.all("a")] == ["Continue"]
    assert [bar["aria-label"] for bar in page.all(cls="meter")] == ["You: 1 of 3 answers"]
    close_campaign(sqlite_store, made.id)
    page = read(list_html(sqlite_store, ann))
    assert page.one(cls="end").text == "closed"
    assert [link.text for link in page.all("a")] == ["Disputes", "Agreement"]


def test_who_adjudicates_sees_how_far_all_are_and_who_only_looks_does_too(sqlite_store):
    made = campaign(sqlite_store)
    ann = person(sqlite_store, "ann")
    label_all(sqlite_store, take(sqlite_store, made, ann), ann, ["pos", "neg"])
    for role, bars in (
        (Role.ADJUDICATOR, ["You: 0 of 3 answers", "All: 1 of 3 answers"]),
        (Role.VIEWER, ["All: 1 of 3 answers"]),
    ):
        page = read(list_html(sqlite_store, person(sqlite_store, role.value, role)))
        assert [bar["aria-label"] for bar in page.all(cls="meter")] == bars


def test_none_yet(sqlite_store):
    boss, ann = person(sqlite_store, "boss", Role.ADMIN), person(sqlite_store, "ann")
    assert "Label these traces" in list_html(sqlite_store, boss)
    assert "An admin of this server makes one." in list_html(sqlite_store, ann)


def test_whoever_holds_a_trace_continues_and_whoever_has_none_left_is_told_so(sqlite_store):
    made = campaign(sqlite_store, [TWO], overlap=1)
    ann, ben = people(sqlite_store, 2)
    task = take(sqlite_store, made, ann)
    page = read(list_html(sqlite_store, ann))
    assert [link.text for link in page.all("a")] == ["Continue"]
    page = read(list_html(sqlite_store, ben))
    assert (page.one(cls="end").text, page.all("a")) == ("nothing left for you", [])
    label_all(sqlite_store, task, ann, ["pos", "neg"])
    assert read(list_html(sqlite_store, ann)).one(cls="end").text == "nothing left for you"
