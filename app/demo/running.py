"""A running demo: Gradio's application with its queue. This module imports Gradio, which takes seconds."""

import asyncio
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from tempfile import TemporaryDirectory
from types import SimpleNamespace

import gradio as gr
from anyio import to_thread
from fastapi import FastAPI
from jinja2.ext import Extension

from stepsight.app.access.current import script_nonce
from stepsight.app.access.rights import find_user_of, note_scored, state_of
from stepsight.app.demo.interface import LAUNCHED, LEAD, demo
from stepsight.app.scoring.evaluators import Evaluators
from stepsight.app.scoring.fair_queue import client_context
from stepsight.core.trace import Trace
from stepsight.storage.database.store import Store

# Its icon is that of the pages.
_MOUNTED = {name: value for name, value in LAUNCHED.items() if name != "favicon_path"}
_LOG = logging.getLogger("stepsight")
_LEAD = f"{LEAD}\n\n[Back to StepSight](/)"


@cache
def make_folder() -> TemporaryDirectory[str]:
    """Create the folder for Gradio's files, which only this process may read, and which is deleted when the process
    ends. By default, all users of the machine share one folder."""
    folder = TemporaryDirectory(prefix="stepsight-gradio-")
    os.environ["GRADIO_TEMP_DIR"] = gr.routes.DEFAULT_TEMP_DIR = folder.name  # type: ignore[attr-defined]
    return folder


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


class RunningDemo:
    """A demo with its queue, which has a task of its own."""

    def __init__(self, application: FastAPI, blocks: gr.Blocks) -> None:
        self.application = application
        self._blocks = blocks
        self._started, self._ended = asyncio.Event(), asyncio.Event()
        self._task = asyncio.create_task(self._run())

    @classmethod
    async def start(cls, path: str, store: Store, evaluators: Evaluators) -> "RunningDemo":
        """Build a demo that scores with `evaluators`, below `path`, and start its queue."""

        @contextmanager
        def scoring(trace: Trace, request: gr.Request) -> Iterator[None]:
            """Record the exposure of the user who asks, and attribute the computation to them."""
            assert request.request is not None, "an event that came without a request"
            note_scored(store, find_user_of(request.request), trace)
            with client_context(state_of(request.request)["client"]):
                yield

        make_folder()
        _write_nonces()
        # Gradio prints errors, and with them what somebody sent.
        gr.queueing.traceback = SimpleNamespace(print_exc=lambda: _LOG.exception("the demo failed"))  # type: ignore[attr-defined, assignment]
        application = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)
        blocks = await to_thread.run_sync(lambda: demo(evaluators, lead=_LEAD, scoring=scoring))
        gr.mount_gradio_app(application, blocks, path=path, **_MOUNTED)
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
