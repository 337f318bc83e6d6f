"""Where the text of a search stands in another one: marked in its HTML, and excerpts around the first place."""

import re

from markupsafe import Markup

from stepsight.app.markup.markdown import markdown_html
from stepsight.app.markup.marking import Span, mark_spans, read_pieces
from stepsight.app.markup.text import text_html

_BEFORE = 40
_LONGEST_FORMULA = 200


def marked_html(html: Markup, wanted: str) -> Markup:
    """HTML from `text_html` or `markdown_html` with what is wanted in a `mark`, whatever its case and the spaces
    around it.

    It is looked for in the text, formulas as they were written; a formula is marked whole.
    """
    if not wanted.strip():
        return html
    return mark_spans(html, _spans("".join(read_pieces(html)[1]), wanted))


def marked_markdown(text: str, wanted: str) -> Markup:
    """A text with its Markdown rendered and what is wanted marked. If that is among the signs of Markdown, it comes
    as it was written, or a hit would be found and not be seen."""
    html = markdown_html(text)
    if not wanted.strip():
        return html
    written = text_html(text)
    shown, there = (len(_spans("".join(read_pieces(one)[1]), wanted)) for one in (html, written))
    return marked_html(html if shown >= there else written, wanted)


def has_hit(text: str, wanted: str) -> bool:
    """True if what is wanted stands in a text."""
    return bool(wanted.strip()) and _pattern(wanted).search(text) is not None


def excerpt(text: str, length: int, wanted: str = "") -> str:
    """About `length` characters of a text: its beginning, or what is around the first place of what is wanted.

    It is cut at spaces, and not within a `$…$` formula.
    """
    match = _pattern(wanted).search(text) if wanted.strip() else None
    start = 0 if match is None or match.end() <= length else _start(text, match.start())
    end = len(text)
    if end - start > length:
        end = text.rfind(" ", start, start + length + 1)
        end = _whole(text, start, end if end > start else start + length, -1 if match is None else match.start())
    return f"{'… ' if start else ''}{text[start:end].rstrip()}{' …' if end < len(text) else ''}"


def _start(text: str, hit: int) -> int:
    """Where an excerpt begins that shows a hit: some words before it, or at the formula that it is in."""
    about = max(hit - _BEFORE, 0)
    start = text.rfind(" ", 0, about) + 1 or about
    return text.rindex("$", 0, start) if _is_open(text[:start]) else start


def _whole(text: str, start: int, end: int, hit: int) -> int:
    """`end`, moved before a formula that it would cut, or behind it where the hit is in it or nothing before it."""
    if not _is_open(text[start:end]):
        return end
    opened, closed = text.rindex("$", start, end), text.find("$", end)
    if start < opened and not opened <= hit:
        return opened
    return closed + 1 if 0 <= closed < end + _LONGEST_FORMULA else end


def _is_open(text: str) -> bool:
    """True if a formula begins in the text and does not end there."""
    return len(re.findall(r"(?<!\\)\$", text)) % 2 == 1


def _spans(text: str, wanted: str) -> list[Span]:
    return [match.span() for match in _pattern(wanted).finditer(text)]


def _pattern(wanted: str) -> re.Pattern[str]:
    return re.compile(re.escape(wanted.strip()), re.IGNORECASE)
