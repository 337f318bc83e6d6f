"""Errors as answers."""

import json

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from stepsight.app.scoring.batcher import BusyError
from stepsight.app.web.failures import error_json, error_response, failure_response, status_of
from stepsight.app.web.html import FreshFiles
from stepsight.core.errors import UserError
from stepsight.storage.database.store import ConflictError, ForbiddenError, NotFoundError, UnavailableError


def scope(accept, method="GET"):
    return {"type": "http", "method": method, "path": "/x", "headers": [(b"accept", accept.encode())]}


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (ForbiddenError("a"), 403),
        (NotFoundError("a"), 404),
        (ConflictError("a"), 409),
        (UserError("a"), 422),
        (BusyError("tiny", 3), 429),
        (UnavailableError("a"), 503),
    ],
)
def test_each_kind_of_error_has_its_status(error, status):
    assert status_of(error) == status
    assert error_response(scope("*/*"), error).status_code == error_json(error).status_code == status


def test_a_busy_answer_says_when_to_retry():
    assert error_json(BusyError("tiny", 3)).headers["retry-after"] == "3"
    assert "Try again in 3 s" in error_json(BusyError("tiny", 3)).body.decode()


@pytest.mark.parametrize(
    ("accept", "method", "is_page"),
    [("text/html,*/*;q=0.8", "GET", True), ("application/json", "GET", False), ("text/html", "POST", True)],
)
def test_a_browser_that_opens_a_page_or_sends_a_form_gets_one(accept, method, is_page):
    response = failure_response(scope(accept, method), 404, "There is no such page.", "Choose another.")
    assert response.headers["content-type"].startswith("text/html" if is_page else "application/json")
    if not is_page:
        assert json.loads(response.body) == {"error": "There is no such page.", "hint": "Choose another."}


def test_a_requested_path_is_shown_as_text():
    page = failure_response(
        scope("text/html"), 404, "There is no dataset '<script>alert(1)</script>'."
    ).body.decode()
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page


@pytest.fixture
def client(tmp_path):
    (tmp_path / "page.js").write_text("export const version = 1;")
    application = Starlette()
    application.mount("/files", FreshFiles(directory=tmp_path))
    with TestClient(application) as client:
        yield client


def test_a_kept_file_is_asked_about_each_time(client):
    first = client.get("/files/page.js")
    assert (first.status_code, first.headers["cache-control"]) == (200, "no-cache")
    assert "javascript" in first.headers["content-type"]
    again = client.get("/files/page.js", headers={"if-none-match": first.headers["etag"]})
    assert (again.status_code, again.headers["cache-control"], again.content) == (304, "no-cache", b"")


def test_a_new_version_is_seen(client, tmp_path):
    kept = client.get("/files/page.js").headers["etag"]
    (tmp_path / "page.js").write_text("export const version = 22;")
    again = client.get("/files/page.js", headers={"if-none-match": kept})
    assert (again.status_code, again.text) == (200, "export const version = 22;")
