"""The routes by which the Data page renames, archives and deletes datasets."""

from fastapi import APIRouter, Depends, Request, params
from fastapi.responses import HTMLResponse
from starlette.responses import Response

from stepsight.app.access.rights import RequiresRight, Right, user_of_request
from stepsight.app.web.html import render
from stepsight.storage.database.store import ForbiddenError, Store
from stepsight.storage.traces.dataset_changes import (
    archive_dataset,
    delete_dataset,
    read_dependents,
    rename_dataset,
)


def add_dataset_routes(routes: APIRouter, store: Store) -> None:
    """Add the routes to the Data page's. The application turns the `UserError`s they raise into responses."""

    @routes.get("/dataset")
    def show(dataset: str = "") -> HTMLResponse:
        """Show what hangs on a dataset, and the forms that change it."""
        return HTMLResponse(render("data/dataset.html", name=dataset, dependents=read_dependents(store, dataset)))

    @routes.post("/dataset/rename")
    def rename(dataset: str = "", name: str = "") -> Response:
        rename_dataset(store, dataset, name.strip())
        return Response(status_code=204)

    @routes.post("/dataset/archive")
    def archive(dataset: str = "") -> Response:
        archive_dataset(store, dataset)
        return Response(status_code=204)

    @routes.post("/dataset/unarchive")
    def unarchive(dataset: str = "") -> Response:
        archive_dataset(store, dataset, archived=False)
        return Response(status_code=204)

    @routes.post("/dataset/delete")
    def delete(request: Request, dataset: str = "") -> Response:
        delete_dataset(store, dataset, user_of_request(request))
        return Response(status_code=204)


def write_dependencies(read_only: bool) -> list[params.Depends]:
    """Return what routes depend on that change the data: the right to do so, and a server that is not read-only."""
    return [Depends(RequiresRight(Right.WRITE)), *([Depends(_refuse)] if read_only else [])]


def _refuse() -> None:
    raise ForbiddenError("This server is read-only.", "Start StepSight on your own machine to change data.")
