"""The submitted annotations of a campaign, derived from the log."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Select, select
from sqlalchemy.orm import Session

from stepsight.core.trace import LABEL_NAMES
from stepsight.storage.database.labelling_schema import EventRow, ItemRow, SlotRow
from stepsight.storage.database.schema import DatasetRow, TraceRow, UserRow, in_range
from stepsight.storage.database.store import Store
from stepsight.storage.labelling.annotation import UNSURE, Annotation, fold, needed_labels, read_events_of_items
from stepsight.storage.labelling.campaigns import load_settings
from stepsight.storage.labelling.plan import CampaignSettings
from stepsight.storage.labelling.record import SUBMITTED

# The number of annotations whose events are in memory at once.
_BATCH = 200


@dataclass(frozen=True)
class LabelledItem:
    """An item of a campaign, the trace that people label. `external_id` is the id of the trace in its `dataset`,
    and `digest` its digest as it was labelled. `chosen` says how it came into the campaign, as in `ItemRow`."""

    id: int
    trace_id: int
    external_id: str
    dataset: str
    chosen: str
    digest: str


@dataclass(frozen=True)
class SubmittedAnnotation(Annotation):
    """An annotation that is currently submitted, with its annotator and the item of the campaign.

    It holds the parts of `Annotation` that count. `labels` has None for the steps after the first `neg`, unless the
    campaign labels them. In a stepwise campaign, `first` holds the labels given before the next step was seen;
    otherwise it equals `labels`. `errors` has only kinds of error of steps labelled `neg`, and `evidence` only that
    of steps whose label differs from the first one.

    `guideline` is the version at submission, and `moment` the time. `seconds` is the total time measured by the
    page.
    """

    item: LabelledItem
    user_id: int
    user: str
    view: str
    guideline: int
    moment: datetime
    seconds: float


def iterate_annotations(store: Store, campaign_id: int) -> Iterator[SubmittedAnnotation]:
    """Yield the currently submitted annotations of a campaign.

    They come in the order of the queue and then of slot numbers, with hidden gold items last. They are read in
    batches, and those withdrawn in the meantime are left out.
    """
    with store.read() as session:
        # Only ids are read, to save memory in large campaigns.
        slots = session.scalars(_select_submitted(campaign_id).with_only_columns(SlotRow.id)).all()
    for start in range(0, len(slots), _BATCH):
        with store.read() as session:
            annotations = _read(session, campaign_id, SlotRow.id.in_(slots[start : start + _BATCH]))
        yield from annotations


def read_annotations(session: Session, campaign_id: int, item_id: int) -> list[SubmittedAnnotation]:
    """Return the submitted annotations of one item of a campaign, in the order of slot numbers."""
    return _read(session, campaign_id, SlotRow.item_id == in_range(item_id))


def _read(session: Session, campaign_id: int, condition: ColumnElement[bool]) -> list[SubmittedAnnotation]:
    slots = session.execute(_select_submitted(campaign_id).where(condition)).all()
    if not slots:
        return []
    settings = load_settings(session, campaign_id)
    logs = read_events_of_items(session, sorted({slot.id for slot in slots}))
    annotations = (_annotation(settings, slot, logs.get((slot.id, slot.user_id), [])) for slot in slots)
    return [annotation for annotation in annotations if annotation is not None]


def _select_submitted(campaign_id: int) -> Select[Any]:
    item: list[Any] = [ItemRow.id, ItemRow.trace_id, TraceRow.external_id, DatasetRow.name.label("dataset")]
    item += [ItemRow.chosen, ItemRow.digest]
    person = SlotRow.user_id, UserRow.name.label("user")
    return (
        select(*item, *person, TraceRow.n_steps, TraceRow.digest.label("current_digest"))
        .join_from(SlotRow, ItemRow, ItemRow.id == SlotRow.item_id)
        .join(TraceRow, TraceRow.id == ItemRow.trace_id)
        .join(DatasetRow, DatasetRow.id == TraceRow.dataset_id)
        .join(UserRow, UserRow.id == SlotRow.user_id)
        .where(SlotRow.campaign_id == in_range(campaign_id), SlotRow.state == SUBMITTED)
        .order_by(ItemRow.place, SlotRow.number)
    )


def _annotation(settings: CampaignSettings, slot: Any, log: Sequence[EventRow]) -> SubmittedAnnotation | None:
    stepwise, after_error = settings.stepwise, settings.after_error
    # If the trace has changed, only the log shows how many steps it had.
    folded = fold(log, slot.n_steps if slot.current_digest == slot.digest else 0, stepwise=stepwise)
    if not folded.submitted:
        return None
    labels = needed_labels(folded.labels, after_error)
    first = needed_labels(folded.first, after_error) if stepwise else labels
    evidence = tuple(
        cause if label is not None and early not in (None, label) else None
        for cause, label, early in zip(folded.evidence, labels, first, strict=True)
    )
    submission = next(event for event in reversed(log) if event.kind == "submit")
    counted = {
        "labels": labels,
        "first": first,
        "errors": tuple(
            kind if label == "neg" else None for kind, label in zip(folded.errors, labels, strict=True)
        ),
        "evidence": evidence,
        "item": LabelledItem(**{field.name: getattr(slot, field.name) for field in fields(LabelledItem)}),
        "user_id": slot.user_id,
        "user": slot.user,
        "view": settings.view.value,
        "guideline": submission.guideline,
        "moment": submission.moment,
        "seconds": sum(event.seconds or 0.0 for event in log),
    }
    return SubmittedAnnotation(**(vars(folded) | counted))


MAJORITY, TIE, NONE = "majority", "tie", "none"
"""The origin of a step's label: see `consensus.LabelledTrace`; a majority for `UNSURE` has that origin."""


def vote(labels: Sequence[str | None]) -> tuple[str | None, str]:
    """Return the label that most annotators gave to a step, and how this result came about.

    The label is None if no label has the most votes. None among `labels` counts as an abstention.
    """
    counts = Counter(label for label in labels if label is not None)
    if not counts:
        return None, NONE
    most = max(counts.values())
    first = [label for label, count in counts.items() if count == most]
    if len(first) > 1:
        return None, TIE
    return (first[0], MAJORITY) if first[0] in LABEL_NAMES else (None, UNSURE)
