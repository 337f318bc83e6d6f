"""What was read of a store and is kept in memory for as long as it is true.

Each entry comes with a version that is read anew at every use, so that nothing is shown that another thread,
process or machine has changed since.
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from operator import attrgetter
from threading import Lock
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from stepsight.storage.database.store import Store

LIMIT = 160 * 2**20
# What an entry takes besides: its key, its lock, and the objects around its arrays.
_OVERHEAD = 4_000
Value = TypeVar("Value")


class StoreCache:
    """Holds at most `limit` bytes, dropping first what was not asked for longest. Safe to share between threads."""

    def __init__(self, limit: int = LIMIT) -> None:
        self._limit = limit
        self._entries: OrderedDict[Hashable, tuple[Hashable, Any, int]] = OrderedDict()
        self._loading: dict[Hashable, Lock] = {}
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
        """The value of that key and version, loaded where it is not there: by one thread, while others that want
        the same wait for it. `size` tells how many bytes a value takes."""
        with self._lock:
            loading = self._loading.setdefault(key, Lock())
        with loading:
            with self._lock:
                entry = self._entries.get(key)
                if entry is not None and entry[0] == version:
                    self._entries.move_to_end(key)
                    return entry[1]  # type: ignore[no-any-return]
            value = load()
            with self._lock:
                # While it was loaded the one before may have been dropped, or another thread have loaded it too.
                if (before := self._entries.pop(key, None)) is not None:
                    self._nbytes -= before[2]
                nbytes = size(value) + _OVERHEAD
                self._entries[key] = version, value, nbytes
                self._nbytes += nbytes
                self._shrink()
            return value

    def _shrink(self) -> None:
        while self._nbytes > self._limit and len(self._entries) > 1:
            key, (_, _, size) = self._entries.popitem(last=False)
            self._loading.pop(key, None)
            self._nbytes -= size


_CACHES: WeakKeyDictionary[Store, StoreCache] = WeakKeyDictionary()
_LOCK = Lock()


def cache_of(store: Store) -> StoreCache:
    """The cache of a store, one for all that use it in this process."""
    with _LOCK:
        return _CACHES.setdefault(store, StoreCache())
