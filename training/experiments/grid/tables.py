"""The tables of a grid's report."""

from collections.abc import Iterator

import numpy as np
import pandas as pd

from stepsight.core.arrays import Floats64
from stepsight.core.label import LABEL_NAMES
from stepsight.core.metrics.bootstrap import Value
from stepsight.core.metrics.published import reference_tables
from stepsight.core.metrics.table import Third
from stepsight.training.experiments.grid.pairs import (
    MASKS,
    by_size_and_data,
    contrast,
    gains,
    mean,
    pair_values,
    resampled_means,
)
from stepsight.training.experiments.grid.results import LATE_AUC, MACRO_AUC, METRICS, Figures, GridResults, Key
from stepsight.training.report.tables import Cell, CellKind, Column, Table, slug

_TEXT, _POINTS = CellKind.TEXT, CellKind.POINTS

FEWEST = 9
"""The number of pairs needed for a share of a gain. A bootstrap over few pairs is overconfident: without a gain,
its 95 % interval should lie above zero in 2.5 % of cases, but does so in 24 % with 2 pairs of normally distributed
differences, in 13 % with 3, 8 % with 6 and 6 % with 9."""


def name_of(results: GridResults, key: Key, what: str) -> str:
    return "-".join(slug(part).lower() for part in (results.name, *key, what))


def run_table(results: GridResults, key: Key) -> Table:
    """Return a table with a row for each run, in the paper's order, followed by the baselines."""
    columns = (
        Column("size", "Size", _TEXT),
        Column("data", "Data", _TEXT),
        Column("seed", "Seed", _TEXT),
        Column("mask", "Mask", _TEXT),
        *(Column(name, title) for name, title in METRICS.items()),
    )
    rows: list[tuple[Cell, ...]] = []
    rules: list[int] = []
    runs = [run for run in results.runs if key in run.figures]
    for place, run in enumerate(runs):
        if place and run.settings.size != runs[place - 1].settings.size:
            rules.append(place)
        one = run.settings
        rows.append((one.size, one.data, str(one.seed), MASKS.get(one.mask, one.mask), *_whole(run.figures[key])))
    baselines = {name: figures[key] for name, figures in results.baselines.items() if key in figures}
    rules += [len(rows)] if baselines else []
    rows += [(name, "", "", "", *_whole(figures)) for name, figures in baselines.items()]
    caption = f"{results.name}: each run on {' '.join(key)}"
    notes = (f"{len(runs)} of {results.planned} runs are done.",) if len(runs) < results.planned else ()
    return Table(name_of(results, key, "runs"), caption, columns, tuple(rows), notes, tuple(rules))


def mean_table(results: GridResults, key: Key) -> Table:
    """Return a table of means over the seeds for both masks, with their differences.

    There is a row for each size and amount of data.
    """
    columns = [Column("data", "Data", _TEXT), Column("size", "Size", _TEXT)]
    for name, title in METRICS.items():
        columns += [Column(f"{name}_{mask}", f"{title} {shown}") for mask, shown in MASKS.items()]
        columns.append(Column(f"{name}_difference", "Δ", _POINTS))
    cells: dict[tuple[str, str], list[Value]] = {}
    for name in METRICS:
        for data, size, pairs in by_size_and_data(pair_values(results, key, name)):
            cells.setdefault((data, size), []).extend(_means(pairs, results.rounded))
    places = list(cells)
    rules = [i for i in range(1, len(places)) if places[i][0] != places[i - 1][0]]
    rows: tuple[tuple[Cell, ...], ...] = tuple((*place, *values) for place, values in cells.items())
    note = "Δ is the difference of the printed means, as in the paper." if results.rounded else "Δ is of the means."
    caption = f"{results.name}: means over the seeds on {' '.join(key)}"
    return Table(
        name_of(results, key, "means"), caption, tuple(columns), rows, (f"{note} In points.",), tuple(rules)
    )


def paired_table(results: GridResults, key: Key) -> Table:
    """Return a table with the number of pairs that the bidirectional run wins, and with the mean difference."""
    columns = (
        Column("figure", "Figure", _TEXT),
        Column("wins", "Wins", _TEXT),
        Column("ties", "Ties", CellKind.COUNT),
        Column("difference", "Mean Δ", CellKind.FINE_POINTS),
    )
    rows = tuple(_paired(title, pair_values(results, key, name)) for name, title in METRICS.items())
    notes = ["Bidirectional minus causal, in points; intervals are of a bootstrap over the pairs."]
    if results.rounded:
        notes.append(_caveat())
    caption = f"{results.name}: matched pairs on {' '.join(key)}"
    return Table(name_of(results, key, "pairs"), caption, columns, rows, tuple(notes))


def third_table(results: GridResults, key: Key) -> Table | None:
    """Return a table of macro-AUC by third of the solutions, over all pairs, or None if the thirds are unknown."""
    detailed = [run.figures[key].thirds for run in results.runs if key in run.figures and run.figures[key].thirds]
    if not detailed:
        return None
    columns = (
        Column("third", "Third", _TEXT),
        *(Column(mask, shown) for mask, shown in MASKS.items()),
        Column("difference", "Δ", _POINTS),
        Column("steps", "Steps", CellKind.COUNT),
        *(Column(name, name, CellKind.COUNT) for name in LABEL_NAMES),
    )
    rows = tuple(
        (
            third.value,
            *_gain(pair_values(results, key, MACRO_AUC, third.value)),
            *(int(detailed[0][third.value][name]) for name in ("steps", *LABEL_NAMES)),
        )
        for third in Third
    )
    notes = (
        "Where a third lacks a class, its macro-AUC is the mean of the classes it has: thirds do not compare.",
    )
    caption = f"{results.name}: macro-AUC by the third of the solution on {' '.join(key)}"
    return Table(name_of(results, key, "thirds"), caption, columns, rows, notes)


def class_table(results: GridResults, key: Key) -> Table | None:
    """Return a table of the AUC and F1 of each class, over all pairs, or None if the classes are unknown."""
    if pair_values(results, key, "auc", LABEL_NAMES[0]).empty:
        return None
    columns = [Column("class", "Class", _TEXT)]
    for name, title in (("auc", "AUC"), ("f1", "F1")):
        columns += [Column(f"{name}_{mask}", f"{title} {shown}") for mask, shown in MASKS.items()]
        columns.append(Column(f"{name}_difference", "Δ", _POINTS))
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (label, *(cell for name in ("auc", "f1") for cell in _gain(pair_values(results, key, name, label))))
        for label in LABEL_NAMES
    )
    caption = f"{results.name}: by class on {' '.join(key)}"
    return Table(name_of(results, key, "classes"), caption, tuple(columns), rows)


def cell_table(results: GridResults, key: Key) -> Table:
    """Return a table of the mean and standard deviation of macro-AUC over the seeds.

    There is a row for each size and amount of data.
    """
    columns = [Column("size", "Size", _TEXT), Column("data", "Data", _TEXT)]
    for mask, shown in MASKS.items():
        columns += [Column(mask, shown), Column(f"{mask}_deviation", "SD")]
    columns.append(Column("difference", "Δ", _POINTS))
    rows: list[tuple[Cell, ...]] = []
    for data, size, pairs in by_size_and_data(pair_values(results, key, MACRO_AUC)):
        cells = [cell for mask in MASKS for cell in (mean(pairs[mask]), deviation(pairs[mask]))]
        difference = pairs["bidirectional"].mean(skipna=False) - pairs["causal"].mean(skipna=False)
        rows.append((size, data, *cells, _value(difference)))
    caption = f"{results.name}: macro-AUC of each cell on {' '.join(key)}"
    return Table(name_of(results, key, "cells"), caption, tuple(columns), tuple(rows))


def deviation(values: pd.Series) -> Value:
    """Return the sample standard deviation, which is undefined for a single value."""
    return Value(float(np.std(values, ddof=1))) if len(values) > 1 else Value.none("one seed only")


def _whole(figures: Figures) -> list[Value]:
    return [_value(figures.whole[name]) for name in METRICS]


def _value(number: float) -> Value:
    return Value.none("it has no value") if np.isnan(number) else Value(number)


def _means(pairs: pd.DataFrame, rounded: bool) -> tuple[Value, Value, Value]:
    means = mean(pairs["bidirectional"]), mean(pairs["causal"])
    if not all(value.exists for value in means):
        return *means, Value.none("a mean has no value")
    first, second = (round(value.number, 3) if rounded else value.number for value in means)
    return *means, Value(first - second)


def _paired(title: str, pairs: pd.DataFrame) -> tuple[Cell, ...]:
    of_pairs = contrast(gains(pairs))
    return title, f"{of_pairs.wins}/{of_pairs.pairs}", of_pairs.ties, of_pairs.mean


def _gain(pairs: pd.DataFrame) -> Iterator[Value]:
    """Yield the mean for each mask, followed by the mean difference."""
    yield from (mean(pairs[mask]) for mask in MASKS)
    yield contrast(gains(pairs)).mean


def _caveat() -> str:
    """Return a note that the paper computed its pairs from unrounded figures, which are unavailable."""
    (table,) = (table for table in reference_tables() if table.label == "tab:paired-stats")
    printed = ", ".join(
        f"{row.values[0]:.0f}/{row.values[1]:.0f} and {row.values[2]:+.2f} in {row.name}" for row in table.rows
    )
    return f"These are of rounded figures; the paper prints, of unrounded ones, {printed}."


def survival_table(first: GridResults, second: GridResults) -> Table:
    """Return a table that compares the gain of the bidirectional mask in two versions of a grid.

    `kept` is the mean gain in the second version as a fraction of the mean gain in the first. It is defined only if
    the interval of the first gain lies above zero and there are enough pairs. Pairs that are undefined in either
    version are left out.
    """
    columns = (
        Column("test", "Test", _TEXT),
        Column("mode", "Mode", _TEXT),
        Column("figure", "Figure", _TEXT),
        Column("first", f"Δ {first.name}", CellKind.FINE_POINTS),
        Column("second", f"Δ {second.name}", CellKind.FINE_POINTS),
        Column("change", "Second minus first", CellKind.FINE_POINTS),
        Column("kept", "Kept", CellKind.PERCENT),
        Column("pairs", "Pairs", CellKind.COUNT),
    )
    rows: list[tuple[Cell, ...]] = []
    for test, mode in (key for key in first.keys if key in second.keys):
        for name in (MACRO_AUC, LATE_AUC, *(name for name in METRICS if name not in (MACRO_AUC, LATE_AUC))):
            rows.append((test, mode, METRICS[name], *_survival(first, second, (test, mode), name)))
    notes = (
        "Bidirectional minus causal, in points, over the pairs that both have. Intervals are of a bootstrap over "
        "the pairs: of other trainings, not of other test traces.",
        f"Kept is the second gain as a share of the first, in percent, of {FEWEST} pairs or more, where the "
        "interval of the first is above zero.",
    )
    name = f"{slug(first.name).lower()}-against-{slug(second.name).lower()}"
    return Table(name, f"The gain in {first.name} and in {second.name}", columns, tuple(rows), notes)


def _survival(first: GridResults, second: GridResults, key: Key, metric: str) -> tuple[Cell, ...]:
    both = [gains(pair_values(form, key, metric)) for form in (first, second)]
    before, after = pd.concat(both, axis=1, join="inner").dropna().to_numpy(np.float64).T
    means = (contrast(changes).mean for changes in (before, after, after - before))
    return *means, _kept(before, after), len(before)


def _kept(before: Floats64, after: Floats64) -> Value:
    """Return the mean of `after` as a fraction of the mean of `before`, with a bootstrap interval over the pairs.

    Resamples in which the mean of `before` is not above zero are left out. They are rare, because the fraction is
    undefined unless the interval of that mean lies above zero.
    """
    if len(before) < FEWEST:
        return Value.none(f"there are fewer than {FEWEST} pairs")
    if not contrast(before).mean.low > 0:
        return Value.none("the first gain is not clearly above zero")
    drawn_before, drawn_after = resampled_means(before), resampled_means(after)
    above = drawn_before > 0
    low, high = np.percentile(drawn_after[above] / drawn_before[above], [2.5, 97.5])
    return Value(float(after.mean() / before.mean())).within(float(low), float(high))
