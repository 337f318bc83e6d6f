"""The traces of a dataset and the verdicts of an evaluator on them, as columns held in memory for filtering and
sorting."""

from dataclasses import dataclass, fields, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import select
from sqlalchemy.orm import Session

from stepsight.core.arrays import Bools, Floats32
from stepsight.core.judgment import Mode
from stepsight.core.metrics.first_error import OUTCOMES, Outcome, knows_first_error, outcome_codes
from stepsight.core.metrics.reasoneval import SOLUTION_THRESHOLD
from stepsight.core.metrics.table import SILENT, StepTable, thirds
from stepsight.core.scores import Outputs, Thresholds
from stepsight.core.trace import Label
from stepsight.storage.database.schema import TraceRow, TriangleRow
from stepsight.storage.database.store import read_columns
from stepsight.storage.judgments.columns import TraceGold, read_gold_columns, read_scores, starts
from stepsight.storage.judgments.evaluators import outputs_of_evaluator, thresholds_in_force

GOLD = ("error", "clean", "missing")
"""The gold of a trace: with a first error, with gold labels but no error, or without gold labels."""

STEP_GOLD = ("wrong", "redundant", "right")
"""The gold of a step: not valid; redundant; or valid without being called redundant."""

SOLUTION_GOLD = ("with", "without")
"""The gold of a solution: with a redundant step, or with labels of all steps and none of them redundant."""


@dataclass(frozen=True, eq=False, kw_only=True)
class TraceColumns(TraceGold):
    """The `n` traces of a dataset in file order, with the facts about their gold labels that filters use.

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
        return (self.first_error != SILENT) | ~self.any_step(self.valid != 1)

    @property
    def nbytes(self) -> int:
        """The size in bytes, including everything that is derived on demand."""
        for name, value in vars(type(self)).items():
            if isinstance(value, cached_property):
                getattr(self, name)
        arrays = sum(value.nbytes for value in vars(self).values() if isinstance(value, np.ndarray))
        # Names are references of eight bytes each.
        return arrays + 8 * (len(self.ids) + len(self.digests) + len(self.groups))

    def any_step(self, hit: Bools) -> Bools:
        """Return a mask of shape (n,) that selects the traces with a step that is hit. `hit` has shape (steps,)."""
        return np.logical_or.reduceat(hit, starts(self.counts)) if len(self) else np.zeros(0, np.bool_)


def read_trace_columns(session: Session, dataset_id: int) -> TraceColumns:
    """Read the columns of a dataset's traces. Memory use grows with the number of steps."""
    return TraceColumns(**read_gold_columns(session, TraceRow.dataset_id == dataset_id, brief=True))


_WORD_THRESHOLD = 0.5
OUTCOME_NAMES = tuple(outcome.value for outcome in OUTCOMES)
BINS = 20
"""The number of bins of equal width for the validities of steps; 1 is in the last."""

# In single precision, like validities, so that a validity on an edge is in the bin that begins there.
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
    if the gold labels or the verdicts are incomplete. `cells` has a bit set for each pair of a step's gold label
    and the evaluator's label by argmax (`cell_bit`). `bins` has shape (steps,) and holds the validity bin of every
    step, trace by trace, or `SILENT` if the validity is missing.
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
        has_both = (gold != SILENT) & (self.called_redundant != SILENT)
        return replace(self, mistake=outcome_codes(*places, has_both))

    def makes(self, mistake: str) -> Bools:
        """Return a mask of the traces with the outcome `mistake`, where "wrong" means every outcome but right."""
        if mistake == "wrong":
            return self.mistaken
        return np.equal(self.mistake, OUTCOMES.index(Outcome(mistake)))


def bins_of(scores: Floats32) -> NDArray[np.int8]:
    """Return the bin of each score, or `SILENT` if it is NaN."""
    bins = np.where(np.isnan(scores), SILENT, np.searchsorted(_EDGES, scores, side="right"))
    return bins.astype(np.int8)


def read_verdicts(
    session: Session, traces: TraceColumns, dataset_id: int, evaluator_id: int
) -> dict[Mode, VerdictColumns]:
    """Return an evaluator's online and offline verdicts at the thresholds in force. `change` comes from hindsight
    judgments."""
    outputs, cut = outputs_of_evaluator(session, evaluator_id), thresholds_in_force(session, evaluator_id)
    row = TriangleRow
    changes = (
        select(row.trace_id, row.change)
        .join(TraceRow, TraceRow.id == row.trace_id)
        .where(row.evaluator_id == evaluator_id, row.dataset_id == dataset_id, row.digest == TraceRow.digest)
    )
    ids, values = read_columns(session, changes)
    places = traces.places(np.array(ids, np.int64))
    change = np.full(len(traces), np.nan, np.float32)
    change[places[places != SILENT]] = np.array(values, np.float32)[places != SILENT]
    return {
        mode: _verdicts(read_scores(session, traces, dataset_id, evaluator_id, mode), traces, outputs, cut, change)
        for mode in (Mode.ONLINE, Mode.OFFLINE)
    }


def cell_bit(gold: Label, called: Label) -> int:
    """Return the bit of `cells` for a step with the gold label `gold` and the evaluator's label `called`."""
    return 1 << (len(Label) * gold + called)


def _verdicts(
    table: StepTable, traces: TraceColumns, outputs: Outputs, cut: Thresholds, change: Floats32
) -> VerdictColumns:
    """Return the verdicts of one mode at the given thresholds.

    Validities and thresholds are compared in single precision, so that a validity equal to its threshold passes.
    """
    at = np.flatnonzero(table.present)
    first, step_validity = np.searchsorted(table.trace, at), table.validity
    least, redundancy = (np.full(len(traces), np.nan, np.float32) for _ in range(2))
    whole, cells = table.solution.astype(np.float32), np.zeros(len(traces), np.uint16)
    if len(at):
        least[at] = np.minimum.reduceat(step_validity, first)
        redundancy[at] = np.fmax.reduceat(table.redundancy, first)
        bit = np.left_shift(
            1, len(Label) * np.maximum(table.label, 0).astype(np.int64) + table.probs.argmax(axis=1)
        )
        read = (table.label != SILENT) & ~np.isnan(step_validity)
        cells[at] = np.bitwise_or.reduceat(np.where(read, bit, 0), first)
    # A step counts as wrong below the threshold, or according to its verdict in words.
    first_wrong = table.first(step_validity < np.float32(_WORD_THRESHOLD if outputs.in_words else cut.validity))
    unscored = table.first(np.isnan(step_validity))
    bins = np.full(len(traces.label), SILENT, np.int8)
    bins[starts(traces.counts)[table.trace] + table.position] = bins_of(step_validity)
    first_error, least_redundancy = traces.first_error, np.float32(cut.redundancy)
    comparable = table.present & traces.labelled & knows_first_error(first_error, first_wrong, unscored, outputs)
    if outputs == Outputs.SOLUTION or outputs.in_words:
        validity, bound = whole, SOLUTION_THRESHOLD if outputs == Outputs.SOLUTION else _WORD_THRESHOLD
    else:
        validity, bound = least, cut.validity
    if outputs == Outputs.THREE_WAY:
        unread = np.isnan(redundancy) | np.not_equal(unscored, SILENT)
        called_redundant = redundancy >= least_redundancy
    else:
        unread = np.isnan(validity) | (outputs == Outputs.CHECKS)
        called_redundant = validity < np.float32(bound)
    if outputs == Outputs.VERDICT and (redundancy > 0).any():
        # Verdicts on redundancy say nothing about validity.
        redundancy, least_redundancy = 1 - whole, np.float32(_WORD_THRESHOLD)
        validity, comparable = np.full_like(validity, np.nan), np.zeros_like(comparable)
    elif outputs != Outputs.THREE_WAY:
        redundancy = np.full_like(redundancy, np.nan)
    valid = np.where(np.isnan(validity), SILENT, validity >= np.float32(bound))
    return VerdictColumns(
        validity=validity,
        redundancy=redundancy,
        change=change,
        valid=valid.astype(np.int8),
        redundant=redundancy >= least_redundancy,
        called_redundant=np.where(unread, SILENT, called_redundant).astype(np.int8),
        first_wrong=first_wrong.astype(np.int32),
        mistake=outcome_codes(first_error, first_wrong, comparable),
        cells=cells,
        bins=bins,
    )
