"""Work on one trace that begins when a reader asks for it and stops when nobody waits any more."""

import threading
from collections.abc import Callable, Hashable
from functools import partial
from time import monotonic
from typing import Generic, TypeVar

from stepsight.app.scoring.batcher import BusyError
from stepsight.core.errors import Check, UserError
from stepsight.core.keyed_cache import KeyedCache

Made = TypeVar("Made")

# The total size of cached results in bytes.
_KEPT = 12_000_000
# The number of requests that may wait for another one, and roughly how many seconds one takes.
_WAITING = 8
_SECONDS = 5
# Seconds between looks whether the reader still waits.
_LOOKS = 0.2

MOST_TOKENS = 2_100_000
"""The limit for one request: there is a pass for each step or variant, each about as long as the trace."""


class ReaderLeftError(UserError):
    """Raised if the reader who asked for the scores has left."""


class OnDemand(Generic[Made]):
    """Results by key, computed one at a time and cached. `size` returns the size of a result in bytes. It is
    thread-safe."""

    def __init__(self, size: Callable[[Made], int]) -> None:
        self._size = size
        self._cache = KeyedCache(_KEPT)
        self._working = threading.Lock()
        self._places = threading.BoundedSemaphore(_WAITING)

    def get(
        self, key: Hashable, evaluator: str, make: Callable[[Check], Made], client_disconnected: Callable[[], bool]
    ) -> Made:
        """Return the cached result for a key, or else the result of `make`, which has to call the check passed to
        it. Once `client_disconnected()` is True, the check raises `ReaderLeftError`.

        Raises `BusyError`, which names `evaluator`, if too many requests are waiting.
        """
        check = _check(client_disconnected)
        work = partial(self._work_out, evaluator, make, check)
        while True:
            try:
                made: Made = self._cache.get(key, None, work, self._size)
                return made
            except ReaderLeftError:
                # If the reader that left is another one, whose work this one has waited for, it is begun again.
                check()

    def _work_out(self, evaluator: str, make: Callable[[Check], Made], check: Check) -> Made:
        if not self._places.acquire(blocking=False):
            raise BusyError(evaluator, _SECONDS)
        try:
            with self._working:
                return make(check)
        finally:
            self._places.release()


def _check(client_disconnected: Callable[[], bool]) -> Check:
    """Return a check that raises `ReaderLeftError` once the client has disconnected. It asks no more often than
    every `_LOOKS` seconds, since that takes a turn of the event loop."""
    looked, has_left = 0.0, False

    def check() -> None:
        nonlocal looked, has_left
        if not has_left and monotonic() - looked >= _LOOKS:
            looked, has_left = monotonic(), client_disconnected()
        if has_left:
            raise ReaderLeftError("Nobody waits for these scores any more.", "Open the page again.")

    return check
