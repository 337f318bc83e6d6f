"""Groups of links: one or two links of a chain that are told in a single step."""

import random
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

from stepsight.training.synth.chain import Chain, Link
from stepsight.training.synth.formula import Formula
from stepsight.training.synth.story import Story
from stepsight.training.synth.style import Style


@dataclass(frozen=True)
class LinkGroup:
    """Positions of links that share a step; the last one's result is the step's."""

    indices: tuple[int, ...]

    def links(self, chain: Chain) -> tuple[Link, ...]:
        return tuple(chain.links[i] for i in self.indices)

    def last(self, chain: Chain) -> Link:
        return chain.links[self.indices[-1]]

    def result(self, chain: Chain) -> Fraction:
        return self.last(chain).result

    def what(self, chain: Chain, names: Mapping[str, str], style: Style) -> str:
        """The name of the result."""
        return style.fill(self.last(chain).calculation.what, names, chain.values)

    def formula(self, chain: Chain) -> Formula:
        """The calculation of the step as it is written, from the values that stand before it."""
        links = self.links(chain)
        formula = links[-1].shown
        return formula.put(links[0].calculation.key, links[0].shown) if len(links) > 1 else formula

    def equation(self, chain: Chain, style: Style) -> str:
        """`formula = result` as the step states it, without delimiters."""
        left = self.formula(chain).written(chain.links[self.indices[0]].values, style)
        right = style.number(self.result(chain)) + self.last(chain).calculation.unit
        return right if left in (right, right.replace("/", " / ")) else f"{left} = {right}"

    def again(self, chain: Chain) -> tuple[Link, ...]:
        """The links with every slip inside the group undone."""
        links: list[Link] = []
        for link in self.links(chain):
            values = {**link.values, **{before.calculation.key: before.result for before in links}}
            result = link.formula.value(values)
            if result is None:
                return ()
            links.append(replace(link, values=values, result=result))
        return tuple(links)


def equations(links: tuple[Link, ...], style: Style) -> list[str]:
    """One equation per link, each with its delimiters."""
    return [
        style.math(f"{link.shown.written(link.values, style)} = {style.number(link.result)}{link.calculation.unit}")
        for link in links
    ]


def group_links(story: Story, rate: float, rng: random.Random) -> list[LinkGroup]:
    """Each link in a group of its own, except that at most one pair of linked ones may share a step."""
    pairs = story.joinable
    joined = rng.choice(pairs) if pairs and rng.random() < rate else -1
    groups, i = [], 0
    while i < len(story.calculations):
        size = 2 if i == joined else 1
        groups.append(LinkGroup(tuple(range(i, i + size))))
        i += size
    return groups
