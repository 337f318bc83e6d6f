"""Judged steps as HTML: bars, marks, gold and verdicts as all pages show them, and what they mean."""

from collections.abc import Iterable

from markupsafe import Markup, escape

from stepsight.app.markup.markdown import markdown_html
from stepsight.app.markup.marking import Span, mark_spans, read_pieces
from stepsight.app.markup.text import text_html
from stepsight.app.web.html import macro
from stepsight.core.equations.checks import Check
from stepsight.core.equations.evaluator import checks_of, faults, finding
from stepsight.core.errors import UserError
from stepsight.core.label import LABEL_NAMES
from stepsight.core.scores import Outputs, StepScores, Thresholds, judge_solution, verdict_word
from stepsight.core.trace import Step, Trace

_TEMPLATE = "judged.html"
NOTABLE = 0.1
"""Retroactive changes from here on are set in colour."""

ONLY_VALIDITY = "gives validity only, not redundancy"
"""On an evaluator whose outputs are not three-way."""


def legend_html(outputs: Iterable[Outputs], *, spread: bool = False) -> Markup:
    """What the marks and colours mean in bars of evaluators with these outputs; `spread`: one is an ensemble."""
    return macro(_TEMPLATE, "legend", Outputs.THREE_WAY in outputs, spread)


EMPTY_STORE = Markup('The store is empty. <a href="/data">Add data</a>')
"""What a page says that has nothing to show."""


def notice_html(message: str | UserError) -> Markup:
    """A message about what went wrong and how to go on; nothing where there is none."""
    return macro(_TEMPLATE, "notice", message)


def note_html(note: object) -> Markup:
    """A sentence that a trace comes with: on the solution, whatever an evaluator says of it."""
    return macro(_TEMPLATE, "note", note) if isinstance(note, str) and note else Markup()


def step_name(trace: Trace, i: int) -> str:
    """`3`, or `3.2` where the step of sub-step `i` has several."""
    owner = int(trace.owners[i])
    first = int((trace.owners < owner).sum())
    return f"{owner + 1}" if len(trace.steps[owner].substeps) == 1 else f"{owner + 1}.{i - first + 1}"


def signed(value: float) -> str:
    """A change with its sign, a true minus, and no negative zero."""
    text = f"{abs(value):.2f}"
    return text if text == "0.00" else f"{'+' if value > 0 else '−'}{text}"


def solution_html(scores: StepScores, thresholds: Thresholds, outputs: Outputs = Outputs.THREE_WAY) -> Markup:
    """The verdict on the solution, with its numbers; on redundancy only where `outputs` are three-way."""
    return macro(_TEMPLATE, "solution", judge_solution(scores, thresholds), outputs == Outputs.THREE_WAY)


def gold_html(step: Step) -> Markup:
    """The gold of a step; one without is visibly unlabelled."""
    return macro(_TEMPLATE, "gold", step)


def bar_html(
    mode: str,
    scores: StepScores,
    i: int,
    thresholds: Thresholds,
    name: str = "",
    outputs: Outputs = Outputs.THREE_WAY,
) -> Markup:
    """The three probabilities of sub-step `i` as a bar with its mark and validity, or validity alone where the
    evaluator's `outputs` are not three-way; `name` is its name, where several stand side by side. The spread of an
    ensemble is a line across the end of what is not valid."""
    values = {name: float(p) for name, p in zip(LABEL_NAMES, scores.probs[i], strict=True)}
    validity, three = values["neu"] + values["pos"], outputs == Outputs.THREE_WAY
    spread = None if scores.spread is None else float(scores.spread[i])
    verdict = verdict_word(scores.probs[i], thresholds, outputs)
    numbers = values if three else {"validity": validity}
    if spread is not None:
        numbers = numbers | {"spread": spread}
    words = ", ".join(f"{key} {number:.2f}" for key, number in numbers.items())
    return macro(
        _TEMPLATE,
        "bar",
        mode=mode,
        verdict=verdict,
        title=f"{name}, {mode}: {words}; {verdict}" if name else f"{mode}: {words}; {verdict}",
        parts=values if three else {"neg": 1 - validity, "pos": validity},
        validity=validity,
        probabilities=values if three else {},
        spread=None if spread is None else _reach(validity, spread),
    )


def _reach(validity: float, spread: float) -> tuple[float, float]:
    """From where to where the line of a spread goes, as shares of the bar, which begins with what is not valid."""
    return max(0.0, 1 - validity - spread), min(1.0, 1 - validity + spread)


def change_html(value: float) -> Markup:
    """A retroactive change, in colour where it is notable."""
    return macro(_TEMPLATE, "change", notable(value), signed(value))


def notable(value: float) -> str:
    """The class that colours a change, empty where it is a small one."""
    return ("rise" if value > 0 else "fall") if abs(value) >= NOTABLE else ""


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
    return html + macro(_TEMPLATE, "findings", [_shown(text, check) for check in failing])


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
