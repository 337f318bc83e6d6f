"""Loading evaluators on first use, one at a time, and large ones within a memory budget."""

import gc
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import replace
from functools import partial
from math import ceil
from typing import TYPE_CHECKING

from stepsight.app.scoring.batcher import Batcher
from stepsight.app.scoring.fair_queue import PendingScore
from stepsight.core.errors import UserError
from stepsight.core.evaluator_summary import EvaluatorSummary, Rereading
from stepsight.core.hubs.hub_cache import Fetched
from stepsight.core.judgment import Judgment, Mode
from stepsight.core.models.memory import has_room, memory_of, total_memory
from stepsight.core.models.placement import Placement
from stepsight.core.trace import Trace

if TYPE_CHECKING:
    from stepsight.core.scoring.scorer import Scorer

# Seconds until an evaluator that failed to load is tried again.
_SECONDS = 30.0
# The share of this machine's memory; a worker needs as much, and the system some.
_SHARE = 0.5
# Seconds after which an unused evaluator is released, since a worker may need the memory.
_IDLE = 300.0


class LoadingError(UserError):
    """Raised while an evaluator is being loaded. The client may try again after `seconds`; pages do so by
    themselves."""

    goes_on = True
    seconds = 2

    def __init__(self, message: str) -> None:
        super().__init__(message, "This page goes on by itself once it is there.")


def default_budget() -> int | None:
    """Return the number of bytes of fetched evaluators that may be kept in memory, or None if the size of the
    memory is unknown."""
    total = total_memory()
    return None if total is None else int(_SHARE * total)


class LazyEvaluator:
    """An evaluator that is loaded on demand: a shipped one, which is small and then stays in memory, or one that
    was `fetched` and may be released again."""

    def __init__(
        self, description: EvaluatorSummary, place: Placement | None = None, fetched: Fetched | None = None
    ) -> None:
        self.fetched, self.description = fetched, description
        self.place = replace(place or Placement(), dtype=description.dtype)
        self.size = 0 if fetched is None else memory_of(fetched, description.dtype)
        self.used = 0.0
        self.begun: float | None = None
        self.batcher: Batcher | None = None
        self.scorer: Scorer | None = None
        self.coming: Future[None] | None = None

    @property
    def is_loaded(self) -> bool:
        return self.scorer is not None

    @property
    def is_asked(self) -> bool:
        """True if the evaluator is in memory or is being loaded."""
        return self.coming is not None

    @property
    def is_refused(self) -> bool:
        """True if the evaluator recently failed to load."""
        failed = self.coming is not None and self.coming.done() and self.coming.exception() is not None
        return failed and self.begun is not None and time.monotonic() - self.begun < _SECONDS

    @property
    def progress(self) -> str:
        """The progress of loading in words, including the time that loading took last time."""
        if self.begun is None:
            return "is waiting for another evaluator to finish loading"
        passed = time.monotonic() - self.begun
        before = self.description.seconds
        left = f" ({ceil(before)} s last time)" if before >= 1 else ""
        return f"has been loading for {passed:.0f} s{left}"


class Loader:
    """Loads evaluators one at a time, in a thread of its own.

    If an evaluator would exceed the `budget` in bytes, the least recently used evaluators are released first.
    `batcher` is a function that puts queues in front of a scorer.
    """

    def __init__(self, batcher: "Callable[[Scorer], Batcher]", budget: int | None = None) -> None:
        self._batcher, self.budget = batcher, budget
        self._lock = threading.Lock()
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="loading")
        self._loaded: list[LazyEvaluator] = []

    @property
    def loaded(self) -> Sequence[LazyEvaluator]:
        """The fetched evaluators currently in memory."""
        return tuple(self._loaded)

    def ask(self, one: LazyEvaluator) -> "Future[None]":
        """Return a future that completes when the evaluator is in memory, starting to load it if necessary.

        Concurrent callers get the same future. If the evaluator recently failed to load, the future fails with the
        same error.
        """
        with self._lock:
            one.used = time.monotonic()
            if one.coming is not None and (not one.coming.done() or one.is_loaded or one.is_refused):
                return one.coming
            one.begun = None
            one.coming = self._pool.submit(self._load, one)
            return one.coming

    def submit(
        self,
        one: LazyEvaluator,
        trace: Trace,
        mode: Mode,
        answer: PendingScore[Judgment],
        reading: Rereading | None = None,
    ) -> PendingScore[Judgment]:
        """Submit a trace once the evaluator is loaded, and return `answer`, the future of its judgment."""
        # Read once, since another thread may release it.
        batcher = one.batcher
        if batcher is not None:
            one.used = time.monotonic()
            return batcher.submit(trace, mode, answer, reading)
        context = copy_context()
        submit = partial(Batcher.submit, trace=trace, mode=mode, answer=answer, reading=reading)
        self.ask(one).add_done_callback(lambda loaded: context.run(_go_on, one, loaded, submit, answer))
        return answer

    def scorer(self, one: LazyEvaluator, patience: float | None) -> "Scorer":
        """Return the evaluator's scorer, waiting at most `patience` seconds for it to load, or as long as it takes
        if that is None. Raises `LoadingError` if loading takes longer, and `UserError` if the evaluator cannot be
        loaded."""
        try:
            self.ask(one).result(patience)
        except TimeoutError:
            raise LoadingError(f"{one.description.name} {one.progress}.") from None
        scorer = one.scorer
        if scorer is None:
            raise LoadingError(
                f"{one.description.name} was replaced by another evaluator in memory and is being loaded again."
            )
        return scorer

    def _load(self, one: LazyEvaluator) -> None:
        # They bring PyTorch, which takes seconds to import.
        from stepsight.core.evaluators.loading import load_evaluator, load_fetched
        from stepsight.core.scoring.scorer import Scorer

        self._make_room(one)
        one.begun = time.monotonic()
        evaluator = (
            load_evaluator(one.description.name) if one.fetched is None else load_fetched(one.fetched, one.place)
        )
        if evaluator.fingerprint != one.description.fingerprint:
            # Another version of StepSight reads it differently.
            seconds = round(time.monotonic() - one.begun, 2)
            one.description = replace(evaluator.description(seconds), name=one.description.name)
        scorer = Scorer(evaluator)
        with self._lock:
            one.scorer, one.batcher = scorer, self._batcher(scorer)
            if one.fetched is None:
                return
            self._loaded.append(one)
        self._wake()

    def _make_room(self, one: LazyEvaluator) -> None:
        """Release other evaluators until the evaluator `one` fits into the budget. Each may finish its current work
        first."""
        while self._loaded and self.budget is not None and self._taken() + one.size > self.budget:
            self._drop(min(self._loaded, key=lambda other: other.used))

    def _drop(self, one: LazyEvaluator) -> None:
        with self._lock:
            self._loaded.remove(one)
            batcher = one.batcher
            one.scorer = one.batcher = one.coming = None
        if batcher is not None:
            batcher.drain()
        del batcher
        gc.collect()

    def give_room(self, needed: int) -> None:
        """Release idle evaluators until this many bytes of memory are free, the least recently used first."""
        self._pool.submit(self._give_room, needed)

    def _give_room(self, needed: int) -> None:
        for one in sorted(self._loaded, key=lambda other: other.used):
            if has_room(needed):
                return
            if one.batcher is None or not one.batcher.is_busy:
                self._drop(one)

    def _wake(self) -> None:
        """Schedule a check for idle evaluators, which runs after `_IDLE` seconds in the loading thread."""
        timer = threading.Timer(_IDLE, lambda: self._pool.submit(self._rest))
        timer.daemon = True
        timer.start()

    def _rest(self) -> None:
        idle = time.monotonic() - _IDLE
        for one in [one for one in self._loaded if one.used <= idle]:
            self._drop(one)
        if self._loaded:
            self._wake()

    def _taken(self) -> int:
        return sum(other.size for other in self._loaded)


def _go_on(
    one: LazyEvaluator,
    loaded: "Future[None]",
    submit: Callable[[Batcher], object],
    answer: PendingScore[Judgment],
) -> None:
    """Submit a trace that was waiting for its evaluator, or pass on the error if the evaluator could not be
    loaded."""
    error = loaded.exception()
    batcher = one.batcher
    if error is None and batcher is not None:
        try:
            submit(batcher)
            return
        except BaseException as refusal:  # any error must reach the waiting client
            error = refusal
    if answer.set_running_or_notify_cancel():
        answer.set_exception(
            error or LoadingError(f"{one.description.name} was replaced by another evaluator in memory.")
        )
