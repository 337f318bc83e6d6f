"""Errors as answers."""

import json

import pytest

from stepsight.app.scoring.batcher import BusyError
from stepsight.app.web.failures import error_json, error_response, failure_response, status_of
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
