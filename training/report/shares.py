"""The part of a report on soft labels: how evaluators' validities compare with the shares of steps."""

import numpy as np

from stepsight.core.metrics.figures import SHARES
from stepsight.training.evaluate.evaluation import Evaluation, Row, above_best_baseline
from stepsight.training.report.results import EVALUATOR, MODE, TRACES, make_table, notes, ordered, subjects
from stepsight.training.report.tables import Cell, CellKind, Column, Table

_RANKS = "share_spearman"
_ALONE = (
    "These traces have soft labels alone. A share says neither valid nor wrong, so that figures of verdicts, first"
    " errors, calibration and classes are left out."
)


def has_gold(evaluation: Evaluation) -> bool:
    """True if gold labels anything that can be measured. Shares do not count."""
    return any(row.n_steps or row.n_solutions for row in evaluation.rows)


def has_shares(evaluation: Evaluation) -> bool:
    """True if a step that was measured has a soft label."""
    return any(row.subject.table.share is not None for row in evaluation.rows)


def share_contents(evaluation: Evaluation) -> list[str | Table]:
    """Return the content of a section on soft labels. Some of the steps of the evaluation must have a share."""
    return [*([] if has_gold(evaluation) else [_ALONE]), share_figures(evaluation)]


def share_figures(evaluation: Evaluation) -> Table:
    """Return a table of the figures of shares in each mode, and of the difference from the best baseline in
    Spearman's correlation."""
    columns = [
        EVALUATOR,
        MODE,
        *(Column(name, title, CellKind.NUMBER) for name, title in SHARES.items()),
        Column("above_baseline", "Above best baseline", CellKind.NUMBER),
        Column("n_shares", "Steps", CellKind.COUNT),
        TRACES,
    ]
    caption = "validity beside the share of each step, with 95 % intervals over traces; of Brier, less is better"
    remarks = notes(_rows(evaluation), SHARES, evaluation.traces)
    remarks += [f"Above best baseline: in {SHARES[_RANKS]}, paired by trace."]
    cells = ((row, _cells(evaluation, row)) for row in _rows(evaluation))
    return make_table(evaluation, "soft-labels", caption, columns, cells, remarks)


def _rows(evaluation: Evaluation) -> list[Row]:
    return [row for row in ordered(subjects(evaluation)) if _RANKS in row.measured]


def _cells(evaluation: Evaluation, row: Row) -> tuple[Cell, ...]:
    values = [row.measured[name].value for name in SHARES]
    ranked = row.measured[_RANKS].value.exists
    above = above_best_baseline(row, evaluation.rows, _RANKS, evaluation.weights)[0] if ranked else None
    table = row.subject.table
    assert table.share is not None
    with_share = ~np.isnan(table.share)
    traces = len(np.unique(table.trace[with_share]))
    return row.evaluator, row.mode.value, *values, above, int(with_share.sum()), traces
