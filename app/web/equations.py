"""Equations that fail, marked in the text of their step, with what would be right below it."""

from markupsafe import Markup, escape

from stepsight.app.markup.markdown import markdown_html
from stepsight.app.markup.marking import Span, mark_spans, read_pieces
from stepsight.app.markup.text import text_html
from stepsight.app.web.html import macro
from stepsight.core.equations.checks import Check
from stepsight.core.equations.evaluator import checks_of, faults, finding
from stepsight.core.trace import Trace


def checked_html(trace: Trace, i: int, html: Markup | None = None) -> Markup:
    """Sub-step `i` of a trace with its Markdown rendered, or as the `html` that was made of it; the equations in it
    that fail are marked, and each has a line below."""
    text = trace.substeps[i]
    html = markdown_html(text) if html is None else html
    failing = faults(checks_of(trace)[i])
    if not failing:
        return html
    places = [(span, finding(text, check)) for check in failing if (span := _place(html, text, check)) is not None]
    for span, title in _together(places, _formulas(html)):
        mark = (Markup('<mark class="fails" title="{}">').format(title), Markup("</mark>"))
        html = mark_spans(html, [span], mark)
    return html + macro("judged.html", "findings", [_shown(text, check) for check in failing])


def _together(places: list[tuple[Span, str]], formulas: list[Span]) -> list[tuple[Span, str]]:
    """The places with their titles; those that share some text, as all in one formula do, as one."""
    joined: list[tuple[Span, str]] = []
    for (start, end), title in sorted((_whole(span, formulas), title) for span, title in places):
        if joined and start < joined[-1][0][1]:
            (first, last), before = joined.pop()
            start, end, title = first, max(last, end), f"{before}; {title}"
        joined.append(((start, end), title))
    return joined


def _whole(span: Span, formulas: list[Span]) -> Span:
    """A span with the whole of each formula that it has a part of."""
    met = [formula for formula in formulas if formula[0] < span[1] and span[0] < formula[1]]
    return min(start for start, _ in [span, *met]), max(end for _, end in [span, *met])


def _formulas(html: Markup) -> list[Span]:
    """Where the formulas stand in the text of the HTML."""
    found, start = [], 0
    for number, text in enumerate(read_pieces(html)[1]):
        if number % 2 and text:
            found.append((start, start + len(text)))
        start += len(text)
    return found


def _place(html: Markup, text: str, check: Check) -> Span | None:
    """Where an equation stands in the text of the HTML, which lacks the signs of Markdown; None where they are
    among the equation's own."""
    shown = "".join(read_pieces(html)[1])
    if shown == text:
        return check.start, check.end
    equation = text[check.start : check.end]
    # As many of the same before it as in the text.
    at, earlier = -1, text[: check.start].count(equation)
    for _ in range(earlier + 1):
        at = shown.find(equation, at + 1)
        if at < 0:
            return None
    return at, at + len(equation)


def _shown(text: str, check: Check) -> tuple[Markup, Markup]:
    """The equation with its formulas, and what it should be, as a formula where it stands in one."""
    pieces, texts = read_pieces(text_html(text))
    start = 0
    for number, (piece, written) in enumerate(zip(pieces, texts, strict=True)):
        end = start + len(written)
        if number % 2 and start <= check.start and check.end <= end and "math" in piece:
            right = f"${check.right}$" if check.right else ""
            return text_html(f"${text[check.start : check.end].strip('$ ')}$"), text_html(right)
        start = end
    return text_html(text[check.start : check.end]), escape(check.right)
