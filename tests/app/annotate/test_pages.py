"""The addresses of the pages to label on, and what they ask the server for, over HTTP, behind the middleware."""

import json
import re
import shutil
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import func, select
from starlette.testclient import TestClient

from stepsight.app.web.pages import PART
from stepsight.core.trace import Trace
from stepsight.storage.database.labelling_schema import EventRow, SlotRow
from stepsight.storage.database.store import Store, open_store
from stepsight.storage.judgments.judgments import save_judgments
from stepsight.storage.labelling.campaigns import (
    Campaign,
    add_guideline,
    close_campaign,
    get_campaign,
    guideline_text,
    list_campaigns,
    set_annotators,
)
from stepsight.storage.people.logins import open_login
from stepsight.storage.people.users import User, local_user
from tests.app.client import HERE, PAGE, asking
from tests.cases import each
from tests.labelling_server import build
from tests.storage.labelling.samples import (
    ONE,
    TRACES,
    TWO,
    campaign,
    do,
    expire,
    key,
    label_all,
    person,
    take,
)
from tests.storage.samples import add, evaluator, judge


@pytest.fixture
def client(store):
    with TestClient(build(store), base_url="http://127.0.0.1", client=HERE) as opened:
        yield opened


class Browser:
    """Somebody who is logged in. `seen` has the text of every answer."""

    def __init__(self, client: TestClient, store: Store, user: User) -> None:
        self.client, self.user = client, user
        self.headers = {"cookie": f"stepsight={open_login(store, user)}"}
        self.seen: list[str] = []

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
        content = None if body is None else json.dumps(body)
        response = self.client.request(method, f"/annotate/{path}", content=content, headers=self.headers | headers)
        self.seen.append(response.text)
        is_json = response.headers["content-type"] == "application/json"
        return response.status_code, response.json() if is_json else response.text

    def take(self, of: Campaign) -> str:
        """The slot of the next trace, which comes as the page's script asks for it."""
        return slot_of(self.ask("GET", f"label?campaign={of.id}", **{PART: "1"})[1])

    def slot(self, slot: object) -> tuple[int, Any]:
        return self.ask("GET", f"slots/{slot}")

    def do(self, slot: object, kind: str, step: int | None = None, new: Any = None, **more: Any) -> tuple[int, Any]:
        body = {"kind": kind, "key": key(), "step": step, "new": new} | more
        return self.ask("POST", f"slots/{slot}/events", body)

    def label(self, slot: str, *labels: str) -> tuple[int, Any]:
        """Label the steps and submit."""
        for step, label in enumerate(labels):
            self.do(slot, "label", step, label)
        return self.do(slot, "submit")

    def has_seen(self, *texts: str) -> list[str]:
        return [text for text in texts if text in "".join(self.seen)]


@pytest.fixture
def ann(client, store):
    return Browser(client, store, person(store, "ann"))


@pytest.fixture
def bob(client, store):
    return Browser(client, store, person(store, "bob"))


def events(store):
    with store.read() as session:
        return session.scalar(select(func.count()).select_from(EventRow)) or 0


def test_a_turn_from_the_first_label_to_submission(store, ann):
    slot, none = ann.take(campaign(store, [TWO])), [None, None]
    status, task = ann.slot(slot)
    assert (status, set(task), task["guideline"]) == (200, {"guideline", "expires", "state"}, 1)
    assert task["state"] == {
        "labels": none, "comments": none, "corrections": none, "errors": none, "flag": None, "revealed": 2,
        "submitted": False, "undo": [], "redo": [], "suggested": none, "evidence": none, "stepwise": False,
    }  # fmt: skip
    body = {"kind": "label", "key": key(), "step": 0, "new": "pos", "seconds": 1.5, "revealed": 2, "guideline": 1}
    status, answer = ann.ask("POST", f"slots/{slot}/events", body)
    assert (status, answer["repeated"], answer["state"]["labels"]) == (200, False, ["pos", None])
    assert ann.ask("POST", f"slots/{slot}/events", body) == (200, answer | {"repeated": True})
    for act, labels in (("undo", [None, None]), ("redo", ["pos", None])):
        status, answer = ann.ask("POST", f"slots/{slot}/{act}", {"key": key()})
        assert (status, answer["state"]["labels"]) == (200, labels)
    assert ann.label(slot, "pos", "neg")[1]["state"]["submitted"]
    assert ann.slot(slot)[1]["expires"] is None


def test_a_person_who_lost_the_trace_learns_nothing_of_its_holder(store, ann, bob):
    made = campaign(store, [ONE])
    slot = ann.take(made)
    body = {"kind": "label", "key": key(), "step": 0, "new": "pos"}
    ann.ask("POST", f"slots/{slot}/events", body)
    expire(store, slot)
    assert bob.slot(bob.take(made))[1]["state"]["labels"] == [None]
    bob.do(slot, "comment", 0, "A secret.")
    status, again = ann.ask("POST", f"slots/{slot}/events", body)
    assert (status, again["repeated"], again["state"]["labels"]) == (200, True, ["pos"])
    lost = "Your time for this trace ran out, and somebody else has it now."
    for status, refusal in (ann.do(slot, "label", 0, "neg"), ann.slot(slot)):
        assert (status, refusal["error"]) == (409, lost)
    assert ann.has_seen("secret") == []


def test_a_bad_act_is_told_and_nothing_is_stored(store, client, ann):
    made = campaign(store, [TWO])
    slot = ann.take(made)
    add_guideline(store, made.id, "Be strict.", person(store, "boss"))
    label = {"kind": "label", "step": 0, "new": "pos", "key": "k"}
    for body, status, message in (
        (label | {"step": 7}, 422, "There is no step 8."),
        (label | {"step": "0"}, 422, "step is '0', expected a whole number."),
        (label | {"new": "good"}, 422, "the value of label is 'good', expected one of neg"),
        (label | {"shows_equations": True}, 422, "unknown key shows_equations."),
        (label | {"guideline": 1}, 409, "The guideline has changed: version 2 is current"),
        ({"kind": "comment", "step": 0, "new": "a\x00", "key": "k"}, 422, "the comment contains a NUL byte."),
        ({"key": "k"}, 422, "the key kind is missing."),
        ([], 422, "The body is not a JSON object."),
    ):
        answer, refusal = ann.ask("POST", f"slots/{slot}/events", body)
        assert (answer, set(refusal)) == (status, {"error", "hint"})
        assert refusal["error"].startswith(message)
    for content in ("{", "", "[" * 100_000, '{"key": NaN, "kind": "label"}', "\ud800"):
        for act in ("events", "undo", "redo"):
            sent = content.encode("utf-8", "surrogatepass")
            response = client.post(f"/annotate/slots/{slot}/{act}", content=sent, headers=ann.headers)
            assert (response.status_code, set(response.json())) == (422, {"error", "hint"})
    close_campaign(store, made.id)
    status, refusal = ann.do(slot, "label", 0, "pos")
    assert (status, "closed" in refusal["error"], events(store)) == (409, True, 0)


def test_missing_slots_are_404(store, ann):
    campaign(store, [TWO], overlap=2)
    with store.read() as session:
        number, free = session.execute(select(SlotRow.id, SlotRow.public_id)).first() or (0, "")
    # Among them the number of its row.
    for wrong in (0, 99, number, 2**40, 2**70, "first"):
        assert (ann.slot(wrong)[0], ann.do(wrong, "label", 0, "pos")[0]) == (404, 404)
    status, refusal = ann.do(free, "label", 0, "pos")
    assert (status, refusal["error"], ann.slot(free)[0]) == (403, "Nobody has taken this trace.", 403)


@pytest.mark.parametrize("shows", ["nothing", "scores"])
@pytest.mark.parametrize("after", ["nothing", "gold", "everything"])
def test_no_answer_tells_more_than_the_campaign_says(store, ann, bob, shows, after):
    """Of the trace's id, which tells its gold, of gold, scores and a peer's labels and comments: before submission,
    and after it."""
    (trace,) = add(store, [replace(TWO, id="an id", meta={"reason": "a reason"})])
    save_judgments(store, evaluator(store).id, [judge(trace, "offline")])
    made = campaign(store, None, overlap=2, shows=shows, evaluator=1, after_submission=after)
    theirs = bob.take(made)
    bob.do(theirs, "comment", 0, "A peer's comment.")
    bob.label(theirs, "unsure", "unsure")
    slot = ann.take(made)
    ann.ask("GET", f"label/steps?slot={slot}&from=0&shows=scores&shows_equations=yes")
    for step in range(2):
        ann.do(slot, "label", step, "neu")
    for act in ("undo", "redo"):
        ann.ask("POST", f"slots/{slot}/{act}", {"key": key()})
    ann.slot(slot)
    gold, others = "<dt>Gold</dt>", "<dt>Other 1</dt>"
    never, scored = ("a reason", "A peer"), ("mini",) if shows == "scores" else ()
    assert ann.has_seen("an id", *never, gold, others, "mini") == list(scored)
    ann.do(slot, "submit")
    ann.ask("GET", f"label?slot={slot}")
    everything = after == "everything"
    told = [gold] * (after != "nothing") + [others] * everything + ["mini"] * (everything or shows == "scores")
    assert ann.has_seen(*never, gold, others, "mini") == told


def test_step_by_step_later_steps_are_in_no_answer(store, ann):
    slot = ann.take(campaign(store, [TWO], view="stepwise"))
    ann.do(slot, "label", 1, "pos")
    ann.do(slot, "label", 0, "pos")
    ann.slot(slot)
    ann.ask("GET", f"label/steps?slot={slot}&from=0")
    assert ann.has_seen("It is a sum.", "So 3.", "Done.") == ["It is a sum."]
    assert ann.do(slot, "reveal", None, 2)[1]["state"]["revealed"] == 2
    ann.ask("GET", f"label/steps?slot={slot}&from=1")
    assert ann.has_seen("So 3.", "Done.") == ["So 3.", "Done."]


def test_step_by_step_no_answer_tells_how_many_steps_there_are(store, ann):
    made = campaign(store, [Trace.of("Many?", ["A sum."] * 300, id="many")], view="stepwise")
    slot = ann.take(made)
    ann.do(slot, "label", 0, "pos")
    revealed = ann.do(slot, "reveal", None, 2)[1]["state"]
    # The two that are revealed, and that there are more.
    by_step = ("labels", "comments", "corrections", "errors", "suggested", "evidence")
    assert {len(revealed[name]) for name in by_step} == {3}
    ann.slot(slot)
    ann.ask("GET", f"label?slot={slot}")
    assert ann.has_seen("300", "299", ", null" * 3, "null," * 3) == []


def test_a_guideline_is_for_the_annotators_of_its_campaign(store, evaluators):
    made, people = campaign(store, [TWO]), [person(store, name) for name in ("ann", "bob")]
    with asking(store, evaluators) as client:

        def statuses() -> list[int]:
            path = f"label/guideline?campaign={made.id}"
            return [Browser(client, store, user).ask("GET", path)[0] for user in people]

        assert statuses() == [200, 200]
        set_annotators(store, made.id, [people[0].id], person(store, "boss"))
        assert statuses() == [200, 403]


@pytest.mark.parametrize("after", ["nothing", "gold"])
def test_a_submission_brings_the_next_trace_to_the_page_alone(store, ann, after):
    made = campaign(store, [TWO, ONE], after_submission=after)
    first = ann.take(made)
    ann.headers[PART] = "1"
    answer = ann.label(first, "neu", "neu")[1]
    if after != "nothing":
        assert "next" not in answer
        return
    assert "What is 3 + 3?" in answer["next"]
    # It is theirs now, and no other.
    second = slot_of(answer["next"])
    assert ann.take(made) == second
    assert "Nothing is left for you" in ann.label(second, "neu")[1]["next"]
    del ann.headers[PART]
    ann.do(first, "reopen")
    assert "next" not in ann.do(first, "submit")[1]


FORM = {"name": "by form", "guideline": "Look.", "dataset": "sums"}


@pytest.fixture(scope="module")
def shared(sqlite_template, tmp_path_factory):
    """A store with traces for the tests that leave nothing behind, or what none other minds."""
    path = shutil.copy(sqlite_template, tmp_path_factory.mktemp("shared") / "store.db")
    with open_store(str(path)) as opened:
        add(opened, TRACES)
        yield opened


@pytest.fixture(scope="module")
def pages(shared, evaluators):
    """Asks the application over that store, as the local user."""
    with asking(shared, evaluators) as opened:
        yield opened


def slot_of(html):
    match = re.search(r'data-slot="([0-9a-f]{16})"', html)
    assert match is not None
    return match[1]


def test_labelling_goes_from_the_campaign_to_a_slot_and_on(sqlite_store, evaluators):
    made, me = campaign(sqlite_store, TRACES[:2]), local_user(sqlite_store)
    with asking(sqlite_store, evaluators) as client:

        def page(query: str) -> Any:
            return client.get(f"/annotate/label?{query}", headers=PAGE)

        assert made.name in client.get("/annotate", headers=PAGE).text
        first = page(f"campaign={made.id}")
        slot = slot_of(first.text)
        assert (first.history[0].status_code, first.url.query) == (303, f"slot={slot}".encode())
        # The same trace as long as it is not submitted.
        assert slot_of(page(f"campaign={made.id}").text) == slot
        label_all(sqlite_store, take(sqlite_store, made, me), me, ["pos", "neg"])
        assert 'id="review"' in page(f"slot={slot}").text
        second = slot_of(page(f"campaign={made.id}").text)
        do(sqlite_store, second, me, "skip", None, "odd")
        assert "You skipped this trace" in page(f"slot={second}").text
        left = page(f"campaign={made.id}").text
        assert [part in left for part in ("Nothing is left for you", "look again later")] == [True, True]


def test_parts_of_the_page(shared, pages):
    made, me = campaign(shared, None, name="in parts", view="stepwise"), local_user(shared)
    task = take(shared, made, me)
    steps = f"/annotate/label/steps?slot={task.slot}&from=1"
    assert pages.get(steps).text == ""
    do(shared, task.slot, me, "label", 0, "pos")
    do(shared, task.slot, me, "reveal", None, 2)
    assert 'data-step="1"' in pages.get(steps).text
    assert "version 1" in pages.get(f"/annotate/label/guideline?campaign={made.id}").text


def test_no_address_shows_marks_on_equations_where_they_are_off(shared, pages):
    for on in (True, False):
        # With a text of its own: a campaign that marks equations does not give what a blind one may give.
        add(shared, [Trace.of(f"Of 74 are 5 taken: {on}.", ["74 - 5 = 70 are left."], id="fails")], f"slips {on}")
        made = campaign(shared, None, name=f"marks {on}", dataset=f"slips {on}", shows_equations=on)
        slot = take(shared, made, local_user(shared)).slot
        for path in (f"label?slot={slot}", f"label/steps?slot={slot}&from=0"):
            text = pages.get(f"/annotate/{path}&shows_equations=1&equations=yes&shows=scores", headers=PAGE).text
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
def test_missing_pages_are_404(pages, path, status):
    for headers in (PAGE, {}):
        assert pages.get(path, headers=headers).status_code == status


def test_a_campaign_is_made_amended_and_closed(shared, pages):
    made = pages.post("/annotate/campaigns", json=FORM)
    number = made.json()["campaign"]
    assert (made.status_code, made.json()["go"]) == (201, f"/annotate/campaign?campaign={number}")
    assert pages.get(made.json()["go"], headers=PAGE).status_code == 200
    amended = pages.post(f"/annotate/campaigns/{number}/guideline", json={"text": " Look twice. "})
    assert (amended.json()["version"], guideline_text(shared, number)) == (2, "Look twice.")
    assert pages.post(f"/annotate/campaigns/{number}/close").status_code == 200
    assert get_campaign(shared, number).closed is not None
    assert pages.post(f"/annotate/campaigns/{number}/guideline", json={"text": "Late."}).status_code == 409
    before = list_campaigns(shared)
    for fields, status, message in (
        # The name stays taken.
        (FORM, 409, "There is already a campaign 'by form'."),
        (FORM | {"name": ""}, 422, "the name of the campaign"),
        (FORM | {"shows": "scores", "evaluator": "7"}, 404, "There is no evaluator 7."),
        ([], 422, "The body is not a JSON object."),
    ):
        answer = pages.post("/annotate/campaigns", json=fields)
        assert (answer.status_code, message in answer.json()["error"]) == (status, True), answer.text
    assert list_campaigns(shared) == before
