"""The transforms of stress tests: rules that change a solution so that a verdict must turn, or that none may move.

Every sub-step of a trace counts as a step of its own here, so that a place in a solution or a variant is a single
number. Where a change concerns a calculation, the evaluator `equations` checks the solution before and after it,
and a change that it cannot prove is not used.

A new transform is a function with `@transform`, or with `@_rewriting` if it writes an equation differently. All
rules are our own; each is described by its transform.
"""

import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from fractions import Fraction
from typing import NamedTuple

from stepsight.core.equations.evaluator import checks_of
from stepsight.core.errors import UserError
from stepsight.core.trace import Step, Trace

# The number of changes tried on a trace before it is skipped; each costs a check of the whole solution.
_TRIES = 12


class Demand(StrEnum):
    """The demand of a variant on an evaluator: that the verdict on the changed step turns to not valid, or that all
    verdicts stay the same."""

    CHANGE = "must change"
    STAY = "must not change"


@dataclass(frozen=True)
class Variant:
    """A solution changed by a transform.

    `trace` is the changed solution, with a step for each sub-step. `origins` gives the place in the original of
    each of these steps, or None for an inserted step. `targets` are the places in `trace` whose verdict must turn
    to not valid; they are empty if all verdicts must stay. `said` describes the change in a sentence. `equation` is
    the equation that was made to fail or was rewritten, as written in `trace`, or "" if the change cannot be proved
    by calculation.
    """

    trace: Trace
    origins: tuple[int | None, ...]
    targets: tuple[int, ...]
    said: str
    equation: str = ""


Make = Callable[[Trace, random.Random], Variant | None]
"""Returns a variant of a trace, or None if there is nothing to change."""


@dataclass(frozen=True)
class Transform:
    """A rule that creates variants. `make` gets a trace with a step for each sub-step."""

    name: str
    demand: Demand
    description: str
    make: Make

    def variant(self, trace: Trace, seed: int = 0) -> Variant | None:
        """Return a variant of a trace, or None if the transform finds nothing to change in it. The same trace and
        seed give the same variant on every machine."""
        return self.make(by_substep(trace), random.Random(f"{seed} {self.name} {trace.digest}"))


TRANSFORMS: dict[str, Transform] = {}
"""All transforms by their names: first those after which a verdict must change, then the others."""


def by_substep(trace: Trace) -> Trace:
    """Return a trace in which every sub-step is a step of its own, with the gold label of the step it came from."""
    steps = (Step((text,), step.label, step.valid) for step in trace.steps for text in step.substeps)
    return replace(trace, steps=tuple(steps))


def transform(name: str, demand: Demand, description: str) -> Callable[[Make], Make]:
    """Register the function that makes the variants of a transform."""

    def register(make: Make) -> Make:
        TRANSFORMS[name] = Transform(name, demand, description, make)
        return make

    return register


def find_transform(name: str) -> Transform:
    """Return the transform with this name. Raises `UserError` if there is none."""
    if name not in TRANSFORMS:
        raise UserError(f"there is no transform {name!r:.60}.", f"The transforms are {', '.join(TRANSFORMS)}.")
    return TRANSFORMS[name]


def with_text(trace: Trace, place: int, text: str) -> Trace:
    """Return an unlabelled copy of a trace in which the step at `place` has another text."""
    steps = [*trace.substeps[:place], text, *trace.substeps[place + 1 :]]
    return Trace.of(trace.problem, steps, id=trace.id)


def variant_of(after: Trace, said: str, *targets: int, equation: str = "") -> Variant:
    """Return the variant whose steps stand where those of the original did."""
    return Variant(after, tuple(range(len(after.substeps))), targets, said, equation)


def quoted(text: str, most: int = 80) -> str:
    """Return a text in one line and in quotation marks, cut after `most` characters."""
    line = " ".join(text.split())
    return f"“{line if len(line) <= most else line[: most - 1] + '…'}”"


def spliced(text: str, start: int, end: int, other: str) -> str:
    """Return a text in which the characters from `start` to `end` are replaced by `other`."""
    return text[:start] + other + text[end:]


# --- proofs by calculation ---


class Equation(NamedTuple):
    """An equation that holds: `text`, the characters from `start` to `end` of the step at `place`."""

    place: int
    start: int
    end: int
    text: str


def true_equations(trace: Trace) -> list[Equation]:
    """Return the equations that hold, of all steps that state nothing wrong.

    An equation that contains another one, as the whole of 2 + 3 = 5 = 10/2 does, is left out.
    """
    equations = []
    for place, checks in enumerate(checks_of(trace)):
        if all(check.holds for check in checks):
            spans = [(check.start, check.end) for check in checks]
            equations += [
                Equation(place, start, end, trace.substeps[place][start:end])
                for start, end in dict.fromkeys(spans)
                if not any((a, b) != (start, end) and start <= a and b <= end for a, b in spans)
            ]
    return equations


def failing_at(trace: Trace, place: int) -> str:
    """Return the first failing equation of the step at `place`, or "" if it has none or an earlier step states
    anything wrong."""
    checks = checks_of(trace)
    if any(not check.holds for part in checks[:place] for check in part):
        return ""
    failing = (check for check in checks[place] if not check.holds)
    return next((trace.substeps[place][check.start : check.end] for check in failing), "")


def is_unharmed(before: Trace, after: Trace) -> bool:
    """True if a change made nothing wrong and left no equation unread: for each step before it, there is one after
    it with as many equations that hold and as many that fail."""

    def tally(trace: Trace) -> list[tuple[int, int]]:
        counts = ([check.holds for check in part] for part in checks_of(trace))
        return sorted((sum(holding), len(holding)) for holding in counts)

    return tally(after) == tally(before)


# --- a calculation is made wrong, and all that followed from the changed number is left alone ---

# A number that is not an exponent, an index, or part of a name or a longer number.
_NUMBER = re.compile(r"(?<![\w.,^_\\])\d+(?:\.\d+)?(?![\w^]|[.,]\d)")
_SIGN = re.compile(r"(?<=[\w)}\]])( ?)(\+|-|−|\*|×|·|/|÷|\\cdot|\\times|\\div)( ?)(?=[\w({\\$])")
_OTHER_SIGNS = {"+": "-", "-": "+", "−": "+", "*": "+", "×": "+", "·": "+", "/": "*", "÷": "×"} | {
    "\\cdot": "+", "\\times": "+", "\\div": "\\times",
}  # fmt: skip
_NEAR = (1, -1, 2, -2, 3, 10, -10)


def _draw_near(written: str, rng: random.Random) -> str | None:
    """Return a number near the one `written`, with as many decimal places, or None if there is none above 0."""
    scaled = int(written.replace(".", ""))
    near = [scaled + change for change in _NEAR if scaled + change > 0]
    if not near:
        return None
    places = len(written.partition(".")[2])
    return f"{rng.choice(near) / 10**places:.{places}f}"


def _find_proved(
    trace: Trace, rng: random.Random, changes: Sequence[tuple[Equation, int, int, str]]
) -> Variant | None:
    """Try changes in random order, and return the first variant that can be proved wrong. A change is (equation,
    start, end, text): in the equation's step, the characters from `start` to `end` are replaced by `text`."""
    for equation, start, end, other in rng.sample(changes, min(_TRIES, len(changes))):
        place = equation.place
        after = with_text(trace, place, spliced(trace.substeps[place], start, end, other))
        if failing := failing_at(after, place):
            written = spliced(equation.text, start - equation.start, end - equation.start, other)
            note = f"Step {place + 1}: {quoted(equation.text)} became {quoted(written)}."
            return variant_of(after, note, place, equation=failing)
    return None


@transform(
    "number-replaced",
    Demand.CHANGE,
    "A number of an equation that holds is replaced by a near one, and all that followed is left alone.",
)
def _replace_number(trace: Trace, rng: random.Random) -> Variant | None:
    changes = []
    for equation in true_equations(trace):
        for match in _NUMBER.finditer(equation.text):
            other = _draw_near(match[0], rng)
            if other is not None:
                changes.append((equation, equation.start + match.start(), equation.start + match.end(), other))
    return _find_proved(trace, rng, changes)


@transform("sign-turned", Demand.CHANGE, "An operation of an equation that holds is replaced by another one.")
def _turn_sign(trace: Trace, rng: random.Random) -> Variant | None:
    changes = [
        (equation, *match.span(2), _OTHER_SIGNS[match[2]])
        for equation in true_equations(trace)
        for match in _SIGN.finditer(trace.substeps[equation.place], equation.start, equation.end)
    ]
    return _find_proved(trace, rng, changes)


@transform(
    "false-conclusion",
    Demand.CHANGE,
    "After an equation that holds, a step is put in that concludes another result from it.",
)
def _conclude_wrongly(trace: Trace, rng: random.Random) -> Variant | None:
    equations = [
        equation for equation in true_equations(trace) if equation.text.count("=") == 1 and "$" not in equation.text
    ]
    for equation in rng.sample(equations, min(_TRIES, len(equations))):
        left, _, right = equation.text.partition("=")
        numbers = list(_NUMBER.finditer(right))
        other = _draw_near(numbers[-1][0], rng) if numbers else None
        if other is None or "\\" in left:
            continue
        false = f"{left.strip()} = {spliced(right, *numbers[-1].span(), other).strip()}"
        place = equation.place + 1
        texts, origins = trace.substeps, range(len(trace.substeps))
        wrong = f"It follows that {false} as well."
        after = Trace.of(trace.problem, [*texts[:place], wrong, *texts[place:]], id=trace.id)
        if failing := failing_at(after, place):
            note = f"Put in after step {place}: {quoted(false)}."
            return Variant(after, (*origins[:place], None, *origins[place:]), (place,), note, failing)
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
        def make(trace: Trace, rng: random.Random) -> Variant | None:
            equations = true_equations(trace)
            for equation in rng.sample(equations, min(_TRIES, len(equations))):
                text, place = trace.substeps[equation.place], equation.place
                other = rewrite(equation.text, text)
                if other is None or other == equation.text:
                    continue
                after = with_text(trace, place, spliced(text, equation.start, equation.end, other))
                if is_unharmed(trace, after) and any(check.holds for check in checks_of(after)[place]):
                    note = f"Step {place + 1}: {quoted(equation.text)} is written as {quoted(other)}."
                    return variant_of(after, note, equation=other)
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
def _change_times(equation: str, text: str) -> str | None:
    match = _TIMES.search(equation)
    if match is None:
        return None
    in_latex = match[1].startswith("\\")
    sign = {"\\cdot": "\\times", "\\times": "\\cdot", "*": "×", "×": "*", "·": "×"}[match[1]]
    return spliced(equation, *match.span(), f" {sign} " if in_latex or len(match[0]) > 1 else sign)


@_rewriting("other-spaces", "Spaces around + and = are taken away or added.")
def _change_spaces(equation: str, text: str) -> str | None:
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
# The number at the beginning of a step: "Step 2:", "2." or "(b)".
_NUMBERING = re.compile(
    r"\s*(?:(?:step|schritt|étape|paso)\s*\d+\s*[:.)-]?|\(?(?:\d{1,3}|[a-z])[.):])\s+", re.IGNORECASE
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
def _sound_confident(trace: Trace, rng: random.Random) -> Variant | None:
    # The number at the beginning of a step stays in place.
    heads = [match[0] if (match := _NUMBERING.match(text)) else "" for text in trace.substeps]
    bodies = [text[len(head) :] for head, text in zip(heads, trace.substeps, strict=True)]
    places = [place for place, body in enumerate(bodies) if body[:1].isalpha()]
    if not places:
        return None
    place, words = rng.choice(places), rng.choice(_CONFIDENT)
    body = bodies[place]
    # A name, a variable or a formula keeps its capital.
    lowered = body[0].lower() + body[1:] if _OPENING.match(body) else body
    note = f"Step {place + 1} begins with {quoted(words.strip())}."
    return variant_of(with_text(trace, place, heads[place] + words + lowered), note)


@transform("filler", Demand.STAY, "A step ends with a sentence that says nothing.")
def _add_filler(trace: Trace, rng: random.Random) -> Variant | None:
    # Text after the answer would be more than filler.
    places = [place for place, text in enumerate(trace.substeps[:-1]) if text.rstrip()[-1:] in ".!"]
    if not places:
        return None
    place, filler = rng.choice(places), rng.choice(_FILLERS)
    text = f"{trace.substeps[place].rstrip()} {filler}"
    return variant_of(with_text(trace, place, text), f"Step {place + 1} ends with {quoted(filler)}.")
