"""What pages, exports and the API show of a text, to people who may still have to label it and to others."""

import json
import secrets

import pytest

from stepsight.app.web.access import COOKIE
from stepsight.storage.judgments.judgments import save_judgments
from stepsight.storage.labelling.campaigns import close_campaign, set_annotators
from stepsight.storage.labelling.disputes import open_dispute
from stepsight.storage.people.logins import open_login
from stepsight.storage.people.users import Role, find_user
from tests.app.client import asking
from tests.app.entries import typed
from tests.storage.labelling.samples import campaign, label_all, person, take
from tests.storage.people.samples import user
from tests.storage.samples import add

TEXT = {"problem": "What is 1 + 1?", "steps": ["It is a sum. So 1 + 1 = 3.", "Done."]}
"""The text of trace 1, cut otherwise."""
PEOPLE = {"ada": Role.ADMIN, "eve": Role.ADJUDICATOR, "ann": Role.ANNOTATOR, "vic": Role.VIEWER}


@pytest.fixture(scope="module")
def store(module_store, evaluators):
    """Four traces, judged by an evaluator in hindsight mode, one of them disputed, and a person of each role."""
    traces = add(module_store)
    (name, *_) = evaluators.names
    judged = [evaluators.judge(name, trace) for trace in traces]
    save_judgments(module_store, evaluators.register(module_store, name).id, judged)
    for known, role in PEOPLE.items():
        user(module_store, known, role)
    open_dispute(module_store, traces[0].trace_id, 0, "neg", "So.", find_user(module_store, "ada"))
    return module_store


@pytest.fixture(scope="module")
def client(store, evaluators):
    with asking(store, evaluators) as client:
        yield client


@pytest.fixture(params=["none", "blind", "for others", "closed", "shows equations"])
def state(request, store):
    """The state of the only campaign, of all four traces."""
    if request.param == "none":
        yield request.param
        return
    name = f"{request.param} {secrets.token_hex(4)}"
    made = campaign(store, None, name=name, shows_equations=request.param == "shows equations", overlap=2)
    if request.param == "for others":
        set_annotators(store, made.id, [person(store, "boss").id], person(store, "boss"))
    if request.param == "closed":
        close_campaign(store, made.id)
    yield request.param
    if request.param != "closed":
        close_campaign(store, made.id)


def surfaces(evaluators):
    """The address of each surface, what is posted to it, and what it shows of trace 1 alone."""
    name = evaluators.names[0]
    token = typed(TEXT["problem"], json.dumps(TEXT["steps"]), (name,)).token()
    form = {"problem": TEXT["problem"], "solution": json.dumps(TEXT["steps"]), "evaluators": [name]}
    other = typed(TEXT["problem"], json.dumps(["It is a sum. So 1 + 1 = 2.", "Done."]), (name,)).token()
    yield from (
        (path, None, sign)
        for path, sign in (
            ("/api/v1/traces/1", '"validity"'),
            ("/api/v1/datasets/sums/traces", '"trace":1,'),
            ("/browse?trace=1", 'class="steps"'),
            ("/browse?dataset=sums", '<span class="id">error'),
            ("/browse?dataset=sums&gold=error", '<span class="id">error'),
            ("/browse/trace.json?trace=1", '"validity"'),
            ("/browse/trace.csv?trace=1", "validity"),
            ("/browse/export?dataset=sums&content=judgments&format=csv", '"error"'),
            ("/browse/export?dataset=sums&content=traces&format=jsonl", '"error"'),
            ("/evidence?trace=1", 'class="steps'),
            ("/evidence/file?trace=1", "<ol"),
            ("/evidence/left-out?trace=1", "{"),
            (f"/evidence?s={token}", 'class="steps'),
            (f"/score/result.json?s={token}", '"validity"'),
            (f"/score/result.csv?s={token}", "validity"),
            ("/annotate/disputes", "/annotate/disputes/1"),
            ("/annotate/disputes/1", "So."),
            ("/annotate/dispute?trace=1&step=1", "<form"),
        )
    )
    yield "/api/v1/score", TEXT, '"validity"'
    yield "/api/v1/score/batch", {"traces": [TEXT]}, '"validity"'
    yield "/score/score", form, "bar"
    yield "/score/open", {"query": f"?s={token}"}, "bar"
    yield "/score/open", {"query": f"?s={other}&before={token}"}, "bar"


def is_shown(client, store, name, path, body, sign):
    login = {"cookie": f"{COOKIE}={open_login(store, find_user(store, name))}"}
    answer = client.get(path, headers=login) if body is None else client.post(path, json=body, headers=login)
    assert answer.status_code < 500, (path, answer.text)
    return answer.status_code == 200 and sign in answer.text


@pytest.mark.parametrize("name", PEOPLE)
def test_what_is_shown_to_whom(client, store, evaluators, state, name):
    """Everything, but for people whom an open blind campaign may still give the text, and for annotators as long as
    one is open at all."""
    is_hidden = {"ann": state in ("blind", "for others"), "vic": False}.get(name, state == "blind")
    labels = PEOPLE[name] is not Role.VIEWER
    wrong = [
        (path, body)
        for path, body, sign in surfaces(evaluators)
        if labels or not path.startswith("/annotate/dispute?")
        if is_shown(client, store, name, path, body, sign) == is_hidden
    ]
    assert wrong == []


def test_labels_of_others_wait_for_the_persons_own(client, store):
    """In adjudication, agreement and the download of the labels."""
    made = campaign(store, None, name="wait", overlap=3)
    for labels, name in ((["pos", "pos"], "one"), (["pos", "neg"], "two")):
        labelling = person(store, name, Role.ADJUDICATOR)
        label_all(store, take(store, made, labelling), labelling, labels)

    def shown():
        about = f"campaign={made.id}"
        paths = {
            f"/annotate/adjudicate?{about}": "item=",
            f"/annotate/agreement?{about}": "&amp;item=",
            f"/annotate/agreement?{about}&table=steps": "error",
            f"/annotate/export?{about}": "answers",
        }
        return [is_shown(client, store, "ada", path, None, sign) for path, sign in paths.items()]

    assert shown() == [False] * 4
    ada = find_user(store, "ada")
    label_all(store, take(store, made, ada), ada, ["pos", "neg"])
    assert shown() == [True] * 4
    close_campaign(store, made.id)
