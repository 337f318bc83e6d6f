"""The steps of a solution of a story's problem, and the redundant steps that it may contain."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from stepsight.training.synth.chain import Problem, StepChain, equation
from stepsight.training.synth.formula import PI
from stepsight.training.synth.mistakes import ErrorKind
from stepsight.training.synth.solution import ExtraStep, SolutionStep
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

    def _in_math(self, value: Number) -> str:
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
            read = [self._in_math(chain.values[key]) for chain in self.chains]
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
            filled, values = self._texts(group, chain), self._mentioned(group, chain)
            text = self.style.fill(terse(template) if is_terse else template, filled, values)
            texts.append(f"{text[:-1]}{end.format(box=filled['box'])}." if end else text)
        return self._step(calculation.key, texts)

    def _mentioned(self, group: slice, chain: StepChain) -> Values:
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
            repetition = self._draw("repeats").format(v=self._in_math(quantities[key]), noun=noun)
            yield ExtraStep("restating", -1, [repetition] * 2)
        values = sorted(int(value) for value in quantities.values())
        a, b = self.rng.sample(values, 2) if len(values) > 1 else (values[0], self.rng.randint(2, 9))
        results = {f"{a} + {signed(b)} = {a + b}": a + b, f"2 * {abs(a)} = {2 * abs(a)}": 2 * abs(a)}
        needed = {*self.problem.right.values.values(), *self.problem.faulty.values.values()}
        if options := [text for text, value in results.items() if value not in needed]:
            sum_or_double = self.style.math(self.rng.choice(options))
            yield ExtraStep("aside", -1, [self._draw("asides").format(eq=sum_or_double)] * 2)
        value = self.rng.choice(list(quantities.values()))
        parity = self._draw("parities").format(v=self._in_math(value), parity="odd" if value % 2 else "even")
        yield ExtraStep("aside", -1, [parity] * 2)
        for index, group in enumerate(self.groups, self.offset):
            template = self._draw("recalls")
            recalls = [template.format(**self._texts(group, chain)) for chain in self.chains]
            yield ExtraStep("restating", index, recalls)
            template, by = self._draw("detours"), self.rng.randint(2, 9)
            sign, back_sign = ("*", "/") if self.rng.random() < 0.5 else ("+", "-")
            detours = []
            for chain in self.chains:
                result = chain.links[group][-1].result
                first, second = map(self.style.number, (result, result * by if sign == "*" else result + by))
                forward = self.style.math(f"{first} {sign} {by} = {second}")
                detours.append(
                    template.format(forward=forward, back=self.style.math(f"{second} {back_sign} {by} = {first}"))
                )
            yield ExtraStep("detour", index, detours)
