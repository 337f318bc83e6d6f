"""The history of a training run: its rows in `log_history.json`, and their curves in `training.html`."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import plotly.graph_objects as go

_CURVES = (("loss", "Cross-entropy"), ("grad_norm", "Gradient norm"), ("learning_rate", "Learning rate"))
_INK, _GRID = "#1f5fa8", "#e3e6ea"
# Without this, a button would send the figure to a server.
_PAGE = {"displaylogo": False, "showSendToCloud": False}


def draw_history(rows: Sequence[Mapping[str, Any]], title: str) -> "go.Figure":
    """Plot loss, gradient norm (on a logarithmic axis) and learning rate against the optimiser step.

    In each row, the loss is the mean since the previous row, while the gradient norm and learning rate are those of
    the row's own step.
    """
    # This import loads all of Plotly, and pages import this module only to link to figures.
    from plotly.subplots import make_subplots

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


def write_history(rows: Sequence[Mapping[str, Any]], folder: Path) -> None:
    """Write the rows to the file `log_history.json` in the folder of a run, and their curves to `training.html`."""
    (folder / "log_history.json").write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    figure = draw_history(rows, folder.resolve().name)
    figure.write_html(folder / "training.html", include_plotlyjs=True, full_html=True, config=_PAGE)
