"""Marking parts of a text, such as search hits, in the HTML that `text_html` and `markdown_html` produce, and
cutting an excerpt around the first hit. Formulas are marked as a whole."""

import re
from collections.abc import Sequence
from html import unescape

from markupsafe import Markup, escape

from stepsight.app.markup.markdown import markdown_html
from stepsight.app.markup.text import text_html
from stepsight.core.text.signs import pattern

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
        inside = _clip_spans(spans, start, start + len(text)) if text else []
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


def _clip_spans(spans: Sequence[Span], start: int, end: int) -> list[Span]:
    """Return the parts of the spans between `start` and `end`, with positions counted from `start`."""
    return [(max(a, start) - start, min(b, end) - start) for a, b in spans if a < end and b > start]


def _mark(text: str, spans: Sequence[Span], mark: Mark) -> Markup:
    marked, position = Markup(), 0
    for start, end in spans:
        marked += escape(text[position:start]) + mark[0] + escape(text[start:end]) + mark[1]
        position = end
    return marked + escape(text[position:])


_BEFORE = 40
_LONGEST_FORMULA = 200


def marked_html(html: Markup, search: str) -> Markup:
    """Wrap each hit of the search text `search` in a `mark` element, in HTML from `text_html` or `markdown_html`.

    Case and surrounding spaces are ignored, and equivalent signs count as the same. Formulas are searched in their
    source and marked as a whole.
    """
    if not search.strip():
        return html
    return mark_spans(html, _spans("".join(read_pieces(html)[1]), search))


def marked_markdown(text: str, search: str) -> Markup:
    """Render a text's Markdown with the hits of the search text `search` marked. A hit that includes Markdown
    syntax, such as `**`, cannot be marked in rendered text. If the text has such a hit, it is shown unrendered."""
    html = markdown_html(text)
    if not search.strip():
        return html
    written = text_html(text)
    in_markdown, in_source = (len(_spans("".join(read_pieces(content)[1]), search)) for content in (html, written))
    return marked_html(html if in_markdown >= in_source else written, search)


def has_hit(text: str, search: str) -> bool:
    """True if a text contains the search text `search`."""
    return bool(search.strip()) and _pattern(search).search(text) is not None


def excerpt(text: str, length: int, search: str = "") -> str:
    """Return about `length` characters of a text, from its beginning or from around the first hit of `search`. The
    excerpt is cut at spaces, but never within a `$…$` formula."""
    match = _pattern(search).search(text) if search.strip() else None
    start = 0 if match is None or match.end() <= length else _start(text, match.start())
    end = len(text)
    if end - start > length:
        end = text.rfind(" ", start, start + length + 1)
        end = _cut_end(text, start, end if end > start else start + length, -1 if match is None else match.start())
    return f"{'… ' if start else ''}{text[start:end].rstrip()}{' …' if end < len(text) else ''}"


def without_number(html: Markup, number: int) -> Markup:
    """Leave out a step's own number at the beginning of its text, since pages show it beside the text."""
    match = re.match(rf"\s*{number}[.)] +(?=\S)", html)
    return html[match.end() :] if match else html


def _start(text: str, hit: int) -> int:
    """Return the start of an excerpt that shows the hit at index `hit`. The excerpt starts a few words before the
    hit, or earlier if that would cut a formula."""
    about = max(hit - _BEFORE, 0)
    start = text.rfind(" ", 0, about) + 1 or about
    return text.rindex("$", 0, start) if _is_open(text[:start]) else start


def _cut_end(text: str, start: int, end: int, hit: int) -> int:
    """Return the end of an excerpt, moved so that it does not cut a formula.

    If the excerpt would end inside a formula, the formula is left out, unless it contains the hit or starts the
    excerpt. In these cases the formula is included, or cut if it is very long.
    """
    if not _is_open(text[start:end]):
        return end
    opened, closed = text.rindex("$", start, end), text.find("$", end)
    if start < opened and not opened <= hit:
        return opened
    return closed + 1 if 0 <= closed < end + _LONGEST_FORMULA else end


def _is_open(text: str) -> bool:
    """True if the text ends inside a formula."""
    return len(re.findall(r"(?<!\\)\$", text)) % 2 == 1


def _spans(text: str, search: str) -> list[Span]:
    return [match.span() for match in _pattern(search).finditer(text)]


def _pattern(search: str) -> re.Pattern[str]:
    return pattern(search.strip())
