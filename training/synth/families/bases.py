"""Bases: numbers written in other bases than ten."""

from stepsight.training.synth.plant import CASE, DROPPED, FORMULA, INFERENCE
from stepsight.training.synth.story import Bound, Given, Mistake, Op, Story, Verify

_BASE = Given(range(5, 10), "as base", fixed=True)
_DIGIT = Given(range(1, 5), "", fixed=True)

_TO_TEN = Story(
    (
        "Convert [{p}{q}{r}_{b}] to base 10.",
        "Write the number [{p}{q}{r}_{b}] in base 10.",
        "In base {b} a number is written [{p}{q}{r}]. What is it in base 10?",
        "Which number in decimal notation is [{p}{q}{r}_{b}]?",
    ),
    {
        "p": Given(range(1, 5), "as first digit", fixed=True),
        "q": Given(range(1, 5), "as second digit", fixed=True),
        "r": Given(range(1, 5), "as last digit", fixed=True),
        "b": _BASE,
    },
    (
        Op(
            "s",
            "b ** 2",
            "the value of the first place",
            (
                "The first of the three places is worth {eq}.",
                "{What} is {eq}.",
                "For the first place we need {eq}.",
                "Three places: the first counts {eq}.",
            ),
            (
                Mistake(FORMULA, "b ** 3", ("The first of the three places is worth {eq}.", "{What} is {eq}.")),
                Mistake(FORMULA, "2 * b", ("The first of the three places is worth {eq}.", "{What} is {eq}.")),
                Mistake(INFERENCE, "100", ("The first of the three places is worth {res}, as always.",)),
            ),
        ),
        Op("u", "p * s", "the part of the first digit"),
        Op("v", "q * b", "the part of the second digit"),
        Op(
            "x",
            "u + v + r",
            "the number in base 10",
            (
                "Add the parts: {eq}.",
                "{What} is {eq}.",
                "With the last digit, {eq}.",
                "Altogether {eq}.",
            ),
        ),
    ),
    {},
    (
        Verify(
            (Op("d", "b ** 2"), Op("e", "p * d"), Op("f", "answer - e"), Op("g", "q * b"), Op("h", "f - g")),
            "h",
            "r",
            "take apart",
        ),
    ),
    (Bound("x < b ** 3", "three digits in base {b} make less than [{b}^3], so {x} must be below it"),),
    largest=900,
    reads=False,
    outlines=("Every place is worth a power of the base.", "Expand by places.", "Add up the places."),
)

_DIGIT_SUM = Story(
    (
        "The number {n} is written in base {b}. What is the sum of its digits there?",
        "Find the sum of the digits of the base-{b} representation of {n}.",
        "Write {n} in base {b} and add the digits. What is the result?",
    ),
    {
        "n": Given((), "as number", made="b * b * h + b * i + j"),
        "b": _BASE,
    },
    (
        Op("q", "floor(n / b)", "the quotient"),
        Op(
            "r",
            "mod(n, b)",
            "the last digit",
            mistakes=(Mistake(INFERENCE, "mod(n, 10)", ("The last digit is {eq}.", "{What} is {eq}.")),),
        ),
        Op("t", "floor(q / b)", "the first digit"),
        Op("s", "mod(q, b)", "the middle digit"),
        Op(
            "w",
            "t + s + r",
            "the sum of the digits",
            (
                "The digits are [{t}], [{s}], [{r}], with the sum {eq}.",
                "{What} is {eq}.",
                "Add the digits: {eq}.",
                "So the digits add to {eq}.",
            ),
            (
                Mistake(
                    CASE,
                    "s + r",
                    ("Add the two remainders: {eq}.", "So the digits add to {eq}."),
                ),
            ),
        ),
    ),
    {},
    (),
    (
        Bound("r < b", "the last digit {r} must be below {b}"),
        Bound("s < b", "the middle digit {s} must be below {b}"),
    ),
    seeds={"h": _DIGIT, "i": Given(range(1, 5), "", fixed=True), "j": Given(range(1, 5), "", fixed=True)},
    largest=300,
    outlines=("Divide by the base again and again.", "We collect the remainders.", "Find the digits by division."),
)

_ADDED = Story(
    (
        "What is [{p}{q}_{b} + {r}{s}_{b}] in base 10?",
        "Add [{p}{q}_{b}] and [{r}{s}_{b}] and give the sum in base 10.",
        "Two numbers are written [{p}{q}] and [{r}{s}] in base {b}. Find their sum in base 10.",
    ),
    {
        "p": Given(range(1, 5), "as first digit of the first number", fixed=True),
        "b": _BASE,
        "q": Given(range(1, 5), "as last digit of the first number", fixed=True),
        "r": Given(range(1, 5), "as first digit of the second number", fixed=True),
        "s": Given(range(1, 5), "as last digit of the second number", fixed=True),
    },
    (
        Op(
            "u",
            "p * b + q",
            "the first number",
            mistakes=(
                Mistake(INFERENCE, "p * 10 + q", ("The first number is {eq}.", "In base 10 the first is {eq}.")),
                Mistake(FORMULA, "q * b + p", ("The first number is {eq}.",)),
            ),
        ),
        Op(
            "v",
            "r * b + s",
            "the second number",
            mistakes=(
                Mistake(INFERENCE, "r * 10 + s", ("The second number is {eq}.", "In base 10 it is {eq}.")),
                Mistake(FORMULA, "s * b + r", ("The second number is {eq}.",)),
            ),
        ),
        Op("x", "u + v", "the sum in base 10"),
    ),
    {},
    (
        Verify(
            (Op("d", "p * b + q"), Op("e", "answer - d"), Op("f", "r * b"), Op("g", "e - f")),
            "g",
            "s",
            "take apart",
        ),
    ),
    (Bound("x < 2 * b ** 2", "the sum {x} of two such numbers must be below twice [{b}^2]"),),
    reads=False,
)

_WHICH_BASE = Story(
    (
        "In which base is the number {n} written as [{p}{q}]?",
        "For which base b is {n} written [{p}{q}]?",
        "The digits [{p}{q}] in some base stand for {n} in base 10. Find the base.",
        "If [{p}{q}_b = {n}], what is b?",
    ),
    {
        "n": Given((), "as number", made="p * c + q"),
        "q": Given(range(1, 6), "as last digit", fixed=True),
        "p": Given(range(1, 6), "as first digit", fixed=True),
    },
    (
        Op("t", "n - q", "the part of the first digit"),
        Op(
            "b",
            "t / p",
            "the base",
            (
                "The base is {eq}.",
                "Divide by the first digit: {eq}.",
                "So the base is {eq}.",
                "{What} comes out as {eq}.",
            ),
            (Mistake(DROPPED, "t", ("So the base is {res}.", "{What} is {res}.")),),
        ),
    ),
    {},
    (Verify((Op("u", "p * answer"), Op("v", "u + q")), "v", "n", "substitute"),),
    (
        Bound("b > q", "the base {b} must be greater than the digit {q}"),
        Bound("b > p", "the base {b} must be greater than the digit {p}"),
    ),
    seeds={"c": Given(range(6, 30), "")},
    reads=False,
)

BASES = (_TO_TEN, _DIGIT_SUM, _ADDED, _WHICH_BASE)
