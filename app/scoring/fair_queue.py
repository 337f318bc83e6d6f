"""Sharing a scorer fairly among clients.

Clients are served in turn, so that a client with many requests does not hold up the rest.
"""

from collections import OrderedDict, deque
from collections.abc import Callable, Collection, Hashable, Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeVar

from stepsight.core.errors import UserError
from stepsight.core.judgment import Judgment, Mode
from stepsight.core.keyed_cache import Computation
from stepsight.core.trace import Trace

if TYPE_CHECKING:
    from stepsight.core.prompts.encoding import Encoded
    from stepsight.core.scoring.next_step import Asked
    from stepsight.core.scoring.scorer import Scorer

Result = TypeVar("Result")

# Seconds between checks whether the client still waits.
_LOOKS = 0.5
_CLIENT: ContextVar[str] = ContextVar("client", default="")


@contextmanager
def client_context(client: str) -> Iterator[None]:
    """Attribute all requests made in the `with` block, and in threads started there, to a client: a user or a
    network address."""
    before = _CLIENT.set(client)
    try:
        yield
    finally:
        _CLIENT.reset(before)


def current_client() -> str:
    """Return the client to which requests are attributed, or "" if there is none."""
    return _CLIENT.get()


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
        self.steps: dict[int, list[float]] = {}
        self._answers: list[PendingScore[Judgment]] = []
        self._joining = Lock()

    @property
    def is_left(self) -> bool:
        with self._joining:
            self._left = self._left or all(answer.is_left for answer in self._answers)
            return self._left

    def join(self, answer: PendingScore[Judgment], adapt: Callable[[Judgment], Judgment]) -> bool:
        """Pass the judgment on to the future `answer`, converted by `adapt`, once it is ready. Returns False if the
        computation has already been abandoned."""
        with self._joining:
            if self._left:
                return False
            self._answers.append(answer)
        answer.steps = self.steps
        self.add_done_callback(partial(_pass_on, answer, adapt))
        return True

    def set_running_or_notify_cancel(self) -> bool:
        if self.is_left:
            Future.cancel(self)
        return super().set_running_or_notify_cancel()


def _pass_on(
    answer: PendingScore[Judgment], adapt: Callable[[Judgment], Judgment], shared: "Future[Judgment]"
) -> None:
    """Set the result of `answer` to the converted judgment or its error, unless `answer` was cancelled."""
    if not answer.set_running_or_notify_cancel():
        return
    try:
        answer.set_result(adapt(shared.result()))
    except BaseException as error:  # any error must reach the waiting client
        answer.set_exception(error)


def wait_for(scorings: Collection[PendingScore[Any]], client_disconnected: Callable[[], bool]) -> None:
    """Wait until all of the futures are done. Once `client_disconnected()` is True, the futures are cancelled and
    `UserError` is raised. The futures must therefore not be shared with other clients."""
    while wait(scorings, timeout=_LOOKS).not_done:
        if client_disconnected():
            for scoring in scorings:
                scoring.cancel()
            raise UserError("Nobody waits for these scores any more.", "Ask for them again.")


@dataclass
class Request:
    """A client's request to the scorer, which takes about `tokens` tokens of computation."""

    tokens: int
    client: str
    answer: PendingScore[Any]


@dataclass
class TraceRequest(Request):
    """A request to have a scorer judge a trace, in one mode."""

    trace: Trace
    encoded: "Encoded"
    mode: Mode
    scorer: "Scorer"


@dataclass
class CandidatesRequest(Request):
    """A request to score several candidates for the next step together."""

    asked: "Asked"


class FairQueue:
    """A queue in which clients take turns: the first request of each client, then the second of each, and so on."""

    def __init__(self) -> None:
        self._clients: OrderedDict[str, deque[Request]] = OrderedDict()

    def __len__(self) -> int:
        return sum(map(len, self._clients.values()))

    @property
    def tokens(self) -> int:
        """The total number of tokens that the queued requests take."""
        return sum(request.tokens for requests in self._clients.values() for request in requests)

    def waiting(self, client: str) -> int:
        """Return the number of requests that the client has in the queue."""
        return len(self._clients.get(client, ()))

    def add(self, request: Request) -> None:
        self._clients.setdefault(request.client, deque()).append(request)

    def take(self, most: int, tokens: float) -> list[Request]:
        """Remove the next requests from the queue and return them. At most `most` requests are taken, with about
        `tokens` tokens in total, or a single request that takes more."""
        taken: list[Request] = []
        while self._clients and len(taken) < most:
            client, requests = next(iter(self._clients.items()))
            if taken and sum(one.tokens for one in taken) + requests[0].tokens > tokens:
                break
            taken.append(requests.popleft())
            self._clients.move_to_end(client)
            if not requests:
                del self._clients[client]
        return taken

    def clear_left(self) -> None:
        """Remove the requests that nobody is waiting for any more."""
        for client, requests in list(self._clients.items()):
            stay: deque[Request] = deque()
            for request in requests:
                # Asked once, since the last client may leave at any moment.
                if request.answer.is_left:
                    request.answer.set_running_or_notify_cancel()
                else:
                    stay.append(request)
            if stay:
                self._clients[client] = stay
            else:
                del self._clients[client]
