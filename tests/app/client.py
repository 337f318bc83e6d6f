"""The whole application without a browser, asked through Starlette's client."""

import re
from collections.abc import Awaitable, Callable
from contextlib import contextmanager

import pytest
from fastapi import FastAPI, Request, Response
from starlette.testclient import TestClient

from stepsight.app.server import build_app
from stepsight.app.web.access import Right
from stepsight.app.web.failures import answer_errors

PAGE = {"accept": "text/html"}
HERE = ("127.0.0.1", 50_000)
"""Where requests of this machine come from."""


def let_in(*routers):
    """An application of some routes, in which everybody has every right."""

    async def middleware(request: Request, proceed: Callable[[Request], Awaitable[Response]]) -> Response:
        request.scope["state"] = {"user": None, "rights": frozenset(Right)}
        return await proceed(request)

    application = FastAPI()
    application.middleware("http")(middleware)
    answer_errors(application)
    for router in routers:
        application.include_router(router)
    return application


@contextmanager
def asking(store, evaluators, **options):
    """A client of the application, which runs while the block does."""
    application = build_app(store, evaluators, **options)
    with TestClient(application, base_url="http://127.0.0.1", client=HERE) as client:
        yield client


def who(client, **options):
    """Whom the navigation bar is for: their name, whether it offers a login, and the pages in it."""
    html = client.get("/help/about", **options).text
    places, tools = html[html.index('<nav class="top"') : html.index("</nav>")].split('class="tools"')
    name = re.search(r'<a href="/login/password">([^<]*)</a>', tools)
    return name and name[1], "/login?next=/help/about" in tools, re.findall(r'<a href="([^"]*)"', places)


def assert_alike(ours, theirs, tolerance):
    """The same keys and values, numbers within a tolerance."""
    assert type(ours) is type(theirs)
    if isinstance(ours, dict):
        assert ours.keys() == theirs.keys()
        for key, value in ours.items():
            assert_alike(value, theirs[key], tolerance)
    elif isinstance(ours, list):
        assert len(ours) == len(theirs)
        for one, other in zip(ours, theirs, strict=True):
            assert_alike(one, other, tolerance)
    else:
        assert ours == (pytest.approx(theirs, abs=tolerance) if isinstance(ours, float) else theirs)
