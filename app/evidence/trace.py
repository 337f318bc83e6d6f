"""The evidence on one trace as HTML: the hindsight matrix, the reveal, the curve, and explanatory sentences."""

import json
from collections.abc import Sequence
from dataclasses import replace
from math import ceil

from markupsafe import Markup

from stepsight.app.browse.verdicts import first_below, outcome_words
from stepsight.app.evidence.address import EvidenceAddress
from stepsight.app.evidence.evidence import MOST_CELLS, Evidence
from stepsight.app.evidence.sentences import rest_sentence, unused_sentence
from stepsight.app.web.html import render
from stepsight.app.web.step_bars import (
    ONLY_VALIDITY,
    change_html,
    conclusion_html,
    judged_steps,
    note_html,
)
from stepsight.core.errors import UserError
from stepsight.core.judgment_record import triangle_cells
from stepsight.core.left_out import PLACEHOLDER, Dependence, Gap, LeaveOneOut
from stepsight.core.scores import StepScores
from stepsight.core.trace import Trace

# The largest number of names beside the matrix that do not touch.
_MOST_NAMES = 20
# What stands where a step is left out, as the page offers it.
_GAPS = {Gap.DELETED: "left out", Gap.PLACEHOLDER: f"replaced by “{PLACEHOLDER}”"}
# The number of sub-steps from which on the page asks before it leaves each of them out.
_MANY = 60
# The largest matrices, in sub-steps, whose numbers fit on every screen, on a tablet, and on a wide screen.
_ROOM = ((6, "small"), (12, "medium"), (20, "large"))


def evidence_html(
    evidence: Evidence,
    address: EvidenceAddress,
    ask: str = "",
    left_out: LeaveOneOut | None = None,
    *,
    in_file: bool = False,
) -> Markup:
    """Render all evidence on one trace, with the selection that the address makes.

    Leave-one-out scores are included if `left_out` is given. Otherwise, the page's script requests them from the
    URL `ask` unless it is "". With `in_file`, the whole record of the judgment is included, however long it is.
    """
    problem, step, after = _opened(evidence, address)
    value = address.value if address.value in evidence.values else evidence.values[0]
    if value != address.value:
        problem += f" {evidence.evaluator} {ONLY_VALIDITY}. There is no {address.value} to show."
    n = len(evidence)
    data = evidence.judgment_data(is_whole=in_file) | {
        "marked": json.dumps([(row, column, words) for (row, column), words in evidence.marked_cells.items()]),
        "step": str(step),
        "after": str(after),
        "value": value,
    }
    if address.present and not in_file:
        data["present"] = address.present
    if left_out is not None:
        data["left-out"] = json.dumps(left_out_record(evidence, left_out))
    elif ask:
        data["ask"] = ask
    return render(
        "evidence/trace.html",
        evidence=evidence,
        problem=problem.strip(),
        note=note_html(evidence.trace.meta.get("note")),
        conclusion=conclusion_html(evidence.trace, [replace(evidence.judgments, name=evidence.evaluator)]),
        failing=bool(evidence.failing),
        outcome=_outcome(evidence),
        only_validity=ONLY_VALIDITY,
        constant=evidence.constant_sentence,
        gaps=[(gap.value, words) for gap, words in _GAPS.items()],
        gap=address.gap,
        offer=_offer(evidence) if ask else "",
        is_stored=address.left_out in evidence.stored_gaps,
        data=data,
        every=ceil(n / _MOST_NAMES),
        size=next((name for most, name in _ROOM if n <= most), "many"),
        # The page's script draws larger ones.
        rows=[StepScores(row).validity.tolist() for row in evidence.hindsight.rows] if n <= MOST_CELLS else [],
        steps=judged_steps(evidence.trace),
        changed=lambda i: change_html(float(evidence.hindsight.retroactive[i])),
        ends=evidence.trace.step_ends.tolist(),
    )


def _outcome(evidence: Evidence) -> str:
    """Compare the offline verdicts with the gold labels, or return "" if there are none."""
    threshold, trace = evidence.thresholds.validity, evidence.trace
    return outcome_words(first_below(evidence.hindsight.offline, threshold, trace), trace) if trace.has_gold else ""


def left_out_record(evidence: Evidence, left_out: LeaveOneOut) -> dict[str, object]:
    """Return the leave-one-out scores as JSON for the page's script.

    Row `i` holds the scores without sub-step `i`. Each sub-step has two sentences: one that names the later
    sub-steps on which its verdict rests, and one that names the sub-steps that rest on it.
    """
    dependence = Dependence(left_out, evidence.thresholds.validity)
    steps = range(len(evidence))
    return {
        # Three digits are more than is shown, and a long trace has many numbers.
        "rows": triangle_cells(tuple(left_out.probs.round(3)), evidence.about.outputs),
        "says": [evidence.left_out_sentence(left_out, step) for step in steps],
        "rests": [rest_sentence(evidence.names, dependence, step) for step in steps],
        "unused": unused_sentence(evidence.names, dependence),
    }


def _offer(evidence: Evidence) -> str:
    """Return the label of the button that leaves out each step, or "" if this is so cheap that the page does it
    without a button."""
    if not evidence.calls and len(evidence) < _MANY:
        return ""
    what = f"about {evidence.calls} calls to a server" if evidence.calls else f"{len(evidence)} passes of the model"
    return f"Leave out each step: {what}"


def waiting_html(trace: Trace, title: str, message: UserError, problems: Sequence[str]) -> Markup:
    """Render a trace that is still being judged: its problem, its steps, and the reason for the wait."""
    values = {"trace": trace, "title": title, "message": message, "problems": problems}
    return render("evidence/waiting.html", steps=judged_steps(trace), **values)


def _opened(evidence: Evidence, address: EvidenceAddress) -> tuple[str, int, int]:
    """Return an error in the address (or ""), the index of the selected sub-step, and the index of the last
    sub-step revealed."""
    last = len(evidence) - 1
    try:
        return "", evidence.place(address.step, evidence.focus), evidence.place(address.after, last)
    except UserError as error:
        return str(error.without_options()), evidence.focus, last
