"""The dialog in which datasets, scores, jobs and campaigns are renamed or deleted, on whatever page it is opened,
and its routes.

`GET /changes/KIND` renders the dialog; `POST /changes/KIND/ACTION` carries out `rename` or `delete`.
The query names the thing, such as `?dataset=sums&evaluator=3` for scores.
"""

from fastapi import APIRouter, Depends, Request, params
from fastapi.responses import HTMLResponse
from starlette.responses import Response

from stepsight.app.web.access import RequiresRight, Right, user_of_request
from stepsight.app.web.html import render
from stepsight.storage.changes import KINDS, find_thing
from stepsight.storage.database.store import ForbiddenError, Store

# The right needed to change something of a kind, if it is not the right to write.
_RIGHTS = {"campaign": Right.MANAGE}


def change_routes(store: Store, *, read_only: bool = False) -> APIRouter:
    """Build the routes. The application turns the `UserError`s they raise into responses."""
    routes = APIRouter(include_in_schema=False)
    for kind in KINDS:
        needs = write_dependencies(read_only, _RIGHTS.get(kind, Right.WRITE))
        of_kind = APIRouter(prefix=f"/changes/{kind}", dependencies=needs)
        _add_deleting(of_kind, store, kind)
        _add_renaming(of_kind, store, kind)
        routes.include_router(of_kind)
    return routes


def _add_deleting(routes: APIRouter, store: Store, kind: str) -> None:
    @routes.get("")
    def show(request: Request) -> HTMLResponse:
        thing = find_thing(kind, request.query_params)
        return HTMLResponse(render("changes.html", thing=thing, dependents=thing.read(store)))

    @routes.post("/delete")
    def delete(request: Request) -> Response:
        find_thing(kind, request.query_params).delete(store, user_of_request(request))
        return Response(status_code=204)


def _add_renaming(routes: APIRouter, store: Store, kind: str) -> None:
    if KINDS[kind].renames:

        @routes.post("/rename")
        def rename(request: Request, name: str = "") -> Response:
            find_thing(kind, request.query_params).rename(store, name.strip())
            return Response(status_code=204)


def write_dependencies(read_only: bool, right: Right = Right.WRITE) -> list[params.Depends]:
    """Return the dependencies of routes that change the store: the right to do so, and a server that is not
    read-only."""
    return [Depends(RequiresRight(right)), *([Depends(_refuse)] if read_only else [])]


def _refuse() -> None:
    raise ForbiddenError("This server is read-only.", "To change something, start StepSight on your own machine.")
