"""Sequences that grow evenly: their terms, sums and numbers of terms."""

from stepsight.training.synth.plant import CASE, FORMULA, INFERENCE
from stepsight.training.synth.story import Bound, Given, Mistake, Op, Story, Verify

_TERM = Story(
    (
        "An arithmetic sequence starts with {f} and has common difference {d}. Find its term number {n}.",
        "What is term number {n} of the sequence that begins at {f} and grows by {d} each time?",
        "The first term of an arithmetic sequence is {f}, and its common difference is {d}. What is [a_{n}]?",
        "If [a_1 = {f}] and each term of a sequence is {d} more than the one before, find [a_{n}].",
        "A row of stones has {f} stones in its first heap, and each heap has {d} more than the one before. How "
        "many stones are in heap number {n}?",
    ),
    {
        "f": Given(range(2, 60), "as first term"),
        "d": Given(range(3, 15), "as difference"),
        "n": Given(range(8, 26), "as number of the term"),
    },
    (
        Op(
            "a",
            "n - 1",
            "the number of jumps",
            (
                "From the first term to term {n} there are {eq} jumps.",
                "The number of jumps is {eq}.",
                "To get there, the difference is added {eq} times.",
                "We add the difference {eq} times.",
            ),
            (
                Mistake(
                    CASE,
                    "n",
                    (
                        "From the first term to term {n} there are {res} jumps.",
                        "The number of jumps is {res}.",
                        "To get there, the difference is added {res} times.",
                        "We add the difference {res} times.",
                    ),
                ),
                Mistake(CASE, "n + 1"),
            ),
        ),
        Op("b", "a * d", "the growth"),
        Op("c", "f + b", "the term", mistakes=(Mistake(FORMULA, "f * b"), Mistake(FORMULA, "(f + a) * d"))),
    ),
    {},
    (
        Verify((Op("x", "answer - f"), Op("m", "n - 1"), Op("z", "x / m")), "z", "d"),
        Verify((Op("m", "n - 1"), Op("y", "m * d"), Op("z", "answer - y")), "z", "f"),
    ),
    (Bound("c > f", "the term {c} must be greater than the first term {f}"),),
    largest=6000,
)

_SUM = Story(
    (
        "Find the sum of {n} terms that grow evenly from {f} to {l}.",
        "An arithmetic sequence of {n} terms goes from {f} up to {l}. What is its sum?",
        "The first of {n} terms of an arithmetic series is {f} and the last is {l}. Compute the sum of the series.",
        "A hall has {n} rows. The first row has {f} seats, the last has {l}, and the rows grow evenly. How many "
        "seats are there in all?",
    ),
    {
        "f": Given(range(2, 30), "as first term"),
        "l": Given((), "as last term", made="f + (n - 1) * d"),
        "n": Given(range(4, 13), "terms"),
    },
    (
        Op("a", "f + l", "the sum of the ends"),
        Op(
            "b",
            "a * n",
            "twice the sum",
            (
                "Twice the sum is {eq}.",
                "Written forwards and backwards, each of the pairs has this sum, so twice the sum is {eq}.",
                "Pairing the terms, twice the sum is {eq}.",
                "For twice the sum we get {eq}.",
            ),
            (Mistake(CASE, "a * (n - 1)"),),
        ),
        Op("c", "b / 2", "the sum", mistakes=(Mistake(CASE, "b"),)),
    ),
    {},
    (Verify((Op("x", "answer * 2"), Op("y", "x / n"), Op("z", "y - f")), "z", "l"),),
    (
        Bound("c < n * l", "the sum {c} must be less than {n} times the last term {l}"),
        Bound("c > n * f", "the sum {c} must be greater than {n} times the first term {f}"),
    ),
    largest=3000,
    seeds={"d": Given(range(2, 9), "")},
)

_COUNT = Story(
    (
        "How many terms are in the sequence [{f}, {g}, {h}, ..., {l}]?",
        "The arithmetic sequence [{f}, {g}, {h}, ..., {l}] has how many terms?",
        "How many numbers are in the list [{f}, {g}, {h}, ..., {l}]?",
        "Find the number of terms of the arithmetic sequence [{f}, {g}, {h}, ..., {l}].",
    ),
    {
        "f": Given(range(2, 50), "as first term"),
        "g": Given((), "as second term", made="f + d"),
        "h": Given((), "", made="f + 2 * d"),
        "l": Given((), "as last term", made="f + d * j"),
    },
    (
        Op("d", "g - f", "the common difference"),
        Op("s", "l - f", "the distance from the first term to the last"),
        Op("j", "s / d", "the number of jumps", mistakes=(Mistake(INFERENCE, "l / d"),)),
        Op(
            "n",
            "j + 1",
            "the number of terms",
            (
                "With the first term, there are {eq} terms.",
                "The number of terms is one more: {eq}.",
                "Counting both ends, that is {eq} terms.",
                "So there are {eq} terms.",
            ),
            (
                Mistake(
                    CASE,
                    "j",
                    (
                        "With one term for each jump, there are {res} terms.",
                        "The number of terms is the same: {res}.",
                        "Counting the jumps, that is {res} terms.",
                        "So there are {res} terms.",
                    ),
                ),
            ),
        ),
    ),
    {},
    (Verify((Op("j", "answer - 1"), Op("d", "g - f"), Op("s", "j * d"), Op("z", "f + s")), "z", "l"),),
    (Bound("n > j", "the number of terms, {n}, must be greater than the number of jumps, {j}"),),
    largest=900,
    seeds={"d": Given(range(2, 13), ""), "j": Given(range(6, 45), "")},
)

_SERIES = Story(
    (
        "What is the sum of the first {n} terms of the arithmetic sequence with first term {f} and common "
        "difference {d}?",
        "An arithmetic sequence begins with {f} and has common difference {d}. Find the sum of its first {n} "
        "terms.",
        "{f} chairs stand in the first row, and every further row has {d} chairs more than the one before. How "
        "many chairs are in {n} rows?",
        "On the first day {f} pages are read, and on each later day {d} pages more than the day before. How many "
        "pages are read in {n} days?",
    ),
    {
        "f": Given(range(2, 30), "as first term"),
        "d": Given(range(2, 10), "as difference"),
        "n": Given(range(5, 20), "terms"),
    },
    (
        Op("a", "n - 1", "the number of jumps", mistakes=(Mistake(CASE, "n"),)),
        Op("l", "f + a * d", "the last term"),
        Op("e", "f + l", "the sum of the ends"),
        Op("s", "e * n / 2", "the sum", mistakes=(Mistake(FORMULA, "e * n"), Mistake(FORMULA, "e * a / 2"))),
    ),
    {},
    (
        Verify(
            (
                Op("x", "answer * 2"),
                Op("y", "x / n"),
                Op("m", "y - f"),
                Op("z", "m - f"),
                Op("w", "n - 1"),
                Op("v", "z / w"),
            ),
            "v",
            "d",
        ),
    ),
    (
        Bound("s < n * l", "the sum {s} must be less than {n} times the last term {l}"),
        Bound("s > n * f", "the sum {s} must be greater than {n} times the first term {f}"),
    ),
    largest=5000,
    smallest=-5000,
)

SEQUENCES = (_TERM, _SUM, _COUNT, _SERIES)
