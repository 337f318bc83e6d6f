"""Two forms of one grid, such as with and without truncation: what of the bidirectional gain is left."""

import numpy as np
import pandas as pd

from stepsight.core.arrays import Floats64
from stepsight.core.metrics.value import Value
from stepsight.training.experiments.grid.figures import LATE_AUC, MACRO_AUC, METRICS
from stepsight.training.experiments.grid.pairs import contrast, gains, pair_values, resampled_means
from stepsight.training.experiments.grid.results import GridResults, Key
from stepsight.training.report.results import slug
from stepsight.training.report.tables import Cell, CellKind, Column, Table

FEWEST = 9
"""Pairs that a share of a gain asks for. A bootstrap over few is too sure of itself: where there is no gain, its
95 % interval is to be above zero in 2.5 % of the cases, and is so in 24 % with 2 pairs of normally distributed
differences, in 13 % with 3, 8 % with 6 and 6 % with 9."""

_TEXT = CellKind.TEXT


def survival_table(first: GridResults, second: GridResults) -> Table:
    """The gain of the bidirectional mask in two forms of one grid, and what of the first is left in the second.

    `kept` is the second's mean gain as a share of the first's, where the first's interval is above zero and there
    are enough pairs for that to mean something. Pairs without a value in either form are left out.
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
    """The mean of `after` as a share of that of `before`, with an interval over resamples of the pairs. Resamples
    in which `before` is not above zero, of which there are few where its own interval is, have no share."""
    if len(before) < FEWEST:
        return Value.none(f"there are fewer than {FEWEST} pairs")
    if not contrast(before).mean.low > 0:
        return Value.none("the first gain is not clearly above zero")
    drawn_before, drawn_after = resampled_means(before), resampled_means(after)
    above = drawn_before > 0
    low, high = np.percentile(drawn_after[above] / drawn_before[above], [2.5, 97.5])
    return Value(float(after.mean() / before.mean())).within(float(low), float(high))
