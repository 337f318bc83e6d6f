"""Bodies of requests that somebody damaged: each is answered by 2xx, or by a 4xx that says what is wrong; none by a
5xx. And addresses: each page answers a damaged query the same way."""

import json
from typing import Any
from urllib.parse import urlencode

import pytest

from stepsight.storage.database.store import open_store
from stepsight.storage.judgments.judgments import save_judgments
from stepsight.storage.labelling.campaigns import find_campaign
from stepsight.storage.labelling.queue import assign_next
from stepsight.storage.people.users import local_user
from stepsight.storage.traces.queries import find_dataset, iterate_traces
from tests.app.client import asking
from tests.fuzz.attack import COUNT
from tests.fuzz.mutations import changed, damaged
from tests.seeds import chance
from tests.storage.jobs.samples import send
from tests.storage.labelling.labelled_sums import item_of, labelled
from tests.storage.labelling.samples import campaign
from tests.storage.samples import evaluator, judge

JSON = {"content-type": "application/json"}
FORM = {"content-type": "application/x-www-form-urlencoded"}


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    with open_store(str(tmp_path_factory.mktemp("fuzz") / "store.db")) as store:
        labelled(store)
        traces = list(iterate_traces(store, find_dataset(store, "sums").id))
        save_judgments(store, evaluator(store).id, [judge(trace, "hindsight") for trace in traces])
        yield store


@pytest.fixture(scope="module")
def client(filled, evaluators):
    with asking(filled, evaluators) as client:
        yield client


def check(name, number, response):
    """Whether it was refused."""
    place = (name, number, response.status_code, response.text[:300])
    assert response.status_code < 500, place
    if response.status_code < 400:
        return False
    if response.headers["content-type"].startswith("application/json"):
        said = response.json()
        assert set(said) == {"error", "hint"}, place
        assert 0 < len(said["error"]) <= 2000, place
        assert len(said["hint"]) <= 2000, place
    assert "Traceback" not in response.text, place
    return True


def shoot(client, name, path, sound, count=COUNT):
    """Send JSON bodies that were changed or damaged."""
    refused = 0
    for number in range(count):
        rng = chance(f"{name}:{number}")
        if rng.random() < 0.7:
            body = json.dumps(changed(sound, rng)).encode("utf-8", "surrogatepass")
        else:
            body = damaged(json.dumps(sound).encode(), rng)
        refused += check(name, number, client.post(path, content=body, headers=JSON))
    assert refused > count / 20, (name, refused)


CHAT = [{"role": "user", "content": "2 + 3?"}, {"role": "assistant", "content": "2 + 3 = 5.<extra_0>So 5."}]
TEXT = "<|im_start|>user\n2 + 3?<|im_end|>\n<|im_start|>assistant\n2 + 3 = 5.<extra_0>So 5.<|im_end|>"
SUM = {"problem": "2 + 3?", "steps": ["2 + 3 = 5.", ["So", "5."]]}
BODIES: dict[str, dict[str, Any]] = {
    "/api/v1/score": {**SUM, "evaluator": "tiny", "mode": "offline"},
    "/api/v1/score/batch": {"traces": [SUM], "evaluator": "tiny"},
    "/api/v1/next": {
        "problem": "2 + 3?", "steps": ["2 + 3 = 5."], "candidates": ["So 5.", "6."], "evaluator": "tiny",
    },
    "/pooling": {"model": "tiny", "messages": CHAT},
    "/classify": {"model": "tiny", "input": [TEXT]},
    "/get_reward": {"model": "tiny", "query": [TEXT], "prompts": ["2 + 3?"]},
    "/api/v1/jobs": {"dataset": "sums", "evaluator": "tiny", "mode": "hindsight"},
}  # fmt: skip


@pytest.mark.parametrize("path", BODIES)
def test_bodies_of_programs(client, path):
    assert client.post(path, json=BODIES[path]).status_code in (200, 201)
    shoot(client, path.removeprefix("/api/v1/").removeprefix("/"), path, BODIES[path])


def test_labels(client, filled):
    made = campaign(filled, None, name="to label", overlap=3)
    slot = assign_next(filled, made.id, local_user(filled)).slot
    event = {"kind": "label", "key": "a", "step": 0, "new": "pos", "seconds": 1.5, "revealed": 2, "guideline": 1}
    shoot(client, "label", f"/annotate/slots/{slot}/events", event)
    comment = event | {"kind": "comment", "new": "Why not."}
    shoot(client, "comment", f"/annotate/slots/{slot}/events", comment)
    shoot(client, "undo", f"/annotate/slots/{slot}/undo", {"key": "b"})


def test_campaigns(client, filled):
    form = {
        "dataset": "sums", "traces": "dataset=sums&gold=error", "name": "again", "guideline": "Judge.",
        "overlap": "2", "view": "whole", "shows": "scores", "evaluator": "1", "ordering": "change",
        "gold_rate": "0", "sample": "1", "seed": "3", "error_kinds": "one\ntwo",
        "suggests": "yes",
    }  # fmt: skip
    shoot(client, "campaign", "/annotate/campaigns", form)
    made = campaign(filled, None, name="of annotators")
    shoot(client, "guideline", f"/annotate/campaigns/{made.id}/guideline", {"text": "Judge well."})
    shoot(client, "annotators", f"/annotate/campaigns/{made.id}/annotators", {"who": "chosen", "people": ["1"]})


def test_decisions_and_disputes(client, filled):
    item = item_of(filled, find_campaign(filled, "first"), "three")
    body = {"campaign": 1, "item": item, "step": 1, "label": "pos", "reason": "So.", "key": "c", "after": 0}
    shoot(client, "decision", "/annotate/adjudicate/decisions", body)
    dispute = {
        "trace": 1,
        "step": 1,
        "gold": "pos",
        "proposed": "neg",
        "reason": "It is wrong.",
        "digest": "0" * 64,
    }
    shoot(client, "dispute", "/annotate/disputes", dispute)
    shoot(client, "entry", "/annotate/disputes/1/entries", {"text": "No.", "state": "rejected"})


def test_uploads_and_imports(client, filled):
    sent = send(filled, local_user(filled).id, b'{"id": 1, "problem": "a", "steps": ["b"]}\n')
    one = {"upload": sent.id, "holds": "traces", "dataset": "new", "kind": "plain", "leave_out": True}
    shoot(client, "imports", "/data/imports", {"files": [one]})
    shoot(client, "fetch", "/data/fetch", {"benchmark": "none", "scores": True})


FORMS: dict[str, dict[str, str]] = {
    "/people/invitations": {"name": "ada", "role": "annotator", "campaign": "1"},
    "/people/users/1/role": {"role": "viewer"},
    "/login": {"name": "ada", "password": "a" * 12, "next": "/browse"},
    "/login/password": {"present": "a" * 12, "new": "b" * 12, "again": "b" * 12},
    "/login/invitation": {"token": "abc", "name": "ada", "password": "b" * 12, "again": "b" * 12},
}


@pytest.mark.parametrize("path", FORMS)
def test_forms(client, path):
    for number in range(COUNT):
        body = fields(FORMS[path], chance(f"{path}:{number}"))
        check(path, number, client.post(path, content=body, headers=FORM, follow_redirects=False))


QUERIES: dict[str, dict[str, str]] = {
    "/browse": {
        "dataset": "sums", "gold": "error", "q": "sum", "meta": "source=MATH", "evaluator": "mini",
        "mode": "online", "verdict": "invalid", "sort": "validity", "page": "1", "trace": "1",
        "cell": "neg-pos", "bin": "wrong-0.35",
    },
    "/results": {"dataset": "sums", "evaluator": "mini"},
    "/evidence": {"example": "1", "step": "1"},
    "/": {"problem": "2 + 2?", "solution": "4."},
    "/annotate": {"campaign": "1"},
    "/annotate/agreement": {"campaign": "1", "annotators": "1"},
    "/annotate/adjudicate": {"campaign": "1", "item": "1"},
    "/annotate/disputes": {"dataset": "sums", "page": "1", "state": "open"},
    "/annotate/new": {"dataset": "sums", "gold": "error"},
    "/data/state": {"job": "1"},
    "/api/v1/datasets/sums/traces": {"gold": "error", "limit": "5", "offset": "0", "sort": "validity"},
    "/api/v1/jobs": {"limit": "5", "offset": "1"},
}  # fmt: skip


@pytest.mark.parametrize("path", QUERIES)
def test_addresses(client, path):
    for number in range(COUNT):
        query = fields(QUERIES[path], chance(f"{path}:{number}")).decode("latin-1")[:4000]
        # What cannot stand in an address is encoded; what is encoded in it stays.
        query = "".join(sign if "!" <= sign <= "~" and sign != "#" else f"%{ord(sign):02X}" for sign in query)
        check(path, number, client.get(f"{path}?{query}"))


def fields(sound, rng):
    """The fields of a form with some of them changed, left out or doubled, or damaged as bytes."""
    if rng.random() < 0.4:
        return damaged(urlencode(sound).encode(), rng)
    pairs = changed([list(pair) for pair in sound.items()], rng)
    whole = [pair for pair in pairs if isinstance(pair, list) and len(pair) == 2] if isinstance(pairs, list) else []
    texts = [tuple(part if isinstance(part, str) else json.dumps(part) for part in pair) for pair in whole]
    return urlencode(texts, errors="surrogatepass").encode()
