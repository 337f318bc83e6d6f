"""The report on one grid, or on several versions of a grid, as a single HTML page and as files: its tables and
figures."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import date

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from stepsight.core.arrays import Floats64
from stepsight.core.errors import UserError
from stepsight.core.metrics.bootstrap import Value, interval, weighted_sums
from stepsight.core.metrics.published import reference_tables
from stepsight.core.metrics.table import Third
from stepsight.core.trace import LABEL_NAMES
from stepsight.training.experiments.grid.results import (
    LATE_AUC,
    MACRO_AUC,
    MACRO_F1,
    MASKS,
    METRICS,
    Figures,
    GridResults,
    Key,
    by_size_and_data,
    contrast,
    gains,
    mean,
    pair_values,
    resamples_of,
)
from stepsight.training.report.html import Content, Part, Section
from stepsight.training.report.plots import GREY, INKS, Plot, make_bars, make_figure, make_plot, rounded
from stepsight.training.report.report import Report
from stepsight.training.report.tables import Cell, CellKind, Column, Table, show, slug, table_of

Cells = dict[Column, Cell]

FEWEST = 9
"""The number of pairs needed for a share of a gain. A bootstrap over few pairs is overconfident: without a gain,
its 95 % interval should lie above zero in 2.5 % of cases, but does so in 24 % with 2 pairs of normally distributed
differences, in 13 % with 3, 8 % with 6 and 6 % with 9."""


def run_table(results: GridResults, key: Key) -> Table:
    """Return a table with a row for each run, in the paper's order, followed by the baselines."""

    def cells(figures: Figures) -> Cells:
        none = Value.none("it has no value")
        values = {name: figures[name] for name in METRICS}
        return {Column(n, METRICS[n]): none if value is None else Value(value) for n, value in values.items()}

    (test, mode), runs = key, results.figures(key)
    rows = [
        _texts(size=run.size, data=run.data, seed=str(run.seed), mask=MASKS.get(run.mask, run.mask))
        | cells(figures)
        for run, figures in runs
    ]
    baselines = [
        _texts(size=name, data="", seed="", mask="") | cells(tests[test][mode])
        for name, tests in results.baselines.items()
        if mode in tests.get(test, {})
    ]
    rules = _changes([run.size for run, _ in runs]) + [len(runs)] * bool(baselines)
    notes = [f"{len(runs)} of {results.planned} runs are done."] if len(runs) < results.planned else []
    return _table(results, key, "runs", "each run", [*rows, *baselines], notes, rules)


def mean_table(results: GridResults, key: Key) -> Table:
    """Return a table of means over the seeds for both masks, with their differences.

    There is a row for each size and amount of data.
    """
    of_cells: dict[tuple[str, str], Cells] = {}
    for name, title in METRICS.items():
        for data, size, pairs in by_size_and_data(pair_values(results, key, name)):
            row = of_cells.setdefault((data, size), _texts(data=data, size=size))
            row |= _comparison_cells(_mask_means(pairs, results.rounded), f"{name}_", f"{title} ")
    note = "Δ is the difference of the printed means, as in the paper." if results.rounded else "Δ is of the means."
    rules = _changes([data for data, _ in of_cells])
    return _table(
        results, key, "means", "means over the seeds", list(of_cells.values()), [f"{note} In points."], rules
    )


def paired_table(results: GridResults, key: Key) -> Table:
    """Return a table with the number of pairs that the bidirectional run wins, and with the mean difference."""
    rows = []
    for name, title in METRICS.items():
        of_pairs = contrast(gains(pair_values(results, key, name)))
        rows.append(
            _texts(figure=title, wins=f"{of_pairs.wins}/{of_pairs.pairs}")
            | {Column("ties", "Ties", CellKind.COUNT): of_pairs.ties}
            | {Column("difference", "Mean Δ", CellKind.FINE_POINTS): of_pairs.mean}
        )
    notes = ["Bidirectional minus causal, in points; intervals are of a bootstrap over the pairs."]
    if results.rounded:
        # The paper computed its pairs from unrounded figures, which are unavailable.
        (table,) = (table for table in reference_tables() if table.label == "tab:paired-stats")
        printed = ", ".join(
            f"{row.values[0]:.0f}/{row.values[1]:.0f} and {row.values[2]:+.2f} in {row.name}" for row in table.rows
        )
        notes.append(f"These are of rounded figures; the paper prints, of unrounded ones, {printed}.")
    return _table(results, key, "pairs", "matched pairs", rows, notes)


def third_table(results: GridResults, key: Key) -> Table | None:
    """Return a table of macro-AUC by third of the solutions, over all pairs, or None if the thirds are unknown."""
    detailed = [figures for _, figures in results.figures(key) if f"{Third.EARLY}_steps" in figures]
    counted = {"steps": "Steps"} | {label: label for label in LABEL_NAMES}
    rows = [
        _texts(third=third.value)
        | _gain(pair_values(results, key, f"{third}_auc"))
        | {
            Column(name, title, CellKind.COUNT): int(detailed[0][f"{third}_{name}"] or 0)
            for name, title in counted.items()
        }
        for third in (Third if detailed else ())
    ]
    notes = ["Where a third lacks a class, its macro-AUC is the mean of the classes it has: thirds do not compare."]
    title = "macro-AUC by the third of the solution"
    return _table(results, key, "thirds", title, rows, notes) if rows else None


def class_table(results: GridResults, key: Key) -> Table | None:
    """Return a table of the AUC and F1 of each class, over all pairs, or None if the classes are unknown."""
    if pair_values(results, key, f"{LABEL_NAMES[0]}_auc").empty:
        return None
    rows = [
        _texts(**{"class": label})
        | _gain(pair_values(results, key, f"{label}_auc"), "auc_", "AUC ")
        | _gain(pair_values(results, key, f"{label}_f1"), "f1_", "F1 ")
        for label in LABEL_NAMES
    ]
    return _table(results, key, "classes", "by class", rows)


def cell_table(results: GridResults, key: Key) -> Table:
    """Return a table of the mean and standard deviation of macro-AUC over the seeds.

    There is a row for each size and amount of data.
    """
    rows = []
    for data, size, pairs in by_size_and_data(pair_values(results, key, MACRO_AUC)):
        *means, difference = _mask_means(pairs, rounded=False)
        row = _texts(size=size, data=data)
        for (mask, title), value in zip(MASKS.items(), means, strict=True):
            row |= {Column(mask, title): value, Column(f"{mask}_deviation", "SD"): deviation(pairs[mask])}
        rows.append(row | {Column("difference", "Δ", CellKind.POINTS): difference})
    return _table(results, key, "cells", "macro-AUC of each cell", rows)


def survival_table(first: GridResults, second: GridResults) -> Table:
    """Return a table that compares the gain of the bidirectional mask in two versions of a grid.

    `kept` is the mean gain in the second version as a fraction of the mean gain in the first. It is defined only if
    the interval of the first gain lies above zero and there are enough pairs. Pairs that are undefined in either
    version are left out.
    """
    rows = []
    for key in (key for key in first.keys if key in second.keys):
        for name in dict.fromkeys((MACRO_AUC, LATE_AUC, *METRICS)):
            both = [gains(pair_values(form, key, name)) for form in (first, second)]
            before, after = pd.concat(both, axis=1, join="inner").dropna().to_numpy(np.float64).T
            rows.append(
                _texts(test=key[0], mode=key[1], figure=METRICS[name])
                | {
                    Column("first", f"Δ {first.name}", CellKind.FINE_POINTS): contrast(before).mean,
                    Column("second", f"Δ {second.name}", CellKind.FINE_POINTS): contrast(after).mean,
                    Column("change", "Second minus first", CellKind.FINE_POINTS): contrast(after - before).mean,
                    Column("kept", "Kept"): _kept_fraction(before, after),
                    Column("pairs", "Pairs", CellKind.COUNT): len(before),
                }
            )
    notes = (
        "Bidirectional minus causal, in points, over the pairs that both have. Intervals are of a bootstrap over "
        "the pairs: of other trainings, not of other test traces.",
        f"Kept is the second gain as a share of the first, in percent, of {FEWEST} pairs or more, where the "
        "interval of the first is above zero.",
    )
    name = f"{slug(first.name).lower()}-against-{slug(second.name).lower()}"
    return table_of(name, f"The gain in {first.name} and in {second.name}", rows, notes)


def _kept_fraction(before: Floats64, after: Floats64) -> Value:
    """Return the mean of `after` as a fraction of the mean of `before`, with a bootstrap interval over the pairs.

    Resamples in which the mean of `before` is not above zero are left out. They are rare, because the fraction is
    undefined unless the interval of that mean lies above zero.
    """
    if len(before) < FEWEST:
        return Value.none(f"there are fewer than {FEWEST} pairs")
    if not contrast(before).mean.low > 0:
        return Value.none("the first gain is not clearly above zero")
    drawn, kept = weighted_sums([before, after], np.arange(len(before)), resamples_of(len(before)))
    return interval(Value(float(after.mean() / before.mean())), kept[drawn > 0] / drawn[drawn > 0])


def deviation(values: pd.Series) -> Value:
    """Return the sample standard deviation, which is undefined for a single value."""
    return Value(float(np.std(values, ddof=1))) if len(values) > 1 else Value.none("one seed only")


def _table(
    results: GridResults,
    key: Key,
    what: str,
    title: str,
    rows: Sequence[Mapping[Column, Cell]],
    notes: Sequence[str] = (),
    rules: Sequence[int] = (),
) -> Table:
    name = "-".join(slug(part).lower() for part in (results.name, *key, what))
    return table_of(name, f"{results.name}: {title} on {' '.join(key)}", rows, notes, rules)


def _texts(**texts: str) -> Cells:
    return {Column(key, key.title(), CellKind.TEXT): text for key, text in texts.items()}


def _changes(names: Sequence[str]) -> list[int]:
    """Return the places at which another name begins."""
    return [place for place in range(1, len(names)) if names[place] != names[place - 1]]


def _comparison_cells(values: Sequence[Value], key: str = "", title: str = "") -> Cells:
    """Return the cells of a value for each mask, and of their difference."""
    columns = [Column(f"{key}{mask}", f"{title}{shown}") for mask, shown in MASKS.items()]
    return dict(zip([*columns, Column(f"{key}difference", "Δ", CellKind.POINTS)], values, strict=True))


def _gain(pairs: pd.DataFrame, key: str = "", title: str = "") -> Cells:
    """Return the cells of the mean for each mask, and of the mean difference."""
    return _comparison_cells([*(mean(pairs[mask]) for mask in MASKS), contrast(gains(pairs)).mean], key, title)


def _mask_means(pairs: pd.DataFrame, rounded: bool) -> tuple[Value, Value, Value]:
    """Return the mean for each mask, followed by the difference of the means, which are rounded to three decimals
    if `rounded` is True."""
    first, second = (mean(pairs[mask]) for mask in MASKS)
    if not (first.exists and second.exists):
        return first, second, Value.none("a mean has no value")
    ends = [round(value.number, 3) if rounded else value.number for value in (first, second)]
    return first, second, Value(ends[0] - ends[1])


# --- figures ---

_INK = {"bidirectional": INKS[0], "causal": INKS[1]}
_UNKNOWN = "The results hold no such figures of single runs."


def scaling_plots(results: GridResults, key: Key, metric: str) -> list[Plot]:
    """Plot the mean of a figure against the size of the evaluator, and against the amount of data.

    Each mean is taken over all other settings.
    """
    pairs = pair_values(results, key, metric)
    return [_scaling(pairs, metric, "size", "Size"), _scaling(pairs, metric, "data", "Training traces")]


def _scaling(pairs: pd.DataFrame, metric: str, level: str, title: str) -> Plot:
    figure = make_figure(title, METRICS[metric])
    means = pairs.groupby(level=level, sort=False).mean()
    for mask in MASKS:
        line = go.Scatter(x=list(means.index), y=rounded(means[mask].to_numpy()), name=MASKS[mask])
        figure.add_trace(line.update(mode="lines+markers", line={"color": _INK[mask], "width": 2}))
    figure.update_xaxes(type="category")
    return make_plot(f"{METRICS[metric]} by {title.lower()}", figure, ())


def scatter_plot(results: GridResults, key: Key) -> Plot:
    """Plot every bidirectional run against its causal counterpart.

    The bidirectional run is better above the dotted line.
    """
    figure = make_figure("macro-AUC, causal", "macro-AUC, bidirectional")
    pairs = pair_values(results, key, MACRO_AUC)
    for ink, (size, group) in zip(INKS, pairs.groupby(level="size", sort=False), strict=False):
        figure.add_trace(
            go.Scatter(
                x=rounded(group["causal"].to_numpy()), y=rounded(group["bidirectional"].to_numpy()), name=size,
                mode="markers", marker={"color": ink, "size": 8},
            )
        )  # fmt: skip
    if len(pairs):
        low, high = float(pairs.min().min()) - 0.01, float(pairs.max().max()) + 0.01
        figure.add_shape(
            type="line", x0=low, y0=low, x1=high, y1=high, line={"color": GREY, "width": 1, "dash": "dot"}
        )
    return make_plot("macro-AUC of matched runs", figure, ())


def third_plot(results: GridResults, key: Key) -> Plot:
    """Plot bidirectional minus causal macro-AUC in each third of the solutions, with intervals over the pairs."""
    figure = make_figure("Third of the solution", "macro-AUC, percentage points")
    caption = "Difference of macro-AUC by third"
    thirds = [pair_values(results, key, f"{third}_auc") for third in Third]
    if any(pairs.empty for pairs in thirds):
        return Plot(caption, None, (_UNKNOWN,))
    values = [contrast(100 * gains(pairs)).mean for pairs in thirds]
    figure.add_trace(make_bars([third.value for third in Third], values, "difference", {"color": INKS[0]}))
    figure.add_hline(y=0, line={"color": GREY, "width": 1, "dash": "dot"})
    return make_plot(caption, figure, ())


def survival_plots(table: Table, names: Sequence[str]) -> list[Plot]:
    """Plot the gain of the bidirectional mask in two grids side by side, for each test set and mode. `names` are
    the names of the two grids, and `table` is the result of `tables.survival_table`."""
    plots = []
    for metric in (MACRO_AUC, LATE_AUC):
        figure = make_figure("percentage points", "")
        rows = [row for row in table.rows if row[2] == METRICS[metric]]
        places = [f"{row[0]} {row[1]}" for row in rows]
        for side, name in enumerate(names):
            values = [
                Value(100 * gain.number).within(100 * gain.low, 100 * gain.high) if gain.exists else gain
                for row in rows
                if isinstance(gain := row[3 + side], Value)
            ]
            if any(value.exists for value in values):
                bars = make_bars(places, values, name, {"color": INKS[side]})
                errors = bars.error_y.to_plotly_json()
                figure.add_trace(bars.update(orientation="h", x=bars.y, y=bars.x, error_x=errors, error_y=None))
        figure.update_layout(barmode="group", bargap=0.25)
        # The first test is at the top, and the margin leaves room for long names.
        figure.update_yaxes(type="category", autorange="reversed", automargin=True)
        figure.add_vline(x=0, line={"color": GREY, "width": 1, "dash": "dot"})
        plots.append(make_plot(f"The gain in {METRICS[metric]}: bidirectional minus causal", figure, ()))
    return plots


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
            raise UserError(f"{grids[0].name} and {other.name} have no test in common.", "Report each separately.")
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
