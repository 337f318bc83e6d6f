"""The figure of what a run logged, step by step: loss, gradient norm and learning rate."""

from collections.abc import Sequence
from typing import Any

import plotly.graph_objects as go
from plotly.subplots import make_subplots

_CURVES = (("loss", "Cross-entropy"), ("grad_norm", "Gradient norm"), ("learning_rate", "Learning rate"))
_INK, _GRID = "#1f5fa8", "#e3e6ea"

Row = dict[str, Any]


def draw(rows: Sequence[Row], title: str) -> go.Figure:
    """Loss, gradient norm (logarithmic) and learning rate against the optimiser step.

    A row's loss is the mean over the steps since the row before; norm and rate are the step's own.
    """
    figure = make_subplots(rows=1, cols=3, subplot_titles=[name for _, name in _CURVES], horizontal_spacing=0.07)
    steps = [row["step"] for row in rows]
    for column, (key, name) in enumerate(_CURVES, start=1):
        curve = go.Scatter(x=steps, y=[row[key] for row in rows], name=name, line={"color": _INK, "width": 1.5})
        figure.add_trace(curve, row=1, col=column)
        figure.update_xaxes(title_text="Optimiser step", row=1, col=column)
    figure.update_yaxes(type="log", dtick="D2", row=1, col=2)
    figure.update_xaxes(gridcolor=_GRID, zeroline=False)
    figure.update_yaxes(gridcolor=_GRID, zeroline=False)
    figure.update_layout(title=title, showlegend=False, template="plotly_white", width=1200, height=400)
    figure.update_layout(margin={"l": 60, "r": 30, "t": 90, "b": 60})
    return figure
