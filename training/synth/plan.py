"""A plan: everything that a trace may say, before it is decided which checks and redundant steps it gets."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Line:
    """A step of the solution as `stated` (with the error, where there is one) and as it would be `right`."""

    stated: str
    right: str


@dataclass(frozen=True)
class Check:
    """A truthful test of line `target`. `settles`: its outcome tells whether the focus line is wrong."""

    kind: str
    target: int
    text: str
    passes: bool
    settles: bool


@dataclass(frozen=True)
class Filler:
    """A valid but redundant step that may stand anywhere after line `after` (-1: from the start)."""

    after: int
    stated: str
    right: str


@dataclass(frozen=True)
class Plan:
    """One solution of one problem.

    `focus` is the line that holds the error or, in a right solution, would have held it: checks, places and
    wording are drawn alike for both. `redo(j)` restates the lines from the focus to line j rightly.
    """

    problem: str
    lines: tuple[Line, ...]
    focus: int
    kind: str
    wrong: bool
    checks: tuple[Check, ...]
    fillers: tuple[Filler, ...]
    redo: Callable[[int], str]
