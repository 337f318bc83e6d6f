"""A solution scored on the Score page: the verdicts, a row per sub-step, and how an edit moved them."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

import numpy as np

from stepsight.app.score.comparison import Fate, Matches, is_move, largest_move
from stepsight.app.web.judged import (
    ONLY_VALIDITY,
    bar_html,
    change_html,
    legend_html,
    notable,
    note_html,
    notice_html,
    signed,
    step_name,
)
from stepsight.app.web.text import text_html, text_key
from stepsight.core.judgment import Mode
from stepsight.core.scores import Hindsight, Outputs, StepScores, Thresholds, judge_solution
from stepsight.core.trace import Trace

_PREVIEW = 80


@dataclass(frozen=True)
class Scored:
    """What one evaluator said of the solution, and of the earlier one that it is compared with, if any; `outputs`
    tells what kind of thing it says."""

    evaluator: str
    now: Hindsight
    before: Hindsight | None = None
    outputs: Outputs = Outputs.THREE_WAY

    @property
    def is_three_way(self) -> bool:
        return self.outputs == Outputs.THREE_WAY


@dataclass(frozen=True)
class Earlier:
    """The solution that this one is compared with, its permalink, and whether a person `kept` it for that."""

    trace: Trace
    matches: Matches
    token: str
    kept: bool = False


@dataclass(frozen=True)
class Result:
    """A solution with what each evaluator said of it. `token` is its permalink's, None where there is none;
    `note` a sentence on it, `problems` what could not be done."""

    trace: Trace
    scored: tuple[Scored, ...]
    thresholds: Thresholds
    token: str | None = None
    earlier: Earlier | None = None
    note: str = ""
    problems: tuple[str, ...] = ()


def scored_html(result: Result, out: str = "") -> str:
    """The whole result; `out` is the HTML of what can be done with it. `data-state` tells the page's script whether
    it is another one."""
    count = len(result.scored)
    body = _body(result) + out
    return f"""{notices_html(result.problems)}<section class="judged scored by{min(count, 4)}"
 style="--evaluators:{count}" data-state="{text_key(body)}" data-token="{escape(result.token or "")}"
 data-validity="{result.thresholds.validity!r}" data-redundancy="{result.thresholds.redundancy!r}"
 {_compared_with(result.earlier)}>{body}</section>"""


def _body(result: Result) -> str:
    count = len(result.scored)
    wide = f' role="region" tabindex="0" aria-label="Scores of {count} evaluators"' if count > 1 else ""
    rows = "".join(_row(result, i) for i in range(len(result.trace.substeps)))
    return f"""<p class="q">{text_html(result.trace.problem)}</p>{note_html(result.note)}
{"".join(_summary(result, scored) for scored in result.scored)}{_earlier(result)}{_sliders(result)}
<div class="wide"{wide}>{_head(result.scored)}<ol class="steps">{rows}</ol></div>
{legend_html([scored.outputs for scored in result.scored])}"""


def notices_html(problems: Sequence[str]) -> str:
    """A notice for each message."""
    return "".join(map(notice_html, problems))


def _compared_with(earlier: Earlier | None) -> str:
    return f'data-{"kept" if earlier.kept else "before"}="{escape(earlier.token)}"' if earlier else ""


def _summary(result: Result, scored: Scored) -> str:
    change = scored.now.retroactive
    largest = int(np.abs(change).argmax())
    moved = f"step {step_name(result.trace, largest)}, {signed(float(change[largest]))}" if change.any() else "none"
    only = "" if scored.is_three_way else f'<span class="hint">{ONLY_VALIDITY}</span>'
    return f"""<div class="sum"><span class="who">evaluator <strong>{escape(scored.evaluator)}</strong></span>
{_said(Mode.ONLINE, scored, result.thresholds)}
{_said(Mode.OFFLINE, scored, result.thresholds)}
<span>largest retroactive change: <strong>{moved}</strong></span>{only}</div>"""


def _said(mode: Mode, scored: Scored, thresholds: Thresholds) -> str:
    """The verdict on the solution in one mode; the page's script writes it anew when a threshold moves."""
    scores = scored.now.online if mode == Mode.ONLINE else scored.now.offline
    verdict = judge_solution(scores, thresholds)
    kind, word = ("good", "valid") if verdict.valid else ("bad", "not valid")
    also = (
        f'<span class="also"{"" if verdict.redundant else " hidden"}> · redundant {verdict.redundancy:.2f}</span>'
    )
    return f"""<span class="said" data-mode="{mode}">{mode.capitalize()}: <strong class="{kind}">{word}</strong>
{verdict.validity:.2f}{also if scored.is_three_way else ""}
<span class="counts">{_counts(scores, thresholds, three=scored.is_three_way)}</span></span>"""


def _counts(scores: StepScores, thresholds: Thresholds, *, three: bool) -> str:
    valid = scores.validity >= thresholds.validity
    redundant = int((valid & (scores.redundancy >= thresholds.redundancy)).sum()) if three else 0
    return f"{int((~valid).sum())} of {len(scores)} not valid" + (f", {redundant} redundant" if redundant else "")


def _sliders(result: Result) -> str:
    """Thresholds that judge anew in the page itself; that of redundancy where somebody says something of it."""
    thresholds = result.thresholds
    redundancy = _slider("redundancy", "Redundant from", thresholds.redundancy)
    return f"""<form class="thresholds" aria-label="Thresholds">
{_slider("validity", "Valid from", thresholds.validity)}
{redundancy if any(scored.is_three_way for scored in result.scored) else ""}
<button type="button" class="button" data-defaults>Defaults</button></form>"""


def _slider(name: str, label: str, value: float) -> str:
    return f"""<label>{label} <input type="range" name="{name}" min="0" max="1" step="0.01" value="{value!r}">
<output>{value:.2f}</output></label>"""


def _head(scored: Sequence[Scored]) -> str:
    """Column titles; screen readers hear evaluator and mode from each bar."""
    if len(scored) == 1:
        return """<div class="head" aria-hidden="true"><span></span><span>Step</span>
<span>Online · sees the steps up to this one</span><span>Offline · sees the whole solution</span>
<span class="d">change</span></div>"""
    names = "".join(f'<span class="name">{escape(one.evaluator)}</span>' for one in scored)
    modes = '<span class="first">Online</span><span>Offline</span><span class="d">change</span>' * len(scored)
    return f"""<div class="head" aria-hidden="true"><span></span><span></span>{names}
<span></span><span>Step</span>{modes}</div>"""


def _row(result: Result, i: int) -> str:
    trace, several = result.trace, len(result.scored) > 1
    more = ' class="more"' if i and trace.owners[i - 1] == trace.owners[i] else ""
    cells = [f'<b>{step_name(trace, i)}</b><div class="t">{text_html(trace.substeps[i])}{_fate(result, i)}</div>']
    numbers = []
    for scored in result.scored:
        for mode, scores in ((Mode.ONLINE, scored.now.online), (Mode.OFFLINE, scored.now.offline)):
            name = scored.evaluator if several else ""
            bar = bar_html(mode, scores.probs[i], result.thresholds, name, scored.outputs)
            who = f' data-who="{escape(scored.evaluator)}"' if several and mode == Mode.ONLINE else ""
            cells.append(f'<div class="cell"{who}>{bar}{_was(result, scored, mode, i)}</div>')
            redundancy = float(scores.redundancy[i]) if scored.is_three_way else None
            numbers.append([float(scores.validity[i]), redundancy])
        cells.append(change_html(float(scored.now.retroactive[i])))
    return f'<li{more} data-scores="{json.dumps(numbers, separators=(",", ":"))}">{"".join(cells)}</li>'


def _was(result: Result, scored: Scored, mode: Mode, i: int) -> str:
    """What this score was before the edit, where it shows."""
    if result.earlier is None or scored.before is None:
        return ""
    was = result.earlier.matches.now[i].was
    if was is None:
        return ""
    old, new = (scores.online if mode == Mode.ONLINE else scores.offline for scores in (scored.before, scored.now))
    change = float(new.validity[i]) - float(old.validity[was])
    if not is_move(change):
        return ""
    return f"""<span class="was {notable(change)}" data-compared>was {float(old.validity[was]):.2f},
now&nbsp;{float(new.validity[i]):.2f}</span>"""


def _fate(result: Result, i: int) -> str:
    if result.earlier is None:
        return ""
    match = result.earlier.matches.now[i]
    if match.fate == Fate.SAME:
        return ""
    text = match.fate.value
    if match.fate == Fate.MOVED and match.was is not None:
        text += f", was step {step_name(result.earlier.trace, match.was)}"
    return f'<small class="fate" data-compared>{text}</small>'


def _earlier(result: Result) -> str:
    """How the scores moved against the earlier result."""
    earlier = result.earlier
    if earlier is None:
        return ""
    against = "the result kept as comparison" if earlier.kept else "the result before the edit"
    told = "".join(f"<p>{_told(result, scored)}</p>" for scored in result.scored if scored.before)
    fates = [
        f"{count} {fate.value}" for fate in (Fate.NEW, Fate.EDITED, Fate.MOVED)
        if (count := earlier.matches.count(fate))
    ]  # fmt: skip
    gone = "; ".join(
        f"step {step_name(earlier.trace, i)}, “{text_html(_short(earlier.trace.substeps[i]))}”"
        for i in earlier.matches.gone
    )
    steps = f"Steps: {', '.join(fates)}. " if fates else ""
    edit = f'<p class="hint">{steps}{f"Gone: {gone}." if gone else ""}</p>' if steps or gone else ""
    return f"""<div class="earlier" data-compared><div><p class="hint">Against {against}</p>{told}{edit}</div>
<button type="button" class="button" data-forget>Forget</button></div>"""


def _told(result: Result, scored: Scored) -> str:
    """The largest move in words."""
    if result.earlier is None or scored.before is None:
        return ""
    who = f"{escape(scored.evaluator)}: " if len(result.scored) > 1 else ""
    if not result.earlier.matches.kept:
        return f"{who}No step is in both."
    move = largest_move(result.earlier.matches, scored.before, scored.now)
    if move is None:
        return f"{who}No score of a step that is in both has moved."
    verb = "fell" if move.change < 0 else "rose"
    return (
        f"{who}<strong>Step {step_name(result.trace, move.step)} {verb} from {move.before:.2f} to "
        f"{move.now:.2f}</strong> {move.mode}, its text unchanged."
    )


def _short(text: str) -> str:
    return text if len(text) <= _PREVIEW else text[:_PREVIEW].rsplit(" ", 1)[0] + " …"
