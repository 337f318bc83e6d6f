"""Drawing the training curves of a run, and writing Plotly figures as HTML pages and pictures.

A separate process with a time limit renders the pictures in a browser. Kaleido may wait for its browser for ever in
threads that cannot be stopped, whereas a process can be killed together with its browser.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import plotly.graph_objects as go

from stepsight.core.errors import UserError

_CURVES = (("loss", "Cross-entropy"), ("grad_norm", "Gradient norm"), ("learning_rate", "Learning rate"))
_INK, _GRID = "#1f5fa8", "#e3e6ea"
# No button sends a figure to a server.
_PAGE = {"displaylogo": False, "showSendToCloud": False}
# Pixels of a picture per pixel of the figure.
_SCALE = 2
# Seconds for the browser to start, and for each picture. On an idle machine everything takes three.
_START, _EACH = 120, 15
_DRAWING = "stepsight.training.runs.drawing"
_HINT = "Install Chrome or Chromium, or name one that starts in BROWSER_PATH."


def draw_history(rows: Sequence[Mapping[str, Any]], title: str) -> "go.Figure":
    """Plot loss, gradient norm (on a logarithmic axis) and learning rate against the optimiser step.

    In each row, the loss is the mean since the previous row, while the gradient norm and learning rate are those of
    the row's own step.
    """
    # It loads all of Plotly, and pages import this module to link to figures.
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


def write_figure(figure: "go.Figure", path: Path) -> None:
    """Write a figure to `path` twice: as a page with the extension .html and as a picture with the extension .png.

    The picture has the figure's own width and height. If the picture cannot be rendered, only the page is written
    and a line on standard error explains how to get the picture, because a run must not fail for lack of a picture.
    """
    page, picture = path.with_suffix(".html"), path.with_suffix(".png")
    figure.write_html(page, include_plotlyjs=True, full_html=True, config=_PAGE)
    try:
        write_pictures({picture: figure})
    except UserError as error:
        print(f"{picture.name} is not written, only {page.name}: {error}", file=sys.stderr)


def check_pictures() -> None:
    """Raise `UserError` if Kaleido is missing, or if the browser named by BROWSER_PATH is missing or broken."""
    if find_spec("kaleido") is None:
        raise UserError("Figures as files need kaleido.", "Run: pip install 'stepsight[figures]'")
    named = os.environ.get("BROWSER_PATH")
    if named and shutil.which(named) is None:
        raise UserError(f"BROWSER_PATH names {named!r}, which is not a program.", _HINT)
    if named and not _starts(named):
        raise UserError(f"the figures cannot be drawn ({named} does not start).", _HINT)


def _starts(browser: str) -> bool:
    """True if the browser prints its version. Kaleido may wait for ever for a browser that exits immediately."""
    try:
        done = subprocess.run([browser, "--version"], stdin=subprocess.DEVNULL, capture_output=True, timeout=_START)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0 and bool(done.stdout)


def write_pictures(figures: "Mapping[Path, go.Figure]") -> None:
    """Write each figure to its path, in the format of the path's extension. Figures need a width and a height.

    Raises `UserError` if Kaleido or a browser is missing, fails or takes too long, and `OSError` if a path cannot
    be written.
    """
    check_pictures()
    with TemporaryDirectory(prefix="stepsight-pictures-") as scratch:
        drawn = [Path(scratch, f"{number}{path.suffix}") for number, path in enumerate(figures)]
        _draw([_order(figure, path) for figure, path in zip(figures.values(), drawn, strict=True)])
        for path, picture in zip(figures, drawn, strict=True):
            path.write_bytes(picture.read_bytes())


def _order(figure: "go.Figure", path: Path) -> dict[str, Any]:
    size = {"width": figure.layout.width, "height": figure.layout.height, "scale": _SCALE}
    return {"fig": json.loads(figure.to_json()), "path": str(path), "opts": {"format": path.suffix[1:], **size}}


def _draw(orders: list[dict[str, Any]]) -> None:
    limit = _START + _EACH * len(orders)
    try:
        done = subprocess.run(
            [sys.executable, "-m", _DRAWING],
            input=json.dumps(orders),
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=limit,
        )
    except subprocess.TimeoutExpired:
        raise UserError(
            f"the figures cannot be drawn (the browser has not finished within {limit} s).",
            "Try again when the machine has less to do, or name another browser in BROWSER_PATH.",
        ) from None
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        raise UserError(f"the figures cannot be drawn ({reason}).", _HINT)
