"""Steps of a table by their position in the solution, and by how much later steps changed their validity."""

from enum import StrEnum

import numpy as np

from stepsight.core.arrays import Floats64, Ints
from stepsight.core.metrics.table import StepTable


class Third(StrEnum):
    """The third of a solution that the middle of a step falls into."""

    EARLY = "early"
    MIDDLE = "middle"
    LATE = "late"


def by_third(table: StepTable) -> dict[Third, StepTable]:
    """Steps by third: of three steps each is one, a single step is in the middle."""
    third = thirds(table.position, table.count)
    return {name: table.where(third == index) for index, name in enumerate(Third)}


def thirds(position: Ints, count: Ints) -> Ints:
    """The place in `Third` of steps at 0-based positions in solutions of `count` steps, shape (n,)."""
    place = (position + 0.5) / np.maximum(count, 1)
    return np.minimum((place * 3).astype(np.int64), 2)


def retroactive(online: StepTable, offline: StepTable) -> Floats64:
    """Offline minus online validity of each step, shape (n,).

    Raises `ValueError` where the two are not of the same steps.
    """
    if online.ids != offline.ids or len(online) != len(offline):
        raise ValueError("the tables are of different traces")
    return offline.validity - online.validity


def by_change(table: StepTable, change: Floats64, least: float = 0.1) -> dict[str, StepTable]:
    """Steps whose validity fell by at least `least`, rose by it, or stayed."""
    kinds = {"fell": change <= -least, "rose": change >= least}
    stayed = ~(kinds["fell"] | kinds["rose"])
    return {name: table.where(hit) for name, hit in (kinds | {"stayed": stayed}).items()}
