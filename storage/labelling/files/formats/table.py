"""Labels as a CSV table with one row per step. Steps count from 1, as on the web pages."""

from collections.abc import Iterator
from typing import Any

from stepsight.storage.labelling.files.formats.label_format import Row
from stepsight.storage.labelling.results.consensus import LabelledTrace

# The type of each column: text, integer or number. All but the first few may be empty.
COLUMNS: dict[str, type] = {
    "campaign": str,
    "dataset": str,
    "id": str,
    "step": int,
    "text": str,
    "label": str,
    "how": str,
    "annotators": int,
    "annotator": str,
    "first": str,
    "error": str,
    "comment": str,
    "correction": str,
    "flag": str,
    "chosen": str,
    "view": str,
    "guideline": int,
    "submitted": str,
    "seconds": float,
    "evidence": int,
}


def rows(versions: list[LabelledTrace], campaign: str) -> Iterator[Row]:
    """Yield the rows of each version of a trace."""
    for labelled in versions:
        yield from step_rows(labelled, campaign)


def step_rows(labelled: LabelledTrace, campaign: str) -> Iterator[Row]:
    """Yield one row per step of a labelled trace.

    In a row for the consensus, `label` is the agreed label, `how` says how it came about, and `annotators` is the
    number of people who labelled the trace. In a row for a single `annotator`, `label` is that person's label,
    which may be `unsure`. Values for the whole trace are repeated in each row.
    """
    trace = labelled.trace
    for place, step in enumerate(trace.steps):
        row = dict.fromkeys(COLUMNS) | {
            "campaign": campaign,
            "dataset": trace.dataset,
            "id": trace.id,
            "step": place + 1,
            "text": step.text,
            "label": labelled.labels[place],
            "annotators": len(labelled.annotations),
            "chosen": labelled.chosen,
        }
        yield row | (_of_one(labelled, place) if labelled.how is None else {"how": labelled.how[place]})


def _of_one(labelled: LabelledTrace, place: int) -> dict[str, Any]:
    (annotation,) = labelled.annotations
    return {
        "label": annotation.labels[place],
        "annotator": annotation.user,
        "first": annotation.first[place],
        "error": annotation.errors.get(place),
        "comment": annotation.comments.get(place),
        "correction": annotation.corrections.get(place),
        "flag": annotation.flag,
        "view": annotation.view,
        "guideline": annotation.guideline,
        "submitted": annotation.submitted.isoformat(),
        "seconds": annotation.seconds,
        "evidence": annotation.evidence[place] + 1 if place in annotation.evidence else None,
    }
