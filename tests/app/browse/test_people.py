import pytest

from stepsight.app.browse.page import BrowsePages
from stepsight.app.browse.people import PeopleLabels, dispute_links
from stepsight.storage.labelling.campaigns import close_campaign
from stepsight.storage.labelling.disputes import DisputeState, add_entry, open_dispute
from stepsight.storage.people.users import Role, local_user
from tests.app.elements import read
from tests.storage.labelling.labelled_sums import labelled
from tests.storage.labelling.samples import person
from tests.storage.samples import ERROR, MISSING, add


@pytest.fixture
def made(sqlite_store):
    return labelled(sqlite_store)


def table(said):
    """The rows of the only table, cell by cell."""
    rows = read(said.html()).one("table").all("tr")
    return [[cell.text.strip() for cell in row.children] for row in rows]


def test_agreed_labels_stand_at_each_step(sqlite_store, made, evaluators):
    page = read(BrowsePages(sqlite_store, evaluators).content({"trace": "2"}, local_user(sqlite_store)).html)
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


@pytest.fixture
def traces(sqlite_store):
    return add(sqlite_store, [ERROR, MISSING])


@pytest.fixture
def user(sqlite_store):
    return local_user(sqlite_store)


def test_each_step_links_to_its_dispute_and_to_a_new_one(sqlite_store, traces, user):
    made = open_dispute(sqlite_store, traces[0].trace_id, 1, "pos", "So.", user)
    gone = open_dispute(sqlite_store, traces[0].trace_id, 1, "neu", "So.", user)
    add_entry(sqlite_store, gone.id, user, "", DisputeState.WITHDRAWN)
    one, two = dispute_links(sqlite_store, traces[0], user)
    assert one == (
        f'<a class="dispute file" href="/annotate/dispute?trace={traces[0].trace_id}&amp;step=1" '
        'aria-label="Dispute the gold of step 1">Dispute</a>'
    )
    known = f'<a class="dispute" href="/annotate/disputes/{made.id}" title="should say ✓ pos">'
    assert two.startswith(f"{known}disputed</a><a")
    assert f"/annotate/dispute?trace={traces[0].trace_id}&amp;step=2" in two
    add_entry(sqlite_store, made.id, user, "", DisputeState.ACCEPTED)
    assert f"{known}dispute accepted</a>" in dispute_links(sqlite_store, traces[0], user)[1]


def test_a_viewer_sees_disputes_and_no_link_to_a_new_one(sqlite_store, traces, user):
    made = open_dispute(sqlite_store, traces[0].trace_id, 1, "pos", "So.", user)
    for who in (None, person(sqlite_store, "viewer", Role.VIEWER)):
        one, two = dispute_links(sqlite_store, traces[0], who)
        assert one == ""
        assert two.endswith("disputed</a>")
        assert f"/annotate/disputes/{made.id}" in two


def test_without_gold_there_is_nothing_to_dispute(sqlite_store, traces, user):
    assert dispute_links(sqlite_store, traces[1], user) == ()


def test_on_the_page_of_a_trace(sqlite_store, traces, evaluators, user):
    page = BrowsePages(sqlite_store, evaluators).content({"trace": str(traces[0].trace_id)}, user).html
    assert page.count('<div class="disputable"><span class="g"') == 2
    page = BrowsePages(sqlite_store, evaluators).content({"trace": str(traces[0].trace_id)}, None).html
    assert "disputable" not in page
