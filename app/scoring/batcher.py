"""Concurrent requests scored together: what arrives while the evaluator works goes into its next batch."""

import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from math import ceil

from stepsight.core.errors import UserError
from stepsight.core.judgment import Judgment, Mode
from stepsight.core.prompts.encoding import Encoded
from stepsight.core.scoring.scorer import Scorer
from stepsight.core.trace import Trace

MOST_WAITING = 128
# Traces scored in one call; more would keep the first of them waiting for the last.
_BATCH = 16
# What a trace is taken to need before the first one has been timed.
_SECONDS = 0.1


class BusyError(UserError):
    """Too much is waiting already; `seconds` says after how long to ask again, at least 1."""

    def __init__(self, name: str, seconds: int) -> None:
        super().__init__(
            f"{name} has too many traces waiting to be scored.", f"Try again in {seconds} s, or use a dataset job."
        )
        self.seconds = seconds


@dataclass
class _Request:
    trace: Trace
    encoded: Encoded
    mode: Mode
    keep: Callable[[Judgment], None] | None
    future: "Future[Judgment]" = field(default_factory=Future)


class Batcher:
    """A bounded queue in front of one scorer. Safe to use from several threads.

    It waits for nobody: a trace that comes alone is scored at once, and those that come meanwhile are scored
    together. `places` is held while scoring, so that several evaluators can share the machine.
    """

    def __init__(self, scorer: Scorer, places: AbstractContextManager[object], most: int = MOST_WAITING) -> None:
        self._scorer = scorer
        self._places = places
        self._most = most
        self._waiting: deque[_Request] = deque()
        self._lock = threading.Lock()
        self._running = False
        self._seconds = _SECONDS

    def submit(
        self, trace: Trace, mode: Mode, keep: Callable[[Judgment], None] | None = None
    ) -> "Future[Judgment]":
        """The judgment to come, given to `keep` before anybody else learns of it.

        Raises `BusyError` where the queue is full, `UserError` on a trace too long.
        """
        # Here rather than in the batch, which others share.
        request = _Request(trace, self._scorer.evaluator.encode(trace), mode, keep)
        with self._lock:
            if len(self._waiting) >= self._most:
                name = self._scorer.evaluator.name
                raise BusyError(name, max(1, ceil(len(self._waiting) * self._seconds)))
            self._waiting.append(request)
            starts, self._running = not self._running, True
        if starts:
            threading.Thread(target=self._run, name="scoring", daemon=True).start()
        return request.future

    @property
    def is_busy(self) -> bool:
        """Whether something is being scored, or waits for it."""
        return self._running

    def drain(self) -> None:
        """Wait until nothing is left to score."""
        while True:
            with self._lock:
                if not self._running:
                    return
            time.sleep(0.01)

    def _run(self) -> None:
        while True:
            with self._places:
                batch = self._take()
                if batch is None:
                    return
                start = time.perf_counter()
                for mode in dict.fromkeys(request.mode for request in batch):
                    self._score(mode, [request for request in batch if request.mode == mode])
                # A running mean: what comes next is most like what came last.
                self._seconds += 0.3 * ((time.perf_counter() - start) / max(1, len(batch)) - self._seconds)

    def _take(self) -> list[_Request] | None:
        """The next requests, less those that nobody waits for any more; None ends the thread."""
        with self._lock:
            if not self._waiting:
                self._running = False
                return None
            batch = [self._waiting.popleft() for _ in range(min(_BATCH, len(self._waiting)))]
        return [request for request in batch if request.future.set_running_or_notify_cancel()]

    def _score(self, mode: Mode, requests: list[_Request]) -> None:
        left = iter(requests)
        try:
            traces = [(request.trace, request.encoded) for request in requests]
            for judgment in self._scorer.score_encoded(traces, mode):
                request = next(left)
                if request.keep is not None:
                    request.keep(judgment)
                request.future.set_result(judgment)
        except BaseException as error:  # whatever it is, those who wait have to learn of it
            for request in left:
                request.future.set_exception(error)
