"""Events of pages: the bodies that fit them, and those that do not."""

from typing import Any

import pytest
from fastapi import Request
from starlette.testclient import TestClient

from stepsight.app.web.page_events import event_routes
from tests.app.client import let_in
from tests.cases import each


# A route reads these annotations.
def half(text: str, number: int, request: Request) -> dict[str, Any]:
    return {"half": text[: number // 2], "from": request.method}


def fail() -> dict[str, Any]:
    raise RuntimeError("a bug")


BODIES = [
    *(b"", b"null", b"[]", b"{", b"1e999", b"[" * 5000, b"\xff", b'{"data": {}}', b'{"data": null}'),
    *(
        b'{"data": []}',
        b'{"data": ["a"]}',
        b'{"data": ["a", 1, 2]}',
        b'{"data": ["a", "1"]}',
        b'{"data": ["a", 1e400]}',
    ),
    *(b'{"data": [{"path": "a"}, 1]}', b'{"data": ["\\ud800", 1]}'),
]


@pytest.fixture(scope="module")
def client():
    with TestClient(let_in(event_routes({"half": half, "fail": fail}))) as client:
        yield client


@each("body", BODIES)
def test_a_body_that_does_not_fit_the_event_is_refused(client, body):
    assert client.post("/gradio_api/run/half", content=body).status_code == 422


@each("others", [{}, {"session_hash": 1}, {"request": 1}])
def test_of_a_body_the_event_gets_the_values_alone(client, others):
    response = client.post("/gradio_api/run/half", json={"data": ["abcdef", 4], **others})
    assert response.json()["data"] == [{"half": "ab", "from": "POST"}]


def test_a_bug_is_the_error_of_the_answer(client):
    (answer,) = client.post("/gradio_api/run/fail", json={"data": []}).json()["data"]
    assert answer["error"].startswith("Something went wrong in StepSight itself.")
