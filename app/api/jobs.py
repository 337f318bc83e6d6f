"""The routes of jobs: GET and POST /jobs, GET /jobs/NUMBER, POST /jobs/NUMBER/cancel and /resume."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query

from stepsight.app.access.rights import RequiresRight, Right
from stepsight.app.api.models import Context, JobInfo, JobRequest
from stepsight.storage.database.jobs_schema import Job
from stepsight.storage.database.store import ForbiddenError
from stepsight.storage.jobs.jobs import cancel_job, get_job, list_jobs, resume_job, start_job
from stepsight.storage.traces.queries import find_dataset


def routes(context: Context) -> APIRouter:
    router = APIRouter(tags=["jobs"])
    _add_reading(router, context)
    _add_changes(router, context)
    return router


def _add_reading(router: APIRouter, context: Context) -> None:
    needs, store = [Depends(RequiresRight(Right.READ))], context.store

    @router.get("/jobs", dependencies=needs, summary="Jobs, the newest first")
    def jobs(
        limit: Annotated[int, Query(ge=1, le=500)] = 50, offset: Annotated[int, Query(ge=0, le=2**31 - 1)] = 0
    ) -> list[JobInfo]:
        return [_info(job) for job in list_jobs(store, limit, offset)]

    @router.get("/jobs/{job}", dependencies=needs, summary="The progress of a job")
    def job(job: int) -> JobInfo:
        return _info(get_job(store, job))


def _add_changes(parent: APIRouter, context: Context) -> None:
    """Add the routes that start, cancel and resume jobs.

    A read-only server refuses these requests and leaves the routes out of its description.
    """
    dependencies, store = [Depends(RequiresRight(Right.WRITE))], context.store
    if context.read_only:
        dependencies.append(Depends(_refuse))
    router = APIRouter(dependencies=dependencies, include_in_schema=not context.read_only)

    @router.post("/jobs", summary="Have a dataset judged by an evaluator", status_code=201)
    def start(request: JobRequest) -> JobInfo:
        """Only traces that the evaluator has not judged yet are scored.

        If the same job already exists, it is returned instead of a new one.
        """
        evaluator = context.evaluators.about(request.evaluator)
        dataset = find_dataset(store, request.dataset)
        spec = context.evaluators.spec(request.evaluator)
        started = start_job(
            store,
            dataset.id,
            evaluator=request.evaluator,
            spec=spec,
            fingerprint=evaluator.fingerprint,
            mode=request.mode,
        )
        return _info(started)

    @router.post("/jobs/{job}/cancel", summary="Cancel a job; its judgments stay")
    def cancel(job: int) -> JobInfo:
        return _info(cancel_job(store, job))

    @router.post("/jobs/{job}/resume", summary="Resume a failed or cancelled job")
    def resume(job: int) -> JobInfo:
        return _info(resume_job(store, job))

    parent.include_router(router)


def _info(job: Job) -> JobInfo:
    same = JobInfo.model_fields.keys() - {"job"}
    return JobInfo(job=job.id, **{name: getattr(job, name) for name in same})


def _refuse() -> None:
    raise ForbiddenError("This server is read-only.", "To change something, start StepSight on your own machine.")
