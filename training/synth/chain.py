"""A chain: the ops of a story carried out on its numbers, rightly or with one planted error."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from stepsight.training.synth.formula import Formula, Values, holds
from stepsight.training.synth.plant import ANSWER, CASE, INFERENCE, KINDS, MISREAD, SLIP, misread, mistakes, slip
from stepsight.training.synth.story import PI, Mistake, Op, Story
from stepsight.training.synth.style import DECIMALS

_WEIGHTS = {SLIP: 2.4, MISREAD: 1.2, ANSWER: 0.4, INFERENCE: 1.5, CASE: 1.5}
_LARGER = 6
_TRIES = 20_000
_LARGEST_DENOMINATOR = 400


@dataclass(frozen=True)
class Plant:
    """One error at link `op`: a result replaced (slip), a given (misread quantity), the calculation (most
    others), or, in the last line, the answer by the result of another op (`key`)."""

    kind: str
    op: int
    key: str
    value: Fraction = Fraction(0)
    mistake: Mistake | None = None


@dataclass(frozen=True)
class Link:
    """One op as carried out: the formula used, the values it was used on, and the stated result.

    `turned` are the keys of those values that are multiples of π.
    """

    op: Op
    formula: Formula
    values: Mapping[str, Fraction]
    result: Fraction
    turned: frozenset[str] = frozenset()

    @property
    def shown(self) -> Formula:
        """The formula as it is written: with π wherever a value or the result is a multiple of it."""
        shown, turned = self.formula, self.formula.names & self.turned
        for name in turned:
            shown = shown.put(name, Formula.of(f"{name} * {PI}"))
        return shown if turned or self.op.unit != PI else Formula.of(f"{PI} * x").put("x", shown)


@dataclass(frozen=True)
class Chain:
    """The links of a story, every value by its key, and the op whose result is given as the answer."""

    links: tuple[Link, ...]
    values: Values
    answered: int

    @property
    def answer(self) -> Fraction:
        return self.links[self.answered].result


def carry_out(ops: Sequence[Op], givens: Values, plant: Plant | None = None) -> Chain | None:
    """The chain, or None where a result has no value."""
    values = dict(givens)
    if plant and plant.kind == MISREAD:
        values[plant.key] = plant.value
    links = []
    turned = frozenset(op.key for op in ops if op.unit == PI)
    for index, op in enumerate(ops):
        hit = plant if plant is not None and plant.op == index else None
        formula = Formula.of(hit.mistake.formula) if hit and hit.mistake else op.parsed
        result = hit.value if hit and hit.kind == SLIP else formula.value(values)
        if result is None:
            return None
        used = dict(values)
        values[op.key] = result
        links.append(Link(op, formula, used, result, turned))
    misses = plant is not None and plant.kind == ANSWER
    answered = [op.key for op in ops].index(plant.key) if plant and misses else len(ops) - 1
    return Chain(tuple(links), values, answered)


@dataclass(frozen=True)
class Draw:
    """The numbers and names of one problem, an error, and the chain without and with it."""

    givens: dict[str, Fraction]
    names: dict[str, str]
    plant: Plant
    right: Chain
    faulty: Chain


def draw_chains(story: Story, rng: random.Random, larger: bool = False) -> Draw:
    """Both chains must be fit to be shown whichever is used, so that the numbers of a problem do not tell.

    Raises `RuntimeError` naming the story where its conditions leave next to nothing to draw.
    """
    kinds = [kind for kind in KINDS if _invites(story, kind)]
    kind = rng.choices(kinds, [_WEIGHTS.get(kind, 1.0) for kind in kinds])[0]
    for _ in range(_TRIES):
        givens, names = story.draw(rng, larger)
        right = carry_out(story.ops, givens)
        if right is None or not _fit(right, story, larger) or not all(holds(c, right.values) for c in story.fits):
            continue
        plant = _draw_plant(kind, story, right, rng)
        faulty = carry_out(story.ops, givens, plant)
        if faulty and _fit(faulty, story, larger) and _differ(right, faulty, plant):
            return Draw(givens, names, plant, right, faulty)
    raise RuntimeError(f"no {kind} can be drawn for {story.texts[0]!r} in {_TRIES:,} tries")


def _invites(story: Story, kind: str) -> bool:
    if kind in (SLIP, MISREAD):
        return True
    if kind == ANSWER:
        return len(story.ops) > 2
    return any(mistake.kind == kind for op in story.ops for mistake in mistakes(op))


def _differ(right: Chain, faulty: Chain, plant: Plant) -> bool:
    if plant.kind == ANSWER:
        return right.answer != faulty.answer
    return faulty.links[plant.op].result != right.links[plant.op].result


def _fit(chain: Chain, story: Story, larger: bool) -> bool:
    top = story.largest * (_LARGER if larger else 1)
    values = [link.result for link in chain.links]
    return all(story.smallest <= value <= top and _shaped(value, story) for value in values)


def _shaped(value: Fraction, story: Story) -> bool:
    """Whether a result can be written: whole, with two decimals, or as a fraction."""
    if story.whole or value.denominator == 1:
        return value.denominator == 1
    return value.denominator in DECIMALS if story.decimals else value.denominator <= _LARGEST_DENOMINATOR


def _draw_plant(kind: str, story: Story, right: Chain, rng: random.Random) -> Plant:
    if kind == MISREAD:
        return _draw_misread(story, right, rng)
    last = len(story.ops) - 1
    if kind == ANSWER:
        return Plant(kind, last, rng.choice(story.ops[:-1]).key)
    if kind == SLIP:
        # Leaning to later links: steps after the error are unlabelled, so an even draw would put errors early.
        index = max(rng.choices(range(len(story.ops)), k=2))
        link = right.links[index]
        operands = link.formula.operands(link.values)
        factors = operands[1:] if operands and operands[0] == "*" else ()
        return Plant(kind, index, link.op.key, slip(link.result, factors, rng))
    options = [(i, m) for i, op in enumerate(story.ops) for m in mistakes(op) if m.kind == kind]
    index, mistake = rng.choice(options)
    return Plant(kind, index, story.ops[index].key, mistake=mistake)


def _draw_misread(story: Story, right: Chain, rng: random.Random) -> Plant:
    firsts = {
        key: next((i for i, op in enumerate(story.ops) if key in op.parsed.names), None) for key in story.givens
    }
    used = {key: first for key, first in firsts.items() if first is not None}
    key = rng.choices(list(used), [1 + 2 * first for first in used.values()])[0]
    others = [right.values[other] for other in story.givens if other != key]
    return Plant(MISREAD, used[key], key, misread(right.values[key], others, rng))
