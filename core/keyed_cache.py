"""A thread-safe cache in which concurrent requests for the same key share a single computation."""

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Future, wait
from functools import partial
from operator import attrgetter
from threading import Lock
from typing import Any, TypeVar

Value = TypeVar("Value")

OVERHEAD = 2_000
"""The bytes of an entry besides its value: its key, and the objects around its arrays."""


class Computation(Future[Value]):
    """A future for the value of a key in one version. If it fails, requests for the key get the same error for
    `error_seconds` before the computation is tried again."""

    error_seconds = 0.0
    error_until = 0.0

    def __init__(self, version: Hashable = None) -> None:
        super().__init__()
        self.version = version

    def run(self, load: Callable[[], Value]) -> None:
        """Carry out the computation in this thread."""
        try:
            value = load()
        except BaseException as error:
            self.set_exception(error)
        else:
            self.set_result(value)


class KeyedCache:
    """A cache of at most `limit` bytes that evicts the least recently used values, but keeps at least `least`
    values.

    Every value belongs to a version. Callers of `get` pass the current version, so they never receive an outdated
    value. The cache is thread-safe.
    """

    def __init__(self, limit: int, least: int = 1) -> None:
        self._limit, self._least = limit, least
        self._running: dict[Hashable, Computation[Any]] = {}
        # The finished results with their sizes, by key and whether they failed: an error keeps an older value.
        self._finished: OrderedDict[tuple[Hashable, bool], tuple[Computation[Any], int]] = OrderedDict()
        self._nbytes = 0
        self._lock = Lock()

    @property
    def nbytes(self) -> int:
        with self._lock:
            return self._nbytes

    def get(
        self,
        key: Hashable,
        version: Hashable,
        load: Callable[[], Value],
        size: Callable[[Value], int] = attrgetter("nbytes"),
    ) -> Value:
        """Return the value of this key and version, loading it unless it is cached or another thread is loading it.

        `load` runs in this thread, and `size` returns the loaded value's size in bytes. If `load` fails, the error
        is raised in every thread that waits for the value.
        """
        while True:
            computation, is_ours = self.claim(key, version, size=size)
            if is_ours:
                computation.run(load)
            elif computation.version != version:
                # Only one version is kept at a time; otherwise several would be in memory.
                wait([computation])
                continue
            return computation.result()

    def find(self, key: Hashable) -> Computation[Any] | None:
        """Return the finished computation with the cached value of a key, whatever its version, or None if there is
        no value."""
        with self._lock:
            return self._look_up(key, has_failed=False)

    def claim(
        self,
        key: Hashable,
        version: Hashable = None,
        kind: type[Computation[Any]] = Computation,
        size: Callable[[Any], int] = attrgetter("nbytes"),
    ) -> tuple[Computation[Any], bool]:
        """Return the computation of a key, and True if the caller has to carry it out.

        If a computation for the key is already in progress, even for another version, that computation is returned,
        and so is a failed one as long as its error is kept. Otherwise the computation is new and the second result
        is True: the caller must set its result, whose size in bytes `size` returns, or its exception.
        """
        with self._lock:
            value = self._look_up(key, has_failed=False)
            if value is not None and value.version == version:
                return value, False
            if key in self._running:
                return self._running[key], False
            failure = self._look_up(key, has_failed=True)
            if failure is not None and time.monotonic() < failure.error_until:
                return failure, False
            computation = self._running[key] = kind(version)
        computation.add_done_callback(partial(self._finish, key, size))
        return computation, True

    def drop(self, key: Hashable, computation: Computation[Any]) -> None:
        """Forget a computation in progress, so that the next request for the key starts a new one."""
        with self._lock:
            if self._running.get(key) is computation:
                del self._running[key]

    def _look_up(self, key: Hashable, *, has_failed: bool) -> Computation[Any] | None:
        finished = self._finished.get((key, has_failed))
        if finished is None:
            return None
        self._finished.move_to_end((key, has_failed))
        return finished[0]

    def _finish(self, key: Hashable, size: Callable[[Any], int], done: Future[Any]) -> None:
        """Keep a computation that is done, and evict the least recently used ones."""
        with self._lock:
            computation = self._running.get(key)
            if computation is not done:
                return
            del self._running[key]
            has_failed = computation.cancelled() or computation.exception() is not None
            if has_failed and (computation.cancelled() or not computation.error_seconds):
                return
            nbytes = OVERHEAD
            if has_failed:
                computation.error_until = time.monotonic() + computation.error_seconds
            else:
                # A plain computation drops whatever a subclass of the caller holds.
                computation = Computation(computation.version)
                computation.set_result(done.result())
                nbytes += size(done.result())
            for place in {(key, has_failed), (key, True)} & self._finished.keys():
                self._nbytes -= self._finished.pop(place)[1]
            self._finished[key, has_failed] = computation, nbytes
            self._nbytes += nbytes
            while self._nbytes > self._limit and len(self._finished) > self._least:
                self._nbytes -= self._finished.popitem(last=False)[1][1]
