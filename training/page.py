"""A page: chapters of text, tables and figures as one HTML file that needs no network.

Plotly's script is in it once, style and script of its own and of its blocks come from `assets`, and its policy
forbids it to ask for anything.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from html import escape

from plotly.offline import get_plotlyjs

from core.assets import asset
from training.blocks import Block, block_html, table_html
from training.tables import Table

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
