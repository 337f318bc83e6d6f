"""The blocks of a page as HTML: paragraphs, tables and groups of figures. The report and the Results page share
them; the style is in `assets/web/findings.css`, and `assets/web/js/figures.js` draws the figures."""

import re
from collections.abc import Callable, Sequence
from html import escape

from training.plots import Plot
from training.tables import Kind, Table, show

Block = str | Table | Sequence[Plot]

CellWrap = Callable[[int, int, str], str]
"""Makes of a cell, by the places of its row and column and its HTML, what stands there. The header is row -1."""


def _as_is(row: int, column: int, html: str) -> str:
    return html


def block_html(block: Block) -> str:
    """A block without links."""
    if isinstance(block, str):
        return f"<p>{escape(block)}</p>"
    return table_html(block) if isinstance(block, Table) else plots_html(block)


def table_html(table: Table, wrap: CellWrap = _as_is, files: str = "") -> str:
    """A table with its caption and notes; `files` is HTML that says where it is to be had as a file."""
    kinds = [' class="text"' if column.kind == Kind.TEXT else "" for column in table.columns]
    titles = enumerate(zip(table.columns, kinds, strict=True))
    head = "".join(
        f'<th scope="col"{kind}>{wrap(-1, place, escape(column.title))}</th>' for place, (column, kind) in titles
    )
    rows = "".join(_row(table, number, kinds, wrap) for number in range(len(table.rows)))
    below = f'<p class="files">{files}</p>' if files else ""
    return (
        f'<div class="finding"><p class="caption" id="{table.name}">{escape(table.caption)}</p>'
        f'<div class="scroll" tabindex="0" role="region" aria-labelledby="{table.name}">'
        f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>{notes_html(table.notes)}"
        f"{below}</div>"
    )


def _row(table: Table, number: int, kinds: Sequence[str], wrap: CellWrap) -> str:
    shown = [show(cell, column.kind) for cell, column in zip(table.rows[number], table.columns, strict=True)]
    cells = [f'<th scope="row">{wrap(number, 0, breakable(shown[0].text))}</th>']
    for place, (cell, kind) in enumerate(zip(shown[1:], kinds[1:], strict=True), 1):
        interval = f"<small>{cell.interval}</small>" if cell.interval else ""
        cells.append(f"<td{kind}>{wrap(number, place, escape(cell.text) + interval)}</td>")
    looks = [name for name, rows in (("rule", table.rules), ("faint", table.faint)) if number in rows]
    kind = f' class="{" ".join(looks)}"' if looks else ""
    return f"<tr{kind}>{''.join(cells)}</tr>"


def breakable(name: str) -> str:
    """A name as HTML that may go on in the next line after its punctuation."""
    return re.sub(r"([:_/-])(?=\w)", r"\1<wbr>", escape(name))


def notes_html(notes: Sequence[str]) -> str:
    return f'<ul class="notes">{"".join(f"<li>{escape(note)}</li>" for note in notes)}</ul>' if notes else ""


def plots_html(plots: Sequence[Plot]) -> str:
    """Figures side by side, as the data that they are drawn from."""
    return f'<div class="plots">{"".join(map(_plot, plots))}</div>'


def _plot(plot: Plot) -> str:
    caption = f"<figcaption>{escape(plot.caption)}</figcaption>"
    if plot.figure is None:
        told = "".join(f"<p>{escape(note)}</p>" for note in plot.notes)
        return f'<figure>{caption}<div class="empty">{told}</div></figure>'
    data = escape(plot.data)
    return (
        f'<figure>{caption}<div class="plot" role="img" aria-label="{escape(plot.caption)}" data-figure="{data}">'
        f"</div>{notes_html(plot.notes)}</figure>"
    )
