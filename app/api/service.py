"""The API as an application of its own, with its routes, its error handling and the page that describes it."""

import json
from collections.abc import Mapping
from functools import partial
from typing import Any

from fastapi import Depends, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse
from markupsafe import Markup
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import Response

from stepsight.app.access.rights import LOOKING, RequiresRight
from stepsight.app.api import jobs, rewards, scores, traces
from stepsight.app.api.models import Context, Failure
from stepsight.app.scoring.evaluators import Evaluators
from stepsight.app.scoring.limits import REQUEST_SECONDS
from stepsight.app.web.failures import error_json, failure_json
from stepsight.app.web.html import render
from stepsight.core.errors import UserError
from stepsight.core.scoring.client import API
from stepsight.storage.database.store import Store

_FAILURES: dict[int | str, dict[str, object]] = {
    status: {"model": Failure, "description": text}
    for status, text in (
        (403, "Not allowed here"),
        (404, "Not found"),
        (413, "More than 1 MB"),
        (422, "Invalid, too long for the evaluator, or too much to compute for one request"),
        (429, "Too many requests are waiting; try again after the seconds in Retry-After"),
        (502, "The server behind the evaluator cannot be reached, or answers incorrectly"),
        (503, "The database does not answer, memory is short, or the request took too long; try again later"),
    )
}

Document = Mapping[str, Any]


def add_api(application: FastAPI, store: Store, evaluators: Evaluators, *, read_only: bool, seconds: float) -> None:
    """Mount the API at `API`, and add the routes that imitate other reward-model servers at the root."""
    application.mount(API, build_api(store, evaluators, read_only=read_only, seconds=seconds))
    application.include_router(rewards.routes(Context(store, evaluators, read_only, seconds)))
    application.add_exception_handler(RequestValidationError, _invalid)


def build_api(
    store: Store, evaluators: Evaluators, *, read_only: bool = False, seconds: float = REQUEST_SECONDS
) -> FastAPI:
    """Build the application that is mounted at `API`. With `read_only`, no route changes the store. Computing the
    answer to a request may take at most `seconds`."""
    context = Context(store, evaluators, read_only, seconds)
    api = FastAPI(
        title="StepSight",
        version="1",
        description="Judges every step of worked solutions, and reads the store. Errors are `{error, hint}`.",
        docs_url=None,
        redoc_url=None,
        responses=_FAILURES,
    )
    for routes in (scores.routes, scores.evaluator_routes, traces.routes, jobs.routes):
        api.include_router(routes(context))
    api.add_exception_handler(UserError, _user_error)
    api.add_exception_handler(RequestValidationError, _invalid)
    api.add_exception_handler(HTTPException, _refused)
    api.add_exception_handler(ClientDisconnect, _left)

    @api.get("/docs", include_in_schema=False, dependencies=[Depends(RequiresRight(*LOOKING))])
    def docs() -> HTMLResponse:
        return HTMLResponse(description_html(api.openapi()))

    return api


async def _user_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, UserError)
    return error_json(error)


async def _invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    if isinstance(first["input"], bytes):
        return failure_json(422, "The body was not sent as JSON.", "Add the header Content-Type: application/json.")
    where = ".".join(str(part) for part in first["loc"] if part != "body") or "the body"
    found = f", found {first['input']!r:.60}" if first["type"] not in ("missing", "json_invalid") else ""
    return failure_json(422, f"{where}: {first['msg']}{found}.", f"{API}/docs says what is expected.")


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    known = {404: "There is no such route.", 405: "This route does not take that method."}
    return failure_json(error.status_code, known.get(error.status_code, str(error.detail)), f"See {API}/docs.")


async def _left(request: Request, error: Exception) -> Response:
    # Nobody receives it; servers log this status for a client that has left.
    return Response(status_code=499)


def description_html(document: Document) -> Markup:
    """Render the page that describes every route with its input and output. `document` is the API's OpenAPI
    document."""
    return render("api/description.html", document=document, json=json.dumps, example=partial(_example, document))


def _example(document: Document, body: Document | None) -> dict[str, Any]:
    """Build an example of a request body from the examples of its fields. Fields without an example are left
    out."""
    if body is None:
        return {}
    schema = document["components"]["schemas"][body["$ref"].rpartition("/")[2]]
    return {key: value["examples"][0] for key, value in schema["properties"].items() if "examples" in value}
