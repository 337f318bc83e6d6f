"""The figures that need three classes: class-wise and neutral-class diagnostics."""

from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go

from core.judgment import Mode
from core.label import LABEL_NAMES, Label
from core.metrics import ternary
from core.metrics.items import auc, roc
from training.diagnostics import ClassFigures, decide, lacking, shares, sweep
from training.evaluation import Row
from training.plots import GREY, INKS, Plot, Styles, make_bars, make_figure, make_line, make_plot, rounded

_LABEL_INKS = {Label.NEG: "#dd6b20", Label.NEU: "#8b93a1", Label.POS: "#3d7fc4"}


def class_plot(
    figures: Mapping[str, Mapping[Label, ClassFigures]], look: Styles, key: str, title: str, mode: Mode
) -> Plot:
    """AUC or F1 (`key`) of each class, with intervals."""
    figure = make_figure("Class", title)
    notes = []
    for evaluator, parts in figures.items():
        values = [getattr(parts[label], key) for label in Label]
        notes += [_no_class(label) for label, value in zip(Label, values, strict=True) if not value.exists]
        figure.add_trace(make_bars(LABEL_NAMES, values, evaluator, look[evaluator]))
    figure.update_layout(barmode="group", bargap=0.25)
    figure.update_yaxes(range=[0, 1.02])
    return make_plot(f"{title} of each class against the rest, {mode}", figure, dict.fromkeys(notes))


def _no_class(label: Label) -> str:
    return f"The gold labels no step {label.text}, so that there is nothing to draw for it."


def share_plot(rows: Sequence[Row], look: Styles, mode: Mode) -> Plot:
    """The share of each class in the gold and as decided by argmax."""
    figure = make_figure("Class", "Share of labelled steps")
    notes: list[str] = []
    for place, row in enumerate(rows):
        steps = ternary.classify(row.subject.table)
        if not place:
            figure.add_trace(
                go.Bar(x=LABEL_NAMES, y=rounded(shares(steps.golds)), name="gold", marker={"color": GREY})
            )
            notes += [f"The gold labels no step {label.text}." for label in lacking(steps.golds)]
        bars = go.Bar(x=LABEL_NAMES, y=rounded(shares(steps.predicted)), name=row.evaluator)
        figure.add_trace(bars.update(marker={"color": look[row.evaluator]["color"]}))
        notes += [f"{row.evaluator}: never predicts {label.text}" for label in lacking(steps.predicted)]
    figure.update_layout(barmode="group", bargap=0.25)
    figure.update_yaxes(range=[0, 1.02])
    return make_plot(f"Label shares, gold against predicted by argmax, {mode}", figure, notes)


def confusion_plot(row: Row) -> Plot:
    """Gold against argmax: counts, shaded by the share of their row."""
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
    told = [f"The gold labels no step {label.text}: its row is empty." for label in lacking(steps.golds)]
    return make_plot(f"Confusion matrix of {row.evaluator}, {row.mode}, steps", figure, told)


def class_roc_plot(row: Row) -> Plot:
    """ROC of each class against the rest."""
    figure = make_figure("False positive rate", "True positive rate", square=True)
    steps = ternary.classify(row.subject.table)
    notes = []
    for label in Label:
        side = steps.against_rest(label)
        found = auc(side)
        if not found.exists:
            notes.append(f"{label.text}: {found.reason}" if side.golds.any() else _no_class(label))
            continue
        false, true, _ = roc(side)
        style = {"color": _LABEL_INKS[label], "dash": "solid"}
        figure.add_trace(make_line(false, true, f"{label.text}, AUC {found.number:.3f}", style))
    return make_plot(f"ROC of each class against the rest, {row.evaluator}, {row.mode}", figure, notes)


def sweep_plot(row: Row, label: Label = Label.NEU) -> Plot:
    """Precision, recall and F1 of a class over the threshold, beside its F1 by argmax."""
    found = sweep(row.subject.table, label)
    figure = make_figure(f"Threshold of the probability of {label.text}", "")
    caption = f"Deciding for {label.text} at a threshold, {row.evaluator}, {row.mode}"
    if found.reason:
        return Plot(caption, None, (_no_class(label),))
    for name, ink, dash in (
        ("precision", INKS[0], "dash"),
        ("recall", INKS[2], "dot"),
        ("f1", INKS[1], "solid"),
    ):
        shown = "F1" if name == "f1" else name
        figure.add_trace(make_line(found.taus, getattr(found, name), shown, {"color": ink, "dash": dash}))
    argmax = decide(row.subject.table, label)
    level = np.full(2, argmax.f1.number)
    style = {"color": GREY, "dash": "longdash"}
    figure.add_trace(make_line(np.array([0.0, 1.0]), level, f"F1 by argmax, {argmax.f1.number:.3f}", style, 1.2))
    cut = row.subject.thresholds.redundancy
    if label == Label.NEU:
        figure.add_vline(x=cut, line={"color": GREY, "width": 1, "dash": "dot"}, annotation_text=f"{cut:g}")
    figure.update_xaxes(range=[-0.01, 1.01])
    figure.update_yaxes(range=[-0.01, 1.02])
    return make_plot(caption, figure, [])
