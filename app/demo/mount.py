"""The demo as a part of the server, at `/demo`, from the first request for it until nobody looks at it any more."""

import asyncio
import json
from contextlib import AsyncExitStack, nullcontext
from typing import TYPE_CHECKING, Any

from anyio import to_thread
from fastapi import Depends, FastAPI
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse
from starlette.types import Message, Receive, Scope, Send

from stepsight.app.scoring.evaluators import Evaluators
from stepsight.app.web.access import POLICY, RequiresRight, Right, content_policy, with_headers
from stepsight.app.web.failures import error_json
from stepsight.app.web.middleware import ClientLimit, read_again, too_many_open
from stepsight.core.errors import UserError
from stepsight.core.files.whole_files import parse_json
from stepsight.storage.database.store import Store

if TYPE_CHECKING:
    import gradio as gr

PATH = "/demo"
# The number of event streams that a client may have open at once. Each serves one solution that is being scored.
_MOST_STREAMS = 8
_STREAMS = ("/gradio_api/queue/data", "/gradio_api/call/")
# Seconds since the last request. An open page keeps a request open.
_IDLE = 60.0


class DemoOnRequest:
    """ASGI application that builds the demo on the first request, and ends it once it has had no requests for a
    while.

    Gradio's queue looks for events a thousand times a second, whether or not somebody is there.
    """

    def __init__(self, store: Store, evaluators: Evaluators) -> None:
        self._store = store
        self._evaluators = evaluators
        self._starting = asyncio.Lock()
        self._application: FastAPI | None = None
        self._running = AsyncExitStack()
        self._requests = self._answered = 0
        self._streams = ClientLimit(_MOST_STREAMS)

    @property
    def is_running(self) -> bool:
        return self._application is not None

    def mount(self, application: FastAPI) -> None:
        """Mount it at `PATH`."""

        async def redirect() -> RedirectResponse:
            return RedirectResponse(f"{PATH}/")

        needs = [Depends(RequiresRight(Right.SCORE))]
        application.add_api_route(PATH, redirect, methods=["GET"], dependencies=needs, include_in_schema=False)
        application.mount(PATH, self)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] == "POST":
            body = await Request(scope, receive).body()
            try:
                _check_body(body)
            except UserError as error:
                return await error_json(error)(scope, receive, send)
            receive = read_again(body, receive)
        self._requests += 1
        try:
            async with self._starting:
                application = self._application = self._application or await self._start()
            # Gradio is mounted below the root path it knows.
            inner = {**scope, "root_path": scope["app_root_path"]}
            if scope["path"] == f"{PATH}/":
                # Gradio fails if its page is requested under another page's name.
                inner["query_string"] = b""
            is_stream = scope["method"] == "GET" and scope["path"].removeprefix(PATH).startswith(_STREAMS)
            with self._streams.held(scope["state"]["client"]) if is_stream else nullcontext(True) as is_within:
                if is_within:
                    await _answer(application, inner, receive, send)
                else:
                    await too_many_open(scope)(scope, receive, send)
        finally:
            self._requests -= 1
            self._answered += 1
            asyncio.get_running_loop().call_later(_IDLE, self._end_if_idle, self._answered)

    async def _start(self) -> FastAPI:
        def build() -> "tuple[FastAPI, gr.Blocks]":
            # Importing Gradio takes seconds, and most servers never show it.
            from stepsight.app.demo.interface import mounted_demo

            return mounted_demo(self._store, self._evaluators, PATH)

        application, blocks = await to_thread.run_sync(build)
        await self._running.enter_async_context(application.router.lifespan_context(application))
        self._running.callback(blocks.close, verbose=False)
        return application

    def _end_if_idle(self, answered: int) -> None:
        if not self._requests and answered == self._answered:
            self._ending = asyncio.ensure_future(self.end())

    async def end(self) -> None:
        """Stop the demo if it is running. The next request starts it again."""
        self._application = None
        await self._running.aclose()


async def _answer(application: FastAPI, scope: Scope, receive: Receive, send: Send) -> None:
    """Run the application, whose page may evaluate its own templates. If it fails in the middle of a response, as
    Gradio does for an event that it does not know, end the response."""
    has_begun = False

    async def sending(message: Message) -> None:
        nonlocal has_begun
        has_begun = True
        await send(message)

    try:
        policy = {POLICY: content_policy(evaluating=True)} if scope["path"] == f"{PATH}/" else {}
        await application(scope, receive, with_headers(sending, lambda _: policy))
    except RuntimeError as error:
        if not (has_begun and isinstance(error.__cause__, HTTPException)):
            raise
        await send({"type": "http.response.body", "body": b""})


def _check_body(body: bytes) -> None:
    """Raise `UserError` if the body of a request to Gradio is not a JSON object, or names a file."""
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
