"""A table of outcomes by the value of a metadata field or by length, with the share of right outcomes."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from stepsight.storage.browse.browse import list_fields
from stepsight.storage.browse.filters import TraceFilter
from stepsight.storage.browse.outcomes import BY_LENGTH, MOST_VALUES, ByCondition, outcomes_by
from stepsight.storage.database.store import Store
from stepsight.training.evaluate.evaluation import Evaluation, Question
from stepsight.training.report.results import EVALUATOR, OUTCOMES, TRACES, measured_on
from stepsight.training.report.tables import Cell, CellKind, Column, Table, slug, table_of

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
    on, caption = measured_on(evaluation), f"outcomes of {errors} errors by {basis}, {mode}"
    table = table_of(
        f"{slug(on)}-outcomes-by-{slug(by)}",
        f"{on}: {caption}, in percent with 95 % intervals over traces",
        rows,
        notes,
        [place for place, name in enumerate(names) if place and name != names[place - 1]],
        least=(EVALUATOR, of_value, share, TRACES),
    )
    return table, [(name, value.conditions) for name, value in values]
