"""Evaluators: GET /evaluators."""

from fastapi import APIRouter, Depends

from stepsight.app.access.rights import LOOKING, RequiresRight
from stepsight.app.api.models import Context, EvaluatorInfo
from stepsight.core.judgment_record import ThresholdsRecord
from stepsight.storage.judgments.evaluators import list_evaluators


def routes(context: Context) -> APIRouter:
    router = APIRouter(tags=["evaluators"], dependencies=[Depends(RequiresRight(*LOOKING))])

    @router.get("/evaluators", summary="The evaluators that score here, then those with judgments in the store")
    def evaluators() -> list[EvaluatorInfo]:
        loaded = [_loaded(context, name) for name in context.evaluators.all_names]
        fingerprints = {info.fingerprint for info in loaded}
        return loaded + [
            EvaluatorInfo(
                name=row.name,
                fingerprint=row.fingerprint,
                attention=row.attention,
                format=row.format,
                outputs=row.outputs,
                dtype=row.dtype if "parameters" in row.info else None,
                scores=False,
                context=row.info.get("context"),
                parameters=row.info.get("parameters"),
            )
            for row in list_evaluators(context.store)
            if row.fingerprint not in fingerprints
        ]

    return router


def _loaded(context: Context, name: str) -> EvaluatorInfo:
    evaluator = context.evaluators.about(name)
    thresholds = context.evaluators.thresholds(context.store, name)
    return EvaluatorInfo(
        name=name,
        fingerprint=evaluator.fingerprint,
        attention=evaluator.attention,
        format=evaluator.format,
        outputs=evaluator.outputs,
        dtype=evaluator.dtype,
        scores=True,
        context=evaluator.context,
        parameters=evaluator.parameters,
        thresholds=ThresholdsRecord.of(thresholds, evaluator.outputs),
    )
