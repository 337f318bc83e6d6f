"""Ratings: the annotations of a campaign as arrays, together with the gold labels of its traces."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
from sqlalchemy import select

from stepsight.core.arrays import Floats64
from stepsight.core.metrics.agreement import RATING_NAMES, UNLABELLED, Ratings
from stepsight.storage.database.labelling_schema import EventRow
from stepsight.storage.database.store import Store
from stepsight.storage.labelling.campaigns import Campaign
from stepsight.storage.labelling.plan import GOLD
from stepsight.storage.labelling.submissions import LabelledItem, SubmittedAnnotation, iterate_annotations
from stepsight.storage.people.blindness import shuffle_people
from stepsight.storage.traces.queries import BATCH, load_traces, traces

_CODES: Mapping[str | None, int] = {None: UNLABELLED, **{name: code for code, name in enumerate(RATING_NAMES)}}

Item = tuple[SubmittedAnnotation, ...]
"""The annotations of one trace of a campaign."""


@dataclass(frozen=True, eq=False)
class RatedTraces:
    """Traces of a campaign, in its order, with their ratings.

    `last` holds the current ratings, and `first` those given before the next step was seen. The two are equal
    unless the campaign is stepwise. `later` has shape (people, steps) and counts the later steps that were visible
    when the current label was given; it is NaN without a label. `gold` and `valid` have shape (steps,) and hold the
    benchmark's labels and validity (1 or 0), or NaN if missing. If a benchmark only marks the first error, the
    steps before the error are valid but have no label. `evidence` has
    shape (people, steps) and holds the step that changed a person's label, or NaN without one.
    """

    traces: tuple[LabelledItem, ...]
    last: Ratings
    first: Ratings
    later: Floats64
    gold: Floats64
    valid: Floats64
    evidence: Floats64

    def of_traces(self, chosen: Sequence[int]) -> "RatedTraces":
        """Return a copy that contains only the traces with the indices `chosen`."""
        starts = np.searchsorted(self.last.trace, np.arange(len(self.traces) + 1))
        steps = np.concatenate(
            [np.empty(0, np.int64), *(np.arange(starts[place], starts[place + 1]) for place in chosen)]
        )
        return RatedTraces(
            tuple(self.traces[place] for place in chosen),
            self.last.of_traces(chosen),
            self.first.of_traces(chosen),
            self.later[:, steps],
            self.gold[steps],
            self.valid[steps],
            self.evidence[:, steps],
        )


@dataclass(frozen=True, eq=False)
class CampaignRatings:
    """The ratings of a campaign.

    `queue` holds the traces of the queue, and `hidden` the hidden gold items, which test annotators and may be
    given to any of them. `annotations` counts all annotations. `changed` counts the traces that have changed
    since they were labelled, which have no gold labels here.
    """

    campaign: Campaign
    queue: RatedTraces
    hidden: RatedTraces
    annotations: int
    changed: int


def read_ratings(store: Store, campaign: Campaign, *, named: bool = True) -> CampaignRatings:
    """Return the submitted annotations of a campaign as ratings.

    If `named` is False, people are called annotator 1, annotator 2 and so on, in an order that does not reveal who
    is who.
    """
    annotations = list(iterate_annotations(store, campaign.id))
    by_name = sorted({(annotation.user, annotation.user_id) for annotation in annotations})
    people = [user_id for _, user_id in by_name]
    names = tuple(name for name, _ in by_name)
    if not named:
        people = shuffle_people(store, people, "campaign", campaign.id)
        names = tuple(f"annotator {row + 1}" for row in range(len(people)))
    items = [tuple(group) for _, group in groupby(annotations, key=lambda annotation: annotation.item.id)]
    rated: dict[bool, list[Item]] = {False: [], True: []}
    for annotations_of_item in items:
        rated[annotations_of_item[0].item.chosen == GOLD].append(annotations_of_item)
    later = _later_steps(store, campaign) if campaign.stepwise else {}
    gold, changed = _read_gold(store, items)
    queue, hidden = (_arrays(rated[is_hidden], people, names, later, gold) for is_hidden in (False, True))
    return CampaignRatings(campaign, queue, hidden, len(annotations), changed)


def _arrays(
    items: Sequence[Item],
    people: Sequence[int],
    names: tuple[str, ...],
    later: Mapping[tuple[int, int, int], int],
    gold_of: Mapping[int, tuple[Floats64, Floats64]],
) -> RatedTraces:
    """Convert the annotations of each trace to arrays, whose rows are those of `people`."""
    rows = {user_id: row for row, user_id in enumerate(people)}
    traces = tuple(annotations[0].item for annotations in items)
    sizes = list(map(_steps, items))
    starts = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
    shape = len(names), int(starts[-1])
    last, first = np.full(shape, UNLABELLED, np.int8), np.full(shape, UNLABELLED, np.int8)
    seen, evidence = np.full(shape, np.nan), np.full(shape, np.nan)
    for start, annotations in zip(starts, items, strict=False):
        for annotation in annotations:
            row, steps = rows[annotation.user_id], slice(start, start + len(annotation.labels))
            last[row, steps] = [_CODES[label] for label in annotation.labels]
            first[row, steps] = [_CODES[label] for label in annotation.first]
            evidence[row, steps] = np.array(annotation.evidence, np.float64)
            counts = [
                later.get((annotation.item.id, annotation.user_id, step)) for step in range(len(annotation.labels))
            ]
            seen[row, steps] = np.array(counts, np.float64)
    trace = np.repeat(np.arange(len(traces)), sizes).astype(np.int64)
    position = np.arange(shape[1]) - starts[trace]
    gold, valid = (np.concatenate([np.empty(0), *(gold_of[item.id][kind] for item in traces)]) for kind in (0, 1))
    standing, early = (Ratings(names, codes, trace, position, len(traces)) for codes in (last, first))
    return RatedTraces(traces, standing, early, seen, gold, valid, evidence)


def _steps(annotations: Item) -> int:
    # If the trace has changed, the number of steps of an annotation is known only from its events.
    return max(len(annotation.labels) for annotation in annotations)


def _later_steps(store: Store, campaign: Campaign) -> dict[tuple[int, int, int], int]:
    """Return the number of later steps that were visible when each label was last changed. The result is keyed by
    item id, user id and step."""
    events = (
        select(EventRow.item_id, EventRow.user_id, EventRow.step, EventRow.revealed)
        .where(EventRow.campaign_id == campaign.id, EventRow.kind == "label", EventRow.slot_id.is_not(None))
        .order_by(EventRow.id)
    )
    later: dict[tuple[int, int, int], int] = {}
    with store.read() as session:
        for item, user, step, revealed in session.execute(events):
            if step is not None and revealed is not None:
                later[item, user, step] = revealed - step - 1
    return later


def _read_gold(store: Store, items: Sequence[Item]) -> tuple[dict[int, tuple[Floats64, Floats64]], int]:
    """Return the gold labels and the validity of each item as arrays of shape (steps,), and the number of changed
    traces. For a trace that has changed since it was labelled, all values are NaN."""
    gold: dict[int, tuple[Floats64, Floats64]] = {}
    changed = 0
    for start in range(0, len(items), BATCH):
        part = [(annotations[0].item, annotations) for annotations in items[start : start + BATCH]]
        with store.read() as session:
            loaded = load_traces(session, traces([item.trace_id for item, _ in part]))
        stored = {trace.trace_id: trace for trace in loaded}
        for item, annotations in part:
            trace = stored[item.trace_id]
            if trace.digest == item.digest:
                labels, valid = trace.labels, [step.valid for step in trace.steps]
                gold[item.id] = np.array(labels, np.float64), np.array(valid, np.float64)
            else:
                changed += 1
                gold[item.id] = (np.full(_steps(annotations), np.nan),) * 2
    return gold, changed
