"""Who asks, as routes and pages read it."""

import gradio as gr
import pytest
from starlette.requests import Request

from stepsight.app.access.rights import find_user_of, user_of_request
from stepsight.storage.database.store import ForbiddenError
from stepsight.storage.people.users import Role, User
from tests.messages import refused

ADA = User(1, "ada", Role.ANNOTATOR, active=True)


def request(user):
    return Request({"type": "http", "headers": [], "state": {"user": user, "rights": frozenset()}})


@pytest.mark.parametrize("wrap", [lambda one: one, gr.Request])
def test_a_route_and_an_event_of_a_page_know_who_asks(wrap):
    assert find_user_of(wrap(request(ADA))) == user_of_request(wrap(request(ADA))) == ADA
    assert find_user_of(wrap(request(None))) is None
    with refused(ForbiddenError):
        user_of_request(wrap(request(None)))


def test_an_event_without_a_request_is_nobodys():
    with pytest.raises(AssertionError, match="without a request"):
        find_user_of(gr.Request())
