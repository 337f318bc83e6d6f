"""The checks that a solution can perform on its own steps. A check never misstates the values that it refers to."""

from collections.abc import Iterator, Sequence

from stepsight.training.synth.chain import Link, carry_out, equation, equations, recomputed
from stepsight.training.synth.formula import PI
from stepsight.training.synth.mistakes import ErrorKind
from stepsight.training.synth.solution import ExtraStep
from stepsight.training.synth.steps import StorySolution
from stepsight.training.synth.story import BackCalculation
from stepsight.training.synth.style import Number, Style, signed
from stepsight.training.synth.wording import ending, templates

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
            tail = _compared(solution, links[-1].result, result, links[-1].calculation.unit)
            text = f"{solution.what(group)} must be {shown}, {tail}."
            yield ExtraStep.check("method", step, text, links[-1].result == result)
    yield from _bounds(solution)
    yield from _rereading(solution)
    end = len(solution.groups) - 1 + solution.offset
    if error.kind == ErrorKind.ANSWER:
        end += 1
        tail = _compared(solution, right.answer, stated.answer, stated.unit)
        what, shown = solution.what(solution.groups[-1]), solution.number(right.answer, right.unit)
        text = f"the question asks for {what}, which is {shown}, {tail}."
        yield ExtraStep.check("question", end, text, right.answer == stated.answer)
    elif len(right.links) <= LONGEST_RECOMPUTATION and equations(right.links, solution.style):
        yield _recomputation(solution, end, right.links, stated.answer)
    for verification in problem.story.verifications:
        yield from _verification(solution, verification, end)


def _compared(
    solution: StorySolution, result: Number, expected: Number, unit: str = "", name: str = "verdict"
) -> str:
    """Return the end of a check that compares two values. It shows the expected one."""
    return ending(name, result == expected, solution.rng, c=solution.number(expected, unit))


def _recomputation(
    solution: StorySolution, step: int, links: Sequence[Link], stated: Number, settles: bool = True
) -> ExtraStep:
    """Return a check that carries out calculations once more and compares the last result with the stated one."""
    result = links[-1].result
    tail = _compared(solution, result, stated, links[-1].calculation.unit)
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
        tail = _compared(solution, result, expected, unit, name)
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
        text = f"the problem says {true} {noun}, {_compared(solution, true, used)}."
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
            tail = _compared(solution, result, needed, name="back")
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
