"""Who asks. `app.web.access` finds it out once for every request, before any route sees it."""

import re
from typing import Any

import gradio as gr
from starlette.requests import HTTPConnection

from storage.people.users import User
from storage.store import ForbiddenError

COOKIE = "stepsight"
"""The name of the cookie that holds the token of a login, where the address has no port."""

_PORT = re.compile(r":(\d{1,5})$")

Asked = HTTPConnection | gr.Request


def cookie_name(request: HTTPConnection) -> str:
    """The name of the cookie at the address that was asked for. A browser has the same cookies for all ports of a
    host, where servers would otherwise end each other's logins."""
    port = _PORT.search(request.headers.get("host", ""))
    return f"{COOKIE}-{port[1]}" if port else COOKIE


def find_user_of(request: Asked) -> User | None:
    """Who asks; None where nobody is logged in, on a server that lets such look."""
    user: User | None = state_of(request)["user"]
    return user


def user_of_request(request: Asked) -> User:
    """Who asks. Raises `ForbiddenError` where nobody is logged in."""
    user = find_user_of(request)
    if user is None:
        raise ForbiddenError("Nobody is logged in.", "Log in.")
    return user


def state_of(request: Asked) -> dict[str, Any]:
    """What is known of who asks: `user`, and the `rights` of the moment."""
    inner = request.request if isinstance(request, gr.Request) else request
    assert inner is not None, "an event that came without a request"
    state: dict[str, Any] = inner.scope["state"]
    return state
