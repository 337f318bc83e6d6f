"""The demo as a part of the server, at `/demo`, from the first request for it until nobody looks at it any more."""

import asyncio
from typing import TYPE_CHECKING

from anyio import to_thread
from fastapi import Depends, FastAPI
from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse
from starlette.types import Message, Receive, Scope, Send

from stepsight.app.access.headers import POLICY, content_policy
from stepsight.app.access.rights import RequiresRight, Right
from stepsight.app.demo.without_files import WithoutFiles
from stepsight.app.scoring.evaluators import Evaluators
from stepsight.storage.database.store import Store

if TYPE_CHECKING:
    from stepsight.app.demo.running import RunningDemo

PATH = "/demo"
# Seconds after the last request. An open page has a request of its own for as long as it is open.
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
        self._running: RunningDemo | None = None
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
                self._running = self._running or await self._start()
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

    async def _start(self) -> "RunningDemo":
        running_demo = await to_thread.run_sync(_import_demo)
        return await running_demo.start(PATH, self._store, self._evaluators)

    def _end_if_idle(self) -> None:
        if not self._requests:
            self.end()

    def end(self) -> None:
        """Stop the demo if it is running. The next request starts it again."""
        if self._running is not None:
            self._running.end()
            self._running = None


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


def _import_demo() -> "type[RunningDemo]":
    # Gradio takes seconds to import, and most servers never show it.
    from stepsight.app.demo.running import RunningDemo

    return RunningDemo
