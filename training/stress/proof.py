"""Proving by calculation that a change made a step wrong, or that it changed nothing.

The evaluator `equations` checks a solution before and after the change. A change that it cannot prove is not used.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from stepsight.core.equations.checks import Check
from stepsight.core.equations.evaluator import checks_of
from stepsight.core.trace import Trace


@dataclass(frozen=True)
class Equation:
    """An equation that holds: `text`, the characters from `start` to `end` of the step at `place`."""

    place: int
    start: int
    end: int
    text: str


def true_equations(trace: Trace) -> list[Equation]:
    """Return the equations that hold, of all steps that state nothing wrong.

    An equation that contains another one, as the whole of 2 + 3 = 5 = 10/2 does, is left out.
    """
    found = []
    for place, checks in enumerate(checks_of(trace)):
        if all(check.holds for check in checks):
            spans = [(check.start, check.end) for check in checks]
            found += [
                Equation(place, start, end, trace.substeps[place][start:end])
                for start, end in dict.fromkeys(spans)
                if not any((a, b) != (start, end) and start <= a and b <= end for a, b in spans)
            ]
    return found


def failing_at(trace: Trace, place: int) -> Equation | None:
    """Return the first failing equation of the step at `place` if no earlier step states anything wrong, or else
    None."""
    checks = checks_of(trace)
    if any(not check.holds for part in checks[:place] for check in part):
        return None
    return next(_equations(trace, place, checks[place], holds=False), None)


def still_holds(before: Trace, after: Trace, place: int) -> Equation | None:
    """Return the first equation of the step at `place` that holds after a change, or None if the change harmed
    anything (see `is_unharmed`)."""
    if not is_unharmed(before, after):
        return None
    return next(_equations(after, place, checks_of(after)[place], holds=True), None)


def is_unharmed(before: Trace, after: Trace) -> bool:
    """True if a change made nothing wrong and left no equation unread: for each step before it, there is one after
    it with as many equations that hold and as many that fail."""
    return _tally(after) == _tally(before)


def makes_nothing_wrong(before: Trace, after: Trace) -> bool:
    """True if no more equations fail after a change than before it, though fewer may be read."""
    failing = (sum(not check.holds for part in checks_of(trace) for check in part) for trace in (after, before))
    return next(failing) <= next(failing)


def _tally(trace: Trace) -> list[tuple[int, int]]:
    counts = ([check.holds for check in part] for part in checks_of(trace))
    return sorted((sum(holding), len(holding)) for holding in counts)


def _equations(trace: Trace, place: int, checks: tuple[Check, ...], *, holds: bool) -> Iterator[Equation]:
    for check in checks:
        if check.holds == holds:
            yield Equation(place, check.start, check.end, trace.substeps[place][check.start : check.end])
