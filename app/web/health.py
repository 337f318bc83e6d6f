"""The health check of the server, for monitoring. It reveals only whether the store and the worker respond."""

from collections.abc import Callable

from anyio import CapacityLimiter, fail_after, to_thread
from fastapi import APIRouter
from starlette.responses import JSONResponse

from stepsight.core.errors import UserError
from stepsight.storage.database.store import Store

HEALTH = "/healthz"

# The time limit for the store's response in seconds, and the number of concurrent checks.
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
