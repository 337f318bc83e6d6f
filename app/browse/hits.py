"""Search hits in a text: marked in its HTML, and an excerpt around the first one."""

import re

from markupsafe import Markup

from stepsight.app.markup.markdown import markdown_html
from stepsight.app.markup.marking import Span, mark_spans, read_pieces
from stepsight.app.markup.text import text_html

_BEFORE = 40
_LONGEST_FORMULA = 200


def marked_html(html: Markup, wanted: str) -> Markup:
    """HTML from `text_html` or `markdown_html` with each hit of `wanted` in a `mark`, ignoring case and outer
    spaces.

    Formulas are searched as written, and marked whole.
    """
    if not wanted.strip():
        return html
    return mark_spans(html, _spans("".join(read_pieces(html)[1]), wanted))


def marked_markdown(text: str, wanted: str) -> Markup:
    """A text with its Markdown rendered and hits of `wanted` marked. If a hit includes Markdown's own signs, the
    text is shown unrendered, or the hit would not be visible."""
    html = markdown_html(text)
    if not wanted.strip():
        return html
    written = text_html(text)
    shown, there = (len(_spans("".join(read_pieces(one)[1]), wanted)) for one in (html, written))
    return marked_html(html if shown >= there else written, wanted)


def has_hit(text: str, wanted: str) -> bool:
    """True if a text contains `wanted`."""
    return bool(wanted.strip()) and _pattern(wanted).search(text) is not None


def excerpt(text: str, length: int, wanted: str = "") -> str:
    """About `length` characters of a text, from its beginning or around the first hit of `wanted`.

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
    """The start of an excerpt that shows a hit: a few words before it, or the start of the formula that contains
    it."""
    about = max(hit - _BEFORE, 0)
    start = text.rfind(" ", 0, about) + 1 or about
    return text.rindex("$", 0, start) if _is_open(text[:start]) else start


def _whole(text: str, start: int, end: int, hit: int) -> int:
    """`end`, moved before a formula that it would cut or, if the formula has the hit or begins the excerpt, behind
    it."""
    if not _is_open(text[start:end]):
        return end
    opened, closed = text.rindex("$", start, end), text.find("$", end)
    if start < opened and not opened <= hit:
        return opened
    return closed + 1 if 0 <= closed < end + _LONGEST_FORMULA else end


def _is_open(text: str) -> bool:
    """True if the text ends within a formula."""
    return len(re.findall(r"(?<!\\)\$", text)) % 2 == 1


def _spans(text: str, wanted: str) -> list[Span]:
    return [match.span() for match in _pattern(wanted).finditer(text)]


def _pattern(wanted: str) -> re.Pattern[str]:
    return re.compile(re.escape(wanted.strip()), re.IGNORECASE)
