"""How many requests a server gets at once: fewer after it refused one, more while it answers."""

import asyncio
import time
from types import TracebackType


class Pace:
    """At most `most` requests at a time, and none before the server wants the next.

    A refusal halves how many there may be, and each answer raises it by a part of one, so that as many answers as
    requests at once bring one more: what networks do against congestion. A burst of refusals counts as one. Of one
    event loop.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self._limit = float(most)
        self._running = 0
        self._not_before = 0.0
        self._free = asyncio.Condition()

    @property
    def at_once(self) -> int:
        """How many requests there may be now."""
        return max(1, int(self._limit))

    async def __aenter__(self) -> None:
        async with self._free:
            await self._free.wait_for(lambda: self._running < self.at_once)
            self._running += 1
        try:
            while (wait := self._not_before - time.monotonic()) > 0:
                await asyncio.sleep(wait)
        except asyncio.CancelledError:
            await self._leave()
            raise

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._leave()

    def answered(self) -> None:
        """The server answered a request."""
        self._limit = min(float(self.most), self._limit + 1 / self._limit)

    def refused(self, seconds: float) -> None:
        """The server refused a request and wants none for so many seconds."""
        now = time.monotonic()
        if now >= self._not_before:
            self._limit = max(1.0, self._limit / 2)
        self._not_before = max(self._not_before, now + seconds)

    async def _leave(self) -> None:
        async with self._free:
            self._running -= 1
            # Two, since the limit may have risen.
            self._free.notify(2)
