"""The whole application without a browser, asked through Starlette's client."""

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

from fastapi import APIRouter, FastAPI, Request, Response
from starlette.testclient import TestClient

from stepsight.app.access.rights import Right
from stepsight.app.scoring.evaluators import Evaluators
from stepsight.app.server import build_app
from stepsight.storage.database.store import Store

PAGE = {"accept": "text/html"}


def let_in(*routers: APIRouter) -> FastAPI:
    """An application of some routes, in which everybody has every right."""

    async def middleware(request: Request, proceed: Callable[[Request], Awaitable[Response]]) -> Response:
        request.scope["state"] = {"user": None, "rights": frozenset(Right)}
        return await proceed(request)

    application = FastAPI()
    application.middleware("http")(middleware)
    for router in routers:
        application.include_router(router)
    return application


@contextmanager
def asking(store: Store, evaluators: Evaluators, **options: Any) -> Iterator[TestClient]:
    """A client of the application, which runs while the block does."""
    with TestClient(build_app(store, evaluators, **options), base_url="http://127.0.0.1") as client:
        yield client
