"""Scoring: POST /score."""

import asyncio
from typing import Any

from anyio import to_thread
from fastapi import APIRouter

from app.api.context import Context
from app.api.models import ScoreAnswer, ScoreRequest
from core.judgment import Judgment
from core.record import judgment_record
from core.scores import Thresholds
from core.trace import Trace


def routes(context: Context) -> APIRouter:
    router = APIRouter(tags=["scores"])

    @router.post("/score", summary="Judge every step of a solution", response_model_exclude_none=True)
    async def score(request: ScoreRequest) -> ScoreAnswer:
        """Requests that come at the same time are scored together."""
        name = request.evaluator or context.evaluators.names[0]
        evaluator = context.evaluators.scorer(name).evaluator
        trace = Trace.of(request.problem, request.steps)
        thresholds = await to_thread.run_sync(context.evaluators.thresholds, context.store, name)
        future = await to_thread.run_sync(context.evaluators.submit, name, trace, request.mode)
        judgment = await asyncio.wrap_future(future)
        return answer(judgment, name, evaluator.fingerprint, thresholds)

    return router


def answer(judgment: Judgment, name: str, fingerprint: str, thresholds: Thresholds) -> ScoreAnswer:
    """A judgment as the API gives it: `core.record`'s numbers, with the step of each and the verdicts on it."""
    record = judgment_record(judgment, name, thresholds)
    views = {
        key: _scores(record[key], judgment.trace, thresholds) for key in ("online", "offline") if key in record
    }
    return ScoreAnswer.model_validate(
        {
            **_scores(record, judgment.trace, thresholds),
            **{key: _scores(record[key], judgment.trace, thresholds) for key in views},
            "evaluator": name,
            "fingerprint": fingerprint,
            "mode": judgment.mode,
            "thresholds": {"validity": thresholds.validity, "redundancy": thresholds.redundancy},
            "hindsight": record.get("hindsight"),
        }
    )


def _scores(record: dict[str, Any], trace: Trace, thresholds: Thresholds) -> dict[str, Any]:
    places = [
        {"step": number, "substep": part}
        for number, step in enumerate(trace.steps, start=1)
        for part in range(1, len(step.substeps) + 1)
    ]
    verdicts = [
        {
            "valid": scores["validity"] >= thresholds.validity,
            "redundant": scores["redundancy"] >= thresholds.redundancy,
        }
        for scores in record["steps"]
    ]
    steps = [
        place | scores | verdict for place, scores, verdict in zip(places, record["steps"], verdicts, strict=True)
    ]
    return {"steps": steps, "solution": record["solution"]}
