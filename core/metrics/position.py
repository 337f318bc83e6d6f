"""Position: the steps of a table by where they stand, and by how much later steps changed the verdict."""

from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from stepsight.core.metrics.table import StepTable


class Third(StrEnum):
    EARLY = "early"
    MIDDLE = "middle"
    LATE = "late"


def by_third(table: StepTable) -> dict[Third, StepTable]:
    """Steps by the third of the solution that their middle falls into: of three steps each is one, of a single
    step it is the middle."""
    third = thirds(table.position, table.count)
    return {name: table.where(third == index) for index, name in enumerate(Third)}


def thirds(position: NDArray[np.int64], count: NDArray[np.int64]) -> NDArray[np.int64]:
    """The place in `Third` of steps at 0-based positions among so many, shape (n,)."""
    place = (position + 0.5) / np.maximum(count, 1)
    return np.minimum((place * 3).astype(np.int64), 2)


def retroactive(online: StepTable, offline: StepTable) -> NDArray[np.float64]:
    """Offline minus online validity of each step, shape (n,).

    Raises `ValueError` where the two are not of the same steps.
    """
    if online.ids != offline.ids or len(online) != len(offline):
        raise ValueError("the tables are of other traces")
    change: NDArray[np.float64] = offline.validity - online.validity
    return change


def by_change(table: StepTable, change: NDArray[np.float64], least: float = 0.1) -> dict[str, StepTable]:
    """Steps whose validity fell by at least `least`, rose by it, or stayed."""
    kinds = {"fell": change <= -least, "rose": change >= least}
    stayed = ~(kinds["fell"] | kinds["rose"])
    return {name: table.where(hit) for name, hit in (kinds | {"stayed": stayed}).items()}
