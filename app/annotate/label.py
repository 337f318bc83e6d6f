"""The page of a trace to its annotator: for labelling, with the steps that its script requests one by one, and
after submission, beside gold labels, scores and other people's labels."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from stepsight.app.annotate.campaigns import sees_everybody
from stepsight.app.annotate.disputes import DisputeAddress
from stepsight.app.web.html import render
from stepsight.app.web.step_bars import checked_step
from stepsight.core.trace import Step, Trace
from stepsight.storage.database.store import Store
from stepsight.storage.labelling.annotation import UNSURE, Annotation
from stepsight.storage.labelling.campaigns import Campaign, guideline_text
from stepsight.storage.labelling.progress import campaign_progress
from stepsight.storage.labelling.queue import Assignment, assign_next, last_submitted
from stepsight.storage.labelling.record import read_annotation
from stepsight.storage.labelling.review import Review, ShownScores, read_scores
from stepsight.storage.people.users import User


@dataclass(frozen=True)
class LabelKey:
    """A label, its keyboard shortcut, and a few words on when to give it. The label "" removes a label."""

    label: str
    key: str
    title: str


_UNLABELLED = LabelKey("", "0", "no label")
_NEG = LabelKey("neg", "1", "wrong")
_NEU = LabelKey("neu", "2", "valid but redundant")
_POS = LabelKey("pos", "3", "correct and useful")

LABEL_KEYS = (_NEG, _NEU, _POS, LabelKey("unsure", "u", "you cannot tell"), _UNLABELLED)
"""The choices of annotators."""

DECISION_KEYS = (_NEG, _NEU, _POS, _UNLABELLED)
"""The choices of adjudicators."""


KIND_KEYS = "456789abdghilmopqrst"
"""The keyboard shortcuts for a campaign's kinds of error, in their order. None of them does anything else."""


def script_keys(keys: Iterable[LabelKey]) -> str:
    """Return (key, label) pairs as JSON, for the scripts of the pages."""
    return json.dumps([(key.key, key.label) for key in keys])


_ERROR_TITLES = {
    "calculation": "miscalculates",
    "misreading": "misreads the problem or an earlier step",
    "wrong method": "uses a method or rule that does not apply",
    "unjustified": "claims something that does not follow, or is not shown",
    "contradiction": "contradicts another step, or a known fact",
    "missing case": "leaves out a case or a condition",
    "other": "anything else: say what in a comment",
}
_PRMBENCH = (
    ("redundency", "redundant", "repeats what is known, or says what nothing needs"),
    ("circular", "circular", "assumes what it has to show"),
    ("counterfactual", "counterfactual", "contradicts a known fact or rule"),
    ("step_contradiction", "contradicts a step", "conflicts with another step"),
    ("domain_inconsistency", "wrong domain", "uses a rule where it does not hold"),
    ("confidence", "false certainty", "claims with certainty what is not certain"),
    ("missing_condition", "missing condition", "leaves out a condition or a case that it needs"),
    ("deception", "misleading detail", "looks right, but a detail is off"),
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
        guideline_text=guideline_text(store, campaign.id, campaign.guideline),
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
        return nothing_left_html(store, campaign_id, user)
    return label_html(store, assignment, read_annotation(store, assignment.slot, user.id), user)


def nothing_left_html(store: Store, campaign_id: int, user: User) -> Markup:
    """Render the notice that no trace of a campaign is left for the user."""
    progress = campaign_progress(store, campaign_id, user.id)
    return render("annotate/nothing_left.html", progress=progress, campaign_id=campaign_id)


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
    scores = read_scores(store, assignment.slot, user, annotation)
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
    for shown in scores:
        validity, redundancy = shown.validity[number], shown.redundancy[number]
        if validity is not None:
            label = ""
            if shown.in_words:
                # Each score of a verdict is 0 or 1.
                label = ("neu" if redundancy else "pos") if validity else "neg"
            bars.append(ScoreBar(f"{shown.evaluator}, {shown.mode}", validity, redundancy, label))
    return bars


def review_html(assignment: Assignment, annotation: Annotation, review: Review | None, person: int) -> Markup:
    """Render the page of a submitted trace. If `review` is None, it shows only the user's own labels."""
    trace: Trace = review.trace if review else assignment.trace
    agreements = [agrees(label, step) for label, step in zip(annotation.labels, trace.steps, strict=True)]
    comparable = [agreement for agreement in agreements if agreement is not None]
    return render(
        "annotate/review.html",
        assignment=assignment,
        campaign=assignment.campaign,
        annotation=annotation,
        review=review,
        trace=trace,
        answer=formula(assignment.answer),
        person=person,
        rows=[
            _row(number, trace, annotation, review, agreements[number])
            | {"marked": marked_step(assignment.campaign, trace, number)}
            for number in range(len(trace.steps))
        ],
        agreed=sum(comparable),
        comparable=len(comparable),
        first_error=annotation.labels.index("neg") if "neg" in annotation.labels else None,
    )


def skipped_html(assignment: Assignment) -> Markup:
    """Render the page of a trace that the person has skipped, or whose annotation they have withdrawn."""
    return render("annotate/skipped.html", campaign=assignment.campaign)


def agrees(label: str | None, gold: Step) -> bool | None:
    """True if a label agrees with the gold label. None if either is missing or the annotator was unsure. If the
    gold label only says whether the step is valid, only validity is compared."""
    if label in (None, UNSURE) or gold.valid is None:
        return None
    if gold.label is not None:
        return label == gold.label.text
    return (label != "neg") == gold.valid


def _row(
    number: int, trace: Trace, annotation: Annotation, review: Review | None, agreement: bool | None
) -> dict[str, Any]:
    label, dispute = annotation.labels[number], ""
    if review is not None and trace.steps[number].valid is not None:
        dispute = DisputeAddress(trace=review.trace.trace_id, step=number + 1).url()
    peers = []
    for peer in review.peers if review else ():
        theirs = peer.labels[number]
        same = None if {label, theirs} & {None, UNSURE} else label == theirs
        peers.append({"label": theirs, "error": _error_name(peer.errors[number]), "same": same})
    return {
        "number": number,
        "step": trace.steps[number],
        "bars": score_bars(review.scores if review else (), number),
        "label": label,
        "error": _error_name(annotation.errors[number]) if label == "neg" else "",
        "evidence": annotation.evidence[number],
        "comment": annotation.comments[number],
        "correction": annotation.corrections[number],
        "agrees": agreement,
        "peers": peers,
        "dispute": dispute,
    }


def _error_name(error: str | None) -> str:
    return ERROR_NAMES.get(error, error) if error else ""
