"""The steps of a solution of a story's problem, the redundant steps that it may contain, and the checks that it can
perform on its own steps. A check never misstates the values that it refers to.
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from stepsight.training.synth.chain import Link, Problem, StepChain, carry_out, equation, equations, recomputed
from stepsight.training.synth.formula import PI, ErrorKind
from stepsight.training.synth.solution import ExtraStep, SolutionStep
from stepsight.training.synth.story import BackCalculation
from stepsight.training.synth.style import Number, Style, Values, capital, ending, signed, templates, terse

BARE_RATE = 0.5
TERSE_RATE = 0.12
TERSE_RATE_WHERE_INVITED = 0.4
REASON_RATE = 0.06
TURNED_REASON_RATE = 0.4
ANSWER_RATE = 0.85


@dataclass(frozen=True)
class StorySolution:
    """A solution of a story's problem, with an error if `wrong` is True.

    Each of `groups` gives the links of a chain that a step states. `reading` is the key of the quantity that a step
    first reads off the problem, or None. `outlined` is True if the first step announces the plan. `rng` chooses the
    wording.
    """

    problem: Problem
    wrong: bool
    groups: Sequence[slice]
    style: Style
    reading: str | None
    outlined: bool
    rng: random.Random

    @cached_property
    def stated(self) -> StepChain:
        return self.chains[0]

    @cached_property
    def offset(self) -> int:
        """The number of steps before the first calculation."""
        return int(self.outlined) + int(self.reading is not None)

    @cached_property
    def focus(self) -> int:
        """The index of the step that holds the error or, in a correct solution, could have held it."""
        error = self.problem.error
        if error.kind == ErrorKind.ANSWER:
            return len(self.groups) + self.offset
        if error.kind == ErrorKind.MISREAD and self.reading == error.key:
            return self.offset - 1
        return self.group_of(error.index) + self.offset

    def group_of(self, index: int) -> int:
        """Return the index of the group that contains a calculation."""
        return next(i for i, group in enumerate(self.groups) if group.start <= index < group.stop)

    def number(self, value: Number, unit: str = "") -> str:
        """Return a value as written in a sentence."""
        number = self.style.number(value) + unit
        return self.style.math(number) if "frac" in number or unit == PI else number

    def noun(self, key: str) -> str:
        """Return what a quantity counts."""
        return self.problem.story.quantities[key].noun.format(**self.problem.names)

    def what(self, group: slice, chain: StepChain | None = None) -> str:
        """Return the name of the result of a group, such as "the share of each"."""
        chain = chain or self.problem.right
        return self.style.fill(chain.links[group][-1].calculation.what, self.problem.names, chain.values)

    @cached_property
    def chains(self) -> tuple[StepChain, ...]:
        """What the texts of a step are about: the stated chain and, if it is wrong, the corrected one."""
        return (self.problem.faulty, self.problem.right) if self.wrong else (self.problem.right,)

    def _draw(self, name: str) -> str:
        return self.rng.choice(templates(name))

    def _math(self, value: Number) -> str:
        return self.style.math(self.style.number(value))

    def _step(self, key: str, texts: Sequence[str]) -> SolutionStep:
        return SolutionStep(texts, [{key: str(chain.values[key])} for chain in self.chains])

    def steps(self) -> Iterator[SolutionStep]:
        """Yield the steps of the solution.

        These are perhaps the plan and a reading, then the calculations, and the answer, unless it ends the last of
        them.
        """
        story, names, last = self.problem.story, self.problem.names, len(self.groups) - 1
        ends_apart = self.rng.random() < ANSWER_RATE or last < 2 or self.problem.error.kind == ErrorKind.ANSWER
        if self.outlined:
            if story.outlines:
                outline = self.style.fill(self.rng.choice(story.outlines), names, self.problem.quantities)
            else:
                first, result = self.what(self.groups[0]), self.what(self.groups[-1])
                outline = self._draw("outlines").format(first=first, what=result)
            yield SolutionStep([outline, outline], [{}, {}])
        if key := self.reading:
            template, noun = self._draw("reads"), self.noun(key)
            read = [self._math(chain.values[key]) for chain in self.chains]
            yield self._step(key, [template.format(v=value, noun=noun) for value in read])
        for index, group in enumerate(self.groups):
            yield self._calculation(group, "" if ends_apart or index < last else ", so the answer is {box}")
        if ends_apart:
            template, texts = self.rng.choice(story.answers or templates("answers")), []
            for chain in self.chains:
                what = self.what(self.groups[-1], chain)
                box = self.style.boxed(self.style.number(chain.answer) + chain.unit)
                filled = names | {"box": box, "what": what, "What": capital(what)}
                texts.append(self.style.fill(template, filled, chain.values))
            yield SolutionStep(texts, [{"answer": str(chain.answer)} for chain in self.chains])

    def _calculation(self, group: slice, end: str) -> SolutionStep:
        """Return the step that states a group of links.

        The faulty and the correct text use the same random numbers, so they pick corresponding templates.
        """
        mistake, calculation = self.problem.error.mistake, self.problem.right.links[group][-1].calculation
        bare = group.stop - group.start > 1 and self.rng.random() < BARE_RATE
        # A mistake without a calculation shows only a result, so right steps of that calculation often do too.
        is_terse = self.rng.random() < (TERSE_RATE_WHERE_INVITED if calculation.invites_terse else TERSE_RATE)
        # A reason that is false in every problem always gives the error away, so it is given rarely.
        reasoned = self.rng.random() < (TURNED_REASON_RATE if mistake and mistake.right else REASON_RATE)
        place, texts = self.rng.random(), []
        for chain in self.chains:
            has_equation = " = " in equation(chain.links[group], self.style)
            if (
                reasoned
                and mistake
                and mistake.reason
                and chain.links[group][-1].formula is not calculation.formula
            ):
                options = mistake.reason
            elif calculation.templates:
                options = calculation.templates
            elif bare and has_equation:
                options = templates("jumps")
            else:
                options = templates("says" if has_equation and not is_terse else "bares")
            template = options[int(place * len(options))]
            filled, values = self._texts(group, chain), self._mentionable(group, chain)
            text = self.style.fill(terse(template) if is_terse else template, filled, values)
            texts.append(f"{text[:-1]}{end.format(box=filled['box'])}." if end else text)
        return self._step(calculation.key, texts)

    def _mentionable(self, group: slice, chain: StepChain) -> Values:
        """Return the values that a step may mention. A quantity has its true value until it is misread."""
        error = self.problem.error
        if error.kind == ErrorKind.MISREAD and error.key != self.reading and error.index >= group.stop:
            return {**chain.values, error.key: self.problem.quantities[error.key]}
        return chain.values

    def _texts(self, group: slice, chain: StepChain) -> dict[str, str]:
        """Return the texts that fill the placeholders of a step's template."""
        links, what = chain.links[group], self.what(group, chain)
        value = self.style.number(links[-1].result) + links[-1].calculation.unit
        stated, name = equation(links, self.style), what.replace("$", "")
        return self.problem.names | {
            "what": what,
            "What": capital(what),
            "eq": self.style.math(stated),
            "weq": self.style.math(f"{name} = {stated}"),
            "wres": self.style.math(f"{name} = {value}"),
            "res": self.style.math(value),
            "box": self.style.boxed(value),
        }

    def redo(self, step: int) -> str:
        """Return a sentence with the correct equations of the groups from the focus to `step`."""
        error, right = self.problem.error, self.problem.right
        answer = self.style.math(self.style.number(right.answer) + right.unit)
        if error.kind == ErrorKind.ANSWER:
            return f"So the answer is {answer}."
        shown = self.groups[self.group_of(error.index) : max(step - self.offset + 1, 0)]
        if not shown:
            return f"So we use {self.style.number(self.problem.quantities[error.key])} {self.noun(error.key)}."
        parts = [self.style.math(equation(right.links[group], self.style)) for group in shown]
        text = "So " + ", then ".join(parts)
        if step - self.offset >= len(self.groups):
            return f"{text}, and the answer is {answer}."
        return f"{text} for {self.what(shown[-1])}."

    def redundant(self) -> Iterator[ExtraStep]:
        """Yield all redundant steps that the solution may contain.

        They restate the question, a quantity or a result, calculate there and back, or compute something that is
        not needed.
        """
        quantities = self.problem.quantities
        question = self._draw("asks").format(what=self.what(self.groups[-1]))
        yield ExtraStep("restating", -1, [question] * 2)
        key = self.rng.choice(list(quantities))
        if noun := self.noun(key):
            repetition = self._draw("repeats").format(v=self._math(quantities[key]), noun=noun)
            yield ExtraStep("restating", -1, [repetition] * 2)
        values = sorted(int(value) for value in quantities.values())
        a, b = self.rng.sample(values, 2) if len(values) > 1 else (values[0], self.rng.randint(2, 9))
        results = {f"{a} + {signed(b)} = {a + b}": a + b, f"2 * {abs(a)} = {2 * abs(a)}": 2 * abs(a)}
        needed = {*self.problem.right.values.values(), *self.problem.faulty.values.values()}
        if options := [text for text, value in results.items() if value not in needed]:
            sum_or_double = self.style.math(self.rng.choice(options))
            yield ExtraStep("aside", -1, [self._draw("asides").format(eq=sum_or_double)] * 2)
        value = self.rng.choice(list(quantities.values()))
        parity = self._draw("parities").format(v=self._math(value), parity="odd" if value % 2 else "even")
        yield ExtraStep("aside", -1, [parity] * 2)
        for index, group in enumerate(self.groups, self.offset):
            template = self._draw("recalls")
            recalls = [template.format(**self._texts(group, chain)) for chain in self.chains]
            yield ExtraStep("restating", index, recalls)
            template, n = self._draw("detours"), self.rng.randint(2, 9)
            sign, back_sign = ("*", "/") if self.rng.random() < 0.5 else ("+", "-")
            detours = []
            for chain in self.chains:
                result = chain.links[group][-1].result
                first, second = map(self.style.number, (result, result * n if sign == "*" else result + n))
                forward = self.style.math(f"{first} {sign} {n} = {second}")
                detours.append(
                    template.format(forward=forward, back=self.style.math(f"{second} {back_sign} {n} = {first}"))
                )
            yield ExtraStep("detour", index, detours)


LONGEST_RECOMPUTATION = 4


def checks(solution: StorySolution) -> Iterator[ExtraStep]:
    """Yield every check of a solution."""
    problem, stated = solution.problem, solution.stated
    error, right = problem.error, problem.right
    for step, group in enumerate(solution.groups, solution.offset):
        yield from _arithmetic(solution, step, group)
        if error.mistake is not None and group.start <= error.index < group.stop:
            links, result = right.links[group], stated.links[group][-1].result
            shown = solution.style.math(equation(links, solution.style))
            tail = _compare(solution, links[-1].result, result, links[-1].calculation.unit)
            text = f"{solution.what(group)} must be {shown}, {tail}."
            yield ExtraStep.check("method", step, text, links[-1].result == result)
    yield from _bounds(solution)
    yield from _rereading(solution)
    end = len(solution.groups) - 1 + solution.offset
    if error.kind == ErrorKind.ANSWER:
        end += 1
        tail = _compare(solution, right.answer, stated.answer, stated.unit)
        what, shown = solution.what(solution.groups[-1]), solution.number(right.answer, right.unit)
        text = f"the question asks for {what}, which is {shown}, {tail}."
        yield ExtraStep.check("question", end, text, right.answer == stated.answer)
    elif len(right.links) <= LONGEST_RECOMPUTATION and equations(right.links, solution.style):
        yield _recomputation(solution, end, right.links, stated.answer)
    for verification in problem.story.verifications:
        yield from _verification(solution, verification, end)


def _compare(
    solution: StorySolution, result: Number, expected: Number, unit: str = "", name: str = "verdict"
) -> str:
    """Return the end of a check that compares two values. It shows the expected one."""
    return ending(name, result == expected, solution.rng, c=solution.number(expected, unit))


def _recomputation(
    solution: StorySolution, step: int, links: Sequence[Link], stated: Number, settles: bool = True
) -> ExtraStep:
    """Return a check that carries out calculations once more and compares the last result with the stated one."""
    result = links[-1].result
    tail = _compare(solution, result, stated, links[-1].calculation.unit)
    text = f"{' and '.join(equations(links, solution.style))}, {tail}."
    return ExtraStep.check("recompute", step, text, result == stated, settles)


def _arithmetic(solution: StorySolution, step: int, group: slice) -> Iterator[ExtraStep]:
    """Yield checks of the arithmetic within one step. They cannot detect a misread or a wrong operation."""
    links = solution.stated.links[group]
    settles = solution.problem.error.kind == ErrorKind.SLIP and step == solution.focus
    again = recomputed(links)
    if len(again) > 1:
        yield _recomputation(solution, step, again, links[-1].result, settles)
    if len(again) != 1:
        return
    [link] = links
    for kind, formulas, result, expected in _reversals(link, again[0].result, solution.style):
        name, unit = ("inverse", "") if kind == "inverse" else ("verdict", link.calculation.unit)
        tail = _compare(solution, result, expected, unit, name)
        text = f"{' and '.join(map(solution.style.math, formulas))}, {tail}."
        yield ExtraStep.check(kind, step, text, result == expected, settles)
    operands = link.formula.operands(link.values)
    if not operands or operands[0] != "*" or operands[2] < 3:
        return
    if all(value.denominator == 1 for value in (*operands[1:], link.result)):
        # A weak check: that a product is a multiple of a factor says something only if it fails.
        passes = link.result % operands[2] == 0
        text = f"{link.result} must be a multiple of {operands[2]}, {ending('bound', passes, solution.rng)}."
        yield ExtraStep.check("plausibility", step, text, passes, settles and not passes)


def _reversals(link: Link, true: Number, style: Style) -> Iterator[tuple[str, list[str], Number, Number]]:
    """Yield the ways to check the arithmetic of `link`.

    Each is a tuple of the kind of check, the formulas to write, the result of the last one, and the number that
    this result must equal. `true` is the correct result of the link.
    """
    operands = link.formula.operands(link.values)
    whole = operands and all(v.denominator == 1 for v in (*operands[1:], link.result))
    if operands is None or not whole or link.calculation.unit == PI:
        plain = link.shown.written(link.values, style)
        if plain != style.number(true):
            text = f"{plain} = {style.number(true)}{link.calculation.unit}"
            yield "recompute", [text], true, link.result
        return
    a, b, c = int(operands[1]), int(operands[2]), int(link.result)
    match operands[0]:
        case "+":
            yield "inverse", [f"{c} - {signed(b)} = {c - b}"], c - b, a
        case "-":
            yield "inverse", [f"{c} + {signed(b)} = {c + b}"], c + b, a
        case "/":
            yield "inverse", [f"{signed(c)} * {signed(b)} = {c * b}"], c * b, a
        case "%":
            parts = [f"{a} * {b} = {a * b}", f"{a * b} / 100 = {style.number(true)}"]
            yield "recompute", parts, true, link.result
        case _:
            if b > 0 and c % b == 0:
                yield "inverse", [f"{c} / {b} = {c // b}"], c // b, a
            tens, ones = b - b % 10, b % 10
            if b > 10 and ones and a > 0:
                parts = [f"{a} * {tens} = {a * tens}", f"{a} * {ones} = {a * ones}"]
                yield "recompute", [*parts, f"{a * tens} + {a * ones} = {a * b}"], a * b, c
            else:
                yield "recompute", [f"{b} * {signed(a)} = {a * b}"], a * b, c


def _bounds(solution: StorySolution) -> Iterator[ExtraStep]:
    """Yield checks of the story's bounds: conditions that every right solution meets. If a check fails, the error
    has led to an implausible result."""
    problem, steps = solution.problem, {}
    for step, group in enumerate(solution.groups, solution.offset):
        steps[solution.stated.links[group][-1].calculation.key] = step
    values = {**solution.stated.values, **problem.quantities}
    for bound, template in problem.story.bounds.items():
        step = max((steps[name] for name in bound.names if name in steps), default=-1)
        if step >= 0 and bound.names <= {*steps, *problem.quantities}:
            passes = bound.holds(values)
            tail = ending("bound", passes, solution.rng)
            text = f"{solution.style.fill(template, problem.names, values)}, {tail}."
            yield ExtraStep.check("implausible", step, text, passes, not passes and step >= solution.focus)


def _rereading(solution: StorySolution) -> Iterator[ExtraStep]:
    problem = solution.problem
    for key in problem.story.quantities:
        index, noun = problem.story.first_use(key), solution.noun(key)
        if index is None or not noun:
            continue
        misread = problem.error.kind == ErrorKind.MISREAD and key == problem.error.key
        step = solution.focus if misread else solution.group_of(index) + solution.offset
        used, true = solution.stated.values[key], problem.quantities[key]
        text = f"the problem says {true} {noun}, {_compare(solution, true, used)}."
        yield ExtraStep.check("reread", step, text, used == true, misread)


def _verification(solution: StorySolution, verification: BackCalculation, step: int) -> Iterator[ExtraStep]:
    """Yield a check that calculates backwards from the stated answer to a number given in the problem.

    It fails if a division on the way back leaves a remainder.
    """
    story, stated, style = solution.problem.story, solution.stated, solution.style
    values = solution.problem.quantities | {"answer": stated.answer}
    start = f"with {solution.number(stated.answer, stated.unit)}, "
    chain = carry_out(verification.calculations, values)
    if chain is not None and not (story.whole and any(link.result.denominator != 1 for link in chain.links)):
        if story.smallest >= 0 and any(value < 0 for value in chain.links[-1].values.values()):
            return
        result, needed = chain.values[verification.result_key], chain.values[verification.equals]
        if verification.equals in solution.problem.quantities:
            tail = _compare(solution, result, needed, name="back")
        else:
            a, c = solution.number(result), solution.number(needed)
            tail = ending("sides", a == c, solution.rng, a=a, c=c)
        text = f"{start}{' and '.join(equations(chain.links, style))}, {tail}."
        yield ExtraStep.check(verification.kind, step, text, result == needed)
        return
    for count in range(1, len(verification.calculations) + 1):
        chain = carry_out(verification.calculations[:count], values)
        if chain is None or chain.links[-1].result < 0:
            return
        last = chain.links[-1]
        if last.result.denominator == 1:
            continue
        if last.formula.operands(last.values) is not None:
            written = style.math(last.formula.written(last.values, style))
            parts = " and ".join([*equations(chain.links[:-1], style), written])
            tail = solution.rng.choice(templates("broken"))
            yield ExtraStep.check("contradiction", step, f"{start}{parts} {tail}.", False)
        return
