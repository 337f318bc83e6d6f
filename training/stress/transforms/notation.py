"""Transforms that write the same mathematics differently. `equations` proves that the equations it reads still
hold."""

import random
import re
from collections.abc import Callable, Sequence
from fractions import Fraction

from stepsight.core.text.formulas import formulas
from stepsight.core.trace import Trace
from stepsight.training.stress.proof import Equation, is_unharmed, makes_nothing_wrong, still_holds, true_equations
from stepsight.training.stress.variant import Demand, Transform, Variant, edited, quoted, spliced, with_steps

_DECIMAL = re.compile(r"(?<![\w.,^_\\])(\d{1,3}\.\d{1,3})(?![\w.,^%]|\s*%)")
_FRACTION = re.compile(r"(?<![\w.,^_/\\)}])(\d{1,4})\s?/\s?(\d{1,4})(?![\w.,^/(!]| ?/)")
_TIMES = re.compile(r"(?<=[\w)}])\s*(\*|×|·|\\cdot|\\times)\s*(?=[\w({\\$])")
_SPACED = re.compile(r"(?<=[\w)}\]])\s*([+=])\s*(?=[\w({\\$-])")
_POINT = re.compile(r"(?<![\w.,])(\d+)\.(\d+)(?![\w.,]*\d)")
_LETTER = re.compile(r"(?<![A-Za-z\\'])([b-zB-HJ-Z])(?![A-Za-z'])")
_LETTERS = "xyzntkmpqr"
# Metres, tonnes and thousands, where a number precedes them.
_UNITS = "mtk"
_TRIES = 12

Rewrite = Callable[[str, str], str | None]
"""Returns an equation written differently, or None. The second argument is the whole text of its step."""


def _rewriting(rewrite: Rewrite) -> Callable[[Trace, random.Random, Sequence[Trace]], Variant | None]:
    """Return a `make` function that rewrites an equation of a solution and proves that everything still holds."""

    def make(trace: Trace, rng: random.Random, others: Sequence[Trace]) -> Variant | None:
        equations = true_equations(trace)
        for equation in rng.sample(equations, min(_TRIES, len(equations))):
            other = rewrite(equation.text, trace.substeps[equation.place])
            if other is not None and other != equation.text:
                variant = _proved(trace, equation, other)
                if variant is not None:
                    return variant
        return None

    return make


def _proved(trace: Trace, equation: Equation, other: str) -> Variant | None:
    text = spliced(trace.substeps[equation.place], equation.start, equation.end, other)
    after = still_holds(trace, with_steps(trace, {equation.place: text}), equation.place)
    if after is None:
        return None
    said = f"Step {equation.place + 1}: {quoted(equation.text)} is written as {quoted(other)}."
    return edited(trace, {equation.place: text}, said, demand=Demand.STAY, equation=other)


def _as_fraction(equation: str, text: str) -> str | None:
    """Write a decimal as a fraction: 0.5 as 1/2, or as \\frac{1}{2} in a formula."""
    match = _DECIMAL.search(equation)
    if match is None:
        return None
    value = Fraction(match[1])
    if value.denominator == 1 or value.denominator > 100:
        return None
    in_latex = "\\" in equation or "$" in text
    written = f"\\frac{{{value.numerator}}}{{{value.denominator}}}" if in_latex else f"({value})"
    return spliced(equation, *match.span(1), written)


def _as_latex(equation: str, text: str) -> str | None:
    """Write a fraction a/b as \\frac{a}{b}."""
    match = _FRACTION.search(equation)
    return match and spliced(equation, *match.span(), f"\\frac{{{match[1]}}}{{{match[2]}}}")


def _other_times(equation: str, text: str) -> str | None:
    """Replace a multiplication sign by another one."""
    match = _TIMES.search(equation)
    if match is None:
        return None
    in_latex = match[1].startswith("\\")
    sign = {"\\cdot": "\\times", "\\times": "\\cdot", "*": "×", "×": "*", "·": "×"}[match[1]]
    return spliced(equation, *match.span(), f" {sign} " if in_latex or len(match[0]) > 1 else sign)


def _other_spaces(equation: str, text: str) -> str | None:
    """Remove the spaces around + and =, or insert some."""
    if _SPACED.search(equation) is None:
        return None
    is_spaced = " = " in equation or " + " in equation
    return _SPACED.sub(r"\1" if is_spaced else r" \1 ", equation)


def _decimal_commas(trace: Trace, rng: random.Random, others: Sequence[Trace]) -> Variant | None:
    """Write every decimal of the problem and the solution with a comma."""
    texts = (trace.problem, *trace.substeps)
    if not any(map(_POINT.search, texts)) or any(re.search(r"\d,\s?\d", text) for text in texts):
        return None
    problem, *steps = (_POINT.sub(r"\1,\2", text) for text in texts)
    after = with_steps(trace, dict(enumerate(steps)), problem)
    # A comma may be something else, so that `equations` reads fewer of these equations.
    if not makes_nothing_wrong(trace, after):
        return None
    return Variant(after, tuple(range(len(steps))), (), "Decimals are written with a comma.")


def _rename_variable(trace: Trace, rng: random.Random, others: Sequence[Trace]) -> Variant | None:
    """Give a variable another letter in the problem and in every step."""
    texts = (trace.problem, *trace.substeps)
    used = {letter for text in texts for letter in _LETTER.findall(text)}
    named = sorted(letter for letter in used & set(_LETTERS) if all(_is_variable(letter, text) for text in texts))
    free = [letter for letter in _LETTERS if letter not in used]
    if not named or not free:
        return None
    old, new = rng.choice(named), rng.choice(free)
    pattern = re.compile(rf"(?<![A-Za-z\\']){old}(?![A-Za-z'])")
    problem, *steps = (pattern.sub(new, text) for text in texts)
    after = with_steps(trace, dict(enumerate(steps)), problem)
    if not is_unharmed(trace, after):
        return None
    return Variant(after, tuple(range(len(steps))), (), f"The variable {old} is called {new}.")


def _is_variable(letter: str, text: str) -> bool:
    """True if a letter occurs in a text only as a variable: in a formula, or beside a relation or an operation. The
    x in 3 x 4 may be a multiplication sign, and the m in 60 m is a unit."""
    spans = formulas(text)
    for match in re.finditer(rf"(?<![A-Za-z\\']){letter}(?![A-Za-z'])", text):
        before, after = text[: match.start()], text[match.end() :]
        if letter == "x" and re.search(r"\d\s+$", before) and re.match(r"\s+\d", after):
            return False
        if letter in _UNITS and re.search(r"\d\s*$", before):
            return False
        is_in_formula = any(start <= match.start() < end for start, end in spans)
        if (
            not is_in_formula
            and not re.match(r"\s*[=+*/^<>²-]", after)
            and not re.search(r"[=+*/<>(\d-]\s?$", before)
        ):
            return False
    return True


TRANSFORMS = [
    Transform(
        "decimal-as-fraction",
        Demand.STAY,
        "A decimal is written as a fraction: 0.5 as 1/2.",
        _rewriting(_as_fraction),
    ),
    Transform(
        "fraction-as-latex", Demand.STAY, "A fraction 1/2 is written as \\frac{1}{2}.", _rewriting(_as_latex)
    ),
    Transform("other-times-sign", Demand.STAY, "A multiplication sign is another one.", _rewriting(_other_times)),
    Transform(
        "other-spaces", Demand.STAY, "Spaces around + and = are taken away or added.", _rewriting(_other_spaces)
    ),
    Transform("decimal-comma", Demand.STAY, "Every decimal has a comma instead of its point.", _decimal_commas),
    Transform("renamed-variable", Demand.STAY, "A variable has another letter everywhere.", _rename_variable),
]
