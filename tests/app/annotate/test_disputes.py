"""The pages of disputes: what they show and offer, that texts of people stay texts, and who sees what."""

import pytest

from stepsight.app.annotate.disputes import (
    DisputeAddress,
    DisputesAddress,
    dispute_html,
    form_html,
    list_html,
)
from stepsight.app.web.access import COOKIE
from stepsight.core.files.label_patch import parse_patch
from stepsight.storage.database.store import NotFoundError
from stepsight.storage.labelling.campaigns import close_campaign, set_annotators
from stepsight.storage.labelling.disputes import (
    DisputeFilter,
    DisputeState,
    add_entry,
    get_dispute,
    list_disputes,
    open_dispute,
)
from stepsight.storage.people.logins import open_login
from stepsight.storage.people.users import Role
from tests.app.client import PAGE
from tests.messages import refused
from tests.storage.labelling.samples import Scene, person
from tests.storage.samples import CLEAN, ERROR, FIRST_ERROR, add, many

LIST = "/annotate/disputes"


@pytest.fixture
def traces(sqlite_store):
    return add(sqlite_store, [ERROR, CLEAN])


@pytest.fixture
def judge(sqlite_store):
    return person(sqlite_store, "<judge>", Role.ADJUDICATOR)


def filed(store, traces, user):
    return open_dispute(store, traces[0].trace_id, 1, None, "<b>It</b> is $2$.", user).id


def test_one_with_its_discussion(sqlite_store, traces, judge, drawn):
    number = filed(sqlite_store, traces, judge)
    add_entry(sqlite_store, number, judge, "See <i>.")
    dispute = add_entry(sqlite_store, number, judge, "", DisputeState.ACCEPTED)
    drawn(dispute_html(sqlite_store, dispute, judge, labels=True), "for who may decide")
    drawn(dispute_html(sqlite_store, dispute, None, labels=False), "for somebody not logged in")
    dispute.changed, dispute.step = True, 7
    drawn(dispute_html(sqlite_store, dispute, judge, labels=False), "the trace has changed since")


def test_a_list(sqlite_store, traces, judge, drawn):
    filed(sqlite_store, traces, judge)
    other = open_dispute(sqlite_store, traces[1].trace_id, 0, "neu", "So.", judge).id
    add_entry(sqlite_store, other, judge, "", DisputeState.ACCEPTED)
    drawn(list_html(sqlite_store, DisputesAddress(), list_disputes(sqlite_store), None), "all")
    of_one = DisputesAddress(dataset="sums", trace=traces[1].trace_id)
    disputes = list_disputes(sqlite_store, of_one.filter(None))
    # The patch is of one dataset, and for those who may see all of it.
    drawn(list_html(sqlite_store, of_one, disputes, None), "of one trace")
    assert "Label patch" not in list_html(sqlite_store, of_one, disputes, judge)


def test_the_form_offers_the_possible_gold_values(sqlite_store, drawn):
    for name, trace, step in (
        ("a step that is called wrong", ERROR, 1),
        ("the first error, of validity alone", FIRST_ERROR, 2),
        ("a step after it", FIRST_ERROR, 3),
    ):
        (stored,) = add(sqlite_store, [trace], name)
        drawn(form_html(sqlite_store, DisputeAddress(trace=stored.trace_id, step=step), stored), name)
    with refused():
        form_html(sqlite_store, DisputeAddress(trace=1, step=4), stored)


def test_addresses(sqlite_store, traces):
    of_trace = DisputesAddress(state="open", trace=3)
    assert DisputesAddress.exact({"state": "open", "trace": "3", "page": "0"}) == of_trace
    assert of_trace.changed(dataset="sums").filter(7) == DisputeFilter("sums", DisputeState.OPEN, 3, 7)
    for address, query in (
        (DisputesAddress, {"state": "shut"}),
        (DisputesAddress, {"dataset": "a\x00"}),
        (DisputeAddress, {"step": "x"}),
    ):
        with refused():
            address.exact(query)
    assert DisputeAddress(dataset="sums", id="clean").find(sqlite_store) == traces[1]
    assert DisputeAddress(trace=traces[1].trace_id).find(sqlite_store) == traces[1]
    with pytest.raises(NotFoundError):
        DisputeAddress(trace=99999).find(sqlite_store)


def body(trace_id, **changes):
    """That step 2 of a trace is pos."""
    return {"trace": trace_id, "step": 1, "proposed": "pos", "reason": "It is <right>."} | changes


def login(store, user):
    return {"cookie": f"{COOKIE}={open_login(store, user)}"}


def test_from_the_form_to_a_patch(traces, client):
    form = client.get("/annotate/dispute?dataset=sums&id=error&step=2", headers=PAGE)
    assert (form.status_code, f'data-trace="{traces[0].trace_id}"\ndata-step="1"' in form.text) == (200, True)
    answer = client.post(LIST, json=body(traces[0].trace_id, digest=traces[0].digest))
    assert (answer.status_code, answer.json()["go"]) == (201, f"{LIST}/1")
    page = client.get(f"{LIST}/1", headers=PAGE).text
    assert "It is &lt;right&gt;." in page
    assert [word in page for word in ("Accept", "Reject", "Withdraw", "Reopen")] == [True, True, True, False]
    answer = client.post(f"{LIST}/1/entries", json={"text": "Yes.", "state": "accepted"})
    assert (answer.status_code, answer.json()["state"]) == (200, "accepted")
    assert "Filed already" in client.get(f"/annotate/dispute?trace={traces[0].trace_id}&step=2", headers=PAGE).text
    listed = client.get(f"{LIST}?dataset=sums&state=accepted", headers=PAGE).text
    assert f'href="{LIST}/1"' in listed
    assert "all (1)" in listed
    file = client.get(f"{LIST}/patch?dataset=sums")
    assert parse_patch(file.text, "label-patch.json").size == "1 label of 1 trace"
    assert file.headers["content-disposition"] == 'attachment; filename="label-patch.json"'


def test_what_cannot_be_filed_added_or_shown(sqlite_store, traces, client):
    assert "There are no disputes yet." in client.get(LIST, headers=PAGE).text
    for changes, status, message in (
        ({"trace": 99999}, 404, "no trace"),
        ({"trace": "1"}, 422, "trace is '1'"),
        ({"proposed": "neg"}, 422, "of this step is already neg"),
        ({"proposed": "unsure"}, 422, "proposed is 'unsure'"),
        ({"digest": "0"}, 409, "has changed"),
    ):
        answer = client.post(LIST, json=body(traces[0].trace_id, **changes))
        assert (answer.status_code, message in answer.json()["error"]) == (status, True), changes
    assert list_disputes(sqlite_store) == []
    client.post(LIST, json=body(traces[0].trace_id))
    for number, entry, status in (
        (1, {"text": ""}, 422),
        (1, {"text": "So.", "state": "shut"}, 422),
        (1, {"text": "So.", "state": "open"}, 409),
        (99, {"text": "So."}, 404),
    ):
        assert client.post(f"{LIST}/{number}/entries", json=entry).status_code == status
    assert get_dispute(sqlite_store, 1).entries == []
    for path, status in (
        ("/annotate/dispute?trace=99999", 404),
        ("/annotate/dispute?trace=x", 422),
        ("/annotate/dispute", 422),
        ("/annotate/dispute?trace=1&step=9", 422),
        ("/annotate/dispute?dataset=no&id=a", 404),
        (f"{LIST}?state=shut", 422),
        (f"{LIST}/7", 404),
        # A number of thousands of digits is not there either.
        (f"{LIST}/{'9' * 5000}", 404),
    ):
        assert client.get(path, headers=PAGE).status_code == status
    assert "No dispute matches." in client.get(f"{LIST}?state=rejected", headers=PAGE).text


def test_a_long_list_has_pages(sqlite_store, judge, client):
    for trace in add(sqlite_store, [one for one in many(156) if one.labels[0] is not None][:51]):
        proposed = "neu" if trace.labels[0] == 2 else "pos"
        open_dispute(sqlite_store, trace.trace_id, 0, proposed, "So.", judge)
    first, second = (client.get(f"{LIST}{query}", headers=PAGE).text for query in ("", "?page=2"))
    assert f'href="{LIST}?page=2"' in first
    assert (first.count("<tr>"), second.count("<tr>"), ">1</a></th>" in second) == (51, 2, True)


def test_while_a_campaign_is_blind(sqlite_store, client):
    scene = Scene(sqlite_store, after_submission="everything")
    anna, judge = scene.who("anna"), person(sqlite_store, "judge", Role.ADJUDICATOR)
    # The others may look.
    set_annotators(sqlite_store, scene.campaign.id, [anna.id], anna)
    seen = scene.label("pos neg", by="anna").trace.trace_id
    ahead = seen + 1
    hers, judges = login(sqlite_store, anna), login(sqlite_store, judge)
    # What she has submitted she may dispute, and discuss.
    assert client.get(f"/annotate/dispute?trace={seen}&step=2", headers=PAGE | hers).status_code == 200
    own = client.post(LIST, json=body(seen), headers=hers).json()["go"]
    # Not what she has before her: neither the form, nor another's dispute of it, nor in a list or a patch.
    secret = body(ahead, proposed="neg", reason="Secret.")
    url = client.post(LIST, json=secret, headers=judges).json()["go"]
    for answer in (
        client.get(f"/annotate/dispute?trace={ahead}", headers=PAGE | hers),
        client.post(LIST, json=secret, headers=hers),
        client.get(url, headers=PAGE | hers),
        client.post(f"{url}/entries", json={"text": "Hm."}, headers=hers),
        client.get(f"{LIST}/patch?dataset=sums", headers=hers),
        # Nor may she accept her own.
        client.post(f"{own}/entries", json={"state": "accepted"}, headers=hers),
    ):
        assert (answer.status_code, "Secret" in answer.text) == (403, False)
    listed = client.get(LIST, headers=PAGE | hers).text
    assert (own in listed, url in listed, "all (1)" in listed) == (True, False, True)
    boss = login(sqlite_store, person(sqlite_store, "boss"))
    assert client.post(f"{url}/entries", json={"state": "accepted"}, headers=boss).status_code == 200
    late = login(sqlite_store, person(sqlite_store, "late", Role.ADJUDICATOR))
    assert client.get(f"{LIST}/patch?dataset=sums", headers=late).status_code == 200
    close_campaign(sqlite_store, scene.campaign.id)
    assert client.get(url, headers=PAGE | hers).status_code == 200


def test_a_viewer_has_no_form(sqlite_store, traces, client):
    viewer = login(sqlite_store, person(sqlite_store, "viewer", Role.VIEWER))
    anna = login(sqlite_store, person(sqlite_store, "anna"))
    url = client.post(LIST, json=body(traces[0].trace_id), headers=anna).json()["go"]
    shown = client.get(url, headers=PAGE | viewer)
    assert (shown.status_code, "<textarea" in shown.text) == (200, False)
    assert "<textarea" in client.get(url, headers=PAGE | anna).text
