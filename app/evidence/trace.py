"""The evidence of one trace as HTML: hindsight matrix, reveal, curve, and what later steps did, in words."""

import json
from collections.abc import Sequence
from math import ceil

from markupsafe import Markup

from stepsight.app.browse.verdicts import first_below, outcome_words
from stepsight.app.evidence.address import EvidenceAddress
from stepsight.app.evidence.evidence import Evidence
from stepsight.app.evidence.sentences import constant_sentence
from stepsight.app.web.html import render
from stepsight.app.web.step_bars import ONLY_VALIDITY, judged_steps, note_html, signed, solution_html
from stepsight.core.errors import UserError
from stepsight.core.evidence import LeaveOneOut
from stepsight.core.judgment_record import triangle_cells
from stepsight.core.scores import StepScores
from stepsight.core.trace import Trace

# Names beside the matrix at most, so that they do not touch.
_MOST_NAMES = 20
# Sub-steps up to which the numbers of the matrix have room: always, on a tablet, on a wide screen.
_ROOM = ((6, "small"), (12, "medium"), (20, "large"))


def evidence_html(
    evidence: Evidence, address: EvidenceAddress, ask: str = "", left_out: LeaveOneOut | None = None
) -> Markup:
    """Everything about one trace, as the address opens it.

    What leaving steps out does is in it where `left_out` is given; else the page's script asks for it at the
    address `ask`, if there is one.
    """
    problem, step, after = _opened(evidence, address)
    value = address.value if address.value in evidence.values else evidence.values[0]
    if value != address.value:
        problem += f" {evidence.evaluator} {ONLY_VALIDITY}. There is no {address.value} to show."
    data = {
        "judgment": evidence.record.model_dump_json(),
        "step": str(step),
        "after": str(after),
        "value": value,
    }
    if left_out is not None:
        data["left-out"] = json.dumps(left_out_record(evidence, left_out))
    elif ask:
        data["ask"] = ask
    n = len(evidence)
    return render(
        "evidence/trace.html",
        evidence=evidence,
        problem=problem.strip(),
        note=note_html(evidence.trace.meta.get("note")),
        online=_solution(evidence, evidence.hindsight.online),
        offline=_solution(evidence, evidence.hindsight.offline),
        change=_largest_change(evidence),
        only_validity=ONLY_VALIDITY,
        constant=constant_sentence(evidence.evaluator),
        data=data,
        every=ceil(n / _MOST_NAMES),
        size=next((name for most, name in _ROOM if n <= most), "many"),
        rows=[StepScores(row).validity.tolist() for row in evidence.hindsight.rows],
        ends=evidence.trace.step_ends.tolist(),
    )


def left_out_record(evidence: Evidence, left_out: LeaveOneOut) -> dict[str, object]:
    """Leave-one-out scores as the page's script reads them: the triangle, and a sentence for each sub-step."""
    return {
        "rows": triangle_cells(left_out.rows, evidence.outputs),
        "says": evidence.left_out_sentences(left_out),
    }


def waiting_html(trace: Trace, title: str, message: UserError, problems: Sequence[str]) -> Markup:
    """A trace that is being judged: the problem and the steps, and why there is nothing more."""
    values = {"trace": trace, "title": title, "message": message, "problems": problems}
    return render("evidence/waiting.html", steps=judged_steps(trace), **values)


def _opened(evidence: Evidence, address: EvidenceAddress) -> tuple[str, int, int]:
    """A message on what the address says wrongly, the sub-step to look at and the last one revealed."""
    last = len(evidence) - 1
    try:
        return "", evidence.place(address.step, evidence.focus), evidence.place(address.after, last)
    except UserError as error:
        return str(error), evidence.focus, last


def _solution(evidence: Evidence, scores: StepScores) -> dict[str, str]:
    """The verdict on the solution, and how the first step called wrong stands against the gold."""
    first_wrong = first_below(scores, evidence.thresholds.validity, evidence.trace)
    return {
        "verdict": solution_html(scores, evidence.thresholds, evidence.outputs),
        "outcome": outcome_words(first_wrong, evidence.trace),
    }


def _largest_change(evidence: Evidence) -> str:
    largest = max(evidence.revisions, key=lambda revision: abs(revision.change))
    return f"step {largest.step + 1}, {signed(largest.change)}" if abs(largest.change) >= 0.005 else "none"
