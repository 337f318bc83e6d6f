"""The trivial baselines: evaluators that do not read what a step says.

Whatever does not beat them has learnt nothing of mathematics. On benchmarks whose labelled steps end at the first
error (PRM800K) `baseline:last-step` is nearly perfect offline: such traces show their error by their missing
ending.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from stepsight.core.arrays import Bools, Floats64
from stepsight.core.errors import UserError
from stepsight.core.judgment import Mode
from stepsight.core.scores import Outputs, StepScores
from stepsight.core.trace import Trace

PREFIX = "baseline:"

# Where validity is one half: a step of so many characters, or so many steps before it.
_LENGTH = 500
_POSITION = 10

_ANSWER = re.compile(r"# Answer|\\boxed|answer is", re.IGNORECASE)


@dataclass(frozen=True)
class Baseline:
    """`validity(trace, last)` gives `s_val` of each step, shape (n,); `last` tells of each step whether it is the
    last that is seen: all of them online."""

    name: str
    says: str
    validity: Callable[[Trace, Bools], Floats64]

    @property
    def outputs(self) -> Outputs:
        return Outputs.VALIDITY

    @property
    def fingerprint(self) -> str:
        return self.name

    def score(self, trace: Trace, mode: Mode) -> StepScores:
        """What it says of each sub-step of a trace, online or offline."""
        last = np.ones(len(trace.steps), np.bool_)
        if mode != Mode.ONLINE:
            last[:-1] = False
        validity = self.validity(trace, last)[trace.owners]
        return StepScores(np.stack([1 - validity, 0 * validity, validity], axis=1))


def _constant(trace: Trace, last: Bools) -> Floats64:
    return np.full(len(trace.steps), 0.5)


def _position(trace: Trace, last: Bools) -> Floats64:
    found: Floats64 = 1 / (1 + np.arange(len(trace.steps)) / _POSITION)
    return found


def _length(trace: Trace, last: Bools) -> Floats64:
    """By the characters of the sub-steps joined by newlines: the longer, the less valid."""
    found: Floats64 = 1 / (1 + np.array([len(step.text) for step in trace.steps]) / _LENGTH)
    return found


def _last_step(trace: Trace, last: Bools) -> Floats64:
    answers = np.array([bool(_ANSWER.search(step.text)) for step in trace.steps])
    return np.where(last & ~answers, 0.0, 1.0)


BASELINES = {
    baseline.name: baseline
    for baseline in (
        Baseline(f"{PREFIX}constant", "every step alike", _constant),
        Baseline(f"{PREFIX}position", "the later, the less valid", _position),
        Baseline(f"{PREFIX}length", "the longer, the less valid", _length),
        Baseline(f"{PREFIX}last-step", "a last step without an answer is wrong", _last_step),
    )
}


def find_baseline(name: str) -> Baseline:
    """The baseline of that name. Raises `UserError` naming those there are."""
    if name not in BASELINES:
        raise UserError(f"there is no baseline {name!r}.", f"The baselines are {', '.join(BASELINES)}.")
    return BASELINES[name]
