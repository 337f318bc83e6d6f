"""What evaluators say of a step, as bars beside it."""

from collections.abc import Sequence
from html import escape

from storage.labelling.comparison import Said


def scores_html(scores: Sequence[Said], number: int) -> str:
    """A line for each evaluator that says something of the step, 0-based; nothing where none does."""
    lines = "".join(_line(said, number) for said in scores if said.validity[number] is not None)
    return f'<div class="scores">{lines}</div>' if lines else ""


def _line(said: Said, number: int) -> str:
    validity, redundancy = said.validity[number] or 0.0, said.redundancy[number]
    label = f"{escape(said.evaluator)}, {said.mode.value}: validity {validity:.2f}"
    widths = {"neg": 1 - validity, "pos": validity}
    if redundancy is not None:
        label += f", redundancy {redundancy:.2f}"
        widths = {"neg": 1 - validity, "neu": min(redundancy, validity), "pos": max(validity - redundancy, 0.0)}
    parts = "".join(f'<i class="{name}" style="width:{100 * width:.1f}%"></i>' for name, width in widths.items())
    return f"""<span class="who">{escape(said.evaluator)}, {said.mode.value}</span>
<div class="bar" role="img" aria-label="{label}" title="{label}">{parts}</div>
<span class="num">{validity:.2f}</span>"""
