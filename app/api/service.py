"""The API as an application of its own: its error handling, the page that describes it, and the routes of datasets,
traces and jobs."""

import json
from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Depends, FastAPI, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse
from markupsafe import Markup
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import Response

from stepsight.app.api.models import (
    Context,
    DatasetInfo,
    Failure,
    JobInfo,
    JobRequest,
    StepInfo,
    TraceDetail,
    TraceLine,
    TracePage,
    TraceQuery,
)
from stepsight.app.api.rewards import reward_routes
from stepsight.app.api.scores import evaluator_routes, score_routes
from stepsight.app.browse.address import Address
from stepsight.app.browse.selection import Selection
from stepsight.app.scoring.batcher import REQUEST_SECONDS
from stepsight.app.scoring.evaluators import Evaluators
from stepsight.app.web.access import LOOKING, RequiresRight, Right, find_user_of
from stepsight.app.web.changes import write_dependencies
from stepsight.app.web.failures import answer_errors, failure_json, failure_response
from stepsight.app.web.html import render
from stepsight.core.scoring.client import API
from stepsight.core.trace import Trace
from stepsight.storage.browse.browse import BrowseRow, browse
from stepsight.storage.database.jobs_schema import Job
from stepsight.storage.database.store import Store
from stepsight.storage.jobs.jobs import cancel_job, get_job, list_jobs, resume_job, start_job
from stepsight.storage.judgments.judgments import trace_records
from stepsight.storage.people.blindness import check_traces, hidden_traces
from stepsight.storage.traces.queries import find_dataset, get_trace, list_datasets


def job_routes(context: Context) -> APIRouter:
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
    store, needs = context.store, write_dependencies(context.read_only)
    router = APIRouter(dependencies=needs, include_in_schema=not context.read_only)

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
            dtype=evaluator.dtype,
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


def trace_routes(context: Context) -> APIRouter:
    router = APIRouter(tags=["traces"], dependencies=[Depends(RequiresRight(Right.READ))])

    @router.get("/datasets", summary="Every dataset, with its counts")
    def datasets() -> list[DatasetInfo]:
        rows = list_datasets(context.store)
        return [DatasetInfo(**{name: getattr(row, name) for name in DatasetInfo.model_fields}) for row in rows]

    @router.get("/datasets/{name:path}/traces", summary="The traces of a dataset, a page at a time")
    def traces(name: str, query: Annotated[TraceQuery, Query()], request: Request) -> TracePage:
        page = trace_page(context, name, query)
        hidden = hidden_traces(context.store, find_user_of(request), [line.trace for line in page.traces])
        return page.model_copy(update={"traces": [line for line in page.traces if line.trace not in hidden]})

    @router.get("/traces/{trace}", summary="One trace with its gold and its judgments")
    def trace(
        trace: int,
        request: Request,
        left_out: Annotated[bool, Query(description="Add the scores without each step, as far as known.")] = False,
    ) -> TraceDetail:
        stored = get_trace(context.store, trace)
        check_traces(context.store, find_user_of(request), stored.trace_id)
        return TraceDetail(
            trace=stored.trace_id,
            dataset=stored.dataset,
            id=stored.id,
            position=stored.position + 1,
            problem=stored.problem,
            steps=step_infos(stored),
            first_error=_number(stored.first_error),
            meta=dict(stored.meta),
            judgments=trace_records(context.store, stored, left_out=left_out),
        )

    return router


def trace_page(context: Context, name: str, query: TraceQuery) -> TracePage:
    """Return a page of a dataset's traces. Raises the errors of `find_dataset` and `Selection.exact`."""
    dataset = find_dataset(context.store, name)
    address = Address(**query.model_dump(exclude={"limit", "offset", "dataset"}))
    selection = Selection.exact(context.store, context.evaluators, dataset, address)
    where, order = selection.where, selection.order
    page = browse(context.store, dataset.id, where, order, query.limit, query.offset)
    return TracePage(
        dataset=name,
        evaluator=selection.about.key,
        errors="redundant" if page.on_redundancy else "invalid",
        total=page.total,
        offset=query.offset,
        traces=[_line(row) for row in page.rows],
    )


def step_infos(trace: Trace) -> list[StepInfo]:
    return [
        StepInfo(
            step=number,
            substeps=list(step.substeps),
            label=step.label.text if step.label is not None else None,  # type: ignore[arg-type]
            valid=step.valid,
            share=step.share,
        )
        for number, step in enumerate(trace.steps, start=1)
    ]


def _line(row: BrowseRow) -> TraceLine:
    changed: dict[str, Any] = {
        "trace": row.trace_id,
        "position": row.position + 1,
        "steps": row.n_steps,
        "substeps": row.n_substeps,
        "first_error": _number(row.first_error),
        "found_error": _number(row.first_wrong),
    }
    same = TraceLine.model_fields.keys() - changed.keys()
    return TraceLine(**changed, **{name: getattr(row, name) for name in same})


def _number(index: int | None) -> int | None:
    return None if index is None else index + 1


_FAILURES: dict[int | str, dict[str, object]] = {
    status: {"model": Failure, "description": text}
    for status, text in (
        (403, "Not allowed here"),
        (404, "Not found"),
        (413, "More than 1 MB"),
        (422, "Invalid, too long for the evaluator, or too much to compute for one request"),
        (429, "Too many requests are waiting; try again after the seconds in Retry-After"),
        (502, "The server behind the evaluator cannot be reached, or answers incorrectly"),
        (503, "The database does not answer, memory is short, or the request took too long; try again later"),
    )
}

Document = Mapping[str, Any]


def add_api(application: FastAPI, store: Store, evaluators: Evaluators, *, read_only: bool, seconds: float) -> None:
    """Mount the API at `API`, and add the routes that imitate other reward-model servers at the root."""
    application.mount(API, build_api(store, evaluators, read_only=read_only, seconds=seconds))
    application.include_router(reward_routes(Context(store, evaluators, read_only, seconds)))
    application.add_exception_handler(RequestValidationError, _invalid)


def build_api(
    store: Store, evaluators: Evaluators, *, read_only: bool = False, seconds: float = REQUEST_SECONDS
) -> FastAPI:
    """Build the application that is mounted at `API`. With `read_only`, no route changes the store. Computing the
    answer to a request may take at most `seconds`."""
    context = Context(store, evaluators, read_only, seconds)
    api = FastAPI(
        title="StepSight",
        version="1",
        description="Judges every step of worked solutions, and reads the store. Errors are `{error, hint}`.",
        docs_url=None,
        redoc_url=None,
        responses=_FAILURES,
    )
    for routes in (score_routes, evaluator_routes, trace_routes, job_routes):
        api.include_router(routes(context))
    answer_errors(api)
    api.add_exception_handler(RequestValidationError, _invalid)
    api.add_exception_handler(HTTPException, _http_error_response)
    api.add_exception_handler(ClientDisconnect, _disconnected_response)

    @api.get("/docs", include_in_schema=False, dependencies=[Depends(RequiresRight(*LOOKING))])
    def docs() -> HTMLResponse:
        return HTMLResponse(description_html(api.openapi()))

    return api


async def _invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    if isinstance(first["input"], bytes):
        hint = "Add the header Content-Type: application/json."
        return failure_response(request.scope, 422, "The body was not sent as JSON.", hint)
    where = ".".join(str(part) for part in first["loc"] if part != "body") or "the body"
    value = f", found {first['input']!r:.60}" if first["type"] not in ("missing", "json_invalid") else ""
    message = f"{where}: {first['msg']}{value}."
    return failure_response(request.scope, 422, message, f"{API}/docs says what is expected.")


async def _http_error_response(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    messages = {404: "There is no such route.", 405: "This route does not support that method."}
    return failure_json(error.status_code, messages.get(error.status_code, str(error.detail)), f"See {API}/docs.")


async def _disconnected_response(request: Request, error: Exception) -> Response:
    # Nobody receives this response. Servers log this status for a client that has disconnected.
    return Response(status_code=499)


def description_html(document: Document) -> Markup:
    """Render the page that describes every route with its input and output. `document` is the API's OpenAPI
    document."""
    return render("api/description.html", document=document, json=json.dumps, example=partial(_example, document))


def _example(document: Document, body: Document | None) -> dict[str, Any]:
    """Build an example of a request body from the examples of its fields. Fields without an example are left
    out."""
    if body is None:
        return {}
    schema = document["components"]["schemas"][body["$ref"].rpartition("/")[2]]
    return {key: value["examples"][0] for key, value in schema["properties"].items() if "examples" in value}
