"""Scoring: POST /score."""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from anyio import to_thread
from fastapi import APIRouter, Depends, Request
from starlette.requests import ClientDisconnect

from stepsight.app.access.rights import Needs, Right, find_user_of, note_scored
from stepsight.app.api.context import Context
from stepsight.app.api.models import Limits, ScoreAnswer, ScoreRequest
from stepsight.app.scoring.batcher import ShortError
from stepsight.app.scoring.line import Scoring
from stepsight.core.judgment import Judgment, judgment_record
from stepsight.core.label import LABEL_NAMES
from stepsight.core.scores import Outputs, Thresholds
from stepsight.core.trace import Trace

_VIEWS = ("online", "offline")
_UNSAID_OF_SOLUTION: dict[str, Any] = dict.fromkeys(("validity", "redundancy", "valid", "redundant"))
_UNSAID: dict[str, Any] = dict.fromkeys(LABEL_NAMES) | _UNSAID_OF_SOLUTION


def routes(context: Context) -> APIRouter:
    router = APIRouter(tags=["scores"], dependencies=[Depends(Needs(Right.SCORE))])

    @router.post("/score", summary="Judge every step of a solution", response_model_exclude_unset=True)
    async def score(asked: ScoreRequest, request: Request) -> ScoreAnswer:
        """Requests that come at the same time are scored together, those of each client in turn."""
        name = asked.evaluator or context.evaluators.names[0]
        evaluator = context.evaluators.about(name)
        trace = Trace.of(asked.problem, asked.steps)
        thresholds = await to_thread.run_sync(context.evaluators.thresholds, context.store, name)
        scoring = await to_thread.run_sync(context.evaluators.submit, name, trace, asked.mode)
        judgment = await _awaited(scoring, request, context.seconds)
        await to_thread.run_sync(note_scored, context.store, find_user_of(request), trace)
        return answer(judgment, name, evaluator.fingerprint, thresholds, evaluator.outputs)

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


def answer(
    judgment: Judgment, name: str, fingerprint: str, thresholds: Thresholds, outputs: Outputs = Outputs.THREE_WAY
) -> ScoreAnswer:
    """A judgment as the API gives it."""
    return ScoreAnswer.model_validate(fields(judgment, name, fingerprint, thresholds, outputs))


def fields(
    judgment: Judgment, name: str, fingerprint: str, thresholds: Thresholds, outputs: Outputs
) -> dict[str, Any]:
    """What a `ScoreAnswer` is made of: `core.judgment`'s numbers, with the step of each and the verdicts on it;
    what the evaluator says nothing of is null."""
    record = judgment_record(judgment, name, thresholds, outputs)
    views = {key: _scores(record[key], judgment.trace, thresholds) for key in _VIEWS if key in record}
    more: dict[str, Any] = {key: record[key] for key in ("hindsight", "rationale") if key in record}
    return {
        **_scores(record, judgment.trace, thresholds),
        **views,
        **more,
        "evaluator": name,
        "fingerprint": fingerprint,
        "outputs": outputs,
        "mode": judgment.mode,
        "thresholds": limits(thresholds, outputs),
    }


def limits(thresholds: Thresholds, outputs: Outputs) -> Limits:
    """The thresholds that mean something for an evaluator with these outputs."""
    redundancy = thresholds.redundancy if outputs == Outputs.THREE_WAY else None
    return Limits(validity=thresholds.validity, redundancy=redundancy)


def _scores(record: dict[str, Any], trace: Trace, thresholds: Thresholds) -> dict[str, Any]:
    places = [
        {"step": number, "substep": part}
        for number, step in enumerate(trace.steps, start=1)
        for part in range(1, len(step.substeps) + 1)
    ]
    steps = [
        place | _UNSAID | (scores or {}) | _verdicts(scores or {}, thresholds)
        for place, scores in zip(places, record["steps"], strict=True)
    ]
    return {"steps": steps, "solution": _UNSAID_OF_SOLUTION | record["solution"]}


def _verdicts(scores: Mapping[str, float], thresholds: Thresholds) -> dict[str, bool]:
    verdicts = {"valid": scores["validity"] >= thresholds.validity} if "validity" in scores else {}
    if "redundancy" in scores:
        verdicts["redundant"] = scores["redundancy"] >= thresholds.redundancy
    return verdicts
