"""Streamed responses, which send each answer as a line of JSON as soon as it is ready."""

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass
from typing import Any, TypeVar

from anyio import to_thread
from pydantic import BaseModel
from starlette.requests import ClientDisconnect, Request

from stepsight.app.api.models import FailedLine
from stepsight.app.scoring.batcher import BusyError, ShortError
from stepsight.app.scoring.fair_queue import PendingScore
from stepsight.app.scoring.loading import LoadingError
from stepsight.app.web.failures import OURS, logged_under, status_of
from stepsight.core.errors import UserError
from stepsight.core.trace import Trace

Result = TypeVar("Result")
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
        self._parts, self._seconds, self._check = parts, seconds, check
        self._until = time.monotonic() + seconds
        self._begun: list[PendingScore[Any]] = []
        self._waiting = asyncio.Semaphore(_WAITING)
        # Parts are submitted in order; one that is not accepted is tried again once another is scored.
        self._turn, self._scored = asyncio.Lock(), asyncio.Event()

    async def begin(self) -> None:
        """Submit the first part. Raises `BusyError`, `ShortError` or `LoadingError` if it is not accepted now."""
        self._first = await to_thread.run_sync(self._submit, self._parts[0])

    async def lines(self) -> AsyncIterator[bytes]:
        """Yield the response lines of all parts, in the order in which they become ready."""
        async with aclosing(self.answers()) as answers:
            async for some in answers:
                yield b"".join(
                    line.model_dump_json(exclude_none=isinstance(line, FailedLine)).encode() + b"\n"
                    for line in some
                )

    async def answers(self) -> AsyncGenerator[list[BaseModel]]:
        """Yield the answers as objects, in groups that become ready at the same time. Once the time is up, parts
        without an answer have failed."""
        tasks = {asyncio.create_task(self._answer(number)): part for number, part in enumerate(self._parts)}
        try:
            while tasks:
                left = max(0.0, self._until - time.monotonic())
                done, _ = await asyncio.wait(tasks, timeout=left, return_when=asyncio.FIRST_COMPLETED)
                if not done:
                    late = ShortError(
                        f"This took longer than the {self._seconds:g} s that a request may take.",
                        "Ask again for what is missing, or send less at a time.",
                    )
                    yield [line for part in tasks.values() for line in _failures(part, late)]
                    return
                for task in done:
                    del tasks[task]
                yield [line for task in done for line in task.result()]
        finally:
            for task in tasks:
                task.cancel()
            for scoring in self._begun:
                scoring.cancel()

    async def _answer(self, number: int) -> list[BaseModel]:
        part = self._parts[number]
        try:
            async with self._waiting:
                scoring = await self._accepted(part) if number else self._first
                result = await asyncio.wrap_future(scoring)
                self._begun.remove(scoring)
            return await to_thread.run_sync(lambda: list(part.lines(result)))
        except UserError as error:
            return _failures(part, error)
        except Exception as error:
            _LOG.error("scoring failed", exc_info=error)
            return [_failure(place, OURS, logged_under(), 500) for place in part.places]
        finally:
            self._scored.set()

    async def _accepted(self, part: AnswerPart) -> PendingScore[Any]:
        """Submit a part as soon as the scorer accepts it."""
        async with self._turn:
            while True:
                self._scored.clear()
                try:
                    return await to_thread.run_sync(self._submit, part)
                except _PASSING as error:
                    with suppress(TimeoutError):
                        await asyncio.wait_for(self._scored.wait(), error.seconds)

    def _submit(self, part: AnswerPart) -> PendingScore[Any]:
        """Submit a part. Temporary errors are raised, and others are those of the future that is returned."""
        try:
            self._check(*part.texts)
            scoring = part.submit()
        except _PASSING:
            raise
        except UserError as error:
            scoring = PendingScore()
            scoring.set_exception(error)
        self._begun.append(scoring)
        return scoring


async def unless_gone(request: Request, work: Awaitable[Result], seconds: float | None = None) -> Result:
    """Wait for `work`, which is cancelled if the client disconnects or after `seconds`. `ClientDisconnect` or
    `TimeoutError` is then raised."""

    async def gone() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass

    working, watching = asyncio.ensure_future(work), asyncio.create_task(gone())
    try:
        await asyncio.wait({working, watching}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            return working.result()
        raise ClientDisconnect if watching.done() else TimeoutError
    finally:
        for task in (working, watching):
            task.cancel()
            with suppress(BaseException):
                await task


def _failures(part: AnswerPart, error: UserError) -> list[BaseModel]:
    seconds = error.seconds if isinstance(error, _PASSING) else None
    shown, status = error.without_options(), status_of(error)
    return [_failure(place, shown.message, shown.hint, status, seconds) for place in part.places]


def _failure(place: int, message: str, hint: str, status: int, seconds: int | None = None) -> BaseModel:
    after = {} if seconds is None else {"retry_after": seconds}
    return FailedLine(index=place, error=message, hint=hint, status=status, **after)
