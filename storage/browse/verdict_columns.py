"""The verdicts of an evaluator on the traces of a dataset as columns in memory, used for filtering and sorting."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from stepsight.core.arrays import Bools, Floats32, Ints
from stepsight.core.judgment import Mode
from stepsight.core.label import Label
from stepsight.core.metrics.first_error import OUTCOMES, Outcome, knows_first_error, outcome_codes
from stepsight.core.metrics.reasoneval import SOLUTION_THRESHOLD
from stepsight.core.metrics.table import SILENT
from stepsight.core.scores import Outputs, Thresholds
from stepsight.storage.database.schema import JudgmentRow, TriangleRow
from stepsight.storage.database.store import read_columns
from stepsight.storage.judgments.columns import (
    join_scores,
    read_steps,
    read_substeps,
    starts,
    step_rows,
    unsaid,
    within,
)
from stepsight.storage.judgments.evaluators import outputs_of_evaluator, thresholds_in_force
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
    """The gold labels of all steps of a dataset, trace by trace.

    `label` and `valid` are those of the steps, and `substeps` their sub-step counts. `kinds` holds each label as an
    index into `STEP_GOLD`, or `SILENT` for a step without a gold label. `solutions` has shape (n,) and holds the
    gold of each solution as an index into `SOLUTION_GOLD`, or `SILENT` if too few steps are labelled. `labelled`
    has shape (n,) and is True if the gold labels name a first error, or call every step valid.
    """

    label: NDArray[np.int8]
    valid: NDArray[np.int8]
    substeps: NDArray[np.int32]
    kinds: NDArray[np.int8]
    solutions: NDArray[np.int8]
    labelled: Bools

    @property
    def nbytes(self) -> int:
        return sum(getattr(self, column.name).nbytes for column in fields(self))


def read_step_gold(session: Session, traces: TraceColumns) -> StepGold:
    """Read the gold labels of all steps of a dataset."""
    label, valid = read_steps(session, traces.trace_ids, traces.steps)
    substeps = read_substeps(session, traces.trace_ids, traces.steps.astype(np.int64), traces.substeps)
    kinds = np.select([valid == 0, label == Label.NEU, valid == 1], range(len(STEP_GOLD)), SILENT)
    first = starts(traces.steps)
    redundant, wrong = (_any(hit, first) for hit in (label == Label.NEU, valid == 0))
    unlabelled, unknown = (_any(hit, first) for hit in (label == SILENT, valid != 1))
    solutions = np.select([redundant, ~unlabelled], range(len(SOLUTION_GOLD)), SILENT)
    return StepGold(label, valid, substeps, kinds.astype(np.int8), solutions.astype(np.int8), wrong | ~unknown)


def _any(hit: Bools, first: Ints) -> Bools:
    """Return, for each trace, whether one of its steps is hit. `first` has the index of each trace's first step."""
    met: Bools = np.logical_or.reduceat(hit, first) if len(first) else np.zeros(0, np.bool_)
    return met


def read_verdicts(
    session: Session, traces: TraceColumns, gold: StepGold, dataset_id: int, evaluator_id: int
) -> dict[Mode, VerdictColumns]:
    """Return an evaluator's online and offline verdicts at the thresholds in force. `change` comes from hindsight
    judgments."""
    outputs, cut = outputs_of_evaluator(session, evaluator_id), thresholds_in_force(session, evaluator_id)
    change = np.full(len(traces), np.nan, np.float32)
    row = TriangleRow
    changes = select(row.trace_id, func.substr(row.digest, 1, 16), row.change)
    changes = changes.where(row.evaluator_id == evaluator_id, row.dataset_id == dataset_id)
    ids, digests, values = read_columns(session, changes)
    places, fresh = find_fresh(traces, ids, digests)
    change[places] = np.array(values, np.float32)[fresh]
    return {
        mode: _verdicts(
            read_scores(session, traces, gold, dataset_id, evaluator_id, mode), traces, gold, outputs, cut, change
        )
        for mode in (Mode.ONLINE, Mode.OFFLINE)
    }


@dataclass(frozen=True, eq=False)
class StepScoreColumns:
    """An evaluator's scores of the steps of `m` traces, trace by trace.

    `places` holds the indices of the traces, `counts` their step counts and `solution` the scores of the whole
    solutions, NaN where there is none; all have shape (m,). `steps` holds the indices of the steps in the dataset,
    `probs` the probabilities of the least valid sub-step of each, `redundancy` the greatest among its sub-steps,
    and `validity` is NaN where a sub-step has no scores.
    """

    places: Ints
    counts: Ints
    solution: Floats32
    steps: Ints
    probs: Floats32
    validity: Floats32
    redundancy: Floats32


def read_scores(
    session: Session, traces: TraceColumns, gold: StepGold, dataset_id: int, evaluator_id: int, mode: Mode
) -> StepScoreColumns:
    """Read an evaluator's up-to-date scores of the steps of a dataset in a mode."""
    row = JudgmentRow
    statement = select(row.trace_id, func.substr(row.digest, 1, 16), row.scores, row.solution).where(
        row.evaluator_id == evaluator_id, row.dataset_id == dataset_id, row.mode == mode.value
    )
    ids, digests, blobs, solutions = read_columns(session, statement)
    return _by_step(traces, gold, ids, digests, blobs, np.array(solutions, np.float32))


def read_end_scores(
    session: Session, traces: TraceColumns, gold: StepGold, dataset_id: int, evaluator_id: int
) -> tuple[StepScoreColumns, StepScoreColumns]:
    """Read the online and the offline ends of an evaluator's up-to-date hindsight judgments of a dataset."""
    row = TriangleRow
    statement = select(row.trace_id, func.substr(row.digest, 1, 16), row.online, row.offline).where(
        row.evaluator_id == evaluator_id, row.dataset_id == dataset_id
    )
    ids, digests, *ends = read_columns(session, statement)
    nothing = np.full(len(ids), np.nan, np.float32)
    online, offline = (_by_step(traces, gold, ids, digests, blobs, nothing) for blobs in ends)
    return online, offline


def find_fresh(traces: TraceColumns, ids: Sequence[int], digests: Sequence[str]) -> tuple[Ints, Ints]:
    """Return the indices of those of the traces `ids` whose beginnings of digests are current, in file order, and
    their indices in `ids`."""
    if not len(traces):
        return np.empty(0, np.int64), np.empty(0, np.int64)
    places = traces.places(np.array(ids, np.int64))
    fresh = np.flatnonzero((places != SILENT) & (np.array(digests, "S16") == traces.digests[places]))
    fresh = fresh[np.argsort(places[fresh], kind="stable")]
    return places[fresh], fresh


def _by_step(
    traces: TraceColumns,
    gold: StepGold,
    ids: Sequence[int],
    digests: Sequence[str],
    blobs: Sequence[bytes],
    solution: Floats32,
) -> StepScoreColumns:
    places, fresh = find_fresh(traces, ids, digests)
    probs = join_scores([blobs[place] for place in fresh], traces.substeps[places])
    counts = traces.steps[places].astype(np.int64)
    steps = np.repeat(starts(traces.steps)[places], counts) + within(counts)
    owners = np.repeat(np.arange(len(steps)), gold.substeps[steps])
    if len(owners) == len(steps):
        least, redundancy, silent = np.arange(len(steps)), probs[:, Label.NEU], unsaid(probs)
    else:
        least, redundancy, silent = step_rows(probs, owners)
    of_steps = probs[least]
    validity = np.where(silent, np.float32(np.nan), of_steps[:, Label.NEU] + of_steps[:, Label.POS])
    return StepScoreColumns(places, counts, solution[fresh], steps, of_steps, validity, redundancy)


def read_validities(session: Session, dataset_id: int, evaluator_ids: Sequence[int]) -> tuple[Ints, Floats32]:
    """Return the trace ids of a dataset and the validities that evaluators gave to its solutions.

    The arrays have shapes (n,) and (evaluators, n). A validity comes from the standing offline judgment or, failing
    that, the online one. It is NaN if there is neither.
    """
    traces = read_trace_columns(session, dataset_id)
    gold = read_step_gold(session, traces)
    validities = np.full((len(evaluator_ids), len(traces)), np.nan, np.float32)
    for place, evaluator_id in enumerate(evaluator_ids):
        validities[place], _ = read_solution_verdicts(session, traces, gold, dataset_id, evaluator_id)
    return traces.trace_ids, validities


def read_solution_verdicts(
    session: Session, traces: TraceColumns, gold: StepGold, dataset_id: int, evaluator_id: int
) -> tuple[Floats32, NDArray[np.int8]]:
    """Return an evaluator's `validity` and `valid` of every solution, as `VerdictColumns` describes them: offline
    or, where that is missing, online."""
    verdicts = read_verdicts(session, traces, gold, dataset_id, evaluator_id)
    online, offline = verdicts[Mode.ONLINE], verdicts[Mode.OFFLINE]
    validity = np.where(np.isnan(offline.validity), online.validity, offline.validity)
    return validity, np.where(offline.valid == SILENT, online.valid, offline.valid)


def cell_bit(gold: Label, called: Label) -> int:
    """Return the bit of `cells` for a step with the gold label `gold` and the evaluator's label `called`."""
    return 1 << (len(Label) * gold + called)


def _verdicts(
    scores: StepScoreColumns,
    traces: TraceColumns,
    gold: StepGold,
    outputs: Outputs,
    cut: Thresholds,
    change: Floats32,
) -> VerdictColumns:
    """Return the verdicts of one mode at the given thresholds.

    Validities and thresholds are compared in single precision, so that a validity equal to its threshold passes.
    """
    n, at, step_validity = len(traces), scores.places, scores.validity
    least, whole, redundancy = (np.full(n, np.nan, np.float32) for _ in range(3))
    first_wrong, unscored = (np.full(n, SILENT, np.int32) for _ in range(2))
    labelled, cells = np.zeros(n, np.bool_), np.zeros(n, np.uint16)
    bins = np.full(int(traces.steps.sum()), SILENT, np.int8)
    if len(at):
        first, place = starts(scores.counts), within(scores.counts)
        least[at] = np.minimum.reduceat(step_validity, first)
        redundancy[at] = np.maximum.reduceat(scores.redundancy, first)
        whole[at], labelled[at] = scores.solution, gold.labelled[at]
        # A step counts as wrong below the threshold, or by its word.
        wrong = step_validity < np.float32(_WORD_THRESHOLD if outputs.in_words else cut.validity)
        for column, hit in ((first_wrong, wrong), (unscored, np.isnan(step_validity))):
            found = np.minimum.reduceat(np.where(hit, place, len(place)), first)
            column[at] = np.where(found == len(place), SILENT, found)
        label, called = gold.label[scores.steps], scores.probs.argmax(axis=1)
        bit = np.left_shift(1, len(Label) * np.maximum(label, 0).astype(np.int64) + called)
        read = (label != SILENT) & ~np.isnan(step_validity)
        cells[at] = np.bitwise_or.reduceat(np.where(read, bit, 0), first)
        bins[scores.steps] = bins_of(step_validity)
    first_error, least_redundancy = traces.first_error, np.float32(cut.redundancy)
    comparable = labelled & knows_first_error(first_error, first_wrong, unscored, outputs)
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
        # Verdicts on redundancy say nothing of validity.
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
        first_wrong=first_wrong,
        mistake=outcome_codes(first_error, first_wrong, comparable),
        cells=cells,
        bins=bins,
    )
