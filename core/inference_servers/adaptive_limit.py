"""How many requests a server gets at once: fewer after it refused one, more while it answers."""

import asyncio
import time
from collections import deque
from types import TracebackType


class ConcurrencyLimit:
    """At most `most` requests at a time, in the order in which they are made, and none before the server wants the
    next.

    A refusal halves how many there may be, and each answer raises it by a part of one, so that as many answers as
    requests at once bring one more: what networks do against congestion. A burst of refusals counts as one. Of one
    event loop.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self.running = 0
        self._limit = float(most)
        self._not_before = 0.0
        self._waiting: deque[asyncio.Future[None]] = deque()

    @property
    def at_once(self) -> int:
        """How many requests there may be now."""
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
        """The server answered a request."""
        self._limit = min(float(self.most), self._limit + 1 / self._limit)

    def refused(self, seconds: float) -> None:
        """The server refused a request and wants none for so many seconds."""
        now = time.monotonic()
        if now >= self._not_before:
            self._limit = max(1.0, self._limit / 2)
        self._not_before = max(self._not_before, now + seconds)

    async def _turn(self) -> None:
        """Wait for a place, which counts as taken then."""
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            # One that is passed over later holds no place.
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
