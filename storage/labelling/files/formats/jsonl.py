"""StepSight's own format: JSON Lines, which `stepsight import jsonl` reads as traces.

    {"id": "7", "problem": "…", "steps": ["…", ["…", "…"]], "labels": ["pos", null], "how": ["majority", "tie"],
     "campaign": "check", "dataset": "mr-math-invalid", "digest": "…", "chosen": "random", "answers": [
        {"annotator": "ada", "view": "whole", "labels": ["pos", "unsure"], "first": ["pos", "unsure"],
         "errors": [null, null], "comments": [null, "which sum?"], "corrections": [null, null], "flag": null,
         "guideline": 1, "submitted": "2026-03-01T09:30:00+00:00",
         "seconds": 41.5}],
     "decisions": [{"step": 1, "label": null, "reason": "…", "annotator": "eve", "own": false, "moment": "…"}]}

Lists have one entry per step, which may be null. `step` is 0-based. A row for a single annotator has no `how` and
no `decisions`. `digest` distinguishes the trace, including its gold labels, from other traces with the same id. The
annotations are complete, with labels, notes, decisions, people, times and durations. Only individual events are
missing; they are in the format `events`. An answer may also have `evidence`, the step that changed the annotator's
mind about each step.
"""

from collections.abc import Mapping
from typing import Any

from stepsight.storage.labelling.files.formats.label_format import Row
from stepsight.storage.labelling.results.adjudication import Decision
from stepsight.storage.labelling.results.annotations import SubmittedAnnotation
from stepsight.storage.labelling.results.consensus import LabelledTrace


def rows(versions: list[LabelledTrace], campaign: str) -> list[Row]:
    """Return a row for each version of a trace."""
    return [_row(labelled, campaign) for labelled in versions]


def _row(labelled: LabelledTrace, campaign: str) -> Row:
    trace = labelled.trace
    row: Row = {
        "id": trace.id,
        "problem": trace.problem,
        "steps": [s.substeps[0] if len(s.substeps) == 1 else list(s.substeps) for s in trace.steps],
        "labels": list(labelled.labels),
    }
    row |= {} if labelled.how is None else {"how": list(labelled.how)}
    row |= {"campaign": campaign, "dataset": trace.dataset, "digest": trace.digest, "chosen": labelled.chosen}
    row["answers"] = [_format_annotation(annotation) for annotation in labelled.annotations]
    if labelled.how is not None:
        row["decisions"] = [_format_decision(decision) for decision in labelled.decisions]
    return row


def _format_annotation(annotation: SubmittedAnnotation) -> dict[str, Any]:
    steps = len(annotation.labels)
    return {
        "annotator": annotation.user,
        "view": annotation.view,
        "labels": list(annotation.labels),
        "first": list(annotation.first),
        "errors": _spread(annotation.errors, steps),
        "comments": _spread(annotation.comments, steps),
        "corrections": _spread(annotation.corrections, steps),
        "flag": annotation.flag,
        "guideline": annotation.guideline,
        "submitted": annotation.submitted.isoformat(),
        "seconds": annotation.seconds,
    } | ({"evidence": [annotation.evidence.get(step) for step in range(steps)]} if annotation.evidence else {})


def _format_decision(decision: Decision) -> dict[str, Any]:
    return {
        "step": decision.step,
        "label": decision.label,
        "reason": decision.reason,
        "annotator": decision.user,
        "own": decision.own,
        "moment": decision.moment.isoformat(),
    }


def _spread(texts: Mapping[int, str], steps: int) -> list[str | None]:
    return [texts.get(step) for step in range(steps)]
