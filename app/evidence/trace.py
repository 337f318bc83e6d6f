"""The evidence on one trace as HTML: the hindsight matrix, the reveal, the curve, and explanatory sentences."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import ceil
from typing import Any

from markupsafe import Markup

from stepsight.app.browse.verdicts import first_below, outcome_words
from stepsight.app.evidence.address import EvidenceAddress
from stepsight.app.evidence.evidence import MOST_CELLS, Evidence
from stepsight.app.markup.text import text_html
from stepsight.app.web.html import render
from stepsight.app.web.step_bars import (
    ONLY_VALIDITY,
    asked_steps,
    change_html,
    conclusion_html,
    failing_steps,
    first_steps,
    gold_marks,
    judged_steps,
    later_html,
)
from stepsight.core.errors import UserError
from stepsight.core.judgment_record import triangle_cells
from stepsight.core.left_out import PLACEHOLDER, Gap, LeaveOneOut
from stepsight.core.scores import StepScores
from stepsight.core.trace import Trace

STEPS = "/evidence/steps"
CHECKS = "/evidence/checks"
"""The paths where the page of a long trace asks for its later steps, and for what fails in any step."""

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
    alone: EvidenceAddress | None = None,
    left_out: LeaveOneOut | None = None,
    *,
    in_file: bool = False,
) -> Markup:
    """Render all evidence on one trace, with the selection that the address makes.

    Leave-one-out scores are included if `left_out` is given. Otherwise, the page's script requests them from the
    URL `ask` unless it is "". With `in_file`, the whole record of the judgment is included, however long it is. Of
    a long trace, only the first steps are rendered if `alone`, the address of the trace without a selection, is
    given, and `address` does not ask for all. The script then requests the others from there, and what fails in any
    step, because checking all equations takes longer than showing the first steps.
    """
    problem, step, after = _opened(evidence, address)
    value = address.value if address.value in evidence.values else evidence.values[0]
    if value != address.value:
        problem += f" {evidence.evaluator} {ONLY_VALIDITY}. There is no {address.value} to show."
    n = len(evidence)
    shown = first_steps(n, whole=alone is None or address.steps == "all")
    rest = range(shown.stop, n)
    data = evidence.judgment_data(is_whole=in_file) | {
        "marked": "[]" if rest else json.dumps(_marked_cells(evidence)),
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
    if rest and alone is not None:
        data["checks"] = alone.url(CHECKS)
    return render(
        "evidence/trace.html",
        evidence=evidence,
        problem=problem.strip(),
        note=evidence.note,
        conclusion="" if rest else _conclusion(evidence),
        failing=bool(rest or evidence.failing),
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
        rows=[StepScores(row).validity.tolist() for row in evidence.hindsight.rows] if _draws_all(evidence) else [],
        # What is chosen has its story, wherever it is.
        stories=[*shown, *({step} - set(shown))],
        rest=rest,
        later=later_html(rest, _strip_marks(evidence), evidence.names) if rest else "",
        more=alone.url(STEPS) if alone else "",
        whole_url=address.url(steps="all"),
        **_listed(evidence, shown),
    )


def listed_html(evidence: Evidence, query: Mapping[str, str]) -> Markup:
    """Render the sub-steps that a query asks for (see `asked_steps`) as list items. Each holds its story, which the
    page's script moves beside the matrix."""
    places = asked_steps(query, len(evidence))
    return render("evidence/listed.html", evidence=evidence, **_listed(evidence, places, tells=True))


def _listed(evidence: Evidence, places: range, *, tells: bool = False) -> dict[str, Any]:
    trace, moved = evidence.trace, evidence.hindsight.retroactive
    return {
        "trace": trace,
        "steps": evidence.steps(places),
        "tells": tells,
        "changed": lambda i: change_html(float(moved[i])),
        "ends": trace.step_ends.tolist(),
    }


def checks_record(evidence: Evidence) -> dict[str, Any]:
    """Return what fails in a solution as JSON for the page of a long one: the indices of the sub-steps in which
    something does, the cells of the matrix, the sentence on all, and for each sub-step its sentence."""
    sentences = {i: evidence.equation_sentence(i) for i in range(len(evidence))}
    return {
        "fails": failing_steps(evidence.trace),
        "marked": _marked_cells(evidence),
        "conclusion": _conclusion(evidence),
        "says": {i: text_html(sentence) for i, sentence in sentences.items() if sentence},
    }


def _marked_cells(evidence: Evidence) -> list[tuple[int, int, str]]:
    return [(row, column, words) for (row, column), words in evidence.marked_cells.items()]


def _conclusion(evidence: Evidence) -> Markup:
    return conclusion_html(evidence.trace, [replace(evidence.judgments, name=evidence.evaluator)])


def _outcome(evidence: Evidence) -> str:
    """Compare the offline verdicts with the gold labels, or return "" if there are none."""
    threshold, trace = evidence.thresholds.validity, evidence.trace
    return outcome_words(first_below(evidence.hindsight.offline, threshold, trace), trace) if trace.has_gold else ""


def _strip_marks(evidence: Evidence) -> list[str]:
    """Return the marks of each sub-step in the strip of a long solution: a blank each for the verdict and for what
    fails, which the page's script fills in, and gold's, if there is any."""
    trace, gold = evidence.trace, gold_marks(evidence.trace)
    return ["  " + (gold[owner] if trace.has_gold else "") for owner in trace.owners.tolist()]


def left_out_record(evidence: Evidence, left_out: LeaveOneOut) -> dict[str, object]:
    """Return the leave-one-out scores as JSON for the page's script.

    Row `i` holds the scores without sub-step `i`. Each sub-step has two sentences: one that names the later
    sub-steps on which its verdict rests, and one that names the sub-steps that rest on it.
    """
    return {
        # Three digits are more than is shown, and a long trace has many numbers.
        "rows": triangle_cells(tuple(left_out.probs.round(3)), evidence.outputs),
        "says": evidence.left_out_sentences(left_out),
        "rests": evidence.rest_sentences(left_out),
        "unused": evidence.unused_sentence(left_out),
    }


def _offer(evidence: Evidence) -> str:
    """Return the label of the button that leaves out each step, or "" if this is so cheap that the page does it
    without a button."""
    if not evidence.calls and len(evidence) < _MANY:
        return ""
    what = f"about {evidence.calls} calls to a server" if evidence.calls else f"{len(evidence)} passes of the model"
    return f"Leave out each step: {what}"


def waiting_html(trace: Trace, title: str, message: UserError, problems: Sequence[str]) -> Markup:
    """Render a trace that is still being judged: its problem, its steps, and the reason for the wait. Of a long
    trace, only the first steps are shown, with the number of the others."""
    places = first_steps(len(trace.substeps))
    values = {"trace": trace, "title": title, "message": message, "problems": problems}
    steps = judged_steps(trace, places=places)
    return render("evidence/waiting.html", steps=steps, count=len(trace.substeps), **values)


def _opened(evidence: Evidence, address: EvidenceAddress) -> tuple[str, int, int]:
    """Return an error in the address (or ""), the index of the selected sub-step, and the index of the last
    sub-step revealed."""
    last = len(evidence) - 1
    try:
        return "", evidence.place(address.step, evidence.focus), evidence.place(address.after, last)
    except UserError as error:
        return str(error.without_options()), evidence.focus, last


def _draws_all(evidence: Evidence) -> bool:
    """True if the template draws the matrix. Otherwise the page's script does."""
    return len(evidence) <= MOST_CELLS
