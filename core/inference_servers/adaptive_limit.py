"""An adaptive limit on simultaneous requests to a server. Refusals lower it, and answers raise it again."""

import asyncio
import time
from collections import deque
from types import TracebackType


class ConcurrencyLimit:
    """A limit of at most `most` simultaneous requests. It also holds back requests for as long as the server asks.

    Requests are admitted in the order in which they are made. A refusal halves the limit; several refusals in a
    short time count as one. Each answer raises the limit by a fraction, so that the limit grows by 1 once as many
    answers have arrived as requests may run at a time. This is the additive increase and multiplicative decrease
    used against network congestion. For use in a single event loop.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self.running = 0
        self._limit = float(most)
        self._not_before = 0.0
        self._waiting: deque[asyncio.Future[None]] = deque()

    @property
    def at_once(self) -> int:
        """The current limit on simultaneous requests."""
        return max(1, int(self._limit))

    async def __aenter__(self) -> None:
        if self.running < self.at_once and not self._waiting:
            self.running += 1
        else:
            await self._turn()
        try:
            while (wait := self._not_before - time.monotonic()) > 0:
                await asyncio.sleep(wait)
        except asyncio.CancelledError:
            self._leave()
            raise

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._leave()

    def answered(self) -> None:
        """Raise the limit after the server answered a request."""
        self._limit = min(float(self.most), self._limit + 1 / self._limit)

    def refused(self, seconds: float) -> None:
        """Lower the limit after the server refused a request, and send no more requests for `seconds` seconds."""
        now = time.monotonic()
        if now >= self._not_before:
            self._limit = max(1.0, self._limit / 2)
        self._not_before = max(self._not_before, now + seconds)

    async def _turn(self) -> None:
        """Wait for a free slot and take it."""
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            # If it was cancelled before its turn, it holds no place.
            if not turn.cancelled():
                self._leave()
            raise

    def _leave(self) -> None:
        self.running -= 1
        while self._waiting and self.running < self.at_once:
            turn = self._waiting.popleft()
            if not turn.done():
                self.running += 1
                turn.set_result(None)
