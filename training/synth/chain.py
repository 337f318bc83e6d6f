"""A chain: the operations of a story carried out on its numbers, rightly or with one planted error."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from training.synth.plant import KINDS, MISREAD, OPERATION, SLIP, apply, misread, slip, swap
from training.synth.story import Op, Story


@dataclass(frozen=True)
class Plant:
    """One error: a result (slip), a given (misreading) or a sign (operation) replaced at link `op`."""

    kind: str
    op: int
    key: str
    value: int = 0
    sign: str = ""


@dataclass(frozen=True)
class Link:
    """One operation as carried out: its operands, sign and stated result."""

    op: Op
    left: int
    sign: str
    right: int
    result: int

    @property
    def true_result(self) -> int | None:
        return apply(self.left, self.sign, self.right)


@dataclass(frozen=True)
class Chain:
    """The links of a story and every value by its key."""

    links: tuple[Link, ...]
    values: Mapping[str, int]

    @property
    def answer(self) -> int:
        return self.links[-1].result


def number(key: str, values: Mapping[str, int]) -> int:
    """The value of an operand: a key, or a whole number written out."""
    return values[key] if key in values else int(key)


def carry_out(ops: Sequence[Op], givens: Mapping[str, int], plant: Plant | None = None) -> Chain | None:
    """The chain, or None where a result is no whole number."""
    values = dict(givens)
    if plant and plant.kind == MISREAD:
        values[plant.key] = plant.value
    links = []
    for index, op in enumerate(ops):
        hit = plant is not None and plant.op == index
        sign = plant.sign if plant and hit and plant.kind == OPERATION else op.sign
        left, right = number(op.left, values), number(op.right, values)
        result = plant.value if plant and hit and plant.kind == SLIP else apply(left, sign, right)
        if result is None:
            return None
        values[op.key] = result
        links.append(Link(op, left, sign, right, result))
    return Chain(tuple(links), values)


def draw_chains(story: Story, rng: random.Random) -> tuple[dict[str, int], dict[str, str], Plant, Chain, Chain]:
    """Givens, names, an error, and the chain without and with it.

    Both chains must be fit to be shown whichever is used, so that the numbers of a problem do not tell.
    """
    kind = rng.choices(KINDS, [0.55, 0.2, 0.25])[0]
    while True:
        givens, names = story.draw(rng)
        right = carry_out(story.ops, givens)
        if right is None or not _fit(right, story):
            continue
        plant = _draw_plant(kind, story, right, rng)
        wrong = carry_out(story.ops, givens, plant)
        if wrong and _fit(wrong, story) and wrong.links[plant.op].result != right.links[plant.op].result:
            return givens, names, plant, right, wrong


def _fit(chain: Chain, story: Story) -> bool:
    return all(1 <= link.result <= story.largest for link in chain.links)


def _draw_plant(kind: str, story: Story, right: Chain, rng: random.Random) -> Plant:
    # Leaning to later links: steps after the error are unlabelled, so an even draw would put errors early.
    index = max(rng.choices(range(len(story.ops)), k=2))
    link = right.links[index]
    if kind == MISREAD:
        firsts = {
            key: next(i for i, op in enumerate(story.ops) if key in (op.left, op.right)) for key in story.givens
        }
        key = rng.choices(list(firsts), [1 + 2 * first for first in firsts.values()])[0]
        first = firsts[key]
        others = [right.values[other] for other in story.givens if other != key]
        return Plant(kind, first, key, value=misread(right.values[key], others, rng))
    if kind == OPERATION:
        return Plant(kind, index, link.op.key, sign=swap(link.sign, rng))
    step = rng.choice([link.left, link.right]) if link.sign == "*" else 10
    return Plant(kind, index, link.op.key, value=slip(link.result, step, rng))
