"""A table of outcomes by the value of a metadata field or by length, with the share of right ones."""

from collections import Counter
from collections.abc import Iterable, Sequence

from stepsight.storage.browse.fields import list_fields
from stepsight.storage.browse.filters import TraceFilter
from stepsight.storage.browse.outcomes import BY_LENGTH, MOST_VALUES, ByCondition, ValueOutcomes, outcomes_by
from stepsight.storage.database.store import Store
from stepsight.training.evaluate.evaluation import Evaluation, Question
from stepsight.training.report.results import EVALUATOR, OUTCOMES, TRACES, measured_on
from stepsight.training.report.tables import Cell, CellKind, Column, Table, slug

Conditions = Sequence[tuple[str, ByCondition]]
"""For each row of a table, its evaluator and the conditions that select its traces."""


def outcome_fields(store: Store, dataset_id: int) -> dict[str, str]:
    """Return what outcomes can be counted by, with titles: the number of steps and the fields of the metadata."""
    fields = {field.name: field.name for field in list_fields(store, dataset_id)}
    return {BY_LENGTH: "number of steps"} | fields


def outcomes_by_field(
    store: Store, evaluation: Evaluation, evaluators: Iterable[tuple[str, int]], question: Question, by: str
) -> tuple[Table, Conditions]:
    """Return a table with a row per evaluator and value of a field: the share of right outcomes, with an interval
    from the evaluation's resamples, and the traces with each outcome.

    Evaluators are given by name and database id. `by` is one of `outcome_fields`.
    """
    mode, errors = question
    where = TraceFilter(group=evaluation.group).model_copy(update={"mode": mode.value, "errors": errors.value})
    found = [
        (name, one)
        for name, id in evaluators
        for one in outcomes_by(
            store, evaluation.dataset.id, where.model_copy(update={"evaluator": id}), by, evaluation.weights
        )
    ]
    table = _table(evaluation, found, by, f"{errors} errors by {'length' if by == BY_LENGTH else by}, {mode}")
    return table, [(name, one.conditions) for name, one in found]


def _table(evaluation: Evaluation, found: Sequence[tuple[str, ValueOutcomes]], by: str, caption: str) -> Table:
    kinds = [kind for kind in OUTCOMES if any(one.counts[kind] for _, one in found)]
    columns = (
        EVALUATOR,
        Column("value", "Steps" if by == BY_LENGTH else by, CellKind.TEXT),
        Column("share_right", "Right, share"),
        *(Column(kind.value, OUTCOMES[kind], CellKind.COUNT) for kind in kinds),
        TRACES,
    )
    rows: list[tuple[Cell, ...]] = [
        (name, one.value, one.right, *(one.counts[kind] for kind in kinds), one.traces) for name, one in found
    ]
    names = [name for name, _ in found]
    starts = tuple(place for place, name in enumerate(names) if place and name != names[place - 1])
    notes = ["Traces without an outcome or without a value are left out."]
    if max(Counter(names).values(), default=0) == MOST_VALUES:
        notes.append(f"At most the {MOST_VALUES} most common values are shown.")
    return Table(
        f"{slug(measured_on(evaluation))}-outcomes-by-{slug(by)}",
        f"{measured_on(evaluation)}: outcomes of {caption}, in percent with 95 % intervals over traces",
        columns,
        tuple(rows),
        tuple(notes),
        starts,
    )
