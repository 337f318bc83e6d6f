"""Events of a page: functions that its script calls by name, with a list of values as JSON, for a JSON object."""

import json
import logging
from collections.abc import Callable
from functools import partial
from inspect import signature
from typing import Any

from anyio import CapacityLimiter, to_thread
from fastapi import APIRouter, Depends, Request
from pydantic import TypeAdapter, ValidationError
from starlette.responses import JSONResponse, Response

from stepsight.app.access.rights import RequiresRight, Right
from stepsight.app.web.failures import OURS, error_json, logged_under
from stepsight.core.errors import UserError
from stepsight.core.files.whole_files import parse_json

# The address that events had when Gradio took them, which programs may know.
_EVENTS = "/gradio_api/run/"
# Events wait for judgments, and must not take the threads of other requests.
_AT_ONCE = 40

_LOG = logging.getLogger("stepsight")

Event = Callable[..., dict[str, Any]]


def event_routes(events: dict[str, Event], *rights: Right) -> APIRouter:
    """Build a route for each event, for users who have one of the `rights`. An event that does more than read
    checks the right for that itself.

    A request's body is an object whose `data` lists the values of the event's parameters, except a `Request`. It is
    refused with 422 if it does not fit them. The response has the answer as the only item of `data`. A `UserError`
    becomes the `error` of the answer.
    """
    routes = APIRouter(include_in_schema=False)
    needs = [Depends(RequiresRight(*rights))]
    limiter = CapacityLimiter(_AT_ONCE)
    for name, event in events.items():
        routes.add_api_route(f"{_EVENTS}{name}", _route(event, limiter), methods=["POST"], dependencies=needs)
    return routes


def _route(event: Event, limiter: CapacityLimiter) -> Callable[[Request], Any]:
    parameters = _parameters_of(event)

    async def answer(request: Request) -> Response:
        try:
            values = _read_values(await request.body(), parameters)
        except UserError as error:
            return error_json(error)
        asked = [
            name for name, one in signature(event, eval_str=True).parameters.items() if one.annotation is Request
        ]
        call = partial(_call, event, dict(zip(parameters, values, strict=True)) | dict.fromkeys(asked, request))
        return JSONResponse({"data": [await to_thread.run_sync(call, limiter=limiter)]})

    return answer


def _call(event: Event, values: dict[str, Any]) -> dict[str, Any]:
    """Call an event. A user's mistake, or a bug in StepSight, becomes the `error` of its answer."""
    try:
        return event(**values)
    except UserError as error:
        return {"error": str(error.without_options())}
    except Exception:
        _LOG.exception("the event %s failed", event.__name__)
        return {"error": f"{OURS} {logged_under()}"}


def _parameters_of(event: Event) -> dict[str, TypeAdapter[Any]]:
    """Return the validator of each parameter of an event that a body has a value for."""
    parameters = signature(event, eval_str=True).parameters.values()
    return {one.name: TypeAdapter(one.annotation) for one in parameters if one.annotation is not Request}


def _read_values(body: bytes, parameters: dict[str, TypeAdapter[Any]]) -> list[Any]:
    """Return the values of an event's parameters that a body holds. Raises `UserError` if they do not fit."""
    hint = "Send an object with the values of the event as its data."
    try:
        sent = parse_json(body)
        values = sent["data"]
        json.dumps(values, ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, TypeError, KeyError):
        raise UserError("The body is not a JSON object with data.", hint) from None
    if not isinstance(values, list) or len(values) != len(parameters):
        raise UserError(f"data is {values!r:.60}, expected a list of {', '.join(parameters)}.", hint)
    for (name, adapter), value in zip(parameters.items(), values, strict=True):
        try:
            adapter.validate_python(value, strict=True)
        except ValidationError as error:
            raise UserError(f"{name} is {value!r:.60}: {error.errors()[0]['msg']}.", hint) from None
    return values
