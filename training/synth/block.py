"""A block: one or two links of a chain told in a single step."""

import random
from dataclasses import dataclass

from training.synth.chain import Chain, Link
from training.synth.style import Style


@dataclass(frozen=True)
class Block:
    """Positions of links that share a step; the last one's result is the step's."""

    indices: tuple[int, ...]

    def links(self, chain: Chain) -> tuple[Link, ...]:
        return tuple(chain.links[i] for i in self.indices)

    def result(self, chain: Chain) -> int:
        return chain.links[self.indices[-1]].result

    def what(self, chain: Chain, names: dict[str, str]) -> str:
        values = {key: str(value) for key, value in chain.values.items()}
        return chain.links[self.indices[-1]].op.what.format(**names, **values)

    def formula(self, chain: Chain) -> str:
        """The left-hand side of the step's equation, on the numbers that the chain uses."""
        links = self.links(chain)
        if len(links) == 1:
            return formula(links[0].left, links[0].sign, links[0].right)
        inner, outer = links
        text = formula(inner.left, inner.sign, inner.right)
        on_left = outer.op.left == inner.op.key
        tight = outer.sign in "*/" or (outer.sign == "-" and not on_left)
        if tight and (inner.sign in "+-" or not on_left):
            text = f"({text})"
        if on_left:
            return f"{text} {outer.sign} {outer.right}"
        return f"{outer.left} {outer.sign} {text}"

    def true_result(self, chain: Chain) -> int | None:
        """What the block's own arithmetic gives on the numbers it uses: the result, unless it slipped."""
        again = self.again(chain)
        return again[-1].true_result if again else None

    def again(self, chain: Chain) -> tuple[Link, ...]:
        """The links with every slip inside the block undone."""
        links: list[Link] = []
        for link in self.links(chain):
            left, right = link.left, link.right
            if links and link.op.left == links[-1].op.key:
                left = links[-1].result
            elif links and link.op.right == links[-1].op.key:
                right = links[-1].result
            fixed = Link(link.op, left, link.sign, right, 0)
            result = fixed.true_result
            if result is None:
                return ()
            links.append(Link(link.op, left, link.sign, right, result))
        return tuple(links)


def formula(left: int, sign: str, right: int) -> str:
    return f"{right}% of {left}" if sign == "%" else f"{left} {sign} {right}"


def equations(links: tuple[Link, ...], style: Style) -> list[str]:
    return [style.math(f"{formula(link.left, link.sign, link.right)} = {link.result}") for link in links]


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
    key, after = chain.links[i].op.key, chain.links[i + 1].op
    reused = sum(key in (link.op.left, link.op.right) for link in chain.links)
    plain = "%" not in (chain.links[i].op.sign, after.sign)
    own = chain.links[i].op.says or after.says
    return plain and not own and reused == 1 and (after.left == key) != (after.right == key)
