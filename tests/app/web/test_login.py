"""The login page, the log out, and changing one's own password, over HTTP."""

import re
import secrets

import pytest
from sqlalchemy import delete, func, select
from starlette.testclient import TestClient

from stepsight.app.server import build_app
from stepsight.app.web.access import COOKIE
from stepsight.storage.database.schema import FailedLoginRow, LoginRow, UserRow
from stepsight.storage.database.store import open_store
from stepsight.storage.labelling.campaigns import close_campaign
from stepsight.storage.people.logins import FREE_BY_NAME, open_login, user_of
from stepsight.storage.people.users import Role, find_user
from tests.app.client import PAGE, asking, who
from tests.cases import each
from tests.storage.labelling.samples import campaign
from tests.storage.people.samples import PASSWORD, user
from tests.storage.samples import add

NEW = "battery staple"


@pytest.fixture(scope="module")
def served(tmp_path_factory, evaluators):
    with open_store(str(tmp_path_factory.mktemp("login") / "store.db")) as store:
        add(store)
        with asking(store, evaluators) as client:
            client.follow_redirects = False
            yield store, client


@pytest.fixture
def store(served):
    """A store with the annotator ada, of whom nothing was heard yet."""
    store, _ = served
    with store.write() as session:
        for model in (LoginRow, FailedLoginRow):
            session.execute(delete(model))
        session.execute(delete(UserRow).where(UserRow.password.is_not(None)))
    user(store)
    return store


@pytest.fixture
def client(served, store):
    _, client = served
    client.cookies.clear()
    return client


@pytest.fixture
def blind(store):
    """While a blind campaign is open."""
    made = campaign(store, None, name=secrets.token_hex(4))
    yield
    close_campaign(store, made.id)


def log_in(client, password=PASSWORD, name="ada", **other):
    return client.post("/login", data={"name": name, "password": password, **other})


def test_a_login_sets_a_cookie_that_no_script_reads_and_no_other_site_sends(client, store):
    response = log_in(client)
    assert (response.status_code, response.headers["location"]) == (303, "/")
    token = client.cookies[COOKIE]
    assert user_of(store, token).name == "ada"
    parts = {part.strip().lower() for part in response.headers["set-cookie"].split(";")[1:]}
    # 400 days, in seconds: the longest a browser keeps one.
    assert parts == {"httponly", "samesite=lax", "path=/", "max-age=34560000"}
    assert client.get("/browse").status_code == 200


def test_servers_at_two_ports_of_a_host_have_cookies_of_their_own(client):
    form = {"name": "ada", "password": PASSWORD}
    response = client.post("/login", data=form, headers={"host": "localhost:7861"})
    name, token = response.headers["set-cookie"].partition(";")[0].split("=")
    assert name == f"{COOKIE}-7861"
    client.cookies.clear()
    for port, logged_in in (("7861", True), ("7862", False)):
        headers = {"host": f"localhost:{port}", "cookie": f"{COOKIE}-7861={token}"}
        assert (who(client, headers=headers)[0] == "ada") == logged_in


def test_by_https_the_cookie_goes_by_https_alone(store, evaluators):
    with TestClient(build_app(store, evaluators), base_url="https://127.0.0.1", follow_redirects=False) as client:
        assert "; secure" in log_in(client).headers["set-cookie"].lower()
        assert "; secure" in client.post("/logout").headers["set-cookie"].lower()


@each(
    "stated, secure",
    [("https", True), ("https, http", True), ("HTTPS,http", True), ("http, https", False), ("", False)],
)
def test_the_browser_s_own_scheme_counts_behind_a_chain_of_proxies(client, stated, secure):
    form = {"name": "ada", "password": PASSWORD}
    response = client.post("/login", data=form, headers={"x-forwarded-proto": stated})
    assert ("; secure" in response.headers["set-cookie"].lower()) == secure


@pytest.mark.parametrize(("name", "password"), [("ada", "wrong"), ("nobody", PASSWORD), ("", "")])
def test_a_wrong_login_is_told_and_what_was_typed_as_a_name_stays(client, name, password):
    response = log_in(client, password, name, next="/browse?trace=1")
    assert response.status_code == 401
    assert "The name or the password is wrong." in response.text
    assert f'name="name" value="{name}"' in response.text
    assert 'name="next" value="/browse?trace=1"' in response.text
    assert "set-cookie" not in response.headers
    assert PASSWORD not in response.text


def test_after_five_wrong_ones_the_next_has_to_wait(client):
    for _ in range(FREE_BY_NAME):
        assert log_in(client, "wrong").status_code == 401
    response = log_in(client)
    assert response.status_code == 429
    assert 0 < int(response.headers["retry-after"]) <= 5
    assert re.search(r"Too many logins failed. Try again in \d s.", response.text)
    assert log_in(client, "wrong", "bob").status_code == 401


@pytest.mark.parametrize("next", ["/browse?trace=1&q=a%20b", "/jobs", "/annotate/label?slot=3"])
def test_the_way_leads_back_to_where_one_wanted_to_go(client, next):
    assert log_in(client, next=next).headers["location"] == next


@each(
    "next",
    [
        "",
        "browse",
        "//elsewhere.example/",
        "///elsewhere.example",
        "/\\elsewhere.example",
        "/\t/elsewhere.example",
        "/\n/elsewhere.example",
        "https://elsewhere.example/",
        "javascript:alert(1)",
        "/browse\r\nset-cookie: a=b",
        "/login",
        "/logout",
        "/nowhere",
        "/annotate/new",
        "/stepsight/style.css",
        "/ü",
    ],
)
def test_and_nowhere_else(client, next):
    assert log_in(client, next=next).headers["location"] == "/"


@pytest.mark.usefixtures("blind")
def test_a_blind_annotator_is_led_to_labelling(client):
    for next in ("", "/", "/browse"):
        assert log_in(client, next=next).headers["location"] == "/annotate"


def test_a_logged_in_person_is_not_asked_again(client):
    log_in(client)
    response = client.get("/login?next=/jobs", headers=PAGE)
    assert (response.status_code, response.headers["location"]) == (303, "/jobs")


def test_a_log_out_ends_the_login_and_takes_the_cookie_back(client, store):
    log_in(client)
    token = client.cookies[COOKIE]
    response = client.post("/logout")
    assert (response.status_code, response.headers["location"]) == (303, "/login")
    assert COOKIE not in client.cookies
    assert user_of(store, token) is None
    assert client.post("/logout").status_code == 303
    # Somebody else may log in, and go on where this one was.
    response = client.post("/logout", data={"next": "/annotate/new?dataset=a b"})
    assert response.headers["location"] == "/login?next=%2Fannotate%2Fnew%3Fdataset%3Da+b"


@pytest.mark.parametrize("path", ["/login", "/logout", "/login/password"])
def test_no_page_elsewhere_logs_anybody_in_or_out(client, store, path):
    login = {"cookie": f"{COOKIE}={open_login(store, find_user(store, 'ada'))}"}
    for origin in ("http://elsewhere.example", "null"):
        response = client.post(path, data={"name": "ada", "password": PASSWORD}, headers={"origin": origin} | login)
        assert response.status_code == 403
    assert client.get("/browse", headers=login).status_code == 200


def test_a_page_is_told_whom_it_is_for(client):
    assert who(client) == (None, True, [])
    log_in(client)
    everything = ["/", "/evidence", "/browse", "/results", "/annotate", "/data"]
    assert who(client) == ("ada", False, everything)


@pytest.mark.usefixtures("blind")
def test_an_annotator_is_told_of_the_one_page_that_is_left_while_a_blind_campaign_is_open(client):
    log_in(client)
    assert who(client)[2] == ["/annotate"]


def test_where_nobody_can_log_in_nobody_has_a_name(sqlite_store, evaluators):
    with asking(sqlite_store, evaluators) as client:
        assert who(client)[:2] == (None, False)
        for path in ("/login", "/login/password"):
            assert "stepsight user add" in client.get(path).text
        assert "stepsight user add" in client.post("/login/password", data={"present": "x"}).text


def test_one_changes_ones_password_and_is_logged_out_elsewhere(client, store):
    log_in(client)
    elsewhere = open_login(store, find_user(store, "ada"))
    before = client.cookies[COOKIE]
    response = client.post("/login/password", data={"present": PASSWORD, "new": NEW, "again": NEW})
    assert (response.status_code, response.headers["location"]) == (303, "/")
    assert [user_of(store, token) for token in (elsewhere, before)] == [None, None]
    assert user_of(store, client.cookies[COOKIE]).name == "ada"
    assert log_in(client, NEW).status_code == 303


@pytest.mark.parametrize(
    ("present", "new", "again", "status", "why"),
    [
        ("wrong", NEW, NEW, 401, "The current password is wrong."),
        (PASSWORD, NEW, NEW + "x", 422, "differ"),
        (PASSWORD, "short", "short", 422, "has 5 characters, expected at least 10"),
    ],
)
def test_a_password_that_cannot_be_is_told_and_nothing_changes(client, store, present, new, again, status, why):
    log_in(client)
    token = client.cookies[COOKIE]
    response = client.post("/login/password", data={"present": present, "new": new, "again": again})
    assert response.status_code == status
    assert why in response.text
    assert user_of(store, token).name == "ada"
    # Nobody would hold the login of a refused change.
    with store.read() as session:
        assert session.scalar(select(func.count()).select_from(LoginRow)) == 1
    assert log_in(client).status_code == 303


def test_the_present_password_cannot_be_guessed_here_either(client):
    log_in(client)
    for _ in range(FREE_BY_NAME):
        client.post("/login/password", data={"present": "wrong", "new": NEW, "again": NEW})
    response = client.post("/login/password", data={"present": PASSWORD, "new": NEW, "again": NEW})
    assert response.status_code == 429


def test_every_role_has_somewhere_to_go(client, store):
    for role in Role:
        user(store, role.value, role)
        assert log_in(client, name=role.value).headers["location"] == "/"
        client.post("/logout")
