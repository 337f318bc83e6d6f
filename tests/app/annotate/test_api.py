"""What the labelling pages ask the server for, over HTTP, behind the middleware."""

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sqlalchemy import func, select, update
from starlette.testclient import TestClient

from stepsight.core.judgment import Judgment, Mode
from stepsight.core.scores import StepScores
from stepsight.core.trace import Trace
from stepsight.storage.database.labelling_schema import EventRow, SlotRow
from stepsight.storage.database.schema import TraceRow
from stepsight.storage.database.store import Store
from stepsight.storage.judgments.judgments import save_judgments
from stepsight.storage.labelling.assignments import find_slot
from stepsight.storage.labelling.campaigns import Campaign, add_guideline, close_campaign, set_annotators
from stepsight.storage.people.logins import open_login
from stepsight.storage.people.users import Role, User
from stepsight.storage.traces.queries import iterate_traces
from tests.app.client import HERE
from tests.labelling_server import build
from tests.storage.labelling.samples import ONE, PRMBENCH_KINDS, TWO, campaign, expire, key, people, person
from tests.storage.samples import evaluator


@pytest.fixture
def client(store):
    with TestClient(build(store), base_url="http://127.0.0.1", client=HERE) as found:
        yield found


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

    def do(self, slot: str, kind: str, step: int | None = None, new: Any = None, **other: Any) -> tuple[int, Any]:
        body = {"kind": kind, "key": key(), "step": step, "new": new} | other
        return self.ask("POST", f"/annotate/slots/{slot}/events", body)


@pytest.fixture
def ann(client, store):
    return Browser(client, store, person(store, "ann"))


def events(store):
    with store.read() as session:
        return session.scalar(select(func.count()).select_from(EventRow)) or 0


def test_a_turn_from_claim_to_submission(store, ann):
    made = campaign(store, [TWO], overlap=2, after_submission="everything")
    status, task = ann.claim(made)
    assert status == 200
    slot = task["slot"]
    assert (task["problem"], task["steps"]) == ("What is 1 + 1?", [["It is a sum."], ["So 3.", "Done."]])
    assert task["campaign"] == {
        "id": made.id, "name": "first", "after_error": True, "view": "whole", "shows": "nothing",
        "equations": False,
        "after_submission": "everything", "error_kinds": list(PRMBENCH_KINDS),
    }  # fmt: skip
    assert (task["guideline"], task["n_steps"], task["answer"], task["scores"]) == (1, 2, None, [])
    assert task["after"] is None
    assert task["progress"] == {"mine": 0}
    assert task["state"] == {
        "labels": [None, None], "comments": [None, None], "corrections": [None, None], "errors": [None, None],
        "flag": None, "revealed": 2, "submitted": False, "undo": [], "redo": [],
        "suggested": [None, None],
        "evidence": [None, None],
        "asks": False,
    }  # fmt: skip
    status, answer = ann.do(slot, "label", 0, "pos", seconds=1.5, revealed=2, guideline=1)
    assert (status, answer["repeated"], answer["state"]["labels"]) == (200, False, ["pos", None])
    assert len(answer["state"]["undo"]) == 1
    for act, labels in (("undo", [None, None]), ("redo", ["pos", None])):
        status, answer = ann.ask("POST", f"/annotate/slots/{slot}/{act}", {"key": key()})
        assert (status, answer["state"]["labels"]) == (200, labels)
    ann.do(slot, "label", 1, "neg")
    ann.do(slot, "error", 1, "confidence")
    assert ann.ask("GET", f"/annotate/slots/{slot}")[1]["state"]["errors"] == [None, "confidence"]
    assert ann.do(slot, "submit")[1]["state"]["submitted"]
    after = ann.ask("GET", f"/annotate/slots/{slot}")[1]
    assert after["after"] == {
        "trace": "two", "dataset": "sums", "gold": ["pos", "neg"], "valid": [True, False], "scores": [],
        "peers": [],
    }  # fmt: skip
    assert after["expires"] is None
    assert ann.claim(made) == (204, None)


def test_how_far_all_are_is_for_those_who_adjudicate(store, client):
    made = campaign(store, [TWO], overlap=2)
    judge = Browser(client, store, person(store, "judy", Role.ADJUDICATOR))
    assert judge.claim(made)[1]["progress"] == {"submitted": 0, "slots": 2, "mine": 0, "items_done": 0, "items": 1}


def test_the_same_request_again_is_stored_once(store, ann):
    slot = ann.claim(campaign(store, [ONE]))[1]["slot"]
    body = {"kind": "label", "key": key(), "step": 0, "new": "pos"}
    first = ann.ask("POST", f"/annotate/slots/{slot}/events", body)[1]
    status, again = ann.ask("POST", f"/annotate/slots/{slot}/events", body)
    assert (status, again) == (200, first | {"repeated": True})
    status, told = ann.ask("POST", f"/annotate/slots/{slot}/events", body | {"new": "neg"})
    assert (status, told["error"]) == (409, "The key of this request was used for something else.")
    assert events(store) == 1


def test_a_person_who_lost_the_trace_learns_nothing_of_its_holder(store, client, ann):
    made = campaign(store, [ONE])
    slot = ann.claim(made)[1]["slot"]
    body = {"kind": "label", "key": key(), "step": 0, "new": "pos"}
    ann.ask("POST", f"/annotate/slots/{slot}/events", body)
    expire(store, find_slot(store, slot))
    bob = Browser(client, store, person(store, "bob"))
    assert bob.claim(made)[1]["state"]["labels"] == [None]
    bob.do(slot, "label", 0, "unsure")
    status, again = ann.ask("POST", f"/annotate/slots/{slot}/events", body)
    assert (status, again["repeated"], again["state"]["labels"]) == (200, True, ["pos"])
    for status, told in (ann.do(slot, "label", 0, "neg"), ann.ask("GET", f"/annotate/slots/{slot}")):
        assert (status, told["error"]) == (409, "Your time for this trace ran out, and somebody else has it now.")
    assert not any("unsure" in text for text in ann.seen)


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        ({"kind": "label", "step": 7, "new": "pos"}, 422, "There is no step 8."),
        ({"kind": "label", "step": -1, "new": "pos"}, 422, "step is -1, expected 0 or more."),
        ({"kind": "label", "step": "0", "new": "pos"}, 422, "step is '0', expected a whole number."),
        (
            {"kind": "label", "step": 0, "new": "good"},
            422,
            "the value of label is 'good', expected one of neg",
        ),
        ({"kind": "label", "step": 0, "new": "pos", "key": ""}, 422, "The key is ''."),
        ({"kind": "label", "step": 0, "new": "pos", "key": 5}, 422, "key is 5, expected text."),
        ({"kind": "label", "step": 0, "new": "pos", "guideline": 9}, 409, "The guideline has changed"),
        ({"kind": "label", "step": 0, "new": "pos", "seconds": -3}, 422, "seconds is -3, expected 0 or more."),
        ({"kind": "comment", "step": 0, "new": "a\x00"}, 422, "the comment holds a NUL byte."),
        ({"kind": "submit"}, 422, "Steps 1, 2 are not labelled yet."),
        ({"kind": "reopen"}, 409, "The annotation is not submitted."),
        ({"kind": "praise"}, 422, "kind is 'praise', expected one of label, comment"),
        ({"cause": "undo"}, 422, "There is nothing to undo."),
        ({}, 422, "the key kind is missing."),
        ([], 422, "The body is not a JSON object."),
    ],
    ids=str,
)
def test_a_bad_act_is_told_and_nothing_is_stored(store, ann, body, status, message):
    slot = ann.claim(campaign(store, [TWO]))[1]["slot"]
    sent = {"key": key()} | body if isinstance(body, dict) else body
    found, told = ann.ask("POST", f"/annotate/slots/{slot}/events", sent)
    assert (found, set(told)) == (status, {"error", "hint"})
    assert told["error"].startswith(message)
    assert events(store) == 0


@pytest.mark.parametrize("content", ["{", "", "[" * 100_000, '{"key": NaN, "kind": "label"}', "\ud800"], ids=len)
def test_a_body_that_is_none(store, client, ann, content):
    slot = ann.claim(campaign(store, [TWO]))[1]["slot"]
    for act in ("events", "undo", "redo"):
        body = content.encode("utf-8", "surrogatepass")
        response = client.post(f"/annotate/slots/{slot}/{act}", content=body, headers=ann.headers)
        assert (response.status_code, set(response.json())) == (422, {"error", "hint"})
    assert events(store) == 0


def test_a_late_event_is_refused_and_nothing_is_stored(store, ann):
    made = campaign(store, [TWO, ONE])
    slot = ann.claim(made)[1]["slot"]
    add_guideline(store, made.id, "Be strict.", person(store, "boss"))
    status, told = ann.do(slot, "label", 0, "pos", guideline=1)
    assert status == 409
    assert told["error"].startswith("The guideline has changed: version 2 is current")
    assert ann.ask("GET", f"/annotate/slots/{slot}")[1]["guideline"] == 2
    with store.write() as session:
        session.execute(update(TraceRow).where(TraceRow.external_id == "two").values(digest="changed"))
    assert ann.do(slot, "label", 0, "pos")[0] == 409
    close_campaign(store, made.id)
    for status, told in (ann.do(slot, "label", 0, "pos"), ann.claim(made)):
        assert (status, "closed" in told["error"]) == (409, True)
    assert events(store) == 0


def test_missing_slots_and_campaigns_are_404(store, ann):
    made = campaign(store, [TWO], overlap=2)
    for wrong in (0, 99, 2**40, 2**70):
        assert ann.ask("POST", f"/annotate/campaigns/{wrong}/claim")[0] == 404
        assert ann.ask("GET", f"/annotate/slots/{wrong}")[0] == 404
        assert ann.do(str(wrong), "label", 0, "pos")[0] == 404
    # The numbers by which an earlier version knew it.
    with store.read() as session:
        number = session.scalars(select(SlotRow.id)).first()
    status, told = ann.ask("GET", f"/annotate/slots/{number}")
    assert (status, told["error"]) == (404, f"There is no assignment '{number}'.")
    assert "a trace that you hold comes first" in told["hint"]
    assert ann.ask("GET", "/annotate/slots/first")[0] == 404
    with store.read() as session:
        free = session.scalars(select(SlotRow.public_id)).first()
    assert free is not None
    status, told = ann.do(free, "label", 0, "pos")
    assert (status, told["error"]) == (403, "Nobody has taken this trace.")
    assert ann.ask("GET", f"/annotate/slots/{free}")[0] == 403
    assert made.items == 1


def test_it_is_for_those_who_may_label(store, client):
    made = campaign(store, [TWO])
    path = f"/annotate/campaigns/{made.id}/claim"
    viewer = Browser(client, store, person(store, "vic", Role.VIEWER))
    assert viewer.claim(made)[0] == 403
    # Where nobody can log in, who asks is the local user.
    assert client.post(path).status_code == 200
    for role in (Role.ADJUDICATOR, Role.ADMIN):
        assert Browser(client, store, person(store, role.value, role)).claim(made)[0] == 204


def _judge(store, of):
    """Scores that are easy to find in a text."""
    (trace,) = iterate_traces(store, of.dataset_id)
    probs = np.array([[0.5, 0, 0.5], [0.5, 0, 0.5], [0.6789, 0, 0.3211]], np.float32)
    save_judgments(store, evaluator(store).id, [Judgment(trace, Mode.OFFLINE, StepScores(probs))])


def test_a_blind_campaign_tells_nothing_before_submission(store, client, ann):
    made = campaign(store, [TWO], overlap=2, after_submission="everything")
    _judge(store, made)
    bob = Browser(client, store, people(store, 1)[0])
    slot = bob.claim(made)[1]["slot"]
    for step in range(2):
        bob.do(slot, "label", step, "unsure")
        bob.do(slot, "comment", step, "A peer's comment.")
    bob.do(slot, "submit")
    slot = ann.claim(made)[1]["slot"]
    for step in range(2):
        ann.do(slot, "label", step, "neu")
    ann.ask("GET", f"/annotate/slots/{slot}")
    ann.ask("POST", f"/annotate/slots/{slot}/undo", {"key": key()})
    ann.ask("POST", f"/annotate/slots/{slot}/redo", {"key": key()})
    before = len(ann.seen)
    ann.do(slot, "submit")
    told = "".join(ann.seen)
    # Gold, a peer's label and comment, scores, and what would tell a gold item: the id within its dataset.
    for hidden in ('"pos"', '"neg"', "unsure", "A peer's", "0.3211", "mini", '"two"', "valid"):
        assert hidden not in told, hidden
    status, task = ann.ask("GET", f"/annotate/slots/{slot}")
    assert (status, before) == (200, 6)
    assert task["after"]["peers"] == [{"labels": ["unsure", "unsure"], "errors": [None, None]}]
    assert task["after"]["scores"] == [
        {
            "evaluator": "mini",
            "mode": "offline",
            "validity": [0.5, 0.3211],
            "redundancy": [0.0, 0.0],
            "in_words": False,
        }
    ]


@pytest.mark.parametrize("after", ["nothing", "gold"])
def test_after_submission_no_answer_tells_more_than_the_campaign_says(store, client, ann, after):
    made = campaign(store, [TWO], overlap=2, after_submission=after)
    _judge(store, made)
    bob = Browser(client, store, people(store, 1)[0])
    for one, label in ((bob, "unsure"), (ann, "neu")):
        slot = one.claim(made)[1]["slot"]
        for step in range(2):
            one.do(slot, "label", step, label)
        one.do(slot, "submit")
        told = one.ask("GET", f"/annotate/slots/{slot}")[1]
        one.ask("GET", f"/annotate/slots/{slot}")
        if after == "nothing":
            assert told["after"] is None
        else:
            assert (told["after"]["gold"], told["after"]["scores"], told["after"]["peers"]) == (
                ["pos", "neg"],
                [],
                [],
            )
        one.do(slot, "reopen")
        one.ask("GET", f"/annotate/slots/{slot}")
    hidden = ["unsure", "0.3211", "mini"]
    hidden += ['"pos"', '"neg"', '"two"', "valid"] if after == "nothing" else []
    assert [secret for secret in hidden if secret in "".join(ann.seen)] == []


@pytest.mark.parametrize("after", ["nothing", "gold", "everything"])
def test_a_submission_brings_the_next_trace_to_the_page_alone(store, ann, after):
    made = campaign(store, [TWO, ONE], after_submission=after)

    def submit(**headers: str) -> Any:
        slot = ann.claim(made)[1]["slot"]
        for step in range(len(ann.ask("GET", f"/annotate/slots/{slot}")[1]["steps"])):
            ann.do(slot, "label", step, "neu")
        body = {"kind": "submit", "key": key()}
        ann.headers |= headers
        return ann.ask("POST", f"/annotate/slots/{slot}/events", body)[1], slot

    answer, first = submit(**{"stepsight-part": "1"})
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


def test_a_campaign_of_chosen_annotators_is_closed_to_others(store, client, ann):
    made = campaign(store, [TWO])
    set_annotators(store, made.id, [ann.user.id], person(store, "boss"))
    bob = Browser(client, store, people(store, 1)[0])
    status, told = bob.claim(made)
    assert (status, told["error"]) == (403, "You are not among the annotators of 'first'.")
    assert ann.claim(made)[0] == 200


def test_step_by_step_later_steps_are_in_no_answer(store, ann):
    made = campaign(store, [TWO], view="stepwise")
    task = ann.claim(made)[1]
    slot = task["slot"]
    assert (task["steps"], task["state"]["revealed"]) == ([["It is a sum."]], 1)
    ann.do(slot, "label", 1, "pos")
    ann.do(slot, "label", 0, "pos")
    ann.ask("GET", f"/annotate/slots/{slot}")
    assert not any("So 3." in text or "Done." in text for text in ann.seen)
    assert ann.do(slot, "reveal", None, 2)[1]["state"]["revealed"] == 2
    assert ann.ask("GET", f"/annotate/slots/{slot}")[1]["steps"] == [["It is a sum."], ["So 3.", "Done."]]


def test_a_campaign_that_shows_scores_does(store, ann):
    first = campaign(store, [TWO], name="hidden", after_submission="everything")
    _judge(store, first)
    close_campaign(store, first.id)
    made = campaign(store, None, name="shown", shows="scores", evaluator=1, after_submission="everything")
    task = ann.claim(made)[1]
    assert task["scores"][0]["validity"] == [0.5, 0.3211]
    assert task["after"] is None


FAILS = Trace.of("Of 74 are 5 taken.", ["74 - 5 = 70 are left.", "So 70 + 2 = 72."], id="fails")


@pytest.mark.parametrize("view", ["whole", "stepwise"])
def test_equations_that_fail_are_told_only_where_the_campaign_marks_them(store, ann, view):
    marked = campaign(store, [FAILS], name="marked", view=view, shows_equations=True)
    _, told = ann.claim(marked)
    assert told["campaign"]["equations"] is True
    assert told["equations"] == ([["74 - 5 is 69, not 70"], []] if view == "whole" else [["74 - 5 is 69, not 70"]])


def test_no_request_gets_marks_where_they_are_off(store, ann):
    made = campaign(store, [FAILS])
    asked = {"shows_equations": True, "equations": "yes", "campaign": {"equations": True}}
    query = {"params": {"shows_equations": "1", "equations": "yes"}}
    _, told = ann.ask("POST", f"/annotate/campaigns/{made.id}/claim", asked, **query)
    slot = told["slot"]
    assert (told["campaign"]["equations"], told["equations"]) == (False, [])
    ann.ask("GET", f"/annotate/slots/{slot}", **query)
    body = {"kind": "label", "key": key(), "step": 0, "new": "neg"} | asked
    assert ann.ask("POST", f"/annotate/slots/{slot}/events", body)[0] == 422
    assert ann.do(slot, "label", 0, "neg")[0] == 200
    # Nor are they in force from elsewhere: the campaign is for those who run it alone.
    assert ann.ask("POST", "/annotate/campaigns", {"name": "mine", "equations": "yes"})[0] in (403, 404)
    assert [text for text in ann.seen if "is 69" in text or "fails" in text] == []
