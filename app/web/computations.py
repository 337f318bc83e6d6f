"""Computations that pages wait for: each made once, in a thread of its own, its result kept for a while."""

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from contextvars import copy_context
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from stepsight.app.web.failures import logged_under
from stepsight.core.errors import UserError
from stepsight.core.models.memory import release_memory

Computed = TypeVar("Computed")

LARGEST = 20_000
"""Of the datasets that are measured for a page, in traces."""

# Of results, in bytes as their makers count them.
_KEPT = 64_000_000
_MOST_KEPT = 500
# How long a failure stands before the same is tried again.
_FAILED_SECONDS = 20.0
_LOG = logging.getLogger("stepsight")


@dataclass(frozen=True)
class Pending:
    """A computation under way."""


@dataclass
class _Computation:
    done: threading.Event = field(default_factory=threading.Event)
    result: Any = None
    error: UserError | None = None
    size: int = 0
    ended: float = 0.0

    @property
    def is_over(self) -> bool:
        """Whether it failed, and so long ago that it may be tried again."""
        return self.error is not None and self.done.is_set() and time.monotonic() - self.ended > _FAILED_SECONDS


class Computations:
    """Safe to use from several threads. `at_once` of them run at the same time, `most` may be under way, and
    results of `kept` bytes in all stay, the last used ones."""

    def __init__(self, at_once: int = 2, most: int = 12, kept: int = _KEPT) -> None:
        self._places = threading.BoundedSemaphore(at_once)
        self._most = most
        self._kept = kept
        self._jobs: OrderedDict[Hashable, _Computation] = OrderedDict()
        self._lock = threading.Lock()

    def get(
        self,
        key: Hashable,
        make: Callable[[], Computed],
        size: Callable[[Computed], int] = lambda result: 0,
        patience: float = 0.0,
    ) -> Computed | Pending:
        """The result that `make` gives, or `Pending` where it is not there after `patience` seconds.

        Who asks for a key that somebody else has asked for waits for the same computation. Raises the `UserError`
        that `make` raised, and one where too much is under way.
        """
        job = self._job(key, make, size)
        if not job.done.wait(patience):
            return Pending()
        if job.error is not None:
            raise UserError(job.error.message, job.error.hint)
        result: Computed = job.result
        return result

    def has(self, key: Hashable) -> bool:
        """Whether the result of a key is there, or the failure to make it."""
        with self._lock:
            job = self._jobs.get(key)
            return job is not None and job.done.is_set() and not job.is_over

    def _job(self, key: Hashable, make: Callable[[], Any], size: Callable[[Any], int]) -> _Computation:
        with self._lock:
            job = self._jobs.get(key)
            if job is not None and not job.is_over:
                self._jobs.move_to_end(key)
                return job
            if sum(not one.done.is_set() for one in self._jobs.values()) >= self._most:
                raise UserError("The server is computing as much as it can.", "Try again in a minute.")
            job = self._jobs[key] = _Computation()
            self._jobs.move_to_end(key)
        # A daemon, so that a server that is stopped does not wait for it.
        # In the context of the request, whose id the log then has.
        run = partial(copy_context().run, self._run, job, make, size)
        threading.Thread(target=run, daemon=True).start()
        return job

    def _run(self, job: _Computation, make: Callable[[], Any], size: Callable[[Any], int]) -> None:
        try:
            with self._places:
                job.result = make()
            job.size = size(job.result)
        except UserError as error:
            job.error = error
        except Exception:
            _LOG.exception("a computation for a page failed")
            job.error = UserError("This cannot be computed.", logged_under())
        job.ended = time.monotonic()
        job.done.set()
        with self._lock:
            self._shrink()
        release_memory()

    def _shrink(self) -> None:
        """Forget what was used longest ago; the last result stays, however large it is."""
        done = [key for key, job in self._jobs.items() if job.done.is_set()]
        total = sum(self._jobs[key].size for key in done)
        for key in done[:-1]:
            if total <= self._kept and len(self._jobs) <= _MOST_KEPT:
                break
            total -= self._jobs.pop(key).size
