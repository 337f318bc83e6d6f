"""Labelled traces made by hand, without a store."""

from datetime import UTC, datetime

from stepsight.core.trace import Trace
from stepsight.storage.labelling.results.annotations import SubmittedAnnotation
from stepsight.storage.labelling.results.consensus import LabelledTrace
from stepsight.storage.traces.queries import StoredTrace

MOMENT = datetime(2026, 3, 1, 9, 30, tzinfo=UTC)
STEPS = ("First.", ("Second.", "Still."), "Third.")


def annotation(labels, user="ada", **other):
    said = {
        "item_id": 1,
        "slot_id": 1,
        "trace_id": 1,
        "external_id": "7",
        "dataset": "sums",
        "user_id": 1,
        "user": user,
        "chosen": "ordered",
        "digest": "",
        "view": "whole",
        "labels": tuple(labels),
        "first": tuple(labels),
        "errors": {},
        "comments": {},
        "corrections": {},
        "flag": None,
        "guideline": 1,
        "submitted": MOMENT,
        "seconds": 1.5,
    }
    return SubmittedAnnotation(**(said | other))  # type: ignore[arg-type]


def labelled(*labels, annotations=(), **meta):
    """What all annotators agree on of three steps, by default the one called ada."""
    trace = Trace.of("What?", STEPS, ["neg", None, None], id="7", meta=meta)
    stored = StoredTrace(
        trace.id, trace.problem, trace.steps, trace.meta, trace_id=1, dataset_id=1, dataset="sums", position=0
    )
    given = tuple(annotations) or (annotation(labels),)
    return LabelledTrace(stored, labels, ("majority",) * len(labels), "ordered", given)
