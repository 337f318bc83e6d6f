"""The routes for scoring: POST /score, POST /score/batch, POST /next and GET /evaluators.

POST /score/batch and POST /next take many texts at once and stream their responses.
"""

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from anyio import to_thread
from fastapi import APIRouter, Depends, Request
from pydantic import BaseModel
from starlette.requests import ClientDisconnect
from starlette.responses import StreamingResponse

from stepsight.app.api.models import (
    BatchLine,
    BatchRequest,
    Context,
    EvaluatorInfo,
    FailedLine,
    NextLine,
    NextRequest,
    ScoreRequest,
)
from stepsight.app.scoring.batcher import BusyError, PendingScore, ShortError
from stepsight.app.scoring.loading import LoadingError
from stepsight.app.web.access import LOOKING, RequiresRight, Right, find_user_of
from stepsight.app.web.failures import OURS, logged_under, status_of
from stepsight.core.errors import UserError, located
from stepsight.core.judgment import Judgment, Mode
from stepsight.core.judgment_record import JudgmentRecord, ThresholdsRecord, step_records
from stepsight.core.scores import StepScores
from stepsight.core.trace import Trace, check_candidates
from stepsight.storage.judgments.evaluators import list_evaluators
from stepsight.storage.people.blindness import check_texts
from stepsight.training.evaluate.strength import concluded_record

Result = TypeVar("Result")
MEDIA_TYPE = "application/x-ndjson"

# How many parts of one request may be queued at once: enough for two calls of the scorer, so that it never waits
# for the client, but few enough to leave room for other requests.
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
        self._has_ended = False
        self._waiting = asyncio.Semaphore(_WAITING)
        # Parts are submitted in order. A part that is refused is submitted again once another one has been scored.
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
                        f"This took longer than the {self._seconds:g} s allowed for a request.",
                        "Request what is missing again, or send less at a time.",
                    )
                    yield [line for part in tasks.values() for line in _failures(part, late)]
                    return
                for task in done:
                    del tasks[task]
                yield [line for task in done for line in task.result()]
        finally:
            for task in tasks:
                task.cancel()
            self._has_ended = True
            for scoring in tuple(self._begun):
                scoring.cancel()

    async def _answer(self, number: int) -> list[BaseModel]:
        part = self._parts[number]
        try:
            async with self._waiting:
                scoring = await self._submit_when_accepted(part) if number else self._first
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

    async def _submit_when_accepted(self, part: AnswerPart) -> PendingScore[Any]:
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
        if self._has_ended:
            # The client disconnected while this thread was submitting the part.
            scoring.cancel()
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


def score_routes(context: Context) -> APIRouter:
    router = APIRouter(tags=["scores"], dependencies=[Depends(RequiresRight(Right.SCORE))])

    @router.post("/score", summary="Judge every step of a solution")
    async def score(body: ScoreRequest, request: Request) -> JudgmentRecord:
        """Requests that arrive together are scored in one batch, and clients take turns."""
        name = body.evaluator or context.evaluators.default
        evaluator = context.evaluators.about(name)
        trace = Trace.of(body.problem, body.steps)
        thresholds = await to_thread.run_sync(context.evaluators.thresholds, context.store, name)
        await to_thread.run_sync(check_texts, context.store, find_user_of(request), trace)
        submit = partial(context.evaluators.submit, name, trace, body.mode)
        scoring = await to_thread.run_sync(submit)
        try:
            judgment = await unless_gone(request, asyncio.wrap_future(scoring), context.seconds)
        except TimeoutError:
            raise ShortError(
                f"This took longer than the {context.seconds:g} s allowed for a request.",
                "Send fewer steps, try again when the server has less to do, or judge a dataset as a job.",
            ) from None
        return concluded_record(judgment, evaluator, thresholds, name=name)

    _add_streamed(router, context)
    return router


def _add_streamed(router: APIRouter, context: Context) -> None:
    @router.post(
        "/score/batch",
        summary="Judge every step of many solutions",
        response_class=StreamingResponse,
        responses=_lines_of(BatchLine | FailedLine),
    )
    async def batch(body: BatchRequest, request: Request) -> StreamingResponse:
        """The response has one line of JSON for each solution, sent as soon as the solution is judged, in any
        order. The limit on computation applies to each solution separately, the time limit to the whole batch."""
        name = body.evaluator or context.evaluators.default
        parts = await to_thread.run_sync(_batch_parts, context, name, body)
        return await streamed(context, request, parts)

    @router.post(
        "/next",
        summary="Judge candidates for the next step",
        response_class=StreamingResponse,
        responses=_lines_of(NextLine | FailedLine),
    )
    async def next_step(body: NextRequest, request: Request) -> StreamingResponse:
        """The response has one line of JSON for each candidate, judged online and sent as soon as it is ready, in
        any order. A causal evaluator reads the steps before the candidates only once. If a request extends an
        earlier one, only the new part is read."""
        name = body.evaluator or context.evaluators.default
        parts = await to_thread.run_sync(_next_parts, context, name, body)
        return await streamed(context, request, parts)


def _lines_of(line: Any) -> dict[int | str, dict[str, Any]]:
    return {200: {"model": line, "description": f"Lines of JSON, as {MEDIA_TYPE}"}}


async def streamed(context: Context, request: Request, parts: Sequence[AnswerPart]) -> StreamingResponse:
    """Return a streamed response in which each solution or candidate of a request gets one line. `parts` are scored
    separately."""
    user = find_user_of(request)
    stream = Stream(parts, context.seconds, partial(check_texts, context.store, user))
    await stream.begin()
    return StreamingResponse(stream.lines(), media_type=MEDIA_TYPE)


def _batch_parts(context: Context, name: str, body: BatchRequest) -> list[AnswerPart]:
    evaluator = context.evaluators.about(name)
    thresholds = context.evaluators.thresholds(context.store, name)

    def lines(place: int, judgment: Judgment) -> list[BatchLine]:
        record = concluded_record(judgment, evaluator, thresholds, name=name)
        return [BatchLine(index=place, **dict(record))]

    parts = []
    for place, solution in enumerate(body.traces):
        with located(f"traces.{place}"):
            trace = Trace.of(solution.problem, solution.steps, id=solution.id)
        submit = partial(context.evaluators.submit, name, trace, body.mode)
        parts.append(AnswerPart((place,), submit, partial(lines, place), (trace,)))
    return parts


def _next_parts(context: Context, name: str, body: NextRequest) -> list[AnswerPart]:
    """Split a request into parts that are scored separately.

    If the evaluator scores all candidates together, there is a single part. Otherwise, there is one part for each
    distinct text.
    """
    evaluators, evaluator = context.evaluators, context.evaluators.about(name)
    thresholds = evaluators.thresholds(context.store, name)
    texts = check_candidates(body.candidates)
    traces = {text: Trace.of(body.problem, [*body.steps, text]) for text in texts}

    def lines(places: Sequence[int], result: Any) -> list[NextLine]:
        if isinstance(result, Judgment):
            assert result.offline is not None
            result = [result.offline.probs[-1]] * len(places)
        return [line(place, StepScores(row[None])) for place, row in zip(places, result, strict=True)]

    def line(place: int, scores: StepScores) -> NextLine:
        number = len(body.steps) + 1
        (record,) = step_records(scores, ((number, 1),), evaluator.outputs, thresholds)
        return NextLine(index=place, **dict(record))

    if evaluators.scores_together(name):
        every = tuple(range(len(texts)))
        together = partial(evaluators.submit_next, name, body.problem, body.steps, texts)
        return [AnswerPart(every, together, partial(lines, every), tuple(traces.values()))]
    parts = []
    for text, trace in traces.items():
        places = tuple(place for place, other in enumerate(texts) if other == text)
        submit = partial(evaluators.submit, name, trace, Mode.OFFLINE)
        parts.append(AnswerPart(places, submit, partial(lines, places), (trace,)))
    return parts


def evaluator_routes(context: Context) -> APIRouter:
    router = APIRouter(tags=["evaluators"], dependencies=[Depends(RequiresRight(*LOOKING))])

    @router.get("/evaluators", summary="The evaluators that score here, then those with judgments in the store")
    def evaluators() -> list[EvaluatorInfo]:
        loaded = []
        for name in context.evaluators.all_names:
            evaluator = context.evaluators.about(name)
            thresholds = ThresholdsRecord.of(context.evaluators.thresholds(context.store, name), evaluator.outputs)
            here = {"name": name, "scores": True, "thresholds": thresholds}
            loaded.append(EvaluatorInfo(**vars(evaluator) | here))
        fingerprints = {info.fingerprint for info in loaded}
        stored = [row for row in list_evaluators(context.store) if row.fingerprint not in fingerprints]
        for row in stored:
            dtype = row.dtype if "parameters" in row.info else None
            elsewhere = {"outputs": row.outputs, "dtype": dtype, "scores": False, "thresholds": None}
            loaded.append(EvaluatorInfo(**{**row.info, **vars(row), **elsewhere}))
        return loaded

    return router
