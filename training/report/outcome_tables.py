"""A table of outcomes by the value of a metadata field or by length, with the share of right outcomes."""

from collections import Counter
from collections.abc import Iterable, Sequence

from stepsight.storage.browse.browse import list_fields
from stepsight.storage.browse.filters import TraceFilter
from stepsight.storage.browse.outcomes import (
    BY_LENGTH,
    MOST_VALUES,
    ByCondition,
    ValueOutcomes,
    outcomes_by,
)
from stepsight.storage.database.store import Store
from stepsight.training.evaluate.evaluation import Evaluation, Question
from stepsight.training.report.results import EVALUATOR, OUTCOMES, TRACES, measured_on
from stepsight.training.report.tables import Cell, CellKind, Column, Table, slug

Conditions = Sequence[tuple[str, ByCondition]]
"""For each row of a table, its evaluator and the conditions that select its traces."""


def outcome_fields(store: Store, dataset_id: int) -> dict[str, str]:
    """Return the bases on which outcomes can be counted, with titles: the number of steps and the metadata
    fields."""
    fields = [field.name for field in list_fields(store, dataset_id)]
    return {BY_LENGTH: "number of steps"} | {name: name for name in fields if name != BY_LENGTH}


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
    head, name = ("Steps", "length") if by == BY_LENGTH else (by, by)
    table = _table(evaluation, found, (by, head), f"{errors} errors by {name}, {mode}")
    return table, [(name, one.conditions) for name, one in found]


def _table(
    evaluation: Evaluation, found: Sequence[tuple[str, ValueOutcomes]], by: tuple[str, str], caption: str
) -> Table:
    kinds = [kind for kind in OUTCOMES if any(one.counts[kind] for _, one in found)]
    columns = (
        EVALUATOR,
        Column("value", by[1], CellKind.TEXT),
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
        f"{slug(measured_on(evaluation))}-outcomes-by-{slug(by[0])}",
        f"{measured_on(evaluation)}: outcomes of {caption}, in percent with 95 % intervals over traces",
        columns,
        tuple(rows),
        tuple(notes),
        starts,
    )
