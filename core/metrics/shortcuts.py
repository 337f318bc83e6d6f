"""Shortcuts: how far one gets without reading the mathematics of a step.

A baseline is an evaluator that does not read the steps. An evaluator that does not beat it has learnt no
mathematics. On benchmarks whose labelled steps end at the first error, such as PRM800K, `baseline:last-step` is
nearly perfect offline: a trace whose last step states no answer ends with an error.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from stepsight.core.arrays import Bools, Floats64
from stepsight.core.errors import UserError
from stepsight.core.judgment import Mode
from stepsight.core.scores import Outputs, StepScores
from stepsight.core.trace import Step, Trace

PREFIX = "baseline:"

# A step with this many characters, or with this many steps before it, has a validity of one half.
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
    return 1 / (1 + np.arange(len(trace.steps)) / _POSITION)


def _length(trace: Trace, last: Bools) -> Floats64:
    """Give longer steps a lower validity. Length is the number of characters, with sub-steps joined by newlines."""
    return 1 / (1 + np.array([len(step.text) for step in trace.steps]) / _LENGTH)


def _last_step(trace: Trace, last: Bools) -> Floats64:
    """Give a step validity 0 if it is the last visible step and states no answer, and validity 1 otherwise."""
    answers = np.array([bool(_ANSWER.search(step.text)) for step in trace.steps])
    return np.where(last & ~answers, 0.0, 1.0)


def _by_name(*baselines: Baseline) -> dict[str, Baseline]:
    return {baseline.name: baseline for baseline in baselines}


BASELINES = _by_name(
    Baseline(f"{PREFIX}constant", "a constant", _constant),
    Baseline(f"{PREFIX}position", "the position of a step", _position),
    Baseline(f"{PREFIX}length", "the length of a step", _length),
    Baseline(f"{PREFIX}last-step", "whether a step is the last", _last_step, by_mode=True),
)
"""Baselines of whole steps; the sub-steps of a benchmark are joined."""

OF_SUBSTEPS = _by_name(
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
