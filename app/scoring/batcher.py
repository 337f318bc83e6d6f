"""Scoring concurrent requests in batches, fairly among clients.

Requests that arrive while an evaluator is busy form its next batch. Clients are served in turn, so that a client
with many requests does not hold up the rest. This module does not import PyTorch.
"""

import threading
import time
from collections import OrderedDict, deque
from collections.abc import Hashable, Iterator, Sequence
from concurrent.futures import CancelledError, Future
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING, Any, TypeVar

from stepsight.core.arrays import Floats32
from stepsight.core.errors import UserError
from stepsight.core.evaluator_summary import OWN_READING, Reading
from stepsight.core.judgment import Judgment, Mode, NoJudgment, StepScore
from stepsight.core.keyed_cache import Computation
from stepsight.core.models.memory import has_room, release_memory
from stepsight.core.trace import Trace

if TYPE_CHECKING:
    from stepsight.core.scoring.scorer import Scorer

Result = TypeVar("Result")

REQUEST_TOKENS = 2_100_000
"""The largest number of tokens computed for one request: enough for 1,000 steps with a context of 4,096."""

REQUEST_SECONDS = 120.0
"""The time limit for computing a program's request, in seconds."""

MOST_WAITING = 256
"""The number of traces that may wait for one evaluator, half of them from one client."""
# The number of readings kept in addition to an evaluator's own.
_MOST_READINGS = 16
# The number of traces scored in one call; with more, the first one would wait too long for the last.
_BATCH = 16
# Work that takes longer than this many seconds has its own queue.
_LONG = 1.0
# The assumed speed in tokens per second, until a batch has been timed.
_RATE = 20_000.0
# The overhead of each trace, for encoding it and reporting its result, in tokens.
_EACH = 100
# How often freed memory is returned to the system during work, in seconds. Under load, 80 MB accumulate in ten
# seconds, and more after an hour, when memory is fragmented. Returning it takes 20 ms.
_RELEASED_EVERY = 3.0
# The amount of memory in bytes that must be free before more work is accepted.
_SPARE = 100_000_000
_CLIENT: ContextVar[str] = ContextVar("client", default="")


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
class ScoringCost:
    """The number of tokens that an evaluator reads for one solution: `whole` in a pass over all of it, `prefixes`
    in hindsight. They are equal if one pass gives everything. `limit` is the maximum for a request. `seconds` is
    the time that hindsight takes at the speed that was measured last."""

    whole: int
    prefixes: int
    limit: int
    seconds: float

    @property
    def fits(self) -> bool:
        """True if a request may judge the solution in hindsight."""
        return self.prefixes <= self.limit


@contextmanager
def client_context(client: str) -> Iterator[None]:
    """Attribute all requests made in the `with` block, and in threads started there, to a client: a user or a
    network address."""
    before = _CLIENT.set(client)
    try:
        yield
    finally:
        _CLIENT.reset(before)


class PendingScore(Future[Result]):
    """The future of a judgment or of scores. A future that is cancelled while its result is being computed counts
    as abandoned. The computation of a batch stops once all futures of the batch are abandoned.

    `steps` holds the online scores of sub-steps that are known before the judgment, by index. Only a bidirectional
    model in hindsight mode gives them one by one.
    """

    _left = False

    def __init__(self) -> None:
        super().__init__()
        self.steps: dict[int, list[float]] = {}

    @property
    def is_left(self) -> bool:
        """True if nobody is waiting for the result any more."""
        return self._left

    def cancel(self) -> bool:
        self._left = True
        return super().cancel()


class SharedScore(PendingScore[Judgment], Computation[Judgment]):
    """The future of a judgment for which several clients wait, each with a future of its own.

    It is abandoned once all of these clients have left, after which no client can join.
    """

    def __init__(self, version: Hashable = None) -> None:
        Computation.__init__(self, version)
        self.steps = {}
        self._answers: list[PendingScore[Judgment]] = []
        self._joining = threading.Lock()

    @property
    def is_left(self) -> bool:
        with self._joining:
            self._left = self._left or all(answer.is_left for answer in self._answers)
            return self._left

    def join(self, answer: PendingScore[Judgment]) -> bool:
        """Let a client wait with the future `answer`. Returns False if the computation has already been
        abandoned."""
        with self._joining:
            if not self._left:
                self._answers.append(answer)
                answer.steps = self.steps
            return not self._left

    def set_running_or_notify_cancel(self) -> bool:
        if self.is_left:
            Future.cancel(self)
        return super().set_running_or_notify_cancel()


@dataclass(frozen=True)
class Semaphores:
    """The semaphores that batchers hold while they score, so that several evaluators can share the machine. `short`
    is for brief work, and `long` for anything longer."""

    short: AbstractContextManager[object]
    long: AbstractContextManager[object]


@dataclass
class _Request:
    """A client's request to a scorer, which takes about `tokens` tokens of computation: to judge a trace in a mode
    or, without a mode, to score several candidates for the next step together. `content` is the trace and its
    encoding, or the encoded candidates."""

    tokens: int
    client: str
    answer: PendingScore[Any]
    scorer: "Scorer"
    content: Any
    mode: Mode | None = None


class _Lane:
    """The requests of one kind, short or long, that wait for a scorer. Clients take turns: the first request of
    each, then the second of each, and so on. At most `most` requests are scored in one call."""

    def __init__(self, place: AbstractContextManager[object], most: int) -> None:
        self.place, self._most = place, most
        self.is_running = False
        self.released = time.monotonic()
        self.clients: OrderedDict[str, deque[_Request]] = OrderedDict()

    def __iter__(self) -> Iterator[_Request]:
        return (request for requests in self.clients.values() for request in requests)

    def add(self, request: _Request) -> None:
        self.clients.setdefault(request.client, deque()).append(request)

    def take(self, tokens: float) -> list[_Request]:
        """Remove the next requests and return them: with about `tokens` tokens in total, or a single request that
        takes more. If there is none, the lane is no longer running."""
        taken: list[_Request] = []
        while self.clients and len(taken) < self._most:
            client, requests = next(iter(self.clients.items()))
            if taken and sum(request.tokens for request in taken) + requests[0].tokens > tokens:
                break
            taken.append(requests.popleft())
            self.clients.move_to_end(client)
            if not requests:
                del self.clients[client]
        self.is_running = bool(taken)
        return taken

    def clear_left(self) -> None:
        """Remove the requests that nobody is waiting for any more."""
        for client, requests in list(self.clients.items()):
            # Read once, since the last client may leave at any moment.
            left = [request for request in requests if request.answer.is_left]
            for request in left:
                request.answer.set_running_or_notify_cancel()
                requests.remove(request)
            if not requests:
                del self.clients[client]


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
        # The most recently used ones come last.
        self._read_as: dict[Reading, Scorer] = {}
        self._most, self._tokens = most, tokens
        # Held during every access to the lanes and to the readings.
        self._lock = threading.Lock()
        self._short, self._long = _Lane(places.short, _BATCH), _Lane(places.long, 1)
        self._rate = _RATE

    def scorer(self, reading: Reading = OWN_READING) -> "Scorer":
        """Return the scorer whose evaluator reads traces as `reading` says, by default in its own way."""
        if reading == OWN_READING:
            return self._scorer
        with self._lock:
            scorer = self._read_as.pop(reading, None)
            if scorer is None:
                # This import loads PyTorch, which the first scorer has already loaded.
                from stepsight.core.evaluators.both_orders import read_as

                scorer = read_as(self._scorer, reading)
            self._read_as[reading] = scorer
            if len(self._read_as) > _MOST_READINGS:
                del self._read_as[next(iter(self._read_as))]
        return scorer

    def submit(
        self,
        trace: Trace,
        mode: Mode,
        answer: PendingScore[Judgment] | None = None,
        reading: Reading = OWN_READING,
    ) -> PendingScore[Judgment]:
        """Queue a trace and return the future of its judgment. If `answer` is given, it is used as this future.

        `reading` is as in `scorer`. Raises `BusyError` if too many requests are waiting, `ShortError` if memory is
        short, and `UserError` if the trace is too long.
        """
        # An error here concerns only this request, and not the others of a batch.
        scorer = self.scorer(reading)
        encoded = scorer.evaluator.encode(trace)
        tokens = scorer.tokens(trace, encoded, mode)
        self._check_tokens(tokens, f"this trace in {mode} mode")
        answer = PendingScore() if answer is None else answer
        self._add(_Request(tokens + _EACH, _CLIENT.get(), answer, scorer, (trace, encoded), mode))
        return answer

    def cost(self, trace: Trace, reading: Reading = OWN_READING) -> ScoringCost:
        """Return the tokens that judging a trace takes, with `reading` as in `scorer`. Raises `UserError` if the
        trace is too long."""
        scorer = self.scorer(reading)
        encoded = scorer.evaluator.encode(trace)
        whole, prefixes = (scorer.tokens(trace, encoded, mode) for mode in (Mode.OFFLINE, Mode.HINDSIGHT))
        return ScoringCost(whole, prefixes, self._tokens, prefixes / self._rate)

    def submit_next(
        self, problem: str, steps: Sequence[str | Sequence[str]], candidates: Sequence[str]
    ) -> PendingScore[Floats32]:
        """Queue candidates for the step after `steps`, to be scored together, and return the future of their
        probabilities.

        The probabilities have shape (candidates, 3). The scorer must have `next_steps`. Raises the same errors as
        `submit`.
        """
        scorer = self.scorer()
        nexts = scorer.next_steps
        assert nexts is not None
        encoded = nexts.encode(problem, steps, candidates)
        tokens = nexts.tokens(encoded)
        self._check_tokens(tokens, "these candidates")
        answer: PendingScore[Floats32] = PendingScore()
        self._add(_Request(tokens + _EACH * len(encoded.unique), _CLIENT.get(), answer, scorer, encoded))
        return answer

    @property
    def is_busy(self) -> bool:
        """True if any request is being scored or is waiting to be scored."""
        return self._short.is_running or self._long.is_running

    def drain(self) -> None:
        """Wait until all requests have been scored."""
        while self.is_busy:
            time.sleep(0.01)

    def _check_tokens(self, tokens: int, what: str) -> None:
        """Raise `UserError` if a request takes too many tokens."""
        if tokens > self._tokens:
            raise UserError(
                f"{self.scorer().evaluator.name} would compute {tokens:,} tokens for {what}; "
                f"a request may use at most {self._tokens:,}.",
                "Send fewer steps, ask for offline scores, or import it and start a job, which has no such limit.",
            )

    def _add(self, request: _Request) -> None:
        """Put a request into a lane, and begin to score the lane unless that is being done."""
        if not has_room(_SPARE):
            raise ShortError("This server is short of memory.")
        lanes = (self._short, self._long)
        with self._lock:
            if sum(1 for lane in lanes for _ in lane) >= self._most:
                # Abandoned requests may still be in the queue.
                for lane in lanes:
                    lane.clear_left()
            waiting = [*self._short, *self._long]
            own = sum(other.client == request.client for other in waiting)
            if len(waiting) >= self._most or own >= -(-self._most // 2):
                seconds = sum(other.tokens for other in waiting) / self._rate
                raise BusyError(self.scorer().evaluator.name, max(1, ceil(seconds)))
            lane = self._long if request.tokens > self._most_tokens else self._short
            lane.add(request)
            if not lane.is_running:
                lane.is_running = True
                threading.Thread(target=self._run, args=(lane,), name="scoring", daemon=True).start()

    @property
    def _most_tokens(self) -> float:
        """The largest number of tokens that the traces of a batch may take together. A trace that takes more counts
        as long."""
        return _LONG * self._rate

    def _run(self, lane: _Lane) -> None:
        """Score the requests of a lane, batch by batch, until none is left."""
        while True:
            with lane.place:
                with self._lock:
                    batch = lane.take(self._most_tokens)
                if not batch:
                    break
                self._score([request for request in batch if request.answer.set_running_or_notify_cancel()])
            if time.monotonic() - lane.released > _RELEASED_EVERY:
                release_memory()
                lane.released = time.monotonic()
        if lane is self._long:
            release_memory()
            lane.released = time.monotonic()

    def _score(self, batch: Sequence[_Request]) -> None:
        """Score the requests, all traces of the same mode in one call, and update the measured speed."""
        kinds: dict[tuple[Mode, str], list[_Request]] = {}
        for request in batch:
            if request.mode is not None:
                kinds.setdefault((request.mode, request.scorer.evaluator.name), []).append(request)
            elif (nexts := request.scorer.next_steps) is not None:
                with _propagate_errors([request]):
                    request.answer.set_result(nexts.score_encoded(request.content))
        start = time.perf_counter()
        for (mode, _), requests in kinds.items():
            with _propagate_errors(requests):
                _judge(requests, mode)
        traces = [request for request in batch if request.mode is not None]
        rate = sum(request.tokens for request in traces) / max(1e-6, time.perf_counter() - start)
        # The candidates' prefix may be cached, which would distort the measured speed.
        if traces and not any(request.answer.is_left for request in traces):
            # A running mean, since the next work is likely to be similar to the last.
            self._rate += 0.3 * (rate - self._rate)


def _judge(requests: Sequence[_Request], mode: Mode) -> None:
    """Judge the traces of requests that have the same scorer and mode, in one call."""
    waiting = iter(requests)
    for event in requests[0].scorer.stream_encoded([request.content for request in requests], mode):
        if isinstance(event, NoJudgment):
            raise event.error
        if isinstance(event, Judgment):
            next(waiting).answer.set_result(event)
        elif isinstance(event, StepScore):
            requests[event.trace].answer.steps[event.substep] = event.row.tolist()
        elif all(request.answer.is_left for request in requests):
            raise CancelledError


@contextmanager
def _propagate_errors(requests: Sequence[_Request]) -> Iterator[None]:
    """Pass any exception raised in the `with` block on to the clients that are still waiting for these requests."""
    try:
        yield
    except BaseException as error:
        for request in requests:
            if not request.answer.done():
                request.answer.set_exception(error)
