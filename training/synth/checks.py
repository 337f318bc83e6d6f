"""The checks that a solution can perform on its own steps. A check never misstates the values that it refers to."""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

from stepsight.training.synth.chain import (
    DrawnProblem,
    Link,
    LinkGroup,
    PlantedError,
    StoryChain,
    carry_out,
    equations,
)
from stepsight.training.synth.formula import Condition
from stepsight.training.synth.mistakes import PI, ErrorKind
from stepsight.training.synth.solution import SelfCheck
from stepsight.training.synth.story import BackCalculation, Story
from stepsight.training.synth.style import Number, Style, Values, signed
from stepsight.training.synth.wording import bounded, breaks, leads_back, meets, returns, verdict

LONGEST_RECOMPUTATION = 4

_Texts = Callable[[], list[str]]


@dataclass(frozen=True)
class Inspection:
    """Everything from which the checks of a solution are derived, such as its chains and the planted error.

    `stated` is the chain that the solution states. `offset` is the number of steps before the first group, and
    `focus` is the index of the step that holds the error.
    """

    story: Story
    problem: DrawnProblem
    stated: StoryChain
    groups: tuple[LinkGroup, ...]
    style: Style
    offset: int
    focus: int
    rng: random.Random

    @property
    def right(self) -> StoryChain:
        return self.problem.right

    @property
    def error(self) -> PlantedError:
        return self.problem.error

    @property
    def end(self) -> int:
        """The index of the step that states the last group."""
        return len(self.groups) - 1 + self.offset

    def checks(self) -> Iterator[SelfCheck]:
        """Yield every check. Checks that pass despite the error get `settles=False`."""
        wrong = self.stated is not self.right
        for check in self._all():
            yield replace(check, settles=False) if check.settles and check.passes == wrong else check

    def _all(self) -> Iterator[SelfCheck]:
        changes_method = self.error.mistake is not None
        for index, group in enumerate(self.groups):
            step = index + self.offset
            yield from self._arithmetic(group, step, self.error.kind == ErrorKind.SLIP and step == self.focus)
            if changes_method and self.error.index in group.indices:
                yield self._method(group, step)
        yield from self._bounds()
        yield from self._rereading()
        yield from self._recomputation()
        if self.error.kind == ErrorKind.ANSWER:
            yield self._question()
        for verification in self.story.verifications:
            yield from self._verification(verification)

    def number(self, value: Number, unit: str = "") -> str:
        """Return a value as written in a sentence."""
        number = self.style.number(value) + unit
        return self.style.math(number) if "frac" in number or unit == PI else number

    def _arithmetic(self, group: LinkGroup, step: int, settles: bool) -> Iterator[SelfCheck]:
        """Yield checks of the arithmetic within one step. They cannot detect a misread or a wrong operation."""
        again = group.again(self.stated)
        if not again:
            return
        true, stated, unit = again[-1].result, group.result(self.stated), again[-1].calculation.unit
        if len(again) > 1:
            parts = partial(equations, again, self.style)
            yield self._compare("recompute", step, parts, true, stated, settles, unit)
            return
        link = group.last(self.stated)
        for kind, formulas, result, expected in _reversals(link, true, self.style):
            yield self._compare(
                kind, step, self._in_math(formulas), result, expected, settles, "" if kind == "inverse" else unit
            )
        yield from self._plausibility(link, step, settles)

    def _in_math(self, formulas: list[str]) -> _Texts:
        return lambda: [self.style.math(formula) for formula in formulas]

    def _compare(
        self, kind: str, step: int, parts: _Texts, result: Number, expected: Number, settles: bool, unit: str
    ) -> SelfCheck:
        words = returns if kind == "inverse" else verdict
        tail = words(result, expected, self.rng, self.number(expected, unit))
        return SelfCheck(kind, step, lambda: f"{' and '.join(parts())}, {tail}.", result == expected, settles)

    def _plausibility(self, link: Link, step: int, settles: bool) -> Iterator[SelfCheck]:
        """Yield a check that a product is a multiple of one of its factors.

        The check is weak: it settles whether the step is wrong only if it fails.
        """
        operands = link.formula.operands(link.values)
        if not operands or operands[0] != "*" or operands[2] < 3:
            return
        if any(value.denominator != 1 for value in (*operands[1:], link.result)):
            return
        passes = link.result % operands[2] == 0
        text = f"{link.result} must be a multiple of {operands[2]}, {bounded(passes, self.rng)}."
        yield SelfCheck("plausibility", step, lambda: text, passes, settles and not passes)

    def _method(self, group: LinkGroup, step: int) -> SelfCheck:
        stated, result = group.result(self.stated), group.result(self.right)
        tail = verdict(result, stated, self.rng, self.number(stated, group.last(self.right).calculation.unit))

        def text() -> str:
            equation = self.style.math(group.equation(self.right, self.style))
            return f"{self._what(group)} must be {equation}, {tail}."

        return SelfCheck("method", step, text, result == stated, True)

    def _what(self, group: LinkGroup) -> str:
        return group.what(self.right, self.problem.names, self.style)

    def _bounds(self) -> Iterator[SelfCheck]:
        """Yield checks of the story's bounds: conditions that every right solution meets. If a check fails, the
        error has led to an implausible result."""
        keys = {group.last(self.stated).calculation.key: i for i, group in enumerate(self.groups)}
        values = {**self.stated.values, **self.problem.quantities}
        for condition, template in self.story.bounds.items():
            bound = Condition.of(condition)
            steps = [keys[name] + self.offset for name in bound.names if name in keys]
            if not steps or bound.names - set(keys) - set(self.problem.quantities):
                continue
            passes = bound.holds(values)
            text = self._bound_text(template, values, bounded(passes, self.rng))
            yield SelfCheck("implausible", max(steps), text, passes, not passes and max(steps) >= self.focus)

    def _bound_text(self, template: str, values: Values, tail: str) -> Callable[[], str]:
        return lambda: f"{self.style.fill(template, self.problem.names, values)}, {tail}."

    def _rereading(self) -> Iterator[SelfCheck]:
        for key, quantity in self.story.quantities.items():
            index = self.story.first_use(key)
            if index is None or not quantity.noun:
                continue
            group = next(i for i, group in enumerate(self.groups) if index in group.indices)
            misread = self.error.kind == ErrorKind.MISREAD and key == self.error.key
            step = self.focus if misread else group + self.offset
            used, true = self.stated.values[key], self.problem.quantities[key]
            noun = quantity.noun.format(**self.problem.names)
            text = f"the problem says {true} {noun}, {verdict(true, used, self.rng, self.number(used))}."
            yield SelfCheck("reread", step, _constant(text), used == true, misread)

    def _recomputation(self) -> Iterator[SelfCheck]:
        if len(self.right.links) > LONGEST_RECOMPUTATION or self.error.kind == ErrorKind.ANSWER:
            return
        if not equations(self.right.links, self.style):
            return
        unit = self.right.links[-1].calculation.unit
        yield self._compare(
            "recompute",
            self.end,
            partial(equations, self.right.links, self.style),
            self.right.answer,
            self.stated.answer,
            True,
            unit,
        )

    def _question(self) -> SelfCheck:
        """Return a check that the stated answer is the quantity that the question asks for."""
        true, stated = self.right.answer, self.stated.answer
        tail = verdict(true, stated, self.rng, self.number(stated, self.stated.unit))
        shown = self.number(true, self.right.unit)
        text = f"the question asks for {self._what(self.groups[-1])}, which is {shown}, {tail}."
        return SelfCheck("question", self.end + 1, lambda: text, true == stated, True)

    def _verification(self, verification: BackCalculation) -> Iterator[SelfCheck]:
        """Yield a check that calculates backwards from the stated answer to a number given in the problem."""
        values = self.problem.quantities | {"answer": self.stated.answer}
        chain = carry_out(verification.calculations, values)
        step = self.end + (self.error.kind == ErrorKind.ANSWER)
        start = f"with {self.number(self.stated.answer, self.stated.unit)}, "
        if chain is None or (self.story.whole and any(x.result.denominator != 1 for x in chain.links)):
            yield from self._contradiction(verification, values, start, step)
            return
        if self.story.smallest >= 0 and any(value < 0 for value in chain.links[-1].values.values()):
            return
        result, needed = chain.values[verification.result_key], chain.values[verification.equals]
        if verification.equals in self.problem.quantities:
            tail = leads_back(result, needed, self.rng, self.number(needed))
        else:
            tail = meets(self.number(result), self.number(needed), self.rng)
        links = chain.links

        def text() -> str:
            return f"{start}{' and '.join(equations(links, self.style))}, {tail}."

        yield SelfCheck(verification.kind, step, text, result == needed, True)

    def _contradiction(
        self, verification: BackCalculation, values: Values, start: str, step: int
    ) -> Iterator[SelfCheck]:
        """Yield a check that fails because a division on the way back from the answer leaves a remainder."""
        for count, calculation in enumerate(verification.calculations):
            chain = carry_out(verification.calculations[: count + 1], values)
            if chain is None:
                return
            last = chain.links[-1]
            if last.result < 0:
                return
            if last.result.denominator == 1:
                continue
            if calculation.parsed.operands(last.values) is None:
                return
            written = self.style.math(last.formula.written(last.values, self.style))
            parts = " and ".join([*equations(chain.links[:-1], self.style), written])
            yield SelfCheck("contradiction", step, _constant(f"{start}{parts} {breaks(self.rng)}."), False, True)
            return


def _constant(text: str) -> Callable[[], str]:
    return lambda: text


def _reversals(link: Link, true: Number, style: Style) -> Iterator[tuple[str, list[str], Number, Number]]:
    """Yield the ways to check the arithmetic of `link`.

    Each is a tuple of the kind of check, the formulas to write, the result of the last one, and the number that
    this result must equal. `true` is the correct result of the link.
    """
    operands = link.formula.operands(link.values)
    whole = operands and all(v.denominator == 1 for v in (*operands[1:], link.result))
    if operands is None or not whole or link.calculation.unit == PI:
        plain = link.shown.written(link.values, style)
        if plain == style.number(true):
            return
        yield "recompute", [f"{plain} = {style.number(true)}{link.calculation.unit}"], true, link.result
        return
    sign, left, right = operands
    a, b, c = int(left), int(right), int(link.result)
    if sign == "+":
        yield "inverse", [f"{c} - {signed(b)} = {c - b}"], c - b, left
    elif sign == "-":
        yield "inverse", [f"{c} + {signed(b)} = {c + b}"], c + b, left
    elif sign == "/":
        yield "inverse", [f"{signed(c)} * {signed(b)} = {c * b}"], c * b, left
    elif sign == "%":
        yield "recompute", [f"{a} * {b} = {a * b}", f"{a * b} / 100 = {style.number(true)}"], true, link.result
    else:
        yield from _of_product(a, b, c)


def _of_product(a: int, b: int, c: int) -> Iterator[tuple[str, list[str], Number, Number]]:
    true = a * b
    if b > 0 and c % b == 0:
        yield "inverse", [f"{c} / {b} = {c // b}"], c // b, a
    if b > 10 and b % 10 and a > 0:
        tens = b - b % 10
        parts = [f"{a} * {tens} = {a * tens}", f"{a} * {b % 10} = {a * (b % 10)}"]
        yield "recompute", [*parts, f"{a * tens} + {a * (b % 10)} = {true}"], true, c
    else:
        yield "recompute", [f"{b} * {signed(a)} = {true}"], true, c
