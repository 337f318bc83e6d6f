"""A story: a problem whose solution is a chain of calculations on given quantities."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from stepsight.training.synth.formula import Formula

PI = "π"
"""The unit of an op whose result is a multiple of π: its formula is that of the factor."""


@dataclass(frozen=True)
class Given:
    """A quantity of the problem: the values it is drawn from and what it counts ("15 `noun`").

    `words` are values that the problem may give indirectly, such as 7 as "a week". A `fixed` quantity is drawn
    from the same values where larger numbers are asked for. One that is `made` has no values but a formula over the
    seeds of its story and the quantities that are drawn.
    """

    values: Sequence[int]
    noun: str
    words: Mapping[int, str] = field(default_factory=dict)
    fixed: bool = False
    made: str = ""

    def draw(self, rng: random.Random, larger: bool) -> int:
        value = rng.choice(self.values)
        if not larger or self.fixed or self.words:
            return value
        # Beyond every value that training sees, on the same grid.
        top, low = max(self.values), min(self.values)
        return value + (top - low) + (self.values[1] - self.values[0] if isinstance(self.values, range) else 1)


@dataclass(frozen=True)
class Mistake:
    """An error of `kind` that an op invites: it computes `formula` instead, told with `says` where given."""

    kind: str
    formula: str
    says: tuple[str, ...] = ()


@dataclass(frozen=True)
class Op:
    """`key = formula` over the givens and the ops before it; `what` names the result in words.

    `says` are step templates of its own (see `telling`); `mistakes` the errors it invites besides those that
    any formula does; `unit` follows the result.
    """

    key: str
    formula: str
    what: str = ""
    says: tuple[str, ...] = ()
    mistakes: tuple[Mistake, ...] = ()
    unit: str = ""

    @property
    def parsed(self) -> Formula:
        return Formula.of(self.formula)


@dataclass(frozen=True)
class Verify:
    """Calculations that lead from the answer back to what the problem says; `found` must equal `given`.

    They may use the key `answer`, the givens and their own keys, and should have an operation each.
    """

    ops: tuple[Op, ...]
    found: str
    given: str
    kind: str = "add back"


@dataclass(frozen=True)
class Bound:
    """A truth about any right solution, such as `"c < n"`; `text` says it of the values: "the part {c} must be less
    than the whole {n}". It settles an error only by being broken."""

    condition: str
    text: str


@dataclass(frozen=True)
class Story:
    """A template of problems. In `texts`, {n} is a number, @{p} dollars, {d_} "7 days" or "a week".

    `verifies` lead from the answer back. `fits` are conditions that the right solution must meet to be drawn.
    Results are whole unless `whole` is false, and lie between `smallest` and `largest`, of which the last is
    raised where larger numbers are asked for. `answers` replace the general wording of the last step.
    `outlines` announce what will be done. `seeds` are quantities that the
    problem does not tell, such as roots: givens are made from them.
    """

    texts: tuple[str, ...]
    givens: Mapping[str, Given]
    ops: tuple[Op, ...]
    names: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    verifies: tuple[Verify, ...] = ()
    bounds: tuple[Bound, ...] = ()
    fits: tuple[str, ...] = ()
    largest: int = 400
    smallest: int = 1
    whole: bool = True
    decimals: bool = False
    answers: tuple[str, ...] = ()
    outlines: tuple[str, ...] = ()
    reads: bool = True
    seeds: Mapping[str, Given] = field(default_factory=dict)

    def draw(self, rng: random.Random, larger: bool) -> tuple[dict[str, Fraction], dict[str, str]]:
        """Values of the givens and names, not yet known to give fit results."""
        drawn = {**self.seeds, **self.givens}
        values = {key: Fraction(given.draw(rng, larger)) for key, given in drawn.items() if not given.made}
        for key, given in self.givens.items():
            if given.made:
                value = Formula.of(given.made).value(values)
                assert value is not None
                values[key] = value
        values = {key: values[key] for key in self.givens}
        return values, {key: rng.choice(choices) for key, choices in self.names.items()}

    def words(self, values: Mapping[str, Fraction], names: Mapping[str, str], rng: random.Random) -> dict[str, str]:
        """The texts that fill the places of a problem besides its numbers."""
        filled = dict(names)
        for key, given in self.givens.items():
            indirect = given.words.get(int(values[key]))
            plain = f"{values[key]} {given.noun.format(**names)}"
            filled[f"{key}_"] = indirect.format(**names) if indirect and rng.random() < 0.7 else plain
        return filled
