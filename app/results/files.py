"""Measurements as files: tables as CSV, LaTeX and Markdown, and the report of a dataset."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

from fastapi import APIRouter, Depends, Request
from fastapi.responses import FileResponse, PlainTextResponse, Response
from plotly import __file__ as plotly_module

from stepsight.app.access.rights import Needs, Right
from stepsight.app.results.address import ResultsAddress
from stepsight.app.results.measurements import MeasuredDataset, Measurements
from stepsight.app.results.overview import gather, overview_table
from stepsight.app.web.background_cache import Pending
from stepsight.core.errors import UserError
from stepsight.storage.database.store import NotFoundError, Store
from stepsight.storage.traces.queries import find_dataset, list_datasets
from stepsight.training.evaluate.evaluation import MODES
from stepsight.training.report.results import measured_on, slug
from stepsight.training.report.tables import Table, to_csv, to_latex, to_markdown

PLOTLY = "/stepsight/plotly/plotly.min.js"
_WRITERS = {"csv": (to_csv, "text/csv"), "tex": (to_latex, "text/x-tex"), "md": (to_markdown, "text/markdown")}
# A file is asked for by a page that has shown its numbers: they are there, or soon made again.
_PATIENCE = 60.0

Computed = TypeVar("Computed")


class _NotYetError(UserError):
    """The requested figures are still being measured."""


def result_files(store: Store, measurements: Measurements) -> APIRouter:
    """The routes of the files, and of Plotly's script for the figures of the page."""
    router = APIRouter(include_in_schema=False)

    needs_reading = [Depends(Needs(Right.READ))]

    @router.get("/results/table", dependencies=needs_reading)
    def table(request: Request) -> Response:
        return _file(lambda: _table(store, measurements, request.query_params))

    @router.get("/results/report", dependencies=needs_reading)
    def report(request: Request) -> Response:
        return _file(lambda: _report(store, measurements, ResultsAddress.exact(request.query_params)))

    @router.get(PLOTLY)
    def plotly() -> Response:
        path = Path(plotly_module).parent / "package_data" / "plotly.min.js"
        # Pages ask for it with its version.
        kept = {"cache-control": "public, max-age=31536000, immutable"}
        return FileResponse(path, media_type="text/javascript", headers=kept)

    return router


def _file(make: Callable[[], tuple[str, str, str]]) -> Response:
    """A download of a text, its name and its kind."""
    try:
        text, name, kind = make()
    except _NotYetError as error:
        return PlainTextResponse(str(error), 503, headers={"retry-after": "5"})
    return Response(text, media_type=kind, headers={"content-disposition": f'attachment; filename="{name}"'})


def _table(store: Store, measurements: Measurements, query: Mapping[str, str]) -> tuple[str, str, str]:
    address = ResultsAddress.exact(query)
    suffix = query.get("format", "csv")
    if suffix not in _WRITERS:
        raise UserError(f"The format is {suffix!r:.40}, expected {', '.join(_WRITERS)}.", "Check the address.")
    table = (
        _of_dataset(store, measurements, address, query.get("table", ""))
        if address.dataset
        else _of_overview(store, measurements, address)
    )
    write, kind = _WRITERS[suffix]
    return write(table), f"{table.name}.{suffix}", kind


def _of_overview(store: Store, measurements: Measurements, address: ResultsAddress) -> Table:
    mode = address.chosen_mode(MODES)
    overview = gather(measurements, list_datasets(store), mode, address.against)
    if overview.waiting:
        raise _NotYetError("The datasets are still being measured.", "Try again in a minute.")
    return overview_table(overview.columns, address.chosen_figure, mode, address.against)


def _of_dataset(store: Store, measurements: Measurements, address: ResultsAddress, name: str) -> Table:
    measured = _measured(store, measurements, address)
    mode, errors = address.chosen_mode(measured.modes), address.chosen_errors(measured)
    excerpt = _there(measurements.excerpt(measured, mode, errors, _PATIENCE)).result
    table = excerpt.find_table(name, address.evaluator)
    if table is None:
        raise NotFoundError(f"There is no table {name!r:.80} of {address.dataset}.", "Follow a link of its page.")
    return table


def _report(store: Store, measurements: Measurements, address: ResultsAddress) -> tuple[str, str, str]:
    measured = _measured(store, measurements, address)
    page = _there(measurements.report(measured, _PATIENCE))
    # Not as HTML, into which the server would write nonces.
    return page, f"{slug(measured_on(measured.evaluation))}-report.html", "application/octet-stream"


def _measured(store: Store, measurements: Measurements, address: ResultsAddress) -> MeasuredDataset:
    return _there(measurements.measure(find_dataset(store, address.dataset), address.group, _PATIENCE)).result


def _there(result: Computed | Pending) -> Computed:
    if isinstance(result, Pending):
        raise _NotYetError("This is still being measured.", "Try again in a minute.")
    return result
