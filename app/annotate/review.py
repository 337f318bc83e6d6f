"""The page of a submitted trace: the user's labels beside gold labels, scores and other people's labels."""

from typing import Any

from markupsafe import Markup

from stepsight.app.annotate.disputes import DisputeAddress
from stepsight.app.annotate.label import ERROR_NAMES, formula, marked_step, score_bars
from stepsight.app.web.html import render
from stepsight.core.trace import Step, Trace
from stepsight.storage.labelling.annotation import UNSURE, Annotation
from stepsight.storage.labelling.queue import Assignment
from stepsight.storage.labelling.review import Review


def review_html(assignment: Assignment, annotation: Annotation, review: Review | None, person: int) -> Markup:
    """Render the page of a submitted trace. If `review` is None, it shows only the user's own labels."""
    trace: Trace = review.trace if review else assignment.trace
    agreements = [agrees(label, step) for label, step in zip(annotation.labels, trace.steps, strict=True)]
    comparable = [one for one in agreements if one is not None]
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
    label = annotation.labels[number]
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
        "dispute": _dispute_url(review, number),
    }


def _dispute_url(review: Review | None, number: int) -> str:
    """Return the URL of the form for disputing a step's gold label, or "" if the trace has no gold labels or they
    are hidden."""
    if review is None or not review.trace.has_gold:
        return ""
    return DisputeAddress(trace=review.trace.trace_id, step=number + 1).url()


def _error_name(error: str | None) -> str:
    return ERROR_NAMES.get(error, error) if error else ""
