"""A page: chapters of text, tables and figures as one HTML file that needs no network.

Plotly's script is in it once, style and script of its own and of its blocks come from `assets`, and its policy
forbids it to ask for anything.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from html import escape

from plotly.offline import get_plotlyjs

from stepsight.core.files import asset
from stepsight.training.report.plots import Plot
from stepsight.training.report.tables import CellKind, Table, show

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
    kinds = [' class="text"' if column.kind == CellKind.TEXT else "" for column in table.columns]
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


_POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:"


@dataclass(frozen=True)
class Section:
    """Paragraphs, tables and groups of figures under a title."""

    title: str
    blocks: Sequence[Block]


@dataclass(frozen=True)
class Chapter:
    """Sections under a title, `lead` below it; `warning` where there is one."""

    title: str
    lead: str
    sections: Sequence[Section] = field(default_factory=tuple)
    warning: str = ""


def render(title: str, lead: str, chapters: Sequence[Chapter]) -> str:
    """The page as HTML."""
    body = "\n".join(part for number, chapter in enumerate(chapters, 1) for part in _chapter(number, chapter))
    style = _read("report", "report.css") + _read("web", "findings.css")
    script = _read("web", "js", "figures.js") + _read("report", "report.js")
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{_POLICY}">
<title>{escape(title)}</title>
<style>{style}</style>
</head>
<body>
<div class="page">
<header><h1>{escape(title)}</h1><p class="lead">{escape(lead)}</p></header>
<nav aria-label="Contents">{_contents(chapters)}</nav>
<main>
<noscript><p class="warning">The figures need JavaScript; the tables hold their numbers.</p></noscript>
{body}
</main>
</div>
<script>{get_plotlyjs()}</script>
<script type="module">{script}</script>
</body>
</html>
"""


def _read(*place: str) -> str:
    return asset(*place).read_text(encoding="utf-8")


def anchor(chapter: int, section: int = 0) -> str:
    """The id of a chapter's or a section's heading, both counted from 1."""
    return f"c{chapter}-{section}" if section else f"c{chapter}"


def _contents(chapters: Sequence[Chapter]) -> str:
    def link(target: str, text: str) -> str:
        return f'<a href="#{target}">{escape(text)}</a>'

    parts = []
    for number, chapter in enumerate(chapters, 1):
        below = "".join(
            f"<li>{link(anchor(number, i), one.title)}</li>" for i, one in enumerate(chapter.sections, 1)
        )
        parts.append(f"<li>{link(anchor(number), chapter.title)}{f'<ul>{below}</ul>' if below else ''}</li>")
    return f"<ul>{''.join(parts)}</ul>"


def _chapter(number: int, chapter: Chapter) -> Iterator[str]:
    yield f'<h2 id="{anchor(number)}">{escape(chapter.title)}</h2>\n<p class="lead">{escape(chapter.lead)}</p>'
    if chapter.warning:
        yield f'<p class="warning">{escape(chapter.warning)}</p>'
    for place, section in enumerate(chapter.sections, 1):
        yield f'<section aria-labelledby="{anchor(number, place)}">'
        yield f'<h3 id="{anchor(number, place)}">{escape(section.title)}</h3>'
        yield from map(_block, section.blocks)
        yield "</section>"


def _block(block: Block) -> str:
    if not isinstance(block, Table):
        return block_html(block)
    return table_html(block, files=f"In <code>tables/{block.name}</code> as .tex, .csv and .md")
