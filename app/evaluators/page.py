"""The Evaluators page: the evaluators that can score here, and those that can be fetched from the model hub.

It includes the route that fetches them. The page's script refreshes the changing part of the page during a fetch.
"""

from datetime import timedelta
from functools import cache
from typing import Annotated

from fastapi import Depends, Request
from fastapi.responses import HTMLResponse
from fastapi.routing import APIRouter
from markupsafe import Markup
from starlette.responses import JSONResponse

from stepsight.app.evaluators.model_list import USUAL_TOKENS, judges, offers, ordered, unfit
from stepsight.app.jobs.kinds import fetch_progress
from stepsight.app.scoring.evaluators import Evaluators
from stepsight.app.web.access import RequiresRight, Right, has_right
from stepsight.app.web.baseline_check import card_id
from stepsight.app.web.help import document_html
from stepsight.app.web.html import render
from stepsight.app.web.pages import PageContent, address_page, body
from stepsight.core.errors import UserError
from stepsight.core.hubs.hub_cache import HubModel, find_fetched, free_disk, list_fetched
from stepsight.core.hubs.hub_download import check_disk
from stepsight.core.hubs.hub_lookup import look_up
from stepsight.core.hubs.public import BenchmarkPart, find_public
from stepsight.core.models.location import shipped_evaluators
from stepsight.core.models.memory import needed_memory, total_memory
from stepsight.core.models.placement import STORED, expected_dtype
from stepsight.core.paths import asset
from stepsight.core.validation import Model
from stepsight.storage.database.jobs_schema import Job, State, Task
from stepsight.storage.database.store import ForbiddenError, Store
from stepsight.storage.jobs.jobs import list_requests, start_fetch

PATH = "/evaluators"
# The number of public evaluators shown at first; the others are folded.
_SHOWN = 8
# For this long, a failed fetch is reported at the top of the page, and after that only beside its model.
_SHOWN_FAILURES = timedelta(hours=1)
_KEPT_FAILURES = timedelta(days=365)


class FetchRequest(Model):
    """A request to fetch a model from the hub."""

    repo: str


def router(store: Store, evaluators: Evaluators, *, read_only: bool = False) -> APIRouter:
    """Build the routes of the page and of fetching. The application turns any `UserError` that they raise into a
    response."""

    def shown(request: Request) -> Markup:
        may_fetch = not read_only and has_right(request, Right.WRITE)
        return state_html(store, evaluators, may_fetch=may_fetch)

    def content(request: Request) -> PageContent:
        may_fetch = not read_only and has_right(request, Right.WRITE)
        return PageContent(render("evaluators/page.html", may_fetch=may_fetch, state=shown(request)))

    routes = address_page("Evaluators", lambda _, request: content(request), "shelf")

    @routes.get(f"{PATH}/state", dependencies=[Depends(RequiresRight(Right.READ))])
    def state(request: Request) -> HTMLResponse:
        return HTMLResponse(shown(request))

    @routes.post(f"{PATH}/fetch", dependencies=[Depends(RequiresRight(Right.WRITE))])
    def fetch(given: Annotated[FetchRequest, body(FetchRequest)]) -> JSONResponse:
        """Start a job that fetches a model. The hub is queried first, so that a refusal is reported at once."""
        if read_only:
            raise ForbiddenError("This server is read-only.", "Start StepSight on your own machine to fetch one.")
        return JSONResponse({"job": begin(store, evaluators, given).id}, status_code=201)

    return routes


def begin(store: Store, evaluators: Evaluators, request: FetchRequest) -> Job:
    """Start a job that fetches a model. Raises `UserError` if the hub does not provide the model, or if this
    machine has no room for it."""
    repo = request.repo.strip()
    fetched = find_fetched(repo) if repo else None
    if fetched is not None:
        return start_fetch(store, fetched)
    _check_memory(evaluators, repo, None)
    remote = look_up(repo)
    _check_memory(evaluators, repo, remote)
    check_disk(remote)
    return start_fetch(store, remote)


def _check_memory(evaluators: Evaluators, repo: str, remote: HubModel | None) -> None:
    """Raise `UserError` if this machine has too little memory for a model. The number of parameters is the one that
    the model's authors publish or, failing that, the one that the hub (`remote`) gives."""
    public = find_public(repo)
    parameters = public.all_parameters if public else remote.parameters if remote else 0
    memory = (
        needed_memory(parameters, expected_dtype(public.stored if public else "", evaluators.place))
        if parameters
        else 0
    )
    problem = unfit(memory, 0, evaluators.place)
    if problem:
        raise UserError(
            f"{repo}: {problem[0].lower()}{problem[1:]}",
            "Choose a smaller one, load the weights in bfloat16, or use a machine with more memory.",
        )


def state_html(store: Store, evaluators: Evaluators, *, may_fetch: bool) -> Markup:
    """Render the changing part of the page: running fetches, the evaluators that can score on this server, those
    that were fetched but never loaded with weights of the current type, those of which only imported scores are
    known, and the public ones."""
    # The page refreshes for the last time when the fetch ends, and this content stays.
    evaluators.look_again()
    here = [evaluators.local(name) for name in evaluators.all_names]
    repos = {local.fetched.repo for local in here if local.fetched is not None}
    fetched = list_fetched()
    unloaded = [model for model in fetched if model.repo not in repos and not evaluators.is_given(model)]
    offered = offers(evaluators.place, {model.repo for model in fetched})
    fetches = list_requests(store, Task.FETCH, _KEPT_FAILURES)
    active = {job.subject: job for job in fetches if job.state.is_active}
    # The last fetch of each model, if it failed and the model cannot score here.
    last = {job.subject: job for job in fetches}
    failed = {repo: job for repo, job in last.items() if job.state == State.FAILED and repo not in repos}
    recent = {job.id for job in list_requests(store, Task.FETCH, _SHOWN_FAILURES)}
    in_a_row = {offer.public.id for offer in offered} | {model.repo for model in unloaded}
    jobs = [
        job
        for job in fetches
        if job.state.is_active
        or (failed.get(job.subject) is job and (job.subject not in in_a_row or job.id in recent))
    ]
    readable = ordered(offer for offer in offered if not offer.unreadable)
    # Models that are in use or being fetched are shown wherever they are in the list.
    shown = [offer for offer in readable if offer.is_here or offer.public.id in active or offer.public.id in failed]
    shown += [offer for offer in readable if offer not in shown and not offer.unfit][: max(0, _SHOWN - len(shown))]
    return render(
        "evaluators/state.html",
        may_fetch=may_fetch,
        jobs=jobs,
        working=bool(active),
        running=State.RUNNING,
        failed=State.FAILED,
        progress=fetch_progress,
        failures=failed,
        memory=total_memory() if evaluators.place.on_processor else None,
        on_processor=evaluators.place.on_processor,
        usual_tokens=USUAL_TOKENS,
        disk=free_disk(),
        here=here,
        unloaded=unloaded,
        shown=shown,
        folded=[offer for offer in readable if offer not in shown],
        advised=next((offer for offer in readable if offer.can_be_fetched and offer.f1 is not None), None),
        coming=active,
        parts=list(BenchmarkPart),
        judges=judges,
        dtype=evaluators.place.dtype if evaluators.place.dtype != STORED else "",
        size_of=_size_of,
        cards=[
            (local, card)
            for local in here
            if local.origin == "shipped" and (card := card_html(local.description.name))
        ],
        card_id=card_id,
    )


def _size_of(parameters: int) -> str:
    """Format a number of parameters as in the names of models, such as `0.5B` or `7B`."""
    if parameters < 1e6:
        return f"{parameters / 1e3:.0f}k"
    return f"{parameters / 1e6:.2g}M" if parameters < 1e8 else f"{parameters / 1e9:.2g}B"


@cache
def card_html(name: str) -> Markup:
    """Render the model card of a shipped evaluator. Returns empty markup for any other evaluator."""
    if name not in shipped_evaluators():
        return Markup()
    path = asset("evaluators", name) / "README.md"
    return document_html(path.read_text(encoding="utf-8"), within=name) if path.is_file() else Markup()
