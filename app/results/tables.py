"""The tables of the Results page as HTML: the overview, with one figure for every evaluator on every measured
dataset, and the sections on one dataset, whose cells link to the traces behind them."""

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from typing import Literal
from urllib.parse import urlencode

from markupsafe import Markup

from stepsight.app.markup.text import text_html
from stepsight.app.results.measurements import PATIENCE, Differences, MeasuredDataset, Measurements, Summary
from stepsight.app.web.background_cache import Pending, Snapshot
from stepsight.app.web.html import macro, render
from stepsight.core.errors import UserError
from stepsight.core.escaping import breakable
from stepsight.core.judgment import Mode
from stepsight.core.metrics.bootstrap import Value
from stepsight.core.metrics.figures import METRICS
from stepsight.core.metrics.published import Published
from stepsight.core.metrics.reasoneval import Errors
from stepsight.core.metrics.shortcuts import PREFIX
from stepsight.core.trace import LABEL_NAMES
from stepsight.storage.traces.queries import Dataset
from stepsight.training.evaluate.baseline_check import BaselineCheck
from stepsight.training.evaluate.evaluation import RIVALRY, Row
from stepsight.training.report.html import CellWrap, Section, content_html, table_html
from stepsight.training.report.results import (
    EVALUATOR,
    MODE,
    OUTCOMES,
    REDUNDANCY,
    has_gold,
    merged,
    notes,
)
from stepsight.training.report.tables import Cell, CellKind, Column, Table, show, slug, table_of

FORMATS = {"csv": "CSV", "tex": "LaTeX", "md": "Markdown"}

_MACROS = "results/macros.html"
_OUTCOMES = frozenset(outcome.value for outcome in OUTCOMES)


@dataclass(frozen=True)
class Links:
    """The links from cells of a dataset's tables to traces in Browse.

    The links are restricted to one `group` of traces unless it is "". `keys` maps the names of evaluators in the
    tables to their keys in Browse. `mode` is the mode that the page shows.
    """

    dataset: str
    group: str
    mode: str
    keys: Mapping[str, str]

    def browse(self, evaluator: str, mode: str, **more: str | Sequence[str]) -> str:
        """Return the URL of the list of traces with the evaluator's judgments, or "" if the evaluator has no key in
        Browse. `more` holds additional filters."""
        if evaluator not in self.keys:
            return ""
        query = {"dataset": self.dataset, "group": self.group, "evaluator": self.keys[evaluator], "mode": mode}
        given = {key: value for key, value in (query | more).items() if value}
        return f"/browse?{urlencode(given, doseq=True)}"

    def wrap(self, table: Table, *, names: bool = True) -> CellWrap:
        """Return a function that adds links to counts of outcomes, to the cells of confusion matrices and, if
        `names` is True, to the names of evaluators."""

        def wrap(row: int, column: int, html: Markup) -> Markup:
            is_linked = row >= 0 and row not in table.faint and (names or column > 0)
            url = self._target(table, row, column) if is_linked else ""
            return macro(_MACROS, "link", url, html) if url else html

        return wrap

    def _target(self, table: Table, row: int, column: int) -> str:
        cells = dict(zip((heading.key for heading in table.columns), table.rows[row], strict=True))
        key = table.columns[column].key
        evaluator, mode = str(cells[EVALUATOR.key]), str(cells.get(MODE.key, self.mode))
        if key == EVALUATOR.key:
            return self.browse(evaluator, mode)
        if not cells[key]:
            return ""
        if key in _OUTCOMES:
            errors = "redundant" if table.name.endswith(REDUNDANCY) else "invalid"
            return self.browse(evaluator, mode, errors=errors, mistake=key)
        if key in LABEL_NAMES and "gold" in cells:
            return self.browse(evaluator, mode, cell=f"{cells['gold']}-{key}")
        return ""


def sections_html(sections: Iterable[Section], links: Links, address: Mapping[str, str]) -> Markup:
    """Render sections with their tables and figures. `address` is the page's query, on which download links are
    based."""
    shown = [_section(section, links, address) for section in sections]
    return render("results/sections.html", sections=shown, further="")


# Columns whose content follows from the caption or from another column's sign.
_REPEATED = ("above_baselines", "n_solutions", "n_steps", "source")


def excerpt_html(sections: Sequence[Section], links: Links, address: Mapping[str, str]) -> Markup:
    """Render the sections on a dataset: the tables that most readers come for with the best row first and one
    baseline, and everything else behind *More*."""
    first: list[dict[str, object]] = []
    for section in sections:
        tables = [content for content in section.contents if isinstance(content, Table)]
        if tables and not section.is_detail:
            shown = [table for table in tables if "published" not in table.name]
            contents: list[Markup] = []
            for table in shown:
                best = _sort_best_first(table)
                wrap = links.wrap(best, names=not first and not contents)
                files = macro(_MACROS, "folded_files", file_links(table.name, address))
                contents.append(table_html(best, wrap, files))
            first.append({"title": section.title, "cells": "", "contents": contents})
    # A section without a table or figure is a sentence, which belongs at the end.
    further = sorted(sections, key=lambda section: all(isinstance(content, str) for content in section.contents))
    return render("results/sections.html", sections=first, further=sections_html(further, links, address))


def _sort_best_first(table: Table) -> Table:
    """Return the table with the best row first and of the baselines only the best one, without published rows. The
    figure that decides is that in which evaluators are compared with the baselines, or else the first."""
    if table.columns[0] != EVALUATOR or len({row[0] for row in table.rows}) < len(table.rows):
        return table
    measured = [row for i, row in enumerate(table.rows) if i not in table.faint]

    def rank(row: Sequence[Cell], place: int) -> float:
        cell = row[place]
        number = cell.number if isinstance(cell, Value) and cell.exists else cell
        return -number if isinstance(number, int | float) else inf

    figures = {column.key: i for i, column in enumerate(table.columns) if column.kind != CellKind.TEXT}
    order = [*(figures[name] for name in RIVALRY if name in figures), *figures.values()]
    place = next((i for i in order if any(rank(row, i) < inf for row in measured)), order[0])
    measured.sort(key=lambda row: (str(row[0]).startswith(PREFIX), rank(row, place)))
    own = [row for row in measured if not str(row[0]).startswith(PREFIX)]
    rows = measured[: len(own) + 1]
    left_out = tuple(str(row[0]) for row in table.rows if row not in rows)
    kept = [i for i, column in enumerate(table.columns) if column.key not in _REPEATED]
    return replace(
        table,
        name=f"{table.name}-best",
        columns=tuple(table.columns[i] for i in kept),
        rows=tuple(tuple(row[i] for i in kept) for row in rows),
        notes=tuple(note for note in table.notes if not note.startswith(left_out)),
        rules=(len(own),) if own and len(rows) > len(own) else (),
        faint=(),
    )


def _section(section: Section, links: Links, address: Mapping[str, str]) -> dict[str, object]:
    """Return the template's variables for a section. `cells` is the URL that the cells of a heat map link to, that
    of the traces in its confusion table, or "" without one."""
    contents, cells = [], ""
    for content in section.contents:
        if not isinstance(content, Table):
            contents.append(content_html(content))
            continue
        contents.append(table_html(content, links.wrap(content), file_links(content.name, address)))
        if any(column.key == "gold" for column in content.columns):
            cells = cells or links.browse(str(content.rows[0][0]), links.mode)
    return {"title": section.title, "cells": cells, "contents": contents}


def outcomes_html(
    table: Table,
    rows: Sequence[tuple[str, Mapping[str, str | tuple[str, ...]]]],
    links: Links,
    errors: str,
    address: Mapping[str, str],
) -> Markup:
    """Render a table of outcomes by the value of a field. Its counts link to the traces in Browse. `rows` holds,
    for each row, the evaluator and the conditions that select its traces."""

    def wrap(row: int, column: int, html: Markup) -> Markup:
        key = table.columns[column].key
        if row >= 0 and key == "value":
            return text_html(str(table.rows[row][column]))
        if row < 0 or key not in _OUTCOMES or not table.rows[row][column]:
            return html
        evaluator, conditions = rows[row]
        url = links.browse(evaluator, links.mode, errors=errors, mistake=key, **conditions)
        return macro(_MACROS, "link", url, html) if url else html

    return table_html(table, wrap, file_links(table.name, address))


def file_links(table: str, address: Mapping[str, str]) -> Markup:
    """Render the download links of a table, one for each format."""
    queries = {title: urlencode({**address, "table": table, "format": suffix}) for suffix, title in FORMATS.items()}
    return macro(_MACROS, "files", [(title, f"/results/table?{query}") for title, query in queries.items()])


Figure = Literal["step_auc", "step_f1", "sol_auc", "sol_f1"]

FIGURES: tuple[Figure, ...] = ("step_auc", "step_f1", "sol_auc", "sol_f1")
_NONE = Value.none("")


@dataclass(frozen=True, eq=False)
class OverviewColumn:
    """A column of the overview: a dataset and a kind of error.

    `mode` is the mode shown, which is online for a dataset whose offline figures would be meaningless. `minus`
    holds the differences from the chosen reference, and `checks` the dataset's baseline checks.
    """

    measured: MeasuredDataset
    mode: Mode
    errors: Errors
    minus: Differences
    checks: Sequence[BaselineCheck] = ()

    @property
    def name(self) -> str:
        return self.measured.evaluation.view.name

    @property
    def title(self) -> str:
        return f"{self.name}, {self.scope}"

    @property
    def scope(self) -> str:
        """The kind of error, the number of traces and, if it differs from the page's, the mode."""
        online = ", online" if self.measured.evaluation.warning else ""
        return f"{self.errors} errors, {self.measured.evaluation.size}{online}"

    @property
    def url(self) -> str:
        """The URL of the dataset's page."""
        query = {"dataset": self.measured.evaluation.dataset.name, "mode": self.mode, "errors": self.errors}
        return f"/results?{urlencode(query)}"

    @property
    def rows(self) -> Mapping[str, Row]:
        """The measured rows of this column, keyed by evaluator."""
        rows = self.measured.evaluation.rows
        return {row.evaluator: row for row in rows if (row.mode, row.errors) == (self.mode, self.errors)}

    @property
    def published(self) -> Mapping[str, Published]:
        """The published figures of this column, keyed by evaluator, without evaluators that were also measured in
        this store."""
        rows = self.measured.evaluation.published
        return {row.evaluator: row for row in rows if (row.mode, row.benchmark.errors) == (self.mode, self.errors)}

    def difference(self, evaluator: str, figure: Figure) -> Value:
        """Return the evaluator's figure minus that of the reference."""
        compared = self.minus.get((evaluator, self.mode, self.errors))
        return compared.differences.get(figure, _NONE) if compared is not None else _NONE


@dataclass(frozen=True)
class OverviewRow:
    """A row of the overview. `published` is True for an evaluator that has only published figures."""

    evaluator: str
    published: bool = False


@dataclass(frozen=True)
class Overview:
    """The content of the overview.

    `columns` are ready to be shown, together with `warnings`. `reasons` say why the remaining datasets have no
    column. `waiting` lists the datasets that are not measured yet. If a dataset has to be measured again,
    `outdated` maps its name to its last measurement.
    """

    columns: list[OverviewColumn] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)
    waiting: list[Dataset] = field(default_factory=list)
    outdated: dict[str, Snapshot[MeasuredDataset]] = field(default_factory=dict)


def gather(measurements: Measurements, datasets: Sequence[Dataset], mode: Mode, reference: str = "") -> Overview:
    """Collect the measurements of the datasets and, if `reference` is not "", the differences from the reference.

    At most one measurement is started at a time, so that a request for a single dataset need not wait for all of
    them. All of them together wait no longer than a page may.
    """
    overview = Overview()
    deadline = time.monotonic() + PATIENCE
    for dataset in datasets:
        try:
            if overview.waiting and not measurements.is_measured(dataset, reference):
                result: Summary | Pending = Pending()
            else:
                result = measurements.summary(dataset, reference, max(0.0, deadline - time.monotonic()))
        except UserError as error:
            overview.reasons.append(str(error.without_options()))
            continue
        if isinstance(result, Pending):
            overview.waiting.append(dataset)
        elif not result.newest.result.has_gold:
            overview.reasons.append(f"{dataset.name} has no gold labels to measure against.")
        elif not has_gold(result.newest.result.evaluation):
            overview.reasons.append(f"{dataset.name} has only soft labels; their figures are on its own page.")
        else:
            measured = result.newest.result
            if not result.newest.is_current:
                overview.outdated[dataset.name] = result.newest
            warning = measured.evaluation.warning
            shown = mode if mode in measured.modes or not warning else measured.modes[0]
            overview.columns.extend(
                OverviewColumn(measured, shown, errors, result.minus, result.checks) for errors in measured.kinds
            )
            if measured.modes[0] != shown:
                overview.reasons.append(f"More evaluators have judged {dataset.name} {measured.modes[0]}.")
            if warning and warning not in overview.warnings:
                overview.warnings.append(warning)
    return overview


def overview_rows(columns: Sequence[OverviewColumn], figure: Figure) -> list[OverviewRow]:
    """List the evaluators, followed by the baselines that are the best on a dataset and the evaluators with only
    published figures. The best on the first dataset comes first, and of those that have no figure there the best on
    the next."""
    names = dict.fromkeys(name for column in columns for name in column.rows)

    def loss(name: str, column: OverviewColumn) -> float:
        value = column.rows[name].measured[figure] if name in column.rows else _NONE
        return -value.number if value.exists else inf

    baselines = [name for name in names if name.startswith(PREFIX)]
    best = {min(baselines, key=lambda name: loss(name, column)) for column in columns if baselines}
    shown = (name for name in names if name in best or name not in baselines)
    measured = sorted(shown, key=lambda name: (name in best, [loss(name, column) for column in columns]))
    published = dict.fromkeys(name for column in columns for name in column.published)
    return [OverviewRow(name) for name in measured] + [OverviewRow(name, published=True) for name in published]


def overview_table(columns: Sequence[OverviewColumn], figure: Figure, mode: Mode, reference: str = "") -> Table:
    """Tabulate the figure for every evaluator on every dataset.

    If `reference` is not "", each figure has its difference from the reference beside it. Published figures have
    rows of their own.
    """
    rows = overview_rows(columns, figure)
    cells: list[dict[Column, Cell]] = []
    for row in rows:
        cells.append({EVALUATOR: f"{row.evaluator}, published" if row.published else row.evaluator})
        for column in columns:
            key = f"{slug(column.name)}-{column.errors}"
            cells[-1][Column(key, column.title)] = _value(row, column, figure)
            if reference:
                minus = _NONE if row.published else column.difference(row.evaluator, figure)
                cells[-1][Column(f"{key}-minus", f"minus {reference}", CellKind.POINTS)] = minus
    published = [i for i, row in enumerate(rows) if row.published]
    baselines = [i for i, row in enumerate(rows) if row.evaluator.startswith(PREFIX)]
    return table_of(
        f"overview-{figure.replace('_', '-')}-{mode}",
        f"{METRICS[figure].title}, {mode}, in percent with 95 % intervals over traces",
        cells,
        notes=merged(note for column in columns for note in _notes(column, figure)),
        rules=[i for i in [*baselines[:1], *published[:1]] if i],
        faint=published,
        least=(EVALUATOR,),
    )


def _value(row: OverviewRow, column: OverviewColumn, figure: Figure) -> Value:
    if row.published:
        figures = column.published.get(row.evaluator)
        return Value(figures.values[figure]) if figures is not None and figure in figures.values else _NONE
    measured = column.rows.get(row.evaluator)
    return measured.measured[figure] if measured is not None else _NONE


def _notes(column: OverviewColumn, figure: Figure) -> list[str]:
    """Return the notes that qualify a column's figures. Each names an evaluator and the dataset."""
    parts = [
        note.rpartition(": ")
        for note in notes(list(column.rows.values()), [figure], column.measured.evaluation.traces)
    ]
    return [f"{evaluator} on {column.name}: {reason}" for evaluator, _, reason in parts]


def overview_html(
    columns: Sequence[OverviewColumn], figure: Figure, mode: Mode, reference: str, files: Markup
) -> Markup:
    """Render the overview table. Columns link to the pages of their datasets. The difference from the reference and
    any remarks are shown below each figure."""
    rows = overview_rows(columns, figure)

    def wrap(row: int, column: int, html: Markup) -> Markup:
        if not column:
            return html
        place = columns[column - 1]
        if row < 0:
            return macro(_MACROS, "dataset_link", place, breakable(place.name))
        return html + macro(_MACROS, "remarks", _remarks(rows[row], place, figure, reference))

    return table_html(overview_table(columns, figure, mode), wrap, files)


def _remarks(
    overview_row: OverviewRow, column: OverviewColumn, figure: Figure, reference: str
) -> list[tuple[str, str]]:
    """Return the remarks below a figure as (CSS class, text) pairs."""
    row = column.rows.get(overview_row.evaluator)
    if overview_row.published or row is None:
        return []
    remarks = []
    change = column.difference(overview_row.evaluator, figure)
    if reference and change.exists:
        remarks.append(("minus", f"{show(change, CellKind.POINTS).with_minus}"))
    if row.published is not None and figure in row.published.values:
        remarks.append(("printed", f"published {show(Value(row.published.values[figure]), CellKind.PERCENT)}"))
    if row.above_baselines is False:
        where = "" if row.beats_in == figure else f" in {METRICS[row.beats_in].title}"
        remarks.append(("mark", f"not clearly above the best baseline{where}"))
    if row.chosen_here:
        remarks.append(("mark", "thresholds chosen here"))
    return remarks
