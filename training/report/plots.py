"""The Plotly figures of a report. The page sets the colours of text and grid lines.

The notes of a figure mention everything that cannot be drawn. If nothing can be drawn, there are only notes.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import cycle
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from stepsight.core.judgment import Mode
from stepsight.core.metrics import ternary
from stepsight.core.metrics.binary import auc, reliability
from stepsight.core.metrics.bootstrap import Value
from stepsight.core.metrics.reasoneval import Errors, Level
from stepsight.core.metrics.table import NO_ITEMS, NO_SCORES, Third
from stepsight.core.trace import LABEL_NAMES, Label
from stepsight.training.evaluate.diagnostics import Changed, decide, lacking, roc, shares, sweep
from stepsight.training.evaluate.evaluation import Row
from stepsight.training.report.results import merged, third_reasons

# Readable on white and on black.
INKS = ("#3d7fc4", "#dd6b20", "#2c9c74", "#b45fb4", "#b8901c", "#d14b66", "#3aa6b9", "#8d6e52")
GREY = "#8b93a1"
# There are as many as there are baselines.
_DASHES = ("dot", "dash", "dashdot", "longdash", "longdashdot", "1px,6px", "14px,3px")
# A curve is thinned to this many points, more than a screen shows.
_POINTS = 400
_HEIGHT = 340

Style = dict[str, str]
Styles = Mapping[str, Style]


@dataclass(frozen=True, eq=False)
class Plot:
    """A figure with its caption and notes. If `figure` is None, the notes say why there is nothing to draw."""

    caption: str
    figure: "go.Figure | None"
    notes: tuple[str, ...] = ()

    @cached_property
    def data(self) -> str:
        """The figure as JSON, or "" if there is no figure."""
        return str(self.figure.to_json(engine="json")) if self.figure is not None else ""


def styles(rows: Iterable[Row]) -> dict[str, Style]:
    """Assign each evaluator a colour that is the same in every figure, and a dash pattern if there are too few
    colours. Baselines are grey."""
    names = list(dict.fromkeys(row.evaluator for row in rows if not row.is_baseline))
    baselines = list(dict.fromkeys(row.evaluator for row in rows if row.is_baseline))
    dashes = ("solid", *_DASHES)
    styles_of = {
        name: {"color": INKS[i % len(INKS)], "dash": dashes[i // len(INKS) % len(dashes)]}
        for i, name in enumerate(names)
    }
    return styles_of | {
        name: {"color": GREY, "dash": dash} for name, dash in zip(baselines, cycle(_DASHES), strict=False)
    }


def make_figure(x: str, y: str, *, square: bool = False) -> "go.Figure":
    """Return an empty figure whose axes have the titles `x` and `y`. With `square`, both axes go from 0 to 1 and
    the diagonal is drawn."""
    # Set all at once, since Plotly validates a figure at every change, and a report has dozens of figures.
    layout: dict[str, Any] = {
        "template": "none",
        "showlegend": False,
        "height": _HEIGHT,
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "margin": {"l": 52, "r": 12, "t": 12, "b": 48},
        "font": {"family": "system-ui, sans-serif", "size": 13},
    }
    for axis, title in (("xaxis", x), ("yaxis", y)):
        layout[axis] = {"title": {"text": title, "font": {"size": 13}}, "zeroline": False, "ticks": ""}
    if square:
        for axis in ("xaxis", "yaxis"):
            layout[axis]["range"] = [-0.01, 1.01]
        diagonal = {"type": "line", "x0": 0, "y0": 0, "x1": 1, "y1": 1}
        layout["shapes"] = [diagonal | {"line": {"color": GREY, "width": 1, "dash": "dot"}}]
    return go.Figure(layout=layout)


def rounded(numbers: NDArray[np.floating]) -> list[float | None]:
    """Round numbers to four decimal places for JSON. NaN becomes None."""
    return [None if np.isnan(number) else round(float(number), 4) for number in numbers]


def make_line(
    x: NDArray[np.float64], y: NDArray[np.float64], name: str, style: Style, width: float = 2
) -> "go.Scatter":
    if len(x) > _POINTS:
        kept = np.unique(np.linspace(0, len(x) - 1, _POINTS).round().astype(int))
        x, y = x[kept], y[kept]
    return go.Scatter(x=rounded(x), y=rounded(y), name=name, mode="lines", line={**style, "width": width})


def roc_plot(rows: Sequence[Row], look: Styles, errors: Errors, level: Level, mode: Mode) -> Plot:
    """Plot the ROC curves of the score that ranks items without an error first: validity, or minus redundancy."""
    score = "validity" if errors == Errors.INVALID else "redundancy"
    figure = make_figure("False positive rate", "True positive rate", square=True)
    notes = []
    for row in rows:
        side = row.subject.items(errors, level)
        area = auc(side)
        if not area.exists:
            notes.append(f"{row.evaluator}: {area.reason}")
            continue
        false, true, _ = roc(side)
        width = 1.2 if row.is_baseline else 2
        figure.add_trace(
            make_line(false, true, f"{row.evaluator}, AUC {area.number:.3f}", look[row.evaluator], width)
        )
    return make_plot(f"ROC of {score}, {level} level, {mode}", figure, notes)


def make_plot(caption: str, figure: "go.Figure", notes: Iterable[str]) -> Plot:
    return Plot(caption, figure if figure.data else None, merged(notes))


def reliability_plot(rows: Sequence[Row], look: Styles, mode: Mode) -> Plot:
    """Plot the share of valid steps against the mean validity score in each of ten bins. Larger points stand for
    more steps."""
    figure = make_figure("Mean validity", "Share of valid steps", square=True)
    notes = []
    for row in rows:
        side = row.subject.items(Errors.INVALID, Level.STEP)
        bins = reliability(side)
        filled = bins.count > 0
        if not filled.any():
            notes.append(f"{row.evaluator}: {NO_SCORES if len(side) else NO_ITEMS}")
            continue
        if side.problem:
            notes.append(f"The gold calls every step {'valid' if side.gold.all() else 'wrong'}, in every bin.")
        counts = bins.count[filled]
        line = make_line(bins.score[filled], bins.share[filled], row.evaluator, look[row.evaluator], 1.2)
        line.update(
            mode="lines+markers",
            marker={
                "size": rounded(5 + 13 * np.sqrt(counts / counts.sum())),
                "color": look[row.evaluator]["color"],
            },
            customdata=counts.tolist(),
            hovertemplate="%{x:.3f} → %{y:.3f}, %{customdata} steps",
            visible="legendonly" if row.is_baseline else True,
        )
        figure.add_trace(line)
    return make_plot(f"Reliability of step validity, {mode}", figure, notes)


def position_plot(
    values: Mapping[str, Mapping[Third, Value]], look: Styles, caption: str, title: str, *, difference: bool = False
) -> Plot:
    """Plot the `values` of a figure in each third of the solutions, keyed by evaluator and third, with intervals.
    With `difference`, the values are differences, shown in percentage points around zero."""
    figure = make_figure("Third of the solution", f"{title}, percentage points" if difference else title)
    notes = []
    names = [third.value for third in Third]
    for place, (evaluator, parts) in enumerate(values.items()):
        notes += [f"{evaluator}: {reason}" for reason in third_reasons(parts)]
        if not any(value.exists for value in parts.values()):
            continue
        shift = 0.04 * (place - (len(values) - 1) / 2)
        scale = 100 if difference else 1
        x = np.arange(len(names)) + shift
        figure.add_trace(_with_errors(x, [parts[third] for third in Third], evaluator, look[evaluator], scale))
    figure.update_xaxes(tickvals=list(range(len(names))), ticktext=names, range=[-0.5, len(names) - 0.5])
    if difference:
        figure.add_hline(y=0, line={"color": GREY, "width": 1, "dash": "dot"})
    return make_plot(caption, figure, notes)


def _with_errors(
    x: NDArray[np.floating], values: Sequence[Value], name: str, style: Style, scale: float
) -> "go.Scatter":
    points = np.array([[v.number, v.high - v.number, v.number - v.low] for v in values]) * scale
    y, above, below = points.T
    return go.Scatter(
        x=rounded(x), y=rounded(y), name=name, mode="lines+markers",
        line={**style, "width": 1.5}, marker={"size": 7, "color": style["color"]},
        error_y={"type": "data", "symmetric": False, "array": rounded(above), "arrayminus": rounded(below),
                 "thickness": 1, "width": 3, "color": style["color"]},
    )  # fmt: skip


def make_bars(names: Sequence[str], values: Sequence[Value], name: str, style: Style) -> "go.Bar":
    points = np.array([[v.number, v.high - v.number, v.number - v.low] for v in values])
    y, above, below = points.T
    return go.Bar(
        x=list(names), y=rounded(y), name=name, marker={"color": style["color"]},
        error_y={"type": "data", "symmetric": False, "array": rounded(above), "arrayminus": rounded(below),
                 "thickness": 1, "width": 3, "color": GREY},
    )  # fmt: skip


def change_plot(groups: Mapping[str, Mapping[str, Changed]], look: Styles, errors: Errors) -> Plot:
    """Plot the share of steps with an error, separately for steps whose validity fell, stayed or rose."""
    figure = make_figure("Validity once later steps are seen", "Share of steps with an error")
    order = ("fell", "stayed", "rose")
    notes = []
    for evaluator, parts in groups.items():
        values = [parts[kind].share_wrong for kind in order]
        notes += [f"{evaluator}: no step {kind}" for kind in order if not parts[kind].steps]
        bars = make_bars(order, values, evaluator, look[evaluator])
        bars.update(
            customdata=[parts[kind].steps for kind in order],
            hovertemplate="%{y:.3f} of %{customdata} steps",
            error_y={"visible": False},
        )
        figure.add_trace(bars)
    figure.update_layout(barmode="group", bargap=0.25)
    figure.update_yaxes(rangemode="tozero")
    return make_plot(
        f"{errors.capitalize()} errors among the steps whose validity fell, stayed or rose", figure, notes
    )


_LABEL_INKS = {Label.NEG: "#dd6b20", Label.NEU: "#8b93a1", Label.POS: "#3d7fc4"}


def class_plot(figures: Mapping[str, Mapping[str, Value]], look: Styles, key: str, title: str, mode: Mode) -> Plot:
    """Plot the AUC or F1 of each class with intervals. `key` is `auc` or `f1`."""
    figure = make_figure("Class", title)
    notes = []
    for evaluator, parts in figures.items():
        values = [parts[f"{name}_{key}"] for name in LABEL_NAMES]
        notes += [_no_class(label) for label, value in zip(Label, values, strict=True) if not value.exists]
        figure.add_trace(make_bars(LABEL_NAMES, values, evaluator, look[evaluator]))
    figure.update_layout(barmode="group", bargap=0.25)
    figure.update_yaxes(range=[0, 1.02])
    return make_plot(f"{title} of each class against the rest, {mode}", figure, dict.fromkeys(notes))


def _no_class(label: Label) -> str:
    return f"The gold labels no step {label.text}, so that there is nothing to draw for it."


def share_plot(rows: Sequence[Row], look: Styles, mode: Mode) -> Plot:
    """Plot the share of each class among the gold labels and among the labels predicted by argmax."""
    figure = make_figure("Class", "Share of labelled steps")
    notes: list[str] = []
    for place, row in enumerate(rows):
        steps = ternary.classify(row.subject.table)
        if not place:
            figure.add_trace(
                go.Bar(x=LABEL_NAMES, y=rounded(shares(steps.gold)), name="gold", marker={"color": GREY})
            )
            notes += [f"The gold labels no step {label.text}." for label in lacking(steps.gold)]
        bars = go.Bar(x=LABEL_NAMES, y=rounded(shares(steps.predicted)), name=row.evaluator)
        figure.add_trace(bars.update(marker={"color": look[row.evaluator]["color"]}))
        notes += [f"{row.evaluator}: never predicts {label.text}" for label in lacking(steps.predicted)]
    figure.update_layout(barmode="group", bargap=0.25)
    figure.update_yaxes(range=[0, 1.02])
    return make_plot(f"Label shares, gold against predicted by argmax, {mode}", figure, notes)


def confusion_plot(row: Row) -> Plot:
    """Plot the number of steps by gold and predicted label. The shade shows the share of steps with the same gold
    label."""
    steps = ternary.classify(row.subject.table)
    counts = ternary.confusion(steps)
    with np.errstate(invalid="ignore"):
        share = counts / counts.sum(axis=1, keepdims=True)
    figure = make_figure("Predicted", "Gold")
    figure.add_trace(
        go.Heatmap(
            z=[rounded(line) for line in share],
            x=LABEL_NAMES,
            y=LABEL_NAMES,
            text=[[f"{count:,}" for count in line] for line in counts],
            texttemplate="%{text}",
            hovertemplate="gold %{y}, predicted %{x}: %{text}<extra></extra>",
            colorscale=[[0, "#eef3f9"], [1, "#265d97"]],
            zmin=0,
            zmax=1,
            showscale=False,
            xgap=2,
            ygap=2,
        )
    )
    figure.update_yaxes(autorange="reversed", showgrid=False)
    figure.update_xaxes(showgrid=False)
    notes = [f"The gold labels no step {label.text}: its row is empty." for label in lacking(steps.gold)]
    return make_plot(f"Confusion matrix of {row.evaluator}, {row.mode}, steps", figure, notes)


def class_roc_plot(row: Row) -> Plot:
    """Plot the ROC curve of each class against the rest."""
    figure = make_figure("False positive rate", "True positive rate", square=True)
    steps = ternary.classify(row.subject.table)
    notes = []
    for label in Label:
        side = steps.against_rest(label)
        area = auc(side)
        if not area.exists:
            notes.append(f"{label.text}: {area.reason}" if side.gold.any() else _no_class(label))
            continue
        false, true, _ = roc(side)
        style = {"color": _LABEL_INKS[label], "dash": "solid"}
        figure.add_trace(make_line(false, true, f"{label.text}, AUC {area.number:.3f}", style))
    return make_plot(f"ROC of each class against the rest, {row.evaluator}, {row.mode}", figure, notes)


def sweep_plot(row: Row) -> Plot:
    """Plot the precision, recall and F1 of neu against the threshold. For comparison, show the F1 by argmax."""
    curves = sweep(row.subject.table)
    figure = make_figure("Threshold of the probability of neu", "")
    caption = f"Deciding for neu at a threshold, {row.evaluator}, {row.mode}"
    if curves.reason:
        return Plot(caption, None, (_no_class(Label.NEU),))
    for name, values, ink, dash in (
        ("precision", curves.precision, INKS[0], "dash"),
        ("recall", curves.recall, INKS[2], "dot"),
        ("F1", curves.f1, INKS[1], "solid"),
    ):
        figure.add_trace(make_line(curves.taus, values, name, {"color": ink, "dash": dash}))
    argmax = decide(row.subject.table, Label.NEU)
    level = np.full(2, argmax.f1.number)
    style = {"color": GREY, "dash": "longdash"}
    figure.add_trace(make_line(np.array([0.0, 1.0]), level, f"F1 by argmax, {argmax.f1.number:.3f}", style, 1.2))
    cut = row.subject.thresholds.redundancy
    figure.add_vline(x=cut, line={"color": GREY, "width": 1, "dash": "dot"}, annotation_text=f"{cut:g}")
    figure.update_xaxes(range=[-0.01, 1.01])
    figure.update_yaxes(range=[-0.01, 1.02])
    return make_plot(caption, figure, [])
