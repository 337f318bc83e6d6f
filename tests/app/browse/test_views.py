from contextlib import ExitStack

import pytest
from sqlalchemy import delete

from stepsight.app.access.rights import COOKIE
from stepsight.app.browse.page import browse_page
from stepsight.storage.database.schema import DatasetRow
from stepsight.storage.people.logins import open_login
from stepsight.storage.people.users import Role, local_user
from stepsight.storage.people.views import list_views, save_view
from tests.app.client import PAGE, asking
from tests.app.elements import read
from tests.cases import each
from tests.storage.labelling.samples import campaign
from tests.storage.people.samples import user
from tests.storage.samples import add


@pytest.fixture
def client(sqlite_store, evaluators):
    add(sqlite_store)
    with asking(sqlite_store, evaluators) as client:
        yield client


def post(client, path="", **form):
    return client.post(f"/browse/views{path}", data=form, headers=PAGE, follow_redirects=False)


def line(client, address="/browse?dataset=sums", **headers):
    return read(client.get(address, headers={"stepsight-part": "1"} | headers).text).all("nav", cls="views")


def test_a_view_is_saved_used_renamed_and_deleted(client, sqlite_store):
    kept = "dataset=sums&gold=error&meta=source%3DMATH&sort=-steps"
    answer = post(client, name=" Errors ", query=f"{kept}&page=3&trace=1&beside=tiny")
    assert answer.status_code == 303
    assert answer.headers["location"] == f"/browse?{kept}"
    (nav,) = line(client)
    (link,) = nav.all("a")
    assert (link.text, link["href"], link.attributes.get("aria-current")) == ("Errors", f"/browse?{kept}", None)
    # It stands out where one is, whatever the page of the list.
    (nav,) = line(client, f"/browse?{kept}&page=2")
    assert nav.one("a")["aria-current"] == "true"
    assert {one["value"] for one in nav.all("input", name="query")} == {kept}
    (view,) = list_views(sqlite_store, local_user(sqlite_store))
    answer = post(client, f"/{view.id}/rename", name="Wrong ones", query=kept)
    assert (answer.status_code, answer.headers["location"]) == (303, f"/browse?{kept}")
    assert line(client)[0].one("a").text == "Wrong ones"
    answer = post(client, f"/{view.id}/delete", query="dataset=sums")
    assert (answer.status_code, answer.headers["location"]) == (303, "/browse?dataset=sums")
    assert line(client)[0].all("a") == []


@pytest.fixture
def taken(client, sqlite_store):
    save_view(sqlite_store, local_user(sqlite_store), "taken", "sums", "dataset=sums")


@pytest.mark.usefixtures("taken")
@each(
    "form, status, message",
    [
        ({"name": "", "query": "dataset=sums"}, 422, "The name of the view is empty"),
        ({"name": "x" * 201, "query": "dataset=sums"}, 422, "Use at most 200"),
        ({"name": "taken", "query": "dataset=sums"}, 409, "There is a view"),
        ({"name": "a", "query": "dataset=elsewhere"}, 404, "elsewhere"),
        ({"name": "a"}, 422, "dataset"),
        ({"name": "a", "query": "dataset=sums&gold=sideways"}, 422, "sideways"),
        ({"name": "a", "query": "dataset=sums&meta=x"}, 422, "expected a field"),
    ],
)
def test_an_impossible_view_is_refused(client, sqlite_store, form, status, message):
    answer = post(client, **form)
    assert answer.status_code == status
    assert message in answer.text
    assert len(list_views(sqlite_store, local_user(sqlite_store))) == 1


def test_a_form_never_redirects_to_another_site(client, sqlite_store):
    save_view(sqlite_store, local_user(sqlite_store), "a", "sums", "dataset=sums")
    (view,) = list_views(sqlite_store, local_user(sqlite_store))
    answer = post(client, f"/{view.id}/delete", query="//evil.example/?dataset=sums\r\nx: y")
    assert answer.headers["location"].startswith("/browse")
    assert post(client, "/999/delete", query="").status_code == 404


def test_a_view_of_a_dataset_that_is_gone_says_so_and_can_be_deleted(client, sqlite_store):
    add(sqlite_store, dataset="others")
    save_view(sqlite_store, local_user(sqlite_store), "mine", "others", "dataset=others")
    with sqlite_store.write() as session:
        session.execute(delete(DatasetRow).where(DatasetRow.name == "others"))
    (nav,) = line(client)
    assert nav.all("li")[0].text == "mine its dataset others is gone"
    assert nav.all("a") == []
    assert nav.one("button", aria_label="Delete mine").text == "Delete"


def test_everybody_has_their_own(sqlite_store, evaluators):
    add(sqlite_store)
    people = {name: user(sqlite_store, name, role) for name, role in (
        ("ada", Role.VIEWER), ("eve", Role.ANNOTATOR), ("boss", Role.ADMIN))}  # fmt: skip
    logins = {name: f"{COOKIE}={open_login(sqlite_store, one)}" for name, one in people.items()}
    with ExitStack() as stack:
        client = stack.enter_context(asking(sqlite_store, evaluators))
        public = stack.enter_context(asking(sqlite_store, evaluators, public=True))
        form = {"name": "hers", "query": "dataset=sums"}
        for name in ("ada", "eve"):
            answer = client.post("/browse/views", data=form, headers=PAGE | {"cookie": logins[name]},
                                 follow_redirects=False)  # fmt: skip
            assert answer.status_code == 303
        assert [one.text for one in line(client, cookie=logins["ada"])[0].all("a")] == ["hers"]
        assert line(client, cookie=logins["boss"])[0].all("a") == []
        # Who is not logged in keeps nothing and sees nobody's.
        assert line(public) == []
        (view, *_) = list_views(sqlite_store, people["ada"])
        answer = client.post(f"/browse/views/{view.id}/delete", headers=PAGE | {"cookie": logins["eve"]})
        assert answer.status_code == 404
        # A blind annotator neither keeps nor sees views.
        campaign(sqlite_store)
        answer = client.post("/browse/views", data=form | {"name": "b"}, headers=PAGE | {"cookie": logins["eve"]})
        assert answer.status_code == 403
        assert client.get("/browse", headers={"cookie": logins["eve"]}).status_code == 403


def test_a_server_that_is_read_only_keeps_nothing(sqlite_store, evaluators):
    add(sqlite_store)
    save_view(sqlite_store, local_user(sqlite_store), "mine", "sums", "dataset=sums")
    page = read(browse_page(sqlite_store, evaluators, {}, local_user(sqlite_store), read_only=True).html)
    (nav,) = page.all("nav", cls="views")
    assert [one.text for one in nav.all("a")] == ["mine"]
    assert nav.all("form") == []
    with asking(sqlite_store, evaluators, read_only=True) as client:
        assert post(client, name="x", query="").status_code == 404
