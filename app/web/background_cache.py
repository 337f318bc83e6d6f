"""Computations that pages wait for: each made once, in its own thread, with its result kept for a while."""

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

# Of results, in bytes as their makers count them.
_KEPT = 64_000_000
# Results that stay in any case: a page of a large dataset needs its measurement and one thing made of that.
_LEAST = 2
# How long a failure stands before the same is tried again.
_FAILED_SECONDS = 20.0
# What goes on changing is computed anew after so many times the time that it took, and is worth asking for again
# after so many seconds at the earliest.
_REST = 5.0
_AGAIN = 5
_LOG = logging.getLogger("stepsight")


@dataclass(frozen=True)
class Pending:
    """A computation under way."""


@dataclass(frozen=True)
class Snapshot(Generic[Computed]):
    """The newest result there is, begun at `moment`. If it is not `is_current`, another one is worth asking for
    after `again` seconds."""

    result: Computed
    is_current: bool
    moment: datetime
    again: int

    @classmethod
    def of(cls, timed: "_Timed", *, is_current: bool) -> "Snapshot[Any]":
        return cls(timed.result, is_current, timed.moment, max(_AGAIN, round(timed.rest)))


@dataclass(frozen=True)
class _Timed:
    """A result, with the duration of its computation in seconds and the time of its end."""

    result: Any
    moment: datetime
    took: float
    ended: float

    @property
    def rest(self) -> float:
        """Seconds after its end until a newer one is begun."""
        return _REST * self.took


class BackgroundCache:
    """Safe to use from several threads. `at_once` computations run at the same time, `most` may be under way, and
    results of about `kept` bytes in all stay, the last used ones."""

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
        """The result that `make` gives, or `Pending` if it is not there after `patience` seconds.

        Concurrent requests for the same key share one computation. Raises the `UserError` that `make` raised, and
        one if too much is under way.
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
        """The newest result for a subject that may go on changing while it is computed: that of its `version`, or
        an earlier one if that is not there after `patience` seconds.

        A newer one is not begun before the last one is done, nor soon after one that took long. Raises as `get`
        does.
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
        """True if `newest` would answer at once."""
        return self._cache.find(subject) is not None

    def _begin(
        self, key: Hashable, version: Hashable, make: Callable[[], Computed], size: Callable[[Computed], int]
    ) -> Computation[_Timed]:
        """The computation of a key, begun if it was not."""
        computation, is_ours = self._cache.claim(key, version)
        if not is_ours:
            return computation
        if not self._under_way.acquire(blocking=False):
            error = UserError("The server is computing as much as it can.", "Try again in a minute.")
            self._cache.fail(key, computation, error)
            return computation
        # A daemon, so that a server that is stopped does not wait for it.
        # In the context of the request, whose id the log then has.
        run = partial(copy_context().run, self._run, key, computation, make, size)
        threading.Thread(target=run, daemon=True).start()
        return computation

    def _run(
        self, key: Hashable, computation: Computation[_Timed], make: Callable[[], Any], size: Callable[[Any], int]
    ) -> None:
        timed = partial(self._timed, make)
        try:
            self._cache.run(key, computation, timed, lambda made: size(made.result), _FAILED_SECONDS)
        finally:
            self._under_way.release()
        release_memory()

    def _timed(self, make: Callable[[], Any]) -> _Timed:
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
    """The result, or `Pending` if it is not there after `patience` seconds. Raises its error."""
    try:
        error = computation.exception(patience)
    except TimeoutError:
        return Pending()
    if error is None:
        return computation.result()
    # One of its own for each who asks: what is raised collects where it was.
    raise UserError(error.message, error.hint) if isinstance(error, UserError) else error
