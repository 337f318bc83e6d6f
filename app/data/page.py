"""The Data page: the datasets in the store, the catalogue of benchmarks, and the files waiting to be imported.

The page's script uploads files, previews and imports them by the routes of `file_router`, and refreshes the rest of
the page while imports are running.
"""

import json
from collections.abc import Sequence
from datetime import timedelta
from typing import Annotated
from urllib.parse import urlencode

from fastapi import Depends, Request
from fastapi.responses import HTMLResponse
from fastapi.routing import APIRouter
from markupsafe import Markup
from pydantic import Field
from starlette.concurrency import run_in_threadpool
from starlette.responses import JSONResponse, Response

from stepsight.app.web.access import RequiresRight, Right, find_user_of, has_right, user_of_request
from stepsight.app.web.changes import write_dependencies
from stepsight.app.web.html import render
from stepsight.app.web.pages import PageContent, address_page, body
from stepsight.core.errors import UserError, located
from stepsight.core.validation import Model
from stepsight.storage.database.jobs_schema import Job, State, Task
from stepsight.storage.database.schema import check_name
from stepsight.storage.database.store import Store
from stepsight.storage.importers import KINDS, THINKING
from stepsight.storage.importers.catalogue import benchmarks
from stepsight.storage.importers.column_mapping import LABELS, THOUGHTS, ColumnMap
from stepsight.storage.importers.column_mapping import NAME as COLUMNS
from stepsight.storage.importers.recognition import Finding, Holds
from stepsight.storage.jobs.imports import BenchmarkImport, FileImport, import_benchmark, import_upload
from stepsight.storage.jobs.jobs import list_requests
from stepsight.storage.jobs.preview import Preview, prepare, preview
from stepsight.storage.jobs.uploads import LARGEST, Receiving, Upload, get_upload, list_uploads, remove_upload
from stepsight.storage.judgments.evaluators import count_evaluators
from stepsight.storage.labelling.plan import GALLERY
from stepsight.storage.traces.queries import find_dataset, list_datasets, list_left_out

PATH = "/data"
# How long the page reports a failed import.
_SHOWN_FAILURES = timedelta(hours=1)
# The settings of an import besides the columns.
_SETTINGS = ("kind", "dataset", "evaluator", "campaign", "annotator", "mode", "leave_out")


def router(store: Store, *, read_only: bool = False) -> APIRouter:
    """Build the routes of the page, of the part that changes during imports, and of the downloads of bad rows."""

    def may_add(request: Request) -> bool:
        return not read_only and has_right(request, Right.WRITE)

    def uploads_of(request: Request) -> list[Upload]:
        user = find_user_of(request)
        return list_uploads(store, user.id) if user and may_add(request) else []

    def shown(request: Request) -> PageContent:
        uploads = uploads_of(request)
        jobs = list_requests(store, Task.IMPORT, _SHOWN_FAILURES)
        added = {job.request.get("upload") for job in jobs}
        return PageContent(
            render(
                "data/page.html",
                may_add=may_add(request),
                uploads=[upload for upload in uploads if upload.id not in added],
                largest=LARGEST,
                state=state_html(store, may_add=may_add(request), uploads=uploads),
            )
        )

    routes = address_page("Data", lambda _, request: shown(request))

    @routes.get(f"{PATH}/state", dependencies=[Depends(RequiresRight(Right.READ))])
    def state(request: Request) -> HTMLResponse:
        return HTMLResponse(state_html(store, may_add=may_add(request), uploads=uploads_of(request)))

    @routes.get(f"{PATH}/left-out", dependencies=[Depends(RequiresRight(Right.READ))])
    def left_out(request: Request) -> Response:
        dataset = find_dataset(store, request.query_params.get("dataset", ""))
        lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in list_left_out(store, dataset.id))
        disposition = {"content-disposition": 'attachment; filename="left-out.jsonl"'}
        return Response("".join(lines), media_type="application/jsonl", headers=disposition)

    return routes


def state_html(store: Store, *, may_add: bool, uploads: Sequence[Upload] = ()) -> Markup:
    """Render the running and failed imports, the datasets, and the catalogue. A failed import of one of `uploads`
    can be corrected."""
    datasets = list_datasets(store)
    jobs = list_requests(store, Task.IMPORT, _SHOWN_FAILURES)
    here = {dataset.name for dataset in datasets}
    titles = {"saved": "traces saved on Score", "columns": "a table under its own column names"}
    titles |= {kind.name: kind.title for kind in KINDS.values()}
    evaluators = count_evaluators(store)
    # The job that is fetching a benchmark, or that failed to fetch it.
    fetching = {job.request.get("benchmark"): job for job in jobs}
    return render(
        "data/state.html",
        may_add=may_add,
        jobs=jobs,
        working=any(job.state.is_active for job in jobs),
        uploads={upload.id: upload for upload in uploads},
        settings=_settings,
        running=State.RUNNING,
        failed=State.FAILED,
        datasets=[(row, evaluators.get(row.id, 0), titles.get(row.kind, row.kind)) for row in datasets],
        is_new=here <= {GALLERY},
        catalogue=[
            (benchmark, benchmark.dataset in here, fetching.get(benchmark.dataset))
            for benchmark in benchmarks()
            if benchmark.can_be_fetched
        ],
        elsewhere=[benchmark for benchmark in benchmarks() if not benchmark.can_be_fetched],
    )


def _settings(job: Job) -> str:
    """Return the settings of an import as the query with which the preview of its file is opened again."""
    given = {name: job.request.get(name) for name in _SETTINGS} | (job.request.get("columns") or {})
    return urlencode({name: int(value) if value is True else value for name, value in given.items() if value})


_MOST_STEPS = 6
# The kinds of file that traces can be read from.
_KINDS = ((COLUMNS, "a table: name its columns"), *((kind.name, kind.title) for kind in KINDS.values()))
# The fields that the user fills in besides the kind.
_TYPED = ("dataset", "evaluator", "campaign", "annotator", "mode", "leave_out")


class Files(Model):
    """The files to import, in order."""

    files: Annotated[list[FileImport], Field(max_length=100, fail_fast=True)]


def file_router(store: Store, *, read_only: bool = False) -> APIRouter:
    """Build the routes. The application turns the `UserError`s they raise into responses."""
    routes = APIRouter(include_in_schema=False, dependencies=write_dependencies(read_only), prefix="/data")
    _add_sending(routes, store)
    _add_adding(routes, store)
    return routes


def _add_sending(routes: APIRouter, store: Store) -> None:
    @routes.post("/uploads")
    async def send(request: Request, name: str = "") -> JSONResponse:
        """Receive the file that is the body of the request."""
        prepare()
        size, content = int(request.headers.get("content-length", "0")), request.stream()
        try:
            with await run_in_threadpool(Receiving, store, user_of_request(request).id, name, size) as receiving:
                async for piece in content:
                    await run_in_threadpool(receiving.add, piece)
                upload = await run_in_threadpool(receiving.finish)
        except UserError:
            if size <= LARGEST:
                # Browsers do not show a response that arrives before they have sent the whole request.
                async for _ in content:
                    pass
            raise
        return JSONResponse({"upload": upload.id}, status_code=201)

    @routes.post("/uploads/{upload:number}/remove")
    def remove(request: Request, upload: int) -> Response:
        remove_upload(store, upload, user_of_request(request).id)
        return Response(status_code=204)


def _add_adding(routes: APIRouter, store: Store) -> None:
    @routes.get("/uploads/{upload:number}")
    def show(request: Request, upload: int) -> HTMLResponse:
        """Preview an uploaded file, read with the settings in the query. Without a query, the kind of file is
        detected."""
        given = get_upload(store, upload, user_of_request(request).id)
        return HTMLResponse(_file_html(store, given, dict(request.query_params)))

    @routes.post("/imports")
    def add(request: Request, given: Annotated[Files, body(Files)]) -> JSONResponse:
        user = user_of_request(request)
        # Traces are added before their scores and labels.
        imports = sorted(given.files, key=lambda file: list(Holds).index(Holds(file.holds)))
        if len({file.upload for file in imports}) < len(imports):
            raise UserError("The same file was added twice.", "Add it once.")
        # Either all imports are started or none.
        for file in imports:
            with located(get_upload(store, file.upload, user.id).name):
                _check(file)
        return _started_response([import_upload(store, file, user.id) for file in imports])

    @routes.post("/fetch")
    def fetch(given: Annotated[BenchmarkImport, body(BenchmarkImport)]) -> JSONResponse:
        return _started_response([import_benchmark(store, given)])


def _check(request: FileImport) -> None:
    names = {"dataset": request.dataset}
    if request.holds == Holds.LABELS:
        names["campaign"] = request.campaign
    if request.holds == Holds.SCORES:
        names["evaluator"] = request.evaluator
    for what, name in names.items():
        if not name.strip():
            raise UserError(f"the name of the {what} is empty.", "Enter a name.")
        check_name(name, f"the name of the {what}")
    if request.holds == Holds.LABELS and request.annotator:
        check_name(request.annotator, "the name of the annotator")


def _started_response(jobs: list[Job]) -> JSONResponse:
    return JSONResponse({"jobs": [job.id for job in jobs]}, status_code=201)


def _file_html(store: Store, upload: Upload, given: dict[str, str]) -> str:
    try:
        shown = preview(store, upload, given.get("kind", ""), _columns(given))
    except UserError as error:
        shown = Preview(Finding(Holds.TRACES, "", ""), upload=upload, error=error)
    return render(
        "data/file.html",
        shown=shown,
        given=dict.fromkeys(_TYPED, "") | given,
        kinds=_KINDS,
        labels=list(LABELS.items()),
        thoughts=list(THOUGHTS.items()),
        thinking=THINKING,
        traces=[(trace, list(trace.steps[:_MOST_STEPS])) for trace in shown.traces],
        columns=COLUMNS,
    )


def _columns(given: dict[str, str]) -> ColumnMap | None:
    names = ("problem", "steps", "labels", "labels_as", "id", "thoughts")
    chosen = {name: given[name] for name in names if given.get(name)}
    if not {"problem", "steps", "thoughts"} & given.keys():
        return None
    if chosen.get("labels_as") not in LABELS:
        # What the labels mean is recognised from their values.
        chosen["labels_as"] = ""
    if chosen.get("thoughts", "aside") not in THOUGHTS:
        chosen.pop("thoughts")
    return ColumnMap(**({"problem": "", "steps": ""} | chosen))
