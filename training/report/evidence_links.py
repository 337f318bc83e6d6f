"""Evaluators' evidence on a dataset: against the later steps that people name in stepwise campaigns, and how well
left-out scores tell needed steps from other steps.

Of people's labels only blind ones count, and those of hidden gold items do not.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np

from stepsight.core.judgment import Mode
from stepsight.core.metrics.evidence import TOP, EvidenceHits, evidence_hits, step_changes
from stepsight.storage.database.store import Store
from stepsight.storage.judgments.judgments import read_many, standing
from stepsight.storage.judgments.left_outs import measure_needed
from stepsight.storage.labelling.campaigns import list_campaigns
from stepsight.storage.labelling.results.annotations import UNASKED, iterate_annotations
from stepsight.storage.traces.queries import Dataset, trace_batches
from stepsight.training.report.results import EVALUATOR
from stepsight.training.report.tables import Cell, CellKind, Column, Table, table_of


def evidence_table(
    store: Store, dataset: Dataset, evaluators: Sequence[tuple[str, int]], draws: int
) -> Table | None:
    """Return a table of the share of people's links that each evaluator's evidence matches.

    Evaluators are given by name and database id. The result is None if nobody names a step of the dataset, or if no
    evaluator has a hindsight judgment of such a trace.
    """
    links, unasked = _read_links(store, dataset)
    rows = []
    for name, id in evaluators:
        hits = _measure(store, links, id, draws)
        if hits is None:
            continue
        row: dict[Column, Cell] = {EVALUATOR: name, Column("links", "Links", CellKind.COUNT): hits.links}
        row[Column("traces", "Traces", CellKind.COUNT)] = hits.traces
        for key, title, values, kind in (
            ("hit", "hit at {}", hits.hit, CellKind.PERCENT),
            ("above_next", "minus the next step, at {}", hits.above_next, CellKind.POINTS),
            ("above_chance", "minus chance, at {}", hits.above_chance, CellKind.POINTS),
        ):
            row |= {Column(f"{key}_{first}", title.format(first), kind): values[first] for first in TOP}
        rows.append(row)
    left_out = (f"Not in it: {unasked:,} {UNASKED}.",) if unasked else ()
    caption = f"{dataset.name}: the later step that changed a person's label, among the evaluator's evidence"
    notes = ("95 % intervals over traces.", *left_out)
    return table_of("evidence-links", caption, rows, notes) if rows else None


def _read_links(store: Store, dataset: Dataset) -> tuple[Mapping[int, list[tuple[str, int, int]]], int]:
    """Return people's links by the database ids of their traces, and the number of changed labels for which nobody
    was asked to name a step. A link is the digest of the trace as they saw it, the step, and the later step that
    changed their label, both 0-based."""
    unasked = 0
    links: defaultdict[int, list[tuple[str, int, int]]] = defaultdict(list)
    for campaign in list_campaigns(store):
        if campaign.dataset_id != dataset.id or not campaign.stepwise:
            continue
        for annotation in iterate_annotations(store, campaign.id):
            if annotation.chosen != "gold":
                unasked += annotation.unasked
                links[annotation.trace_id] += [
                    (annotation.digest, step, by) for step, by in annotation.evidence.items()
                ]
    return {trace_id: named for trace_id, named in links.items() if named}, unasked


def _measure(
    store: Store, links: Mapping[int, list[tuple[str, int, int]]], evaluator_id: int, draws: int
) -> EvidenceHits | None:
    """Return the figures of an evaluator on the links of traces for which it has a hindsight judgment that is not
    stale, or None if there are none."""
    changes, named, places = [], [], []
    place = -1
    for batch in trace_batches(store, sorted(links)):
        for trace, judgments in zip(batch, read_many(store, batch, evaluator_id), strict=True):
            judgment = standing(judgments, Mode.HINDSIGHT)
            fresh = [(step, by) for digest, step, by in links[trace.trace_id] if digest == trace.digest]
            if judgment is None or judgment.hindsight is None or not fresh:
                continue
            place += 1
            for step, by in fresh:
                changes.append(step_changes(judgment.hindsight, trace, step))
                named.append(by - step - 1)
                places.append(place)
    return evidence_hits(changes, named, np.array(places, np.int64), draws) if named else None


def needed_table(store: Store, dataset: Dataset, evaluators: Sequence[tuple[str, int]]) -> Table | None:
    """Return a table with the AUC of the largest fall of a later step when a step is left out, for needed against
    other steps.

    Evaluators are given by name and database id. The result is None if none of them has such scores of both kinds
    of steps.
    """
    rows: list[Mapping[Column, Cell]] = [
        {
            EVALUATOR: name,
            Column("auc", "AUC", CellKind.NUMBER): measured.auc,
            Column("needed", "Needed", CellKind.COUNT): measured.needed,
            Column("others", "Others", CellKind.COUNT): measured.others,
            Column("problems", "Problems", CellKind.COUNT): measured.problems,
        }
        for name, measured in measure_needed(store, dataset, evaluators).items()
    ]
    caption = f"{dataset.name}: the largest fall of a later step without a step, needed against other steps"
    return table_of("needed-steps", caption, rows, ["95 % intervals over problems."]) if rows else None
