"""The addresses of the pages to label on, and what they ask the server for, over HTTP, behind the middleware."""

import json
import re
import shutil
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sqlalchemy import func, select
from starlette.testclient import TestClient

from stepsight.core.judgment import Judgment, Mode
from stepsight.core.scores import StepScores
from stepsight.core.trace import Trace
from stepsight.storage.browse.filters import TraceFilter
from stepsight.storage.database.labelling_schema import EventRow, SlotRow
from stepsight.storage.database.store import Store, open_store
from stepsight.storage.judgments.judgments import save_judgments
from stepsight.storage.labelling.assignments import find_slot
from stepsight.storage.labelling.campaigns import (
    Campaign,
    add_guideline,
    close_campaign,
    get_campaign,
    guideline_text,
    list_campaigns,
)
from stepsight.storage.people.logins import open_login
from stepsight.storage.people.users import Role, User, local_user
from tests.app.client import HERE, PAGE, asking
from tests.cases import each
from tests.labelling_server import build
from tests.storage.labelling.samples import (
    ONE,
    PRMBENCH_KINDS,
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
from tests.storage.samples import add, evaluator


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

    def ask(self, method: str, path: str, body: Any = None, **other: Any) -> tuple[int, Any]:
        content = None if body is None else json.dumps(body)
        response = self.client.request(method, path, content=content, headers=self.headers, **other)
        self.seen.append(response.text)
        return response.status_code, response.json() if response.content else None

    def claim(self, of: Campaign) -> tuple[int, Any]:
        return self.ask("POST", f"/annotate/campaigns/{of.id}/claim")

    def slot(self, slot: object) -> tuple[int, Any]:
        return self.ask("GET", f"/annotate/slots/{slot}")

    def do(self, slot: object, kind: str, step: int | None = None, new: Any = None, **more: Any) -> tuple[int, Any]:
        body = {"kind": kind, "key": key(), "step": step, "new": new} | more
        return self.ask("POST", f"/annotate/slots/{slot}/events", body)

    def label(self, of: Campaign, label: str) -> str:
        """Give every step of the next trace this label, submit it, and return its slot."""
        task = self.claim(of)[1]
        for step in range(task["n_steps"]):
            self.do(task["slot"], "label", step, label)
        self.do(task["slot"], "submit")
        return str(task["slot"])


@pytest.fixture
def ann(client, store):
    return Browser(client, store, person(store, "ann"))


@pytest.fixture
def bob(client, store):
    return Browser(client, store, person(store, "bob"))


def events(store):
    with store.read() as session:
        return session.scalar(select(func.count()).select_from(EventRow)) or 0


def test_a_turn_from_claim_to_submission(store, client, ann):
    made = campaign(store, [TWO], overlap=2, after_submission="everything")
    status, task = ann.claim(made)
    assert status == 200
    slot = task["slot"]
    assert (task["problem"], task["steps"]) == ("What is 1 + 1?", [["It is a sum."], ["So 3.", "Done."]])
    assert task["campaign"] == {
        "id": made.id, "name": "first", "after_error": True, "view": "whole", "shows": "nothing",
        "equations": False, "after_submission": "everything", "error_kinds": list(PRMBENCH_KINDS),
    }  # fmt: skip
    assert (task["guideline"], task["n_steps"], task["answer"], task["scores"]) == (1, 2, None, [])
    assert (task["after"], task["progress"]) == (None, {"mine": 0})
    none = [None, None]
    assert task["state"] == {
        "labels": none, "comments": none, "corrections": none, "errors": none, "flag": None, "revealed": 2,
        "submitted": False, "undo": [], "redo": [], "suggested": none, "evidence": none, "asks": False,
    }  # fmt: skip
    body = {"kind": "label", "key": key(), "step": 0, "new": "pos", "seconds": 1.5, "revealed": 2, "guideline": 1}
    status, answer = ann.ask("POST", f"/annotate/slots/{slot}/events", body)
    assert (status, answer["repeated"], answer["state"]["labels"]) == (200, False, ["pos", None])
    assert len(answer["state"]["undo"]) == 1
    assert ann.ask("POST", f"/annotate/slots/{slot}/events", body) == (200, answer | {"repeated": True})
    for act, labels in (("undo", [None, None]), ("redo", ["pos", None])):
        status, answer = ann.ask("POST", f"/annotate/slots/{slot}/{act}", {"key": key()})
        assert (status, answer["state"]["labels"]) == (200, labels)
    ann.do(slot, "label", 1, "neg")
    ann.do(slot, "error", 1, "confidence")
    assert ann.slot(slot)[1]["state"]["errors"] == [None, "confidence"]
    assert ann.do(slot, "submit")[1]["state"]["submitted"]
    after = ann.slot(slot)[1]
    assert after["after"] == {
        "trace": "two", "dataset": "sums", "gold": ["pos", "neg"], "valid": [True, False], "scores": [],
        "peers": [],
    }  # fmt: skip
    assert after["expires"] is None
    assert ann.claim(made) == (204, None)
    # How far all are is for those who adjudicate.
    judge = Browser(client, store, person(store, "judy", Role.ADJUDICATOR))
    assert judge.claim(made)[1]["progress"] == {"submitted": 1, "slots": 2, "mine": 0, "items_done": 0, "items": 1}


def test_a_person_who_lost_the_trace_learns_nothing_of_its_holder(store, ann, bob):
    made = campaign(store, [ONE])
    slot = ann.claim(made)[1]["slot"]
    body = {"kind": "label", "key": key(), "step": 0, "new": "pos"}
    ann.ask("POST", f"/annotate/slots/{slot}/events", body)
    expire(store, find_slot(store, slot))
    assert bob.claim(made)[1]["state"]["labels"] == [None]
    bob.do(slot, "label", 0, "unsure")
    status, again = ann.ask("POST", f"/annotate/slots/{slot}/events", body)
    assert (status, again["repeated"], again["state"]["labels"]) == (200, True, ["pos"])
    for status, refusal in (ann.do(slot, "label", 0, "neg"), ann.slot(slot)):
        assert (status, refusal["error"]) == (
            409,
            "Your time for this trace ran out, and somebody else has it now.",
        )
    assert not any("unsure" in text for text in ann.seen)


def test_a_bad_act_is_told_and_nothing_is_stored(store, client, ann):
    made = campaign(store, [TWO])
    slot = ann.claim(made)[1]["slot"]
    add_guideline(store, made.id, "Be strict.", person(store, "boss"))
    path = f"/annotate/slots/{slot}/events"
    label = {"kind": "label", "step": 0, "new": "pos", "key": "k"}
    for body, status, message in (
        (label | {"step": 7}, 422, "There is no step 8."),
        (label | {"step": "0"}, 422, "step is '0', expected a whole number."),
        (label | {"new": "good"}, 422, "the value of label is 'good', expected one of neg"),
        (label | {"guideline": 1}, 409, "The guideline has changed: version 2 is current"),
        ({"kind": "comment", "step": 0, "new": "a\x00", "key": "k"}, 422, "the comment holds a NUL byte."),
        ({"key": "k"}, 422, "the key kind is missing."),
        ([], 422, "The body is not a JSON object."),
    ):
        answer, refusal = ann.ask("POST", path, body)
        assert (answer, set(refusal)) == (status, {"error", "hint"})
        assert refusal["error"].startswith(message)
    for content in ("{", "", "[" * 100_000, '{"key": NaN, "kind": "label"}', "\ud800"):
        for act in ("events", "undo", "redo"):
            sent = content.encode("utf-8", "surrogatepass")
            response = client.post(f"/annotate/slots/{slot}/{act}", content=sent, headers=ann.headers)
            assert (response.status_code, set(response.json())) == (422, {"error", "hint"})
    assert ann.slot(slot)[1]["guideline"] == 2
    close_campaign(store, made.id)
    for status, refusal in (ann.do(slot, "label", 0, "pos"), ann.claim(made)):
        assert (status, "closed" in refusal["error"]) == (409, True)
    assert events(store) == 0


def test_missing_slots_and_campaigns_are_404(store, ann):
    campaign(store, [TWO], overlap=2)
    with store.read() as session:
        number, free = session.execute(select(SlotRow.id, SlotRow.public_id)).first() or (0, "")
    # Among them the number by which an earlier version knew it.
    for wrong in (0, 99, number, 2**40, 2**70, "first"):
        assert (ann.slot(wrong)[0], ann.do(wrong, "label", 0, "pos")[0]) == (404, 404)
    for wrong in (0, 99, 2**40, 2**70):
        assert ann.ask("POST", f"/annotate/campaigns/{wrong}/claim")[0] == 404
    status, refusal = ann.slot(number)
    assert (status, refusal["error"]) == (404, f"There is no assignment '{number}'.")
    assert "a trace that you hold comes first" in refusal["hint"]
    status, refusal = ann.do(free, "label", 0, "pos")
    assert (status, refusal["error"], ann.slot(free)[0]) == (403, "Nobody has taken this trace.", 403)


GOLD = ('"pos"', '"neg"', '"two"', "valid")
PEER = {"labels": ["unsure", "unsure"], "errors": [None, None]}
SCORED = {
    "evaluator": "mini",
    "mode": "offline",
    "validity": [0.5, 0.3211],
    "redundancy": [0.0, 0.0],
    "in_words": False,
}


@pytest.mark.parametrize("shows", ["nothing", "scores"])
@pytest.mark.parametrize("after", ["nothing", "gold", "everything"])
def test_no_answer_tells_more_than_the_campaign_says(store, ann, bob, shows, after):
    """Of gold, which the id within the dataset would tell too, scores that are easy to find in a text, and labels
    and comments of a peer: before submission, and after it."""
    (trace,) = add(store, [TWO])
    probs = np.array([[0.5, 0, 0.5], [0.5, 0, 0.5], [0.6789, 0, 0.3211]], np.float32)
    save_judgments(store, evaluator(store).id, [Judgment(trace, Mode.OFFLINE, StepScores(probs))])
    made = campaign(store, None, overlap=2, shows=shows, evaluator=1, after_submission=after)
    peers = bob.claim(made)[1]["slot"]
    for step in range(2):
        bob.do(peers, "comment", step, "A peer's comment.")
    bob.label(made, "unsure")
    slot = ann.claim(made)[1]["slot"]
    for step in range(2):
        ann.do(slot, "label", step, "neu")
    for act in ("undo", "redo"):
        ann.ask("POST", f"/annotate/slots/{slot}/{act}", {"key": key()})
    before = ann.slot(slot)[1]
    assert before["scores"] == ([SCORED] if shows == "scores" else [])
    ann.do(slot, "submit")
    hidden = ["unsure", "A peer's", *GOLD[:3]]
    hidden += [] if shows == "scores" else ["0.3211", "mini", "valid"]
    assert [secret for secret in hidden if secret in "".join(ann.seen)] == []
    told = ann.slot(slot)[1]["after"]
    if after == "nothing":
        assert told is None
        ann.do(slot, "reopen")
        ann.slot(slot)
        assert [secret for secret in hidden if secret in "".join(ann.seen)] == []
    else:
        everything = after == "everything"
        assert told["gold"] == ["pos", "neg"]
        assert (told["scores"], told["peers"]) == (([SCORED], [PEER]) if everything else ([], []))


def test_step_by_step_later_steps_are_in_no_answer(store, ann):
    made = campaign(store, [TWO], view="stepwise")
    task = ann.claim(made)[1]
    slot = task["slot"]
    assert (task["steps"], task["state"]["revealed"]) == ([["It is a sum."]], 1)
    ann.do(slot, "label", 1, "pos")
    ann.do(slot, "label", 0, "pos")
    ann.slot(slot)
    assert not any("So 3." in text or "Done." in text for text in ann.seen)
    assert ann.do(slot, "reveal", None, 2)[1]["state"]["revealed"] == 2
    assert ann.slot(slot)[1]["steps"] == [["It is a sum."], ["So 3.", "Done."]]


@pytest.mark.parametrize("after", ["nothing", "gold"])
def test_a_submission_brings_the_next_trace_to_the_page_alone(store, ann, after):
    made = campaign(store, [TWO, ONE], after_submission=after)

    def submit() -> Any:
        task = ann.claim(made)[1]
        for step in range(task["n_steps"]):
            ann.do(task["slot"], "label", step, "neu")
        return ann.do(task["slot"], "submit")[1], task["slot"]

    ann.headers["stepsight-part"] = "1"
    answer, first = submit()
    if after != "nothing":
        assert "next" not in answer
        return
    assert "What is 3 + 3?" in answer["next"]
    assert [secret for secret in ('"pos"', '"two"', '"one"') if secret in "".join(ann.seen)] == []
    # It is theirs now, and no other.
    assert f'data-slot="{ann.claim(made)[1]["slot"]}"' in answer["next"]
    assert "Nothing is left for you" in submit()[0]["next"]
    del ann.headers["stepsight-part"]
    ann.do(first, "reopen")
    assert "next" not in ann.do(first, "submit")[1]


def test_the_reference_answer_is_there_where_the_campaign_shows_it(store, ann):
    answered = replace(TWO, meta={"ground_truth_answer": "2", "reason": "a secret"})
    for name, shown in (("shown", True), ("hidden", False)):
        made = campaign(store, [answered], name=name, shows_answer=shown)
        assert ann.claim(made)[1]["answer"] == ("2" if shown else None)
    assert "secret" not in "".join(ann.seen)


FAILS = Trace.of("Of 74 are 5 taken.", ["74 - 5 = 70 are left.", "So 70 + 2 = 72."], id="fails")


@pytest.mark.parametrize("view", ["whole", "stepwise"])
def test_equations_that_fail_are_told_only_where_the_campaign_marks_them(store, ann, view):
    marked = campaign(store, [FAILS], name="marked", view=view, shows_equations=True)
    _, task = ann.claim(marked)
    assert task["campaign"]["equations"] is True
    assert task["equations"] == ([["74 - 5 is 69, not 70"], []] if view == "whole" else [["74 - 5 is 69, not 70"]])
    close_campaign(store, marked.id)
    another = replace(FAILS, problem="Another.", id="another")
    made = campaign(store, [another], view=view, conditions=TraceFilter(text="Another."))
    ann.seen.clear()
    # No request turns them on.
    given = {"shows_equations": True, "equations": "yes", "campaign": {"equations": True}}
    query = {"params": {"shows_equations": "1", "equations": "yes"}}
    _, task = ann.ask("POST", f"/annotate/campaigns/{made.id}/claim", given, **query)
    slot = task["slot"]
    assert (task["campaign"]["equations"], task["equations"]) == (False, [])
    ann.ask("GET", f"/annotate/slots/{slot}", **query)
    body = {"kind": "label", "key": key(), "step": 0, "new": "neg"} | given
    assert ann.ask("POST", f"/annotate/slots/{slot}/events", body)[0] == 422
    assert ann.do(slot, "label", 0, "neg")[0] == 200
    assert [text for text in ann.seen if "is 69" in text or "fails" in text] == []


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
        do(sqlite_store, find_slot(sqlite_store, second), me, "skip", None, "odd")
        assert "You skipped this trace" in page(f"slot={second}").text
        left = page(f"campaign={made.id}").text
        assert [part in left for part in ("Nothing is left for you", "look again later")] == [True, True]


def test_parts_of_the_page(shared, pages):
    made, me = campaign(shared, None, name="in parts", view="stepwise"), local_user(shared)
    task = take(shared, made, me)
    steps = f"/annotate/label/steps?slot={task.public_id}&from=1"
    assert pages.get(steps).text == ""
    do(shared, task.slot_id, me, "label", 0, "pos")
    do(shared, task.slot_id, me, "reveal", None, 2)
    assert 'data-step="1"' in pages.get(steps).text
    assert "version 1" in pages.get(f"/annotate/label/guideline?campaign={made.id}").text


def test_no_address_shows_marks_on_equations_where_they_are_off(shared, pages):
    for on in (True, False):
        # With a text of its own: a campaign that marks equations does not give what a blind one may give.
        add(shared, [Trace.of(f"Of 74 are 5 taken: {on}.", ["74 - 5 = 70 are left."], id="fails")], f"slips {on}")
        made = campaign(shared, None, name=f"marks {on}", dataset=f"slips {on}", shows_equations=on)
        slot = take(shared, made, local_user(shared)).public_id
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
        (FORM, 409, "There is a campaign 'by form' already."),
        (FORM | {"name": ""}, 422, "the name of the campaign"),
        (FORM | {"shows": "scores", "evaluator": "7"}, 404, "There is no evaluator 7."),
        ([], 422, "The body is not a JSON object."),
    ):
        answer = pages.post("/annotate/campaigns", json=fields)
        assert (answer.status_code, message in answer.json()["error"]) == (status, True), answer.text
    assert list_campaigns(shared) == before
