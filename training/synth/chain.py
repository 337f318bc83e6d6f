"""Chains: a story's calculations carried out on the numbers of a problem, correctly or with one planted error."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

from stepsight.training.synth.formula import PI, ErrorKind, Formula, misread, parse_formula, slip
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
    `of_pi` holds the keys of the values that are multiples of π."""

    calculation: Calculation
    formula: Formula
    values: Values
    result: Number
    of_pi: frozenset[str] = frozenset()

    @property
    def shown(self) -> Formula:
        """The formula as it is written, where π appears in values and results that are multiples of π."""
        shown, names = self.formula, self.formula.names & self.of_pi
        for name in names:
            shown = shown.substitute(name, parse_formula(f"{name} * {PI}"))
        return shown if names or self.calculation.unit != PI else parse_formula(f"{PI} * x").substitute("x", shown)


@dataclass(frozen=True)
class StepChain:
    """The calculations of a story carried out one after another, and the value of every key.

    `answered` is the link whose result is given as the answer.
    """

    links: tuple[Link, ...]
    values: Values
    answered: Link

    @property
    def answer(self) -> Number:
        return self.answered.result

    @property
    def unit(self) -> str:
        return self.answered.calculation.unit


def carry_out(
    calculations: Sequence[Calculation], quantities: Values, error: PlantedError | None = None
) -> StepChain | None:
    """Carry out the calculations, with the planted error if there is one, and return the chain.

    Returns None if a result is undefined, as in a division by zero.
    """
    values = dict(quantities)
    if error and error.kind == ErrorKind.MISREAD:
        values[error.key] = error.value
    links: list[Link] = []
    of_pi = frozenset(calculation.key for calculation in calculations if calculation.unit == PI)
    for index, calculation in enumerate(calculations):
        here = error if error is not None and error.index == index else None
        formula = here.mistake.formula if here and here.mistake else calculation.formula
        result = here.value if here and here.kind == ErrorKind.SLIP else formula.value(values)
        if result is None:
            return None
        links.append(Link(calculation, formula, dict(values), result, of_pi))
        values[calculation.key] = result
    answered = links[-1]
    if error and error.kind == ErrorKind.ANSWER:
        answered = next(link for link in links if link.calculation.key == error.key)
    return StepChain(tuple(links), values, answered)


@dataclass(frozen=True)
class Problem:
    """The numbers and names of a story's problem, an error for it, and its chains without and with the error."""

    story: Story
    quantities: dict[str, Number]
    names: dict[str, str]
    error: PlantedError
    right: StepChain
    faulty: StepChain


def draw_problem(story: Story, rng: random.Random, larger: bool = False) -> Problem:
    """Choose the numbers, the names and the error of a problem at random.

    Both chains, with and without the error, must be presentable, even though only one of them is used. Otherwise
    the numbers of a problem could reveal whether it has an error. Raises `RuntimeError`, naming the story, if
    almost no numbers meet its conditions.
    """
    index, kind = _draw_place(story, rng)
    unfit = 0
    for _ in range(_TRIES):
        quantities, names = story.draw(rng, larger)
        right = carry_out(story.calculations, quantities)
        if right is None or not _is_presentable(right, story, larger):
            continue
        if not all(condition.holds(right.values) for condition in story.conditions):
            continue
        error = _draw_error(kind, index, story, right, rng)
        faulty = carry_out(story.calculations, quantities, error)
        if faulty and _is_presentable(faulty, story, larger):
            position = index if kind != ErrorKind.ANSWER else -1
            results = [chain.answer if position < 0 else chain.links[position].result for chain in (right, faulty)]
            if results[0] != results[1]:
                return Problem(story, quantities, names, error, right, faulty)
        unfit += 1
        if unfit % _TRIES_OF_A_PLACE == 0:
            index, kind = _draw_place(story, rng)
        elif unfit % _TRIES_OF_A_KIND == 0 and kind != ErrorKind.ANSWER:
            # The place is kept, so that errors that are easy to draw do not make a calculation wrong more often.
            kind = _draw_kind(story, index, rng)
    raise RuntimeError(f"no {kind} can be drawn for {story.problems[0]!r} in {_TRIES:,} tries")


def _is_presentable(chain: StepChain, story: Story, larger: bool) -> bool:
    """True if all results keep within the story's range, and can be written as whole numbers or, if the story
    allows it, as decimals or fractions."""
    largest = story.largest * (_LARGER if larger else 1)
    for value in (link.result for link in chain.links):
        if not story.smallest <= value <= largest:
            return False
        if value.denominator == 1:
            continue
        if story.whole or value.denominator > _LARGEST_DENOMINATOR:
            return False
        if story.decimals and value.denominator not in DECIMALS:
            return False
    return True


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
    kinds = story.error_kinds[index]
    return rng.choices(kinds, [_WEIGHTS.get(kind, 1.0) for kind in kinds])[0]


def _draw_error(kind: ErrorKind, index: int, story: Story, right: StepChain, rng: random.Random) -> PlantedError:
    calculation, link = story.calculations[index], right.links[index]
    if kind == ErrorKind.MISREAD:
        read = rng.choice([key for key in story.quantities if story.first_use(key) == index])
        others = [right.values[other] for other in story.quantities if other != read]
        return PlantedError(kind, index, read, misread(right.values[read], others, rng))
    if kind == ErrorKind.ANSWER:
        return PlantedError(kind, index, rng.choice(story.calculations[:-1]).key)
    if kind == ErrorKind.SLIP:
        operands = link.formula.operands(link.values)
        factors = operands[1:] if operands and operands[0] == "*" else ()
        return PlantedError(kind, index, calculation.key, slip(link.result, factors, rng))
    mistake = rng.choice([mistake for mistake in calculation.invited if mistake.kind == kind])
    return PlantedError(kind, index, calculation.key, mistake=mistake)


def draw_groups(story: Story, rate: float, rng: random.Random) -> list[slice]:
    """Divide the links of a chain into groups, each of which is stated in one step. A group is a single link or, in
    one place with probability `rate`, two links."""
    joined = rng.choice(story.joinable) if story.joinable and rng.random() < rate else -1
    starts = [i for i in range(len(story.calculations)) if i != joined + 1 or joined < 0]
    return [slice(start, start + (2 if start == joined else 1)) for start in starts]


def equation(group: Sequence[Link], style: Style) -> str:
    """Return the equation `formula = result` that a step states of a group of links, without delimiters.

    The formula is in terms of values known before the step.
    """
    formula = group[-1].shown
    if len(group) > 1:
        formula = formula.substitute(group[0].calculation.key, group[0].shown)
    left = formula.written(group[0].values, style)
    right = style.number(group[-1].result) + group[-1].calculation.unit
    return right if left in (right, right.replace("/", " / ")) else f"{left} = {right}"


def equations(links: Sequence[Link], style: Style) -> list[str]:
    """Return one equation per link, with delimiters. Trivial equations such as "6 = 6" are left out."""
    pairs = [
        (link.shown.written(link.values, style), f"{style.number(link.result)}{link.calculation.unit}")
        for link in links
    ]
    return [style.math(f"{left} = {right}") for left, right in pairs if left != right]


def recomputed(group: Sequence[Link]) -> tuple[Link, ...]:
    """Return the links with any slip inside the group corrected, or an empty tuple if a result is undefined."""
    links: list[Link] = []
    for link in group:
        values = {**link.values, **{before.calculation.key: before.result for before in links}}
        result = link.formula.value(values)
        if result is None:
            return ()
        links.append(replace(link, values=values, result=result))
    return tuple(links)
