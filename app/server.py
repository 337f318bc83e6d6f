"""The HTTP server: the pages, the files they need, and the headers that keep them private."""

import logging
import os
import socket
import warnings
from collections.abc import Iterable

# Before Gradio is imported anywhere, or it calls home.
os.environ["GRADIO_ANALYTICS_ENABLED"] = "False"

import gradio as gr
import uvicorn
from fastapi import FastAPI
from fastapi.staticfiles import StaticFiles
from starlette.middleware.trustedhost import TrustedHostMiddleware

from app.evaluators import Evaluators
from app.headers import PrivateHeaders
from app.pages import browse, score
from core.assets import asset
from storage.store import Store

_HEAD = """<link rel="stylesheet" href="/stepsight/katex/katex.min.css">
<link rel="stylesheet" href="/stepsight/style.css">
<script defer src="/stepsight/katex/katex.min.js"></script>
<script defer src="/stepsight/stepsight.js"></script>"""


def build_app(store: Store, evaluators: Evaluators) -> FastAPI:
    """The whole application, ready for uvicorn. Pages are at `/` and `/browse`."""
    with gr.Blocks(title="StepSight", analytics_enabled=False, fill_width=True) as demo:
        score.build(evaluators)
    with demo.route("Browse", "browse", show_in_navbar=False):
        browse.build(store, evaluators)
    demo.queue(default_concurrency_limit=8, max_size=64, api_open=False)
    application = FastAPI(title="StepSight", docs_url=None, redoc_url=None, openapi_url=None)
    application.add_middleware(PrivateHeaders)
    # Or a page elsewhere could have its own name point here, and read the store.
    application.add_middleware(TrustedHostMiddleware, allowed_hosts=["127.0.0.1", "localhost"])
    application.mount("/stepsight", StaticFiles(directory=asset("web")), name="stepsight")
    # Gradio warns of several pages even where server-side rendering is off.
    warnings.filterwarnings("ignore", "SSR mode is not supported", UserWarning)
    mounted: FastAPI = gr.mount_gradio_app(
        application,
        demo,
        path="/",
        head=_HEAD,
        theme=_theme(),
        footer_links=[],
        run_history=False,
        show_error=False,
        enable_monitoring=False,
        max_file_size="1mb",
        ssr_mode=False,
    )
    return mounted


def serve(application: FastAPI, listener: socket.socket) -> None:
    """Serve until interrupted, on a socket that listens."""
    _Server(uvicorn.Config(application, log_level="warning", timeout_graceful_shutdown=1)).run(sockets=[listener])


class _Server(uvicorn.Server):
    """Ends quietly: every open page holds a stream, and cutting one would print a traceback."""

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)
        await super().shutdown(sockets)


def _theme() -> gr.themes.Base:
    fonts: Iterable[str] = ("system-ui", "-apple-system", "Segoe UI", "sans-serif")
    return gr.themes.Base(font=list(fonts), font_mono=["ui-monospace", "monospace"])
