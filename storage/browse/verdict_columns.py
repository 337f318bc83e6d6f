"""Columns of an evaluator's verdicts on a dataset's traces: what traces are filtered and sorted by."""

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import select
from sqlalchemy.orm import Session

from stepsight.core.arrays import Bools, Floats32
from stepsight.core.judgment import Mode
from stepsight.core.metrics.first_error import Outcome, knows_first_error
from stepsight.core.metrics.reasoneval import SOLUTION_THRESHOLD
from stepsight.core.metrics.table import SILENT
from stepsight.core.scores import Outputs, Thresholds
from stepsight.storage.database.schema import ProfileRow
from stepsight.storage.database.store import IN_PARTS
from stepsight.storage.judgments.packed_judgments import unpack_profiles
from stepsight.storage.traces.columns import TraceColumns

_WORD_THRESHOLD = 0.5
MISTAKES = tuple(Outcome)
BINS = 20
"""Bins of the same width that validities of steps are put into; 1 is in the last."""

# In single precision as validities are, so that those on an edge are in the bin that begins there.
_EDGES = (np.arange(1, BINS) / BINS).astype(np.float32)


@dataclass(frozen=True, eq=False)
class VerdictColumns:
    """What an evaluator says in one mode of the `n` traces of a dataset, each of shape (n,) but for `bins`.

    Of the solution: `validity` and `redundancy`, NaN where nothing was said of it, and what the thresholds make of
    them: `valid`, 1 or 0, `SILENT` where that is not known; `redundant`. `change` is the largest absolute
    retroactive change, NaN without a judgment in hindsight mode. Of the steps: `first_wrong`, the first one called
    wrong, 0-based, `SILENT` for none; `mistake`, the place in `MISTAKES` of what that is against the gold's first
    error, `SILENT` where gold or evaluator say too little; `cells`, as in
    `storage.judgments.packed_judgments.HEAD`. `bins`, shape (steps,), of all traces one after the other: in
    which of `BINS` the validity of each step is, `SILENT` where nothing was said of it.
    """

    validity: Floats32
    redundancy: Floats32
    change: Floats32
    valid: NDArray[np.int8]
    redundant: Bools
    first_wrong: NDArray[np.int32]
    mistake: NDArray[np.int8]
    cells: NDArray[np.uint16]
    bins: NDArray[np.int8]

    @property
    def nbytes(self) -> int:
        return sum(getattr(self, column.name).nbytes for column in fields(self))

    @property
    def judged(self) -> Bools:
        """Whether something was said of the solution."""
        return np.not_equal(self.valid, SILENT) | ~np.isnan(self.redundancy)

    @property
    def mistaken(self) -> Bools:
        """Whether the first step called wrong is known to be another than the gold's."""
        return np.not_equal(self.mistake, SILENT) & np.not_equal(self.mistake, MISTAKES.index(Outcome.RIGHT))

    def makes(self, mistake: str) -> Bools:
        """Whether it is one of `MISTAKES`, or any for `wrong`."""
        if mistake == "wrong":
            return self.mistaken
        met: Bools = np.equal(self.mistake, MISTAKES.index(Outcome(mistake)))
        return met


def read_verdict_columns(
    session: Session, traces: TraceColumns, dataset_id: int, evaluator_id: int, outputs: Outputs, cut: Thresholds
) -> dict[Mode, VerdictColumns]:
    """The verdicts of an evaluator online and offline, at its thresholds `cut`.

    A judgment of the mode itself comes before one in hindsight mode. A stale one counts as none.
    """
    columns = {mode: _ProfileColumns(traces, _step_cut(outputs, cut)) for mode in (Mode.ONLINE, Mode.OFFLINE)}
    for stored in (Mode.HINDSIGHT, Mode.ONLINE, Mode.OFFLINE):
        row, wanted = ProfileRow, [stored] if stored in columns else list(columns)
        statement = (
            select(row.trace_id, *[getattr(row, mode.value) for mode in wanted])
            .where(row.evaluator_id == evaluator_id, row.dataset_id == dataset_id, row.mode == stored.value)
            .order_by(row.trace_id)
        )
        # Not through the session: what that does with each row would take most of the time.
        for part in session.connection().execute(statement, execution_options=IN_PARTS).partitions():
            ids, *lists = zip(*part, strict=True)
            for mode, profiles in zip(wanted, lists, strict=True):
                columns[mode].add(ids, profiles)
    return {mode: one.verdicts(outputs, cut) for mode, one in columns.items()}


def _step_cut(outputs: Outputs, cut: Thresholds) -> np.float32:
    return np.float32(_WORD_THRESHOLD if outputs.in_words else cut.validity)


class _ProfileColumns:
    """The profiles of one mode, a row for each trace of a dataset; a step is wrong below the threshold `cut`."""

    def __init__(self, traces: TraceColumns, cut: np.float32) -> None:
        n = len(traces)
        self._traces, self._cut = traces, cut
        self.least, self.whole, self.redundancy, self.change = (np.full(n, np.nan, np.float32) for _ in range(4))
        self.first_wrong = np.full(n, SILENT, np.int32)
        self.unscored = np.full(n, SILENT, np.int32)
        self.labelled = np.zeros(n, np.bool_)
        self.cells = np.zeros(n, np.uint16)
        self._starts = np.cumsum(traces.steps, dtype=np.int64) - traces.steps
        self.bins = np.full(int(traces.steps.sum()), SILENT, np.int8)

    def add(self, trace_ids: Sequence[int], profiles: Sequence[bytes | None]) -> None:
        """Put the profiles of some traces in place of what was there; those of other steps are passed over."""
        there = [place for place, profile in enumerate(profiles) if profile is not None]
        if not there:
            return
        heads, counts, validity = unpack_profiles([profiles[place] or b"" for place in there])
        places = self._traces.places(np.array(trace_ids, np.int64)[there])
        fresh = places != SILENT
        fresh &= heads["digest"] == self._traces.digests[places]
        fresh &= counts == self._traces.steps[places]
        starts = np.cumsum(counts) - counts
        steps = np.arange(len(validity)) - np.repeat(starts, counts)
        at = places[fresh]
        self.least[at] = np.minimum.reduceat(validity, starts)[fresh]
        for column, hit in ((self.first_wrong, validity < self._cut), (self.unscored, np.isnan(validity))):
            first = np.minimum.reduceat(np.where(hit, steps, len(validity)), starts)
            column[at] = np.where(first == len(validity), SILENT, first)[fresh]
        self.labelled[at] = heads["labelled"][fresh] != 0
        for name in ("whole", "redundancy", "change", "cells"):
            getattr(self, name)[at] = heads[name][fresh]
        of_fresh = np.repeat(fresh, counts)
        said = validity[of_fresh]
        found = np.where(np.isnan(said), SILENT, np.searchsorted(_EDGES, said, side="right"))
        self.bins[np.repeat(self._starts[at], counts[fresh]) + steps[of_fresh]] = found

    def verdicts(self, outputs: Outputs, cut: Thresholds) -> VerdictColumns:
        """A validity in single precision is compared with a threshold in it, so that ties are ties."""
        redundancy, least = self.redundancy, np.float32(cut.redundancy)
        gold = self._traces.first_error
        comparable = self.labelled & knows_first_error(gold, self.first_wrong, self.unscored, outputs)
        if outputs == Outputs.SOLUTION or outputs.in_words:
            validity, bound = self.whole, SOLUTION_THRESHOLD if outputs == Outputs.SOLUTION else _WORD_THRESHOLD
        else:
            validity, bound = self.least, cut.validity
        if outputs == Outputs.VERDICT and (redundancy > 0).any():
            # Verdicts on redundancy say nothing of validity.
            redundancy, least = 1 - self.whole, np.float32(_WORD_THRESHOLD)
            validity, comparable = np.full_like(validity, np.nan), np.zeros_like(comparable)
        elif outputs != Outputs.THREE_WAY:
            redundancy = np.full_like(redundancy, np.nan)
        valid = np.where(np.isnan(validity), SILENT, validity >= np.float32(bound))
        return VerdictColumns(
            validity=validity,
            redundancy=redundancy,
            change=self.change,
            valid=valid.astype(np.int8),
            redundant=redundancy >= least,
            first_wrong=self.first_wrong,
            mistake=_mistakes(gold, self.first_wrong, comparable),
            cells=self.cells,
            bins=self.bins,
        )


def _mistakes(gold: NDArray[np.int32], wrong: NDArray[np.int32], comparable: Bools) -> NDArray[np.int8]:
    conditions = [~comparable, gold == wrong, wrong == SILENT, gold == SILENT]
    kinds = (Outcome.RIGHT, Outcome.MISSED, Outcome.FALSE_ALARM, Outcome.WRONG_STEP)
    right, missed, alarm, other = [MISTAKES.index(kind) for kind in kinds]
    codes: NDArray[np.int8] = np.select(conditions, [SILENT, right, missed, alarm], other).astype(np.int8)
    return codes
