"""Streamed responses, which send each answer as a line of JSON as soon as it is ready."""

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from anyio import to_thread
from pydantic import BaseModel

from stepsight.app.api.models import FailedLine
from stepsight.app.scoring.batcher import BusyError, ShortError
from stepsight.app.scoring.fair_queue import PendingScore
from stepsight.app.scoring.loading import LoadingError
from stepsight.app.web.failures import OURS, logged_under, status_of
from stepsight.core.errors import UserError
from stepsight.core.trace import Trace

MEDIA_TYPE = "application/x-ndjson"

# The parts of one request that wait to be scored at once: enough for two calls of the scorer, so that it never
# waits for the client, and few enough to leave room for others.
_WAITING = 32
_LOG = logging.getLogger("stepsight")

# Temporary errors, which say after how many `seconds` to try again.
_PASSING = (BusyError, ShortError, LoadingError)


@dataclass(frozen=True)
class AnswerPart:
    """A part of a request that is scored on its own.

    It answers the solutions or candidates at the indices `places` of the request. `submit` starts the scoring, and
    `lines` formats the result. `texts` are the texts whose scores the client is shown.
    """

    places: tuple[int, ...]
    submit: Callable[[], PendingScore[Any]]
    lines: Callable[[Any], Iterable[BaseModel]]
    texts: tuple[Trace, ...]


class Stream:
    """The lines of a streamed response. If the client disconnects, parts that are not scored yet are cancelled."""

    def __init__(self, parts: Sequence[AnswerPart], seconds: float, check: Callable[..., None]) -> None:
        """Prepare to score all `parts` within `seconds`. `check` is called with the texts of a part, and
        raises `UserError` if their scores are hidden from the client."""
        self._parts = list(reversed(parts))
        self._seconds, self._check = seconds, check
        self._until = time.monotonic() + seconds
        self._waiting: dict[asyncio.Future[Any], AnswerPart] = {}
        self._failed: list[BaseModel] = []

    async def begin(self) -> None:
        """Submit the first parts. Raises `BusyError`, `ShortError` or `LoadingError` if no part is accepted."""
        passing = await self._ask()
        if passing is not None and not self._waiting and not self._failed:
            raise passing

    async def lines(self) -> AsyncIterator[bytes]:
        """Yield the response lines of all parts, in the order in which they become ready."""
        async with aclosing(self.answers()) as answers:
            async for some in answers:
                yield b"".join(
                    one.model_dump_json(exclude_none=isinstance(one, FailedLine)).encode() + b"\n" for one in some
                )

    async def answers(self) -> AsyncGenerator[list[BaseModel]]:
        """Yield the answers as objects, in groups that become ready at the same time."""
        try:
            while self._parts or self._waiting or self._failed:
                done = await self._next()
                failed, self._failed = self._failed, []
                if done or failed:
                    yield await to_thread.run_sync(self._answered, done, failed)
        finally:
            for waiting in self._waiting:
                waiting.cancel()

    async def _next(self) -> dict[asyncio.Future[Any], AnswerPart]:
        """Wait until some parts are ready, and return them with their futures. If the time is up, give up on all
        parts."""
        left = self._until - time.monotonic()
        if left <= 0:
            self._give_up()
            return {}
        passing = await self._ask()
        if not self._waiting:
            if passing is not None:
                await asyncio.sleep(min(passing.seconds, max(0.0, left)))
            return {}
        timeout = 0.0 if self._failed else left
        done, _ = await asyncio.wait(self._waiting, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
        return {one: self._waiting.pop(one) for one in done}

    async def _ask(self) -> BusyError | ShortError | LoadingError | None:
        """Submit parts until the limit on waiting parts is reached. If the scorer cannot accept more at the moment,
        return the error that says why."""
        count = min(len(self._parts), _WAITING - len(self._waiting))
        if count <= 0:
            return None
        asked, passing = await to_thread.run_sync(self._submit, self._parts[-count:][::-1])
        for part, scoring in asked:
            self._parts.pop()
            if isinstance(scoring, UserError):
                self._failed += _failures(part, scoring)
            else:
                # Cancelling it here abandons it in the scorer.
                self._waiting[asyncio.wrap_future(scoring)] = part
        return passing

    def _submit(
        self, parts: Sequence[AnswerPart]
    ) -> tuple[
        list[tuple[AnswerPart, PendingScore[Any] | UserError]], BusyError | ShortError | LoadingError | None
    ]:
        asked: list[tuple[AnswerPart, PendingScore[Any] | UserError]] = []
        for part in parts:
            try:
                self._check(*part.texts)
                asked.append((part, part.submit()))
            except _PASSING as error:
                return asked, error
            except UserError as error:
                asked.append((part, error))
        return asked, None

    def _give_up(self) -> None:
        late = ShortError(
            f"This took longer than the {self._seconds:g} s that a request may take.",
            "Ask again for what is missing, or send less at a time.",
        )
        left = [*self._waiting.values(), *reversed(self._parts)]
        for waiting in self._waiting:
            waiting.cancel()
        self._waiting, self._parts = {}, []
        self._failed += [line for part in left for line in _failures(part, late)]

    def _answered(self, done: dict[asyncio.Future[Any], AnswerPart], failed: list[BaseModel]) -> list[BaseModel]:
        lines = list(failed)
        for future, part in done.items():
            try:
                lines += part.lines(future.result())
            except UserError as error:
                lines += _failures(part, error)
            except Exception as error:
                _LOG.error("scoring failed", exc_info=error)
                lines += [_failure(place, OURS, logged_under(), 500) for place in part.places]
        return lines


def _failures(part: AnswerPart, error: UserError) -> list[BaseModel]:
    seconds = error.seconds if isinstance(error, _PASSING) else None
    shown, status = error.without_options(), status_of(error)
    return [_failure(place, shown.message, shown.hint, status, seconds) for place in part.places]


def _failure(place: int, message: str, hint: str, status: int, seconds: int | None = None) -> BaseModel:
    after = {} if seconds is None else {"retry_after": seconds}
    return FailedLine(index=place, error=message, hint=hint, status=status, **after)
