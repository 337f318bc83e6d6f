"""Judged steps as HTML: bars, marks, gold and verdicts as all pages show them, and what they mean."""

from collections.abc import Iterable

from markupsafe import Markup

from stepsight.app.web.html import macro
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
