"""Marking parts of a text in the HTML that `text_html` and `markdown_html` produce. Formulas are marked as a
whole."""

import re
from collections.abc import Sequence
from html import unescape

from markupsafe import Markup, escape

# A formula or a tag; everything else is text.
_MARKUP = re.compile(r'(<span class="math"[^<>]*>[^<]*</span>|<[^<>]*>)')
_SOURCE = re.compile(r'data-source="([^"]*)"')

Span = tuple[int, int]

Mark = tuple[Markup, Markup]
"""The HTML before and after a marked part."""

PLAIN: Mark = (Markup("<mark>"), Markup("</mark>"))


def read_pieces(html: Markup) -> tuple[list[str], list[str]]:
    """Split HTML into pieces, and return the pieces and the text of each.

    Pieces with an odd index are formulas or tags. The text of a formula is its source, and the text of a tag is
    empty.
    """
    pieces = _MARKUP.split(html)
    return pieces, [_source(piece) if number % 2 else unescape(piece) for number, piece in enumerate(pieces)]


def mark_spans(html: Markup, spans: Sequence[Span], mark: Mark = PLAIN) -> Markup:
    """Wrap the given spans of the HTML's text in `mark` elements. `mark` holds the opening and the closing tag."""
    pieces, texts = read_pieces(html)
    marked, start = Markup(), 0
    for number, (piece, text) in enumerate(zip(pieces, texts, strict=True)):
        inside = _within(spans, start, start + len(text)) if text else []
        if number % 2:
            markup = Markup(piece)
            marked += mark[0] + markup + mark[1] if inside else markup
        else:
            marked += _mark(text, inside, mark)
        start += len(text)
    return marked


def _source(formula: str) -> str:
    match = _SOURCE.search(formula)
    return unescape(match[1]) if match else ""


def _within(spans: Sequence[Span], start: int, end: int) -> list[Span]:
    """Return the parts of the spans between `start` and `end`, with positions counted from `start`."""
    return [(max(a, start) - start, min(b, end) - start) for a, b in spans if a < end and b > start]


def _mark(text: str, spans: Sequence[Span], mark: Mark) -> Markup:
    marked, position = Markup(), 0
    for start, end in spans:
        marked += escape(text[position:start]) + mark[0] + escape(text[start:end]) + mark[1]
        position = end
    return marked + escape(text[position:])
