"""The report on one grid, or on several versions of a grid, as a single HTML page and as files."""

from collections.abc import Iterator, Sequence
from datetime import date

from stepsight.core.errors import UserError
from stepsight.core.metrics.bootstrap import Value
from stepsight.training.experiments.grid.results import (
    LATE_AUC,
    MACRO_AUC,
    MACRO_F1,
    METRICS,
    GridResults,
    Key,
    contrast,
    gains,
    pair_values,
)
from stepsight.training.experiments.grid.tables import (
    cell_table,
    class_table,
    mean_table,
    paired_table,
    run_table,
    scaling_plots,
    scatter_plot,
    survival_plots,
    survival_table,
    third_plot,
    third_table,
)
from stepsight.training.report.html import Content, Part, Section
from stepsight.training.report.report import Report
from stepsight.training.report.tables import Cell, CellKind, show, slug


def make_grid_report(grids: Sequence[GridResults], day: date | None = None) -> Report:
    """Return the report on one grid, or on several versions of a grid, comparing each later version with the first.

    Raises `UserError` if two grids have the same name, if a grid has no matched pair, or if a later version has no
    test set in common with the first.
    """
    names = [slug(results.name).lower() for results in grids]
    for results, name in zip(grids, names, strict=True):
        if names.count(name) > 1:
            raise UserError(f"{results.name} is given twice.", "Report each grid once.")
        if all(pair_values(results, key, MACRO_AUC).empty for key in results.keys):
            raise UserError(f"{results.name} has no pair of runs that differ only in the mask.", "Resume it first.")
    for other in grids[1:]:
        if not set(other.keys) & set(grids[0].keys):
            raise UserError(f"{grids[0].name} and {other.name} have no test in common.", "Report each by itself.")
    parts = [_forms(grids[0], other) for other in grids[1:]]
    for results in grids:
        about = f"{len(results.runs)} of {results.planned} runs; {results.about}".rstrip("; ")
        paired = [key for key in results.keys if not pair_values(results, key, MACRO_AUC).empty]
        parts.append(Part(results.name, f"{about}.", [_section(results, key) for key in paired]))
    lead = f"{', '.join(results.name for results in grids)}; {day or date.today():%d %B %Y}"
    return Report.of("StepSight grid", lead, parts)


def _section(results: GridResults, key: Key) -> Section:
    note = results.notes.get(key[0], "")
    tables = (
        table(results, key) for table in (paired_table, mean_table, third_table, class_table, cell_table, run_table)
    )
    paired, means, thirds, classes, cells, runs = tables
    contents = [
        *([note] if note else []),
        " ".join(_sentences(results, key)),
        paired,
        means,
        [plot for metric in (MACRO_AUC, MACRO_F1) for plot in scaling_plots(results, key, metric)],
        [scatter_plot(results, key), third_plot(results, key)],
        thirds,
        classes,
        cells,
        runs,
    ]
    return Section(" ".join(key), [content for content in contents if content is not None])


def _sentences(results: GridResults, key: Key) -> Iterator[str]:
    for name in (MACRO_AUC, LATE_AUC):
        of_pairs = contrast(gains(pair_values(results, key, name)))
        if of_pairs.mean.exists:
            yield (
                f"In {METRICS[name]} the bidirectional run is ahead in {of_pairs.wins} of {of_pairs.pairs} pairs, "
                f"by {_points(of_pairs.mean)} points on average."
            )


def _points(value: Value) -> str:
    return str(show(value, CellKind.FINE_POINTS))


def _forms(first: GridResults, second: GridResults) -> Part:
    """Return the part on two versions of a grid: how much of the first one's gain is left in the second."""
    table = survival_table(first, second)
    sentences = [_survives(row) for row in table.rows if row[2] in (METRICS[MACRO_AUC], METRICS[LATE_AUC])]
    contents: list[Content] = [*sentences, survival_plots(table, (first.name, second.name)), table]
    title = f"{first.name} against {second.name}"
    lead = f"{first.about or first.name}; {second.about or second.name}."
    return Part(title, lead, [Section("How much of the gain survives", contents)])


def _survives(row: Sequence[Cell]) -> str:
    test, mode, figure = row[:3]
    before, after, _, kept = (cell for cell in row if isinstance(cell, Value))
    which = f"{test} {mode}, {figure}"
    if not before.exists or not after.exists:
        return f"{which}: no pair has a value in both."
    sentence = f"{which}: the gain is {_points(before)} points in the first and {_points(after)} in the second"
    if kept.exists:
        return f"{sentence}: {show(kept, CellKind.PERCENT)} % of it is left."
    return f"{sentence}; {kept.reason}, so that there is no share to tell."
