"""An inspection: the checks that an arithmetic solution offers, each truthful about what was stated."""

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

from stepsight.training.synth.block import Block, equations
from stepsight.training.synth.chain import Chain, Draw, Link, Plant, carry_out
from stepsight.training.synth.formula import Formula, holds
from stepsight.training.synth.plan import Check
from stepsight.training.synth.plant import ANSWER, MISREAD, SLIP
from stepsight.training.synth.story import PI, Story, Verify
from stepsight.training.synth.style import Style, signed
from stepsight.training.synth.verdict import bounded, breaks, leads_back, meets, returns, verdict

LONGEST_RECOMPUTATION = 4


@dataclass(frozen=True)
class Inspection:
    """What a check needs to know: both chains, the planted error, and where its lines stand."""

    story: Story
    draw: Draw
    stated: Chain
    blocks: tuple[Block, ...]
    style: Style
    offset: int
    focus: int
    rng: random.Random

    @property
    def right(self) -> Chain:
        return self.draw.right

    @property
    def plant(self) -> Plant:
        return self.draw.plant

    @property
    def end(self) -> int:
        """The line of the last block."""
        return len(self.blocks) - 1 + self.offset

    def checks(self) -> Iterator[Check]:
        """Every check; one whose outcome the error leaves unchanged settles nothing."""
        wrong = self.stated is not self.right
        for check in self._all():
            yield replace(check, settles=check.settles and check.passes != wrong)

    def _all(self) -> Iterator[Check]:
        changes_method = self.plant.mistake is not None
        for i, block in enumerate(self.blocks):
            line = i + self.offset
            yield from self._arithmetic(block, line, self.plant.kind == SLIP and line == self.focus)
            if changes_method and self.plant.op in block.indices:
                yield self._method(block, line)
        yield from self._bounds()
        yield from self._rereading()
        yield from self._recomputation()
        if self.plant.kind == ANSWER:
            yield self._question()
        for verify in self.story.verifies:
            yield from self._verification(verify)

    def number(self, value: Fraction, unit: str = "") -> str:
        """A value as it stands in a sentence."""
        number = self.style.number(value) + unit
        return self.style.math(number) if "frac" in number or unit == PI else number

    def _arithmetic(self, block: Block, line: int, settles: bool) -> Iterator[Check]:
        """Tests of one step's own arithmetic: they cannot see a misreading or a wrong operation."""
        again = block.again(self.stated)
        if not again:
            return
        true, stated = again[-1].result, block.result(self.stated)
        if len(again) > 1:
            parts, unit = equations(again, self.style), again[-1].op.unit
            yield self._compare("recompute", line, parts, true, stated, settles, unit)
            return
        for kind, parts, found, expected in _reversals(block.last(self.stated), true, self.style):
            texts = [self.style.math(part) for part in parts]
            unit = "" if kind == "inverse" else again[-1].op.unit
            yield self._compare(kind, line, texts, found, expected, settles, unit)
        yield from self._plausibility(block.last(self.stated), line, settles)

    def _compare(
        self,
        kind: str,
        line: int,
        parts: list[str],
        found: Fraction,
        expected: Fraction,
        settles: bool,
        unit: str,
    ) -> Check:
        words = returns if kind == "inverse" else verdict
        text = f"{' and '.join(parts)}, {words(found, expected, self.rng, self.number(expected, unit))}."
        return Check(kind, line, text, found == expected, settles)

    def _plausibility(self, link: Link, line: int, settles: bool) -> Iterator[Check]:
        """A product must be a multiple: a weak test, which settles the step only by failing."""
        operands = link.formula.operands(link.values)
        if not operands or operands[0] != "*" or operands[2] < 3:
            return
        if any(value.denominator != 1 for value in (*operands[1:], link.result)):
            return
        passes = link.result % operands[2] == 0
        text = f"{link.result} must be a multiple of {operands[2]}, {bounded(passes, self.rng)}."
        yield Check("plausibility", line, text, passes, settles and not passes)

    def _method(self, block: Block, line: int) -> Check:
        what, stated, found = self._what(block), block.result(self.stated), block.result(self.right)
        equation = self.style.math(block.equation(self.right, self.style))
        shown = self.number(stated, block.last(self.right).op.unit)
        text = f"{what} must be {equation}, {verdict(found, stated, self.rng, shown)}."
        return Check("method", line, text, found == stated, True)

    def _what(self, block: Block) -> str:
        return block.what(self.right, self.draw.names, self.style)

    def _bounds(self) -> Iterator[Check]:
        """What must be true of any right solution; where the error breaks it, a result is implausible."""
        for bound in self.story.bounds:
            names = Formula.of(bound.condition).names
            keys = {block.last(self.stated).op.key: i for i, block in enumerate(self.blocks)}
            lines = [keys[name] + self.offset for name in names if name in keys]
            hidden = names - set(keys) - set(self.draw.givens)
            if not lines or hidden:
                continue
            values = dict(self.stated.values) | self.draw.givens
            passes = holds(bound.condition, values)
            said = self.style.fill(bound.text, self.draw.names, values)
            text = f"{said}, {bounded(passes, self.rng)}."
            yield Check("implausible", max(lines), text, passes, not passes and max(lines) >= self.focus)

    def _rereading(self) -> Iterator[Check]:
        for key, given in self.story.givens.items():
            op = next((i for i, op in enumerate(self.story.ops) if key in op.parsed.names), None)
            if op is None or not given.noun:
                continue
            block = next(i for i, block in enumerate(self.blocks) if op in block.indices)
            is_plant = self.plant.kind == MISREAD and key == self.plant.key
            line = self.focus if is_plant else block + self.offset
            used, said = self.stated.values[key], self.draw.givens[key]
            noun = given.noun.format(**self.draw.names)
            text = f"the problem says {said} {noun}, {verdict(said, used, self.rng, self.number(used))}."
            yield Check("reread", line, text, used == said, is_plant)

    def _recomputation(self) -> Iterator[Check]:
        if len(self.right.links) > LONGEST_RECOMPUTATION or self.plant.kind == ANSWER:
            return
        parts = equations(self.right.links, self.style)
        unit = self.right.links[-1].op.unit
        yield self._compare("recompute", self.end, parts, self.right.answer, self.stated.answer, True, unit)

    def _question(self) -> Check:
        """Whether the answer given is the one asked for."""
        asked = self._what(self.blocks[-1])
        found, stated = self.right.answer, self.stated.answer
        tail = verdict(found, stated, self.rng, self.number(stated, self._unit(self.stated)))
        shown = self.number(found, self._unit(self.right))
        text = f"the question asks for {asked}, which is {shown}, {tail}."
        return Check("question", self.end + 1, text, found == stated, True)

    def _unit(self, chain: Chain) -> str:
        """The unit of the answer."""
        return chain.links[chain.answered].op.unit

    def _verification(self, verify: Verify) -> Iterator[Check]:
        """From the stated answer back to what the problem says."""
        values = self.draw.givens | {"answer": self.stated.answer}
        chain = carry_out(verify.ops, values)
        line = self.end + (self.plant.kind == ANSWER)
        start = f"with {self.number(self.stated.answer, self._unit(self.stated))}, "
        if chain is None or (self.story.whole and any(x.result.denominator != 1 for x in chain.links)):
            yield from self._contradiction(verify, values, start, line)
            return
        if self.story.smallest >= 0 and any(v < 0 for link in chain.links for v in link.values.values()):
            return
        found, needed = chain.values[verify.found], chain.values[verify.given]
        parts = " and ".join(equations(chain.links, self.style))
        if verify.given in self.draw.givens:
            tail = leads_back(found, needed, self.rng, self.number(needed))
        else:
            tail = meets(self.number(found), self.number(needed), self.rng)
        text = f"{start}{parts}, {tail}."
        yield Check(verify.kind, line, text, found == needed, True)

    def _contradiction(
        self, verify: Verify, values: Mapping[str, Fraction], start: str, line: int
    ) -> Iterator[Check]:
        """On the way back from the answer a division does not come out whole, so the answer is wrong."""
        for count, op in enumerate(verify.ops):
            chain = carry_out(verify.ops[: count + 1], values)
            if chain is None:
                return
            last = chain.links[-1]
            if last.result < 0:
                return
            if last.result.denominator == 1:
                continue
            if op.parsed.operands(last.values) is None:
                return
            written = self.style.math(last.formula.written(last.values, self.style))
            parts = " and ".join([*equations(chain.links[:-1], self.style), written])
            yield Check("contradiction", line, f"{start}{parts} {breaks(self.rng)}.", False, True)
            return


def _reversals(link: Link, true: Fraction, style: Style) -> Iterator[tuple[str, list[str], Fraction, Fraction]]:
    """(kind, formulas, number found, number it must equal) of each way to test `link`."""
    operands = link.formula.operands(link.values)
    plain = link.shown.written(link.values, style)
    whole = operands and all(v.denominator == 1 for v in (*operands[1:], link.result))
    if operands is None or not whole or link.op.unit == PI:
        if plain == style.number(true):
            return
        yield "recompute", [f"{plain} = {style.number(true)}{link.op.unit}"], true, link.result
        return
    sign, left, right = operands
    a, b, c = int(left), int(right), int(link.result)
    if sign == "+":
        yield "inverse", [f"{c} - {signed(b)} = {c - b}"], Fraction(c - b), left
    elif sign == "-":
        yield "inverse", [f"{c} + {signed(b)} = {c + b}"], Fraction(c + b), left
    elif sign == "/":
        yield "inverse", [f"{signed(c)} * {signed(b)} = {c * b}"], Fraction(c * b), left
    elif sign == "%":
        yield "recompute", [f"{a} * {b} = {a * b}", f"{a * b} / 100 = {style.number(true)}"], true, link.result
    else:
        yield from _of_product(a, b, c)


def _of_product(a: int, b: int, c: int) -> Iterator[tuple[str, list[str], Fraction, Fraction]]:
    true = a * b
    if b > 0 and c % b == 0:
        yield "inverse", [f"{c} / {b} = {c // b}"], Fraction(c // b), Fraction(a)
    if b > 10 and b % 10 and a > 0:
        tens = b - b % 10
        parts = [f"{a} * {tens} = {a * tens}", f"{a} * {b % 10} = {a * (b % 10)}"]
        yield "recompute", [*parts, f"{a * tens} + {a * (b % 10)} = {true}"], Fraction(true), Fraction(c)
    else:
        yield "recompute", [f"{b} * {signed(a)} = {true}"], Fraction(true), Fraction(c)
