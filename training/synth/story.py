"""A story: a problem whose solution is a chain of operations on given quantities."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Given:
    """A quantity of the problem: the values it is drawn from and what it counts ("15 `noun`").

    `words` are values that the problem may give indirectly, such as 7 as "a week".
    """

    values: Sequence[int]
    noun: str
    words: Mapping[int, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Op:
    """`key = left sign right`, where left and right are keys or whole numbers; `what` names the result.

    `says` are step templates of its own: {e} the equation, {w} `what`, {l}, {r}, {c} the numbers.
    """

    key: str
    left: str
    sign: str
    right: str
    what: str = ""
    says: tuple[str, ...] = ()


@dataclass(frozen=True)
class Verify:
    """Operations that lead from the answer back to what the problem says; `found` must equal `given`."""

    ops: tuple[Op, ...]
    found: str
    given: str
    kind: str = "add back"


@dataclass(frozen=True)
class Story:
    """A template of problems. In `texts`, {n} is a number, @{p} dollars, {d_} "7 days" or "a week".

    `verify` leads from the answer back; `says` are step templates by sign; results stay within `largest`.
    """

    texts: tuple[str, ...]
    givens: Mapping[str, Given]
    ops: tuple[Op, ...]
    names: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    verify: Verify | None = None
    says: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    largest: int = 400

    def draw(self, rng: random.Random) -> tuple[dict[str, int], dict[str, str]]:
        """Values of the givens and names, not yet known to give whole results."""
        values = {key: rng.choice(given.values) for key, given in self.givens.items()}
        return values, {key: rng.choice(choices) for key, choices in self.names.items()}

    def words(self, values: Mapping[str, int], names: Mapping[str, str], rng: random.Random) -> dict[str, str]:
        """What fills the places of a problem text."""
        filled = dict(names)
        for key, given in self.givens.items():
            number = str(values[key])
            filled[key] = number
            indirect = given.words.get(values[key])
            plain = f"{number} {given.noun.format(**names)}"
            filled[f"{key}_"] = indirect.format(**names) if indirect and rng.random() < 0.7 else plain
        return filled
