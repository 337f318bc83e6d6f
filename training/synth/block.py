"""A block: one or two links of a chain told in a single step."""

import random
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from stepsight.training.synth.chain import Chain, Link
from stepsight.training.synth.formula import Formula
from stepsight.training.synth.style import Style


@dataclass(frozen=True)
class Block:
    """Positions of links that share a step; the last one's result is the step's."""

    indices: tuple[int, ...]

    def links(self, chain: Chain) -> tuple[Link, ...]:
        return tuple(chain.links[i] for i in self.indices)

    def last(self, chain: Chain) -> Link:
        return chain.links[self.indices[-1]]

    def result(self, chain: Chain) -> Fraction:
        return self.last(chain).result

    def what(self, chain: Chain, names: Mapping[str, str], style: Style) -> str:
        return style.fill(self.last(chain).op.what, names, chain.values)

    def formula(self, chain: Chain) -> Formula:
        """The calculation of the step as it is written, from the values that stand before it."""
        links = self.links(chain)
        formula = links[-1].shown
        return formula.put(links[0].op.key, links[0].shown) if len(links) > 1 else formula

    def equation(self, chain: Chain, style: Style) -> str:
        """`formula = result` as the step states it, without delimiters."""
        left = self.formula(chain).written(self.links(chain)[0].values, style)
        right = style.number(self.result(chain)) + self.last(chain).op.unit
        return right if left in (right, right.replace("/", " / ")) else f"{left} = {right}"

    def again(self, chain: Chain) -> tuple[Link, ...]:
        """The links with every slip inside the block undone."""
        links: list[Link] = []
        for link in self.links(chain):
            values = dict(link.values) | {before.op.key: before.result for before in links}
            result = link.formula.value(values)
            if result is None:
                return ()
            links.append(Link(link.op, link.formula, values, result, link.turned))
        return tuple(links)


def equations(links: tuple[Link, ...], style: Style) -> list[str]:
    """One equation per link, each with its delimiters."""
    return [
        style.math(f"{link.shown.written(link.values, style)} = {style.number(link.result)}{link.op.unit}")
        for link in links
    ]


def split(chain: Chain, rate: float, rng: random.Random) -> list[Block]:
    """Each link its own block, except that at most one pair of linked ones may share a step."""
    count = len(chain.links)
    pairs = [i for i in range(count - 1) if _joins(chain, i)] if count > 2 else []
    joined = rng.choice(pairs) if pairs and rng.random() < rate else -1
    blocks, i = [], 0
    while i < count:
        size = 2 if i == joined else 1
        blocks.append(Block(tuple(range(i, i + size))))
        i += size
    return blocks


def _joins(chain: Chain, i: int) -> bool:
    key, here, after = chain.links[i].op.key, chain.links[i].op, chain.links[i + 1].op
    reused = sum(key in link.op.parsed.names for link in chain.links)
    binary = all(_binary(op.parsed) for op in (here, after))
    mistold = any(mistake.says for op in (here, after) for mistake in op.mistakes)
    own = here.says or after.says or here.unit or mistold
    return binary and not own and reused == 1 and key in after.parsed.names


def _binary(formula: Formula) -> bool:
    operands = formula.operands({name: Fraction(1) for name in formula.names})
    return operands is not None and operands[0] != "%"
