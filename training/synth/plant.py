"""A planted error: its kind, and the wrong number or operation it puts in place of the right one."""

import random
from collections.abc import Sequence
from fractions import Fraction

SLIP = "calculation slip"
MISREAD = "misreading"
OPERATION = "wrong operation"
KINDS = (SLIP, MISREAD, OPERATION)

_SWAPS = {"+": "-*", "-": "+", "*": "+-", "/": "*-", "%": "-/"}


def apply(left: int, sign: str, right: int) -> int | None:
    """`left sign right` where it is a whole number (`%`: right percent of left), else None."""
    if sign == "/" and right == 0:
        return None
    value = {
        "+": lambda: Fraction(left + right),
        "-": lambda: Fraction(left - right),
        "*": lambda: Fraction(left * right),
        "/": lambda: Fraction(left, right),
        "%": lambda: Fraction(left * right, 100),
    }[sign]()
    return int(value) if value.denominator == 1 else None


def slip(right: int, neighbour: int, rng: random.Random) -> int:
    """A wrong result near `right`; `neighbour` is a distance that leaves a multiple a multiple.

    Most slips keep the last digit or the divisibility, so that no rule of thumb finds them.
    """
    offsets = [
        10,
        10,
        10,
        20,
        neighbour,
        neighbour,
        1,
        2,
        30 if right > 60 else 10,
        100 if right > 150 else 9,
    ]
    while True:
        wrong = right + rng.choice([-1, 1]) * rng.choice(offsets)
        if wrong > 1 and wrong != right:
            return wrong


def misread(value: int, others: Sequence[int], rng: random.Random) -> int:
    """A number taken for `value`: its digits swapped, another quantity of the problem, or one off."""
    swapped = int(str(value)[::-1])
    near = [value + 10, value + 1, value - 1, value + 2]
    choices = [n for n in [swapped, swapped, *others, rng.choice(near)] if n > 1 and n != value]
    return rng.choice(choices or [value + 1])


def swap(sign: str, rng: random.Random) -> str:
    """The operation used by mistake for `sign`."""
    return rng.choice(_SWAPS[sign])
