"""Ratings: the annotations of a campaign as arrays, together with the gold labels of its traces."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from sqlalchemy import select

from stepsight.core.arrays import Floats64
from stepsight.core.metrics.ratings import RATING_NAMES, UNLABELLED, Ratings
from stepsight.core.trace import Trace
from stepsight.storage.database.labelling_schema import EventRow
from stepsight.storage.database.store import Store
from stepsight.storage.labelling.campaigns import Campaign
from stepsight.storage.labelling.results.annotations import SubmittedAnnotation, iterate_annotations
from stepsight.storage.people.server_secret import shuffle_people
from stepsight.storage.traces.queries import BATCH, load_traces, traces

_CODES: Mapping[str | None, int] = {None: UNLABELLED, **{name: code for code, name in enumerate(RATING_NAMES)}}


@dataclass(frozen=True)
class RatedTrace:
    """An annotated trace of a campaign. `digest` is the digest of the trace as it was labelled. `unasked` counts
    the changed labels for which nobody was asked to name a step."""

    item_id: int
    trace_id: int
    external_id: str
    dataset: str
    digest: str
    steps: int
    unasked: int = 0


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

    traces: tuple[RatedTrace, ...]
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
    collected = _Collected()
    for annotation in iterate_annotations(store, campaign.id):
        collected.add(annotation)
    people = collected.list_people()
    if not named:
        places = shuffle_people(store, [user for user, _ in people], "campaign", campaign.id)
        people.sort(key=lambda person: places.index(person[0]))
    names = tuple(name if named else f"annotator {row + 1}" for row, (_, name) in enumerate(people))
    rows = {user: row for row, (user, _) in enumerate(people)}
    later = _later_steps(store, campaign) if campaign.stepwise else {}
    traces = {kind: collected.list_traces(kind) for kind in collected.items}
    gold, changed = _read_gold(store, [trace for some in traces.values() for trace in some])
    queue, hidden = (
        _arrays(traces[kind], list(collected.items[kind].values()), names, rows, later, gold)
        for kind in (False, True)
    )
    return CampaignRatings(campaign, queue, hidden, collected.annotations, changed)


class _Collected:
    """Annotations grouped by item, with hidden gold items kept separate."""

    def __init__(self) -> None:
        self.annotations = 0
        self.items: dict[bool, dict[int, list[SubmittedAnnotation]]] = {False: {}, True: {}}

    def add(self, annotation: SubmittedAnnotation) -> None:
        self.annotations += 1
        self.items[annotation.chosen == "gold"].setdefault(annotation.item_id, []).append(annotation)

    def list_people(self) -> list[tuple[int, str]]:
        """Return the ids and names of the annotators, sorted by name."""
        kept = (annotations for items in self.items.values() for annotations in items.values())
        names = {annotation.user_id: annotation.user for annotations in kept for annotation in annotations}
        return sorted(names.items(), key=lambda person: (person[1], person[0]))

    def list_traces(self, hidden: bool) -> list[RatedTrace]:
        return [_trace(annotations) for annotations in self.items[hidden].values()]


def _trace(annotations: Sequence[SubmittedAnnotation]) -> RatedTrace:
    one = annotations[0]
    # If the trace has changed since, an annotation is as long as its person's events require.
    steps = max(len(annotation.labels) for annotation in annotations)
    unasked = sum(annotation.unasked for annotation in annotations)
    return RatedTrace(one.item_id, one.trace_id, one.external_id, one.dataset, one.digest, steps, unasked)


def _arrays(
    traces: Sequence[RatedTrace],
    annotated: Sequence[Sequence[SubmittedAnnotation]],
    names: tuple[str, ...],
    rows: Mapping[int, int],
    later: Mapping[tuple[int, int, int], int],
    gold_of: Mapping[int, tuple[Floats64, Floats64]],
) -> RatedTraces:
    """Convert the annotations of the given traces to arrays.

    `annotated` holds the annotations of each trace. `rows` maps each user id to an index in `names`.
    """
    sizes = [trace.steps for trace in traces]
    starts = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
    shape = len(names), int(starts[-1])
    last, first = np.full(shape, UNLABELLED, np.int8), np.full(shape, UNLABELLED, np.int8)
    seen = np.full(shape, np.nan)
    evidence = np.full(shape, np.nan)
    for start, annotations in zip(starts, annotated, strict=False):
        for annotation in annotations:
            row, steps = rows[annotation.user_id], slice(start, start + len(annotation.labels))
            last[row, steps] = [_CODES[label] for label in annotation.labels]
            first[row, steps] = [_CODES[label] for label in annotation.first]
            for step, changed_by in annotation.evidence.items():
                evidence[row, start + step] = changed_by
            whose = annotation.item_id, annotation.user_id
            seen[row, steps] = [later.get((*whose, step), np.nan) for step in range(len(annotation.labels))]
    trace = np.repeat(np.arange(len(traces)), sizes).astype(np.int64)
    position = np.arange(shape[1]) - starts[trace]
    gold_rows = [gold_of[one.item_id] for one in traces]
    gold, valid = (np.concatenate([np.empty(0), *(row[kind] for row in gold_rows)]) for kind in (0, 1))
    standing, early = (Ratings(names, codes, trace, position, len(traces)) for codes in (last, first))
    return RatedTraces(tuple(traces), standing, early, seen, gold, valid, evidence)


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


def _read_gold(store: Store, rated: Sequence[RatedTrace]) -> tuple[dict[int, tuple[Floats64, Floats64]], int]:
    """Return the gold labels and the validity of each item as arrays of shape (steps,), and the number of changed
    traces. For a trace that has changed since it was labelled, all values are NaN."""
    gold: dict[int, tuple[Floats64, Floats64]] = {}
    changed = 0
    for start in range(0, len(rated), BATCH):
        some = rated[start : start + BATCH]
        with store.read() as session:
            statement = traces([one.trace_id for one in some])
            stored = {trace.trace_id: trace for trace in load_traces(session, statement)}
        for one in some:
            same = stored[one.trace_id].digest == one.digest
            changed += not same
            silent = np.full(one.steps, np.nan)
            gold[one.item_id] = _gold(stored[one.trace_id]) if same else (silent, silent)
    return gold, changed


def _gold(trace: Trace) -> tuple[Floats64, Floats64]:
    labels = [np.nan if step.label is None else float(step.label) for step in trace.steps]
    valid = [np.nan if step.valid is None else float(step.valid) for step in trace.steps]
    return np.array(labels), np.array(valid)
