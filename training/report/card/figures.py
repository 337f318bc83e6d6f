"""The sections of a card that hold figures of the evaluator on the dataset, beside baselines and gold."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from stepsight.core.metrics.bootstrap import Value, Weights
from stepsight.core.metrics.shortcuts import error_is_last, last_by_chance, last_is_least, rank_correlation
from stepsight.core.metrics.table import SILENT, StepTable
from stepsight.training.evaluate.baseline_check import check_row
from stepsight.training.evaluate.evaluation import Evaluation, Row
from stepsight.training.report.html import Content, Section
from stepsight.training.report.plots import interval_plot, reliability_plot, styles
from stepsight.training.report.results import (
    EVALUATOR,
    MODE,
    PROTOCOL,
    RIVAL_TITLES,
    calibration_figures,
    first_error_figures,
    make_table,
    ordered,
    outcomes,
    results,
    subjects,
)
from stepsight.training.report.shares import has_gold
from stepsight.training.report.tables import Cell, CellKind, Column

_LENGTH = "baseline:length"


def figure_sections(evaluation: Evaluation) -> Iterator[Section]:
    """Yield the sections of figures. `evaluation` holds the rows of one evaluator and of the baselines."""
    if has_gold(evaluation):
        yield _figures(evaluation)
        yield _calibration(evaluation)
    else:
        name = evaluation.dataset.name
        yield Section("Figures", [f"{name} has no gold labels to measure against. What follows needs none."])
    yield Section("Length and place of a step", [_shortcuts(evaluation)])
    yield Section("Redundancy", [_redundancy(evaluation)])


def _figures(evaluation: Evaluation) -> Section:
    look = styles(ordered(evaluation.rows))
    tables = [results(evaluation, *question) for question in evaluation.judged]
    plots = []
    for mode, errors in evaluation.judged:
        rows = ordered(row for row in evaluation.rows if (row.mode, row.errors) == (mode, errors))
        name = rows[0].beats_in
        caption = f"{RIVAL_TITLES[name]} beside the baselines, {errors} errors, {mode}"
        plots.append(interval_plot(rows, look, name, RIVAL_TITLES[name], caption))
    first = first_error_figures(_judging(evaluation)) if _own(evaluation).subject.outputs.has_steps else None
    return Section("Figures", [*_against_baselines(evaluation), plots, *tables, *([first] if first else [])])


def _against_baselines(evaluation: Evaluation) -> Iterator[str]:
    """Yield a sentence on each comparison with the best baseline."""
    for check in filter(None, map(check_row, evaluation.rows)):
        value, low, high = (f"{100 * one:+.1f}" for one in _ends(check.difference))
        yield (
            f"On {check.errors} errors, {check.mode}, its {PROTOCOL[check.figure]} differs by {value} points ({low}"
            f" to {high}) from that of the best baseline, which reads {check.baseline_reads}:"
            f" it {'clears' if check.clears else 'does not clear'} the baselines."
        )


def _ends(value: Value) -> tuple[float, float, float]:
    return value.number, value.low, value.high


def _calibration(evaluation: Evaluation) -> Section:
    if silent := _silent(evaluation):
        return Section("Calibration", [silent])
    table = calibration_figures(_judging(evaluation))
    if table is None:
        return Section("Calibration", ["Gold calls no step valid or wrong."])
    rows = [row for row in ordered(subjects(_judging(evaluation))) if not row.is_baseline]
    look = styles(rows)
    return Section("Calibration", [table, [reliability_plot([row], look, row.mode) for row in rows]])


def _own(evaluation: Evaluation) -> Row:
    """Return the first row of the evaluator."""
    return next(row for row in evaluation.rows if not row.is_baseline)


def _silent(evaluation: Evaluation) -> str:
    """Return a sentence that says that the evaluator gives no scores of steps, or "" if it gives some."""
    outputs = _own(evaluation).subject.outputs
    if not outputs.has_steps:
        return "It judges whole solutions, and says nothing of steps."
    return "" if outputs.has_scores else "It gives verdicts in words, and no scores."


def _judging(evaluation: Evaluation) -> Evaluation:
    """Return the evaluation in the modes in which the evaluator has judged the dataset."""
    modes = {row.mode for row in evaluation.rows if not row.is_baseline}
    return replace(evaluation, rows=[row for row in evaluation.rows if row.mode in modes])


def _shortcuts(evaluation: Evaluation) -> Content:
    """Return a table of how closely the evaluator's validity follows the length and the position of a step, overall
    and beyond gold."""
    if silent := _silent(evaluation):
        return silent
    columns = [
        EVALUATOR,
        MODE,
        Column("length", "Correlation with length", CellKind.NUMBER),
        Column("length_beyond_gold", "Beyond gold", CellKind.NUMBER),
        Column("last_is_least", "Least step is the last"),
        Column("last_by_chance", "By chance"),
    ]
    cells: list[tuple[Row, tuple[Cell, ...]]] = []
    notes = [
        "Rank correlation of the validity of steps with their number of characters: negative if long steps are"
        " judged less valid. Beyond gold: within the steps that gold calls valid and those that it calls wrong."
    ]
    for row in (one for one in ordered(subjects(evaluation)) if not one.is_baseline):
        length = next(
            one.subject.table for one in evaluation.rows if (one.evaluator, one.mode) == (_LENGTH, row.mode)
        )
        values = _shortcut_values(row, length, evaluation.weights)
        cells.append((row, (row.evaluator, row.mode.value, *values)))
        notes += [f"{row.evaluator}: {reason}" for reason in dict.fromkeys(one.reason for one in values) if reason]
    if has_gold(evaluation):
        none = Value.none("")
        of_gold = _length_of_gold(length, evaluation.weights), none, error_is_last(length, evaluation.weights), none
        cells.append((row, ("gold", "", *of_gold)))
        notes.append("Gold: how its labels correlate with length, and the share of first errors in a last step.")
    return make_table(
        evaluation, "shortcuts", "how far scores follow the length and the place of a step", columns, cells, notes
    )


def _shortcut_values(row: Row, lengths: StepTable, weights: Weights) -> tuple[Value, ...]:
    table = row.subject.table
    lengths = lengths.where(table.present[lengths.trace])
    known = ~np.isnan(table.validity)
    labelled = known & (table.valid != SILENT)
    raw, beyond = (
        rank_correlation(
            table.validity[kept].astype(np.float64),
            -lengths.validity[kept].astype(np.float64),
            group[kept],
            table.trace[kept],
            weights,
        )
        if kept.any()
        else Value.none("gold labels no step")
        for kept, group in ((known, np.zeros(len(table), np.int64)), (labelled, table.valid))
    )
    return raw, beyond, last_is_least(table, weights), last_by_chance(table, weights)


def _length_of_gold(lengths: StepTable, weights: Weights) -> Value:
    kept = lengths.valid != SILENT
    if not kept.any():
        return Value.none("")
    group = np.zeros(int(kept.sum()), np.int64)
    gold, length = lengths.valid[kept].astype(np.float64), -lengths.validity[kept].astype(np.float64)
    return rank_correlation(gold, length, group, lengths.trace[kept], weights)


def _redundancy(evaluation: Evaluation) -> Content:
    if "redundant" not in {row.errors for row in evaluation.rows}:
        return "Gold calls no step redundant, so that nothing can be said of redundancy here."
    if not _own(evaluation).subject.outputs.has_redundancy:
        return "The evaluator does not judge redundancy. Its figures on redundant errors rank by its other scores."
    return outcomes(_judging(evaluation), of_redundancy=True) or "The evaluator calls no solution redundant."
