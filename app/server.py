"""The HTTP server: the pages, their files, the health check, and the middleware that keeps them private."""

import asyncio
import logging
import os
import signal
import socket
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from types import FrameType

import uvicorn
from anyio import CapacityLimiter, fail_after, to_thread
from fastapi import APIRouter, FastAPI
from starlette.middleware.cors import CORSMiddleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.responses import JSONResponse

from stepsight.app.annotate import adjudicate, agreement, campaigns, disputes
from stepsight.app.annotate.pages import pages as annotate_pages
from stepsight.app.api.service import add_api
from stepsight.app.browse.page import BrowsePages
from stepsight.app.data import page as data
from stepsight.app.demo.mount import DemoOnRequest
from stepsight.app.evaluators import page as evaluators_page
from stepsight.app.evidence.page import EvidencePage
from stepsight.app.jobs import page as jobs
from stepsight.app.people import page as people
from stepsight.app.results.measurements import Measurements
from stepsight.app.results.page import ResultsPage
from stepsight.app.score.files import score_files
from stepsight.app.score.page import ScorePage
from stepsight.app.scoring.batcher import REQUEST_SECONDS
from stepsight.app.scoring.evaluators import Evaluators
from stepsight.app.web.access import private_headers
from stepsight.app.web.baseline_check import BaselineChecks
from stepsight.app.web.changes import change_routes
from stepsight.app.web.failures import answer_errors
from stepsight.app.web.help import help_routes
from stepsight.app.web.html import add_files
from stepsight.app.web.login import login_routes
from stepsight.app.web.middleware import Access, Failures, Gate, Requests
from stepsight.core.errors import UserError
from stepsight.storage.database.store import Store

HEALTH = "/healthz"

# The time limit for a response of the store in seconds, and the number of concurrent checks.
_PATIENCE = 2.0
_AT_ONCE = 2


def health_routes(store: Store, has_worker: Callable[[], bool] | None) -> APIRouter:
    """Build `GET /healthz`, which returns 200, or 503 if the store or the worker does not respond. `has_worker` is
    a function that returns True if the worker is running, or None if the server has no worker."""
    routes = APIRouter(include_in_schema=False)
    limiter = CapacityLimiter(_AT_ONCE)

    @routes.api_route(HEALTH, methods=["GET", "HEAD"])
    async def health() -> JSONResponse:
        states = {"store": await _answers(store, limiter)}
        states["worker"] = has_worker() if has_worker is not None else None
        words = {name: {True: "ok", False: "failed", None: "none"}[state] for name, state in states.items()}
        status = 503 if False in states.values() else 200
        return JSONResponse(words, status, headers={"cache-control": "no-store"})

    return routes


async def _answers(store: Store, limiter: CapacityLimiter) -> bool | None:
    try:
        with fail_after(_PATIENCE):
            await to_thread.run_sync(store.check, limiter=limiter, abandon_on_cancel=True)
    except (UserError, TimeoutError):
        return False
    return True


KEEP_ALIVE = 75
"""Seconds for which an idle connection stays open. Programs keep theirs about as long, and a request sent just as
the server closes the connection is lost."""

GRACE = 6
"""Seconds for which a stopped server continues to answer."""

LONGEST = 9.0
"""Seconds after which the process of a stopped server ends in any case."""

MOST_CONNECTIONS = 800
"""The number of connections above which new requests are answered with 503. Each holds an open file."""

LOOPBACK = ("127.0.0.1", "localhost", "[::1]")


def build_app(
    store: Store,
    evaluators: Evaluators,
    *,
    read_only: bool = False,
    public: bool = False,
    loopback: bool = True,
    hosts: Sequence[str] = LOOPBACK,
    seconds: float = REQUEST_SECONDS,
    has_worker: Callable[[], bool] | None = None,
) -> FastAPI:
    """Build the whole application, ready for uvicorn. Its pages are `app.web.access.PAGES`.

    With `public`, visitors who are not logged in may view pages and have solutions scored. `read_only` implies
    `public`, and also keeps every page from writing to the store. With `loopback`, only this machine can connect,
    and no login is needed as long as no user can log in.

    `hosts` are the host names that clients may use. Computing the answer to an API request may take at most
    `seconds`. `has_worker` returns True if the server's job worker is running; it is None if the server has no
    worker.
    """
    checks = BaselineChecks(store)
    score = ScorePage(store, evaluators, read_only=read_only, strength_html=checks.strength_html)
    demo = DemoOnRequest(store, evaluators)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        await demo.end()

    application = FastAPI(title="StepSight", docs_url=None, redoc_url=None, openapi_url=None, lifespan=lifespan)
    _guard(application, store, hosts, public=public or read_only, loopback=loopback)
    add_api(application, store, evaluators, read_only=read_only, seconds=seconds)
    answer_errors(application)
    application.include_router(EvidencePage(store, evaluators, checks).routes(read_only=read_only))
    application.include_router(BrowsePages(store, evaluators, checks).routes())
    application.include_router(ResultsPage(store, evaluators, Measurements(store)).routes(read_only=read_only))
    application.include_router(data.router(store, read_only=read_only))
    application.include_router(data.file_router(store, read_only=read_only))
    application.include_router(evaluators_page.router(store, evaluators, read_only=read_only))
    application.include_router(jobs.router(store, evaluators, read_only=read_only))
    application.include_router(score.routes())
    application.include_router(score_files(store, evaluators))
    application.include_router(change_routes(store, read_only=read_only))
    application.include_router(login_routes(store))
    application.include_router(people.router(store))
    application.include_router(annotate_pages(store, evaluators))
    application.include_router(adjudicate.router(store))
    application.include_router(disputes.router(store))
    application.include_router(agreement.router(store))
    application.include_router(campaigns.router(store))
    application.include_router(health_routes(store, has_worker))
    application.include_router(help_routes())
    add_files(application)
    demo.mount(application)
    return application


def _guard(
    application: FastAPI,
    store: Store,
    hosts: Sequence[str],
    *,
    public: bool,
    loopback: bool,
) -> None:
    """Add the middleware that controls access. The middleware added last sees a request first."""
    application.add_middleware(Access, store=store, public=public, loopback=loopback)
    # No other site may read a response. This replaces Gradio's own rule, which allows some.
    application.add_middleware(CORSMiddleware, allow_origins=[])
    application.add_middleware(Gate)
    # Otherwise another site could point its own name here and read the store.
    application.add_middleware(TrustedHostMiddleware, allowed_hosts=list(hosts), www_redirect=False)
    application.add_middleware(Failures)
    application.add_middleware(private_headers)
    application.add_middleware(Requests)


def serve(
    application: FastAPI,
    listener: socket.socket,
    proxies: Sequence[str] = (),
    stopping: Callable[[], None] = lambda: None,
) -> None:
    """Serve on a listening socket until SIGINT or SIGTERM.

    On a signal, `stopping` is called, and requests already received get up to `GRACE` seconds to finish. The
    process ends after at most `LONGEST` seconds.

    `proxies` are the addresses or networks of proxies that are trusted to state the origin of a request. Other
    senders could forge the headers that state it.
    """
    config = uvicorn.Config(
        application,
        http="h11",
        ws="none",
        limit_concurrency=MOST_CONNECTIONS,
        log_config=None,
        log_level="warning",
        access_log=False,
        timeout_graceful_shutdown=GRACE,
        timeout_keep_alive=KEEP_ALIVE,
        proxy_headers=bool(proxies),
        forwarded_allow_ips=list(proxies),
    )
    _Server(config, stopping).run(sockets=[listener])


class _Server(uvicorn.Server):
    """A uvicorn server that wakes only once a second, to update the `Date` header, and on signals. It suppresses
    the traceback that cutting off an incomplete response would print."""

    def __init__(self, config: uvicorn.Config, stopping: Callable[[], None]) -> None:
        super().__init__(config)
        self._stopping = stopping
        self._signal: int | None = None
        self._signalled = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None

    async def main_loop(self) -> None:
        self._loop = asyncio.get_running_loop()
        while not await self.on_tick(0):
            with suppress(TimeoutError):
                await asyncio.wait_for(self._signalled.wait(), 1.0)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        super().handle_exit(sig, frame)
        self._signal = sig
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._signalled.set)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        # Python would wait for computing threads, which cannot be stopped.
        end = threading.Timer(LONGEST, os._exit, (0 if self._signal == signal.SIGTERM else 130,))
        end.daemon = True
        end.start()
        self._stopping()
        logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)
        await super().shutdown(sockets)
