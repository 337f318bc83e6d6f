"""The tables of a grid's report: its runs, means, pairs, thirds, classes and cells."""

from collections.abc import Iterator, Sequence

import numpy as np

from stepsight.core.label import LABEL_NAMES
from stepsight.core.metrics.position import Third
from stepsight.core.metrics.published import reference_tables
from stepsight.core.metrics.value import Value
from stepsight.training.experiments.grid.figures import MACRO_AUC, METRICS, Figures
from stepsight.training.experiments.grid.pairs import (
    Contrast,
    Pair,
    contrast,
    differences,
    interval,
    mean,
    pairs_of,
)
from stepsight.training.experiments.grid.results import Key, Results
from stepsight.training.report.results import slug
from stepsight.training.report.tables import Cell, CellKind, Column, Table

MASKS = {"bidirectional": "Bidir", "causal": "Causal"}
_TEXT, _PERCENT, _POINTS = CellKind.TEXT, CellKind.PERCENT, CellKind.POINTS
_NO_THIRDS = "not known of single runs"


def name_of(results: Results, key: Key, what: str) -> str:
    """The name of a table's files."""
    return "-".join(slug(part).lower() for part in (results.name, *key, what))


def run_table(results: Results, key: Key) -> Table:
    """A row for each run, in the order of the paper, and below them the baselines."""
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
        if place and run.cell.size != runs[place - 1].cell.size:
            rules.append(place)
        cell = run.cell
        rows.append((cell.size, cell.data, str(cell.seed), MASKS[cell.mask], *_whole(run.figures[key])))
    baselines = [(name, found[key]) for name, found in results.baselines.items() if key in found]
    rules += [len(rows)] if baselines else []
    rows += [(name, "", "", "", *_whole(found)) for name, found in baselines]
    caption = f"{results.name}: each run on {' '.join(key)}"
    notes = (f"{len(runs)} of {results.planned} runs are done.",) if len(runs) < results.planned else ()
    return Table(name_of(results, key, "runs"), caption, columns, tuple(rows), notes, tuple(rules))


def mean_table(results: Results, key: Key) -> Table:
    """The means over the seeds of the matched runs, for each size and amount of data, and their differences."""
    columns = [Column("data", "Data", _TEXT), Column("size", "Size", _TEXT)]
    for name, title in METRICS.items():
        columns += [Column(f"{name}_{mask}", f"{title} {shown}") for mask, shown in MASKS.items()]
        columns.append(Column(f"{name}_difference", "Δ", _POINTS))
    rows: list[tuple[Cell, ...]] = []
    rules, before = [], ""
    for data, size, pairs in by_cell(results):
        if rows and data != before:
            rules.append(len(rows))
        before = data
        rows.append((data, size, *(cell for name in METRICS for cell in _means(pairs, key, name, results.rounded))))
    note = "Δ is the difference of the printed means, as in the paper." if results.rounded else "Δ is of the means."
    caption = f"{results.name}: means over the seeds on {' '.join(key)}"
    return Table(
        name_of(results, key, "means"), caption, tuple(columns), tuple(rows), (f"{note} In points.",), tuple(rules)
    )


def paired_table(results: Results, key: Key) -> Table:
    """How often the bidirectional run of a pair is ahead, and by how much on average."""
    columns = (
        Column("figure", "Figure", _TEXT),
        Column("wins", "Wins", _TEXT),
        Column("ties", "Ties", CellKind.COUNT),
        Column("difference", "Mean Δ", CellKind.FINE_POINTS),
    )
    pairs = pairs_of(results)
    rows = tuple(_paired(title, contrast(differences(pairs, key, name))) for name, title in METRICS.items())
    notes = ["Bidirectional minus causal, in points; intervals are of a bootstrap over the pairs."]
    if results.rounded:
        notes.append(_caveat())
    caption = f"{results.name}: matched pairs on {' '.join(key)}"
    return Table(name_of(results, key, "pairs"), caption, columns, rows, tuple(notes))


def third_table(results: Results, key: Key) -> Table | None:
    """Macro-AUC by the third of the solution, over all pairs; None where it is not known."""
    pairs = [pair for pair in pairs_of(results) if pair.bidirectional.figures[key].thirds]
    if not pairs:
        return None
    columns = (
        Column("third", "Third", _TEXT),
        *(Column(mask, shown) for mask, shown in MASKS.items()),
        Column("difference", "Δ", _POINTS),
        Column("steps", "Steps", CellKind.COUNT),
        *(Column(name, name, CellKind.COUNT) for name in LABEL_NAMES),
    )
    rows = tuple(tuple(_third(third, pairs, key)) for third in Third)
    notes = (
        "Where a third lacks a class, its macro-AUC is the mean of the classes it has: thirds do not compare.",
    )
    caption = f"{results.name}: macro-AUC by the third of the solution on {' '.join(key)}"
    return Table(name_of(results, key, "thirds"), caption, columns, rows, notes)


def class_table(results: Results, key: Key) -> Table | None:
    """AUC and F1 of each class, over all pairs; None where they are not known."""
    pairs = [pair for pair in pairs_of(results) if pair.bidirectional.figures[key].classes]
    if not pairs:
        return None
    columns = [Column("class", "Class", _TEXT)]
    for name, title in (("auc", "AUC"), ("f1", "F1")):
        columns += [Column(f"{name}_{mask}", f"{title} {shown}") for mask, shown in MASKS.items()]
        columns.append(Column(f"{name}_difference", "Δ", _POINTS))
    rows: tuple[tuple[Cell, ...], ...] = tuple((label, *_class(label, pairs, key)) for label in LABEL_NAMES)
    caption = f"{results.name}: by class on {' '.join(key)}"
    return Table(name_of(results, key, "classes"), caption, tuple(columns), rows)


def cell_table(results: Results, key: Key) -> Table:
    """Mean and standard deviation of macro-AUC over the seeds, for each size and amount of data."""
    columns = [Column("size", "Size", _TEXT), Column("data", "Data", _TEXT)]
    for mask, shown in MASKS.items():
        columns += [Column(mask, shown), Column(f"{mask}_deviation", "SD")]
    columns.append(Column("difference", "Δ", _POINTS))
    rows: list[tuple[Cell, ...]] = []
    for data, size, pairs in by_cell(results):
        sides = [[side(pair.figures(key)) for pair in pairs] for side in (_first, _second)]
        cells = [cell for side in sides for cell in (mean(side), deviation(side))]
        rows.append((size, data, *cells, Value(float(np.mean(sides[0]) - np.mean(sides[1])))))
    caption = f"{results.name}: macro-AUC of each cell on {' '.join(key)}"
    return Table(name_of(results, key, "cells"), caption, tuple(columns), tuple(rows))


def by_cell(results: Results) -> Iterator[tuple[str, str, list[Pair]]]:
    """The pairs of each amount of data and size, in their order."""
    pairs = pairs_of(results)
    for data in dict.fromkeys(pair.data for pair in pairs):
        for size in dict.fromkeys(pair.size for pair in pairs):
            found = [pair for pair in pairs if (pair.data, pair.size) == (data, size)]
            if found:
                yield data, size, found


def deviation(values: Sequence[float]) -> Value:
    """The standard deviation of a sample."""
    return Value(float(np.std(values, ddof=1))) if len(values) > 1 else Value.none("one seed only")


def _first(both: tuple[Figures, Figures]) -> float:
    return both[0].whole[MACRO_AUC]


def _second(both: tuple[Figures, Figures]) -> float:
    return both[1].whole[MACRO_AUC]


def _whole(figures: Figures) -> list[Value]:
    return [_value(figures.whole[name]) for name in METRICS]


def _value(number: float) -> Value:
    return Value.none("it has no value") if np.isnan(number) else Value(number)


def _means(pairs: Sequence[Pair], key: Key, metric: str, rounded: bool) -> tuple[Value, Value, Value]:
    found = [mean([figures.whole[metric] for figures in side]) for side in zip(*_sides(pairs, key), strict=True)]
    if not all(value.exists for value in found):
        return found[0], found[1], Value.none("a mean has no value")
    numbers = [round(value.number, 3) if rounded else value.number for value in found]
    return found[0], found[1], Value(numbers[0] - numbers[1])


def _sides(pairs: Sequence[Pair], key: Key) -> list[tuple[Figures, Figures]]:
    return [pair.figures(key) for pair in pairs]


def _paired(title: str, found: Contrast) -> tuple[Cell, ...]:
    return title, f"{found.wins}/{found.pairs}", found.ties, found.mean


def _caveat() -> str:
    """What the paper prints of the pairs, from figures with more digits than those here."""
    (table,) = (table for table in reference_tables() if table.label == "tab:paired-stats")
    printed = ", ".join(
        f"{row.values[0]:.0f}/{row.values[1]:.0f} and {row.values[2]:+.2f} in {row.name}" for row in table.rows
    )
    return f"These are of rounded figures; the paper prints, of unrounded ones, {printed}."


def _third(third: Third, pairs: Sequence[Pair], key: Key) -> list[Cell]:
    sides = [
        [figures.thirds[third.value][MACRO_AUC] for figures in side]
        for side in zip(*_sides(pairs, key), strict=True)
    ]
    change = np.array(sides[0]) - np.array(sides[1])
    kept = change[~np.isnan(change)]
    counts = pairs[0].bidirectional.figures[key].thirds[third.value]
    difference = Value(float(kept.mean())).within(*interval(kept)) if len(kept) else Value.none(_NO_THIRDS)
    numbers = [int(counts[name]) for name in ("steps", *LABEL_NAMES)]
    return [third.value, mean(sides[0]), mean(sides[1]), difference, *numbers]


def _class(label: str, pairs: Sequence[Pair], key: Key) -> Iterator[Value]:
    for name in ("auc", "f1"):
        sides = [
            [figures.classes[label][name] for figures in side] for side in zip(*_sides(pairs, key), strict=True)
        ]
        change = np.array(sides[0]) - np.array(sides[1])
        kept = change[~np.isnan(change)]
        yield from (mean(side) for side in sides)
        yield Value(float(kept.mean())).within(*interval(kept)) if len(kept) else Value.none("no value")
