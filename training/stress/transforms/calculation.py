"""Transforms that make a calculation wrong. `equations` proves each of them; everything that followed from the
changed number is left alone."""

import random
import re
from collections.abc import Iterator, Sequence

from stepsight.core.trace import Trace
from stepsight.training.stress.proof import Equation, failing_at, true_equations
from stepsight.training.stress.variant import (
    Demand,
    Transform,
    Variant,
    edited,
    inserted,
    quoted,
    spliced,
    with_steps,
)

# A number that is no exponent, index or part of a name or longer number.
_NUMBER = re.compile(r"(?<![\w.,^_\\])\d+(?:\.\d+)?(?![\w^]|[.,]\d)")
_SIGN = re.compile(r"(?<=[\w)}\]])( ?)(\+|-|−|\*|×|·|/|÷|\\cdot|\\times|\\div)( ?)(?=[\w({\\$])")
_OTHER_SIGNS = {"+": "-", "-": "+", "−": "+", "*": "+", "×": "+", "·": "+", "/": "*", "÷": "×"} | {
    "\\cdot": "+", "\\times": "+", "\\div": "\\times",
}  # fmt: skip
_NEAR = (1, -1, 2, -2, 3, 10, -10)
# The changes of one trace that are tried before it is passed over; each costs a check of the whole solution.
_TRIES = 12


def _proved(trace: Trace, equation: Equation, text: str, said: str) -> Variant | None:
    """Return the variant in which the step of an equation has the text `text`, or None unless one of its equations
    then fails."""
    wrong = failing_at(with_steps(trace, {equation.place: text}), equation.place)
    if wrong is None:
        return None
    return edited(trace, {equation.place: text}, said, demand=Demand.CHANGE, equation=wrong.text)


def _first_proved(
    trace: Trace, rng: random.Random, changes: list[tuple[Equation, int, int, str]]
) -> Variant | None:
    """Try changes in random order, and return the first variant that can be proved. A change is (equation, start,
    end, text): in the equation's step, the characters from `start` to `end` are replaced by `text`."""
    for equation, start, end, other in rng.sample(changes, min(_TRIES, len(changes))):
        text = trace.substeps[equation.place]
        after = spliced(equation.text, start - equation.start, end - equation.start, other)
        said = f"Step {equation.place + 1}: {quoted(equation.text)} became {quoted(after)}."
        variant = _proved(trace, equation, spliced(text, start, end, other), said)
        if variant is not None:
            return variant
    return None


def _replace_number(trace: Trace, rng: random.Random, others: Sequence[Trace]) -> Variant | None:
    changes = []
    for equation in true_equations(trace):
        for start, end in _spans(_NUMBER, equation):
            written = trace.substeps[equation.place][start:end]
            other = _near(written, rng)
            if other is not None:
                changes.append((equation, start, end, other))
    return _first_proved(trace, rng, changes)


def _near(written: str, rng: random.Random) -> str | None:
    """Return a number near the one `written`, with as many decimal places, or None if there is none above 0."""
    places = len(written.partition(".")[2])
    scaled = int(written.replace(".", ""))
    near = [scaled + by for by in _NEAR if scaled + by > 0]
    if not near:
        return None
    chosen = rng.choice(near)
    return f"{chosen / 10**places:.{places}f}" if places else str(chosen)


def _turn_sign(trace: Trace, rng: random.Random, others: Sequence[Trace]) -> Variant | None:
    changes = []
    for equation in true_equations(trace):
        text = trace.substeps[equation.place]
        for match in _SIGN.finditer(text, equation.start, equation.end):
            changes.append((equation, match.start(2), match.end(2), _OTHER_SIGNS[match[2]]))
    return _first_proved(trace, rng, changes)


def _conclude_wrongly(trace: Trace, rng: random.Random, others: Sequence[Trace]) -> Variant | None:
    """Insert a step that draws a wrong conclusion from an equation that has just been stated."""
    equations = [one for one in true_equations(trace) if one.text.count("=") == 1 and "$" not in one.text]
    for equation in rng.sample(equations, min(_TRIES, len(equations))):
        left, _, right = equation.text.partition("=")
        numbers = list(_NUMBER.finditer(right))
        other = _near(numbers[-1][0], rng) if numbers else None
        if other is None or "\\" in left:
            continue
        false = f"{left.strip()} = {spliced(right, *numbers[-1].span(), other).strip()}"
        place = equation.place + 1
        variant = inserted(
            trace, place, f"It follows that {false} as well.", f"Put in after step {place}: {quoted(false)}."
        )
        wrong = failing_at(variant.trace, place)
        if wrong is not None:
            return Variant(variant.trace, variant.origins, variant.targets, variant.said, wrong.text)
    return None


def _spans(pattern: re.Pattern[str], equation: Equation) -> Iterator[tuple[int, int]]:
    for match in pattern.finditer(equation.text):
        yield equation.start + match.start(), equation.start + match.end()


TRANSFORMS = [
    Transform(
        "number-replaced",
        Demand.CHANGE,
        "A number of an equation that holds is replaced by a near one, and all that followed is left alone.",
        _replace_number,
    ),
    Transform(
        "sign-turned",
        Demand.CHANGE,
        "An operation of an equation that holds is replaced by another one.",
        _turn_sign,
    ),
    Transform(
        "false-conclusion",
        Demand.CHANGE,
        "After an equation that holds, a step is put in that concludes another result from it.",
        _conclude_wrongly,
    ),
]
