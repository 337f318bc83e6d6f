"""Planning a solution of a story's problem: its steps, and the checks and redundant steps that it may contain."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from stepsight.training.synth import wording
from stepsight.training.synth.chain import DrawnProblem, LinkGroup, StoryChain, draw_problem, group_links
from stepsight.training.synth.checks import Inspection
from stepsight.training.synth.mistakes import ErrorKind
from stepsight.training.synth.solution import RedundantStep, SolutionPlan, SolutionStep, StatedValues
from stepsight.training.synth.story import Story
from stepsight.training.synth.style import Number, Style, Values, capital, signed

OUTLINE_RATE = 0.3
JUMP_RATE = 0.35
BARE_RATE = 0.5
TERSE_RATE = 0.12
TERSE_RATE_WHERE_INVITED = 0.4
REASON_RATE = 0.06
TURNED_REASON_RATE = 0.4
READING_RATE = 0.45
ANSWER_RATE = 0.85


@dataclass(frozen=True)
class _StoryWriter:
    """Writes the steps of one planned solution. `reading` is the key of the quantity that a step first reads off
    the problem, or None. `outlined` is True if the first step announces the plan. `rng` chooses the wording."""

    story: Story
    problem: DrawnProblem
    stated: StoryChain
    groups: tuple[LinkGroup, ...]
    style: Style
    reading: str | None
    outlined: bool
    rng: random.Random

    @property
    def right(self) -> StoryChain:
        return self.problem.right

    @property
    def names(self) -> dict[str, str]:
        return self.problem.names

    @property
    def offset(self) -> int:
        """The number of steps before the first calculation."""
        return int(self.outlined) + int(self.reading is not None)

    @property
    def first(self) -> int:
        """The index of the group that holds the error."""
        return next(i for i, group in enumerate(self.groups) if self.problem.error.index in group.indices)

    @property
    def focus(self) -> int:
        error = self.problem.error
        if error.kind == ErrorKind.ANSWER:
            return len(self.groups) + self.offset
        if error.kind == ErrorKind.MISREAD and self.reading == error.key:
            return self.offset - 1
        return self.first + self.offset

    def chain(self, corrected: bool) -> StoryChain:
        return self.right if corrected else self.stated

    def steps(self) -> Iterator[SolutionStep]:
        last = len(self.groups) - 1
        ends_apart = self.rng.random() < ANSWER_RATE or last < 2 or self.problem.error.kind == ErrorKind.ANSWER
        if self.outlined:
            yield self._outline()
        if self.reading:
            yield self._reading(self.reading)
        for index, group in enumerate(self.groups):
            yield self._calculation(group, "" if ends_apart or index < last else ", so the answer is {box}")
        if ends_apart:
            yield self._answer()

    def _calculation(self, group: LinkGroup, end: str) -> SolutionStep:
        """Return the step that states a group of links.

        The faulty and the correct text use the same random numbers, so they pick corresponding templates.
        """
        bare = len(group.indices) > 1 and self.rng.random() < BARE_RATE
        calculation = group.last(self.right).calculation
        # A mistake without a calculation shows only a result, so right steps of that calculation often do too.
        terse = self.rng.random() < (TERSE_RATE_WHERE_INVITED if calculation.invites_terse else TERSE_RATE)
        reasoned = self.rng.random() < self._reason_rate
        place, key = self.rng.random(), calculation.key

        def text(corrected: bool) -> str:
            chain = self.chain(corrected)
            options = self._templates(group, chain, bare, terse, reasoned)
            template = options[int(place * len(options))]
            texts = self._texts(group, chain)
            filled = self.style.fill(
                wording.terse(template) if terse else template, texts, self._told_values(group, chain)
            )
            return f"{filled[:-1]}{end.replace('{box}', texts['box'])}." if end else filled

        return SolutionStep(text, _stated(self.stated, key), _stated(self.right, key))

    @property
    def _reason_rate(self) -> float:
        """The probability of wording a mistake with the reason given for it. It is lower if the reason is false in
        every problem, because it then always gives the error away."""
        mistake = self.problem.error.mistake
        return TURNED_REASON_RATE if mistake and mistake.right else REASON_RATE

    def _told_values(self, group: LinkGroup, chain: StoryChain) -> Values:
        """Return the values that a step may mention. A quantity has its true value until it is misread."""
        error = self.problem.error
        early = error.kind == ErrorKind.MISREAD and error.key != self.reading and error.index > group.indices[-1]
        return {**chain.values, error.key: self.problem.quantities[error.key]} if early else chain.values

    def _templates(
        self, group: LinkGroup, chain: StoryChain, bare: bool, terse: bool, reasoned: bool
    ) -> Sequence[str]:
        link, mistake = group.last(chain), self.problem.error.mistake
        as_meant = link.formula == link.calculation.parsed
        if reasoned and mistake and mistake.reason and not as_meant:
            return mistake.reason
        if told := link.calculation.told:
            return told
        if bare and " = " in group.equation(chain, self.style):
            return wording.JUMPS
        return wording.BARES if terse or " = " not in group.equation(chain, self.style) else wording.SAYS

    def _texts(self, group: LinkGroup, chain: StoryChain) -> dict[str, str]:
        what = group.what(chain, self.names, self.style)
        value = self.style.number(group.result(chain)) + group.last(chain).calculation.unit
        equation = group.equation(chain, self.style)
        return self.names | {
            "what": what,
            "What": capital(what),
            "eq": self.style.math(equation),
            "weq": self.style.math(f"{what.replace('$', '')} = {equation}"),
            "wres": self.style.math(f"{what.replace('$', '')} = {value}"),
            "res": self.style.math(value),
            "box": self.style.boxed(value),
        }

    def _reading(self, key: str) -> SolutionStep:
        noun = self.story.quantities[key].noun.format(**self.names)
        template = self.rng.choice(wording.READS)

        def text(corrected: bool) -> str:
            value = self._in_math(self.chain(corrected).values[key])
            return self.style.fill(template, {"v": value, "noun": noun}, {})

        return SolutionStep(text, _stated(self.stated, key), _stated(self.right, key))

    def _outline(self) -> SolutionStep:
        if self.story.outlines:
            text = self.style.fill(self.rng.choice(self.story.outlines), self.names, self.problem.quantities)
        else:
            first, last = (self._what(group) for group in (self.groups[0], self.groups[-1]))
            text = self.style.fill(self.rng.choice(wording.OUTLINES), {"first": first, "what": last}, {})
        return SolutionStep(lambda corrected: text)

    def _answer(self) -> SolutionStep:
        template = self.rng.choice(self.story.answers or wording.ANSWERS)

        def text(corrected: bool) -> str:
            chain = self.chain(corrected)
            box = self.style.boxed(self.style.number(chain.answer) + chain.unit)
            what = self.groups[-1].what(chain, self.names, self.style)
            texts = self.names | {"box": box, "what": what, "What": capital(what)}
            return self.style.fill(template, texts, chain.values)

        return SolutionStep(text, {"answer": str(self.stated.answer)}, {"answer": str(self.right.answer)})

    def _what(self, group: LinkGroup) -> str:
        return group.what(self.right, self.names, self.style)

    def _in_math(self, value: Number) -> str:
        return self.style.math(self.style.number(value))

    def redo(self, step: int) -> str:
        """Return a sentence with the correct equations of the groups from the focus to `step`."""
        error = self.problem.error
        shown = self.groups[self.first : max(step - self.offset + 1, 0)]
        answer = self.style.math(
            self.style.number(self.right.answer) + self.groups[-1].last(self.right).calculation.unit
        )
        if error.kind == ErrorKind.ANSWER:
            return f"So the answer is {answer}."
        if not shown:
            noun = self.story.quantities[error.key].noun.format(**self.names)
            return f"So we use {self.style.number(self.problem.quantities[error.key])} {noun}."
        parts = [self.style.math(group.equation(self.right, self.style)) for group in shown]
        text = "So " + ", then ".join(parts)
        if step - self.offset >= len(self.groups):
            return f"{text}, and the answer is {answer}."
        return f"{text} for {self._what(shown[-1])}."

    def redundant(self) -> Iterator[RedundantStep]:
        """Yield all redundant steps that the solution may contain.

        They restate the question, a quantity or a result, calculate there and back, or compute something that is
        not needed.
        """
        yield self._question()
        yield from self._repetition()
        yield from self._aside()
        yield self._parity()
        for index, group in enumerate(self.groups, self.offset):
            yield self._recall(index, group)
            yield self._detour(index, group)

    def _question(self) -> RedundantStep:
        template = self.rng.choice(wording.ASKS)
        what = self._what(self.groups[-1])
        return RedundantStep(-1, "restating", lambda corrected: self.style.fill(template, {"what": what}, {}))

    def _repetition(self) -> Iterator[RedundantStep]:
        key = self.rng.choice(list(self.story.quantities))
        noun = self.story.quantities[key].noun.format(**self.names)
        if noun:
            template = self.rng.choice(wording.REPEATS)
            texts = {"v": self._in_math(self.problem.quantities[key]), "noun": noun}
            yield RedundantStep(-1, "restating", lambda corrected: self.style.fill(template, texts, {}))

    def _recall(self, step: int, group: LinkGroup) -> RedundantStep:
        template = self.rng.choice(wording.RECALLS)

        def text(corrected: bool) -> str:
            return self.style.fill(template, self._texts(group, self.chain(corrected)), {})

        return RedundantStep(step, "restating", text)

    def _detour(self, step: int, group: LinkGroup) -> RedundantStep:
        template, by = self.rng.choice(wording.DETOURS), self.rng.randint(2, 9)
        sign, back_sign = ("*", "/") if self.rng.random() < 0.5 else ("+", "-")

        def text(corrected: bool) -> str:
            value = group.result(self.chain(corrected))
            first = self.style.number(value)
            second = self.style.number(value * by if sign == "*" else value + by)
            there = self.style.math(f"{first} {sign} {by} = {second}")
            back = self.style.math(f"{second} {back_sign} {by} = {first}")
            return self.style.fill(template, {"there": there, "back": back}, {})

        return RedundantStep(step, "detour", text)

    def _aside(self) -> Iterator[RedundantStep]:
        """Yield a step that computes a sum or a double that is not needed for the answer."""
        values = sorted(int(value) for value in self.problem.quantities.values())
        a, b = self.rng.sample(values, 2) if len(values) > 1 else (values[0], self.rng.randint(2, 9))
        results = {f"{a} + {signed(b)} = {a + b}": a + b, f"2 * {abs(a)} = {2 * abs(a)}": 2 * abs(a)}
        needed = {*self.right.values.values(), *self.problem.faulty.values.values()}
        if options := [equation for equation, value in results.items() if value not in needed]:
            equation, template = self.style.math(self.rng.choice(options)), self.rng.choice(wording.ASIDES)
            yield RedundantStep(-1, "aside", lambda corrected: self.style.fill(template, {"eq": equation}, {}))

    def _parity(self) -> RedundantStep:
        value = self.rng.choice(list(self.problem.quantities.values()))
        texts = {"v": self._in_math(value), "parity": "odd" if value % 2 else "even"}
        template = self.rng.choice(wording.PARITIES)
        return RedundantStep(-1, "aside", lambda corrected: self.style.fill(template, texts, {}))


def _stated(chain: StoryChain, key: str) -> StatedValues:
    return {key: str(chain.values[key])}


def plan_story(story: Story, wrong: bool, rng: random.Random, larger: bool = False) -> SolutionPlan:
    """Plan a random solution of one of a story's problems. The solution contains an error if `wrong` is True. With
    `larger`, its numbers go beyond the range used in training."""
    problem = draw_problem(story, rng, larger)
    style = Style.draw(rng, story.decimals)
    stated = problem.faulty if wrong else problem.right
    groups = tuple(group_links(story, JUMP_RATE, rng))
    reading = _draw_reading(story, problem, rng)
    outlined = rng.random() < OUTLINE_RATE and len(groups) > 1
    writer = _StoryWriter(story, problem, stated, groups, style, reading, outlined, rng)
    inspection = Inspection(story, problem, stated, groups, style, writer.offset, writer.focus, rng)
    template = rng.choice(story.problems)
    texts = story.words(problem.quantities, problem.names, rng)
    return SolutionPlan(
        problem=style.problem(template, texts, problem.quantities),
        steps=tuple(writer.steps()),
        focus=writer.focus,
        kind=problem.error.kind,
        wrong=wrong,
        checks=tuple(inspection.checks()),
        redundant=tuple(writer.redundant()),
        redo=writer.redo,
        quantities={key: str(value) for key, value in problem.quantities.items()},
        relations={key: step.formula for key, step in story.steps.items()} | {"answer": list(story.steps)[-1]},
    )


def _draw_reading(story: Story, problem: DrawnProblem, rng: random.Random) -> str | None:
    """Choose the key of a quantity for a step that reads it off the problem, or return None for no such step."""
    named = [key for key, quantity in story.quantities.items() if quantity.noun]
    wants, key = rng.random() < READING_RATE, rng.choice(named) if named else None
    if not story.readings or not wants:
        return None
    return problem.error.key if problem.error.kind == ErrorKind.MISREAD and problem.error.key in named else key
