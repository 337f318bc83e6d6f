"""The evidence of one trace as HTML: hindsight matrix, reveal, curve, and what later steps did, in words.

What moves is drawn by the page's script (`assets/web/js/evidence.js`) from the numbers in the section's attributes.
"""

import json
from collections.abc import Iterator
from html import escape
from math import ceil

from stepsight.app.browse.verdicts import first_below, outcome_words
from stepsight.app.evidence.evidence import Evidence, packed
from stepsight.app.evidence.evidence_address import EvidenceAddress
from stepsight.app.evidence.story import constant_sentence
from stepsight.app.web.judged import (
    ONLY_VALIDITY,
    bar_html,
    change_html,
    gold_html,
    note_html,
    notice_html,
    signed,
    solution_html,
)
from stepsight.app.web.text import text_html
from stepsight.core.errors import UserError
from stepsight.core.evidence import LeaveOneOut
from stepsight.core.scores import StepScores

# Names beside the matrix at most, so that they do not touch.
_MOST_NAMES = 20
# Sub-steps up to which the numbers of the matrix have room: always, on a tablet, on a wide screen.
_ROOM = ((6, "small"), (12, "medium"), (20, "large"))


def evidence_html(
    evidence: Evidence, address: EvidenceAddress, ask: str = "", left_out: LeaveOneOut | None = None
) -> str:
    """Everything about one trace, as the address opens it.

    What leaving steps out does is in it where `left_out` is given; else the page's script asks for it at the
    address `ask`, an attribute's value, if there is one.
    """
    notice, step, after = _opened(evidence, address)
    value = address.value if address.value in evidence.values else evidence.values[0]
    if value != address.value:
        notice += notice_html(f"{evidence.evaluator} {ONLY_VALIDITY}. There is no {address.value} to show.")
    if evidence.is_causal:
        told = f'<p class="say constant">{escape(constant_sentence(evidence.evaluator))}</p>'
        return f'{_head(evidence)}<section class="evidence">{told}{_steps(evidence, moves=False)}</section>'
    attributes = {
        "probs": packed(evidence.hindsight.packed),
        "names": json.dumps(evidence.names),
        "validity": repr(evidence.thresholds.validity),
        "step": str(step),
        "after": str(after),
        "value": value,
    }
    if evidence.is_three_way:
        attributes["redundancy"] = repr(evidence.thresholds.redundancy)
    if left_out is not None:
        attributes["left-out"] = json.dumps(left_out_record(evidence, left_out))
    data = "".join(f' data-{name}="{escape(value)}"' for name, value in attributes.items())
    data += f' data-ask="{ask}"' if ask and left_out is None else ""
    return f"""{notice}{_head(evidence)}<section class="evidence moves" style="--n:{len(evidence)}"{data}>
{_player(evidence, value)}
<div class="card proof"><div class="matrix">{_matrix(evidence)}{_matrix_key(evidence)}</div>
<div class="story"><div aria-live="polite">{"".join(_told(evidence, i) for i in range(len(evidence)))}</div>
<div class="curve"></div><p class="hint curve-key"></p></div></div>
{_steps(evidence, moves=True)}</section>"""


def left_out_record(evidence: Evidence, left_out: LeaveOneOut) -> dict[str, object]:
    """What the page's script wants to know of leaving steps out: the triangle, and a sentence for each sub-step."""
    return {"probs": packed(left_out.packed), "says": evidence.left_out_sentences(left_out)}


def _opened(evidence: Evidence, address: EvidenceAddress) -> tuple[str, int, int]:
    """A notice on what the address says wrongly, the sub-step to look at and the last one revealed."""
    last = len(evidence) - 1
    try:
        return "", evidence.place(address.step, evidence.focus), evidence.place(address.after, last)
    except UserError as error:
        return notice_html(str(error)), evidence.focus, last


def _said(evidence: Evidence, scores: StepScores) -> str:
    """The verdict on the solution, and how the first step called wrong stands against the gold."""
    outcome = outcome_words(first_below(scores, evidence.thresholds.validity, evidence.trace), evidence.trace)
    return f"{solution_html(scores, evidence.thresholds, evidence.outputs)}{outcome and f', {outcome}'}"


def _head(evidence: Evidence) -> str:
    hindsight = evidence.hindsight
    largest = max(evidence.revisions, key=lambda revision: abs(revision.change))
    moved = f"step {largest.step + 1}, {signed(largest.change)}" if abs(largest.change) >= 0.005 else "none"
    note = note_html(evidence.trace.meta.get("note"))
    only = "" if evidence.is_three_way else f'<span class="hint">{ONLY_VALIDITY}</span>'
    return f"""<div class="judged opened"><p class="q">{text_html(evidence.trace.problem)}</p>{note}
<div class="sum"><span>Online: {_said(evidence, hindsight.online)}</span>
<span>Offline: {_said(evidence, hindsight.offline)}</span>
<span>largest retroactive change: <strong>{moved}</strong></span>
<span>evaluator <strong>{escape(evidence.evaluator)}</strong></span>{only}</div></div>"""


def _player(evidence: Evidence, value: str) -> str:
    n = len(evidence)
    choices = "".join(
        f'<label><input type="radio" name="value" value="{one}"{" checked" if one == value else ""}>'
        f"<span>{one}</span></label>"
        for one in evidence.values
    )
    shown = f"""<fieldset class="values"><legend class="unseen">What the matrix and the curve show</legend>
{choices}</fieldset>"""
    return f"""<div class="player"><button type="button" class="button play" aria-pressed="false">Play</button>
<label class="reveal"><span class="unseen">Steps revealed</span>
<input type="range" min="1" max="{n}" value="{n}"></label><span class="now"></span>
{shown if len(evidence.values) > 1 else ""}
</div>"""


def _matrix(evidence: Evidence) -> str:
    n, names = len(evidence), evidence.names
    every = ceil(n / _MOST_NAMES)
    size = next((name for most, name in _ROOM if n <= most), "many")
    # Of the names shown, a phone has room for every second one.
    kinds = {0: ' class="named"', every: ' class="named also"'}
    shown = [kinds.get(i % (2 * every), "") for i in range(n)]
    head = "".join(f'<th scope="col"{shown[i]}>{names[i]}</th>' for i in range(n))
    rows = "".join(
        f'<tr><th scope="row"{shown[j]}><span>after </span>{names[j]}</th>{"".join(_cells(evidence, j))}</tr>'
        for j in range(n)
    )
    return f"""<table role="grid" class="{size}">
<caption class="unseen">Each row is after one more step is revealed, each column is a step.</caption>
<thead><tr><td></td>{head}</tr></thead><tbody>{rows}</tbody></table>"""


def _cells(evidence: Evidence, j: int) -> Iterator[str]:
    for value in StepScores(evidence.hindsight.rows[j]).validity:
        yield f"<td>{value:.2f}</td>"


def _matrix_key(evidence: Evidence) -> str:
    valid = f"valid from {evidence.thresholds.validity:.2f}"
    return f"""<p class="hint matrix-key"><span>outlined: online</span><span>underlined row: offline</span>
<span class="of-validity"><i class="yes"></i>{valid}</span>
<span class="of-validity"><i class="no"></i>not valid</span></p>"""


def _told(evidence: Evidence, step: int) -> str:
    gold = evidence.gold_sentence(step)
    return f"""<div class="told" data-of="{step}" hidden><p class="say">{evidence.change_sentence(step)}</p>
<p class="without"></p>{f"<p>{gold}</p>" if gold else ""}</div>"""


def _steps(evidence: Evidence, *, moves: bool) -> str:
    gold = evidence.trace.has_gold
    rows = "".join(_step(evidence, i, moves) for i in range(len(evidence)))
    columns = " gold" if gold else ""
    title = "<span>Gold</span>" if gold else ""
    head = f"""<div class="head" aria-hidden="true"><span></span>{title}<span>Step</span>
<span class="state">Offline</span><span class="d">since online</span></div>"""
    return f'<div class="judged one{columns}">{head}<ol class="steps">{rows}</ol></div>'


def _step(evidence: Evidence, i: int, moves: bool) -> str:
    trace, name = evidence.trace, evidence.names[i]
    owner = int(trace.owners[i])
    starts = i == 0 or trace.owners[i - 1] != owner
    wrong = trace.steps[owner].valid is False
    classes = " ".join(kind for kind, on in (("wrong", wrong), ("more", not starts)) if on)
    cells = [_pick(name, i) if moves else f"<b>{name}</b>"]
    if trace.has_gold:
        cells.append(gold_html(trace.steps[owner]) if starts else "<span></span>")
    note = "<em>gold: first error</em>" if wrong and owner == trace.first_error and starts else ""
    cells.append(f'<div class="t">{text_html(trace.substeps[i])}{note}</div>')
    offline = evidence.hindsight.offline.probs[i]
    cells.append(bar_html("offline", offline, evidence.thresholds, outputs=evidence.outputs))
    cells.append(change_html(float(evidence.hindsight.retroactive[i])))
    cells.append('<span class="hidden-yet">not revealed yet</span>' if moves else "")
    return f'<li class="{classes}">{"".join(cells)}</li>'


def _pick(name: str, i: int) -> str:
    told = f'data-step="{i}" aria-pressed="false" aria-label="Step {name}"'
    return f'<button type="button" class="pick" {told}>{name}</button>'
