"""The steps of a solution of a story's problem, and the redundant steps that it may contain."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from stepsight.training.synth.chain import Chain, Problem, equation
from stepsight.training.synth.formula import PI
from stepsight.training.synth.mistakes import ErrorKind
from stepsight.training.synth.solution import ExtraStep, SolutionStep, Wording
from stepsight.training.synth.style import Number, Style, Values, capital, signed
from stepsight.training.synth.wording import templates, terse

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
    def stated(self) -> Chain:
        return self.problem.faulty if self.wrong else self.problem.right

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

    def what(self, group: slice, chain: Chain | None = None) -> str:
        """Return the name of the result of a group, such as "the share of each"."""
        chain = chain or self.problem.right
        return self.style.fill(chain.links[group][-1].calculation.what, self.problem.names, chain.values)

    def _chain(self, corrected: bool) -> Chain:
        return self.problem.right if corrected else self.stated

    def _draw(self, name: str) -> str:
        return self.rng.choice(templates(name))

    def _in_math(self, value: Number) -> str:
        return self.style.math(self.style.number(value))

    def _stating(self, key: str, text: Wording) -> SolutionStep:
        return SolutionStep(text, *({key: str(chain.values[key])} for chain in (self.stated, self.problem.right)))

    def steps(self) -> Iterator[SolutionStep]:
        """Yield the steps of the solution.

        These are perhaps the plan and a reading, then the calculations, and the answer, unless it ends the last of
        them.
        """
        problem, last = self.problem, len(self.groups) - 1
        ends_apart = self.rng.random() < ANSWER_RATE or last < 2 or problem.error.kind == ErrorKind.ANSWER
        if self.outlined:
            if problem.story.outlines:
                outline = self.rng.choice(problem.story.outlines)
                outline = self.style.fill(outline, problem.names, problem.quantities)
            else:
                first, result = self.what(self.groups[0]), self.what(self.groups[-1])
                outline = self._draw("outlines").format(first=first, what=result)
            yield SolutionStep(lambda corrected: outline)
        if key := self.reading:
            reading = self._draw("reads")
            yield self._stating(
                key,
                lambda corrected: reading.format(
                    v=self._in_math(self._chain(corrected).values[key]), noun=self.noun(key)
                ),
            )
        for index, group in enumerate(self.groups):
            yield self._calculation(group, "" if ends_apart or index < last else ", so the answer is {box}")
        if not ends_apart:
            return
        template = self.rng.choice(problem.story.answers or templates("answers"))

        def answer(corrected: bool) -> str:
            chain = self._chain(corrected)
            what = self.what(self.groups[-1], chain)
            box = self.style.boxed(self.style.number(chain.answer) + chain.unit)
            texts = problem.names | {"box": box, "what": what, "What": capital(what)}
            return self.style.fill(template, texts, chain.values)

        yield SolutionStep(answer, *({"answer": str(chain.answer)} for chain in (self.stated, problem.right)))

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
        place = self.rng.random()

        def text(corrected: bool) -> str:
            chain = self._chain(corrected)
            link = chain.links[group][-1]
            has_equation = " = " in equation(chain.links[group], self.style)
            if reasoned and mistake and mistake.reason and link.formula is not link.calculation.formula:
                options = mistake.reason
            elif link.calculation.templates:
                options = link.calculation.templates
            elif bare and has_equation:
                options = templates("jumps")
            else:
                options = templates("says" if has_equation and not is_terse else "bares")
            template = options[int(place * len(options))]
            texts = self._texts(group, chain)
            filled = self.style.fill(
                terse(template) if is_terse else template, texts, self._mentioned(group, chain)
            )
            return f"{filled[:-1]}{end.format(box=texts['box'])}." if end else filled

        return self._stating(calculation.key, text)

    def _mentioned(self, group: slice, chain: Chain) -> Values:
        """Return the values that a step may mention. A quantity has its true value until it is misread."""
        error = self.problem.error
        if error.kind == ErrorKind.MISREAD and error.key != self.reading and error.index >= group.stop:
            return {**chain.values, error.key: self.problem.quantities[error.key]}
        return chain.values

    def _texts(self, group: slice, chain: Chain) -> dict[str, str]:
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
        question = self._draw("asks")
        yield ExtraStep("restating", -1, lambda corrected: question.format(what=self.what(self.groups[-1])))
        key = self.rng.choice(list(quantities))
        if noun := self.noun(key):
            repetition = self._draw("repeats").format(v=self._in_math(quantities[key]), noun=noun)
            yield ExtraStep("restating", -1, lambda corrected: repetition)
        values = sorted(int(value) for value in quantities.values())
        a, b = self.rng.sample(values, 2) if len(values) > 1 else (values[0], self.rng.randint(2, 9))
        results = {f"{a} + {signed(b)} = {a + b}": a + b, f"2 * {abs(a)} = {2 * abs(a)}": 2 * abs(a)}
        needed = {*self.problem.right.values.values(), *self.problem.faulty.values.values()}
        if options := [text for text, value in results.items() if value not in needed]:
            sum_or_double = self.style.math(self.rng.choice(options))
            aside = self._draw("asides").format(eq=sum_or_double)
            yield ExtraStep("aside", -1, lambda corrected: aside)
        value = self.rng.choice(list(quantities.values()))
        parity = self._draw("parities").format(v=self._in_math(value), parity="odd" if value % 2 else "even")
        yield ExtraStep("aside", -1, lambda corrected: parity)
        for index, group in enumerate(self.groups, self.offset):
            yield self._recall(index, group)
            yield self._detour(index, group)

    def _recall(self, step: int, group: slice) -> ExtraStep:
        template = self._draw("recalls")

        def text(corrected: bool) -> str:
            return template.format(**self._texts(group, self._chain(corrected)))

        return ExtraStep("restating", step, text)

    def _detour(self, step: int, group: slice) -> ExtraStep:
        template, by = self._draw("detours"), self.rng.randint(2, 9)
        sign, back_sign = ("*", "/") if self.rng.random() < 0.5 else ("+", "-")

        def text(corrected: bool) -> str:
            value = self._chain(corrected).links[group][-1].result
            first = self.style.number(value)
            second = self.style.number(value * by if sign == "*" else value + by)
            there = self.style.math(f"{first} {sign} {by} = {second}")
            return template.format(there=there, back=self.style.math(f"{second} {back_sign} {by} = {first}"))

        return ExtraStep("detour", step, text)
