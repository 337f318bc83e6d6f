"""The page for labelling a trace, and the HTML of the steps that its script requests one by one."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from stepsight.app.annotate.campaigns import sees_everybody
from stepsight.app.annotate.label_keys import KIND_KEYS, LABEL_KEYS, script_keys
from stepsight.app.web.html import render
from stepsight.app.web.step_bars import checked_step
from stepsight.core.trace import Trace
from stepsight.storage.database.store import Store
from stepsight.storage.labelling.annotation import Annotation
from stepsight.storage.labelling.campaigns import Campaign, guideline_text
from stepsight.storage.labelling.progress import campaign_progress
from stepsight.storage.labelling.queue import Assignment, assign_next, last_submitted
from stepsight.storage.labelling.record import read_annotation
from stepsight.storage.labelling.review import ShownScores, read_scores
from stepsight.storage.people.users import User

_ERROR_TITLES = {
    "calculation": "computes wrongly",
    "misreading": "takes the problem or an earlier step for another",
    "wrong method": "uses a method or rule that does not apply",
    "unjustified": "claims what does not follow, or is not shown",
    "contradiction": "goes against another step, or a known fact",
    "missing case": "leaves out a case or a condition",
    "other": "anything else: say what in a comment",
}
_PRMBENCH = (
    ("redundency", "redundant", "says again what is known, or what nothing needs"),
    ("circular", "circular", "rests on what it is to show"),
    ("counterfactual", "counterfactual", "goes against a known fact or rule"),
    ("step_contradiction", "contradicts a step", "goes against another step"),
    ("domain_inconsistency", "wrong domain", "uses a rule where it does not hold"),
    ("confidence", "false certainty", "claims for sure what is not so"),
    ("missing_condition", "missing condition", "leaves out a condition or a case that it needs"),
    ("deception", "misleading detail", "looks right, and a detail of it is off"),
)
ERROR_NAMES = {kind: name for kind, name, _ in _PRMBENCH}
"""Readable names of kinds of error with another spelling."""
_TITLES = _ERROR_TITLES | {kind: title for kind, _, title in _PRMBENCH}


@dataclass(frozen=True)
class ScoreBar:
    """An evaluator's scores of a step, drawn as a bar whose parts sum to 1. If the evaluator gives verdicts in
    words, `label` is the label that the verdict stands for."""

    name: str
    validity: float
    redundancy: float | None
    label: str = ""

    @property
    def title(self) -> str:
        redundancy = "" if self.redundancy is None else f", redundancy {self.redundancy:.2f}"
        return f"{self.name}: validity {self.validity:.2f}{redundancy}"

    @property
    def parts(self) -> dict[str, float]:
        if self.redundancy is None:
            return {"neg": 1 - self.validity, "pos": self.validity}
        useful = max(self.validity - self.redundancy, 0.0)
        return {"neg": 1 - self.validity, "neu": min(self.redundancy, self.validity), "pos": useful}


def label_html(store: Store, assignment: Assignment, annotation: Annotation, user: User) -> Markup:
    """Render the labelling page of an open assignment. It contains only the steps revealed so far."""
    campaign = assignment.campaign
    return render(
        "annotate/label.html",
        assignment=assignment,
        campaign=campaign,
        annotation=annotation,
        state=json.dumps(annotation.as_json()),
        person=user.id,
        guideline_text=guideline_text(store, campaign.id, assignment.guideline),
        progress=campaign_progress(store, campaign.id, user.id),
        sees_everybody=sees_everybody(user),
        script_keys=script_keys(LABEL_KEYS),
        kind_keys=KIND_KEYS,
        previous=last_submitted(store, campaign.id, user),
        answer=formula(assignment.answer),
        **_steps(store, assignment, annotation, user),
    )


def next_html(store: Store, campaign_id: int, user: User) -> Markup:
    """Render the labelling page for the user's next trace in a campaign, or a notice if no trace is left for the
    user. Raises the same errors as `assign_next`."""
    assignment = assign_next(store, campaign_id, user)
    if assignment is None:
        progress = campaign_progress(store, campaign_id, user.id)
        return render("annotate/nothing_left.html", progress=progress, campaign_id=campaign_id)
    return label_html(store, assignment, read_annotation(store, assignment.slot_id, user.id), user)


def formula(answer: str | None) -> str:
    """Return a reference answer as text, or "" if it is None. Benchmarks omit the `$` around formulas, so an answer
    that contains a backslash is put between dollar signs."""
    if answer is None:
        return ""
    return f"${answer}$" if "\\" in answer and "$" not in answer else answer


def steps_html(store: Store, assignment: Assignment, annotation: Annotation, user: User, start: int) -> Markup:
    """Render the revealed steps from `start` on, counted from 0, as list items."""
    return render("annotate/steps.html", **_steps(store, assignment, annotation, user, start))


def _steps(
    store: Store, assignment: Assignment, annotation: Annotation, user: User, start: int = 0
) -> dict[str, Any]:
    steps = assignment.trace.steps
    scores = read_scores(store, assignment.slot_id, user, annotation)
    shown = range(start, min(annotation.revealed, len(steps)))
    campaign, trace = assignment.campaign, assignment.trace
    rows = [
        (
            number,
            steps[number],
            marked_step(campaign, trace, number),
            score_bars(scores, number),
        )
        for number in shown
    ]
    errors = [
        (kind, key, ERROR_NAMES.get(kind, kind), _TITLES.get(kind, ""))
        for kind, key in zip(campaign.error_kinds, KIND_KEYS, strict=False)
    ]
    return {"rows": rows, "keys": LABEL_KEYS, "errors": errors, "stepwise": campaign.stepwise}


def marked_step(campaign: Campaign, trace: Trace, number: int) -> list[Markup]:
    """Render the sub-steps of step `number`, counted from 0, with failing equations marked.

    Returns an empty list if the campaign does not mark equations. Later steps do not change the marks on earlier
    ones.
    """
    return checked_step(trace, number) if campaign.shows_equations else []


def score_bars(scores: Sequence[ShownScores], number: int) -> list[ScoreBar]:
    """Build a bar for each evaluator that scores step `number`, counted from 0."""
    bars = []
    for one in scores:
        validity = one.validity[number]
        if validity is not None:
            redundancy = one.redundancy[number]
            label = _label(validity, redundancy) if one.in_words else ""
            bars.append(ScoreBar(f"{one.evaluator}, {one.mode}", validity, redundancy, label))
    return bars


def _label(validity: float, redundancy: float | None) -> str:
    """Return the label that a verdict in words stands for. Each of the verdict's scores is 0 or 1."""
    if not validity:
        return "neg"
    return "neu" if redundancy else "pos"
