"""The demo as a part of the server, at `/demo`, from the first request for it until nobody looks at it any more."""

import asyncio
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from types import SimpleNamespace

import gradio as gr
from anyio import to_thread
from fastapi import Depends, FastAPI
from jinja2.ext import Extension
from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse
from starlette.types import Message, Receive, Scope, Send

from stepsight.app.access.current import script_nonce
from stepsight.app.access.headers import POLICY, content_policy
from stepsight.app.access.rights import RequiresRight, Right, find_user_of, note_scored, state_of
from stepsight.app.demo.interface import LAUNCHED, LEAD, demo
from stepsight.app.demo.without_files import WithoutFiles, make_folder
from stepsight.app.scoring.evaluators import Evaluators
from stepsight.app.scoring.fair_queue import client_context
from stepsight.core.trace import Trace
from stepsight.storage.database.store import Store

PATH = "/demo"
# Seconds after the last request. An open page has a request of its own for as long as it is open.
_IDLE = 60.0
# Its icon is that of the pages.
_MOUNTED = {name: value for name, value in LAUNCHED.items() if name != "favicon_path"}
_LOG = logging.getLogger("stepsight")
_LEAD = f"{LEAD}\n\n[Back to StepSight](/)"


class DemoOnRequest:
    """ASGI application that builds the demo on the first request, and ends it once it has had no requests for a
    while.

    Gradio's queue looks for events a thousand times a second, whether or not somebody is there.
    """

    def __init__(self, store: Store, evaluators: Evaluators) -> None:
        self._store = store
        self._evaluators = evaluators
        self._starting = asyncio.Lock()
        self._running: _RunningDemo | None = None
        self._requests = 0
        self._timer: asyncio.TimerHandle | None = None

    @property
    def is_running(self) -> bool:
        return self._running is not None

    def mount(self, application: FastAPI) -> None:
        """Mount it at `PATH`."""

        async def redirect() -> RedirectResponse:
            return RedirectResponse(f"{PATH}/")

        needs = [Depends(RequiresRight(Right.SCORE))]
        application.add_api_route(PATH, redirect, methods=["GET"], dependencies=needs, include_in_schema=False)
        application.mount(PATH, WithoutFiles(self))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._requests += 1
        try:
            async with self._starting:
                self._running = self._running or await _RunningDemo.start(self._build)
            # Gradio is mounted below its own root.
            inner = {**scope, "root_path": scope["app_root_path"]}
            if scope["path"] == f"{PATH}/":
                # Gradio fails if its page is asked for with the name of another.
                inner["query_string"] = b""
                send = _evaluating(send)
            await _answer(self._running.application, inner, receive, send)
        finally:
            self._requests -= 1
            if self._timer is not None:
                self._timer.cancel()
            self._timer = asyncio.get_running_loop().call_later(_IDLE, self._end_if_idle)

    def _end_if_idle(self) -> None:
        if not self._requests:
            self.end()

    def end(self) -> None:
        """Stop the demo if it is running. The next request starts it again."""
        if self._running is not None:
            self._running.end()
            self._running = None

    def _build(self) -> gr.Blocks:
        return demo(self._evaluators, lead=_LEAD, scoring=self._scoring)

    @contextmanager
    def _scoring(self, trace: Trace, request: gr.Request) -> Iterator[None]:
        """Record the exposure of the user who asks, and attribute the computation to them."""
        note_scored(self._store, find_user_of(request), trace)
        with client_context(state_of(request)["client"]):
            yield


class _ScriptNonces(Extension):
    """Jinja extension that has a template write the request's nonce into its scripts."""

    def preprocess(self, source: str, name: str | None, filename: str | None = None) -> str:
        return source.replace("<script", '<script nonce="{{ nonce() }}"')


@cache
def _write_nonces() -> None:
    """Have Gradio's templates write nonces."""
    templates = gr.routes.templates.env
    templates.globals["nonce"] = script_nonce
    templates.add_extension(_ScriptNonces)
    # Those that were read before have none.
    templates.cache = {}


def _evaluating(send: Send) -> Send:
    """Wrap `send` so that the scripts of Gradio's page may evaluate their own templates."""

    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            policy = (POLICY, content_policy(evaluating=True))
            message = {**message, "headers": [*message.get("headers", []), policy]}
        await send(message)

    return sending


async def _answer(application: FastAPI, scope: Scope, receive: Receive, send: Send) -> None:
    """Run the application. If it fails in the middle of a response, as Gradio does for an event that it does not
    know, end the response."""
    has_begun = False

    async def sending(message: Message) -> None:
        nonlocal has_begun
        has_begun = True
        await send(message)

    try:
        await application(scope, receive, sending)
    except RuntimeError as error:
        if not (has_begun and isinstance(error.__cause__, HTTPException)):
            raise
        await send({"type": "http.response.body", "body": b""})


class _RunningDemo:
    """A demo with its queue, which has a task of its own."""

    def __init__(self, application: FastAPI, blocks: gr.Blocks) -> None:
        self.application = application
        self._blocks = blocks
        self._started, self._ended = asyncio.Event(), asyncio.Event()
        self._task = asyncio.create_task(self._run())

    @classmethod
    async def start(cls, build: Callable[[], gr.Blocks]) -> "_RunningDemo":
        """Build a demo and start its queue."""
        make_folder()
        _write_nonces()
        # Gradio prints errors, and with them what somebody sent.
        gr.queueing.traceback = SimpleNamespace(print_exc=lambda: _LOG.exception("the demo failed"))  # type: ignore[attr-defined, assignment]
        application = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)
        blocks = await to_thread.run_sync(build)
        gr.mount_gradio_app(application, blocks, path=PATH, **_MOUNTED)
        running = cls(application, blocks)
        await running._started.wait()
        return running

    async def _run(self) -> None:
        async with self.application.router.lifespan_context(self.application):
            self._started.set()
            await self._ended.wait()

    def end(self) -> None:
        """Stop the queue and end the task."""
        self._blocks.close(verbose=False)
        self._ended.set()
