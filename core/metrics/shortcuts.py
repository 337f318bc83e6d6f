"""Shortcuts: how far one gets without reading the mathematics of a step.

A baseline is an evaluator that does not read the steps. An evaluator that does not beat it has learnt no
mathematics. On benchmarks whose labelled steps end at the first error, such as PRM800K, `baseline:last-step` is
nearly perfect offline: a trace whose last step states no answer ends with an error.

The other measures tell how closely the scores of steps follow their length and position, beyond what gold explains.
A long step is wrong more often than a short one, so that a good evaluator's scores fall with length too. Beyond
gold, the correlation is therefore taken within gold's classes: the ranks of scores and of lengths, each minus its
mean in the class, are correlated over all classes together (Spearman's correlation, adjusted for gold). Every
resample has the ranks of the whole sample.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from stepsight.core.arrays import AnyInts, Bools, Floats64
from stepsight.core.errors import UserError
from stepsight.core.judgment import Mode
from stepsight.core.metrics.bootstrap import Value, Weights, interval, mean, weighted_totals
from stepsight.core.metrics.table import SILENT, StepTable
from stepsight.core.scores import Outputs, StepScores
from stepsight.core.trace import Step, Trace

_NO_SCORES = "no solution of several steps has a score on each"


def rank_correlation(
    first: Floats64,
    second: Floats64,
    trace: AnyInts,
    weights: Weights,
    group: AnyInts | None = None,
    lacking: str = "all scores or all lengths are the same",
) -> Value:
    """Return the rank correlation of two numbers of steps within groups, from -1 to 1, with its interval over
    traces.

    All arrays have the shape (n,): `group` numbers the group of each step, and `trace` its trace. Without groups,
    this is Spearman's correlation. It is undefined, with `lacking` as the reason, if one of the two does not vary
    within any group.
    """
    x, y = (_ranks(numbers) - (len(numbers) + 1) / 2 for numbers in (first, second))
    present, place = np.unique(np.zeros(len(x)) if group is None else group, return_inverse=True)
    sums = np.zeros((weights.shape[1], len(present), 6))
    np.add.at(sums, (trace, place), np.stack([np.ones(len(x)), x, y, x * x, y * y, x * y], axis=1))
    (number,), draws = (
        _within_groups(weighted_totals(sums.reshape(len(sums), -1), drawn).reshape(-1, len(present), 6))
        for drawn in (np.ones_like(weights[:1]), weights)
    )
    if np.isnan(number):
        return Value.none(lacking)
    value = Value(float(number), draws=draws)
    return interval(value, draws) if np.ptp(trace) else value


def _ranks(numbers: Floats64) -> Floats64:
    """Return the rank of each number, from 1; equal numbers share the mean of their ranks.

    SciPy's `rankdata` does the same, but its import takes longer than most measurements.
    """
    _, place, counts = np.unique(numbers, return_inverse=True, return_counts=True)
    means: Floats64 = counts.cumsum() - (counts - 1) / 2
    return means[place]


def _within_groups(sums: Floats64) -> Floats64:
    """Return the pooled correlation of each row, given the sums of 1, x, y, x², y² and xy in each group. The shape
    of `sums` is (rows, groups, 6)."""
    count, x, y, xx, yy, xy = np.moveaxis(sums, -1, 0)
    with np.errstate(invalid="ignore", divide="ignore"):
        squares, others, products = (
            np.nansum(total - left * right / count, axis=1)
            for total, left, right in ((xx, x, x), (yy, y, y), (xy, x, y))
        )
        varies = (squares > 1e-6) & (others > 1e-6)
        return np.where(varies, products / np.sqrt(squares * others), np.nan)


def last_is_least(table: StepTable, weights: Weights) -> Value:
    """Return the share of solutions whose last step has the least validity of all. If `k` steps tie, including the
    last one, the solution counts `1 / k`. Solutions of one step, or with a step without a score, do not count."""
    traces, validity = _of_several(table)
    starts = np.searchsorted(traces, np.unique(traces))
    if not len(starts):
        return Value.none(_NO_SCORES)
    least = np.minimum.reduceat(validity, starts)
    ties = np.add.reduceat(validity == np.repeat(least, np.diff([*starts, len(traces)])), starts)
    is_last = validity[np.append(starts[1:], len(traces)) - 1] == least
    return mean(is_last / ties, traces[starts], weights)


def last_by_chance(table: StepTable, weights: Weights) -> Value:
    """Return the share that `last_is_least` would have if scores were drawn at random."""
    traces, _ = _of_several(table)
    present, counts = np.unique(traces, return_counts=True)
    return mean(1 / counts, present, weights, _NO_SCORES)


def error_is_last(table: StepTable, weights: Weights) -> Value:
    """Return the share of solutions whose first error by gold is their last step, among those with an error and
    several steps."""
    first = table.first_errors()
    last = np.bincount(table.trace, minlength=table.traces) - 1
    chosen = np.flatnonzero((first != SILENT) & (last > 0))
    return mean((first == last)[chosen], chosen, weights, "gold has no error in a solution of several steps")


def _of_several(table: StepTable) -> tuple[AnyInts, Floats64]:
    """Return the trace and the validity of the steps of solutions that have several steps and a score on every
    step."""
    validity = table.validity.astype(np.float64)
    counts = np.bincount(table.trace, minlength=table.traces)
    silent = np.bincount(table.trace, np.isnan(validity), table.traces)
    kept = ((counts > 1) & (silent == 0))[table.trace]
    return table.trace[kept], validity[kept]


PREFIX = "baseline:"

# A validity of one half: for a step with this many characters, or this many steps before it.
_LENGTH = 500
_POSITION = 10

_ANSWER = re.compile(r"# Answer|\\boxed|answer is", re.IGNORECASE)


@dataclass(frozen=True)
class Baseline:
    """A rule that scores steps without reading them.

    `validity(trace, last)` returns `s_val` for each step, with shape (n,). `last[i]` is True if step `i` is the
    last visible step when it is judged; online, that is true of every step. Only baselines with `by_mode` set use
    `last`. `reads` describes in words the property that the rule looks at. If `of_substeps` is True, every sub-step
    counts as a step.
    """

    name: str
    reads: str
    validity: Callable[[Trace, Bools], Floats64]
    of_substeps: bool = False
    by_mode: bool = False

    @property
    def outputs(self) -> Outputs:
        return Outputs.VALIDITY

    @property
    def fingerprint(self) -> str:
        return self.name

    def score(self, trace: Trace, mode: Mode) -> StepScores:
        """Score each sub-step of a trace online or offline."""
        if self.of_substeps:
            trace = Trace(trace.id, trace.problem, tuple(Step((text,)) for text in trace.substeps))
        last = np.ones(len(trace.steps), np.bool_)
        if mode != Mode.ONLINE:
            last[:-1] = False
        validity = self.validity(trace, last)[trace.owners]
        return StepScores(np.stack([1 - validity, 0 * validity, validity], axis=1))


def _constant(trace: Trace, last: Bools) -> Floats64:
    """Give every step the same validity."""
    return np.full(len(trace.steps), 0.5)


def _position(trace: Trace, last: Bools) -> Floats64:
    """Give later steps a lower validity."""
    validity: Floats64 = 1 / (1 + np.arange(len(trace.steps)) / _POSITION)
    return validity


def _length(trace: Trace, last: Bools) -> Floats64:
    """Give longer steps a lower validity. Length is the number of characters, with sub-steps joined by newlines."""
    validity: Floats64 = 1 / (1 + np.array([len(step.text) for step in trace.steps]) / _LENGTH)
    return validity


def _last_step(trace: Trace, last: Bools) -> Floats64:
    """Give a step validity 0 if it is the last visible step and states no answer, and validity 1 otherwise."""
    answers = np.array([bool(_ANSWER.search(step.text)) for step in trace.steps])
    return np.where(last & ~answers, 0.0, 1.0)


def _named(*baselines: Baseline) -> dict[str, Baseline]:
    return {baseline.name: baseline for baseline in baselines}


BASELINES = _named(
    Baseline(f"{PREFIX}constant", "a constant", _constant),
    Baseline(f"{PREFIX}position", "the position of a step", _position),
    Baseline(f"{PREFIX}length", "the length of a step", _length),
    Baseline(f"{PREFIX}last-step", "whether a step is the last", _last_step, by_mode=True),
)
"""Baselines of whole steps; the sub-steps of a benchmark are joined."""

OF_SUBSTEPS = _named(
    Baseline(f"{PREFIX}substep-position", "the position of a sub-step", _position, of_substeps=True),
    Baseline(f"{PREFIX}substep-length", "the length of a sub-step", _length, of_substeps=True),
    Baseline(f"{PREFIX}last-substep", "whether a sub-step is the last", _last_step, of_substeps=True, by_mode=True),
)
"""The same baselines of sub-steps. They differ only if some step has several; such a step then has the least
validity of its sub-steps, as with any evaluator."""

ALL = BASELINES | OF_SUBSTEPS


def baselines_of(*, has_substeps: bool) -> list[Baseline]:
    """Return the baselines that give different scores on a dataset. `has_substeps` is True if any step in the
    dataset has several sub-steps."""
    return list((ALL if has_substeps else BASELINES).values())


def find_baseline(name: str) -> Baseline:
    """Return the baseline with this name. Raises `UserError` if there is none."""
    if name not in ALL:
        raise UserError(f"there is no baseline {name!r}.", f"The baselines are {', '.join(ALL)}.")
    return ALL[name]
