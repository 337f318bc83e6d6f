"""What a grid takes: the plan of one run for each size and amount of data, and the sum."""

from collections.abc import Sequence
from pathlib import Path

from training.grid.design import Cell, Design
from training.plan import Plan, make_plan


def forecast(design: Design, cells: Sequence[Cell], root: Path, gpu: str | None = None) -> str:
    """The plans as text, and the hours that all `cells` take one after the other.

    Raises `UserError` where a run does not fit, naming it.
    """
    plans: dict[tuple[str, str], Plan] = {}
    for cell in cells:
        if (cell.size, cell.data) not in plans:
            config = design.config(cell)
            plans[cell.size, cell.data] = make_plan(config, root, gpu, design.processes)
    parts = [f"{size} {data}\n{plan}\n" for (size, data), plan in plans.items()]
    hours = sum(plans[cell.size, cell.data].hours for cell in cells)
    return "\n".join([*parts, f"{len(cells)} runs, {hours:.1f} hours one after the other"])
