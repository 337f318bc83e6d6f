"""An inspection: the checks that an arithmetic solution offers, each truthful about what was stated."""

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace

from training.synth.block import Block, equations, formula
from training.synth.chain import Chain, Link, Plant, carry_out, number
from training.synth.plan import Check
from training.synth.plant import MISREAD, OPERATION, SLIP
from training.synth.story import Story, Verify
from training.synth.style import Style
from training.synth.verdict import returns, verdict

LONGEST_RECOMPUTATION = 3


@dataclass(frozen=True)
class Inspection:
    """What a check needs to know: both chains, the planted error, and where its lines stand."""

    story: Story
    givens: dict[str, int]
    names: dict[str, str]
    plant: Plant
    right: Chain
    stated: Chain
    blocks: tuple[Block, ...]
    style: Style
    offset: int
    focus: int
    rng: random.Random

    def checks(self) -> Iterator[Check]:
        """Every check; one whose outcome the error leaves unchanged settles nothing."""
        wrong = self.stated.links != self.right.links
        for check in self._all():
            yield replace(check, settles=check.settles and check.passes != wrong)

    def _all(self) -> Iterator[Check]:
        for i, block in enumerate(self.blocks):
            line = i + self.offset
            settles = self.plant.kind == SLIP and line == self.focus
            yield from self._arithmetic(block, line, settles)
            if self.plant.kind == OPERATION and self.plant.op in block.indices:
                yield from self._method(block, line)
        yield from self._rereading()
        yield from self._recomputation()
        yield from self._verification()

    def _arithmetic(self, block: Block, line: int, settles: bool) -> Iterator[Check]:
        """Tests of one step's own arithmetic: they cannot see a misreading or a wrong operation."""
        stated = block.result(self.stated)
        again = block.again(self.stated)
        if not again:
            return
        if len(again) > 1:
            yield self._compare("recompute", line, equations(again, self.style), again[-1].result, stated, settles)
            return
        link = self.stated.links[block.indices[0]]
        for kind, parts, found, expected in _reversals(link, again[0].result):
            texts = [self.style.math(part) for part in parts]
            yield self._compare(kind, line, texts, found, expected, settles)
        yield from self._plausibility(link, line, settles)

    def _compare(self, kind: str, line: int, parts: list[str], found: int, expected: int, settles: bool) -> Check:
        words = returns if kind == "inverse" else verdict
        text = f"{' and '.join(parts)}, {words(found, expected, self.rng)}."
        return Check(kind, line, text, found == expected, settles)

    def _plausibility(self, link: Link, line: int, settles: bool) -> Iterator[Check]:
        """A product must be a multiple: a weak test, which settles the step only by failing."""
        if link.sign != "*" or link.right < 3:
            return
        passes = link.result % link.right == 0
        tail = "and it is." if passes else "which it is not, so it is wrong."
        text = f"{link.result} must be a multiple of {link.right}, {tail}"
        yield Check("plausibility", line, text, passes, settles and not passes)

    def _method(self, block: Block, line: int) -> Iterator[Check]:
        what, stated = block.what(self.right, self.names), block.result(self.stated)
        link = self.right.links[self.plant.op]
        found = block.result(self.right)
        equation = self.style.math(f"{block.formula(self.right)} = {found}")
        text = f"{what} must be {equation}, {verdict(found, stated, self.rng)}."
        yield Check("method", line, text, found == stated, True)
        if len(block.indices) > 1 or link.sign not in "+-" or link.right >= link.left:
            return
        grows = link.sign == "+"
        passes = (stated > link.left) == grows
        side = "more" if grows else "less"
        tail = "as it is" if passes else "and it is not, so that step is wrong"
        text = f"{what} must be {side} than {link.left}, {tail}."
        yield Check("plausibility", line, text, passes, True)

    def _rereading(self) -> Iterator[Check]:
        for key, given in self.story.givens.items():
            op = next(i for i, op in enumerate(self.story.ops) if key in (op.left, op.right))
            block = next(i for i, block in enumerate(self.blocks) if op in block.indices)
            is_plant = self.plant.kind == MISREAD and key == self.plant.key
            line = self.focus if is_plant else block + self.offset
            used, said = self.stated.values[key], self.givens[key]
            text = f"the problem says {said} {given.noun.format(**self.names)}, {verdict(said, used, self.rng)}."
            yield Check("reread", line, text, used == said, is_plant)

    def _recomputation(self) -> Iterator[Check]:
        if len(self.right.links) > LONGEST_RECOMPUTATION:
            return
        last = len(self.blocks) - 1 + self.offset
        parts = equations(self.right.links, self.style)
        yield self._compare("recompute", last, parts, self.right.answer, self.stated.answer, True)

    def _verification(self) -> Iterator[Check]:
        """From the stated answer back to what the problem says."""
        verify = self.story.verify
        if verify is None:
            return
        values = self.givens | {"answer": self.stated.answer}
        chain = carry_out(verify.ops, values)
        if chain is None:
            yield from self._contradiction(verify, values)
            return
        if any(link.left < 0 or link.right < 0 for link in chain.links):
            return
        found, needed = chain.values[verify.found], chain.values[verify.given]
        parts = equations(chain.links, self.style)
        tail = self.rng.choice(_BACK)[found != needed].format(c=needed)
        last = len(self.blocks) - 1 + self.offset
        start = f"with {self.stated.answer}, "
        yield Check(verify.kind, last, f"{start}{' and '.join(parts)}, {tail}.", found == needed, True)

    def _contradiction(self, verify: Verify, values: dict[str, int]) -> Iterator[Check]:
        """On the way back from the answer a division does not come out whole, so the answer is wrong."""
        chains = (carry_out(verify.ops[:count], values) for count in range(len(verify.ops), -1, -1))
        chain = next(chain for chain in chains if chain is not None)
        op = verify.ops[len(chain.links)]
        left, right = number(op.left, chain.values), number(op.right, chain.values)
        if op.sign != "/" or left <= 0 or any(link.result < 0 for link in chain.links):
            return
        parts = [*equations(chain.links, self.style), self.style.math(f"{left} / {right}")]
        tail = self.rng.choice(_BROKEN)
        last = len(self.blocks) - 1 + self.offset
        text = f"with {self.stated.answer}, {' and '.join(parts)} {tail}."
        yield Check("contradiction", last, text, False, True)


_BROKEN = (
    "is no whole number, a contradiction",
    "does not come out, so the answer is wrong",
    "is not whole, which cannot be",
)
_BACK = (
    ("the {c} we need", "but we need {c}"),
    ("as the problem says", "but the problem says {c}"),
    ("which is right", "and not {c}, a contradiction"),
    ("so the answer holds", "and not {c}, so the answer is wrong"),
    ("to be compared with {c}", "to be compared with {c}"),
)


def _reversals(link: Link, true: int) -> Iterator[tuple[str, list[str], int, int]]:
    """(kind, formulas, number found, number it must equal) of each way to test `link`."""
    a, b, c = link.left, link.right, link.result
    if link.sign == "+":
        yield "inverse", [f"{c} - {b} = {c - b}"], c - b, a
    elif link.sign == "-":
        yield "inverse", [f"{c} + {b} = {c + b}"], c + b, a
    elif link.sign == "/":
        yield "inverse", [f"{c} * {b} = {c * b}"], c * b, a
    elif link.sign == "%":
        yield "recompute", [f"{a} * {b} = {a * b}", f"{a * b} / 100 = {true}"], true, c
    else:
        if b and c % b == 0:
            yield "inverse", [f"{c} / {b} = {c // b}"], c // b, a
        if b > 10 and b % 10:
            tens = b - b % 10
            parts = [f"{a} * {tens} = {a * tens}", f"{a} * {b % 10} = {a * (b % 10)}"]
            yield "recompute", [*parts, f"{a * tens} + {a * (b % 10)} = {true}"], true, c
        else:
            yield "recompute", [formula(b, "*", a) + f" = {true}"], true, c
