"""Computations that pages wait for: each made once, in a thread of its own, its result kept for a while."""

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from contextvars import copy_context
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Any, Generic, TypeVar

from stepsight.app.web.failures import logged_under
from stepsight.core.errors import UserError
from stepsight.core.models.memory import release_memory

Computed = TypeVar("Computed")

LARGEST = 20_000
"""Of the datasets that are measured for a page, in traces."""

# Of results, in bytes as their makers count them.
_KEPT = 64_000_000
_MOST_KEPT = 500
# Results that stay in any case: a page of a large dataset needs its measurement and one thing made of that.
_LAST = 2
# How long a failure stands before the same is tried again.
_FAILED_SECONDS = 20.0
# What goes on changing is computed anew after so many times the time that it took, and is worth asking for again
# after so many seconds at the earliest.
_REST = 5.0
_AGAIN = 5
_MOST_SUBJECTS = 2_000
_LOG = logging.getLogger("stepsight")


@dataclass(frozen=True)
class Pending:
    """A computation under way."""


@dataclass(frozen=True)
class Newest(Generic[Computed]):
    """The newest result there is, begun at `moment`. Where it is not `is_current`, another one is worth asking for
    after `again` seconds."""

    result: Computed
    is_current: bool
    moment: datetime
    again: int


@dataclass
class _Computation:
    done: threading.Event = field(default_factory=threading.Event)
    result: Any = None
    error: UserError | None = None
    size: int = 0
    moment: datetime = field(default_factory=lambda: datetime.now(UTC))
    took: float = 0.0
    ended: float = 0.0

    @property
    def is_over(self) -> bool:
        """Whether it failed, and so long ago that it may be tried again."""
        return self.error is not None and self.done.is_set() and time.monotonic() - self.ended > _FAILED_SECONDS

    @property
    def is_made(self) -> bool:
        """Whether its result is there."""
        return self.error is None and self.done.is_set()

    @property
    def rest(self) -> float:
        """Seconds after its end until a newer one is begun."""
        return _REST * self.took

    def answer(self, patience: float) -> Any:
        """Its result, or `Pending` where that is not there after `patience` seconds. Raises its error."""
        if not self.done.wait(patience):
            return Pending()
        if self.error is not None:
            raise UserError(self.error.message, self.error.hint)
        return self.result


@dataclass
class _Subject:
    """The keys of the computation that was begun last for a subject, and of the last one whose result is there."""

    begun: Hashable = None
    made: Hashable = None


class Computations:
    """Safe to use from several threads. `at_once` of them run at the same time, `most` may be under way, and
    results of `kept` bytes in all stay, the last used ones."""

    def __init__(self, at_once: int = 2, most: int = 12, kept: int = _KEPT) -> None:
        self._places = threading.BoundedSemaphore(at_once)
        self._most = most
        self._kept = kept
        self._jobs: OrderedDict[Hashable, _Computation] = OrderedDict()
        self._subjects: dict[Hashable, _Subject] = {}
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
        with self._lock:
            job = self._job(key, make, size)
        result: Computed | Pending = job.answer(patience)
        return result

    def newest(
        self,
        subject: Hashable,
        version: Hashable,
        make: Callable[[], Computed],
        size: Callable[[Computed], int] = lambda result: 0,
        patience: float = 0.0,
    ) -> Newest[Computed] | Pending:
        """The newest result for a subject that may go on changing while it is computed: that of its `version`, or
        an earlier one where that is not there after `patience` seconds.

        A newer one is not begun before the last one is done, nor soon after one that took long. Raises as `get`
        does.
        """
        with self._lock:
            found = self._subject(subject)
            job = self._job(self._choose(found, (subject, version)), make, size)
            is_current = job is self._jobs.get((subject, version))
            made = self._made(found)
        if isinstance(job.answer(patience), Pending):
            if made is None:
                return Pending()
            job, is_current = made, False
        result: Computed = job.result
        return Newest(result, is_current, job.moment, max(_AGAIN, round(job.rest)))

    def _subject(self, subject: Hashable) -> _Subject:
        """What is known of a subject; the lock is held."""
        if subject not in self._subjects and len(self._subjects) >= _MOST_SUBJECTS:
            self._subjects.clear()
        found = self._subjects.setdefault(subject, _Subject())
        begun = self._jobs.get(found.begun)
        if begun is not None and begun.is_made and found.made != found.begun:
            # Nobody asks for the one before any more.
            self._jobs.pop(found.made, None)
            found.made = found.begun
        return found

    def _made(self, found: _Subject) -> _Computation | None:
        """The last computation of a subject whose result is there; one that was dropped may be under way again. The
        lock is held."""
        made = self._jobs.get(found.made)
        return made if made is not None and made.is_made else None

    def _choose(self, found: _Subject, current: Hashable) -> Hashable:
        """The key to ask for instead of the current one, or that; the lock is held."""
        begun, made = self._jobs.get(found.begun), self._made(found)
        if current not in self._jobs:
            if begun is not None and not begun.done.is_set():
                return found.begun
            if made is not None and time.monotonic() - made.ended < made.rest:
                return found.made
            found.begun = current
        return current

    def has(self, key: Hashable) -> bool:
        """Whether the result of a key is there, or the failure to make it."""
        with self._lock:
            job = self._jobs.get(key)
            return job is not None and job.done.is_set() and not job.is_over

    def has_newest(self, subject: Hashable, version: Hashable) -> bool:
        """Whether `newest` would answer at once."""
        with self._lock:
            made = self._made(self._subject(subject))
        return made is not None or self.has((subject, version))

    def _job(self, key: Hashable, make: Callable[[], Any], size: Callable[[Any], int]) -> _Computation:
        """The computation of a key, begun if it was not; the lock is held."""
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
                start = time.monotonic()
                job.moment = datetime.now(UTC)
                job.result = make()
                job.took = time.monotonic() - start
            job.size = size(job.result)
        except UserError as error:
            job.error = error
        except Exception:
            _LOG.exception("a computation for a page failed")
            job.error = UserError("This cannot be computed.", logged_under())
        job.ended = time.monotonic()
        # Together, so that who waits for it finds no more than is kept.
        with self._lock:
            job.done.set()
            self._shrink()
        release_memory()

    def _shrink(self) -> None:
        """Forget what was used longest ago; the last results stay, however large they are."""
        done = [key for key, job in self._jobs.items() if job.done.is_set()]
        total = sum(self._jobs[key].size for key in done)
        for key in done[:-_LAST]:
            if total <= self._kept and len(self._jobs) <= _MOST_KEPT:
                break
            total -= self._jobs.pop(key).size
