"""A trace, a hindsight triangle and a judgment as they draw themselves in a notebook.

HTML that needs nothing but itself: no script, no file, no font. Ink is the notebook's, so that it can be read in a
light theme and in a dark one.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from stepsight.core.places import asset
from stepsight.core.templates import load_templates

if TYPE_CHECKING:
    from stepsight.core.judgment import Judgment
    from stepsight.core.scores import Hindsight, StepScores
    from stepsight.core.trace import Trace

_MOST = 40
"""Sub-steps of a triangle that is drawn whole; of a longer one the online and the offline row."""


@dataclass(frozen=True)
class _Cell:
    """A number, and in percent how deep it is coloured: not at all where that is None."""

    text: str
    title: str = ""
    wrong: int | None = None
    is_online: bool = False


_Rows = list[tuple[str, list[_Cell | None]]]


def trace_html(trace: "Trace") -> str:
    """The problem and the numbered steps with their gold."""
    return _page(_macro("trace", trace))


def hindsight_html(hindsight: "Hindsight") -> str:
    """The triangle of validity: a row for each step in view, the online cells outlined; below it the change."""
    return _page(_triangle(hindsight))


def judgment_html(judgment: "Judgment") -> str:
    """The trace, and below it what was said of its sub-steps."""
    parts = [_macro("trace", judgment.trace)]
    if judgment.hindsight is not None:
        parts.append(_triangle(judgment.hindsight))
    else:
        rows = [_scores(mode, scores) for mode in ("online", "offline") if (scores := getattr(judgment, mode))]
        parts.append(_macro("numbers", [_head(len(judgment.trace.substeps)), *rows], "validity"))
    return _page(*parts)


def _triangle(hindsight: "Hindsight") -> str:
    n = len(hindsight)
    ends = [hindsight.end(i) for i in range(n)]
    rows: _Rows = [_head(n)]
    if n <= _MOST:
        for j, probs in enumerate(hindsight.rows):
            cells: list[_Cell | None] = [_cell(row, ends[i] == j) for i, row in enumerate(probs.tolist())]
            rows.append((f"up to {j + 1}", cells + [None] * (n - j - 1)))
        caption = "validity of each sub-step, with the solution in view up to each later one; outlined: online"
    else:
        rows += [_scores("online", hindsight.online), _scores("offline", hindsight.offline)]
        caption = "validity of each sub-step, online and offline"
    if n:
        rows.append(("change", [_Cell(f"{change:+.2f}") for change in hindsight.retroactive.tolist()]))
    return _macro("numbers", rows, caption)


def _head(n: int) -> tuple[str, list[_Cell | None]]:
    return "", [_Cell(str(number)) for number in range(1, n + 1)]


def _scores(name: str, scores: "StepScores") -> tuple[str, list[_Cell | None]]:
    return name, [_cell(row, name == "online") for row in scores.probs.tolist()]


def _cell(probs: Sequence[float], is_online: bool) -> _Cell | None:
    """None where nothing was said."""
    if not any(probs):
        return None
    neg, neu, pos = probs
    # Half as deep as the colour itself, so that ink can be read on it.
    return _Cell(f"{neu + pos:.2f}", f"neg {neg:.2f}, neu {neu:.2f}, pos {pos:.2f}", round(50 * neg), is_online)


def _page(*parts: str) -> str:
    return f'<div class="stepsight">{_macro("style")}{"".join(parts)}</div>'


def _macro(name: str, *values: Any) -> str:
    return str(getattr(_module(), name)(*values))


@cache
def _module() -> Any:
    return load_templates(asset("notebook")).get_template("steps.html").module
