"""Comparing a result with an earlier one: which sub-steps correspond, and how much their validity changed."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from enum import StrEnum

from stepsight.core.judgment import Judgment, Mode

# Scores are shown with two digits; a change of less than half of the last one does not count.
_LEAST = 0.005


class StepChange(StrEnum):
    """The effect of an edit of the solution on a sub-step. `EDITED` means that the text of the sub-step replaced an
    earlier text."""

    SAME = "same"
    MOVED = "moved"
    EDITED = "edited"
    NEW = "new"


@dataclass(frozen=True)
class StepMatch:
    """The relation of a sub-step of the later trace to the earlier trace. `was` is the index of the matching
    sub-step in the earlier trace, or None for a new sub-step."""

    step_change: StepChange
    was: int | None = None


@dataclass(frozen=True)
class Move:
    """The change in the validity of a sub-step whose text is in both traces. `step` is the index of the sub-step in
    the later trace."""

    step: int
    mode: Mode
    before: float
    now: float

    @property
    def change(self) -> float:
        return self.now - self.before


@dataclass(frozen=True)
class StepMatches:
    """The sub-steps of a later trace, matched with those of an earlier trace.

    `now` holds the match of each sub-step of the later trace. `gone` lists the indices of the sub-steps of the
    earlier trace that have no match.
    """

    now: tuple[StepMatch, ...]
    gone: tuple[int, ...]

    @classmethod
    def of(cls, before: Sequence[str], now: Sequence[str]) -> "StepMatches":
        """Match the sub-steps of two traces by their texts.

        Sub-steps that kept their order are matched first (by difflib), then those that moved. If a run of new texts
        is as long as the run that it replaced, each new sub-step is matched with the one that it replaced, as
        edited.
        """
        matches: list[StepMatch | None] = [None] * len(now)
        old: list[int] = []
        stretches: list[tuple[range, range]] = []
        matcher = SequenceMatcher(None, before, now, autojunk=False)
        for kind, a, b, c, d in matcher.get_opcodes():
            if kind == "equal":
                matches[c:d] = [StepMatch(StepChange.SAME, a + offset) for offset in range(d - c)]
            else:
                old += range(a, b)
                stretches.append((range(a, b), range(c, d)))
        left = _move(before, now, old, matches)
        for was, stretch in stretches:
            places, open_ = [i for i in was if i in left], [j for j in stretch if matches[j] is None]
            if len(places) == len(open_):
                left -= set(places)
                for i, j in zip(places, open_, strict=True):
                    matches[j] = StepMatch(StepChange.EDITED, i)
        return cls(tuple(match or StepMatch(StepChange.NEW) for match in matches), tuple(sorted(left)))

    @property
    def kept(self) -> int:
        """The number of sub-steps whose texts are in both traces."""
        return sum(match.step_change in (StepChange.SAME, StepChange.MOVED) for match in self.now)

    @property
    def is_edit(self) -> bool:
        """True if the later trace looks like an edit of the earlier one. At least half of the sub-steps of the
        shorter trace must be in both traces."""
        earlier = len(self.gone) + sum(match.was is not None for match in self.now)
        return self.kept > 0 and 2 * self.kept >= min(earlier, len(self.now))

    def count(self, step_change: StepChange) -> int:
        return sum(match.step_change == step_change for match in self.now)


def _move(
    before: Sequence[str], now: Sequence[str], old: Sequence[int], matches: list[StepMatch | None]
) -> set[int]:
    """Match the sub-steps that have moved. Returns the indices of the sub-steps of the earlier trace that remain
    unmatched."""
    places: defaultdict[str, list[int]] = defaultdict(list)
    for i in old:
        places[before[i]].append(i)
    for j, match in enumerate(matches):
        if match is None and places[now[j]]:
            matches[j] = StepMatch(StepChange.MOVED, places[now[j]].pop(0))
    return {i for left in places.values() for i in left}


def largest_move(matches: StepMatches, before: Judgment, now: Judgment) -> Move | None:
    """Return the largest change of validity in either mode, among the sub-steps whose text is in both traces.
    A mode that either judgment lacks is left out. Returns None if no change is visible. Of several equal changes,
    the first is returned, where offline comes before online."""
    moves = [
        Move(j, mode, float(old.validity[match.was]), float(new.validity[j]))
        for mode, old, new in (
            (Mode.OFFLINE, before.offline, now.offline),
            (Mode.ONLINE, before.online, now.online),
        )
        if old is not None and new is not None
        for j, match in enumerate(matches.now)
        if match.was is not None and match.step_change != StepChange.EDITED
    ]
    largest = max(moves, key=lambda move: abs(move.change), default=None)
    return largest if largest is not None and is_move(largest.change) else None


def is_move(change: float) -> bool:
    """True if a change of validity is visible when it is shown with two digits."""
    return abs(change) >= _LEAST
