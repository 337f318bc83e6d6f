import pytest

from stepsight.app.browse.page import BrowsePage
from stepsight.app.browse.people import PeopleLabels
from stepsight.storage.labelling.campaigns import close_campaign
from stepsight.storage.people.users import Role, local_user
from tests.app.elements import read
from tests.storage.labelling.labelled_sums import labelled
from tests.storage.labelling.samples import person


@pytest.fixture
def made(sqlite_store):
    return labelled(sqlite_store)


def table(said):
    """The rows of the only table, cell by cell."""
    rows = read(said.html()).one("table").all("tr")
    return [[cell.text.strip() for cell in row.children] for row in rows]


def test_agreed_labels_stand_at_each_step(sqlite_store, made, evaluators):
    page = read(BrowsePage(sqlite_store, evaluators).content({"trace": "2"}, local_user(sqlite_store)).html)
    notes = [em.text for em in page.one("ol", cls="steps").all("em", cls="people")]
    # Of the last step two were unsure, so that there is nothing to say.
    assert notes == ["people: ✓ pos", "people: ○ neu"]
    assert "people’s labels 3 annotators in first" in page.one("p", cls="meta").text


def test_everybodys_labels_once_the_campaign_is_closed(sqlite_store, made):
    viewer = person(sqlite_store, "vic", Role.VIEWER)
    agreed = [["Step", "Agreed"], ["1", "✓ pos majority"], ["2", "○ neu decided"], ["3", "unlabelled unsure"]]
    assert table(PeopleLabels(sqlite_store, 2, viewer)) == agreed
    close_campaign(sqlite_store, made.id)
    assert table(PeopleLabels(sqlite_store, 2, viewer)) == [
        ["Step", "Agreed", "annotator 1", "annotator 2", "annotator 3"],
        ["1", "✓ pos majority", "✓ pos", "✓ pos", "✓ pos"],
        ["2", "○ neu decided", "✕ neg", "○ neu", "✓ pos"],
        ["3", "unlabelled unsure", "? unsure", "? unsure", "✓ pos"],
    ]


def test_notes_stand_with_the_labels(sqlite_store, made):
    said = PeopleLabels(sqlite_store, 1, local_user(sqlite_store))
    cells = [row[2] for row in table(said)]
    assert cells[1:] == [
        "✓ pos=1+1 begins like a formula, “quoted”",
        "✕ negcounterfactualshould read: So 2.\nDone.",
    ]
    assert "annotator 1 on the problem: The question is odd." in read(said.html()).one("p", cls="hint").text


def test_somebody_unknown_sees_what_closed_campaigns_agree_on(sqlite_store, made):
    assert PeopleLabels(sqlite_store, 2, None).html() == ""
    assert PeopleLabels(sqlite_store, 2, None).words == "none yet"
    close_campaign(sqlite_store, made.id)
    assert [row[:2] for row in table(PeopleLabels(sqlite_store, 2, None))][1] == ["1", "✓ pos majority"]
    assert {len(row) for row in table(PeopleLabels(sqlite_store, 2, None))} == {2}
