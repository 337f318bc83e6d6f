"""A judged trace as one block of HTML: every step with its online and offline bars."""

from collections.abc import Iterable, Mapping, Sequence
from html import escape

from stepsight.app.web.text import text_html
from stepsight.core.judgment import Judgment
from stepsight.core.label import Label
from stepsight.core.scores import Floats, Outputs, StepScores, Thresholds, judge_solution
from stepsight.core.trace import Step, Trace

_MARKS = {"valid": "✓", "redundant": "○", "not valid": "✕"}
NOTABLE = 0.1
"""Retroactive changes from here on are set in colour."""

LEGEND = """<div class="key"><span><i class="neg"></i>neg · wrong</span>
<span><i class="neu"></i>neu · valid but redundant</span><span><i class="pos"></i>pos · correct and useful</span>
<span>✓ valid</span><span>○ redundant</span><span>✕ not valid</span>
<span>number beside a bar = validity</span></div>"""
_LEGEND_OF_VALIDITY = """<div class="key"><span><i class="pos"></i>validity</span>
<span><i class="neg"></i>what it lacks of 1</span><span>✓ valid</span><span>✕ not valid</span>
<span>number beside a bar = validity</span></div>"""

ONLY_VALIDITY = "gives validity only: it says nothing of redundancy"
"""On an evaluator whose outputs are not three-way."""


def legend_html(outputs: Iterable[Outputs]) -> str:
    """What the marks and colours mean in bars of evaluators with these outputs."""
    return LEGEND if Outputs.THREE_WAY in outputs else _LEGEND_OF_VALIDITY


def judged_html(judgment: Judgment, evaluator: str, thresholds: Thresholds) -> str:
    """Problem, both verdicts on the solution, and a row per sub-step, of a judgment in hindsight mode."""
    assert judgment.hindsight is not None
    trace, online, offline = judgment.trace, judgment.hindsight.online, judgment.hindsight.offline
    change = judgment.hindsight.retroactive
    rows = "".join(
        _row(trace, i, online, offline, change, thresholds, gold=trace.has_gold) for i in range(len(online))
    )
    columns = ' class="judged gold"' if trace.has_gold else ' class="judged"'
    return f"""<section{columns}>
<p class="q">{text_html(trace.problem)}</p>
{_summary(trace, online, offline, change, evaluator, thresholds)}
{_head(gold=trace.has_gold)}<ol class="steps">{rows}</ol>
{LEGEND}</section>"""


def plain_html(trace: Trace, notice: str) -> str:
    """The same without scores: problem, steps and gold, under a notice that says why."""
    rows = "".join(_row(trace, i, gold=trace.has_gold) for i in range(len(trace.substeps)))
    return f"""<section class="judged unscored{" gold" if trace.has_gold else ""}">{notice_html(notice)}
<p class="q">{text_html(trace.problem)}</p><ol class="steps">{rows}</ol></section>"""


def notice_html(message: str) -> str:
    """A message about what went wrong and how to go on."""
    return f'<div class="notice" role="alert">{escape(message)}</div>' if message else ""


def note_html(note: object) -> str:
    """A sentence that a trace comes with: on the solution, whatever an evaluator says of it."""
    if not isinstance(note, str) or not note:
        return ""
    return f'<p class="reveals"><span>On the solution itself:</span> {text_html(note)}</p>'


def step_name(trace: Trace, i: int) -> str:
    """`3`, or `3.2` where the step of sub-step `i` has several."""
    owner = int(trace.owners[i])
    first = int((trace.owners < owner).sum())
    return f"{owner + 1}" if len(trace.steps[owner].substeps) == 1 else f"{owner + 1}.{i - first + 1}"


def signed(value: float) -> str:
    """A change with its sign, a true minus, and no negative zero."""
    text = f"{abs(value):.2f}"
    return text if text == "0.00" else f"{'+' if value > 0 else '−'}{text}"


def _summary(
    trace: Trace, online: StepScores, offline: StepScores, change: Floats, evaluator: str, thresholds: Thresholds
) -> str:
    largest = int(abs(change).argmax())
    moved = f"step {step_name(trace, largest)}, {signed(float(change[largest]))}" if change.any() else "none"
    return f"""<div class="sum"><span>Online: {solution_html(online, thresholds)}</span>
<span>Offline: {solution_html(offline, thresholds)}</span>
<span>largest retroactive change: <strong>{moved}</strong></span>
<span>evaluator <strong>{escape(evaluator)}</strong></span></div>"""


def solution_html(scores: StepScores, thresholds: Thresholds, outputs: Outputs = Outputs.THREE_WAY) -> str:
    """The verdict on the solution, with its numbers; on redundancy only where `outputs` are three-way."""
    verdict = judge_solution(scores, thresholds)
    valid = '<strong class="good">valid</strong>' if verdict.valid else '<strong class="bad">not valid</strong>'
    told = verdict.redundant and outputs == Outputs.THREE_WAY
    redundant = f" · redundant {verdict.redundancy:.2f}" if told else ""
    return f"{valid} {verdict.validity:.2f}{redundant}"


def _head(*, gold: bool) -> str:
    """Column titles; screen readers hear the mode from each bar."""
    cell = "<span>Gold</span>" if gold else ""
    return f"""<div class="head" aria-hidden="true"><span></span>{cell}<span>Step</span>
<span>Online · sees the steps up to this one</span><span>Offline · sees the whole solution</span>
<span class="d">change</span></div>"""


def _row(
    trace: Trace,
    i: int,
    online: StepScores | None = None,
    offline: StepScores | None = None,
    change: Floats | None = None,
    thresholds: Thresholds | None = None,
    *,
    gold: bool,
) -> str:
    owner = int(trace.owners[i])
    starts = i == 0 or trace.owners[i - 1] != owner
    wrong = trace.steps[owner].valid is False
    classes = " ".join(name for name, on in (("wrong", wrong), ("more", not starts)) if on)
    note = "<em>gold: first error</em>" if wrong and owner == trace.first_error and starts else ""
    cells = [f"<b>{step_name(trace, i)}</b>"]
    if gold:
        cells.append(gold_html(trace.steps[owner]) if starts else "<span></span>")
    cells.append(f'<div class="t">{text_html(trace.substeps[i])}{note}</div>')
    if online is not None and offline is not None and change is not None and thresholds is not None:
        cells += [
            bar_html("online", online.probs[i], thresholds),
            bar_html("offline", offline.probs[i], thresholds),
        ]
        cells.append(change_html(float(change[i])))
    return f'<li class="{classes}">{"".join(cells)}</li>'


def gold_html(step: Step) -> str:
    """The gold of a step; one without is visibly unlabelled."""
    if step.label is not None:
        mark = {Label.NEG: "✕", Label.NEU: "○", Label.POS: "✓"}[step.label]
        return f'<span class="g" title="gold: {step.label.text}">{mark} {step.label.text}</span>'
    if step.valid:
        return '<span class="g" title="gold: valid; the benchmark does not say whether redundant">✓ valid</span>'
    return '<span class="g none" title="the benchmark says nothing of this step">unlabelled</span>'


def bar_html(
    mode: str,
    probs: Sequence[float] | Floats,
    thresholds: Thresholds,
    name: str = "",
    outputs: Outputs = Outputs.THREE_WAY,
) -> str:
    """The three probabilities of a sub-step as a bar with its mark and validity, or validity alone where the
    evaluator's `outputs` are not three-way; `name` is its name, where several stand side by side."""
    values = {label.text: float(probs[label]) for label in Label}
    validity, three = values["neu"] + values["pos"], outputs == Outputs.THREE_WAY
    shown = values if three else {"neg": 1 - validity, "pos": validity}
    verdict = "not valid"
    if validity >= thresholds.validity:
        verdict = "redundant" if three and values["neu"] >= thresholds.redundancy else "valid"
    told = shown if three else {"validity": validity}
    numbers = ", ".join(f"{kind} {value:.2f}" for kind, value in told.items())
    parts = "".join(f'<i class="{kind}" style="width:{100 * value:.1f}%"></i>' for kind, value in shown.items())
    label = escape(f"{name}, {mode}" if name else mode) + f": {numbers}; {verdict}"
    return f"""<div class="c" data-mode="{mode}"><span class="mark" title="{verdict}">{_MARKS[verdict]}</span>
<div class="bar" role="img" aria-label="{label}" title="{label}">{parts}</div>
<span class="num">{validity:.2f}</span>{_three(values) if three else ""}</div>"""


def _three(values: Mapping[str, float]) -> str:
    told = " ".join(f"<span>{name} {value:.2f}</span>" for name, value in values.items())
    return f'<span class="three">{told}</span>'


def change_html(value: float) -> str:
    """A retroactive change, in colour where it is notable."""
    return f'<div class="d {notable(value)}"><span class="only-narrow">change </span>{signed(value)}</div>'


def notable(value: float) -> str:
    """The class that colours a change, empty where it is a small one."""
    return ("rise" if value > 0 else "fall") if abs(value) >= NOTABLE else ""
