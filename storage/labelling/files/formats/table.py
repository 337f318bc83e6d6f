"""Labels as a table with a row per step, for csv and parquet. Steps are counted from 1 there, as on the pages."""

from collections.abc import Iterator
from typing import Any

from stepsight.storage.labelling.results.consensus import LabelledTrace

# By column, what is in it: a text, a whole number, a number or a moment. All but the first few may be empty.
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
    "exposed": str,
    "guideline": int,
    "submitted": str,
    "seconds": float,
}


def step_rows(labelled: LabelledTrace, campaign: str) -> Iterator[dict[str, Any]]:
    """A row per step. Of all annotators together: `label`, `how` and `annotators`, how many labelled the trace. Of
    one: what that `annotator` said of the step, also `unsure`, and, the same in each row, of the whole trace."""
    trace = labelled.trace
    for place, step in enumerate(trace.steps):
        row = dict.fromkeys(COLUMNS) | {
            "campaign": campaign,
            "dataset": trace.dataset,
            "id": trace.id,
            "step": place + 1,
            "text": step.text,
            "label": labelled.labels[place],
            "annotators": len(labelled.answers),
            "chosen": labelled.chosen,
        }
        yield row | (_of_one(labelled, place) if labelled.how is None else {"how": labelled.how[place]})


def _of_one(labelled: LabelledTrace, place: int) -> dict[str, Any]:
    (answer,) = labelled.answers
    return {
        "label": answer.labels[place],
        "annotator": answer.user,
        "first": answer.first[place],
        "error": answer.errors.get(place),
        "comment": answer.comments.get(place),
        "correction": answer.corrections.get(place),
        "flag": answer.flag,
        "view": answer.view,
        "exposed": " ".join(sorted(answer.exposed)),
        "guideline": answer.guideline,
        "submitted": answer.submitted.isoformat(),
        "seconds": answer.seconds,
    }
