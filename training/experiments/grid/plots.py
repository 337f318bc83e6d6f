"""The figures of a grid's report."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from stepsight.core.metrics.bootstrap import Value
from stepsight.core.metrics.table import Third
from stepsight.core.trace import LABEL_NAMES
from stepsight.training.experiments.grid.pairs import MASKS, by_size_and_data, contrast, gains, mean, pair_values
from stepsight.training.experiments.grid.results import LATE_AUC, MACRO_AUC, METRICS, GridResults, Key
from stepsight.training.experiments.grid.tables import deviation
from stepsight.training.report.plots import GREY, INKS, Plot, make_bars, make_figure, make_plot, rounded
from stepsight.training.report.tables import Table

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


def scatter_plot(results: GridResults, key: Key, metric: str = MACRO_AUC) -> Plot:
    """Plot every bidirectional run against its causal counterpart.

    The bidirectional run is better above the dotted line.
    """
    figure = make_figure(f"{METRICS[metric]}, causal", f"{METRICS[metric]}, bidirectional")
    pairs = pair_values(results, key, metric)
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
    return make_plot(f"{METRICS[metric]} of matched runs", figure, ())


def third_plot(results: GridResults, key: Key) -> Plot:
    """Plot bidirectional minus causal macro-AUC in each third of the solutions, with intervals over the pairs."""
    figure = make_figure("Third of the solution", "macro-AUC, percentage points")
    caption = "Difference of macro-AUC by third"
    thirds = [pair_values(results, key, MACRO_AUC, third.value) for third in Third]
    if all(pairs.empty for pairs in thirds):
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
            values = [_scaled(cell) for row in rows if isinstance(cell := row[3 + side], Value)]
            if any(value.exists for value in values):
                figure.add_trace(_lying(make_bars(places, values, name, {"color": INKS[side]})))
        figure.update_layout(barmode="group", bargap=0.25)
        # The first test is at the top, and the margin leaves room for long names.
        figure.update_yaxes(type="category", autorange="reversed", automargin=True)
        figure.add_vline(x=0, line={"color": GREY, "width": 1, "dash": "dot"})
        plots.append(make_plot(f"The gain in {METRICS[metric]}: bidirectional minus causal", figure, ()))
    return plots


def _lying(bars: go.Bar) -> go.Bar:
    return bars.update(orientation="h", x=bars.y, y=bars.x, error_x=bars.error_y.to_plotly_json(), error_y=None)


def _scaled(value: Value) -> Value:
    return Value(100 * value.number).within(100 * value.low, 100 * value.high) if value.exists else value


def class_plots(results: GridResults, key: Key) -> list[Plot]:
    """Plot the AUC and F1 of each class for both masks."""
    plots = []
    for name, title in (("auc", "AUC"), ("f1", "F1")):
        classes = [pair_values(results, key, name, label) for label in LABEL_NAMES]
        figure = make_figure("Class", title)
        for mask in MASKS if not classes[0].empty else ():
            values = [mean(pairs[mask]) for pairs in classes]
            figure.add_trace(make_bars(LABEL_NAMES, values, MASKS[mask], {"color": _INK[mask]}))
        figure.update_layout(barmode="group", bargap=0.25)
        plots.append(make_plot(f"{title} by class", figure, () if figure.data else (_UNKNOWN,)))
    return plots


def cell_plot(results: GridResults, key: Key, metric: str = MACRO_AUC) -> Plot:
    """Plot the mean and standard deviation of a figure over the seeds, for each size and amount of data."""
    figure = make_figure("Size and training traces", METRICS[metric])
    cells = list(by_size_and_data(pair_values(results, key, metric)))
    names = [f"{size} {data}" for data, size, _ in cells]
    for mask in MASKS:
        means = [mean(pairs[mask]).number for _, _, pairs in cells]
        spread = [deviation(pairs[mask]).number for _, _, pairs in cells]
        figure.add_trace(
            go.Scatter(
                x=names, y=rounded(np.array(means)), name=MASKS[mask],
                mode="markers", marker={"color": _INK[mask], "size": 8},
                error_y={"type": "data", "array": rounded(np.array(spread)), "thickness": 1, "color": _INK[mask]},
            )
        )  # fmt: skip
    figure.update_xaxes(type="category")
    return make_plot(f"{METRICS[metric]} of each cell, mean and standard deviation over the seeds", figure, ())
