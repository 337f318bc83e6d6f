"""The Results page: an overview of evaluators by dataset, and all figures on a single dataset.

The URL determines the content. The page's script refreshes the parts that are still being measured.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar, TypeVar
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, Request
from fastapi.responses import FileResponse, Response
from markupsafe import Markup
from plotly import __file__ as plotly_module
from plotly import __version__ as plotly_version

from stepsight.app.browse.evaluator_choice import list_choices
from stepsight.app.results.measurements import MeasuredDataset, Measurements
from stepsight.app.results.tables import (
    FIGURES,
    Figure,
    Links,
    OverviewColumn,
    excerpt_html,
    file_links,
    gather,
    outcomes_html,
    overview_html,
    overview_table,
    sections_html,
)
from stepsight.app.scoring.batcher import ShortError
from stepsight.app.scoring.evaluators import Evaluators
from stepsight.app.web.access import RequiresRight, Right, find_user_of, has_right
from stepsight.app.web.background_cache import Pending
from stepsight.app.web.baseline_check import line_html, shortfalls
from stepsight.app.web.html import EMPTY_STORE, render
from stepsight.app.web.pages import PageContent, PageQuery, Query, address_page, answer_query
from stepsight.core.errors import UserError, counted
from stepsight.core.judgment import Mode
from stepsight.core.metrics.figures import PROTOCOL
from stepsight.core.metrics.reasoneval import Errors
from stepsight.core.metrics.shortcuts import ALL, baselines_of
from stepsight.core.validation import choice
from stepsight.storage.database.store import NotFoundError, Store
from stepsight.storage.judgments.evaluators import evaluators_of, list_evaluators
from stepsight.storage.people.blindness import check_traces
from stepsight.storage.traces.queries import Dataset, find_dataset, list_datasets
from stepsight.training.evaluate.baseline_check import BaselineCheck
from stepsight.training.evaluate.evaluation import MODES
from stepsight.training.report.dataset import change_section, extent
from stepsight.training.report.html import Section
from stepsight.training.report.stored_tables import Conditions, outcome_fields, outcomes_by_field
from stepsight.training.report.tables import Table, slug, to_csv, to_latex, to_markdown

PLOTLY = "/stepsight/plotly/plotly.min.js"
_WRITERS = {"csv": (to_csv, "text/csv"), "tex": (to_latex, "text/x-tex"), "md": (to_markdown, "text/markdown")}
# How many seconds a file waits for its figures, which the page that links to it already shows.
_PATIENCE = 60.0
Computed = TypeVar("Computed")


class ResultsAddress(PageQuery):
    """The query string of the Results page. A field of "" stands for its default.

    If `dataset` is given, the page shows that dataset, or one `group` of its traces. `figure` applies to the
    overview. `against` is the reference for differences. `by` is the basis on which the page of a dataset counts
    outcomes: a metadata field, or `steps` for the number of steps. With `gold=patched`, accepted disputes replace
    gold labels.
    """

    PATH: ClassVar[str] = "/results"

    dataset: str = ""
    group: str = ""
    mode: Annotated[str, choice(MODES)] = ""
    errors: Annotated[str, choice(tuple(Errors))] = ""
    evaluator: str = ""
    by: str = ""
    figure: Annotated[str, choice(FIGURES)] = ""
    against: str = ""
    gold: Annotated[str, choice(("patched",))] = ""

    @property
    def chosen_figure(self) -> Figure:
        return next((figure for figure in FIGURES if figure == self.figure), FIGURES[0])

    def chosen_mode(self, modes: Sequence[Mode]) -> Mode:
        """Return the requested mode if it is among `modes`, and otherwise the first mode."""
        return next((mode for mode in modes if mode == self.mode), modes[0])

    def chosen_errors(self, measured: MeasuredDataset) -> Errors:
        """Return the requested kind of error if the gold labels distinguish it, and otherwise the first kind that
        they distinguish."""
        return next((errors for errors in measured.kinds if errors == self.errors), measured.kinds[0])


@dataclass(frozen=True)
class ResultsPage:
    """The Results page and its downloads."""

    store: Store
    evaluators: Evaluators
    measurements: Measurements

    def routes(self, *, read_only: bool = False) -> APIRouter:
        """Build the routes of the page and its downloads. If `read_only` is True, nobody may start a job."""

        def content(query: Query, request: Request) -> PageContent:
            return self.content(query, may_judge=not read_only and has_right(request, Right.WRITE))

        routes = address_page("Results", content)
        routes.include_router(self.files())
        return routes

    def content(self, query: Query, *, may_judge: bool = False) -> PageContent:
        """Render the page for a query.

        Mistakes in the query are reported above whatever can still be shown. If there are no judgments and
        `may_judge` is True, the page leads to Jobs.
        """

        def page(template: str, problems: Sequence[str], **values: object) -> Markup:
            return render(template, problems=problems, plotly=f"{PLOTLY}?v={plotly_version}", **values)

        def body(address: ResultsAddress, problems: Sequence[str], _: list[UserError]) -> Markup:
            datasets = list_datasets(self.store)
            if not datasets:
                return page("results/failure.html", problems, message=EMPTY_STORE, back=False)
            if not address.dataset:
                return page("results/overview.html", problems, **self._overview(datasets, address))
            values = self._dataset(datasets, address)
            return page("results/dataset.html", problems, may_judge=may_judge, **values)

        def failure(error: UserError, problems: Sequence[str]) -> Markup:
            return page("results/failure.html", problems, message=error, back=True)

        return answer_query(ResultsAddress, query, body, failure)

    def _overview(self, datasets: Sequence[Dataset], address: ResultsAddress) -> dict[str, object]:
        figure, mode, reference = address.chosen_figure, address.chosen_mode(MODES), address.against
        names = dict.fromkeys([*(evaluator.name for evaluator in list_evaluators(self.store)), *ALL])
        overview = gather(self.measurements, datasets, mode, reference)
        files = file_links("overview", address.query(figure=figure, mode=mode))
        return {
            "figures": [(name, metric.title) for name, metric in PROTOCOL.items()],
            "figure": figure,
            "modes": _plain_options(MODES),
            "mode": mode,
            "references": [("", "none"), *_plain_options(names)],
            "reference": reference,
            "overview": overview,
            "published": any(row.published for column in overview.columns for row in column.rows.values()),
            "shortfalls": _overview_shortfalls(overview.columns),
            "table": overview_html(overview.columns, figure, mode, reference, files) if overview.columns else "",
        }

    def _dataset(self, datasets: Sequence[Dataset], address: ResultsAddress) -> dict[str, object]:
        dataset = find_dataset(self.store, address.dataset)
        values = {"dataset": dataset, "datasets": _plain_options(row.name for row in datasets), "address": address}
        patched, disputed = address.gold == "patched", self.measurements.disputed(dataset)
        newest = self.measurements.measure(dataset, address.group, patched=patched)
        if isinstance(newest, Pending):
            return {**values, "measured": None, "work": _work(dataset, len(evaluators_of(self.store, dataset.id)))}
        measured = newest.result
        if not measured.has_gold:
            raise UserError(
                f"{dataset.name} has no gold labels to measure against.",
                "Label its traces in a campaign, or add a dataset with labels.",
            )
        mode, errors = address.chosen_mode(measured.modes), address.chosen_errors(measured)
        # The names in the tables and their keys in Browse, which counts by the benchmark's own labels.
        offers = [] if patched else list_choices(self.store, self.evaluators, dataset.id)
        by_id = {offer.id: offer.key for offer in offers if offer.judged}
        keys = {row.name: by_id[row.id] for row in measured.evaluators if row.id in by_id}
        links = Links(dataset.name, address.group, mode, keys)
        drawn = self.measurements.excerpt(measured, mode, errors)
        if isinstance(drawn, Pending):
            sections, classes = None, [address.evaluator]
        else:
            excerpt = drawn.result
            classes = list(excerpt.classes)
            evaluator = address.evaluator if address.evaluator in classes else "".join(classes[:1])
            query = address.query(mode=mode, errors=errors, evaluator=evaluator)
            sections = excerpt_html(excerpt.shown(evaluator), links, query)
        by, fields = "", {} if patched else outcome_fields(self.store, dataset.id)
        if address.by in fields:
            table, counted = _outcomes_by(self.store, measured, mode, errors, address.by)
            by = outcomes_html(table, counted, links, errors, address.query(mode=mode, errors=errors))
        minus = self.measurements.differences(measured, address.against, mode, errors) if address.against else None
        differences = [*_changes(measured, mode, errors), *([minus] if isinstance(minus, Section) else [])]
        short = _shortfalls(measured.checks(), mode, errors)
        outdated = [item for item in (newest, drawn) if not isinstance(item, Pending) and not item.is_current]
        own = urlencode({"dataset": dataset.name} | ({"group": address.group} if address.group else {}))
        report = urlencode({"gold": address.gold}) if patched else ""
        return {
            **values,
            "measured": measured,
            "outdated": {dataset.name: outdated[-1]} if outdated else {},
            "extent": extent(measured.evaluation),
            "browse": f"/browse?{own}",
            "report": f"/results/report?{own}{'&' if report else ''}{report}",
            "golds": [("", "the benchmark’s"), ("patched", "with accepted disputes")] if disputed else [],
            "modes": _plain_options(measured.modes),
            "mode": mode,
            "kinds": _plain_options(measured.kinds),
            "errors": errors,
            "groups": [("", "all"), *_plain_options(measured.groups)],
            "classes": _plain_options(classes),
            "sections": sections,
            "by": by,
            "references": [("", "none"), *_plain_options(measured.names)],
            "differences": sections_html(differences, links, address.query(mode=mode, errors=errors)),
            "comparing": isinstance(minus, Pending),
            "fields": [("", "none"), *fields.items()],
            "baseline_check": line_html(dataset.name, short),
        }

    def files(self) -> APIRouter:
        """Build the routes for the downloads and for Plotly's script, which draws the page's figures."""
        router = APIRouter(include_in_schema=False)

        needs_reading = [Depends(RequiresRight(Right.READ))]

        @router.get("/results/table", dependencies=needs_reading)
        def table(request: Request) -> Response:
            return _file(*self._table(request.query_params))

        @router.get("/results/report", dependencies=needs_reading)
        def report(request: Request) -> Response:
            address = ResultsAddress.exact(request.query_params)
            if address.gold:
                # This lists the labels that disputes change.
                disputed = self.measurements.disputed(find_dataset(self.store, address.dataset))
                check_traces(self.store, find_user_of(request), *disputed)
            measured = self._measure(address)
            page = _finish(self.measurements.report(measured, _PATIENCE))
            # Sent as a download: under the policy of the pages, its scripts would not run.
            return _file(page, f"{slug(measured.evaluation.view.name)}-report.html", "application/octet-stream")

        @router.get(PLOTLY)
        def plotly() -> Response:
            path = Path(plotly_module).parent / "package_data" / "plotly.min.js"
            # Pages request it with its version.
            kept = {"cache-control": "public, max-age=31536000, immutable"}
            return FileResponse(path, media_type="text/javascript", headers=kept)

        return router

    def _table(self, query: Mapping[str, str]) -> tuple[str, str, str]:
        address = ResultsAddress.exact(query)
        suffix = query.get("format", "csv")
        if suffix not in _WRITERS:
            raise UserError(f"The format is {suffix!r:.40}, expected {', '.join(_WRITERS)}.", "Check the address.")
        if address.dataset:
            table = self._dataset_table(address, query.get("table", ""))
        else:
            mode = address.chosen_mode(MODES)
            overview = gather(self.measurements, list_datasets(self.store), mode, address.against)
            if overview.waiting:
                raise ShortError("The datasets are still being measured.", "Try again in a minute.")
            table = overview_table(overview.columns, address.chosen_figure, mode, address.against)
        write, kind = _WRITERS[suffix]
        return write(table), f"{table.name}.{suffix}", kind

    def _dataset_table(self, address: ResultsAddress, name: str) -> Table:
        measured = self._measure(address)
        mode, errors = address.chosen_mode(measured.modes), address.chosen_errors(measured)
        sections, tables = _changes(measured, mode, errors), list[Table]()
        if address.against:
            minus = _finish(self.measurements.differences(measured, address.against, mode, errors, _PATIENCE))
            sections += [minus] if minus else []
        if address.by and not address.gold:
            tables.append(_outcomes_by(self.store, measured, mode, errors, address.by)[0])
        tables += [content for section in sections for content in section.contents if isinstance(content, Table)]
        table = next((table for table in tables if table.name == name), None)
        if table is None:
            excerpt = _finish(self.measurements.excerpt(measured, mode, errors, _PATIENCE)).result
            table = excerpt.find_table(name, address.evaluator)
        if table is None:
            raise NotFoundError(f"{address.dataset} has no table {name!r:.80}.", "Follow a link on its page.")
        return table

    def _measure(self, address: ResultsAddress) -> MeasuredDataset:
        dataset, patched = find_dataset(self.store, address.dataset), address.gold == "patched"
        return _finish(self.measurements.measure(dataset, address.group, _PATIENCE, patched=patched)).result


def _changes(measured: MeasuredDataset, mode: Mode, errors: Errors) -> list[Section]:
    """Return a section on the effects of accepted disputes, or an empty list if the labels are the benchmark's
    own."""
    return [change_section(measured.before, measured.evaluation, mode, errors)] if measured.before else []


def _outcomes_by(
    store: Store, measured: MeasuredDataset, mode: Mode, errors: Errors, by: str
) -> tuple[Table, Conditions]:
    evaluators = [(evaluator.name, evaluator.id) for evaluator in measured.evaluators]
    return outcomes_by_field(store, measured.evaluation, evaluators, (mode, errors), by)


def _overview_shortfalls(columns: Sequence[OverviewColumn]) -> list[tuple[str, list[BaselineCheck]]]:
    """Return (dataset name, checks) for each dataset on which some evaluators do not beat the trivial
    baselines. Only the dataset's first kind of error counts."""
    first = {column.name: column for column in reversed(columns)}
    by_dataset = [
        (name, _shortfalls(column.checks, column.mode, column.errors)) for name, column in reversed(first.items())
    ]
    return [(name, short) for name, short in by_dataset if short]


def _shortfalls(checks: Iterable[BaselineCheck], mode: Mode, errors: Errors) -> list[BaselineCheck]:
    """Return the evaluators that do not beat the trivial baselines for this mode and kind of error."""
    return shortfalls(check for check in checks if (check.mode, check.errors) == (mode, errors))


def _work(dataset: Dataset, evaluators: int) -> str:
    """Describe in words how much there is to measure on a dataset."""
    baselines = baselines_of(has_substeps=dataset.substeps > dataset.steps)
    return (
        f"{counted(evaluators, 'evaluator')} and {len(baselines)} baselines on"
        f" {counted(dataset.traces, 'trace')}, each on {Measurements.draws:,} resamples"
    )


def _plain_options(names: Iterable[str]) -> list[tuple[str, str]]:
    """Return options for a choice in which each name is both the value and the label."""
    return [(str(name), str(name)) for name in names]


def _file(text: str, name: str, kind: str) -> Response:
    return Response(text, media_type=kind, headers={"content-disposition": f'attachment; filename="{name}"'})


def _finish(result: Computed | Pending) -> Computed:
    if isinstance(result, Pending):
        raise ShortError("This is still being measured.", "Try again in a minute.")
    return result
