"""Addresses of pages as models, and the status of an address that cannot be shown."""

from typing import ClassVar

import pytest

from stepsight.app.scoring.evaluators import Evaluators
from stepsight.app.web.pages import Number, PageNumber, PageQuery, read_query
from stepsight.storage.database.store import open_store
from stepsight.storage.judgments.evaluators import register_evaluator
from stepsight.storage.judgments.judgments import save_judgments
from tests.app.client import PAGE, asking
from tests.app.entries import typed
from tests.cases import each
from tests.messages import refused
from tests.storage.samples import add, judge

SOLUTION = typed("q", "a")


@pytest.fixture(scope="module")
def client(module_store, evaluators):
    trace = add(module_store)[0]
    for print_ in ("one", "two"):
        said = register_evaluator(module_store, name="twice", fingerprint=print_, format="scores", attention="none")
        save_judgments(module_store, said.id, [judge(trace, "offline")])
    with asking(module_store, evaluators) as client:
        yield client


@each(
    "path, status",
    [
        ("/browse?trace=1", 200),
        ("/browse?trace=", 200),
        ("/browse?dataset=sums&evaluator=tiny", 200),
        ("/browse?trace=999", 404),
        ("/browse?trace=99999999999999", 422),
        ("/browse?trace=abc", 422),
        ("/browse?trace=-1", 422),
        ("/browse?trace=%C2%B2", 422),
        ("/browse?dataset=none", 404),
        ("/browse?dataset=%00", 404),
        ("/browse?evaluator=none", 404),
        ("/browse?dataset=sums&evaluator=none", 404),
        # Two of one name go by name and fingerprint.
        ("/browse?trace=1&evaluator=twice%20one", 200),
        ("/browse?trace=1&evaluator=twice%20three", 404),
        ("/browse?evaluator=twice%20one", 200),
        ("/browse?gold=sideways", 422),
        ("/evidence?trace=999", 404),
        ("/evidence?trace=x", 422),
        ("/evidence?dataset=none", 404),
        ("/evidence?trace=1&evaluator=none", 404),
        ("/evidence?s=cut", 422),
        ("/results?dataset=none", 404),
        ("/?s=cut", 422),
    ],
)
def test_an_address_that_cannot_be_shown_has_a_status_of_its_own(client, path, status):
    response = client.get(path, headers=PAGE)
    assert response.status_code == status
    # It is the page itself, which says what is wrong.
    assert 'class="top"' in response.text


def test_a_server_without_an_evaluator_that_scores_has_all_its_pages(tmp_path):
    checking = Evaluators(["equations"], shipped=False)
    with open_store(str(tmp_path / "store.db")) as store, asking(store, checking) as client:
        add(store)
        for path in ("/", "/browse?trace=1", "/evidence", "/results", "/evaluators"):
            assert client.get(path, headers=PAGE).status_code == 200
        for path in ("/evidence?trace=1", f"/score/result.csv?s={SOLUTION.token()}"):
            assert client.get(path, headers=PAGE).status_code == 404
        answer = client.post("/api/v1/score", json={"problem": "q", "steps": ["a"]})
        assert (answer.status_code, answer.json()["error"]) == (404, "No evaluator here gives scores.")


def test_a_vanished_database_is_told_on_pages_and_to_programs_and_comes_back(evaluators, tmp_path):
    path = tmp_path / "store.db"
    with open_store(str(path)) as store, asking(store, evaluators) as client:
        add(store)
        path.rename(tmp_path / "away.db")
        for page in ("/browse", "/browse?trace=1", "/jobs"):
            response = client.get(page, headers=PAGE)
            assert response.status_code == 503
            assert "Not possible right now" in response.text
            assert "the file is gone. Put it back, or start StepSight again." in response.text
        for route in ("datasets", "traces/1", "evaluators", "jobs"):
            response = client.get(f"/api/v1/{route}")
            assert response.status_code == 503
            assert "the file is gone" in response.json()["error"]
        assert client.get("/").status_code == 200
        assert client.get("/jobs/list").status_code == 503
        # No empty file was put in its place.
        assert not path.exists()
        (tmp_path / "away.db").rename(path)
        assert client.get("/browse?trace=1").status_code == 200
        assert client.get("/api/v1/datasets").json()[0]["traces"] == 4


class Shelf(PageQuery):
    PATH: ClassVar[str] = "/shelf"

    name: str = ""
    trace: Number | None = None
    page: PageNumber = 1
    beside: tuple[str, ...] = ()


def test_a_query_is_read_and_written():
    shelf, problems = Shelf.read(read_query("?name=a+b%26c&page=3&beside=x&beside=y&beside=x&other=1"))
    assert (shelf, problems) == (Shelf(name="a b&c", page=3, beside=("x", "y")), ())
    assert shelf.query() == {"name": "a b&c", "page": 3, "beside": ("x", "y")}
    assert shelf.url() == "/shelf?name=a+b%26c&amp;page=3&amp;beside=x&amp;beside=y"
    assert shelf.url("/elsewhere", name="", beside=()) == "/elsewhere?page=3"
    assert shelf.url(name="", page=1, beside=()) == "/shelf"


def test_a_bad_part_is_told_and_the_rest_kept():
    query = {"name": ["first", "last"], "page": "many", "beside": ""}
    shelf, problems = Shelf.read(query)
    assert shelf == Shelf(name="last")
    assert problems == ("page is 'many', expected a whole number. Check the address.",)
    with refused():
        Shelf.exact(query)


def test_numbers_are_plain_and_short():
    assert Shelf.exact({"page": "0", "trace": "0"}) == Shelf(page=1, trace=0)
    for text in ("-1", "1e3", "٣", "²", "1" * 13):
        with refused():
            Shelf.exact({"trace": text})
