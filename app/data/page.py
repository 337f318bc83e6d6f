"""The Data page: the datasets in the store, the catalogue of benchmarks, and the files waiting to be imported.

The page's script uploads files, and refreshes the rest of the page while imports are running.
"""

import json
from collections.abc import Iterator, Sequence
from datetime import timedelta
from urllib.parse import urlencode

from fastapi import Depends, Request
from fastapi.responses import HTMLResponse
from fastapi.routing import APIRouter
from markupsafe import Markup
from starlette.responses import Response

from stepsight.app.access.rights import RequiresRight, Right, find_user_of, has_right
from stepsight.app.web.html import render
from stepsight.app.web.page_route import PageContent, address_page
from stepsight.storage.database.jobs_schema import Job, State, Task
from stepsight.storage.database.store import Store
from stepsight.storage.importers import KINDS
from stepsight.storage.importers.catalogue import Benchmark, benchmarks
from stepsight.storage.jobs.jobs import list_requests
from stepsight.storage.jobs.uploads import LARGEST, Upload, list_uploads
from stepsight.storage.judgments.evaluators import count_evaluators
from stepsight.storage.traces.queries import find_dataset, list_datasets, list_left_out

PATH = "/data"
# The page reports a failed import for this long.
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
    here = {one.name for one in datasets}
    evaluators = count_evaluators(store)
    return render(
        "data/state.html",
        may_add=may_add,
        jobs=jobs,
        working=any(job.state.is_active for job in jobs),
        uploads={upload.id: upload for upload in uploads},
        settings=_settings,
        running=State.RUNNING,
        failed=State.FAILED,
        datasets=[(one, evaluators.get(one.id, 0), _title(one.kind)) for one in datasets],
        catalogue=list(_catalogue(here, jobs)),
    )


def _catalogue(here: set[str], jobs: list[Job]) -> Iterator[tuple[Benchmark, bool, Job | None]]:
    """Yield every benchmark with a flag that is True if it is in the store, and with the job that is fetching it or
    has failed to, if there is one."""
    fetching = {job.request.get("benchmark"): job for job in jobs}
    for benchmark in benchmarks():
        yield benchmark, benchmark.dataset in here, fetching.get(benchmark.dataset)


def _settings(job: Job) -> str:
    """Return the settings of an import as the query with which the preview of its file is opened again."""
    given = {name: job.request.get(name) for name in _SETTINGS} | (job.request.get("columns") or {})
    return urlencode({name: int(value) if value is True else value for name, value in given.items() if value})


def _title(kind: str) -> str:
    """Describe a dataset's kind in words."""
    known = {"saved": "traces saved on Score", "columns": "a table under its own column names"}
    return KINDS[kind].title if kind in KINDS else known.get(kind, kind)
