"""Evaluators' evidence against the later steps that people name in stepwise campaigns, on a dataset.

Only blind labels count, and hidden gold items do not.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from stepsight.core.judgment import Mode
from stepsight.core.metrics.labels.evidence_hits import TOP, EvidenceHits, evidence_hits, step_changes
from stepsight.core.scores import Hindsight
from stepsight.storage.database.store import Store
from stepsight.storage.judgments.judgments import read_many, standing
from stepsight.storage.labelling.campaigns import list_campaigns
from stepsight.storage.labelling.results.annotations import UNASKED, iterate_annotations
from stepsight.storage.traces.queries import Dataset, StoredTrace, trace_batches
from stepsight.training.report.tables import Cell, CellKind, Column, Table


@dataclass(frozen=True)
class _Link:
    """A person's link from a step to the later step that changed their label, both 0-based, and the digest of the
    trace as they saw it."""

    digest: str
    step: int
    by: int


def evidence_table(
    store: Store, dataset: Dataset, evaluators: Sequence[tuple[str, int]], draws: int
) -> Table | None:
    """Return a table of the share of people's links that each evaluator's evidence matches.

    Evaluators are given by name and database id. The result is None if nobody names a step of the dataset, or if no
    evaluator has a hindsight judgment of such a trace.
    """
    links, unasked = _read_links(store, dataset)
    found = [(name, _measure(store, links, id, draws)) for name, id in evaluators]
    rows = [_row(name, hits) for name, hits in found if hits is not None]
    if not rows:
        return None
    heads = {"hit": ("hit at {}", CellKind.PERCENT), "above_next": ("minus the next step, at {}", CellKind.POINTS),
             "above_chance": ("minus chance, at {}", CellKind.POINTS)}  # fmt: skip
    columns = [
        Column("evaluator", "Evaluator", CellKind.TEXT),
        Column("links", "Links", CellKind.COUNT),
        Column("traces", "Traces", CellKind.COUNT),
        *(
            Column(f"{key}_{first}", title.format(first), kind)
            for key, (title, kind) in heads.items()
            for first in TOP
        ),
    ]
    left_out = (f"Not in it: {unasked:,} {UNASKED}.",) if unasked else ()
    caption = f"{dataset.name}: the later step that changed a person's label, among the evaluator's evidence"
    return Table("evidence-links", caption, tuple(columns), tuple(rows), ("95 % intervals over traces.", *left_out))


def _row(name: str, hits: EvidenceHits) -> tuple[Cell, ...]:
    values = [values[first] for values in (hits.hit, hits.above_next, hits.above_chance) for first in TOP]
    return name, hits.links, hits.traces, *values


def _read_links(store: Store, dataset: Dataset) -> tuple[Mapping[int, list[_Link]], int]:
    """Return people's links by the database ids of their traces, and the number of changed labels for which nobody
    was asked to name a step."""
    unasked = 0
    links: defaultdict[int, list[_Link]] = defaultdict(list)
    for campaign in list_campaigns(store):
        if campaign.dataset_id != dataset.id or campaign.view != "stepwise":
            continue
        for one in iterate_annotations(store, campaign.id):
            if one.chosen != "gold":
                unasked += one.unasked
                for step, by in one.evidence.items():
                    links[one.trace_id].append(_Link(one.digest, step, by))
    return links, unasked


def _measure(store: Store, links: Mapping[int, list[_Link]], evaluator_id: int, draws: int) -> EvidenceHits | None:
    changes, named, places = [], [], []
    place = -1
    for trace, hindsight in _judged(store, sorted(links), evaluator_id):
        fresh = [link for link in links[trace.trace_id] if link.digest == trace.digest]
        place += bool(fresh)
        for link in fresh:
            changes.append(step_changes(hindsight, trace, link.step))
            named.append(link.by - link.step - 1)
            places.append(place)
    if not named:
        return None
    return evidence_hits(changes, named, np.array(places, np.int64), draws)


def _judged(store: Store, trace_ids: Sequence[int], evaluator_id: int) -> Iterator[tuple[StoredTrace, Hindsight]]:
    """Yield the traces for which the evaluator has a hindsight judgment that is not stale."""
    for batch in trace_batches(store, trace_ids):
        for trace, judgments in zip(batch, read_many(store, batch, evaluator_id), strict=True):
            found = standing(judgments, Mode.HINDSIGHT)
            if found is not None and found.hindsight is not None:
                yield trace, found.hindsight
