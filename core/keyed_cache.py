"""A cache in which each value is computed once: concurrent requests for the same key share one computation."""

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
"""The bytes that an entry takes besides its value: its key, and the objects around its arrays."""


class Computation(Future[Value]):
    """A value to come, of a version."""

    def __init__(self, version: Hashable = None) -> None:
        super().__init__()
        self.version = version


@dataclass(slots=True)
class _Cached:
    """A key's value, if it `has_value`, and the computation of a newer one; a failure stands `until` then."""

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
    """Values by key, at most `limit` bytes of them: the least recently used go first, but the last `least` stay.

    Each value is of a version, which callers read anew at every use, so that none is given that something has made
    untrue since. Safe to share between threads.
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
        """The value of that key and version, loaded in this thread unless it is there or another thread is loading
        it; `size` gives its bytes. Raises what `load` raises, for all who wait for it."""
        while True:
            computation, is_ours = self.claim(key, version)
            if is_ours:
                self.run(key, computation, load, size)
            elif computation.version != version:
                # One version of a key at a time, or several would be in memory.
                wait([computation])
                continue
            value: Value = computation.result()
            return value

    def find(self, key: Hashable) -> Computation[Any] | None:
        """The value of a key, whatever version it is of; None if there is none."""
        with self._lock:
            entry = self._entries.get(key)
            return _made(entry) if entry is not None and entry.has_value else None

    def claim(
        self, key: Hashable, version: Hashable = None, kind: type[Computation[Any]] = Computation
    ) -> tuple[Computation[Any], bool]:
        """The value of that key and version, or what is being computed for the key, of whatever version that is;
        and True if nobody is computing it, so that the caller has to, up to `finish` or `fail`."""
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
        """Compute what was claimed, in this thread; for `failed` seconds a failure stands."""
        try:
            value = load()
            nbytes = size(value)
        except BaseException as error:
            self.fail(key, computation, error, failed)
        else:
            self.finish(key, computation, value, nbytes)

    def finish(self, key: Hashable, computation: Computation[Any], value: Any, nbytes: int) -> None:
        """Keep a value, and give it to all who wait for it, unless the computation has that already."""
        with self._lock:
            entry = self._entries.get(key)
            if entry is not None and entry.newer is computation:
                self._put(key, _Cached(value, computation.version, True, nbytes + BESIDE))
        if not computation.done():
            computation.set_result(value)

    def fail(
        self, key: Hashable, computation: Computation[Any], error: BaseException, seconds: float = 0.0
    ) -> None:
        """Raise an error for all who wait for a value, and for those who ask for it within so many seconds."""
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
        """Forget what is being computed: the next request begins anew."""
        with self._lock:
            entry = self._entries.get(key)
            if entry is not None and entry.newer is computation:
                entry.newer = None
                if not entry.has_value:
                    self._nbytes -= entry.nbytes
                    del self._entries[key]

    def _put(self, key: Hashable, entry: _Cached) -> None:
        """Put an entry in the place of the key's, as the last used one, and let others go, but none of which a
        newer value is being computed. The lock is held."""
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
