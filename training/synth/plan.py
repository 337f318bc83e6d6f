"""A plan: everything that a trace may say, before it is decided which checks and redundant steps it gets."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

Claims = Mapping[str, str]
"""What a step says of the quantities of the problem: values, exact, by key."""


@dataclass(frozen=True)
class Line:
    """A step of the solution as `stated` (with the error, where there is one) and as it would be `right`."""

    stated: str
    right: str
    claims: Claims = field(default_factory=dict)
    right_claims: Claims = field(default_factory=dict)


@dataclass(frozen=True)
class Check:
    """A truthful test of line `target`. `settles`: its outcome tells whether the focus line is wrong.

    `opens`: it is said after an opening such as "Check: ".
    """

    kind: str
    target: int
    text: str
    passes: bool
    settles: bool
    opens: bool = True


@dataclass(frozen=True)
class Filler:
    """A valid but redundant step that may stand anywhere after line `after` (-1: from the start).

    `kind`: restating (a given, the question, a result), detour (there and back), aside (what nobody needs).
    """

    after: int
    kind: str
    stated: str
    right: str


@dataclass(frozen=True)
class Plan:
    """One solution of one problem.

    `focus` is the line that holds the error or, in a right solution, would have held it: checks, places and
    wording are drawn alike for both. `redo(j)` restates the lines from the focus to line j rightly.
    `givens` are the quantities of the problem and `relations` what follows from them, as formulas in the order
    of their use: with the lines' claims they say which step is wrong.
    """

    problem: str
    lines: tuple[Line, ...]
    focus: int
    kind: str
    wrong: bool
    checks: tuple[Check, ...]
    fillers: tuple[Filler, ...]
    redo: Callable[[int], str]
    givens: Claims
    relations: Mapping[str, str]
