"""Tables of the differences of evaluators from one of them: all figures at once, and McNemar's tests."""

from collections.abc import Iterable, Sequence

from stepsight.core.metrics.bootstrap import Value
from stepsight.core.metrics.figures import CALIBRATION, FIRST_ERRORS, SHARES
from stepsight.training.evaluate.evaluation import Evaluation, PairedComparison, Row
from stepsight.training.report.results import EVALUATOR, PROTOCOL, THREE_WAY, TRACES, make_table
from stepsight.training.report.tables import Cell, CellKind, Column, Table, slug

_FIGURES = PROTOCOL | FIRST_ERRORS | THREE_WAY | CALIBRATION | SHARES
_LESS_IS_BETTER = (*CALIBRATION, "share_brier")

Compared = Sequence[tuple[Row, PairedComparison]]
"""Rows of one mode and kind of error, each with its comparison with the same reference."""


def difference_table(evaluation: Evaluation, compared: Compared) -> Table:
    """Return a table of the rows' figures minus those of the reference, with intervals paired by trace. A figure is
    left out if no row shares it with the reference."""
    _, one = compared[0]
    shown = [name for name in _FIGURES if any(_exists(pair.differences, name) for _, pair in compared)]
    none = Value.none("")
    cells: list[tuple[Row, tuple[Cell, ...]]] = [
        (row, (row.evaluator, *(pair.differences.get(name, none) for name in shown), pair.n_traces))
        for row, pair in compared
    ]
    columns = [EVALUATOR, *(Column(name, _FIGURES[name], CellKind.POINTS) for name in shown), TRACES]
    difference = "in percentage points with 95 % intervals of the paired difference"
    caption = f"{one.errors} errors, {one.mode}, minus {one.second}, {difference}"
    notes = [
        f"{row.evaluator}: {pair.differences[name].reason}"
        for row, pair in compared
        for name in shown
        if name in pair.differences and not pair.differences[name].exists and not row.is_baseline
    ]
    lower = [_FIGURES[name] for name in shown if name in _LESS_IS_BETTER]
    notes += [f"Of {' and '.join(lower)}, less is better."] if lower else []
    return make_table(evaluation, f"minus-{slug(one.second)}", caption, columns, cells, notes)


def _exists(differences: dict[str, Value], name: str) -> bool:
    return name in differences and differences[name].exists


def mcnemar_table(evaluation: Evaluation, compared: Compared) -> Table | None:
    """Return a table of McNemar's exact tests against the reference, or None if no row has one."""
    _, one = compared[0]
    columns = [
        EVALUATOR,
        Column("level", "Items", CellKind.TEXT),
        Column("only_here", "Right, the other wrong", CellKind.COUNT),
        Column("only_there", "Wrong, the other right", CellKind.COUNT),
        Column("p", "p", CellKind.TEXT),
    ]
    cells = list(_tests(compared))
    caption = f"{one.errors} errors, {one.mode}, against {one.second}: McNemar's exact test, two-sided"
    notes = ["The test takes the steps of a solution as independent. The intervals of figures do not."]
    return make_table(evaluation, f"mcnemar-{slug(one.second)}", caption, columns, cells, notes) if cells else None


def _tests(compared: Compared) -> Iterable[tuple[Row, tuple[Cell, ...]]]:
    for row, pair in compared:
        for level, test in pair.tests.items():
            p = f"{test.p.number:.2g}" if test.p.exists else test.p.reason
            yield row, (row.evaluator, f"{level}s", test.first_only, test.second_only, p)
