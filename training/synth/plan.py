"""A planned solution: everything that a trace may say, before it is drawn which checks and redundant steps it gets.

Texts are functions, as a trace shows only a part of what its plan offers. Whatever they need is drawn when the plan
is made.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

StatedValues = Mapping[str, str]
"""What a step says of the quantities of the problem: values, exact, by key."""

Wording = Callable[[bool], str]
"""The text of a step; true: as it stands where the solution has been corrected, so without the error."""


@dataclass(frozen=True)
class SolutionStep:
    """A step of the solution, with the values it states: with the error, where there is one, and corrected."""

    text: Wording
    values: StatedValues = field(default_factory=dict)
    corrected_values: StatedValues = field(default_factory=dict)


@dataclass(frozen=True)
class Check:
    """A truthful test of solution step `target`. `settles`: its outcome tells whether the focus is wrong."""

    kind: str
    target: int
    text: Callable[[], str]
    passes: bool
    settles: bool


@dataclass(frozen=True)
class RedundantStep:
    """A valid but redundant step that may stand anywhere after solution step `after` (-1: from the start).

    `kind`: restating (a quantity, the question, a result), detour (there and back), aside (what nobody needs).
    """

    after: int
    kind: str
    text: Wording


@dataclass(frozen=True)
class SolutionPlan:
    """One solution of one problem.

    `focus` is the step that holds the error or, in a right solution, would have held it: checks, places and
    wording are drawn alike for both. `redo(j)` restates the steps from the focus to step j rightly.
    `quantities` are those of the problem and `relations` what follows from them, as formulas in the order
    of their use: with the steps' values they say which step is wrong.
    """

    problem: str
    steps: tuple[SolutionStep, ...]
    focus: int
    kind: str
    wrong: bool
    checks: tuple[Check, ...]
    redundant: tuple[RedundantStep, ...]
    redo: Callable[[int], str]
    quantities: StatedValues
    relations: Mapping[str, str]
