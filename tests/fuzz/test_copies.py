"""Solutions whose numbers are drawn at random, and taken over rightly or with a slip from a place that is known."""

import random
from collections.abc import Callable
from fractions import Fraction
from operator import add, mul, sub

import pytest

from stepsight.core.equations import Check, Method, check_steps
from stepsight.core.equations.copies import is_slip
from tests.cases import each
from tests.fuzz.attack import COUNT

pytestmark = pytest.mark.slow

# A problem, its steps, and how the numbers in them that are not drawn are worked out, in their order.
Story = tuple[str, tuple[str, ...], dict[str, tuple[Callable[[int, int], int], str, str]]]
STORIES: dict[str, Story] = {
    "a product and a difference": (
        "A shop has {a} shirts, and sells {b} of them a day for {n} days. How many are left?",
        ("It sells {b} * {n} = {c} shirts.", "{a} - {c} = {d} shirts are left.", "#### {d}"),
        {"c": (mul, "b", "n"), "d": (sub, "a", "c")},
    ),
    "the notes of a calculator": (
        "Ann earns ${a:,} a year and Ben ${b:,}. They spend {n} of it.",
        ("Together they earn {a:,}+{b:,}=$<<{a}+{b}={c}>>{c:,}.", "{c:,} / {n} is spent: {c}/{n}=", "A: {c:,}"),
        {"c": (add, "a", "b")},
    ),
    "formulas in the steps": (
        "A tank holds {a} litres, and {b} litres flow out each hour for {n} hours.",
        ("\\[ {b} \\times {n} = {c} \\]", "So \\( {a} - {c} = {d} \\text{{ litres}} \\).", "The answer is: ${d}$"),
        {"c": (mul, "b", "n"), "d": (sub, "a", "c")},
    ),
    "known things": (
        "A book has {a} pages. Ann read {b} of them.",
        (
            "Of the {a} pages, she read many.",
            "She still has to read {a} - {b} = {d} pages.",
            "Her {d} pages take days.",
        ),
        {"d": (sub, "a", "b")},
    ),
    "the value of a letter": (
        "Find $x$ if $2x + {n} = {e}$.",
        ("$2x = {f}$, so $x = {a}$.", "So $x = {a}$."),
        {"f": (add, "a", "a"), "e": (add, "f", "n")},
    ),
    "a number put in for a letter": (
        "Find $3x + {n}$ if $2x = {f}$.",
        ("$x = {a}$.", "$3x + {n} = 3 \\cdot {a} + {n} = {e}$."),
        {"f": (add, "a", "a"), "g": (add, "f", "a"), "e": (add, "g", "n")},
    ),
}  # fmt: skip
# The least share of the slips that is found. Others are numbers that follow from something as well.
FOUND = 0.5


def draw(rng: random.Random, story: Story) -> dict[str, int]:
    """The numbers of a story: `a` is the largest one, and `n` one digit."""
    numbers = {"n": rng.randint(2, 9), "b": rng.randint(101, 499)}
    numbers["a"] = rng.randint(4600, 9899)
    for name, (operation, one, other) in story[2].items():
        numbers[name] = operation(numbers[one], numbers[other])
    return numbers


def slip(rng: random.Random, number: int) -> int:
    """A number of at least three digits as a tired hand copies it."""
    digits = str(number)
    at = rng.randrange(len(digits) - 1)
    kind = rng.randrange(4)
    if kind == 0:
        return int(digits[:at] + digits[at + 1] + digits[at] + digits[at + 2 :])
    if kind == 1:
        return int(digits[: at + 1] + digits[at + 2 :])
    if kind == 2:
        return int(digits[: at + 1] + rng.choice("0123456789") + digits[at + 1 :])
    return int(digits[: at + 1] + rng.choice("0123456789") + digits[at + 2 :])


def copied(checks: list[tuple[Check, ...]]) -> list[tuple[int, Check]]:
    return [(step, check) for step, part in enumerate(checks) for check in part if check.method is Method.COPY]


@each("kind", STORIES)
def test_a_slip_is_found_with_its_source_and_a_right_copy_never(kind: str) -> None:
    rng = random.Random(f"copies {kind}")
    problem, steps, _ = STORIES[kind]
    found = tried = 0
    for _ in range(max(300, COUNT)):
        numbers = draw(rng, STORIES[kind])
        asked, told = problem.format(**numbers), [step.format(**numbers) for step in steps]
        assert not copied(check_steps(asked, told)), (asked, told)
        step, name = rng.choice(
            [
                (step, name)
                for step, text in enumerate(steps)
                for name, value in numbers.items()
                if value > 100 and f"{{{name}" in text and f"{{{name}" in problem + "".join(steps[:step])
            ]
        )
        wrong = slip(rng, numbers[name])
        if any(is_slip(Fraction(other), Fraction(wrong)) for other in numbers.values() if other != numbers[name]):
            # There are two that it may be.
            continue
        told[step] = steps[step].format(**{**numbers, name: wrong})
        tried += wrong not in numbers.values()
        for place, check in copied(check_steps(asked, told)):
            if place > step:
                # What is wrong in a step is stated, and a later step may take over the right number.
                continue
            found += 1
            assert place == step, (asked, told, check)
            assert check.right.split()[-1].replace(",", "") == str(numbers[name]), (asked, told, check)
            assert check.source is not None
            source = [asked, *told][check.source + 1]
            assert str(numbers[name]) in source.replace(",", ""), (asked, told, check)
    assert found >= FOUND * tried > 0, (found, tried)
