"""Tables of what the store says besides figures: outcomes by metadata or length, and evaluators' evidence.

Evidence is held against the later steps that people name in stepwise campaigns, of whose labels only blind ones
count, and not those of hidden gold items; and left-out scores against the steps that are needed.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from stepsight.core.judgment import Mode
from stepsight.core.metrics.evidence import TOP, EvidenceHits, evidence_hits, step_changes
from stepsight.storage.browse.browse import list_fields
from stepsight.storage.browse.filters import TraceFilter
from stepsight.storage.browse.outcomes import BY_LENGTH, MOST_VALUES, ByCondition, outcomes_by
from stepsight.storage.database.store import Store
from stepsight.storage.judgments.judgments import read_many, standing
from stepsight.storage.judgments.left_outs import measure_needed
from stepsight.storage.labelling.campaigns import list_campaigns
from stepsight.storage.labelling.submissions import iterate_annotations
from stepsight.storage.traces.queries import Dataset, trace_batches
from stepsight.training.evaluate.evaluation import Evaluation, Question
from stepsight.training.report.results import EVALUATOR, OUTCOMES, TRACES
from stepsight.training.report.tables import Cell, CellKind, Column, Table, slug, table_of


def evidence_table(
    store: Store, dataset: Dataset, evaluators: Sequence[tuple[str, int]], draws: int
) -> Table | None:
    """Return a table of the share of people's links that each evaluator's evidence matches.

    Evaluators are given by name and database id. The result is None if nobody names a step of the dataset, or if no
    evaluator has a hindsight judgment of such a trace.
    """
    links = _read_links(store, dataset)
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
    caption = f"{dataset.name}: the later step that changed a person's label, among the evaluator's evidence"
    return table_of("evidence-links", caption, rows, ("95 % intervals over traces.",)) if rows else None


def _read_links(store: Store, dataset: Dataset) -> Mapping[int, list[tuple[str, int, int]]]:
    """Return people's links by the database ids of their traces. A link is the digest of the trace as they saw it,
    the step, and the later step that changed their label, both 0-based."""
    links: defaultdict[int, list[tuple[str, int, int]]] = defaultdict(list)
    for campaign in list_campaigns(store):
        if campaign.dataset_id != dataset.id or not campaign.stepwise:
            continue
        for annotation in iterate_annotations(store, campaign.id):
            if (item := annotation.item).chosen != "gold":
                links[item.trace_id] += [
                    (item.digest, step, to) for step, to in enumerate(annotation.evidence) if to is not None
                ]
    return {trace_id: named for trace_id, named in links.items() if named}


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
            fresh = [(step, to) for digest, step, to in links[trace.trace_id] if digest == trace.digest]
            if judgment is None or judgment.hindsight is None or not fresh:
                continue
            place += 1
            for step, to in fresh:
                changes.append(step_changes(judgment.hindsight, trace, step))
                named.append(to - step - 1)
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


Conditions = Sequence[tuple[str, ByCondition]]
"""For each row of a table, its evaluator and the conditions that select its traces."""


def outcome_fields(store: Store, dataset_id: int) -> dict[str, str]:
    """Return the bases on which outcomes can be counted, with titles: the number of steps and the metadata fields,
    without those of which hardly two traces share a text."""
    fields = list_fields(store, dataset_id)
    kept = [
        field.name for field in fields if field.is_number or field.values <= max(MOST_VALUES, field.traces // 2)
    ]
    return {BY_LENGTH: "number of steps"} | {name: name for name in kept if name != BY_LENGTH}


def outcomes_by_field(
    store: Store, evaluation: Evaluation, evaluators: Iterable[tuple[str, int]], question: Question, by: str
) -> tuple[Table, Conditions]:
    """Return a table with a row per evaluator and value of a field: the share of right outcomes, with an interval
    from the evaluation's resamples, and the traces with each outcome.

    Evaluators are given by name and database id. `by` is one of `outcome_fields`.
    """
    mode, errors = question
    where = TraceFilter(group=evaluation.view.group).model_copy(update={"mode": mode.value, "errors": errors.value})
    values = [
        (name, value)
        for name, id in evaluators
        for value in outcomes_by(
            store, evaluation.dataset.id, where.model_copy(update={"evaluator": id}), by, evaluation.weights
        )
    ]
    title, basis = ("Steps", "length") if by == BY_LENGTH else (by, by)
    kinds = [kind for kind in OUTCOMES if any(value.counts[kind] for _, value in values)]
    of_value, share = Column("value", title, CellKind.TEXT), Column("share_right", "Right, share")
    of_kind = {kind: Column(kind.value, OUTCOMES[kind], CellKind.COUNT) for kind in kinds}
    rows: list[Mapping[Column, Cell]] = [
        {
            EVALUATOR: name,
            of_value: value.value,
            share: value.right,
            **{column: value.counts[kind] for kind, column in of_kind.items()},
            TRACES: value.traces,
        }
        for name, value in values
    ]
    names = [name for name, _ in values]
    notes = ["Traces without an outcome or without a value are left out."]
    if max(Counter(names).values(), default=0) == MOST_VALUES:
        notes.append(f"At most the {MOST_VALUES} most common values are shown.")
    on, caption = evaluation.view.name, f"outcomes of {errors} errors by {basis}, {mode}"
    table = table_of(
        f"{slug(on)}-outcomes-by-{slug(by)}",
        f"{on}: {caption}, in percent with 95 % intervals over traces",
        rows,
        notes,
        [place for place, name in enumerate(names) if place and name != names[place - 1]],
        least=(EVALUATOR, of_value, share, TRACES),
    )
    return table, [(name, value.conditions) for name, value in values]
