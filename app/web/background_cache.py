"""Computations in the background for which pages wait. Each runs once, and its result is cached for a while."""

import logging
import threading
import time
from collections.abc import Callable, Hashable
from contextvars import copy_context
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any, Generic, TypeVar

from stepsight.app.web.failures import logged_under
from stepsight.core.errors import UserError
from stepsight.core.keyed_cache import Computation, KeyedCache
from stepsight.core.models.memory import release_memory

Computed = TypeVar("Computed")

LARGEST = 20_000
"""The largest dataset that is measured for a page, in traces."""

# The total size of results in bytes, as reported by what computes them.
_KEPT = 64_000_000
# The number of results kept whatever their size: a page of a large dataset needs its measurement and one result
# derived from it.
_LEAST = 2
# Seconds before a failed computation is tried again.
_FAILED_SECONDS = 20.0
# If the data changes, a result is computed again after this many times the duration of its last computation, and
# clients request it again after this many seconds at the earliest.
_REST = 5.0
_AGAIN = 5
_LOG = logging.getLogger("stepsight")


@dataclass(frozen=True)
class Pending:
    """Returned in place of a result that is still being computed."""


@dataclass(frozen=True)
class Snapshot(Generic[Computed]):
    """The newest available result, whose computation began at `moment`. If `is_current` is False, the data has
    changed since then. The caller may then ask again after `again` seconds."""

    result: Computed
    is_current: bool
    moment: datetime
    again: int

    @classmethod
    def of(cls, timed: "_Timed", *, is_current: bool) -> "Snapshot[Any]":
        return cls(timed.result, is_current, timed.moment, max(_AGAIN, round(timed.rest)))


@dataclass(frozen=True)
class _Timed:
    """A result, with the times at which its computation began (`moment`) and ended, and its duration in seconds."""

    result: Any
    moment: datetime
    took: float
    ended: float

    @property
    def rest(self) -> float:
        """The number of seconds after the end of a computation before a newer one may begin."""
        return _REST * self.took


class BackgroundCache:
    """Computations in background threads, with cached results. It is thread-safe.

    At most `at_once` computations run at the same time, and at most `most` may run or wait. About `kept` bytes of
    results are kept, the most recently used ones.
    """

    def __init__(self, at_once: int = 2, most: int = 12, kept: int = _KEPT) -> None:
        self._running = threading.BoundedSemaphore(at_once)
        self._under_way = threading.BoundedSemaphore(most)
        self._cache = KeyedCache(kept, _LEAST)

    def get(
        self,
        key: Hashable,
        make: Callable[[], Computed],
        size: Callable[[Computed], int] = lambda result: 0,
        patience: float = 0.0,
    ) -> Computed | Pending:
        """Return the result of `make`, or `Pending` if it is not ready after `patience` seconds.

        Concurrent requests for the same key share one computation. `size` estimates the size of a result in bytes.
        Raises the `UserError` that `make` raises, and also raises `UserError` if there are too many computations.
        """
        timed = _answer(self._begin(key, None, make, size), patience)
        return timed if isinstance(timed, Pending) else timed.result

    def newest(
        self,
        subject: Hashable,
        version: Hashable,
        make: Callable[[], Computed],
        size: Callable[[Computed], int] = lambda result: 0,
        patience: float = 0.0,
    ) -> Snapshot[Computed] | Pending:
        """Return the newest available result for a subject whose data may change during the computation.

        If the result for `version` is not ready after `patience` seconds, an earlier result is returned or, failing
        that, `Pending`. A newer computation is not begun while an earlier one is in progress, or soon after one
        that took long. Raises the same errors as `get`.
        """
        before = None
        if (made := self._cache.find(subject)) is not None:
            before = made.result()
            if made.version != version and time.monotonic() - before.ended < before.rest:
                return Snapshot.of(before, is_current=False)
        computation = self._begin(subject, version, make, size)
        timed = _answer(computation, patience)
        if not isinstance(timed, Pending):
            return Snapshot.of(timed, is_current=computation.version == version)
        return timed if before is None else Snapshot.of(before, is_current=False)

    def has_newest(self, subject: Hashable) -> bool:
        """True if `newest` would return a result immediately."""
        return self._cache.find(subject) is not None

    def _begin(
        self, key: Hashable, version: Hashable, make: Callable[[], Computed], size: Callable[[Computed], int]
    ) -> Computation[_Timed]:
        """Return the computation for a key. If it is neither in progress nor has a result for `version`, start it
        now."""
        computation, is_ours = self._cache.claim(key, version, size=lambda timed: size(timed.result))
        if not is_ours:
            return computation
        if not self._under_way.acquire(blocking=False):
            error = UserError("The server is computing as much as it can.", "Try again in a minute.")
            computation.set_exception(error)
            return computation
        computation.error_seconds = _FAILED_SECONDS
        # A daemon thread does not delay the server's exit. It runs in the context of the request, so that the log
        # has the request's id.
        run = partial(copy_context().run, self._run, computation, make)
        threading.Thread(target=run, daemon=True).start()
        return computation

    def _run(self, computation: Computation[_Timed], make: Callable[[], Any]) -> None:
        try:
            computation.run(partial(self._run_timed, make))
        finally:
            self._under_way.release()
        release_memory()

    def _run_timed(self, make: Callable[[], Any]) -> _Timed:
        try:
            with self._running:
                start, moment = time.monotonic(), datetime.now(UTC)
                result = make()
                ended = time.monotonic()
        except UserError:
            raise
        except Exception:
            _LOG.exception("a computation for a page failed")
            raise UserError("This cannot be computed.", logged_under()) from None
        return _Timed(result, moment, ended - start, ended)


def _answer(computation: Computation[_Timed], patience: float) -> _Timed | Pending:
    """Return the result of a computation, or `Pending` if it is not ready after `patience` seconds. If the
    computation failed, raises its error."""
    try:
        error = computation.exception(patience)
    except TimeoutError:
        return Pending()
    if error is None:
        return computation.result()
    # Each request raises its own copy, since a raised exception keeps references to its frames.
    raise UserError(error.message, error.hint) if isinstance(error, UserError) else error
