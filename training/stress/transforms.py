"""The transforms of stress tests: rules that change a solution so that a verdict must turn, or that none may move.

A new transform is a function with `@transform`, or with `@_rewriting` if it writes an equation differently. All
rules are our own; each is described by its transform.
"""

import random
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction

from stepsight.core.equations.evaluator import checks_of
from stepsight.core.errors import UserError
from stepsight.core.trace import Trace
from stepsight.training.stress.variant import (
    TRANSFORMS,
    Demand,
    Equation,
    Transform,
    Variant,
    failing_at,
    inserted,
    is_unharmed,
    numbering,
    quoted,
    right_places,
    spliced,
    transform,
    true_equations,
    variant_of,
    with_texts,
)

# The changes of one trace that are tried before it is passed over; each costs a check of the whole solution.
_TRIES = 12


def find_transform(name: str) -> Transform:
    """Return the transform with this name. Raises `UserError` if there is none."""
    if name not in TRANSFORMS:
        raise UserError(f"there is no transform {name!r:.60}.", f"The transforms are {', '.join(TRANSFORMS)}.")
    return TRANSFORMS[name]


# --- an argument is broken: wrong by rule, and no calculation proves it ---

_RELATION = re.compile(r"(?<=[\w)} ])(<=|>=|<|>|≤|≥|\\leq?(?![a-z])|\\geq?(?![a-z]))(?=[\w\\( -])")
_TURNED = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "≤": "≥", "≥": "≤"} | {
    "\\le": "\\ge", "\\ge": "\\le", "\\leq": "\\geq", "\\geq": "\\leq",
}  # fmt: skip
_ANSWER = re.compile(
    r"(\\boxed\{\s*|answer(?: is|:)\s*\$?\s*|####\s*\$?\s*)(-?\d+(?:\.\d+)?)(?![\w.,]*\d)", re.IGNORECASE
)
_STATED = re.compile(r"(?<![\w.])\d+(?:\.\d+)?(?!\w)")


@transform("inequality-turned", Demand.CHANGE, "An inequality sign of a right step is turned round.")
def _turn_inequality(trace: Trace, rng: random.Random, others: Sequence[Trace]) -> Variant | None:
    matches = [
        (place, match) for place in right_places(trace) for match in _RELATION.finditer(trace.substeps[place])
    ]
    if not matches:
        return None
    place, match = rng.choice(matches)
    text = spliced(trace.substeps[place], *match.span(1), _TURNED[match[1]])
    said = f"Step {place + 1}: {quoted(match[1])} became {quoted(_TURNED[match[1]])}."
    return variant_of(with_texts(trace, {place: text}), said, place)


@transform("answer-changed", Demand.CHANGE, "The number that the last step gives as the answer is changed.")
def _change_answer(trace: Trace, rng: random.Random, others: Sequence[Trace]) -> Variant | None:
    place = len(trace.substeps) - 1
    matches = list(_ANSWER.finditer(trace.substeps[place]))
    if not matches or place not in right_places(trace):
        return None
    match = matches[-1]
    scaled = int(match[2].replace(".", "").lstrip("-")) + rng.choice([1, 2, 5, 10])
    other = _decimal(scaled, match[2])
    text = spliced(trace.substeps[place], *match.span(2), other)
    said = f"The answer in step {place + 1}, {match[2]}, became {other}."
    return variant_of(with_texts(trace, {place: text}), said, place)


@transform("foreign-step", Demand.CHANGE, "A step of another problem is put in.")
def _insert_foreign(trace: Trace, rng: random.Random, others: Sequence[Trace]) -> Variant | None:
    donors = [text for other in others for text in other.substeps[:-1] if _STATED.search(text)]
    places = [place for place in right_places(trace) if place]
    if not donors or not places:
        return None
    text = rng.choice(donors)
    text = text[len(numbering(text)) :]
    place = rng.choice(places)
    said = f"A step of another problem was put in as step {place + 1}: {quoted(text)}."
    return inserted(trace, place, text, said)


# --- a calculation is made wrong, and all that followed from the changed number is left alone ---

# A number that is no exponent, index or part of a name or longer number.
_NUMBER = re.compile(r"(?<![\w.,^_\\])\d+(?:\.\d+)?(?![\w^]|[.,]\d)")
_SIGN = re.compile(r"(?<=[\w)}\]])( ?)(\+|-|−|\*|×|·|/|÷|\\cdot|\\times|\\div)( ?)(?=[\w({\\$])")
_OTHER_SIGNS = {"+": "-", "-": "+", "−": "+", "*": "+", "×": "+", "·": "+", "/": "*", "÷": "×"} | {
    "\\cdot": "+", "\\times": "+", "\\div": "\\times",
}  # fmt: skip
_NEAR = (1, -1, 2, -2, 3, 10, -10)


def _near(written: str, rng: random.Random) -> str | None:
    """Return a number near the one `written`, with as many decimal places, or None if there is none above 0."""
    scaled = int(written.replace(".", ""))
    near = [scaled + by for by in _NEAR if scaled + by > 0]
    return _decimal(rng.choice(near), written) if near else None


def _decimal(scaled: int, written: str) -> str:
    """Return a number with as many decimal places as the one `written`, given without its point."""
    places = len(written.partition(".")[2])
    return f"{scaled / 10**places:.{places}f}" if places else str(scaled)


def _first_proved(
    trace: Trace, rng: random.Random, changes: Sequence[tuple[Equation, int, int, str]]
) -> Variant | None:
    """Try changes in random order, and return the first variant that can be proved wrong. A change is (equation,
    start, end, text): in the equation's step, the characters from `start` to `end` are replaced by `text`."""
    for equation, start, end, other in rng.sample(changes, min(_TRIES, len(changes))):
        place = equation.place
        after = with_texts(trace, {place: spliced(trace.substeps[place], start, end, other)})
        if failing := failing_at(after, place):
            written = spliced(equation.text, start - equation.start, end - equation.start, other)
            said = f"Step {place + 1}: {quoted(equation.text)} became {quoted(written)}."
            return variant_of(after, said, place, equation=failing)
    return None


@transform(
    "number-replaced",
    Demand.CHANGE,
    "A number of an equation that holds is replaced by a near one, and all that followed is left alone.",
)
def _replace_number(trace: Trace, rng: random.Random, others: Sequence[Trace]) -> Variant | None:
    changes = []
    for equation in true_equations(trace):
        for match in _NUMBER.finditer(equation.text):
            other = _near(match[0], rng)
            if other is not None:
                changes.append((equation, equation.start + match.start(), equation.start + match.end(), other))
    return _first_proved(trace, rng, changes)


@transform("sign-turned", Demand.CHANGE, "An operation of an equation that holds is replaced by another one.")
def _turn_sign(trace: Trace, rng: random.Random, others: Sequence[Trace]) -> Variant | None:
    changes = [
        (equation, *match.span(2), _OTHER_SIGNS[match[2]])
        for equation in true_equations(trace)
        for match in _SIGN.finditer(trace.substeps[equation.place], equation.start, equation.end)
    ]
    return _first_proved(trace, rng, changes)


@transform(
    "false-conclusion",
    Demand.CHANGE,
    "After an equation that holds, a step is put in that concludes another result from it.",
)
def _conclude_wrongly(trace: Trace, rng: random.Random, others: Sequence[Trace]) -> Variant | None:
    equations = [
        equation for equation in true_equations(trace) if equation.text.count("=") == 1 and "$" not in equation.text
    ]
    for equation in rng.sample(equations, min(_TRIES, len(equations))):
        left, _, right = equation.text.partition("=")
        numbers = list(_NUMBER.finditer(right))
        other = _near(numbers[-1][0], rng) if numbers else None
        if other is None or "\\" in left:
            continue
        false = f"{left.strip()} = {spliced(right, *numbers[-1].span(), other).strip()}"
        place = equation.place + 1
        said = f"Put in after step {place}: {quoted(false)}."
        variant = inserted(trace, place, f"It follows that {false} as well.", said)
        if failing := failing_at(variant.trace, place):
            return replace(variant, equation=failing)
    return None


# --- the same mathematics is written differently ---

_DECIMAL = re.compile(r"(?<![\w.,^_\\])(\d{1,3}\.\d{1,3})(?![\w.,^%]|\s*%)")
_FRACTION = re.compile(r"(?<![\w.,^_/\\)}])(\d{1,4})\s?/\s?(\d{1,4})(?![\w.,^/(!]| ?/)")
_TIMES = re.compile(r"(?<=[\w)}])\s*(\*|×|·|\\cdot|\\times)\s*(?=[\w({\\$])")
_SPACED = re.compile(r"(?<=[\w)}\]])\s*([+=])\s*(?=[\w({\\$-])")

Rewrite = Callable[[str, str], str | None]
"""Returns an equation written differently, or None. The second argument is the whole text of its step."""


def _rewriting(name: str, description: str) -> Callable[[Rewrite], Rewrite]:
    """Register a transform that rewrites an equation of a solution and proves that everything still holds."""

    def register(rewrite: Rewrite) -> Rewrite:
        @transform(name, Demand.STAY, description)
        def make(trace: Trace, rng: random.Random, others: Sequence[Trace]) -> Variant | None:
            equations = true_equations(trace)
            for equation in rng.sample(equations, min(_TRIES, len(equations))):
                text, place = trace.substeps[equation.place], equation.place
                other = rewrite(equation.text, text)
                if other is None or other == equation.text:
                    continue
                after = with_texts(trace, {place: spliced(text, equation.start, equation.end, other)})
                if is_unharmed(trace, after) and any(check.holds for check in checks_of(after)[place]):
                    said = f"Step {place + 1}: {quoted(equation.text)} is written as {quoted(other)}."
                    return variant_of(after, said, equation=other)
            return None

        return rewrite

    return register


@_rewriting("decimal-as-fraction", "A decimal is written as a fraction: 0.5 as 1/2.")
def _as_fraction(equation: str, text: str) -> str | None:
    match = _DECIMAL.search(equation)
    if match is None:
        return None
    value = Fraction(match[1])
    if value.denominator == 1 or value.denominator > 100:
        return None
    in_latex = "\\" in equation or "$" in text
    written = f"\\frac{{{value.numerator}}}{{{value.denominator}}}" if in_latex else f"({value})"
    return spliced(equation, *match.span(1), written)


@_rewriting("fraction-as-latex", "A fraction 1/2 is written as \\frac{1}{2}.")
def _as_latex(equation: str, text: str) -> str | None:
    match = _FRACTION.search(equation)
    return match and spliced(equation, *match.span(), f"\\frac{{{match[1]}}}{{{match[2]}}}")


@_rewriting("other-times-sign", "A multiplication sign is another one.")
def _other_times(equation: str, text: str) -> str | None:
    match = _TIMES.search(equation)
    if match is None:
        return None
    in_latex = match[1].startswith("\\")
    sign = {"\\cdot": "\\times", "\\times": "\\cdot", "*": "×", "×": "*", "·": "×"}[match[1]]
    return spliced(equation, *match.span(), f" {sign} " if in_latex or len(match[0]) > 1 else sign)


@_rewriting("other-spaces", "Spaces around + and = are taken away or added.")
def _other_spaces(equation: str, text: str) -> str | None:
    if _SPACED.search(equation) is None:
        return None
    is_spaced = " = " in equation or " + " in equation
    return _SPACED.sub(r"\1" if is_spaced else r" \1 ", equation)


# --- words are changed, but not the mathematics ---

_CONFIDENT = (
    "Clearly, ",
    "It is obvious that ",
    "Without any doubt, ",
    "As everyone knows, ",
    "We can be certain that ",
)
# Words that lose their capital within a sentence.
_OPENING = re.compile(
    r"(?:The|Then|Therefore|Thus|This|That|These|There|They|So|Since|We|With|When|Which|It|In|If|Is|Hence|He|She|His"
    r"|Her|Now|Next|For|From|By|Because|But|Both|And|As|At|After|All|Also|Another|Any|Each|Every|Our|On|One|Or|To"
    r"|Two|Using|Add|Subtract|Multiply|Divide|Solve|Simplify|Adding|Subtracting|Multiplying|Dividing|Solving|Let"
    r"|First|Second|Finally|Together|Twice|Half|A|An)\b"
)
_FILLERS = (
    "This brings us closer to the answer.",
    "Let us keep this in mind.",
    "This will be useful in what follows.",
    "We go on carefully.",
)


@transform("confident-words", Demand.STAY, "A step begins with confident words: Clearly, …")
def _sound_confident(trace: Trace, rng: random.Random, others: Sequence[Trace]) -> Variant | None:
    heads = list(map(numbering, trace.substeps))
    bodies = [text[len(head) :] for head, text in zip(heads, trace.substeps, strict=True)]
    places = [place for place, body in enumerate(bodies) if body[:1].isalpha()]
    if not places:
        return None
    place, words = rng.choice(places), rng.choice(_CONFIDENT)
    body = bodies[place]
    # A name, a variable or a formula keeps its capital.
    lowered = body[0].lower() + body[1:] if _OPENING.match(body) else body
    said = f"Step {place + 1} begins with {quoted(words.strip())}."
    return variant_of(with_texts(trace, {place: heads[place] + words + lowered}), said)


@transform("filler", Demand.STAY, "A step ends with a sentence that says nothing.")
def _add_filler(trace: Trace, rng: random.Random, others: Sequence[Trace]) -> Variant | None:
    # What stands behind the answer would be more than filler.
    places = [place for place, text in enumerate(trace.substeps[:-1]) if text.rstrip()[-1:] in ".!"]
    if not places:
        return None
    place, filler = rng.choice(places), rng.choice(_FILLERS)
    text = f"{trace.substeps[place].rstrip()} {filler}"
    return variant_of(with_texts(trace, {place: text}), f"Step {place + 1} ends with {quoted(filler)}.")
