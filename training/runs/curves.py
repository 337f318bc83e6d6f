"""The curves of a run, as a page and a picture: loss, gradient norm and learning rate by step."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import plotly.graph_objects as go
from plotly.subplots import make_subplots

_CURVES = (("loss", "Cross-entropy"), ("grad_norm", "Gradient norm"), ("learning_rate", "Learning rate"))
# Pixels of the picture for each of the figure's own.
_SCALE = 2
_INK, _GRID = "#1f5fa8", "#e3e6ea"


def draw_history(rows: Sequence[Mapping[str, Any]], title: str) -> go.Figure:
    """Loss, gradient norm (logarithmic) and learning rate against the optimiser step.

    A row's loss is the mean over the steps since the previous row; norm and rate are the step's own.
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


def write_figure(figure: go.Figure, path: Path) -> None:
    """Write `path` with the suffixes .html and .png; the figure's width and height are the picture's.

    The picture needs the package kaleido and a Chrome or Chromium; without them the page alone is written, and a
    line on standard error says how to get the picture.
    """
    page, picture = path.with_suffix(".html"), path.with_suffix(".png")
    figure.write_html(page, include_plotlyjs=True, full_html=True, config={"displaylogo": False})
    missing = _write_picture(figure, picture)
    if missing:
        print(f"{picture.name} is not written, only {page.name}: {missing}", file=sys.stderr)


def _write_picture(figure: go.Figure, path: Path) -> str:
    """Write a PNG; returns a hint on what is missing, or ""."""
    try:
        import kaleido  # noqa: F401
    except ImportError:
        return "install stepsight[figures], and Chrome or Chromium."
    try:
        figure.write_image(path, scale=_SCALE)
    except OSError:
        raise
    except Exception:  # a browser can fail in many ways, and a run is worth more than its picture
        return "install Chrome or Chromium, or name one that starts in BROWSER_PATH."
    return ""
