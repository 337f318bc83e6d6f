"""The Jobs page: evaluators judging datasets in the background, and other jobs, with their progress.

The page's script refreshes the list every few seconds.
"""

from datetime import timedelta

from fastapi import Depends, Request
from fastapi.responses import HTMLResponse
from fastapi.routing import APIRouter
from markupsafe import Markup

from stepsight.app.jobs.kinds import KINDS
from stepsight.app.scoring.evaluators import Evaluators
from stepsight.app.web.access import RequiresRight, Right, has_right
from stepsight.app.web.html import render
from stepsight.app.web.pages import PageContent, address_page
from stepsight.storage.database.jobs_schema import State
from stepsight.storage.database.schema import now
from stepsight.storage.database.store import Store
from stepsight.storage.jobs.jobs import list_jobs
from stepsight.storage.traces.queries import list_datasets

_SHOWN = 50
# A finished job is folded after this time.
_IN_VIEW = timedelta(hours=1)
_MODES = (("hindsight", "hindsight (online and offline)"), ("offline", "offline"), ("online", "online"))
_STATES = {State.QUEUED: "waiting", State.RUNNING: "running", State.DONE: "done", State.FAILED: "failed",
           State.CANCELLED: "cancelled"}  # fmt: skip


def router(store: Store, evaluators: Evaluators, *, read_only: bool = False) -> APIRouter:
    """Build the routes of the page and of its list, which the page's script requests repeatedly."""

    def shown(request: Request) -> Markup:
        offers_nothing = read_only or not has_right(request, Right.WRITE)
        chosen = [request.query_params.get(name, "") for name in ("dataset", "evaluator")]
        return jobs_html(store, evaluators, *chosen, read_only=offers_nothing)

    routes = address_page("Jobs", lambda _, request: PageContent(render("jobs/page.html", jobs=shown(request))))

    @routes.get("/jobs/list", dependencies=[Depends(RequiresRight(Right.READ))])
    def jobs_list(request: Request) -> HTMLResponse:
        return HTMLResponse(shown(request))

    return routes


def jobs_html(
    store: Store, evaluators: Evaluators, dataset: str = "", evaluator: str = "", *, read_only: bool = False
) -> Markup:
    """Render the newest jobs and, unless `read_only`, the form that starts a job. `dataset` and `evaluator` are
    preselected in the form."""
    jobs, since = list_jobs(store, _SHOWN), now() - _IN_VIEW
    return render(
        "jobs/list.html",
        form="" if read_only else judge_form(store, evaluators, dataset, evaluator),
        jobs=jobs,
        old=[job for job in jobs if job.state == State.DONE and job.finished and job.finished < since],
        states=_STATES,
        progress=lambda job: KINDS[job.task].progress(job),
        read_only=read_only,
    )


def judge_form(store: Store, evaluators: Evaluators, dataset: str, evaluator: str = "") -> Markup:
    """Render the form for having an evaluator judge a dataset, with `dataset` and `evaluator` preselected. If the
    store is empty, only a hint is rendered."""
    return render(
        "jobs/start.html",
        datasets=[(row.name, f"{row.name} ({row.traces:,})") for row in list_datasets(store)],
        evaluators=[(name, name) for name in evaluators.all_names],
        modes=_MODES,
        chosen=dataset,
        evaluator=evaluator,
    )
