"""Writing reports as HTML pages that need no network.

A page contains a single copy of Plotly's script, the styles and scripts of `assets`, and a policy that forbids all
requests.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from markupsafe import Markup
from plotly.offline import get_plotlyjs

from stepsight.core.escaping import load_templates
from stepsight.core.paths import asset
from stepsight.training.report.plots import Plot
from stepsight.training.report.tables import CellKind, Table, shown_rows

Content = str | Table | Sequence[Plot]
"""A paragraph, a table or figures side by side."""

CellWrap = Callable[[int, int, Markup], Markup]
"""Turns a cell, given by row, column and HTML, into its final HTML. The header is row -1."""


_TEMPLATES = load_templates(Path(__file__).parent / "templates")
_PARTS: Any = _TEMPLATES.get_template("parts.html").module


@dataclass(frozen=True)
class Section:
    """A titled section that consists of paragraphs, tables and groups of figures. `is_detail` is True if a page
    shows it behind *More*."""

    title: str
    contents: Sequence[Content]
    is_detail: bool = False


@dataclass(frozen=True)
class Part:
    """A part of a page: a title, a lead paragraph, a warning (or "") and sections."""

    title: str
    lead: str
    sections: Sequence[Section] = ()
    warning: str = ""


def content_html(content: Content) -> Markup:
    """Return the HTML of a paragraph, a table or a group of figures."""
    if isinstance(content, str):
        return Markup("<p>{}</p>").format(content)
    return table_html(content) if isinstance(content, Table) else plots_html(content)


def table_html(table: Table, wrap: CellWrap = lambda row, column, html: html, files: str = "") -> Markup:
    """Return the HTML of a table with its caption and notes.

    `wrap` can change the HTML of a cell. `files` is HTML that links to the table as a file.
    """
    rows = [
        [
            cell if column.kind == CellKind.TEXT else cell.with_minus
            for cell, column in zip(row, table.columns, strict=True)
        ]
        for row in shown_rows(table)
    ]
    return Markup(_PARTS.table(table, rows, wrap, Markup(files)))


def plots_html(plots: Sequence[Plot]) -> Markup:
    """Return the HTML of figures shown side by side, including the data from which the page's script draws them."""
    return Markup(_PARTS.plots(plots))


def page_html(title: str, lead: str, parts: Sequence[Part]) -> str:
    return _TEMPLATES.get_template("report.html").render(
        title=title,
        lead=lead,
        parts=parts,
        content_html=_with_files,
        style=_asset("report", "report.css") + _asset("web", "findings.css"),
        script=_asset("web", "js", "results", "figures.js") + _asset("report", "report.js"),
        plotly=Markup(get_plotlyjs()),
    )


def _with_files(content: Content) -> Markup:
    if not isinstance(content, Table):
        return content_html(content)
    return table_html(content, files=Markup("In <code>tables/{}</code> as .tex, .csv and .md").format(content.name))


def _asset(*place: str) -> Markup:
    return Markup(asset(*place).read_text(encoding="utf-8"))
