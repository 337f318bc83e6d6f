"""HTML that shows traces, hindsight triangles and judgments in notebooks. The first public name of the package that
is used imports this module, which gives these types their `_repr_html_`.

The HTML is self-contained, without scripts, files or fonts. Its text takes the notebook's own colour, so that it is
readable in light and dark themes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from stepsight.core.escaping import load_templates
from stepsight.core.judgment import Judgment
from stepsight.core.paths import asset
from stepsight.core.scores import Hindsight, StepScores
from stepsight.core.trace import Trace

_MOST = 40


@dataclass(frozen=True)
class _Cell:
    """A number in a table, with its tooltip.

    `wrong` is the strength of the colour for "wrong" in percent, or None for no colour. `is_online` marks an online
    score.
    """

    text: str
    title: str = ""
    wrong: int | None = None
    is_online: bool = False


_Rows = list[tuple[str, list[_Cell | None]]]


def draw(shown: Trace | Hindsight | Judgment) -> str:
    """Return the HTML of a trace, a triangle or a judgment, with its style sheet."""
    if isinstance(shown, Trace):
        parts = [_draw_trace(shown)]
    elif isinstance(shown, Hindsight):
        parts = [draw_hindsight(shown)]
    elif isinstance(shown.result, Hindsight):
        parts = [_draw_trace(shown.trace), draw_hindsight(shown.result)]
    else:
        row = _scores(shown.mode, shown.result)
        numbers = _macro("numbers", [_head(len(shown.result.probs)), row], "validity")
        parts = [_draw_trace(shown.trace), numbers]
    return f'<div class="stepsight"><style>{style()}</style>{"".join(parts)}</div>'


for _kind in (Trace, Hindsight, Judgment):
    _kind._repr_html_ = draw  # type: ignore[union-attr]


def style() -> str:
    """Return the style sheet of drawings, for elements within one of the class `stepsight`."""
    return _macro("style")


def _draw_trace(trace: Trace) -> str:
    return _macro("trace", trace.problem, trace.steps)


def draw_hindsight(hindsight: Hindsight) -> str:
    """Draw the triangle of validities, with the change from online to offline below it.

    Row `j` shows the validities after sub-steps 1 to `j`; online cells are outlined. Of more than `_MOST`, only
    the online and offline rows are drawn.
    """
    n = len(hindsight.rows)
    ends = [hindsight.end(i) for i in range(n)]
    kind = "step" if ends == list(range(n)) else "sub-step"
    rows: _Rows = [_head(n)]
    if n <= _MOST:
        for j, probs in enumerate(hindsight.rows):
            cells: list[_Cell | None] = [_cell(row, ends[i] == j) for i, row in enumerate(probs.tolist())]
            rows.append((f"after {j + 1}", cells + [None] * (n - j - 1)))
        caption = f"validity of each {kind}, after each step that is revealed; outlined: online"
    else:
        rows += [_scores("online", hindsight.online), _scores("offline", hindsight.offline)]
        caption = f"validity of each {kind}, online and offline"
    if n:
        changes = [f"{change:+.2f}".replace("-", "−") for change in hindsight.retroactive.tolist()]
        rows.append(("change", [_Cell(change if change.strip("+−0.") else "0.00") for change in changes]))
    return _macro("numbers", rows, caption)


def _head(n: int) -> tuple[str, list[_Cell | None]]:
    return "step", [_Cell(str(number)) for number in range(1, n + 1)]


def _scores(name: str, scores: StepScores) -> tuple[str, list[_Cell | None]]:
    return name, [_cell(row, name == "online") for row in scores.probs.tolist()]


def _cell(probs: Sequence[float], is_online: bool) -> _Cell | None:
    """Return the table cell for a sub-step's probabilities, or None if the sub-step has no scores."""
    if not any(probs):
        return None
    neg, neu, pos = probs
    # At most half of the full colour, so that the text stays readable.
    return _Cell(f"{neu + pos:.2f}", f"neg {neg:.2f}, neu {neu:.2f}, pos {pos:.2f}", round(50 * neg), is_online)


def _macro(name: str, *values: Any) -> str:
    return str(getattr(_module(), name)(*values))


@cache
def _module() -> Any:
    return load_templates(asset("notebook")).get_template("steps.html").module
