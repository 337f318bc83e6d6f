"""The submitted annotations of a campaign, derived from the log."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeVar

from sqlalchemy import Select, select
from sqlalchemy.orm import Session

from stepsight.core.trace import LABEL_NAMES
from stepsight.storage.database.labelling_schema import EventRow, ItemRow, SlotRow
from stepsight.storage.database.people_schema import UserRow
from stepsight.storage.database.schema import DatasetRow, TraceRow, in_range
from stepsight.storage.database.store import Store
from stepsight.storage.labelling.annotation import UNSURE, fold, needed_steps, read_events_of_items
from stepsight.storage.labelling.assignments import SUBMITTED
from stepsight.storage.labelling.campaigns import load_settings
from stepsight.storage.labelling.plan import CampaignSettings

UNASKED = "changed labels whose step nobody was asked for"

_V = TypeVar("_V")
# Annotations whose events are in memory at once.
_BATCH = 200


@dataclass(frozen=True)
class SubmittedAnnotation:
    """An annotation that is currently submitted, with its annotator and trace.

    `labels` has one label per step: `neg`, `neu`, `pos`, `unsure` or None. Steps after the first `neg` have None
    unless the campaign labels them. In a stepwise campaign, `first` holds the labels given before the next step
    was seen; otherwise it equals `labels`. `errors` maps 0-based `neg` steps to kinds of error. `comments` and
    `corrections` map 0-based steps to texts. `evidence` maps steps whose label differs from the first one to the
    later step that changed the person's mind, if known. `unasked` counts the changed labels for which that step
    is unknown because the campaign does not ask for it.

    `digest` is the digest of the trace as it was labelled. `chosen` says how the trace came into the campaign, as
    in `ItemRow`. `guideline` is the version at submission. `seconds` is the total time measured by the page.
    """

    item_id: int
    slot_id: int
    trace_id: int
    external_id: str
    dataset: str
    user_id: int
    user: str
    chosen: str
    digest: str
    view: str
    labels: tuple[str | None, ...]
    first: tuple[str | None, ...]
    errors: Mapping[int, str]
    comments: Mapping[int, str]
    corrections: Mapping[int, str]
    flag: str | None
    guideline: int
    submitted: datetime
    seconds: float
    evidence: Mapping[int, int] = field(default_factory=dict)
    unasked: int = 0


def iterate_annotations(
    store: Store, campaign_id: int, reader: Session | None = None
) -> Iterator[SubmittedAnnotation]:
    """Yield the currently submitted annotations of a campaign.

    They come in the order of the queue and then of slot numbers, with hidden gold items last. With the session
    `reader`, all are read through this session. Without it, annotations are read in batches, and those withdrawn in
    the meantime are left out.
    """
    if reader is not None:
        yield from _iterate(reader, campaign_id)
        return
    with store.read() as session:
        slots = _slot_ids(session, campaign_id)
    for part in _batched(slots):
        with store.read() as session:
            annotations = _read(session, campaign_id, part)
        yield from annotations


def read_annotations(session: Session, campaign_id: int, item_id: int) -> list[SubmittedAnnotation]:
    """Return the submitted annotations of one item of a campaign, in the order of slot numbers."""
    slots = _submitted(campaign_id).where(SlotRow.item_id == in_range(item_id))
    return list(_annotations(session, campaign_id, session.execute(slots).mappings().all()))


def _iterate(session: Session, campaign_id: int) -> Iterator[SubmittedAnnotation]:
    for part in _batched(_slot_ids(session, campaign_id)):
        yield from _read(session, campaign_id, part)


def _slot_ids(session: Session, campaign_id: int) -> Sequence[int]:
    """Return the ids of the submitted slots, in order. Only ids are read, to save memory in large campaigns."""
    return session.scalars(_submitted(campaign_id).with_only_columns(SlotRow.id)).all()


def _read(session: Session, campaign_id: int, slots: Sequence[int]) -> list[SubmittedAnnotation]:
    rows = session.execute(_submitted(campaign_id).where(SlotRow.id.in_(slots)))
    return list(_annotations(session, campaign_id, rows.mappings().all()))


def _submitted(campaign_id: int) -> Select[Any]:
    same = (ItemRow.trace_id, TraceRow.external_id, SlotRow.user_id, ItemRow.chosen, ItemRow.digest)
    columns: list[Any] = [
        *(*same, TraceRow.n_steps),
        *(ItemRow.id.label("item_id"), SlotRow.id.label("slot_id"), DatasetRow.name.label("dataset")),
        *(UserRow.name.label("user"), TraceRow.digest.label("current_digest")),
    ]
    return (
        select(*columns)
        .join_from(SlotRow, ItemRow, ItemRow.id == SlotRow.item_id)
        .join(TraceRow, TraceRow.id == ItemRow.trace_id)
        .join(DatasetRow, DatasetRow.id == TraceRow.dataset_id)
        .join(UserRow, UserRow.id == SlotRow.user_id)
        .where(SlotRow.campaign_id == in_range(campaign_id), SlotRow.state == SUBMITTED)
        .order_by(ItemRow.place, SlotRow.number)
    )


def _annotations(
    session: Session, campaign_id: int, slots: Sequence[Mapping[Any, Any]]
) -> Iterator[SubmittedAnnotation]:
    if not slots:
        return
    settings = load_settings(session, campaign_id)
    logs = read_events_of_items(session, sorted({slot["item_id"] for slot in slots}))
    for slot in slots:
        annotation = _annotation(settings, slot, logs.get((slot["item_id"], slot["user_id"]), []))
        if annotation is not None:
            yield annotation


def _annotation(
    settings: CampaignSettings, slot: Mapping[Any, Any], log: Sequence[EventRow]
) -> SubmittedAnnotation | None:
    about = dict(slot)
    n_steps, current = about.pop("n_steps"), about.pop("current_digest")
    stepwise, after_error, asks = settings.stepwise, settings.after_error, settings.asks_evidence
    # If the trace has changed since, only the log shows how many steps it had.
    annotation = fold(log, n_steps if current == about["digest"] else 0, stepwise=stepwise, asks=asks)
    if not annotation.submitted:
        return None
    end = needed_steps(annotation.labels, after_error)
    labels = _cut(annotation.labels, end)
    first = _cut(annotation.first, needed_steps(annotation.first, after_error)) if stepwise else labels
    changed = {step for step, label in enumerate(labels) if label is not None and first[step] not in (None, label)}
    evidence = {step: by for step, by in _by_step(annotation.evidence) if step in changed}
    submission = next(event for event in reversed(log) if event.kind == "submit")
    return SubmittedAnnotation(
        **about,
        view=settings.view.value,
        labels=labels,
        first=first,
        errors={step: kind for step, kind in _by_step(annotation.errors) if labels[step] == "neg"},
        comments=dict(_by_step(annotation.comments)),
        corrections=dict(_by_step(annotation.corrections)),
        evidence=evidence,
        unasked=0 if asks else len(changed - evidence.keys()),
        flag=annotation.flag,
        guideline=submission.guideline,
        submitted=submission.moment,
        seconds=sum(event.seconds or 0.0 for event in log),
    )


def _cut(labels: Sequence[str | None], end: int) -> tuple[str | None, ...]:
    return tuple(label if step < end else None for step, label in enumerate(labels))


def _by_step(values: Sequence[_V | None]) -> Iterator[tuple[int, _V]]:
    return ((step, value) for step, value in enumerate(values) if value is not None)


def _batched(slots: Sequence[int]) -> Iterator[Sequence[int]]:
    return (slots[start : start + _BATCH] for start in range(0, len(slots), _BATCH))


MAJORITY, TIE, NONE = "majority", "tie", "none"
"""The origin of a step's label: see `consensus.Consensus`; a majority for `UNSURE` has that origin."""


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
