"""The pages of disputes: what they show and offer, that texts of people stay texts, and who sees what."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from stepsight.app.access.rights import COOKIE
from stepsight.app.annotate.disputes import (
    DisputeAddress,
    DisputesAddress,
    dispute_html,
    form_html,
    gold_value,
    list_html,
)
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
from stepsight.storage.traces.queries import find_trace
from tests.app.client import PAGE, asking
from tests.messages import refused
from tests.storage.labelling.samples import DATASET, TWO, campaign, label_all, person, take
from tests.storage.samples import CLEAN, ERROR, FIRST_ERROR, add, many


@pytest.fixture
def traces(sqlite_store):
    return add(sqlite_store, [ERROR, CLEAN])


@pytest.fixture
def judge(sqlite_store):
    return person(sqlite_store, "<judge>", Role.ADJUDICATOR)


def filed(store, traces, user):
    return open_dispute(store, traces[0].trace_id, 1, None, "<b>It</b> is $2$.", user).id


def test_one_with_its_discussion(sqlite_store, traces, judge):
    number = filed(sqlite_store, traces, judge)
    add_entry(sqlite_store, number, judge, "See <i>.")
    add_entry(sqlite_store, number, judge, "", DisputeState.ACCEPTED)
    html = dispute_html(sqlite_store, get_dispute(sqlite_store, number), judge, labels=True)
    assert "&lt;b&gt;It&lt;/b&gt; is <span" in html
    assert "See &lt;i&gt;." in html
    assert "&lt;judge&gt;, 20" in html
    assert "The benchmark says <strong>✕ neg</strong>" in html
    assert "It should say <strong>unlabelled</strong>" in html
    assert html.index("See &lt;i&gt;.") < html.index('<p><span class="state accepted">accepted</span></p>')
    assert [f'value="{state}"' in html for state in DisputeState] == [True, False, True, False]
    for user, labels in ((None, False), (judge, False)):
        assert "<form" not in dispute_html(sqlite_store, get_dispute(sqlite_store, number), user, labels=labels)


def test_a_list(sqlite_store, traces, judge):
    number = filed(sqlite_store, traces, judge)
    other = open_dispute(sqlite_store, traces[1].trace_id, 0, "neu", "So.", judge).id
    add_entry(sqlite_store, other, judge, "", DisputeState.ACCEPTED)
    every = DisputesAddress()
    html = list_html(sqlite_store, every, list_disputes(sqlite_store), None)
    assert html.index(f"/annotate/disputes/{other}") < html.index(f"/annotate/disputes/{number}")
    assert [f"{name} ({count})" in html for name, count in (("all", 2), ("open", 1), ("rejected", 0))] == [True] * 3
    # The patch is of one dataset, and for those who may see all of it.
    assert "Label patch" not in html
    of_one = DisputesAddress(dataset="sums", trace=traces[1].trace_id)
    found = list_disputes(sqlite_store, of_one.filter(None))
    assert [dispute.id for dispute in found] == [other]
    html = list_html(sqlite_store, of_one, found, None)
    assert 'href="/annotate/disputes/patch?dataset=sums"' in html
    assert '<option value="sums" selected>' in html
    assert "Label patch" not in list_html(sqlite_store, of_one, found, judge)


@pytest.mark.parametrize(
    ("trace", "step", "offered"),
    [
        (ERROR, 1, ["pos"]),
        (FIRST_ERROR, 1, ["neg", "unlabelled"]),
        (FIRST_ERROR, 2, ["valid", "unlabelled"]),
        (FIRST_ERROR, 3, ["neg", "valid"]),
    ],
)
def test_the_form_offers_the_possible_gold_values(sqlite_store, trace, step, offered):
    (stored,) = add(sqlite_store, [trace], "one")
    html = form_html(sqlite_store, DisputeAddress(trace=stored.trace_id, step=step), stored)
    words = ["neg", "neu", "pos", "valid", "unlabelled"]
    there = [word for word in words if f'value="{"" if word == "unlabelled" else word}"' in html]
    # Of its first step ERROR says pos.
    assert there == (["neg", "neu", "unlabelled"] if trace is ERROR else offered)
    assert f'data-digest="{stored.digest}"' in html


def test_a_form_for_a_step_that_is_not_there(sqlite_store, traces):
    with refused():
        form_html(sqlite_store, DisputeAddress(trace=1, step=3), traces[0])


def test_addresses(sqlite_store, traces):
    of_trace = DisputesAddress(state="open", trace=3)
    assert DisputesAddress.exact({"state": "open", "trace": "3", "page": "0"}) == of_trace
    assert of_trace.changed(dataset="sums").filter(7) == DisputeFilter("sums", DisputeState.OPEN, 3, 7)
    with refused():
        DisputesAddress.exact({"state": "shut"})
    with refused():
        DisputesAddress.exact({"dataset": "a\x00"})
    with refused():
        DisputeAddress.exact({"step": "x"})
    assert DisputeAddress(dataset="sums", id="clean").find(sqlite_store) == traces[1]
    assert DisputeAddress(trace=traces[1].trace_id).find(sqlite_store) == traces[1]
    with pytest.raises(NotFoundError):
        DisputeAddress(trace=99999).find(sqlite_store)


def test_words():
    assert [gold_value(value) for value in ("neg", "neu", "pos", "valid", None)] == [
        "✕ neg", "○ neu", "✓ pos", "✓ valid", "unlabelled",
    ]  # fmt: skip


def test_a_trace_that_has_changed(sqlite_store, traces, judge):
    found = replace(get_dispute(sqlite_store, filed(sqlite_store, traces, judge)), changed=True, step=7)
    html = dispute_html(sqlite_store, found, judge, labels=True)
    assert "The trace has changed since this was filed; it is left out of label patches." in html
    assert datetime.now(UTC).strftime("%Y-%m-%d") in html


@pytest.fixture
def client(sqlite_store, evaluators):
    with asking(sqlite_store, evaluators) as client:
        yield client


def body(of, **changes):
    """That step 2 of a trace is pos."""
    return {"trace": of.trace_id, "step": 1, "proposed": "pos", "reason": "It is <right>."} | changes


def login(store, user):
    return {"cookie": f"{COOKIE}={open_login(store, user)}"}


def test_from_the_form_to_a_patch(sqlite_store, traces, client):
    form = client.get("/annotate/dispute?dataset=sums&id=error&step=2", headers=PAGE)
    assert form.status_code == 200
    assert f'data-trace="{traces[0].trace_id}"\ndata-step="1"' in form.text
    # What it says already is not offered.
    assert [f'value="{word}"' in form.text for word in ("neg", "neu", "pos", "valid", "")] == [
        False, True, True, False, True,
    ]  # fmt: skip
    answer = client.post("/annotate/disputes", json=body(traces[0], digest=traces[0].digest))
    assert (answer.status_code, answer.json()["go"]) == (201, "/annotate/disputes/1")
    page = client.get("/annotate/disputes/1", headers=PAGE).text
    assert "It is &lt;right&gt;." in page
    assert [word in page for word in ("Accept", "Reject", "Withdraw", "Open again")] == [True, True, True, False]
    answer = client.post("/annotate/disputes/1/entries", json={"text": "Yes.", "state": "accepted"})
    assert (answer.status_code, answer.json()["state"]) == (200, "accepted")
    assert "Filed already" in client.get(f"/annotate/dispute?trace={traces[0].trace_id}&step=2", headers=PAGE).text
    listed = client.get("/annotate/disputes?dataset=sums&state=accepted", headers=PAGE).text
    assert 'href="/annotate/disputes/1"' in listed
    assert "all (1)" in listed
    file = client.get("/annotate/disputes/patch?dataset=sums")
    assert parse_patch(file.text, "label-patch.json").size == "1 label of 1 trace"
    assert file.headers["content-disposition"] == 'attachment; filename="label-patch.json"'


def test_valid_can_be_proposed_where_the_gold_tells_no_more(sqlite_store, client):
    (trace,) = add(sqlite_store, [FIRST_ERROR], "first errors")
    form = client.get(f"/annotate/dispute?trace={trace.trace_id}&step=2", headers=PAGE).text
    assert [f'value="{word}"' in form for word in ("neg", "neu", "pos", "valid", "")] == [
        False, False, False, True, True,
    ]  # fmt: skip
    assert client.post("/annotate/disputes", json=body(trace, proposed="valid")).status_code == 201
    assert client.post("/annotate/disputes", json=body(trace, proposed=None)).status_code == 201


REFUSED: tuple[tuple[dict[str, Any], int, str], ...] = (
    ({"trace": 99999}, 404, "no trace"),
    ({"trace": "1"}, 422, "trace is '1'"),
    ({"step": 9}, 422, "no step 10"),
    ({"proposed": "neg"}, 422, "says neg of this step already"),
    ({"proposed": "unsure"}, 422, "proposed is 'unsure'"),
    ({"reason": " "}, 422, "has no reason"),
    ({"digest": "0"}, 409, "has changed"),
)


def test_refusals(sqlite_store, traces, client):
    for changes, status, message in REFUSED:
        answer = client.post("/annotate/disputes", json=body(traces[0], **changes))
        assert answer.status_code == status, changes
        assert message in answer.json()["error"], changes
        assert list_disputes(sqlite_store) == [], changes


def test_entries_that_are_refused(sqlite_store, traces, client):
    assert client.post("/annotate/disputes", json=body(traces[0])).status_code == 201
    route = "/annotate/disputes/1/entries"
    assert client.post(route, json={"text": ""}).status_code == 422
    assert client.post(route, json={"text": "So.", "state": "shut"}).status_code == 422
    assert client.post(route, json={"text": "So.", "state": "open"}).status_code == 409
    assert client.post("/annotate/disputes/99/entries", json={"text": "So."}).status_code == 404
    assert get_dispute(sqlite_store, 1).entries == ()


def test_forms_of_nothing(sqlite_store, traces, client):
    queries = ("?trace=99999", "?trace=x", "", "?trace=1&step=9", "?dataset=no&id=a")
    found = [client.get(f"/annotate/dispute{query}", headers=PAGE).status_code for query in queries]
    assert found == [404, 422, 422, 422, 404]


def test_lists_of_nothing(client):
    assert "There is no dispute yet." in client.get("/annotate/disputes", headers=PAGE).text
    assert "No dispute matches." in client.get("/annotate/disputes?state=rejected", headers=PAGE).text
    assert client.get("/annotate/disputes?state=shut", headers=PAGE).status_code == 422
    assert client.get("/annotate/disputes/7", headers=PAGE).status_code == 404


def test_a_long_list_has_pages(sqlite_store, client):
    for trace in add(sqlite_store, [one for one in many(156) if one.labels[0] is not None][:51]):
        said = "neu" if trace.labels[0] == 2 else "pos"
        assert client.post("/annotate/disputes", json=body(trace, step=0, proposed=said)).status_code == 201
    first = client.get("/annotate/disputes", headers=PAGE).text
    assert 'href="/annotate/disputes?page=2"' in first
    assert first.count("<tr>") == 51
    second = client.get("/annotate/disputes?page=2", headers=PAGE).text
    assert second.count("<tr>") == 2
    assert ">1</a></th>" in second


@pytest.fixture
def blind(sqlite_store):
    """A blind campaign, an annotator who has submitted its first trace, that trace, and the next one."""
    anna, of = person(sqlite_store, "anna"), campaign(sqlite_store, after_submission="everything")
    # The others may look.
    set_annotators(sqlite_store, of.id, [anna.id], anna)
    task = take(sqlite_store, of, anna)
    label_all(sqlite_store, task, anna, ["pos", "neg"])
    assert task.trace.steps[0].text == TWO.steps[0].text
    return of, anna, find_trace(sqlite_store, DATASET, "two"), find_trace(sqlite_store, DATASET, "three")


def test_while_a_campaign_is_blind(sqlite_store, client, blind):
    of, anna, seen, ahead = blind
    judge = person(sqlite_store, "judge", Role.ADJUDICATOR)
    theirs, judges = login(sqlite_store, anna), login(sqlite_store, judge)
    # What she has submitted she may dispute, and discuss.
    assert client.get(f"/annotate/dispute?trace={seen.trace_id}&step=2", headers=PAGE | theirs).status_code == 200
    made = client.post("/annotate/disputes", json=body(seen), headers=theirs)
    assert made.status_code == 201
    # Not what she has before her: neither the form, nor another's dispute of it, nor in a list or a patch.
    assert client.get(f"/annotate/dispute?trace={ahead.trace_id}", headers=PAGE | theirs).status_code == 403
    assert client.post("/annotate/disputes", json=body(ahead, proposed="neg"), headers=theirs).status_code == 403
    other = client.post("/annotate/disputes", json=body(ahead, proposed="neg", reason="Secret."), headers=judges)
    url = other.json()["go"]
    for answer in (
        client.get(url, headers=PAGE | theirs),
        client.post(f"{url}/entries", json={"text": "Hm."}, headers=theirs),
        client.get("/annotate/disputes/patch?dataset=sums", headers=theirs),
    ):
        assert answer.status_code == 403
        assert "Secret" not in answer.text
    listed = client.get("/annotate/disputes", headers=PAGE | theirs).text
    assert made.json()["go"] in listed
    assert (url in listed, "all (1)" in listed) == (False, True)
    # Nor may she accept her own.
    answer = client.post(f"{made.json()['go']}/entries", json={"state": "accepted"}, headers=theirs)
    assert answer.status_code == 403
    # Who may look has seen its gold, on the page as in a patch.
    boss = person(sqlite_store, "boss", Role.ADMIN)
    accepted = client.post(f"{url}/entries", json={"state": "accepted"}, headers=login(sqlite_store, boss))
    assert accepted.status_code == 200
    late = person(sqlite_store, "late", Role.ADJUDICATOR)
    patch = client.get("/annotate/disputes/patch?dataset=sums", headers=login(sqlite_store, late))
    assert patch.status_code == 200
    client.get(url, headers=PAGE | judges)
    close_campaign(sqlite_store, of.id)
    assert client.get(url, headers=PAGE | theirs).status_code == 200


def test_a_viewer_has_no_form(sqlite_store, traces, client):
    viewer = login(sqlite_store, person(sqlite_store, "viewer", Role.VIEWER))
    anna = login(sqlite_store, person(sqlite_store, "anna"))
    url = client.post("/annotate/disputes", json=body(traces[0]), headers=anna).json()["go"]
    shown = client.get(url, headers=PAGE | viewer)
    assert (shown.status_code, "<form" in shown.text) == (200, False)
    assert "<textarea" in client.get(url, headers=PAGE | anna).text
    assert client.post(f"{url}/entries", json={"text": "Hm."}, headers=viewer).status_code == 403


def test_a_number_of_thousands_of_digits_is_not_there(client):
    assert client.get(f"/annotate/disputes/{'9' * 5000}", headers=PAGE).status_code == 404
    assert client.post(f"/annotate/campaigns/{'9' * 13}/claim").status_code == 404
