"""Bodies of requests to Gradio, which would copy the files that they name."""

import json
from typing import Any

from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from stepsight.app.web.failures import error_json
from stepsight.app.web.request_guard import read_again
from stepsight.core.errors import UserError
from stepsight.core.files.json_values import parse_json


class WithoutFiles:
    """ASGI middleware that refuses the body of a request to Gradio with 422 if it is not a JSON object, or if it
    names a file."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] == "POST":
            body = await Request(scope, receive).body()
            try:
                _check_body(body)
            except UserError as error:
                await error_json(error)(scope, receive, send)
                return
            receive = read_again(body, receive)
        await self.app(scope, receive, send)


def _check_body(body: bytes) -> None:
    hint = "Send what gradio_client sends."
    try:
        sent: Any = parse_json(body)
        json.dumps(sent, allow_nan=False)
    except ValueError:
        raise UserError("The body is not JSON.", hint) from None
    if not isinstance(sent, dict) or _has_file(sent):
        raise UserError("The body is not an object without files.", hint)


def _has_file(value: Any) -> bool:
    """True if an object within the value has the key by which Gradio knows files. It would copy the one that the
    object names, wherever that is on this machine, or fetch it."""
    if isinstance(value, dict):
        return "meta" in value or any(map(_has_file, value.values()))
    return isinstance(value, list) and any(map(_has_file, value))
