"""Plotly figures as files: a page that needs no network, and a picture."""

import sys
from pathlib import Path

import plotly.graph_objects as go

# Pixels of the picture for each of the figure's own.
_SCALE = 2


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
    """Write a PNG; returns what has to be done first, or nothing."""
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
