"""The page of doubtful labels: what it shows of each, what leads on, and what it says where there is nothing."""

import json
from collections.abc import Iterator
from urllib.parse import parse_qs, urlsplit

import pytest
from starlette.testclient import TestClient

from stepsight.app.access.rights import COOKIE
from stepsight.app.web.page_route import PART
from stepsight.core.trace import Trace
from stepsight.storage.labelling.campaigns import close_campaign
from stepsight.storage.people.exposures import exposures_of
from stepsight.storage.people.logins import open_login
from stepsight.storage.people.users import Role
from stepsight.storage.traces.queries import iterate_traces, list_datasets
from tests.app.client import PAGE, asking
from tests.app.elements import read
from tests.storage.labelling.samples import campaign, label_all, people, person, take
from tests.storage.samples import add
from tests.training.evaluate.test_doubtful import judged

PATH = "/results/doubtful"


@pytest.fixture
def client(sqlite_store, evaluators) -> Iterator[TestClient]:
    with asking(sqlite_store, evaluators) as client:
        yield client


def show(client, query="", **headers):
    """The page, once the labels are ranked: the file waits for that."""
    client.get(f"{PATH}/file?{query}")
    return read(client.get(f"{PATH}?{query}", headers={PART: "1"} | headers).text)


def test_a_label_has_its_step_in_context_its_reasons_and_a_dispute_filled_in_with_them(sqlite_store, client):
    judged(sqlite_store)
    first, second = show(client, "dataset=sums").one("ol", cls="doubts").all("li", cls="card")[:2]
    assert first.one("p", cls="reason").text == "Gold calls step 1 valid: 3 + 1 is 4, not 5."
    assert first.one("mark", cls="fails").text == "3 + 1 = 5"
    assert [one.one("b").text for one in first.one("div", cls="context").children] == ["1", "2"]
    assert second.one("span", cls="who").text == "guess"
    assert second.one("span", cls="mark")["title"] == "valid"
    traces = {trace.id: trace.trace_id for trace in iterate_traces(sqlite_store, list_datasets(sqlite_store)[0].id)}
    assert second.one("a", cls="open")["href"] == f"/browse?trace={traces['4']}"
    link = first.one("a", cls="dispute")["href"]
    assert parse_qs(urlsplit(link).query)["proposed"] == ["neg"]
    form = client.get(link, headers=PAGE).text
    assert ">Gold calls step 1 valid: 3 + 1 is 4, not 5.</textarea>" in form
    assert 'value="neg" required checked' in form
    filed = {"trace": traces["3"], "step": 0, "proposed": "neg", "reason": "Read."}
    assert client.post("/annotate/disputes", json=filed).status_code == 201
    again = show(client, "dataset=sums").one("ol", cls="doubts").all("li", cls="card")[0]
    assert [one.text for one in again.all("a", cls="dispute")] == ["disputed", "Dispute"]


def test_pages_hold_twenty_labels_and_the_file_has_all(sqlite_store, client):
    judged(sqlite_store)
    more = [Trace.of(f"Another {n}?", ["a", "b"], ["pos", "pos"], id=f"more {n}") for n in range(12)]
    add(sqlite_store, more, "sums")
    page = show(client, "dataset=sums&page=8")
    assert page.one("ol", cls="doubts")["start"] == "141"
    assert page.one("p", cls="pager").text.strip().startswith("Previous141–144 of 144")
    lines = client.get(f"{PATH}/file?dataset=sums").text.splitlines()
    assert len(lines) == 144
    assert json.loads(lines[0])["finding"] == "3 + 1 is 4, not 5"
    assert "ends before page 9" in show(client, "dataset=sums&page=9").text


def test_people_who_still_have_to_label_a_text_do_not_see_the_labels_of_others(sqlite_store, client):
    judged(sqlite_store)
    of = campaign(sqlite_store, None, overlap=2)
    first, second = people(sqlite_store, 2)
    label_all(sqlite_store, take(sqlite_store, of, first), first, ["neg", "pos"])
    boss = person(sqlite_store, "judge", Role.ADJUDICATOR)
    login = {"cookie": f"{COOKIE}={open_login(sqlite_store, boss)}"}
    pages = [show(client, f"dataset=sums&page={number}", **login).text for number in range(1, 9)]
    assert "labelled it calls it wrong" in "".join(pages)
    trace = next(iter(iterate_traces(sqlite_store, list_datasets(sqlite_store)[0].id)))
    with sqlite_store.read() as session:
        assert exposures_of(session, boss.id, trace.trace_id) == {"scores", "gold", "labels"}
    close_campaign(sqlite_store, of.id)
    assert second.name not in show(client, "dataset=sums").text


@pytest.mark.parametrize(
    ("labels", "said"), [(None, "has no gold labels to doubt"), (["pos"], "No evaluator has judgments")]
)
def test_a_dataset_without_gold_or_judgments_says_so(sqlite_store, client, labels, said):
    add(sqlite_store, [Trace.of(problem, ["a"], labels, id=problem) for problem in "pq"], "sums")
    (notice,) = show(client, "dataset=sums").all("div", cls="notice")
    assert said in notice.text
    assert client.get(f"{PATH}/file?dataset=sums").status_code == 422


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("dataset=nowhere", "There is no dataset 'nowhere'"),
        ("dataset=sums&evaluator=nobody", "'nobody' has not judged sums. These have: guess."),
        ("dataset=sums&mode=hindsight", "The mode is 'hindsight', expected offline or online."),
        ("dataset=sums&mode=online", "No evaluator has online judgments of the steps of sums"),
    ],
)
def test_an_address_of_nothing_says_what_there_is(sqlite_store, client, query, said):
    judged(sqlite_store)
    (notice,) = show(client, query).all("div", cls="notice")
    assert notice.text.startswith(said)


def test_an_empty_store_says_how_to_go_on(client):
    assert "The store is empty." in show(client).text
