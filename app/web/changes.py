"""The dialog in which datasets, scores, jobs and campaigns are renamed, archived or deleted, on whatever page it is
opened, and its routes.

`GET /changes/KIND` renders the dialog; `POST /changes/KIND/ACTION` carries out `rename`, `archive`, `unarchive` or
`delete`. The query names the thing, such as `?dataset=sums&evaluator=3` for scores.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from fastapi import APIRouter, Depends, Request, params
from fastapi.responses import HTMLResponse
from starlette.datastructures import QueryParams
from starlette.responses import Response

from stepsight.app.access.rights import RequiresRight, Right, user_of_request
from stepsight.app.web.html import render
from stepsight.app.web.page_query import read_number
from stepsight.storage.database.store import ForbiddenError, Store
from stepsight.storage.jobs.job_changes import ChangeableJobs
from stepsight.storage.judgments.score_changes import ChangeableScores, list_scored
from stepsight.storage.labelling.campaign_changes import ChangeableCampaign
from stepsight.storage.people.changes import Changeable
from stepsight.storage.traces.dataset_changes import ChangeableDataset


class _Kind(NamedTuple):
    """A kind of thing: what it can undergo, how one is found by the query, and the right to change it."""

    thing: type[Changeable[Any]]
    find: Callable[[QueryParams], Changeable[Any]]
    right: Right = Right.WRITE


_KINDS = {
    "dataset": _Kind(ChangeableDataset, lambda query: ChangeableDataset(query.get("dataset", ""))),
    "scores": _Kind(
        ChangeableScores,
        lambda query: ChangeableScores(query.get("dataset", ""), read_number(query, "evaluator")),
    ),
    "job": _Kind(ChangeableJobs, lambda query: ChangeableJobs((read_number(query, "job"),))),
    "ended-jobs": _Kind(ChangeableJobs, lambda query: ChangeableJobs()),
    "campaign": _Kind(
        ChangeableCampaign, lambda query: ChangeableCampaign(read_number(query, "campaign")), Right.MANAGE
    ),
}


def change_routes(store: Store, *, read_only: bool = False) -> APIRouter:
    """Build the routes. The application turns the `UserError`s they raise into responses."""
    routes = APIRouter(include_in_schema=False)
    for name, kind in _KINDS.items():
        of_kind = APIRouter(prefix=f"/changes/{name}", dependencies=write_dependencies(read_only, kind.right))
        _add_deleting(of_kind, store, kind)
        _add_renaming(of_kind, store, kind)
        routes.include_router(of_kind)
    return routes


def _add_deleting(routes: APIRouter, store: Store, kind: _Kind) -> None:
    @routes.get("")
    def show(request: Request) -> HTMLResponse:
        thing = kind.find(request.query_params)
        dependents = thing.read(store)
        scored = list_scored(store, thing.name) if isinstance(thing, ChangeableDataset) else {}
        return HTMLResponse(render("changes.html", thing=thing, dependents=dependents, scored=scored))

    @routes.post("/delete")
    def delete(request: Request) -> Response:
        kind.find(request.query_params).delete(store, user_of_request(request))
        return Response(status_code=204)


def _add_renaming(routes: APIRouter, store: Store, kind: _Kind) -> None:
    if kind.thing.renames:

        @routes.post("/rename")
        def rename(request: Request, name: str = "") -> Response:
            kind.find(request.query_params).rename(store, name.strip())
            return Response(status_code=204)

    if kind.thing.archives:

        @routes.post("/archive")
        def archive(request: Request) -> Response:
            kind.find(request.query_params).archive(store)
            return Response(status_code=204)

        @routes.post("/unarchive")
        def unarchive(request: Request) -> Response:
            kind.find(request.query_params).archive(store, archived=False)
            return Response(status_code=204)


def write_dependencies(read_only: bool, right: Right = Right.WRITE) -> list[params.Depends]:
    """Return what routes depend on that change the store: the right to do so, and a server that is not
    read-only."""
    return [Depends(RequiresRight(right)), *([Depends(_refuse)] if read_only else [])]


def _refuse() -> None:
    raise ForbiddenError("This server is read-only.", "Start StepSight on your own machine to change data.")
