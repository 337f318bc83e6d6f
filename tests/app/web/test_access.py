"""Who gets through where: every route of the application, for everybody."""

import re
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import timedelta
from functools import partial

import pytest
from fastapi import Depends
from fastapi.testclient import TestClient
from sqlalchemy import select, update
from starlette.routing import Mount

from stepsight.app.demo.mount import PATH
from stepsight.app.server import build_app
from stepsight.app.web import middleware
from stepsight.app.web.access import COOKIE, RequiresRight, Rules
from stepsight.storage.database.schema import LoginRow, now
from stepsight.storage.database.store import open_store
from stepsight.storage.people.logins import LASTS, open_login
from stepsight.storage.people.users import Role, end_user, find_user, set_role
from stepsight.storage.traces.queries import find_dataset
from tests.app.client import HERE, PAGE, asking, who
from tests.app.processes import until
from tests.storage.labelling.samples import campaign
from tests.storage.people.samples import user
from tests.storage.samples import add

# Who may do what. A blind annotator is one while a blind campaign is open, local who asks where nobody can log in.
OPEN_TO = {
    "everybody": "anonymous public-anonymous local viewer annotator blind-annotator adjudicator admin",
    "by name": "local viewer annotator blind-annotator adjudicator admin",
    "looking": "public-anonymous local viewer annotator adjudicator admin",
    "looking or labelling": "public-anonymous local viewer annotator blind-annotator adjudicator admin",
    "labelling": "local annotator blind-annotator adjudicator admin",
    "adjudicating": "local adjudicator admin",
    "managing": "local admin",
}
EVERYBODY = OPEN_TO["everybody"].split()
ROUTES = {
    "everybody": """
        GET /stepsight/{path} GET /stepsight/pages.css GET /stepsight/pages.js
        GET /stepsight/plotly/plotly.min.js GET /favicon.ico GET /healthz
        GET /login POST /login POST /logout
        GET /login/invitation POST /login/invitation GET /help GET /help/{name}""",
    "by name": "GET /login/password POST /login/password GET /annotate",
    "looking": """
        GET / GET /evidence GET /evidence/ GET /evidence/left-out GET /evidence/file
        GET /browse GET /browse/ GET /browse/trace.json GET /browse/trace.csv GET /browse/export
        GET /results GET /results/ GET /results/table GET /results/report
        GET /jobs GET /jobs/ GET /jobs/list
        GET /evaluators GET /evaluators/ GET /evaluators/state
        GET /data GET /data/ GET /data/state GET /data/left-out GET /score/result.json
        GET /score/result.csv POST /score/split POST /score/write POST /score/score POST /score/running
        POST /score/open POST /score/cost POST /score/rejudge
        GET /api/v1/docs GET /api/v1/openapi.json GET /api/v1/evaluators POST /api/v1/score
        POST /api/v1/score/batch POST /api/v1/next POST /pooling POST /classify POST /get_reward GET /v1/models
        GET /api/v1/datasets
        GET /api/v1/datasets/{name}/traces GET /api/v1/traces/{trace} GET /api/v1/jobs GET /api/v1/jobs/{job}
        GET /demo GET /demo/ GET /demo/assets/{path} GET /demo/static/{path} GET /demo/theme.css GET /demo/config
        GET /demo/gradio_api/info GET /demo/gradio_api/queue/data GET /demo/gradio_api/call/score/{event}
        POST /demo/gradio_api/queue/join POST /demo/gradio_api/call/score POST /demo/gradio_api/run/predict
        POST /demo/gradio_api/cancel POST /demo/gradio_api/component_server/
        GET /annotate/agreement GET /annotate/disputes/patch""",
    "looking or labelling": "GET /annotate/disputes GET /annotate/disputes/{number}",
    "labelling": """
        GET /annotate/label GET /annotate/label/steps GET /annotate/label/guideline GET /annotate/slots/{slot}
        GET /annotate/own
        POST /annotate/slots/{slot}/events POST /annotate/slots/{slot}/undo POST /annotate/slots/{slot}/redo
        GET /annotate/dispute POST /annotate/disputes
        POST /annotate/disputes/{number}/entries""",
    "adjudicating": "GET /annotate/adjudicate POST /annotate/adjudicate/decisions",
    "managing": """
        POST /score/save POST /data/uploads POST /data/uploads/{upload}/remove
        GET /data/uploads/{upload} GET /changes/dataset POST /changes/dataset/rename
        POST /changes/dataset/delete
        GET /changes/scores POST /changes/scores/delete GET /changes/job POST /changes/job/delete
        GET /changes/ended-jobs POST /changes/ended-jobs/delete GET /changes/campaign
        POST /changes/campaign/rename POST /changes/campaign/delete
        POST /data/imports POST /data/fetch POST /evaluators/fetch
        POST /api/v1/jobs POST /api/v1/jobs/{job}/cancel POST /api/v1/jobs/{job}/resume
        GET /annotate/new GET /annotate/campaign GET /annotate/export POST /annotate/campaigns
        GET /people POST /people/invitations POST /people/invitations/{invitation}/revoke
        POST /people/users/{person}/role POST /people/users/{person}/deactivate
        POST /people/users/{person}/reactivate POST /people/users/{person}/reset
        POST /annotate/campaigns/{campaign}/guideline POST /annotate/campaigns/{campaign}/annotators
        POST /annotate/campaigns/{campaign}/close""",
}
EXPECTED = {
    " ".join(route): OPEN_TO[group].split()
    for group, text in ROUTES.items()
    for route in zip(*[iter(text.split())] * 2, strict=True)
}
# What a part of a path stands for, where it matters.
PARTS = {
    "path": "style.css",
    "name": "sums",
    "trace": "1",
    "campaign": "1",
    "slot": "999",
    "person": "999",
}
ALONE = "There are no users yet, so only somebody at the server's own machine has access."
# These refuse by themselves who gives no password.
PASSWORDS = ("POST /login", "POST /login/password")


def walk(routes, prefix=""):
    """Every method and path of an application, those of what is mounted too, with whether they are Gradio's."""
    for route in routes:
        inner = getattr(route, "original_router", None)
        path = prefix + re.sub(r":\w+}", "}", getattr(route, "path", ""))
        if inner is not None:
            yield from walk(inner.routes, prefix)
        elif isinstance(route, Mount):
            yield from walk(route.routes, path) if route.routes else [f"GET {path}/{{path}}"]
        else:
            yield from (f"{method} {path}" for method in sorted(route.methods - {"HEAD", "OPTIONS"}))


def concrete(path):
    return re.sub(r"{(\w+)}", lambda part: PARTS.get(part[1], "1"), path)


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    """A store without users, one with a user of each role, and one where a blind campaign is open besides."""
    folder = tmp_path_factory.mktemp("access")
    with ExitStack() as stack:
        opened = {name: stack.enter_context(open_store(str(folder / name))) for name in ("free", "open", "blind")}
        for name, store in opened.items():
            add(store)
            for role in Role if name != "free" else ():
                user(store, role.value, role)
        campaign(opened["blind"])
        yield opened


@pytest.fixture(scope="module")
def clients(stores, evaluators):
    """How each of `EVERYBODY` asks: a client, and a function that gives the headers of a fresh login."""
    with ExitStack() as stack:
        free, open_, blind = (stack.enter_context(asking(store, evaluators)) for store in stores.values())
        public = stack.enter_context(asking(stores["open"], evaluators, public=True))
        yield {
            "anonymous": (open_, dict),
            "public-anonymous": (public, dict),
            "local": (free, dict),
            "blind-annotator": (blind, partial(logged_in, stores["blind"], "annotator")),
            **{role.value: (open_, partial(logged_in, stores["open"], role.value)) for role in Role},
        }


def logged_in(store, name):
    """The header of somebody who has just logged in."""
    return {"cookie": f"{COOKIE}={open_login(store, find_user(store, name))}"}


def test_every_route_is_known_here(stores, evaluators):
    application = build_app(stores["free"], evaluators)
    rules = Rules(application.routes)
    # The demo has its routes once it is asked for.
    demo = {route for route in EXPECTED if f" {PATH}/" in route}
    ours = [one for one in application.routes if not (isinstance(one, Mount) and one.path == PATH)]
    assert set(walk(ours)) | demo == set(EXPECTED)
    meant = {rules.find(*concrete(route).split(" ")) for route in EXPECTED}
    assert [rule.path.pattern for rule in rules.rules if rule not in meant] == []


@pytest.mark.parametrize("route", sorted(EXPECTED))
def test_everybody_gets_through_where_they_may_and_nowhere_else(clients, route):
    method, path = route.split(" ")
    for name in EVERYBODY:
        may = name in EXPECTED[route]
        client, login = clients[name]
        response = client.request(method, concrete(path), headers=PAGE | login(), follow_redirects=False)
        told = f"{route} for {name}: {response.status_code} {response.text[:200]}"
        if may and route in PASSWORDS:
            assert "password" in response.text, told
        elif may:
            assert response.status_code not in (401, 403, 405), told
            assert not response.headers.get("location", "").startswith("/login?"), told
        elif name.endswith("anonymous"):
            page = method == "GET" and not path.startswith("/api/")
            assert response.status_code == (303 if page else 401), told
        else:
            assert response.status_code == 403, told


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/config", 404),
        ("POST", "/gradio_api/upload", 404),
        ("GET", "/annotate/elsewhere", 404),
        ("GET", "/browsed", 404),
        ("GET", "/login/", 404),
        ("GET", "/Browse", 404),
        ("GET", "/browse\n", 404),
        ("GET", "/logout", 405),
        ("POST", "/browse", 405),
        ("DELETE", "/api/v1/traces/1", 405),
        ("OPTIONS", "/browse", 405),
        ("TRACE", "/", 405),
    ],
)
def test_an_unlisted_route_does_not_exist_for_an_admin_either(stores, clients, method, path, status):
    client, login = clients["admin"]
    response = client.request(method, path.replace("\n", "%0A"), headers=login(), follow_redirects=False)
    assert response.status_code == status
    assert ("GET" in response.headers.get("allow", "")) == (status == 405 and path != "/logout")


def test_a_page_is_come_back_to_after_the_login(clients):
    client, _ = clients["anonymous"]
    asked = {"/browse?trace=1&q=a%20b": "/login?next=/browse%3Ftrace%3D1%26q%3Da%2520b", "/": "/login?next=/"}
    for address, place in asked.items():
        response = client.get(address, headers=PAGE, follow_redirects=False)
        assert (response.status_code, response.headers["location"]) == (303, place)


def test_a_program_is_told_to_log_in(clients):
    client, _ = clients["anonymous"]
    for path in ("/api/v1/datasets", "/jobs/list"):
        response = client.get(path)
        assert response.status_code == 401
        assert response.json() == {"error": "You are not logged in.", "hint": "Log in: /login"}


def test_why_not_is_told(clients):
    for name, path, why in (
        ("viewer", "/annotate/new", "This is for admins, and you are a viewer."),
        (
            "blind-annotator",
            "/browse",
            "Annotators see no scores and no gold labels while a blind campaign is open.",
        ),
        ("blind-annotator", "/annotate/new", "This is for admins, and you are an annotator."),
    ):
        client, login = clients[name]
        response = client.get(path, headers=PAGE | login())
        assert response.status_code == 403
        assert why in response.text
        # A link leads only where this person may go.
        part = response.text[response.text.index("<main") :]
        for place in re.findall(r'<a href="([^"]+)"', part):
            assert client.get(place, headers=PAGE | login()).status_code == 200, (name, place)
        assert "Log in as somebody else" in part
        assert f'<input type="hidden" name="next" value="{path}">' in part


def test_an_event_that_saves_is_for_who_may_write(stores, clients):
    saved = []
    for name in ("viewer", "adjudicator", "admin"):
        client, login = clients[name]
        entered = {"problem": "What is 2 + 3?", "solution": "5.", "evaluators": ["tiny"]}
        answer = client.post("/score/save", json=entered, headers=login()).json()
        refused = "This is for admins, and you are" in answer.get("error", "")
        assert refused != ("Saved as" in answer.get("saved", "")), answer
        saved += [] if refused else [name]
    assert saved == ["admin"]
    assert find_dataset(stores["open"], "saved").traces == 1


def test_no_header_names_another_server_as_the_one_that_the_page_asks(clients):
    client, _ = clients["public-anonymous"]
    for header in ("x-forwarded-host", "x-gradio-server"):
        response = client.get("/", headers={header: "http://elsewhere.example"})
        assert response.status_code == 200
        assert "elsewhere.example" not in response.text


def test_while_a_blind_campaign_is_open_nobody_looks_without_a_name(stores, evaluators):
    """Or an annotator could log out to see the gold."""
    with asking(stores["blind"], evaluators, public=True) as client:
        for path in ("/api/v1/traces/1", "/api/v1/datasets"):
            assert client.get(path).status_code == 401
        assert client.get("/api/v1/traces/1", headers=logged_in(stores["blind"], "viewer")).status_code == 200


def test_no_browser_keeps_what_was_shown_where_somebody_can_log_in(clients):
    for name in ("anonymous", "viewer"):
        client, login = clients[name]
        for path in ("/browse", "/api/v1/datasets", "/login"):
            assert client.get(path, headers=PAGE | login()).headers["cache-control"] == "no-store"
        assert client.get("/stepsight/style.css", headers=login()).headers["cache-control"] == "no-cache"
    client, _ = clients["local"]
    assert client.get("/browse").headers.get("cache-control") != "no-store"


def test_the_first_user_ends_the_time_without_logins_and_the_last_brings_it_back(sqlite_store, evaluators):
    with asking(sqlite_store, evaluators) as client:
        assert client.get("/api/v1/datasets").status_code == 200
        user(sqlite_store)
        assert client.get("/api/v1/datasets").status_code == 401
        end_user(sqlite_store, "ada")
        assert client.get("/api/v1/datasets").status_code == 200


def test_other_machines_are_never_the_local_user(sqlite_store, evaluators):
    with asking(sqlite_store, evaluators, loopback=False) as client:
        assert client.get("/api/v1/datasets").status_code == 403
        assert client.get("/stepsight/style.css").status_code == 200


def test_a_forwarded_request_is_never_the_local_users(sqlite_store, evaluators):
    with asking(sqlite_store, evaluators) as client:
        response = client.get("/api/v1/datasets", headers={"x-forwarded-for": "127.0.0.1"})
        assert (response.status_code, response.json()["error"]) == (403, ALONE)


def test_a_store_that_fails_lets_nobody_in_who_is_elsewhere(tmp_path, evaluators):
    path = tmp_path / "store.db"
    with open_store(str(path)) as store, asking(store, evaluators) as client:
        path.rename(tmp_path / "away.db")
        assert client.get("/").status_code == 200
        assert client.get("/", headers={"via": "1.1 proxy"}).status_code == 503


def test_a_role_an_end_and_a_log_out_count_from_the_next_request_on(sqlite_store, evaluators):
    user(sqlite_store)
    user(sqlite_store, "boss", Role.ADMIN)
    add(sqlite_store)
    login = logged_in(sqlite_store, "ada")
    with asking(sqlite_store, evaluators) as client:
        assert client.get("/annotate/new", headers=login).status_code == 403
        set_role(sqlite_store, "ada", Role.ADMIN)
        assert client.get("/annotate/new", headers=login).status_code == 200
        end_user(sqlite_store, "ada")
        assert client.get("/annotate/new", headers=login).status_code == 401


def test_a_login_outlasts_the_server(sqlite_store, evaluators):
    user(sqlite_store)
    login = logged_in(sqlite_store, "ada")
    for _ in range(2):
        with asking(sqlite_store, evaluators) as client:
            assert client.get("/api/v1/datasets", headers=login).status_code == 200


def test_a_login_in_use_is_renewed_once_an_hour(sqlite_store, evaluators):
    store = sqlite_store
    login = logged_in(store, user(store).name)
    with asking(store, evaluators) as client:
        for left, renewed in ((LASTS - timedelta(minutes=59), False), (LASTS - timedelta(minutes=61), True)):
            with store.write() as session:
                session.execute(update(LoginRow).values(expires=now() + left))
            assert who(client, headers=login)[0] == "ada"
            with store.read() as session:
                expires = session.scalars(select(LoginRow.expires)).one()
            assert (expires > now() + left + timedelta(minutes=1)) == renewed


def test_any_other_cookie_is_nobodys(sqlite_store, evaluators):
    open_login(sqlite_store, user(sqlite_store))
    values = ("", COOKIE, f"{COOKIE}=", f"{COOKIE}=x", f"{COOKIE}={'x' * 4_000}", f'{COOKIE}="\\000"', "=;=;é=é")
    with asking(sqlite_store, evaluators) as client:
        for cookie in values:
            assert client.get("/api/v1/datasets", headers={"cookie": cookie.encode()}).status_code == 401


def test_without_its_store_the_server_lets_nobody_in_once_it_knows_users(tmp_path, evaluators):
    path = tmp_path / "store.db"
    with open_store(str(path)) as store, asking(store, evaluators) as client:
        user(store)
        assert client.get("/").status_code == 401
        path.rename(tmp_path / "away.db")
        for route in ("/", "/login", "/api/v1/datasets"):
            response = client.get(route)
            assert response.status_code == 503
            assert response.json()["error"] == "The store: the file is gone."


def test_one_client_does_not_hold_all_connections(sqlite_store, evaluators, monkeypatch):
    monkeypatch.setattr(middleware, "MOST_OPEN", 2)
    held = threading.Barrier(3)
    application = build_app(sqlite_store, evaluators)
    application.add_api_route("/help/held", lambda: held.wait(60), dependencies=[Depends(RequiresRight())])
    # Before the page of the manual that any name below /help stands for.
    application.router.routes.insert(0, application.router.routes.pop())
    with (
        TestClient(application, base_url="http://127.0.0.1", client=HERE) as client,
        ThreadPoolExecutor(2) as threads,
    ):
        first = [threads.submit(client.get, "/help/held") for _ in range(2)]
        until(lambda: held.n_waiting == 2)
        refused = client.get("/help/about")
        assert (refused.status_code, refused.headers["retry-after"]) == (429, "5")
        other = TestClient(application, base_url="http://127.0.0.1", client=("10.0.0.7", 1))
        assert other.get("/help/about").status_code == 200
        held.wait(60)
        assert [answer.result().status_code for answer in first] == [200, 200]
        assert client.get("/help/about").status_code == 200
