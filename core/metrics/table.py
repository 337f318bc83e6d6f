"""A table: gold and scores of many traces in columns, a row per step; what every metric is computed from."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from stepsight.core.scores import StepScores
from stepsight.core.trace import Trace

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

_OF_STEPS = ("trace", "position", "count", "label", "valid", "validity", "redundancy", "probs")

SILENT = -1
"""The gold of a step of which the benchmark says nothing."""


@dataclass(frozen=True, eq=False)
class StepTable:
    """`n` steps of `len(ids)` traces.

    Of shape (n,): `trace`, the place of the trace in `ids`; `position`, 0-based, and `count`, how many steps the
    trace has; `label`, 0 1 2 or `SILENT`; `valid`, 0 1 or `SILENT`; `validity` and `redundancy`, the least `s_val`
    and the greatest `s_red` of the step's sub-steps (NaN where the evaluator said nothing of it). `probs`, (n, 3),
    is the row of the least valid sub-step. Of shape (traces,): `solution`, what the evaluator said of the whole by
    itself, else NaN; `groups`, the class that the benchmark puts the trace in, else "".
    """

    ids: tuple[str, ...]
    trace: Ints
    position: Ints
    count: Ints
    label: Ints
    valid: Ints
    validity: Floats
    redundancy: Floats
    probs: Floats
    solution: Floats
    groups: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.trace)

    @property
    def traces(self) -> int:
        return len(self.ids)

    def first_errors(self) -> Ints:
        """0-based first error of each trace by the gold; `SILENT` where there is none."""
        return self.first(self.valid == 0)

    def first(self, hit: NDArray[np.bool_]) -> Ints:
        """0-based position of the first step of each trace that is hit; `SILENT` where none is."""
        found = np.full(self.traces, SILENT, np.int64)
        rows = np.flatnonzero(hit)[::-1]
        found[self.trace[rows]] = self.position[rows]
        return found

    @property
    def present(self) -> NDArray[np.bool_]:
        """Of each trace, whether the table has a step of it."""
        return np.bincount(self.trace, minlength=self.traces) > 0

    def where(self, chosen: NDArray[np.bool_]) -> "StepTable":
        """The table of some of its steps; `ids` and what else is of traces stay."""
        if chosen.all():
            return self
        columns = {name: getattr(self, name)[chosen] for name in _OF_STEPS}
        return replace(self, **columns)


@dataclass
class TableBuilder:
    """Collects traces into a `StepTable`, keeping numbers only."""

    ids: list[str] = field(default_factory=list)
    solutions: list[float] = field(default_factory=list)
    groups: list[str] = field(default_factory=list)
    _parts: list[NDArray[np.float32]] = field(default_factory=list)
    _golds: list[NDArray[np.int8]] = field(default_factory=list)

    def add(self, trace: Trace, scores: StepScores | None, solution: float | None = None, group: str = "") -> None:
        """Add a judged trace; `scores` has a row per sub-step, or is None where nothing was said of steps.

        Raises `ValueError` where the rows do not match the sub-steps.
        """
        self.ids.append(trace.id)
        self.groups.append(group)
        self.solutions.append(np.nan if solution is None else solution)
        self._golds.append(np.array([_gold(step.label, step.valid) for step in trace.steps], np.int8))
        self._parts.append(_scores(trace, scores))

    def build(self) -> StepTable:
        counts = np.array([len(part) for part in self._parts], np.int64)
        golds = np.concatenate([*self._golds, np.empty((0, 2), np.int8)]).astype(np.int64)
        numbers = np.concatenate([*self._parts, np.empty((0, 5), np.float32)]).astype(np.float64)
        starts = np.cumsum(counts) - counts
        return StepTable(
            ids=tuple(self.ids),
            trace=np.repeat(np.arange(len(counts)), counts),
            position=np.arange(len(numbers)) - np.repeat(starts, counts),
            count=np.repeat(counts, counts),
            label=golds[:, 0],
            valid=golds[:, 1],
            validity=numbers[:, 0],
            redundancy=numbers[:, 1],
            probs=numbers[:, 2:],
            solution=np.array(self.solutions, np.float64),
            groups=tuple(self.groups),
        )


def build_table(judged: Iterable[tuple[Trace, StepScores | None]]) -> StepTable:
    """The table of traces with their scores."""
    builder = TableBuilder()
    for trace, scores in judged:
        builder.add(trace, scores)
    return builder.build()


def _gold(label: int | None, valid: bool | None) -> tuple[int, int]:
    return SILENT if label is None else int(label), SILENT if valid is None else int(valid)


def _scores(trace: Trace, scores: StepScores | None) -> NDArray[np.float32]:
    """Columns validity, redundancy, neg, neu, pos; NaN where nothing was said."""
    if scores is None:
        return np.full((len(trace.steps), 5), np.nan, np.float32)
    if len(scores) != len(trace.substeps):
        raise ValueError(f"{len(scores)} rows for {len(trace.substeps)} sub-steps of trace {trace.id!r}")
    owners = trace.owners
    least = scores.by_step(owners)
    redundancy = np.zeros(len(trace.steps), np.float32)
    np.maximum.at(redundancy, owners, scores.redundancy)
    silent = np.zeros(len(trace.steps), np.bool_)
    np.logical_or.at(silent, owners, scores.probs.sum(axis=1) == 0)
    columns = np.column_stack([least.validity, redundancy, least.probs])
    columns[silent] = np.nan
    return columns
