"""A trace as one block of HTML: gold, and each evaluator's verdict on every sub-step, side by side."""

from collections.abc import Sequence
from html import escape
from urllib.parse import urlencode

from stepsight.app.browse.answers import Answer
from stepsight.app.browse.hits import marked_html
from stepsight.app.browse.people_view import agreed_html
from stepsight.app.browse.verdicts import answer_words
from stepsight.app.web.judged import ONLY_VALIDITY, bar_html, change_html, gold_html, legend_html, step_name
from stepsight.app.web.text import text_html
from stepsight.core.judgment import Mode
from stepsight.core.label import Label
from stepsight.core.scores import Outputs
from stepsight.storage.traces.queries import StoredTrace

_SEES = {Mode.ONLINE: "sees the steps up to this one", Mode.OFFLINE: "sees the whole solution"}
_MARKS = {Label.NEG: ("✕", "blamed"), Label.NEU: ("○", "called redundant"), Label.POS: ("✓", "not blamed")}

# As long as it is there the page's script asks again.
_WAITING = '<span class="measuring" role="status" data-again>is scoring this trace; its bars will follow</span>'


def trace_html(
    trace: StoredTrace,
    answers: Sequence[Answer],
    wanted: str = "",
    people: Sequence[str | None] = (),
    disputes: Sequence[str] = (),
) -> str:
    """Problem, what each evaluator says of the solution, and every step with its sub-steps; what a search looks for
    is marked. `people` is what they agree on, and `disputes` links for below the gold, both by step."""
    columns = [answer for answer in answers if answer.judgments and answer.outputs.has_steps]
    classes = f"judged side n{len(columns)}" + (" gold" if trace.has_gold else "")
    steps = "".join(
        _step(trace, number, columns, wanted, agreed_html(people, number), disputes[number] if disputes else "")
        for number in range(len(trace.steps))
    )
    return f"""<section class="{classes}"><p class="q">{marked_html(text_html(trace.problem), wanted)}</p>
{_answers(trace, answers)}{_head(trace, columns)}<ol class="steps">{steps}</ol>
{legend_html([answer.outputs for answer in columns]) if columns else ""}</section>"""


def _answers(trace: StoredTrace, answers: Sequence[Answer]) -> str:
    lines = "".join(_answer(trace, answer) for answer in answers)
    return f'<ul class="answers">{lines}</ul>' if answers else ""


def _answer(trace: StoredTrace, answer: Answer) -> str:
    if not answer.judgments:
        said = _WAITING if answer.waits else f"<span>{escape(answer.silence)}</span>"
        return f"<li><strong>{escape(answer.name)}</strong>{said}</li>"
    pieces = [*answer_words(answer, trace), *([ONLY_VALIDITY] if answer.outputs == Outputs.VALIDITY else [])]
    said = "".join(f"<span>{piece}</span>" for piece in pieces)
    source = _WAITING if answer.waits else ""
    source += "" if answer.stored else '<span class="src">scored for this page, not stored</span>'
    return f"<li><strong>{escape(answer.name)}</strong>{said}{source}{_evidence(trace, answer)}</li>"


def _evidence(trace: StoredTrace, answer: Answer) -> str:
    if not any(judgment.hindsight for judgment in answer.judgments):
        return ""
    address = escape("/evidence?" + urlencode({"trace": trace.trace_id, "evaluator": answer.name}))
    return f'<a class="evidence" href="{address}" aria-label="Evidence of {escape(answer.name)}">Evidence</a>'


def _head(trace: StoredTrace, columns: Sequence[Answer]) -> str:
    """Column titles; screen readers hear evaluator and mode from each bar."""
    gold = '<span class="gh">Gold</span>' if trace.has_gold else ""
    titles = [f'<div class="said {_shape(one)}">{_titles(one, len(columns))}</div>' for one in columns]
    return f"""<div class="head" aria-hidden="true"><span></span>{gold}<div class="subs"><div class="sub">
<span>Step</span>{"".join(titles)}</div></div></div>"""


def _titles(answer: Answer, count: int) -> str:
    if count > 1:
        order = '<span class="order">online over offline</span>' if answer.change is not None else ""
        return f'<span class="whose">{escape(answer.name)}</span>{order}'
    if answer.outputs == Outputs.VERDICT:
        return "<span>Verdict</span>"
    titles = "".join(f"<span>{mode.value.capitalize()} · {_SEES[mode]}</span>" for mode in answer.modes)
    return titles + ('<span class="d">change</span>' if answer.change is not None else "")


def _step(
    trace: StoredTrace, number: int, columns: Sequence[Answer], wanted: str, people: str, disputes: str
) -> str:
    step = trace.steps[number]
    gold = gold_html(step) if trace.has_gold else ""
    gold = f'<div class="disputable">{gold}{disputes}</div>' if disputes else gold
    first = sum(len(before.substeps) for before in trace.steps[:number])
    note = ("<em>gold: first error</em>" if number == trace.first_error else "") + people
    substeps = [
        _substep(trace, first + place, columns, wanted, note="" if place else note)
        for place in range(len(step.substeps))
    ]
    wrong = ' class="wrong"' if step.valid is False else ""
    return f'<li{wrong}><b>{number + 1}</b>{gold}<div class="subs">{"".join(substeps)}</div></li>'


def _substep(trace: StoredTrace, i: int, columns: Sequence[Answer], wanted: str, note: str) -> str:
    said = "".join(_said(answer, i, len(columns) > 1) for answer in columns)
    name = step_name(trace, i)
    label = f'<span class="sn">{name}</span>' if "." in name else ""
    text = marked_html(text_html(trace.substeps[i]), wanted)
    return f'<div class="sub"><div class="t">{label}{text}{note}</div>{said}</div>'


def _said(answer: Answer, i: int, several: bool) -> str:
    """What one evaluator says of a sub-step, in the modes that it has."""
    name = answer.name if several else ""
    cells = [_cell(answer, mode, i, name) for mode in answer.modes]
    if answer.change is not None:
        cells.append(change_html(float(answer.change[i])))
    whose = f'<span class="whose">{escape(name)}</span>' if name else ""
    return f'<div class="said {_shape(answer)}">{whose}{"".join(cells)}</div>'


def _shape(answer: Answer) -> str:
    """A class that tells how many modes a column shows."""
    if answer.outputs == Outputs.VERDICT:
        return "marks"
    return "single" if answer.change is None else "both"


def _cell(answer: Answer, mode: Mode, i: int, name: str) -> str:
    probs = answer.modes[mode].probs[i]
    if answer.silent[mode][i]:
        return f'<div class="c silent" data-mode="{mode.value}"><span class="mark">–</span>says nothing</div>'
    if answer.outputs == Outputs.VERDICT:
        mark, title = _MARKS[Label(int(probs.argmax()))]
        return f'<div class="c verdict" data-mode="{mode.value}"><span class="mark">{mark}</span>{title}</div>'
    return bar_html(mode.value, probs, answer.thresholds, name, answer.outputs)
