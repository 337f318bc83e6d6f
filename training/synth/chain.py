"""Chains: a story's calculations carried out on the numbers of a problem, correctly or with one planted error.

A step of the solution states one link of the chain, or two links as a `LinkGroup`.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from stepsight.training.synth.formula import Condition, Formula
from stepsight.training.synth.mistakes import PI, ErrorKind, misread, slip
from stepsight.training.synth.story import Calculation, Mistake, Story
from stepsight.training.synth.style import DECIMALS, Number, Style, Values

_WEIGHTS = {
    ErrorKind.SLIP: 1.6,
    ErrorKind.MISREAD: 0.8,
    ErrorKind.OPERATION: 0.8,
    ErrorKind.UNIT: 1.5,
    ErrorKind.INFERENCE: 3.0,
    ErrorKind.CASE: 3.5,
}
"""The weight of each kind of error that a calculation can hold; 1 if none is given."""
_ANSWER_RATE = 0.04
_LARGER = 6
_TRIES = 20_000
_TRIES_OF_A_KIND = 10
_TRIES_OF_A_PLACE = 60
_LARGEST_DENOMINATOR = 400


@dataclass(frozen=True)
class PlantedError:
    """An error planted in the calculation with index `index`.

    A slip replaces the result by `value`, and a misread replaces the quantity `key` by `value`. A wrong answer, in
    the last step, presents the result of the calculation `key` as the answer. Any other kind of error replaces the
    formula of the calculation by the formula of `mistake`.
    """

    kind: ErrorKind
    index: int
    key: str
    value: Number = 0
    mistake: Mistake | None = None


@dataclass(frozen=True)
class Link:
    """One calculation as it is carried out: its formula, the values put into the formula, and the stated result.
    `turned` holds the keys of the values that are multiples of π."""

    calculation: Calculation
    formula: Formula
    values: Values
    result: Number
    turned: frozenset[str] = frozenset()

    @property
    def shown(self) -> Formula:
        """The formula as it is written, where π appears in values and results that are multiples of π."""
        shown, turned = self.formula, self.formula.names & self.turned
        for name in turned:
            shown = shown.put(name, Formula.of(f"{name} * {PI}"))
        return shown if turned or self.calculation.unit != PI else Formula.of(f"{PI} * x").put("x", shown)


@dataclass(frozen=True)
class StoryChain:
    """The calculations of a story carried out one after another, and the value of every key.

    `answered` is the index of the link whose result is given as the answer.
    """

    links: tuple[Link, ...]
    values: Values
    answered: int

    @property
    def answer(self) -> Number:
        return self.links[self.answered].result

    @property
    def unit(self) -> str:
        return self.links[self.answered].calculation.unit


def carry_out(
    calculations: Sequence[Calculation], quantities: Values, error: PlantedError | None = None
) -> StoryChain | None:
    """Carry out the calculations, with the planted error if there is one, and return the chain.

    Returns None if a result is undefined, as in a division by zero.
    """
    values = dict(quantities)
    if error and error.kind == ErrorKind.MISREAD:
        values[error.key] = error.value
    links = []
    turned = frozenset(calculation.key for calculation in calculations if calculation.unit == PI)
    for index, calculation in enumerate(calculations):
        here = error if error is not None and error.index == index else None
        formula = Formula.of(here.mistake.formula) if here and here.mistake else calculation.parsed
        result = here.value if here and here.kind == ErrorKind.SLIP else formula.value(values)
        if result is None:
            return None
        links.append(Link(calculation, formula, dict(values), result, turned))
        values[calculation.key] = result
    answered = len(links) - 1
    if error and error.kind == ErrorKind.ANSWER:
        answered = [calculation.key for calculation in calculations].index(error.key)
    return StoryChain(tuple(links), values, answered)


@dataclass(frozen=True)
class DrawnProblem:
    """The numbers and names of a problem, an error for it, and its chains without and with the error."""

    quantities: dict[str, Number]
    names: dict[str, str]
    error: PlantedError
    right: StoryChain
    faulty: StoryChain


def draw_problem(story: Story, rng: random.Random, larger: bool = False) -> DrawnProblem:
    """Choose the numbers, the names and the error of a problem at random.

    Both chains, with and without the error, must be presentable, even though only one of them is used. Otherwise
    the numbers of a problem could reveal whether it has an error. Raises `RuntimeError`, naming the story, if
    almost no numbers meet its conditions.
    """
    index, kind = _draw_place(story, rng)
    conditions = [Condition.of(condition) for condition in story.conditions]
    unfit = 0
    for _ in range(_TRIES):
        quantities, names = story.draw(rng, larger)
        right = carry_out(story.calculations, quantities)
        if right is None or not _fit(right, story, larger):
            continue
        if not all(condition.holds(right.values) for condition in conditions):
            continue
        error = _draw_error(kind, index, story, right, rng)
        faulty = carry_out(story.calculations, quantities, error)
        if faulty and _fit(faulty, story, larger) and _differ(right, faulty, error):
            return DrawnProblem(quantities, names, error, right, faulty)
        unfit += 1
        if unfit % _TRIES_OF_A_PLACE == 0:
            index, kind = _draw_place(story, rng)
        elif unfit % _TRIES_OF_A_KIND == 0 and kind != ErrorKind.ANSWER:
            # The place is kept, so that a calculation is not wrong more often for errors that are easy to draw.
            kind = _draw_kind(story, index, rng)
    raise RuntimeError(f"no {kind} can be drawn for {story.problems[0]!r} in {_TRIES:,} tries")


def _differ(right: StoryChain, faulty: StoryChain, error: PlantedError) -> bool:
    if error.kind == ErrorKind.ANSWER:
        return right.answer != faulty.answer
    return faulty.links[error.index].result != right.links[error.index].result


def _fit(chain: StoryChain, story: Story, larger: bool) -> bool:
    largest = story.largest * (_LARGER if larger else 1)
    return all(story.smallest <= link.result <= largest and _writable(link.result, story) for link in chain.links)


def _writable(value: Number, story: Story) -> bool:
    """True if a result can be written as a whole number or, if the story allows it, as a decimal or a fraction."""
    if story.whole or value.denominator == 1:
        return value.denominator == 1
    return value.denominator in DECIMALS if story.decimals else value.denominator <= _LARGEST_DENOMINATOR


def _draw_place(story: Story, rng: random.Random) -> tuple[int, ErrorKind]:
    """Choose the calculation that holds the error, each with the same probability, and then the kind of error.

    If the kind were chosen first, calculations that invite many kinds of errors would be wrong more often, and
    their wording would give errors away.
    """
    last = len(story.calculations) - 1
    if last > 1 and rng.random() < _ANSWER_RATE:
        return last, ErrorKind.ANSWER
    index = rng.randint(0, last)
    return index, _draw_kind(story, index, rng)


def _draw_kind(story: Story, index: int, rng: random.Random) -> ErrorKind:
    kinds = story.kinds_at[index]
    return rng.choices(kinds, [_WEIGHTS.get(kind, 1.0) for kind in kinds])[0]


def _draw_error(kind: ErrorKind, index: int, story: Story, right: StoryChain, rng: random.Random) -> PlantedError:
    calculations = story.calculations
    key = calculations[index].key
    if kind == ErrorKind.MISREAD:
        read = rng.choice([key for key in story.quantities if story.first_use(key) == index])
        others = [right.values[other] for other in story.quantities if other != read]
        return PlantedError(kind, index, read, misread(right.values[read], others, rng))
    if kind == ErrorKind.ANSWER:
        return PlantedError(kind, index, rng.choice(calculations[:-1]).key)
    if kind == ErrorKind.SLIP:
        link = right.links[index]
        operands = link.formula.operands(link.values)
        factors = operands[1:] if operands and operands[0] == "*" else ()
        return PlantedError(kind, index, key, slip(link.result, factors, rng))
    mistake = rng.choice([mistake for mistake in calculations[index].invited if mistake.kind == kind])
    return PlantedError(kind, index, key, mistake=mistake)


@dataclass(frozen=True)
class LinkGroup:
    """The positions of one or two links that share a step. The group's result is that of its last link."""

    indices: tuple[int, ...]

    def links(self, chain: StoryChain) -> tuple[Link, ...]:
        return tuple(chain.links[i] for i in self.indices)

    def last(self, chain: StoryChain) -> Link:
        return chain.links[self.indices[-1]]

    def result(self, chain: StoryChain) -> Number:
        return self.last(chain).result

    def what(self, chain: StoryChain, names: Mapping[str, str], style: Style) -> str:
        """Return the name of the result, such as "the share of each"."""
        return style.fill(self.last(chain).calculation.what, names, chain.values)

    def formula(self, chain: StoryChain) -> Formula:
        """Return the formula that the step states, in terms of values known before the step."""
        links = self.links(chain)
        formula = links[-1].shown
        return formula.put(links[0].calculation.key, links[0].shown) if len(links) > 1 else formula

    def equation(self, chain: StoryChain, style: Style) -> str:
        """Return the equation `formula = result` that the step states, without delimiters."""
        left = self.formula(chain).written(chain.links[self.indices[0]].values, style)
        right = style.number(self.result(chain)) + self.last(chain).calculation.unit
        return right if left in (right, right.replace("/", " / ")) else f"{left} = {right}"

    def again(self, chain: StoryChain) -> tuple[Link, ...]:
        """Return the links with any slip inside the group corrected, or an empty tuple if a result is undefined."""
        links: list[Link] = []
        for link in self.links(chain):
            values = {**link.values, **{before.calculation.key: before.result for before in links}}
            result = link.formula.value(values)
            if result is None:
                return ()
            links.append(replace(link, values=values, result=result))
        return tuple(links)


def equations(links: tuple[Link, ...], style: Style) -> list[str]:
    """Return one equation per link, with delimiters. Trivial equations such as "6 = 6" are left out."""
    pairs = [
        (link.shown.written(link.values, style), f"{style.number(link.result)}{link.calculation.unit}")
        for link in links
    ]
    return [style.math(f"{left} = {right}") for left, right in pairs if left != right]


def group_links(story: Story, rate: float, rng: random.Random) -> list[LinkGroup]:
    """Divide the links into groups of one. With probability `rate`, two consecutive links share a group."""
    pairs = story.joinable
    joined = rng.choice(pairs) if pairs and rng.random() < rate else -1
    groups, i = [], 0
    while i < len(story.calculations):
        size = 2 if i == joined else 1
        groups.append(LinkGroup(tuple(range(i, i + size))))
        i += size
    return groups
