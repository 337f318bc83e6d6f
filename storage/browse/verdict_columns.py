"""The verdicts of an evaluator on the traces of a dataset as columns in memory, used for filtering and sorting."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import NDArray
from sqlalchemy.orm import Session

from stepsight.core.arrays import Bools, Floats32, Ints
from stepsight.core.judgment import Mode
from stepsight.core.label import Label
from stepsight.core.metrics.first_error import OUTCOMES, Outcome, knows_first_error, outcome_codes
from stepsight.core.metrics.reasoneval import SOLUTION_THRESHOLD
from stepsight.core.metrics.table import SILENT
from stepsight.core.scores import Outputs, Thresholds
from stepsight.storage.judgments.columns import read_steps, starts, within
from stepsight.storage.judgments.evaluators import outputs_of_evaluator, thresholds_in_force
from stepsight.storage.judgments.profile_columns import Profiles, read_profiles
from stepsight.storage.traces.columns import TraceColumns, read_trace_columns

_WORD_THRESHOLD = 0.5
OUTCOME_NAMES = tuple(outcome.value for outcome in OUTCOMES)
BINS = 20
"""The number of bins of equal width for the validities of steps; 1 is in the last."""

STEP_GOLD = ("wrong", "redundant", "right")
"""The gold of a step: not valid; redundant; or valid without being called redundant."""

SOLUTION_GOLD = ("with", "without")
"""The gold of a solution: with a redundant step, or with labels of all steps and none of them redundant."""

# In single precision like validities, so that one on an edge is in the bin that begins there.
_EDGES = (np.arange(1, BINS) / BINS).astype(np.float32)


@dataclass(frozen=True, eq=False)
class VerdictColumns:
    """An evaluator's verdicts in one mode on the `n` traces of a dataset. All arrays but `bins` have shape (n,).

    Verdicts on the solution: `validity` and `redundancy` are scores, or NaN if missing. `valid` is 1 or 0 depending
    on the threshold, or `SILENT` if unknown. `redundant` is True if the redundancy reaches its threshold.
    `called_redundant` is 1 or 0 by the protocol's rule for redundant errors (`core.metrics.reasoneval`), or
    `SILENT` if a step is not judged. `change` is the largest absolute retroactive change, or NaN without a
    hindsight judgment.

    Verdicts on the steps: `first_wrong` is the 0-based index of the first step called wrong, or `SILENT` if there
    is none. `mistake` is the index in `OUTCOMES` of how that step compares with the first gold error, or `SILENT`
    if the gold labels or the verdicts are incomplete. `cells` is described at
    `storage.judgments.step_profiles.HEAD`. `bins` has shape (steps,) and holds the validity bin of every step,
    trace by trace, or `SILENT` if the validity is missing.
    """

    validity: Floats32
    redundancy: Floats32
    change: Floats32
    valid: NDArray[np.int8]
    redundant: Bools
    called_redundant: NDArray[np.int8]
    first_wrong: NDArray[np.int32]
    mistake: NDArray[np.int8]
    cells: NDArray[np.uint16]
    bins: NDArray[np.int8]

    @property
    def nbytes(self) -> int:
        return sum(getattr(self, column.name).nbytes for column in fields(self))

    @property
    def judged(self) -> Bools:
        """A mask that selects the traces that have a verdict on the solution."""
        return np.not_equal(self.valid, SILENT) | ~np.isnan(self.redundancy)

    @property
    def mistaken(self) -> Bools:
        """A mask that selects the traces on which the evaluator is known to be wrong about the first error."""
        return np.not_equal(self.mistake, SILENT) & np.not_equal(self.mistake, OUTCOMES.index(Outcome.RIGHT))

    def on_redundancy(self, gold: NDArray[np.int8]) -> "VerdictColumns":
        """Return the columns with the outcomes of redundancy in `mistake`. `gold` has shape (n,) and holds indices
        into `SOLUTION_GOLD`, or `SILENT`."""
        places = np.where(gold == 0, 0, SILENT), np.where(self.called_redundant == 1, 0, SILENT)
        known = (gold != SILENT) & (self.called_redundant != SILENT)
        return replace(self, mistake=outcome_codes(*places, known))

    def makes(self, mistake: str) -> Bools:
        """Return a mask of the traces with the outcome `mistake`, where "wrong" means every outcome but right."""
        if mistake == "wrong":
            return self.mistaken
        met: Bools = np.equal(self.mistake, OUTCOMES.index(Outcome(mistake)))
        return met


def bins_of(scores: Floats32) -> NDArray[np.int8]:
    """Return the bin of each score, or `SILENT` if it is NaN."""
    bins = np.where(np.isnan(scores), SILENT, np.searchsorted(_EDGES, scores, side="right"))
    return bins.astype(np.int8)


@dataclass(frozen=True, eq=False)
class StepGold:
    """The gold labels of all steps of a dataset, trace by trace. `kinds` holds each label as an index into
    `STEP_GOLD`, or `SILENT` for a step without a gold label. `solutions` has shape (n,) and holds the gold of each
    solution as an index into `SOLUTION_GOLD`, or `SILENT` if too few steps are labelled."""

    kinds: NDArray[np.int8]
    solutions: NDArray[np.int8]

    @property
    def nbytes(self) -> int:
        return self.kinds.nbytes + self.solutions.nbytes


def read_step_gold(session: Session, traces: TraceColumns) -> StepGold:
    """Read the gold labels of all steps of a dataset."""
    label, valid = read_steps(session, traces.trace_ids, traces.steps)
    kinds = np.select([valid == 0, label == Label.NEU, valid == 1], range(len(STEP_GOLD)), SILENT)
    first = starts(traces.steps)
    if not len(first):
        return StepGold(kinds.astype(np.int8), np.zeros(0, np.int8))
    redundant, complete = np.logical_or.reduceat(label == Label.NEU, first), np.minimum.reduceat(label, first) >= 0
    solutions = np.select([redundant, complete], range(len(SOLUTION_GOLD)), SILENT)
    return StepGold(kinds.astype(np.int8), solutions.astype(np.int8))


def read_verdicts(
    session: Session, traces: TraceColumns, dataset_id: int, evaluator_id: int
) -> dict[Mode, VerdictColumns]:
    """Return an evaluator's online and offline verdicts at the thresholds in force.

    The verdicts of each mode come from its standing judgment (see `storage.judgments.judgments`), and `change`
    comes from the hindsight judgment.
    """
    outputs, cut = outputs_of_evaluator(session, evaluator_id), thresholds_in_force(session, evaluator_id)
    columns = {mode: _ProfileColumns(traces, _step_cut(outputs, cut)) for mode in (Mode.ONLINE, Mode.OFFLINE)}
    change = np.full(len(traces), np.nan, np.float32)
    for part in read_profiles(session, traces, dataset_id, evaluator_id):
        for mode, profiles in part.standing.items():
            columns[mode].add(profiles)
        if part.stored == Mode.HINDSIGHT:
            profiles = part.given[Mode.OFFLINE]
            change[profiles.places] = profiles.heads["change"]
    return {mode: one.verdicts(outputs, cut, change) for mode, one in columns.items()}


def read_validities(session: Session, dataset_id: int, evaluator_ids: Sequence[int]) -> tuple[Ints, Floats32]:
    """Return the trace ids of a dataset and the validities that evaluators gave to its solutions.

    The arrays have shapes (n,) and (evaluators, n). A validity comes from the standing offline judgment or, failing
    that, the online one. It is NaN if there is neither.
    """
    traces = read_trace_columns(session, dataset_id)
    validities = np.full((len(evaluator_ids), len(traces)), np.nan, np.float32)
    for place, evaluator_id in enumerate(evaluator_ids):
        validities[place], _ = read_solution_verdicts(session, traces, dataset_id, evaluator_id)
    return traces.trace_ids, validities


def read_solution_verdicts(
    session: Session, traces: TraceColumns, dataset_id: int, evaluator_id: int
) -> tuple[Floats32, NDArray[np.int8]]:
    """Return an evaluator's `validity` and `valid` of every solution, as `VerdictColumns` describes them: offline
    or, where that is missing, online."""
    verdicts = read_verdicts(session, traces, dataset_id, evaluator_id)
    online, offline = verdicts[Mode.ONLINE], verdicts[Mode.OFFLINE]
    validity = np.where(np.isnan(offline.validity), online.validity, offline.validity)
    return validity, np.where(offline.valid == SILENT, online.valid, offline.valid)


def _step_cut(outputs: Outputs, cut: Thresholds) -> np.float32:
    return np.float32(_WORD_THRESHOLD if outputs.in_words else cut.validity)


class _ProfileColumns:
    """Columns that are filled from the step profiles of one mode. A step counts as wrong if its validity is below
    `cut`."""

    def __init__(self, traces: TraceColumns, cut: np.float32) -> None:
        n = len(traces)
        self._traces, self._cut = traces, cut
        self.least, self.whole, self.redundancy = (np.full(n, np.nan, np.float32) for _ in range(3))
        self.first_wrong = np.full(n, SILENT, np.int32)
        self.unscored = np.full(n, SILENT, np.int32)
        self.labelled = np.zeros(n, np.bool_)
        self.cells = np.zeros(n, np.uint16)
        self._starts = starts(traces.steps)
        self.bins = np.full(int(traces.steps.sum()), SILENT, np.int8)

    def add(self, profiles: Profiles) -> None:
        """Fill in the values of the traces that `profiles` covers."""
        at, heads, validity = profiles.places, profiles.heads, profiles.validity
        if not len(at):
            return
        first, steps = starts(profiles.counts), within(profiles.counts)
        self.least[at] = np.minimum.reduceat(validity, first)
        for column, hit in ((self.first_wrong, validity < self._cut), (self.unscored, np.isnan(validity))):
            found = np.minimum.reduceat(np.where(hit, steps, len(validity)), first)
            column[at] = np.where(found == len(validity), SILENT, found)
        self.labelled[at] = heads["labelled"] != 0
        for name in ("whole", "redundancy", "cells"):
            getattr(self, name)[at] = heads[name]
        self.bins[np.repeat(self._starts[at], profiles.counts) + steps] = bins_of(validity)

    def verdicts(self, outputs: Outputs, cut: Thresholds, change: Floats32) -> VerdictColumns:
        """Return the verdicts at the given thresholds.

        Validities and thresholds are compared in single precision, so that a validity equal to its threshold
        passes.
        """
        redundancy, least = self.redundancy, np.float32(cut.redundancy)
        gold = self._traces.first_error
        comparable = self.labelled & knows_first_error(gold, self.first_wrong, self.unscored, outputs)
        if outputs == Outputs.SOLUTION or outputs.in_words:
            validity, bound = self.whole, SOLUTION_THRESHOLD if outputs == Outputs.SOLUTION else _WORD_THRESHOLD
        else:
            validity, bound = self.least, cut.validity
        if outputs == Outputs.THREE_WAY:
            unread, called = np.isnan(redundancy) | np.not_equal(self.unscored, SILENT), redundancy >= least
        else:
            unread, called = np.isnan(validity) | (outputs == Outputs.CHECKS), validity < np.float32(bound)
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
            change=change,
            valid=valid.astype(np.int8),
            redundant=redundancy >= least,
            called_redundant=np.where(unread, SILENT, called).astype(np.int8),
            first_wrong=self.first_wrong,
            mistake=outcome_codes(gold, self.first_wrong, comparable),
            cells=self.cells,
            bins=self.bins,
        )
