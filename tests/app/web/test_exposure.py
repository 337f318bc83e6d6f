"""What people look at is noted where they may have to label it: by the real pages and routes."""

import json
import secrets

import pytest
from sqlalchemy import delete, select

from stepsight.app.access.rights import COOKIE, note_shown
from stepsight.storage.database.labelling_schema import ExposureRow
from stepsight.storage.database.schema import TraceRow
from stepsight.storage.database.store import open_store
from stepsight.storage.judgments.judgments import save_judgments
from stepsight.storage.labelling.campaigns import close_campaign
from stepsight.storage.people.logins import open_login
from stepsight.storage.people.users import Role, find_user, local_user
from tests.app.client import asking
from tests.app.entries import typed
from tests.storage.labelling.samples import campaign
from tests.storage.people.samples import user
from tests.storage.samples import add


@pytest.fixture(scope="module")
def store(tmp_path_factory, evaluators):
    """Four traces, judged by an evaluator in hindsight mode, and the adjudicator ada."""
    with open_store(str(tmp_path_factory.mktemp("exposure") / "store.db")) as store:
        traces = add(store)
        (name, *_) = evaluators.names
        judged = [evaluators.judge(name, trace) for trace in traces]
        save_judgments(store, evaluators.register(store, name).id, judged)
        user(store, role=Role.ADJUDICATOR)
        yield store


@pytest.fixture(scope="module")
def client(store, evaluators):
    with asking(store, evaluators) as client:
        yield client


@pytest.fixture
def look(store, client):
    """Ask as ada; gives which traces were noted with what, while a campaign of all of them is open."""
    ada = find_user(store, "ada")
    made = campaign(store, None, name=secrets.token_hex(4))

    def look(path, status=200, body=None):
        _forget(store)
        login = {"cookie": f"{COOKIE}={open_login(store, ada)}"}
        asked = client.get(path, headers=login) if body is None else client.post(path, json=body, headers=login)
        assert asked.status_code == status
        found = _noted(store)
        assert {row.user_id for row in found} <= {ada.id}
        noted = {}
        for row in found:
            noted.setdefault(row.trace_id, set()).add(row.what)
        return noted

    yield look
    close_campaign(store, made.id)


BOTH = {"scores", "gold"}


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/traces/2",
        "/browse/trace.json?trace=2",
        "/browse/trace.csv?trace=2",
        "/evidence/file?trace=2",
        "/evidence/left-out?trace=2",
    ],
)
def test_a_trace_that_is_opened_is_noted(look, path):
    assert look(path) == {2: BOTH}


def test_so_it_is_before_there_is_a_campaign(store, client):
    ada = find_user(store, "ada")
    _forget(store)
    client.get("/browse?trace=3", headers={"cookie": f"{COOKIE}={open_login(store, ada)}"})
    client.get("/browse?trace=4")
    assert {(row.trace_id, row.what) for row in _noted(store)} == {(3, "scores"), (3, "gold")}


def test_a_list_notes_the_traces_it_shows_and_no_others(look):
    assert look("/api/v1/datasets/sums/traces?limit=2&offset=1") == {2: BOTH, 3: BOTH}
    assert look("/api/v1/datasets") == {}
    assert look("/jobs/list") == {}


@pytest.mark.parametrize(
    ("address", "noted", "status"),
    [
        ("/browse?trace=3", {3}, 200),
        ("/browse?dataset=sums", {1, 2, 3, 4}, 200),
        ("/browse?dataset=sums&page=2", set(), 200),
        ("/evidence?trace=3", {3}, 200),
        ("/evidence?trace=99", set(), 404),
    ],
)
def test_a_page_notes_what_it_shows(look, address, noted, status):
    assert look(address, status) == dict.fromkeys(noted, BOTH)


ENTERED = {"problem": "What is 1 + 1?", "steps": ["It is a sum. So 1 + 1 = 3.", "Done."]}
"""The text of trace 1, cut otherwise."""
OTHER = ENTERED | {"steps": ["It is a sum. So 1 + 1 = 2.", "Done."]}


def token(entered, *evaluators):
    return typed(entered["problem"], json.dumps(entered["steps"]), evaluators).token()


@pytest.mark.parametrize(("entered", "noted"), [(ENTERED, {1: {"scores"}}), (OTHER, {})])
def test_a_text_that_is_entered_is_noted_where_it_is_to_be_labelled(look, evaluators, entered, noted):
    name = evaluators.names[0]
    assert look("/api/v1/score", body=entered) == noted
    for path in (
        "/score/result.json",
        "/score/result.csv",
        "/evidence",
        "/evidence/file",
        "/evidence/left-out",
    ):
        assert look(f"{path}?s={token(entered, name)}") == noted, path
    form = {"problem": entered["problem"], "solution": json.dumps(entered["steps"]), "evaluators": [name]}
    assert look("/gradio_api/run/score", body={"data": [form]}) == noted
    opened = {"data": [f"?s={token(entered, name)}", None, ""]}
    assert look("/gradio_api/run/open", body=opened) == noted


@pytest.mark.usefixtures("look")
def test_a_text_that_is_scored_in_the_demo_is_noted(store, client, evaluators):
    login = {"cookie": f"{COOKIE}={open_login(store, find_user(store, 'ada'))}"}
    body = {"data": [ENTERED["problem"], ENTERED["steps"], [evaluators.names[0]], 0.5, 0.15]}
    _forget(store)
    event = client.post("/demo/gradio_api/call/score", json=body, headers=login).json()["event_id"]
    assert "event: complete" in client.get(f"/demo/gradio_api/call/score/{event}", headers=login).text
    assert {(row.trace_id, row.what) for row in _noted(store)} == {(1, "scores")}


def test_the_solution_that_one_is_compared_with_is_noted_too(look, evaluators):
    one, other = (token(entered, evaluators.names[0]) for entered in (ENTERED, OTHER))
    body = {"data": [f"?s={other}&before={one}", None, ""]}
    assert look("/gradio_api/run/open", body=body) == {1: {"scores"}}


def test_a_text_that_is_refused_is_not_noted(look):
    assert look("/api/v1/score", 422, body=ENTERED | {"mode": "sideways"}) == {}
    assert look("/gradio_api/run/open", body={"data": ["?s=nothing", None, ""]}) == {}


def test_the_gallery_of_evidence_notes_the_traces_it_shows(look):
    found = {}
    for kind in ("wrong-to-right", "right-to-wrong", "unjudged", "stayed"):
        found |= look(f"/evidence?dataset=sums&kind={kind}")
    # Each trace is of one kind.
    assert found == dict.fromkeys([1, 2, 3, 4], BOTH)


def test_looks_without_a_login_are_not_noted(sqlite_store):
    made = campaign(sqlite_store)
    note_shown(sqlite_store, None, [1])
    assert _noted(sqlite_store) == []
    note_shown(sqlite_store, local_user(sqlite_store), [1])
    assert len(_noted(sqlite_store)) == 2
    assert made.blind


def _forget(store):
    with store.write() as session:
        session.execute(delete(ExposureRow))


def _noted(store):
    with store.read() as session:
        texts = select(TraceRow.id.label("trace_id"), ExposureRow.what, ExposureRow.user_id)
        return session.execute(texts.join(TraceRow, TraceRow.text_digest == ExposureRow.text_digest)).all()
