"""The rule by which requests are repeated, and the words for connections that fail."""

import socket
from email.utils import formatdate
from time import time

import httpx2
import pytest

from stepsight.core.errors import UserError
from stepsight.core.net.http import FailedAttemptError, Retries, error_text, failed_attempt, make_client, reason

ERROR = UserError("no")


def failure(status, **headers):
    return failed_attempt(
        httpx2.Response(status, headers={"retry-after": headers["after"]} if headers else {}), ERROR
    )


def test_pauses_double_up_to_the_longest():
    retries = Retries(attempts=9, first=1.0, longest=6.0, patience=0.0)
    for least in (1, 2, 4, 6, 6):
        assert least <= retries.pause(FailedAttemptError(ERROR)) <= 1.25 * least


def test_a_pause_is_as_long_as_the_server_asks():
    retries = Retries(attempts=9, first=0.5, longest=1.0, patience=100.0)
    assert 30 <= retries.pause(failure(503, after="30")) <= 30.5
    assert 8 <= retries.pause(failure(429, after=formatdate(time() + 10, usegmt=True))) <= 10.5


def test_attempts_are_counted_from_the_last_progress():
    retries = Retries(attempts=2, first=0.0, longest=0.0, patience=0.0)
    for _ in range(3):
        retries.pause(failure(500))
        retries.progressed()
    retries.pause(failure(500))
    with pytest.raises(UserError, match="no"):
        retries.pause(failure(500))


@pytest.mark.parametrize(
    ("status", "headers", "costs"),
    [
        (429, {}, 0),
        (429, {"after": "1"}, 0),
        (503, {"after": "1"}, 0),
        (503, {}, 1),
        (503, {"after": "soon"}, 1),
        (529, {}, 1),
        (502, {"after": "1"}, 1),
    ],
)
def test_a_server_that_is_merely_busy_costs_no_attempt(status, headers, costs):
    found = failure(status, **headers)
    assert isinstance(found, FailedAttemptError)
    assert found.costs == costs


def test_a_refusal_is_not_repeated():
    assert failure(404) is ERROR


def test_a_busy_server_is_waited_for_within_the_patience():
    retries = Retries(attempts=1, first=0.0, longest=0.0, patience=10.0)
    for _ in range(3):
        retries.pause(failure(429, after="3"))
    with pytest.raises(UserError, match="no"):
        retries.pause(failure(429, after="3"))


def test_the_message_of_an_error_is_found_in_its_usual_places():
    assert error_text(b'{"error": {"message": "a"}}') == error_text(b'{"detail": "a"}') == "a"
    assert error_text(b"plain") == "plain"


def test_the_cause_of_a_failed_connection_is_a_phrase():
    def cause(url):
        with make_client(httpx2.Client, 0.2) as client, pytest.raises(httpx2.TransportError) as caught:
            client.get(url)
        return reason(caught.value)

    assert cause("http://stepsight.invalid/") == "the host's name cannot be resolved"
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert cause(f"http://127.0.0.1:{port}/") == "no answer in time"
    assert cause(f"http://127.0.0.1:{port}/") == "connection refused"
