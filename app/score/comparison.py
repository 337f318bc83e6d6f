"""An earlier result against a later one: which step is which, and how far its scores moved."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from enum import StrEnum

from stepsight.core.judgment import Mode
from stepsight.core.scores import Hindsight

# Scores are shown with two digits; less than half of the last one is no move.
_LEAST = 0.005


class StepChange(StrEnum):
    """What an edit did to a step. `edited`: another text in the place of an earlier one."""

    SAME = "same"
    MOVED = "moved"
    EDITED = "edited"
    NEW = "new"


@dataclass(frozen=True)
class StepMatch:
    """What became of one sub-step of the later trace; `was` is its 0-based place in the earlier one, or None."""

    step_change: StepChange
    was: int | None = None


@dataclass(frozen=True)
class Move:
    """How the validity of a sub-step whose text is in both moved; `step` is its 0-based place in the later one."""

    step: int
    mode: Mode
    before: float
    now: float

    @property
    def change(self) -> float:
        return self.now - self.before


@dataclass(frozen=True)
class StepMatches:
    """The sub-steps of a later trace against those of an earlier one, and which of the earlier are `gone`."""

    now: tuple[StepMatch, ...]
    gone: tuple[int, ...]

    @classmethod
    def of(cls, before: Sequence[str], now: Sequence[str]) -> "StepMatches":
        """Match by text: first those that kept their order (difflib's blocks), then those that moved. If a stretch
        of other texts is as long as the one it replaced, each stands for the one in its place."""
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
        """How many texts are in both."""
        return sum(match.step_change in (StepChange.SAME, StepChange.MOVED) for match in self.now)

    @property
    def is_edit(self) -> bool:
        """True if the later trace looks like an edit of the earlier: at least half of its steps are still there."""
        earlier = len(self.gone) + sum(match.was is not None for match in self.now)
        return self.kept > 0 and 2 * self.kept >= min(earlier, len(self.now))

    def count(self, step_change: StepChange) -> int:
        return sum(match.step_change == step_change for match in self.now)


def _move(
    before: Sequence[str], now: Sequence[str], old: Sequence[int], matches: list[StepMatch | None]
) -> set[int]:
    """Match what stands elsewhere now; returns the places of the earlier trace that are left."""
    places: defaultdict[str, list[int]] = defaultdict(list)
    for i in old:
        places[before[i]].append(i)
    for j, match in enumerate(matches):
        if match is None and places[now[j]]:
            matches[j] = StepMatch(StepChange.MOVED, places[now[j]].pop(0))
    return {i for left in places.values() for i in left}


def largest_move(matches: StepMatches, before: Hindsight, now: Hindsight) -> Move | None:
    """The largest move of the validity of a sub-step whose text is in both, in either mode; None if no score moved
    so far that it shows. Of equal ones the first, offline before online."""
    moves = [
        Move(j, mode, float(old.validity[match.was]), float(new.validity[j]))
        for mode, old, new in (
            (Mode.OFFLINE, before.offline, now.offline),
            (Mode.ONLINE, before.online, now.online),
        )
        for j, match in enumerate(matches.now)
        if match.was is not None and match.step_change != StepChange.EDITED
    ]
    largest = max(moves, key=lambda move: abs(move.change), default=None)
    return largest if largest is not None and is_move(largest.change) else None


def is_move(change: float) -> bool:
    """True if a change of validity shows in two digits."""
    return abs(change) >= _LEAST
