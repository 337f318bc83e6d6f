"""The addresses of the pages to label on."""

import re
import shutil

import pytest

from stepsight.app.access.rights import COOKIE
from stepsight.core.trace import Trace
from stepsight.storage.database.store import open_store
from stepsight.storage.labelling.assignments import find_slot
from stepsight.storage.labelling.campaigns import close_campaign, get_campaign, guideline_text, list_campaigns
from stepsight.storage.people.logins import log_in
from stepsight.storage.people.users import Role, add_user, local_user
from tests.app.client import PAGE, asking
from tests.cases import each
from tests.storage.labelling.samples import TRACES, campaign, do, label_all, take
from tests.storage.samples import add

FORM = {"name": "by form", "guideline": "Look.", "dataset": "sums"}


@pytest.fixture(scope="module")
def shared(sqlite_template, tmp_path_factory):
    """A store with traces for the tests that leave nothing behind, or what none other minds."""
    path = shutil.copy(sqlite_template, tmp_path_factory.mktemp("shared") / "store.db")
    with open_store(str(path)) as opened:
        add(opened, TRACES)
        yield opened


@pytest.fixture(scope="module")
def client(shared, evaluators):
    """Asks the application over that store, as the local user."""
    with asking(shared, evaluators) as asked:
        yield asked


def slot_of(html):
    found = re.search(r'data-slot="([0-9a-f]{16})"', html)
    assert found is not None
    return found[1]


def test_labelling_goes_from_the_campaign_to_a_slot_and_on(store, evaluators):
    made = campaign(store, TRACES[:2])
    me = local_user(store)
    with asking(store, evaluators) as client:
        assert made.name in client.get("/annotate", headers=PAGE).text
        page = client.get(f"/annotate/label?campaign={made.id}", headers=PAGE)
        slot = slot_of(page.text)
        assert (page.history[0].status_code, page.url.query) == (303, f"slot={slot}".encode())
        # The same trace as long as it is not submitted.
        assert slot_of(client.get(f"/annotate/label?campaign={made.id}", headers=PAGE).text) == slot
        label_all(store, take(store, made, me), me, ["pos", "neg"])
        assert 'id="review"' in client.get(f"/annotate/label?slot={slot}", headers=PAGE).text
        other = slot_of(client.get(f"/annotate/label?campaign={made.id}", headers=PAGE).text)
        do(store, find_slot(store, other), me, "skip", None, "odd")
        assert "You skipped this trace" in client.get(f"/annotate/label?slot={other}", headers=PAGE).text
        left = client.get(f"/annotate/label?campaign={made.id}", headers=PAGE).text
        assert [part in left for part in ("Nothing is left for you", "look again later")] == [True, True]


def test_parts_of_the_page(shared, client):
    made = campaign(shared, None, name="in parts", view="stepwise")
    me = local_user(shared)
    task = take(shared, made, me)
    slot = task.public_id
    assert client.get(f"/annotate/label/steps?slot={slot}&from=1").text == ""
    do(shared, task.slot_id, me, "label", 0, "pos")
    do(shared, task.slot_id, me, "reveal", None, 2)
    assert 'data-step="1"' in client.get(f"/annotate/label/steps?slot={slot}&from=1").text
    assert "version 1" in client.get(f"/annotate/label/guideline?campaign={made.id}").text


def test_no_address_shows_marks_on_equations_where_they_are_off(shared, client):
    made = {}
    for on in (True, False):
        # With a text of its own: a campaign that marks equations does not give what a blind one may give.
        add(shared, [Trace.of(f"Of 74 are 5 taken: {on}.", ["74 - 5 = 70 are left."], id="fails")], f"slips {on}")
        made[on] = campaign(shared, None, name=f"marks {on}", dataset=f"slips {on}", shows_equations=on)
    slots = {on: take(shared, one, local_user(shared)).public_id for on, one in made.items()}
    asked = "shows_equations=1&equations=yes&shows=scores"
    for on, slot in slots.items():
        for path in (f"/annotate/label?slot={slot}&{asked}", f"/annotate/label/steps?slot={slot}&from=0&{asked}"):
            text = client.get(path, headers=PAGE).text
            assert "74 - 5 = 70" in text
            assert ("74 - 5 is 69, not 70" in text, "<mark" in text) == (on, on)


@each(
    "path, status",
    [
        ("/annotate/label", 422),
        ("/annotate/label?campaign=abc", 422),
        ("/annotate/label?campaign=700", 404),
        ("/annotate/label?slot=700", 404),
        ("/annotate/label?slot=99999999999", 404),
        ("/annotate/label/steps?slot=700&from=0", 404),
        ("/annotate/label/guideline?campaign=700", 404),
        ("/annotate/campaign?campaign=700", 404),
        ("/annotate/new?dataset=none", 404),
    ],
)
def test_missing_pages_are_404(client, path, status):
    for headers in (PAGE, {}):
        assert client.get(path, headers=headers).status_code == status


def test_a_closed_campaign_gives_no_traces(shared, client):
    made = campaign(shared, None, name="closed")
    close_campaign(shared, made.id)
    answer = client.get(f"/annotate/label?campaign={made.id}", headers=PAGE)
    assert (answer.status_code, "is closed" in answer.text) == (409, True)


def test_a_campaign_is_made_amended_and_closed(shared, client):
    made = client.post("/annotate/campaigns", json=FORM)
    assert made.status_code == 201
    number = made.json()["campaign"]
    assert made.json()["go"] == f"/annotate/campaign?campaign={number}"
    assert client.get(made.json()["go"], headers=PAGE).status_code == 200
    amended = client.post(f"/annotate/campaigns/{number}/guideline", json={"text": " Look twice. "})
    assert (amended.json()["version"], guideline_text(shared, number)) == (2, "Look twice.")
    assert client.post(f"/annotate/campaigns/{number}/close").status_code == 200
    assert get_campaign(shared, number).closed is not None
    assert client.post(f"/annotate/campaigns/{number}/guideline", json={"text": "Late."}).status_code == 409
    # The name stays taken.
    assert client.post("/annotate/campaigns", json=FORM).status_code == 409


@pytest.mark.parametrize(
    ("fields", "status", "message"),
    [
        (FORM | {"name": ""}, 422, "the name of the campaign"),
        (FORM | {"shows": "scores", "evaluator": "7"}, 404, "There is no evaluator 7."),
        ([], 422, "The body is not a JSON object."),
    ],
)
def test_a_form_that_makes_no_sense_makes_nothing(shared, client, fields, status, message):
    before = list_campaigns(shared)
    answer = client.post("/annotate/campaigns", json=fields)
    assert (answer.status_code, message in answer.json()["error"]) == (status, True), answer.text
    assert list_campaigns(shared) == before


def test_annotators_label_and_do_not_manage(sqlite_store, evaluators):
    made = campaign(sqlite_store)
    add_user(sqlite_store, "ann", Role.ANNOTATOR, "a long password")
    token = log_in(sqlite_store, "ann", "a long password", "127.0.0.1")
    with asking(sqlite_store, evaluators) as client:
        nobody = client.get(f"/annotate/label?campaign={made.id}", headers=PAGE, follow_redirects=False)
        assert (nobody.status_code, nobody.headers["location"].startswith("/login?")) == (303, True)
        client.cookies.set(COOKIE, token)
        assert client.get(f"/annotate/label?campaign={made.id}", headers=PAGE).status_code == 200
        for path in ("/annotate/new", f"/annotate/campaign?campaign={made.id}"):
            assert client.get(path, headers=PAGE).status_code == 403
        for path in ("", f"/{made.id}/guideline", f"/{made.id}/close"):
            assert client.post(f"/annotate/campaigns{path}", json=FORM | {"text": "x"}).status_code == 403
    assert get_campaign(sqlite_store, made.id).closed is None
    assert len(list_campaigns(sqlite_store)) == 1
