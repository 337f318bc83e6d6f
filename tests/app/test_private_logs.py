"""Nothing that people enter comes into the log: secrets and texts are sent everywhere, and looked for."""

import json
import re
import signal

import pytest
from httpx import Client

from stepsight.app.web.access import COOKIE
from stepsight.storage.people.logins import invite, open_login
from stepsight.storage.people.users import Role
from tests.app.processes import until
from tests.app.web.test_access import EXPECTED, concrete
from tests.forked import Forked
from tests.storage.labelling.samples import campaign, take
from tests.storage.people.samples import PASSWORD, user

TEXT = "A secret trace's text"
WORD = "Geheimnis"
NAMES = [
    *(
        "q",
        "s",
        "before",
        "kept",
        "trace",
        "dataset",
        "evaluator",
        "text",
        "search",
        "token",
        "next",
        "name",
        "page",
    ),
    *("password", "present", "new", "again", "role", "problem", "solution", "steps", "step", "label", "comment"),
    *("note", "reason", "title", "guideline", "key", "kind", "spec", "file", "repo", "url", "view", "order"),
]


@pytest.fixture
def entered(sqlite_store):
    """What must not be logged: of a store with an admin and an annotator at work, the tokens and the password."""
    store = sqlite_store
    boss, ada = user(store, "boss", Role.ADMIN), user(store)
    tokens = {person.name: open_login(store, person) for person in (boss, ada)}
    slot = take(store, campaign(store, overlap=2), ada).slot
    return tokens, invite(store, Role.VIEWER, "eve", boss), slot


def send_everywhere(client, headers):
    """A request to every route, in each of the forms that a body has."""
    fields = dict.fromkeys(NAMES, f"{TEXT} {WORD}")
    for route in sorted(EXPECTED):
        method, path = route.split(" ")
        bodies = [{}] if method == "GET" else [
            {"data": fields}, {"json": fields}, {"json": {"data": [TEXT, WORD]}}, {"json": {"data": [fields]}},
            {"content": f"{TEXT} {WORD}"},
        ]  # fmt: skip
        for body in bodies:
            if path != "/logout":
                client.request(method, concrete(path), params=fields, headers=headers, **body)


@pytest.mark.slow
def test_no_text_no_token_and_no_password_is_logged(sqlite_store, entered, tmp_path):
    tokens, invitation, slot = entered
    path = tmp_path / "log"
    argv = ["app", "--db", sqlite_store.name, "--port", 0, "--access-log", "--log-format", "json"]
    event = {"key": "the-key-of-it", "kind": "comment", "step": 0, "new": TEXT, "guideline": 1}
    with path.open("w") as file, Forked(None, argv, stderr=file.fileno()) as process:
        try:
            until(lambda: "Ctrl-C" in path.read_text())
            port = re.search(r"http://127\.0\.0\.1:(\d+)", path.read_text())[1]
            ada, boss = ({"cookie": f"{COOKIE}-{port}={tokens[name]}"} for name in ("ada", "boss"))
            with Client(base_url=f"http://127.0.0.1:{port}", timeout=60) as client:
                asked = [
                    client.post(f"/annotate/slots/{slot}/events", json=event, headers=ada),
                    client.get("/browse", headers={"x-request-id": f"{TEXT} {WORD}", "authorization": WORD}),
                    client.get("/login/invitation", params={"token": invitation}),
                    client.get(f"/login/invitation/{invitation}"),
                    client.post("/login", data={"name": "boss", "password": PASSWORD + WORD}),
                    client.post("/login", data={"name": "boss", "password": PASSWORD}),
                ]
                client.cookies.clear()
                send_everywhere(client, boss)
            assert [one.status_code for one in asked] == [200, 401, 200, 404, 401, 303]
            process.send_signal(signal.SIGTERM)
            assert process.wait(30) == 0
        finally:
            process.kill()
    log = path.read_text()
    for secret in (TEXT, WORD, PASSWORD, invitation, *tokens.values(), "ecret", "A%20", "A+"):
        assert secret not in log, log[max(0, log.index(secret) - 500) :][:1000]
    lines = [json.loads(line) for line in log.splitlines()]
    requests = [line for line in lines if line["logger"] == "stepsight.access"]
    assert len(requests) > len(EXPECTED)
    assert {"method", "path", "status", "bytes", "milliseconds", "person", "request"} <= set(requests[0])
    assert [line["status"] for line in requests if line["path"] == "/login/invitation/*"] == [404]
