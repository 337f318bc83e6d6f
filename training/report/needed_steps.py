"""How well left-out scores tell needed steps of a dataset from other steps."""

from collections.abc import Sequence

from stepsight.storage.database.store import Store
from stepsight.storage.judgments.left_outs import measure_needed
from stepsight.storage.traces.queries import Dataset
from stepsight.training.report.tables import CellKind, Column, Table

_COLUMNS = (
    Column("evaluator", "Evaluator", CellKind.TEXT),
    Column("auc", "AUC", CellKind.NUMBER),
    Column("needed", "Needed", CellKind.COUNT),
    Column("others", "Others", CellKind.COUNT),
    Column("problems", "Problems", CellKind.COUNT),
)


def needed_table(store: Store, dataset: Dataset, evaluators: Sequence[tuple[str, int]]) -> Table | None:
    """Return a table with the AUC of the largest fall of a later step when a step is left out, for needed against
    other steps.

    Evaluators are given by name and database id. The result is None if none of them has such scores of both kinds
    of steps.
    """
    measured = measure_needed(store, dataset, evaluators)
    rows = tuple((name, one.auc, one.needed, one.others, one.problems) for name, one in measured.items())
    caption = f"{dataset.name}: the largest fall of a later step without a step, needed against other steps"
    return Table("needed-steps", caption, _COLUMNS, rows, ("95 % intervals over problems.",)) if rows else None
