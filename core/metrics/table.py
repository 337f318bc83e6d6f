"""The step table, from which every metric is computed, and the items of two-class metrics.

A step table holds the gold labels and scores of many traces as columns, with one row per step. An item is a step or
a solution.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np

from stepsight.core.arrays import AnyInts, Bools, Floats32, Floats64, Ints
from stepsight.core.scores import StepScores
from stepsight.core.trace import VALID, Label, Trace

_OF_STEPS = ("trace", "position", "label", "valid", "redundancy", "probs", "share")

SILENT = -1
"""Stands for a missing gold label or first error."""


NO_ITEMS = "there is nothing to measure"
ONE_CLASS = "the gold has one class only"
NO_SCORES = "the evaluator gives no scores to rank by"


@dataclass(frozen=True, eq=False)
class StepTable:
    """The gold labels and scores of the `n` steps of `len(ids)` traces, as columns.

    Columns of shape (n,): `trace` is the index of the step's trace in `ids`, and `position` the step's 0-based
    position in that trace; `label` is 0, 1, 2 or `SILENT`; `valid` is 0, 1 or `SILENT`; `redundancy` is the
    greatest `s_red` of the step's sub-steps. `probs` has the shape (n, 3) and holds the probabilities of the step's
    least valid sub-step. `redundancy` and `probs` are NaN if the evaluator gave no scores. Scores have the
    precision in which they are stored, and metrics are computed from them in double precision. Columns of shape
    (traces,): `solution` is the evaluator's own score of the whole solution, or NaN; `groups` is the trace's class
    in the benchmark, or "". `share` holds the soft label of each step, or NaN; it is None if no step has one.
    """

    ids: tuple[str, ...]
    trace: AnyInts
    position: AnyInts
    label: AnyInts
    valid: AnyInts
    redundancy: Floats32
    probs: Floats32
    solution: Floats64
    groups: tuple[str, ...]
    share: Floats64 | None = None

    def __len__(self) -> int:
        return len(self.trace)

    @property
    def traces(self) -> int:
        return len(self.ids)

    @property
    def nbytes(self) -> int:
        """The size of the table's numbers in bytes, including those shared with other tables."""
        columns = (getattr(self, name) for name in (*_OF_STEPS, "solution"))
        return sum(column.nbytes for column in columns if column is not None)

    @property
    def validity(self) -> Floats32:
        """The least `s_val` among each step's sub-steps, with shape (n,)."""
        return self.probs[:, Label.NEU] + self.probs[:, Label.POS]

    def first_errors(self) -> Ints:
        """Return the first wrong step of each trace according to the gold labels, 0-based, or `SILENT` if there is
        none."""
        return self.first(self.valid == 0)

    def first(self, hit: Bools) -> Ints:
        """Return the first step of each trace for which `hit` is True, 0-based, or `SILENT` if there is none. `hit`
        has one flag per row."""
        first = np.full(self.traces, SILENT, np.int64)
        rows = np.flatnonzero(hit)[::-1]
        first[self.trace[rows]] = self.position[rows]
        return first

    @property
    def present(self) -> Bools:
        """True for each trace that has at least one step in the table. The shape is (traces,)."""
        return np.bincount(self.trace, minlength=self.traces) > 0

    def where(self, chosen: Bools) -> "StepTable":
        """Return the table restricted to the chosen steps. The per-trace columns are unchanged."""
        if chosen.all():
            return self
        columns = {name: column[chosen] for name in _OF_STEPS if (column := getattr(self, name)) is not None}
        return replace(self, **columns)


def build_table(judged: Iterable[tuple[Trace, StepScores | None]]) -> StepTable:
    """Build the step table of traces and their scores, without scores of whole solutions and without groups. It
    holds no texts of the traces.

    The scores of a trace have one row per sub-step, or are None if the steps have no scores. Raises `ValueError` if
    the rows of a trace do not match its sub-steps.
    """
    ids: list[str] = []
    gold: list[tuple[int, int, float]] = []
    numbers, counts = [np.empty((0, 4), np.float32)], []
    for trace, scores in judged:
        ids.append(trace.id)
        counts.append(len(trace.steps))
        gold += [
            (
                SILENT if step.label is None else int(step.label),
                SILENT if step.valid is None else int(step.valid),
                np.nan if step.share is None else step.share,
            )
            for step in trace.steps
        ]
        numbers.append(_scores(trace, scores))
    label, valid, share = np.array(gold, np.float64).reshape(-1, 3).T
    columns, count = np.concatenate(numbers), np.array(counts, np.int64)
    return StepTable(
        ids=tuple(ids),
        trace=np.repeat(np.arange(len(ids)), count),
        position=np.arange(len(columns)) - np.repeat(np.cumsum(count) - count, count),
        label=label.astype(np.int64),
        valid=valid.astype(np.int64),
        redundancy=columns[:, 0],
        probs=columns[:, 1:],
        solution=np.full(len(ids), np.nan),
        groups=("",) * len(ids),
        share=None if np.isnan(share).all() else share,
    )


class Third(StrEnum):
    """The early, middle or late third of a solution's labelled steps.

    Step `i` of `n`, counted from 0, belongs to third number `floor(3 i / n)`. The paper does not define its
    positional buckets. The rule is inferred from its appendix B on PRM800K, whose labels stop at the first error:
    there the early bucket has no neg, and the other two have all three classes. Counting over the whole solution,
    or by the middle of a step, gives a different pattern.
    """

    EARLY = "early"
    MIDDLE = "middle"
    LATE = "late"


def by_third(table: StepTable, chosen: Bools | None = None) -> dict[Third, StepTable]:
    """Split the labelled steps of all solutions into early, middle and late thirds. If `chosen` is given, only the
    steps it marks are kept, after the split.

    With three labelled steps there is one in each third. A single labelled step is early.
    """
    labelled = (table.label != SILENT) | (table.valid != SILENT)
    rows = table.trace[labelled]
    # Rows are in the order of their traces.
    place = np.arange(len(rows)) - np.searchsorted(rows, rows)
    third = np.full(len(table), SILENT, np.int64)
    third[labelled] = thirds(place, np.bincount(rows, minlength=table.traces)[rows])
    shown = labelled if chosen is None else labelled & chosen
    return {name: table.where(shown & (third == index)) for index, name in enumerate(Third)}


def thirds(position: AnyInts, count: AnyInts) -> AnyInts:
    """Return the index of the `Third` for each 0-based `position` among `count` labelled steps, with shape (n,)."""
    return 3 * position // np.maximum(count, 1)


def retroactive(online: StepTable, offline: StepTable) -> Floats64:
    """Return the offline minus the online validity of each step, with shape (n,). Raises `ValueError` if the two
    tables do not have the same steps."""
    if online.ids != offline.ids or len(online) != len(offline):
        raise ValueError("the tables are of different traces")
    return offline.validity.astype(np.float64) - online.validity


def by_change(table: StepTable, change: Floats64, least: float = 0.1) -> dict[str, StepTable]:
    """Group the steps into those whose validity fell by at least `least`, rose by at least `least`, or changed by
    less. The keys are `fell`, `rose` and `stayed`."""
    kinds = {"fell": change <= -least, "rose": change >= least}
    stayed = ~(kinds["fell"] | kinds["rose"])
    return {name: table.where(hit) for name, hit in (kinds | {"stayed": stayed}).items()}


def _scores(trace: Trace, scores: StepScores | None) -> Floats32:
    """Return four columns for the steps of a trace: redundancy, neg, neu and pos. A step with an unscored sub-step
    has NaN."""
    if scores is None:
        return np.full((len(trace.steps), 4), np.nan, np.float32)
    if len(scores) != len(trace.substeps):
        raise ValueError(f"{len(scores)} rows for {len(trace.substeps)} sub-steps of trace {trace.id!r}")
    owners = trace.owners
    least = scores.by_step(owners)
    redundancy = np.zeros(len(trace.steps), np.float32)
    np.maximum.at(redundancy, owners, scores.redundancy)
    silent = np.zeros(len(trace.steps), np.bool_)
    np.logical_or.at(silent, owners, scores.probs.sum(axis=1) == 0)
    columns = np.column_stack([redundancy, least.probs])
    columns[silent] = np.nan
    return columns


def gold_of_codes(label: int, valid: int) -> str | None:
    """Like `Step.gold`, but takes the `label` and `valid` of a step as codes in a table."""
    if label != SILENT:
        return Label(label).text
    return None if valid == SILENT else VALID if valid else Label.NEG.text


def codes_of_gold(gold: str | None) -> tuple[int, int]:
    """Return the codes of `label` and `valid` of a step whose gold is `gold`."""
    if gold is None or gold == VALID:
        return SILENT, SILENT if gold is None else 1
    label = Label[gold.upper()]
    return int(label), int(label != Label.NEG)


@dataclass(frozen=True, eq=False)
class Items:
    """The `n` steps or solutions from which a two-class metric is computed.

    Each array has the shape (n,). `scores` are higher for the positive class, or NaN if the evaluator gives no
    scores. `trace` is the index of the item's trace. A prediction that cannot be read is stored as the opposite of
    the gold label, as in ReasonEval's protocol.
    """

    scores: Floats64
    gold: Bools
    predicted: Bools
    trace: AnyInts

    def __len__(self) -> int:
        return len(self.gold)

    @property
    def problem(self) -> str:
        """The reason why metrics of the predictions are undefined, or "" if they are defined."""
        if not len(self):
            return NO_ITEMS
        return ONE_CLASS if self.gold.all() or not self.gold.any() else ""

    @property
    def ranking_problem(self) -> str:
        """The reason why metrics of the scores are undefined, or "" if they are defined."""
        return self.problem or (NO_SCORES if np.isnan(self.scores).any() else "")

    def where(self, chosen: Bools) -> "Items":
        """Return only the items for which `chosen` is True."""
        return Items(self.scores[chosen], self.gold[chosen], self.predicted[chosen], self.trace[chosen])
