"""The demo as an application of its own. This module imports Gradio, which takes seconds."""

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from tempfile import TemporaryDirectory
from types import SimpleNamespace

import gradio as gr
from fastapi import FastAPI
from jinja2.ext import Extension

from stepsight.app.access.current import script_nonce
from stepsight.app.access.rights import find_user_of, state_of
from stepsight.app.demo.interface import LAUNCHED, LEAD, demo
from stepsight.app.scoring.evaluators import Evaluators
from stepsight.app.scoring.fair_queue import client_context
from stepsight.core.trace import Trace
from stepsight.storage.database.store import Store
from stepsight.storage.people.blindness import check_texts

_LOG = logging.getLogger("stepsight")


def mounted_demo(store: Store, evaluators: Evaluators, path: str) -> tuple[FastAPI, gr.Blocks]:
    """Build the demo of a server, below `path`. A text that is hidden from whoever has it scored is refused,
    and the computation is attributed to them."""

    @contextmanager
    def scoring(trace: Trace, request: gr.Request) -> Iterator[None]:
        assert request.request is not None, "an event that came without a request"
        check_texts(store, find_user_of(request.request), trace)
        with client_context(state_of(request.request)["client"]):
            yield

    prepare_gradio()
    application = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)
    blocks = demo(evaluators, lead=f"{LEAD}\n\n[Back to StepSight](/)", scoring=scoring)
    # Its icon is that of the pages.
    gr.mount_gradio_app(application, blocks, path=path, **{**LAUNCHED, "favicon_path": None})
    return application, blocks


class _ScriptNonces(Extension):
    """Jinja extension that has a template write the request's nonce into its scripts."""

    def preprocess(self, source: str, name: str | None, filename: str | None = None) -> str:
        return source.replace("<script", '<script nonce="{{ nonce() }}"')


@cache
def prepare_gradio() -> TemporaryDirectory[str]:
    """Have Gradio's templates write nonces and its log hold no values, and return its folder for files, which only
    this process may read, and which is deleted when the process ends. By default, all users of the machine share
    one."""
    folder = TemporaryDirectory(prefix="stepsight-gradio-")
    os.environ["GRADIO_TEMP_DIR"] = gr.routes.DEFAULT_TEMP_DIR = folder.name  # type: ignore[attr-defined]
    templates = gr.routes.templates.env
    templates.globals["nonce"] = script_nonce
    templates.add_extension(_ScriptNonces)
    # Those that were read before have none.
    templates.cache = {}
    # Gradio prints errors, and with them what somebody sent.
    gr.queueing.traceback = SimpleNamespace(print_exc=lambda: _LOG.exception("the demo failed"))  # type: ignore[attr-defined, assignment]
    return folder
