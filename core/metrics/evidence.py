"""How well an evaluator's evidence matches what benchmarks and people say about it.

Needed steps: the fall of a step is the largest fall in the validity of a later step when the step is left out
(`core.evidence.Dependence.largest_falls`). A benchmark's gold labels say which steps are needed, and the AUC, with
an interval over problems, how well falls distinguish them from other steps. The measure is our own.

Links: a person who changes a label once a later step is in view says which step changed it. The evaluator's
evidence for a step is the later step at which its verdict changes most. The measure is the share of named steps
among the evaluator's top 1 and top 3, compared with two controls: the step right after, and a step drawn by chance.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from stepsight.core.arrays import Floats64, Ints
from stepsight.core.metrics.binary import auc
from stepsight.core.metrics.bootstrap import Value, mean, resamples
from stepsight.core.metrics.table import Items
from stepsight.core.scores import Hindsight
from stepsight.core.trace import Trace

LabelledFall = tuple[str, float, bool]
"""The problem of a step, the fall in validity when it is left out, and whether its gold label calls it needed."""


@dataclass(frozen=True)
class NeededSteps:
    """The AUC with which falls in validity distinguish needed steps from other steps, with the number of needed
    steps, of other steps and of problems."""

    auc: Value
    needed: int
    others: int
    problems: int


def measure_falls(falls: Iterable[LabelledFall]) -> NeededSteps:
    """Measure how well labelled falls distinguish needed steps from other steps. A tie counts one half.

    The 95 % interval comes from resamples of problems, since the steps of one problem are alike. The AUC is
    undefined if all steps are needed or no step is.
    """
    listed = list(falls)
    # The order does not depend on that of the file.
    problems = {problem: place for place, problem in enumerate(sorted({problem for problem, _, _ in listed}))}
    needed = np.array([is_needed for _, _, is_needed in listed], np.bool_)
    scores = np.array([fall for _, fall, _ in listed], np.float64)
    items = Items(scores, needed, needed, np.array([problems[problem] for problem, _, _ in listed], np.int64))
    value = auc(items, resamples(len(problems)))
    return NeededSteps(value, int(needed.sum()), int((~needed).sum()), len(problems))


TOP = (1, 3)
"""The numbers of later steps among which the named one may be."""


@dataclass(frozen=True)
class EvidenceHits:
    """The hits on `links` links of `traces` traces, for each number of top-ranked steps in `TOP`.

    `hit` is the share of links whose named step is among these. `above_next` and `above_chance` are its differences
    from naming the steps right after, and from naming random steps.
    """

    links: int
    traces: int
    hit: dict[int, Value]
    above_next: dict[int, Value]
    above_chance: dict[int, Value]


def step_changes(hindsight: Hindsight, trace: Trace, step: int) -> Floats64:
    """Return how far the validity of `step` moves as each later step is revealed, in absolute terms, with shape
    (later steps,). The validity of a step is the least of its sub-steps."""
    own = np.flatnonzero(trace.owners == step)
    ends = np.flatnonzero(np.diff(trace.owners, append=len(trace.steps)))[step:]
    rows = (hindsight.rows[end][own, 1:].sum(axis=1).min() for end in ends)
    return np.abs(np.diff(np.fromiter(rows, np.float64, len(ends))))


def hit(changes: Floats64, named: int, first: int) -> float:
    """Return the chance that the later step `named`, counted from 0, is among the `first` ones with the largest
    changes. Equal changes are ordered at random, so an evaluator whose verdicts never change is right by chance."""
    above = int((changes > changes[named]).sum())
    equal = int((changes == changes[named]).sum())
    return float(np.clip((first - above) / equal, 0.0, 1.0))


def evidence_hits(changes: Sequence[Floats64], named: Sequence[int], trace: Ints, draws: int) -> EvidenceHits:
    """Measure hits on links, with intervals from `draws` resamples of the traces.

    `changes` holds the result of `step_changes` for the step of each link, and `named` the later step that it
    names, counted from 0. `trace` has shape (links,) and numbers the traces without a gap. There has to be at least
    one link.
    """
    weights = resamples(int(trace.max()) + 1, draws)
    values: dict[str, dict[int, Value]] = {"hit": {}, "above_next": {}, "above_chance": {}}
    for first in TOP:
        pairs = list(zip(changes, named, strict=True))
        hits = np.array([hit(change, step, first) for change, step in pairs])
        following = np.array([float(step < first) for step in named])
        chance = np.array([min(first / len(later), 1.0) for later in changes])
        for name, numbers in (("hit", hits), ("above_next", hits - following), ("above_chance", hits - chance)):
            values[name][first] = mean(numbers, trace, weights)
    return EvidenceHits(len(named), len(np.unique(trace)), **values)
