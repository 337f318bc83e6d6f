"""Scoring: POST /score."""

import asyncio
from contextlib import suppress
from typing import Any

from anyio import to_thread
from fastapi import APIRouter, Depends, Request
from starlette.requests import ClientDisconnect

from stepsight.app.access.rights import Needs, Right, find_user_of, note_scored
from stepsight.app.api.context import Context
from stepsight.app.api.models import ScoreRequest
from stepsight.app.scoring.batcher import ShortError
from stepsight.app.scoring.line import Scoring
from stepsight.core.judgment import Judgment
from stepsight.core.judgment_record import JudgmentRecord, judgment_record
from stepsight.core.trace import Trace


def routes(context: Context) -> APIRouter:
    router = APIRouter(tags=["scores"], dependencies=[Depends(Needs(Right.SCORE))])

    @router.post("/score", summary="Judge every step of a solution")
    async def score(asked: ScoreRequest, request: Request) -> JudgmentRecord:
        """Requests that come at the same time are scored together, those of each client in turn."""
        name = asked.evaluator or context.evaluators.names[0]
        evaluator = context.evaluators.about(name)
        trace = Trace.of(asked.problem, asked.steps)
        thresholds = await to_thread.run_sync(context.evaluators.thresholds, context.store, name)
        scoring = await to_thread.run_sync(context.evaluators.submit, name, trace, asked.mode)
        judgment = await _awaited(scoring, request, context.seconds)
        await to_thread.run_sync(note_scored, context.store, find_user_of(request), trace)
        return judgment_record(judgment, evaluator, thresholds, name=name)

    return router


async def _awaited(scoring: Scoring[Judgment], request: Request, seconds: float) -> Judgment:
    """The judgment, which is no longer computed once the client has gone or the time is over.

    Raises `ShortError` where it takes longer than `seconds`, `ClientDisconnect` where the client went away.
    """
    judged = asyncio.wrap_future(scoring)
    gone = asyncio.ensure_future(gone_away(request))
    first: set[asyncio.Future[Any]] = {judged, gone}
    try:
        await asyncio.wait(first, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        if judged.done():
            return judged.result()
        scoring.cancel()
        if gone.done():
            raise ClientDisconnect
        raise ShortError(
            f"This took longer than the {seconds:g} s that a request may take.",
            "Send fewer steps, try again when the server has less to do, or judge a dataset as a job.",
        )
    finally:
        for task in first:
            task.cancel()
            with suppress(BaseException):
                await task


async def gone_away(request: Request) -> None:
    """Ends when the client does not wait for the answer any more."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
