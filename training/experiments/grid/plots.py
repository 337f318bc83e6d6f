"""The figures of a grid's report: scaling, matched pairs, thirds, classes and cells."""

from collections.abc import Callable, Iterable, Sequence

import numpy as np
import plotly.graph_objects as go

from stepsight.core.label import LABEL_NAMES
from stepsight.core.metrics.position import Third
from stepsight.core.metrics.value import Value
from stepsight.training.experiments.grid.figures import LATE_AUC, MACRO_AUC, METRICS
from stepsight.training.experiments.grid.pairs import Pair, interval, mean, pairs_of
from stepsight.training.experiments.grid.results import Key, Results
from stepsight.training.experiments.grid.tables import MASKS, by_cell, deviation
from stepsight.training.report.plots import GREY, INKS, Plot, make_bars, make_figure, make_plot, rounded
from stepsight.training.report.tables import Table

_INK = {"bidirectional": INKS[0], "causal": INKS[1]}
_UNKNOWN = "The results hold no such figures of single runs."


def scaling_plots(results: Results, key: Key, metric: str) -> list[Plot]:
    """A figure's mean against the size of the evaluator and against the amount of data, over all else."""
    pairs = pairs_of(results)
    return [
        _scaling(pairs, key, metric, "Size", lambda pair: pair.size),
        _scaling(pairs, key, metric, "Training traces", lambda pair: pair.data),
    ]


def _scaling(pairs: Sequence[Pair], key: Key, metric: str, title: str, group: Callable[[Pair], str]) -> Plot:
    figure = make_figure(title, METRICS[metric])
    names = list(dict.fromkeys(group(pair) for pair in pairs))
    for side, mask in enumerate(MASKS):
        means = [
            mean([pair.figures(key)[side].whole[metric] for pair in pairs if group(pair) == name]).number
            for name in names
        ]
        line = {"color": _INK[mask], "width": 2}
        figure.add_trace(
            go.Scatter(x=names, y=rounded(np.array(means)), name=MASKS[mask], mode="lines+markers", line=line)
        )
    figure.update_xaxes(type="category")
    return make_plot(f"{METRICS[metric]} by {title.lower()}", figure, ())


def scatter_plot(results: Results, key: Key, metric: str = MACRO_AUC) -> Plot:
    """Every bidirectional run against its causal one; above the dotted line it is ahead."""
    figure = make_figure(f"{METRICS[metric]}, causal", f"{METRICS[metric]}, bidirectional")
    pairs = pairs_of(results)
    ends = []
    for ink, size in zip(INKS, dict.fromkeys(pair.size for pair in pairs), strict=False):
        found = np.array(
            [[side.whole[metric] for side in pair.figures(key)] for pair in pairs if pair.size == size], np.float64
        )
        ends += [np.nanmin(found), np.nanmax(found)]
        figure.add_trace(
            go.Scatter(
                x=rounded(found[:, 1]), y=rounded(found[:, 0]), name=size, mode="markers",
                marker={"color": ink, "size": 8},
            )
        )  # fmt: skip
    if ends:
        low, high = float(min(ends)) - 0.01, float(max(ends)) + 0.01
        figure.add_shape(
            type="line", x0=low, y0=low, x1=high, y1=high, line={"color": GREY, "width": 1, "dash": "dot"}
        )
    return make_plot(f"{METRICS[metric]} of matched runs", figure, ())


def third_plot(results: Results, key: Key) -> Plot:
    """Bidirectional minus causal macro-AUC by the third of the solution, with intervals over the pairs."""
    figure = make_figure("Third of the solution", "macro-AUC, percentage points")
    known = [pair for pair in pairs_of(results) if pair.bidirectional.figures[key].thirds]
    caption = "Difference of macro-AUC by third"
    if not known:
        return Plot(caption, None, (_UNKNOWN,))
    values = []
    for third in Third:
        both = [[side.thirds[third.value][MACRO_AUC] for side in pair.figures(key)] for pair in known]
        values.append(_points(one - other for one, other in both))
    figure.add_trace(make_bars([third.value for third in Third], values, "difference", {"color": INKS[0]}))
    figure.add_hline(y=0, line={"color": GREY, "width": 1, "dash": "dot"})
    return make_plot(caption, figure, ())


def _points(differences: Iterable[float]) -> Value:
    found = 100 * np.array([number for number in differences if not np.isnan(number)], np.float64)
    return Value(float(found.mean())).within(*interval(found)) if len(found) else Value.none("no value")


def survival_plots(table: Table, names: Sequence[str]) -> list[Plot]:
    """The gains in two forms of a grid, called by `names`, side by side for each test and mode; from the table of
    `training.experiments.grid.forms`."""
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
        # The first test stands above; names of any length have room beside the bars.
        figure.update_yaxes(type="category", autorange="reversed", automargin=True)
        figure.add_vline(x=0, line={"color": GREY, "width": 1, "dash": "dot"})
        plots.append(make_plot(f"The gain in {METRICS[metric]}: bidirectional minus causal", figure, ()))
    return plots


def _lying(bars: go.Bar) -> go.Bar:
    return bars.update(orientation="h", x=bars.y, y=bars.x, error_x=bars.error_y.to_plotly_json(), error_y=None)


def _scaled(value: Value) -> Value:
    return Value(100 * value.number).within(100 * value.low, 100 * value.high) if value.exists else value


def class_plots(results: Results, key: Key) -> list[Plot]:
    """AUC and F1 of each class under both masks."""
    known = [pair for pair in pairs_of(results) if pair.bidirectional.figures[key].classes]
    plots = []
    for name, title in (("auc", "AUC"), ("f1", "F1")):
        caption = f"{title} by class"
        if not known:
            plots.append(Plot(caption, None, (_UNKNOWN,)))
            continue
        figure = make_figure("Class", title)
        for side, mask in enumerate(MASKS):
            found = [[pair.figures(key)[side].classes[label][name] for pair in known] for label in LABEL_NAMES]
            figure.add_trace(
                make_bars(LABEL_NAMES, [mean(part) for part in found], MASKS[mask], {"color": _INK[mask]})
            )
        figure.update_layout(barmode="group", bargap=0.25)
        plots.append(make_plot(caption, figure, ()))
    return plots


def cell_plot(results: Results, key: Key, metric: str = MACRO_AUC) -> Plot:
    """Mean and standard deviation over the seeds, for each size and amount of data."""
    figure = make_figure("Size and training traces", METRICS[metric])
    cells = list(by_cell(results))
    names = [f"{size} {data}" for data, size, _ in cells]
    for side, mask in enumerate(MASKS):
        found = [[pair.figures(key)[side].whole[metric] for pair in pairs] for _, _, pairs in cells]
        spread = [deviation(part).number for part in found]
        figure.add_trace(
            go.Scatter(
                x=names, y=rounded(np.array([mean(part).number for part in found])), name=MASKS[mask],
                mode="markers", marker={"color": _INK[mask], "size": 8},
                error_y={"type": "data", "array": rounded(np.array(spread)), "thickness": 1, "color": _INK[mask]},
            )
        )  # fmt: skip
    figure.update_xaxes(type="category")
    return make_plot(f"{METRICS[metric]} of each cell, mean and standard deviation over the seeds", figure, ())
