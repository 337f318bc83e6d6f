"""A thread-safe cache in which concurrent requests for the same key share a single computation."""

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Future, wait
from dataclasses import dataclass, replace
from operator import attrgetter
from threading import Lock
from typing import Any, TypeVar

Value = TypeVar("Value")

BESIDE = 2_000
"""The bytes of an entry besides its value: its key, and the objects around its arrays."""


class Computation(Future[Value]):
    """A future for the value of a key in one version."""

    def __init__(self, version: Hashable = None) -> None:
        super().__init__()
        self.version = version


@dataclass(slots=True)
class _Cached:
    """The cache entry of a key.

    `value` is the cached value if `has_value` is True, and `newer` the computation of a newer value, if any. If
    that computation failed, it is not repeated before the time `until`.
    """

    value: Any = None
    version: Hashable = None
    has_value: bool = False
    nbytes: int = 0
    newer: Computation[Any] | None = None
    until: float = 0.0

    @property
    def is_idle(self) -> bool:
        return self.newer is None or self.newer.done()


class KeyedCache:
    """A cache of at most `limit` bytes that evicts the least recently used values, but keeps at least `least`
    values.

    Every value belongs to a version. Callers of `get` pass the current version, so they never receive an outdated
    value. The cache is thread-safe.
    """

    def __init__(self, limit: int, least: int = 1) -> None:
        self._limit, self._least = limit, least
        self._entries: OrderedDict[Hashable, _Cached] = OrderedDict()
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
            computation, is_ours = self.claim(key, version)
            if is_ours:
                self.run(key, computation, load, size)
            elif computation.version != version:
                # One version at a time, or several would be in memory.
                wait([computation])
                continue
            value: Value = computation.result()
            return value

    def find(self, key: Hashable) -> Computation[Any] | None:
        """Return a finished computation with the cached value of a key, whatever its version, or None if there is
        no value."""
        with self._lock:
            entry = self._entries.get(key)
            if entry is None or not entry.has_value:
                return None
            self._entries.move_to_end(key)
            return _made(entry)

    def claim(
        self, key: Hashable, version: Hashable = None, kind: type[Computation[Any]] = Computation
    ) -> tuple[Computation[Any], bool]:
        """Return the computation of a key, and True if the caller has to carry it out.

        If the value is cached, the computation is finished. If a computation for the key is already in progress,
        even for another version, that computation is returned. A computation that failed is returned as well until
        its retry time. Otherwise the computation is new and the second result is True: the caller must carry it
        out, then call `finish` or `fail`.
        """
        with self._lock:
            entry = self._entries.setdefault(key, _Cached())
            self._entries.move_to_end(key)
            if entry.has_value and entry.version == version:
                return _made(entry), False
            if entry.newer is not None and (not entry.newer.done() or time.monotonic() < entry.until):
                return entry.newer, False
            entry.newer = kind(version)
            return entry.newer, True

    def run(
        self,
        key: Hashable,
        computation: Computation[Any],
        load: Callable[[], Any],
        size: Callable[[Any], int],
        failed: float = 0.0,
    ) -> None:
        """Run a claimed computation in this thread. If it fails, requests for the key get the same error for
        `failed` seconds before the computation is tried again."""
        try:
            value = load()
            nbytes = size(value)
        except BaseException as error:
            self.fail(key, computation, error, failed)
        else:
            self.finish(key, computation, value, nbytes)

    def finish(self, key: Hashable, computation: Computation[Any], value: Any, nbytes: int) -> None:
        """Store the computed value and hand it to all waiting threads, unless they already have a result."""
        with self._lock:
            entry = self._entries.get(key)
            if entry is not None and entry.newer is computation:
                self._put(key, _Cached(value, computation.version, True, nbytes + BESIDE))
        if not computation.done():
            computation.set_result(value)

    def fail(
        self, key: Hashable, computation: Computation[Any], error: BaseException, seconds: float = 0.0
    ) -> None:
        """Make a computation fail: raise `error` in every thread that waits for its value, and for every request
        within the next `seconds` seconds."""
        if not seconds:
            self.drop(key, computation)
        with self._lock:
            entry = self._entries.get(key)
            if entry is not None and entry.newer is computation:
                entry.until = time.monotonic() + seconds
                if not entry.has_value:
                    self._put(key, replace(entry, nbytes=BESIDE))
        if not computation.done():
            computation.set_exception(error)

    def drop(self, key: Hashable, computation: Computation[Any]) -> None:
        """Forget a computation, so that the next request for the key starts a new one."""
        with self._lock:
            entry = self._entries.get(key)
            if entry is not None and entry.newer is computation:
                entry.newer = None
                if not entry.has_value:
                    self._nbytes -= entry.nbytes
                    del self._entries[key]

    def _put(self, key: Hashable, entry: _Cached) -> None:
        """Replace the entry of a key, mark it as the most recently used, and evict old entries.

        Entries with a computation in progress are not evicted. The caller must hold the lock.
        """
        before = self._entries.pop(key, None)
        self._nbytes += entry.nbytes - (0 if before is None else before.nbytes)
        self._entries[key] = entry
        busy = []
        while self._nbytes > self._limit and len(self._entries) > self._least:
            key, entry = self._entries.popitem(last=False)
            if entry.is_idle:
                self._nbytes -= entry.nbytes
            else:
                busy.append((key, entry))
        self._entries.update(busy)


def _made(entry: _Cached) -> Computation[Any]:
    made: Computation[Any] = Computation(entry.version)
    made.set_result(entry.value)
    return made
