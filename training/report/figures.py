"""Plotly figures of a report as pictures."""

from collections.abc import Mapping
from pathlib import Path

import plotly.graph_objects as go
import plotly.io

from stepsight.core.errors import UserError

# Pixels of the picture for each of the figure's own.
_SCALE = 2
# Of a report's figures as pictures, in pixels.
_SIZE = {"width": 640, "height": 400}
_FORMATS = ("pdf", "png")


def check_pictures() -> None:
    """Raises `UserError` if figures cannot be written as pictures, as far as that can be known beforehand."""
    try:
        import kaleido  # noqa: F401
    except ImportError:
        raise UserError("Figures as files need kaleido.", "Run: pip install 'stepsight[figures]'") from None


def write_pictures(figures: Mapping[str, go.Figure], folder: Path) -> None:
    """Write each figure as `folder`/NAME.pdf and NAME.png, on white, with a legend where it has several curves.

    Raises `UserError` where kaleido or a browser is missing, and `OSError` where the folder cannot be written.
    """
    check_pictures()
    folder.mkdir(parents=True, exist_ok=True)
    drawn = [_on_paper(figure) for figure in figures.values() for _ in _FORMATS]
    paths = [folder / f"{name}.{suffix}" for name in figures for suffix in _FORMATS]
    try:
        plotly.io.write_images(drawn, paths, scale=_SCALE, **_SIZE)
    except OSError:
        raise
    except Exception as error:  # a browser can fail in many ways
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise UserError(
            f"the figures cannot be drawn ({reason}).",
            "Install Chrome or Chromium, or name one that starts in BROWSER_PATH.",
        ) from None


def _on_paper(figure: go.Figure) -> go.Figure:
    legend = {"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0, "xanchor": "left"}
    return go.Figure(figure).update_layout(
        paper_bgcolor="white", plot_bgcolor="white", showlegend=len(figure.data) > 1, legend=legend, **_SIZE,
        xaxis_automargin=True, yaxis_automargin=True,
    )  # fmt: skip
