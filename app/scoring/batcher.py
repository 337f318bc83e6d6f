"""Scoring concurrent requests in batches. Requests that arrive while an evaluator is busy form its next batch."""

import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING

from stepsight.app.scoring.fair_queue import (
    CandidatesRequest,
    FairQueue,
    PendingScore,
    Request,
    TraceRequest,
    current_client,
)
from stepsight.app.scoring.limits import REQUEST_TOKENS, ScoringCost
from stepsight.core.arrays import Floats32
from stepsight.core.errors import UserError
from stepsight.core.evaluator_summary import Rereading
from stepsight.core.judgment import Judgment, Mode
from stepsight.core.models.memory import has_room, release_memory
from stepsight.core.trace import Trace

if TYPE_CHECKING:
    from stepsight.core.scoring.scorer import Scorer

MOST_WAITING = 256
"""The number of traces that may wait for one evaluator, half of them from one client."""
# The number of traces scored in one call; with more, the first one would wait too long for the last.
_BATCH = 16
# Work that takes longer than this many seconds has its own queue.
_LONG = 1.0
# The assumed speed in tokens per second, until a batch has been timed.
_RATE = 20_000.0
# The overhead of each trace, for encoding it and reporting its result, in tokens.
_EACH = 100
# How often freed memory goes back to the system meanwhile, in seconds: under load 80 MB gather in ten of them, more
# after an hour, when the holes are many, and giving them back takes 20 ms.
_RELEASED_EVERY = 3.0
# The amount of memory in bytes that must be free before more work is accepted.
_SPARE = 100_000_000


class BusyError(UserError):
    """Raised if too many requests are waiting. The client may try again after `seconds`, which is at least 1."""

    def __init__(self, name: str, seconds: int) -> None:
        super().__init__(
            f"{name} has too many traces waiting to be scored.", f"Try again in {seconds} s, or use a dataset job."
        )
        self.seconds = seconds


class ShortError(UserError):
    """Raised if the server is temporarily short of memory or time. The client may try again after `seconds`."""

    seconds = 5

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message, hint or f"Try again in {self.seconds} s.")


@dataclass(frozen=True)
class Semaphores:
    """The semaphores that batchers hold while they score, so that several evaluators can share the machine. `short`
    is for brief work, and `long` for anything longer."""

    short: AbstractContextManager[object]
    long: AbstractContextManager[object]


class Batcher:
    """Queues of limited length in front of one scorer. It is thread-safe.

    A trace that arrives while the scorer is idle is scored immediately. Traces that arrive while it is busy are
    scored in the next batch, and clients take turns. Long work is scored separately, in parallel, so that other
    requests need not wait for it. Work whose clients have all left is dropped or stopped.
    """

    def __init__(
        self, scorer: "Scorer", places: Semaphores, most: int = MOST_WAITING, tokens: int = REQUEST_TOKENS
    ) -> None:
        """Put queues in front of a scorer. At most `most` traces may wait, and each may take at most `tokens`
        tokens of computation. `places` are the semaphores that all batchers share."""
        self._scorer = scorer
        self._most, self._tokens = most, tokens
        self._lock = threading.Lock()
        self._short = _Lane(self, self._lock, places.short, _BATCH)
        self._long = _Lane(self, self._lock, places.long, 1, is_long=True)
        self._rate = _RATE

    def submit(
        self,
        trace: Trace,
        mode: Mode,
        answer: PendingScore[Judgment] | None = None,
        reading: Rereading | None = None,
    ) -> PendingScore[Judgment]:
        """Queue a trace and return the future of its judgment. If `answer` is given, it is used as this future.

        The evaluator reads the trace as `reading` says, by default in its own way. Raises `BusyError` if too many
        requests are waiting, `ShortError` if memory is short, and `UserError` if the trace is too long.
        """
        # An error here concerns only this request, and not the others of a batch.
        scorer = self._scorer_with(reading)
        encoded = scorer.evaluator.encode(trace)
        tokens = scorer.tokens(trace, encoded, mode)
        self._check_tokens(tokens, f"this trace in {mode} mode")
        answer = PendingScore() if answer is None else answer
        self._add(TraceRequest(tokens + _EACH, current_client(), answer, trace, encoded, mode, scorer))
        return answer

    def cost(self, trace: Trace, reading: Rereading | None = None) -> ScoringCost:
        """Return the tokens that judging a trace takes, with `reading` as in `submit`. Raises `UserError` if the
        trace is too long."""
        scorer = self._scorer_with(reading)
        encoded = scorer.evaluator.encode(trace)
        whole, prefixes = (scorer.tokens(trace, encoded, mode) for mode in (Mode.OFFLINE, Mode.HINDSIGHT))
        return ScoringCost(whole, prefixes, self._tokens)

    def _scorer_with(self, reading: Rereading | None) -> "Scorer":
        return self._scorer if reading is None else self._scorer.reread(reading)

    def submit_next(
        self,
        problem: str,
        steps: Sequence[str | Sequence[str]],
        candidates: Sequence[str],
    ) -> PendingScore[Floats32]:
        """Queue candidates for the step after `steps`, to be scored together, and return the future of their
        probabilities.

        The probabilities have shape (candidates, 3). The scorer must have `next_steps`. Raises the same errors as
        `submit`.
        """
        nexts = self._scorer.next_steps
        assert nexts is not None
        asked = nexts.encode(problem, steps, candidates)
        tokens = nexts.tokens(asked)
        self._check_tokens(tokens, "these candidates")
        answer: PendingScore[Floats32] = PendingScore()
        self._add(CandidatesRequest(tokens + _EACH * len(asked.unique), current_client(), answer, asked))
        return answer

    def _check_tokens(self, tokens: int, what: str) -> None:
        """Raise `UserError` if a request takes too many tokens."""
        if tokens > self._tokens:
            raise UserError(
                f"{self._scorer.evaluator.name} would compute {tokens:,} tokens for {what}; "
                f"a request may need {self._tokens:,} at most.",
                "Send fewer steps, ask for offline scores, or import it and start a job, which has no such limit.",
            )

    def _add(self, request: Request) -> None:
        if not has_room(_SPARE):
            raise ShortError("This server is short of memory.")
        with self._lock:
            lane = self._long if request.tokens > self.most_tokens else self._short
            self._check_room(request.client)
            lane.add(request)

    def _check_room(self, client: str) -> None:
        lines = (self._short.line, self._long.line)
        if sum(map(len, lines)) >= self._most:
            # Abandoned requests may still be in the queue.
            for line in lines:
                line.clear_left()
        of_client = sum(line.waiting(client) for line in lines)
        if sum(map(len, lines)) >= self._most or of_client >= -(-self._most // 2):
            seconds = sum(line.tokens for line in lines) / self._rate
            raise BusyError(self._scorer.evaluator.name, max(1, ceil(seconds)))

    @property
    def is_busy(self) -> bool:
        """True if any request is being scored or is waiting to be scored."""
        return self._short.is_running or self._long.is_running

    def drain(self) -> None:
        """Wait until all requests have been scored."""
        while self.is_busy:
            time.sleep(0.01)

    @property
    def most_tokens(self) -> float:
        """The largest number of tokens that the traces of a batch may take together. A trace that takes more counts
        as long."""
        return _LONG * self._rate

    def score(self, batch: list[Request]) -> None:
        """Score the requests, all traces of the same mode in one call, and update the measured speed."""
        for request in batch:
            if isinstance(request, CandidatesRequest):
                self._score_next(request)
        traces = [request for request in batch if isinstance(request, TraceRequest)]
        start = time.perf_counter()
        kinds: dict[tuple[Mode, str], list[TraceRequest]] = {}
        for request in traces:
            kinds.setdefault((request.mode, request.scorer.evaluator.name), []).append(request)
        for (mode, _), alike in kinds.items():
            self._score_mode(mode, alike)
        rate = sum(request.tokens for request in traces) / max(1e-6, time.perf_counter() - start)
        # The candidates' prefix may be cached, which would distort the measured speed.
        if traces and not any(request.answer.is_left for request in traces):
            # A running mean, since the next work is likely to be similar to the last.
            self._rate += 0.3 * (rate - self._rate)

    def _score_next(self, request: CandidatesRequest) -> None:
        nexts = self._scorer.next_steps
        assert nexts is not None
        with _propagate_errors([request]):
            request.answer.set_result(nexts.score_encoded(request.asked))

    def _score_mode(self, mode: Mode, requests: Sequence[TraceRequest]) -> None:
        def check() -> None:
            if all(request.answer.is_left for request in requests):
                raise CancelledError

        def on_step(number: int, substep: int, row: Floats32) -> None:
            requests[number].answer.steps[substep] = row.tolist()

        with _propagate_errors(requests):
            traces = [(request.trace, request.encoded) for request in requests]
            judged = requests[0].scorer.score_encoded(traces, mode, check, on_step)
            for request, judgment in zip(requests, judged, strict=True):
                request.answer.set_result(judgment)


@contextmanager
def _propagate_errors(requests: Sequence[Request]) -> Iterator[None]:
    """Pass any exception raised in the `with` block on to the clients that are still waiting for these requests."""
    try:
        yield
    except BaseException as error:
        for request in requests:
            if not request.answer.done():
                request.answer.set_exception(error)


class _Lane:
    """A queue of requests and the thread that scores them, at most `most` requests per call. The batcher's `lock`
    must be held during every access to the queue."""

    def __init__(
        self,
        batcher: Batcher,
        lock: threading.Lock,
        place: AbstractContextManager[object],
        most: int,
        *,
        is_long: bool = False,
    ) -> None:
        self._batcher, self._lock, self._place, self._most, self._is_long = batcher, lock, place, most, is_long
        self.line = FairQueue()
        self.is_running = False
        self._released = time.monotonic()

    def add(self, request: Request) -> None:
        """Add a request to the queue. The caller must hold the lock."""
        self.line.add(request)
        if not self.is_running:
            self.is_running = True
            threading.Thread(target=self._run, name="scoring", daemon=True).start()

    def _run(self) -> None:
        while True:
            with self._place:
                batch = self._take()
                if not batch:
                    break
                asked = [one for one in batch if one.answer.set_running_or_notify_cancel()]
                with _propagate_errors(asked):
                    self._batcher.score(asked)
            if time.monotonic() - self._released > _RELEASED_EVERY:
                self._release()
        if self._is_long:
            self._release()

    def _release(self) -> None:
        release_memory()
        self._released = time.monotonic()

    def _take(self) -> list[Request]:
        """Take the next batch from the queue. If the queue is empty, the thread ends."""
        with self._lock:
            batch = self.line.take(self._most, self._batcher.most_tokens)
            self.is_running = bool(batch)
            return batch
