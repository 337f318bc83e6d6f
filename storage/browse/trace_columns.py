"""The traces of a dataset as columns held in memory, for filtering and sorting."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from sqlalchemy.orm import Session

from stepsight.core.arrays import Bools
from stepsight.core.label import Label
from stepsight.core.metrics.table import SILENT, thirds
from stepsight.storage.database.schema import TraceRow
from stepsight.storage.judgments.columns import TraceGold, read_gold_columns, starts

GOLD = ("error", "clean", "missing")
"""The gold of a trace: with a first error, with gold labels but no error, or without gold labels."""

STEP_GOLD = ("wrong", "redundant", "right")
"""The gold of a step: not valid; redundant; or valid without being called redundant."""

SOLUTION_GOLD = ("with", "without")
"""The gold of a solution: with a redundant step, or with labels of all steps and none of them redundant."""


@dataclass(frozen=True, eq=False, kw_only=True)
class TraceColumns(TraceGold):
    """The `n` traces of a dataset in file order, with what filters read of their gold labels.

    - `first_error` is the 0-based index of the first gold error, or `SILENT` if there is none.
    - `gold` is an index into `GOLD`.
    - `redundant` is True if the gold labels call a step redundant.
    - `group` is the index in `group_names` of the benchmark's class of the trace, or `SILENT` if it has none.
    - `third` says in which third of the solution the first error is, as an index into
      `core.metrics.table.Third`, or `SILENT` if there is none.
    - `solutions` is the gold of the solution as an index into `SOLUTION_GOLD`, or `SILENT` if too few steps are
      labelled.
    - `labelled` is True if the gold labels name a first error, or call every step valid.

    These have shape (n,). `kinds`, of shape (steps,), holds the gold of each step as an index into `STEP_GOLD`, or
    `SILENT` for a step without a gold label.
    """

    @cached_property
    def first_error(self) -> NDArray[np.int32]:
        first = np.full(len(self), SILENT, np.int32)
        wrong = np.flatnonzero(self.valid == 0)[::-1]
        first[self.trace[wrong]] = self.position[wrong]
        return first

    @cached_property
    def gold(self) -> NDArray[np.int8]:
        has_gold = self.any_step(self.valid != SILENT)
        return np.where(self.first_error != SILENT, 0, np.where(has_gold, 1, 2)).astype(np.int8)

    @cached_property
    def redundant(self) -> Bools:
        return self.any_step(self.label == Label.NEU)

    @cached_property
    def group_names(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(filter(None, self.groups)))

    @cached_property
    def group(self) -> NDArray[np.int32]:
        codes = {name: place for place, name in enumerate(self.group_names)}
        return np.array([codes.get(name, SILENT) for name in self.groups], np.int32)

    @cached_property
    def third(self) -> NDArray[np.int8]:
        third = thirds(self.first_error.astype(np.int64), self.counts)
        return np.where(self.first_error == SILENT, SILENT, third).astype(np.int8)

    @cached_property
    def kinds(self) -> NDArray[np.int8]:
        conditions = [self.valid == 0, self.label == Label.NEU, self.valid == 1]
        return np.select(conditions, range(len(STEP_GOLD)), SILENT).astype(np.int8)

    @cached_property
    def solutions(self) -> NDArray[np.int8]:
        conditions = [self.redundant, ~self.any_step(self.label == SILENT)]
        return np.select(conditions, range(len(SOLUTION_GOLD)), SILENT).astype(np.int8)

    @cached_property
    def labelled(self) -> Bools:
        labelled: Bools = (self.first_error != SILENT) | ~self.any_step(self.valid != 1)
        return labelled

    @property
    def nbytes(self) -> int:
        """The size in bytes, with everything that is derived once it is needed."""
        for name, value in vars(type(self)).items():
            if isinstance(value, cached_property):
                getattr(self, name)
        arrays = sum(value.nbytes for value in vars(self).values() if isinstance(value, np.ndarray))
        # The names are references of eight bytes.
        return arrays + 8 * (len(self.ids) + len(self.digests) + len(self.groups))

    def any_step(self, hit: Bools) -> Bools:
        """Return a mask of shape (n,) that selects the traces of which a step is hit. `hit` has shape (steps,)."""
        met: Bools = np.logical_or.reduceat(hit, starts(self.counts)) if len(self) else np.zeros(0, np.bool_)
        return met


def read_trace_columns(session: Session, dataset_id: int) -> TraceColumns:
    """Read the columns of a dataset's traces. Memory use grows with the number of steps."""
    return TraceColumns(**read_gold_columns(session, TraceRow.dataset_id == dataset_id, brief=True))
