"""The results on one dataset as HTML: figures, and tables whose cells link to the traces behind them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from markupsafe import Markup

from stepsight.app.web.html import macro, render
from stepsight.core.label import LABEL_NAMES
from stepsight.training.report.html import CellWrap, Content, Section, content_html, table_html
from stepsight.training.report.results import EVALUATOR, MODE, OUTCOMES, REDUNDANCY
from stepsight.training.report.tables import Table

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

    def wrap(self, table: Table) -> CellWrap:
        """Return a function that adds links to the names of evaluators, to counts of outcomes and to the cells of
        confusion matrices."""

        def wrap(row: int, column: int, html: Markup) -> Markup:
            url = self._target(table, row, column) if row >= 0 and row not in table.faint else ""
            return macro(_MACROS, "link", url, html) if url else html

        return wrap

    def _target(self, table: Table, row: int, column: int) -> str:
        cells = dict(zip((one.key for one in table.columns), table.rows[row], strict=True))
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
    return render("results/sections.html", sections=[_section(section, links, address) for section in sections])


def _section(section: Section, links: Links, address: Mapping[str, str]) -> dict[str, object]:
    """Return the template's variables for a section. `cells` is the URL that the cells of a heat map link to, or ""
    without a heat map."""
    return {
        "title": section.title,
        "cells": next(filter(None, (_confused(content, links) for content in section.contents)), ""),
        "contents": [_content(content, links, address) for content in section.contents],
    }


def _confused(content: Content, links: Links) -> str:
    """Return the URL of the traces that a confusion table counts, or "" for any other content."""
    if not isinstance(content, Table) or not any(column.key == "gold" for column in content.columns):
        return ""
    return links.browse(str(content.rows[0][0]), links.mode)


def _content(content: Content, links: Links, address: Mapping[str, str]) -> Markup:
    if not isinstance(content, Table):
        return content_html(content)
    return table_html(content, links.wrap(content), file_links(content.name, address))


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
