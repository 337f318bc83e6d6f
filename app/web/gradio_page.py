"""A Gradio page whose first response already contains its content.

Gradio itself renders a page in the browser. That takes about sixty requests, and the page stays empty for a second.
Here, the page arrives complete, in the frame that all pages share, and works at once. Gradio's own script starts
when the browser is idle. The content then moves unchanged into the block `HOST` of the interface
(`assets/web/js/shared/frame.js`).
"""

import json
import logging
import os
import re
from collections.abc import Callable
from functools import cache, wraps
from inspect import signature
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

import gradio as gr
from anyio import to_thread
from fastapi import APIRouter, FastAPI
from gradio.events import api
from markupsafe import Markup
from pydantic import TypeAdapter, ValidationError
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from stepsight.app.web.failures import OURS, error_json, logged_under
from stepsight.app.web.html import plain_page, render
from stepsight.app.web.page_route import PageContent
from stepsight.app.web.request_guard import read_again
from stepsight.core.errors import UserError
from stepsight.core.files.json_values import parse_json
from stepsight.core.paths import asset

HOST = "host"
"""The id of the block into which the page moves."""

# Answers come in the response itself. Through Gradio's queue they come by an event stream, and one that is asked
# for while the stream of the one before closes is lost (Gradio 6.31).
_DIRECT: dict[str, Any] = {"queue": False, "api_visibility": "private"}
# The configuration and the script of the interface in Gradio's page.
_CONFIG = re.compile(
    r"(window\.gradio_config = .*?;</script><script>window\.gradio_api_info = .*?;</script>)", re.DOTALL
)
_SCRIPT = re.compile(r'<script type="module"[^>]* src="\.?(/assets/[^"]+)"')

# By these, anybody could have Gradio name another server as its own. `Host` has been checked.
_ROOTS = (b"x-forwarded-host", b"x-gradio-server")

_EVENTS = "/gradio_api/run/"

_LOG = logging.getLogger("stepsight")

Event = Callable[..., dict[str, Any]]
Content = Callable[[Request], PageContent]


def interface(title: str, events: dict[str, Event]) -> gr.Blocks:
    """Build a Gradio interface that hosts a page.

    The page's script calls the `events` by name, at `/gradio_api/run/NAME`. A `UserError` becomes the `error` of
    the response. Events do not go through Gradio's own script, which would drop clicks made while the previous
    response is being rendered.
    """
    _make_folder()
    demo: gr.Blocks
    with gr.Blocks(title=title, analytics_enabled=False, fill_width=True) as demo:
        gr.HTML(elem_id=HOST, apply_default_css=False, js_on_load=None)
        for name, event in events.items():
            api(_answering(event), api_name=name, **_DIRECT)
    return demo


@cache
def _make_folder() -> TemporaryDirectory[str]:
    """Make the folder for Gradio's files, which only this process may read, and which goes when it ends. By default
    it is one for all users of the machine."""
    folder = TemporaryDirectory(prefix="stepsight-gradio-")
    os.environ["GRADIO_TEMP_DIR"] = gr.routes.DEFAULT_TEMP_DIR = folder.name  # type: ignore[attr-defined]
    return folder


def _answering(event: Event) -> Event:
    """Wrap an event so that a user's mistake, or a bug in StepSight, becomes the `error` of its response."""

    @wraps(event)
    def answer(*values: Any, **named: Any) -> dict[str, Any]:
        try:
            return event(*values, **named)
        except UserError as error:
            return {"error": str(error.without_options())}
        except Exception:
            _LOG.exception("the event %s failed", event.__name__)
            return {"error": f"{OURS} {logged_under()}"}

    return answer


def mount(application: FastAPI, demo: gr.Blocks) -> FastAPI:
    """Mount an interface at `/`, after every other route.

    Gradio's background loops, which look for queued events and for values of visitors who have left, are not
    started. They look twenty times a second and take 7 % of a core even without visitors. Raises `ValueError` if an
    event of the interface needs Gradio's queue, or if the interface has a value that Gradio keeps for each visitor.
    """
    queued = [event.api_name for event in demo.fns.values() if event.queue]
    if queued or any(block.stateful for block in demo.blocks.values()):
        raise ValueError(f"Gradio's queue does not run here, and {queued or 'a state'} needs it.")
    # Gradio prints errors that precede an event, including the request's data.
    logged = SimpleNamespace(print_exc=lambda: _LOG.exception("Gradio failed"))
    gr.routes.traceback = logged  # type: ignore[attr-defined, assignment]
    lifespan = application.router.lifespan_context
    mounted: FastAPI = gr.mount_gradio_app(
        application,
        demo,
        path="/",
        favicon_path=str(asset("web") / "icon.svg"),
        footer_links=[],
        run_history=False,
        show_error=False,
        enable_monitoring=False,
        max_file_size="1mb",
        ssr_mode=False,
    )
    mounted.router.lifespan_context = lifespan
    return mounted


class FirstResponse:
    """ASGI middleware that puts the `content` of a page into the response of Gradio's page at `/`. `name` is the
    page's name in `app.access.rules.PAGES`."""

    def __init__(self, app: ASGIApp, name: str, content: Content) -> None:
        self.app = app
        self._name = name
        self._content = content

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] != "/" or scope["method"] not in ("GET", "HEAD"):
            await self.app(scope, receive, send)
            return
        body = bytearray()

        async def collect(message: Message) -> None:
            body.extend(message.get("body", b""))

        headers = [header for header in scope["headers"] if header[0].lower() not in _ROOTS]
        await self.app({**scope, "method": "GET", "headers": headers}, receive, collect)
        content = await to_thread.run_sync(self._content, Request(scope))
        page = plain_page(self._name, content.html, self._name, _gradio(body.decode()))
        await HTMLResponse(page, content.status, headers={"cache-control": "no-cache"})(scope, receive, send)


class EventBodies:
    """ASGI middleware that refuses the body of an event with 422 if it does not fit the event's parameters. From
    other bodies, Gradio gets the values alone, since it fails if a field of its own is wrong."""

    def __init__(self, app: ASGIApp, events: dict[str, Event]) -> None:
        self.app = app
        self._parameters = {f"{_EVENTS}{name}": _parameters_of(event) for name, event in events.items()}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        parameters = self._parameters.get(scope["path"]) if scope["type"] == "http" else None
        if parameters is None or scope["method"] != "POST":
            await self.app(scope, receive, send)
            return
        try:
            values = _read_values(await Request(scope, receive).body(), parameters)
        except UserError as error:
            await error_json(error)(scope, receive, send)
            return
        body = json.dumps({"data": values}).encode()
        others = [pair for pair in scope["headers"] if pair[0].lower() not in (b"content-type", b"content-length")]
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
        await self.app({**scope, "headers": [*others, *headers]}, read_again(body, receive), send)


class WithoutFiles:
    """ASGI middleware that refuses the body of a request to Gradio with 422 if it is no JSON object, or if it names
    a file."""

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


def _parameters_of(event: Event) -> dict[str, TypeAdapter[Any]]:
    """Return the validator of each parameter of an event that a body has a value for."""
    parameters = signature(event, eval_str=True).parameters.values()
    return {one.name: TypeAdapter(one.annotation) for one in parameters if one.annotation is not gr.Request}


def _read_values(body: bytes, parameters: dict[str, TypeAdapter[Any]]) -> list[Any]:
    """Return the values of an event's parameters that a body holds. Raises `UserError` if they do not fit."""
    hint = "Send an object with the values of the event as its data."
    try:
        sent = parse_json(body)
        values = sent["data"]
        json.dumps(values, ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, TypeError, KeyError):
        raise UserError("The body is not a JSON object with data.", hint) from None
    if _has_file(values):
        raise UserError("data holds a file, and no event takes one.", hint)
    if not isinstance(values, list) or len(values) != len(parameters):
        raise UserError(f"data is {values!r:.60}, expected a list of {', '.join(parameters)}.", hint)
    for (name, adapter), value in zip(parameters.items(), values, strict=True):
        try:
            adapter.validate_python(value, strict=True)
        except ValidationError as error:
            raise UserError(f"{name} is {value!r:.60}: {error.errors()[0]['msg']}.", hint) from None
    return values


def _has_file(value: Any) -> bool:
    """True if an object within the value has the key by which Gradio knows files. It would copy the one that the
    object names, wherever that is on this machine, or fetch it."""
    if isinstance(value, dict):
        return "meta" in value or any(map(_has_file, value.values()))
    return isinstance(value, list) and any(map(_has_file, value))


def _gradio(page: str) -> Markup:
    """Return the HTML of Gradio's page that renders the interface: its configuration and its script."""
    found = [pattern.search(page) for pattern in (_CONFIG, _SCRIPT)]
    assert None not in found, "another Gradio than the one that constraints.txt names"
    config, script = (match[1] for match in found if match)
    return render("gradio.html", config=Markup(config), script=script)


def plain_style() -> APIRouter:
    """Build routes that serve Gradio's style sheets as empty files. The style sheets would affect every element of
    the page, although none of Gradio's own elements is visible."""
    routes = APIRouter(include_in_schema=False)

    async def nothing() -> Response:
        return Response("", media_type="text/css", headers={"cache-control": "public, max-age=86400"})

    for path in ("/assets/{name}.css", "/theme.css"):
        routes.add_api_route(path, nothing, methods=["GET"])
    return routes
