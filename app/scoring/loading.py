"""Loading evaluators on first use, one at a time, and large ones within a memory budget."""

import gc
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import replace
from math import ceil
from typing import TYPE_CHECKING

from stepsight.app.scoring.batcher import Batcher, PendingScore
from stepsight.core.errors import UserError
from stepsight.core.evaluator_summary import EvaluatorSummary
from stepsight.core.hubs.hub_cache import HubModel
from stepsight.core.judgment import Judgment
from stepsight.core.models.location import is_shipped
from stepsight.core.models.memory import has_room, memory_of, total_memory
from stepsight.core.models.placement import Placement

if TYPE_CHECKING:
    from stepsight.core.models.evaluator_base import Evaluator

# Seconds until an evaluator that failed to load is tried again.
_SECONDS = 30.0
# The share of this machine's memory to use; a worker needs as much, and the system some.
_SHARE = 0.5
# Seconds after which an unused evaluator is released, since a worker may need the memory.
_IDLE = 300.0


class LoadingError(UserError):
    """Raised while an evaluator is being loaded. The client may try again after `seconds`; pages do so by
    themselves."""

    goes_on = True
    seconds = 2

    def __init__(self, message: str) -> None:
        super().__init__(message, "This page continues by itself once it is ready.")


class LocalEvaluator:
    """An evaluator that can score on this server, and its queue of requests while it is in memory.

    `spec` is the argument with which `load_evaluator` loads it in any process on this machine. An evaluator without
    a `batcher` is loaded on demand. One that was `fetched` may be released again; all others stay.
    """

    def __init__(
        self,
        description: EvaluatorSummary,
        spec: str,
        batcher: Batcher | None = None,
        place: Placement | None = None,
        fetched: HubModel | None = None,
    ) -> None:
        self.description, self.spec, self.batcher, self.fetched = description, spec, batcher, fetched
        self.place = replace(place or Placement(), dtype=description.dtype)
        self.size = 0 if fetched is None else memory_of(fetched, description.dtype)
        self.used = 0.0
        self.begun: float | None = None
        self.coming: Future[None] | None = None

    @property
    def origin(self) -> str:
        """The origin of the evaluator: `shipped`, `fetched`, or `started with` if it was named at the server's
        start."""
        if self.fetched is not None:
            return "fetched"
        return "shipped" if is_shipped(self.spec) else "started with"

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

    If an evaluator would exceed the `budget` in bytes, by default a share of the machine's memory, the least
    recently used evaluators are released first. `make_batcher` is a function that puts queues in front of an
    evaluator.
    """

    def __init__(self, make_batcher: "Callable[[Evaluator], Batcher]", budget: int | None = None) -> None:
        self._make_batcher = make_batcher
        total = total_memory()
        self._budget = int(_SHARE * total) if budget is None and total is not None else budget
        self._lock = threading.Lock()
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="loading")
        self._loaded: list[LocalEvaluator] = []

    @property
    def loaded(self) -> Sequence[LocalEvaluator]:
        """The fetched evaluators currently in memory."""
        return tuple(self._loaded)

    def batcher(self, local: LocalEvaluator, patience: float | None) -> Batcher:
        """Return the evaluator's queue, waiting at most `patience` seconds for it to load, or as long as it takes
        if that is None. Raises `LoadingError` if loading takes longer, and `UserError` if the evaluator cannot be
        loaded."""
        # Read once, since another thread may release it.
        if (batcher := local.batcher) is None:
            try:
                self._begin(local).result(patience)
            except TimeoutError:
                raise LoadingError(f"{local.description.name} {local.progress}.") from None
            batcher = local.batcher
        if batcher is None:
            raise LoadingError(
                f"{local.description.name} was replaced by another evaluator in memory and is being loaded again."
            )
        local.used = time.monotonic()
        return batcher

    def submit(
        self, local: LocalEvaluator, submit: Callable[[Batcher], object], answer: PendingScore[Judgment]
    ) -> None:
        """Call `submit` with the evaluator's queue once the evaluator is loaded. If it cannot be loaded, or then
        refuses, its error is that of the future `answer`."""
        if (batcher := local.batcher) is not None:
            local.used = time.monotonic()
            submit(batcher)
        else:
            context = copy_context()
            self._begin(local).add_done_callback(lambda loaded: context.run(_submit, local, submit, answer, loaded))

    def _begin(self, local: LocalEvaluator) -> "Future[None]":
        """Return a future that completes when the evaluator is in memory, starting to load it if necessary.

        Concurrent callers get the same future. If the evaluator recently failed to load, the future fails with the
        same error.
        """
        with self._lock:
            local.used = time.monotonic()
            loading = local.coming
            if loading is None or (loading.done() and local.batcher is None and not local.is_refused):
                local.begun = None
                loading = local.coming = self._pool.submit(self._load, local)
            return loading

    def _load(self, local: LocalEvaluator) -> None:
        # These imports load PyTorch, which takes seconds.
        from stepsight.core.evaluators.loading import load_evaluator, load_fetched

        # Each evaluator to be released may finish its current work first.
        while self._budget is not None and self._loaded and self._used_memory + local.size > self._budget:
            self._drop(min(self._loaded, key=lambda other: other.used))
        local.begun = time.monotonic()
        fetched = local.fetched
        evaluator = load_evaluator(local.spec) if fetched is None else load_fetched(fetched, local.place)
        if evaluator.fingerprint != local.description.fingerprint:
            # Another version of StepSight reads it differently.
            seconds = round(time.monotonic() - local.begun, 2)
            local.description = replace(evaluator.description(seconds), name=local.description.name)
        with self._lock:
            local.batcher = self._make_batcher(evaluator)
            if fetched is None:
                return
            self._loaded.append(local)
        self._wake()

    @property
    def _used_memory(self) -> int:
        return sum(other.size for other in self._loaded)

    def _drop(self, local: LocalEvaluator) -> None:
        with self._lock:
            self._loaded.remove(local)
            batcher, local.batcher, local.coming = local.batcher, None, None
        if batcher is not None:
            batcher.drain()
        del batcher
        gc.collect()

    def give_room(self, needed: int) -> None:
        """Release idle evaluators until this many bytes of memory are free, the least recently used first."""
        self._pool.submit(self._give_room, needed)

    def _give_room(self, needed: int) -> None:
        for local in sorted(self._loaded, key=lambda other: other.used):
            if has_room(needed):
                return
            if local.batcher is None or not local.batcher.is_busy:
                self._drop(local)

    def _wake(self) -> None:
        """Schedule a check for idle evaluators, which runs after `_IDLE` seconds in the loading thread."""
        timer = threading.Timer(_IDLE, lambda: self._pool.submit(self._release_idle))
        timer.daemon = True
        timer.start()

    def _release_idle(self) -> None:
        idle = time.monotonic() - _IDLE
        for local in [local for local in self._loaded if local.used <= idle]:
            self._drop(local)
        if self._loaded:
            self._wake()


def _submit(
    local: LocalEvaluator,
    submit: Callable[[Batcher], object],
    answer: PendingScore[Judgment],
    loaded: "Future[None]",
) -> None:
    error = loaded.exception()
    batcher = local.batcher
    if error is None and batcher is not None:
        try:
            submit(batcher)
            return
        except BaseException as refusal:  # any error must reach the waiting client
            error = refusal
    if answer.set_running_or_notify_cancel():
        answer.set_exception(
            error or LoadingError(f"{local.description.name} was replaced by another evaluator in memory.")
        )
