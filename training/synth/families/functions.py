"""Functions: values, compositions, inverses, rules by case, and parameters found from a value."""

from stepsight.training.synth.families.names import NAMES
from stepsight.training.synth.plant import CASE, DROPPED, FORMULA, INFERENCE, SIGN
from stepsight.training.synth.story import Bound, Given, Mistake, Op, Story, Verify

_FACTOR = Given((-5, -4, -3, -2, 2, 3, 4, 5, 6, 7), "", fixed=True)
_CONSTANT = Given((-12, -9, -8, -7, -5, -4, -3, -2, 1, 2, 3, 4, 5, 6, 8, 10, 11, 13), "")

_COMPOSITION = Story(
    (
        "Let [f(x) = <a,b>] and [g(x) = <c,d>]. Find [f(g({n}))].",
        "If [f(x) = <a,b>] and [g(x) = <c,d>], what is [f(g({n}))]?",
        "Given [g(x) = <c,d>] and [f(x) = <a,b>], compute [f(g({n}))].",
        "Suppose that [f(x) = <a,b>] and [g(x) = <c,d>]. What is the value of [f(g({n}))]?",
    ),
    {
        "a": _FACTOR,
        "b": _CONSTANT,
        "c": _FACTOR,
        "d": _CONSTANT,
        "n": Given(range(2, 12), "as argument"),
    },
    (
        Op(
            "u",
            "c * n + d",
            "the inner value",
            (
                "The inner function comes first: [g({n})] is {eq}.",
                "Begin inside: [g({n})] is {eq}.",
                "We have [g(x) = <c,d>], so [g({n})] is {eq}.",
                "Inside, {eq}.",
                "First find [g({n})]: {eq}.",
            ),
            (Mistake(FORMULA, "c * (n + d)", ("Begin inside: [g({n})] is {eq}.", "Inside, {eq}.")),),
        ),
        Op(
            "v",
            "a * u + b",
            "[f(g({n}))]",
            (
                "Now [f({u})] is {eq}.",
                "Put [{u}] into f: {eq}.",
                "The outer function gives {eq}.",
                "Then [f(g({n})) = f({u})], which is {eq}.",
                "With [f(x) = <a,b>], [f({u})] is {eq}.",
            ),
            (
                Mistake(
                    INFERENCE,
                    "a * n + b + u",
                    ("The composition adds the two values: {eq}.", "Add the value of f to that of g: {eq}."),
                ),
                Mistake(
                    INFERENCE,
                    "(a * n + b) * u",
                    ("The composition multiplies the two values: {eq}.", "So [f(g({n}))] is the product {eq}."),
                ),
                Mistake(
                    CASE,
                    "a * n + b",
                    ("Put [{n}] into f: {eq}.", "The outer function at [{n}] gives {eq}."),
                ),
            ),
        ),
    ),
    {},
    (Verify((Op("l", "answer - b"), Op("o", "l / a"), Op("p", "o - d"), Op("q", "p / c")), "q", "n", "work back"),),
    smallest=-900,
    largest=900,
    fits=("u != 0", "v != 0"),
    reads=False,
    outlines=("We evaluate the inner function first.", "Work from the inside out.", "First g, then f."),
)

_QUADRATIC = Story(
    (
        "Let [f(x) = <a,b,c>]. Find [f({n})].",
        "If [f(x) = <a,b,c>], what is [f({n})]?",
        "Evaluate [<a,b,c>] at [x = {n}].",
        "What is the value of [<a,b,c>] when [x = {n}]?",
        "Given that [x = {n}], find [<a,b,c>].",
    ),
    {
        "n": Given((-8, -7, -6, -5, -4, -3, -2, 3, 4, 5, 6, 7, 8), "as value of x"),
        "a": Given((-3, -2, 2, 3, 4, 5), "as coefficient of x squared", fixed=True),
        "b": Given((-9, -7, -6, -5, -4, -3, 2, 3, 4, 5, 7, 8), "as coefficient of x"),
        "c": _CONSTANT,
    },
    (
        Op(
            "s",
            "n ** 2",
            "the square of x",
            (
                "The square is {eq}.",
                "Squaring x, {eq}.",
                "First, {eq}.",
                "With [x = {n}], {eq}.",
            ),
            (
                Mistake(FORMULA, "2 * n", ("The square of x is {eq}.", "Squaring x gives {eq}.")),
                Mistake(SIGN, "-(n ** 2)", ("The square of x is {res}.", "Squaring x gives {res}.")),
            ),
        ),
        Op(
            "p",
            "a * s",
            "the quadratic term",
            mistakes=(Mistake(FORMULA, "(a * n) ** 2", ("The quadratic term is {eq}.",)),),
        ),
        Op(
            "q",
            "b * n",
            "the linear term",
            mistakes=(Mistake(SIGN, "-b * n", ("The linear term is {res}.", "For the linear term we get {res}.")),),
        ),
        Op(
            "v",
            "p + q + c",
            "the value",
            (
                "Altogether {eq}.",
                "Add the terms: {eq}.",
                "The sum of the terms is {eq}.",
                "So the value is {eq}.",
                "Putting it together, {eq}.",
            ),
        ),
    ),
    {},
    (
        Verify(
            (Op("l", "answer - c"), Op("o", "b * n"), Op("m", "l - o"), Op("w", "n ** 2"), Op("z", "m / w")),
            "z",
            "a",
            "work back",
        ),
    ),
    smallest=-900,
    largest=900,
    fits=("v != 0",),
)

_INVERSE = Story(
    (
        "Let [f(x) = <a,b>]. What is [f^(-1)({c})]?",
        "If [f(x) = <a,b>], find the number that f sends to {c}.",
        "The function [f(x) = <a,b>] has an inverse. Evaluate it at {c}.",
        "For which x does [f(x) = <a,b>] take the value {c}?",
    ),
    {
        "b": Given((-20, -15, -13, -11, -8, -7, -5, -3, 2, 4, 5, 7, 9, 12, 14, 19), "as constant of f"),
        "a": Given(range(2, 9), "as factor of x", fixed=True),
        "c": Given((), "as value of f", made="a * u + b"),
    },
    (
        Op(
            "s",
            "c - b",
            "the factor times x",
            (
                "The inverse first undoes the constant: {eq}.",
                "Set the function equal to [{c}] and remove the constant: {eq}.",
                "Undo the last operation: {eq}.",
                "The x term must be {eq}.",
            ),
            (Mistake(SIGN, "c + b", ("The x term must be {eq}.", "Undo the constant: {eq}.")),),
        ),
        Op(
            "x",
            "s / a",
            "the inverse value",
            (
                "Then undo the factor: {eq}.",
                "Divide by the factor of x: {eq}.",
                "So x is {eq}.",
                "{What} is {eq}.",
            ),
            (
                Mistake(
                    FORMULA,
                    "a * c + b",
                    ("Put [{c}] into the function: {eq}.", "So the inverse value is {eq}."),
                ),
            ),
        ),
    ),
    {},
    (Verify((Op("u", "a * answer"), Op("v", "u + b")), "v", "c", "substitute"),),
    smallest=-400,
    fits=("x != 0", "c != 0"),
    seeds={"u": Given((-9, -7, -5, -4, -3, -2, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12), "")},
)

_PARAMETER = Story(
    (
        "Let [f(x) = {a}x + k] for some number k, and [f({n}) = {m}]. Find [f({t})].",
        "The function [f(x) = {a}x + k] satisfies [f({n}) = {m}]. What is [f({t})]?",
        "For a constant k, [f(x) = {a}x + k]. If [f({n}) = {m}], what is the value of [f({t})]?",
        "A line rises by {a} for every unit to the right and has the value {m} at [x = {n}]. What is its value at "
        "[x = {t}]?",
    ),
    {
        "a": Given(range(2, 10), "as factor of x"),
        "n": Given(range(2, 12), "as first argument"),
        "m": Given(range(20, 130), "as first value"),
        "t": Given(range(5, 30), "as second argument"),
    },
    (
        Op("p", "a * n", "the x term at the first argument"),
        Op(
            "k",
            "m - p",
            "the constant k",
            (
                "So [k] is {eq}.",
                "The constant is {eq}.",
                "Solving for [k], {eq}.",
                "From the known value, [k] is {eq}.",
            ),
            (
                Mistake(SIGN, "m + p", ("Solving for [k], {eq}.", "The constant is {eq}.")),
                Mistake(INFERENCE, "m", ("The known value is the constant, so [k] is {res}.",)),
            ),
        ),
        Op("q", "a * t", "the x term at the second argument"),
        Op("v", "q + k", "[f({t})]", mistakes=(Mistake(DROPPED, "q", ("So [f({t})] is {res}.",)),)),
    ),
    {},
    (Verify((Op("l", "answer - m"), Op("o", "l / a"), Op("w", "t - o")), "w", "n", "work back"),),
    smallest=-300,
    fits=("k != 0", "n != t", "v != 0"),
)

_VERTEX = Story(
    (
        "What is the smallest value of [f(x) = x^2 - {b}x + {c}]?",
        "Find the minimum value of [x^2 - {b}x + {c}].",
        "The parabola [y = x^2 - {b}x + {c}] has a lowest point. What is its y-coordinate?",
        "Let [f(x) = x^2 - {b}x + {c}]. What is the least value that f takes?",
    ),
    {
        "b": Given(range(4, 26, 2), "as the number before x"),
        "c": Given(range(2, 90), "as constant"),
    },
    (
        Op(
            "h",
            "b / 2",
            "the x-coordinate of the vertex",
            (
                "The vertex lies at half of [{b}]: {eq}.",
                "{What} is {eq}.",
                "Completing the square, [x] at the vertex is {eq}.",
                "At the minimum, [x] is {eq}.",
            ),
            (
                Mistake(FORMULA, "b", ("At the minimum, [x] is {res}.", "At the vertex, [x] is {res}.")),
                Mistake(SIGN, "-b / 2", ("At the minimum, [x] is {eq}.", "At the vertex, [x] is {eq}.")),
            ),
        ),
        Op("s", "h ** 2", "the square that is completed"),
        Op(
            "v",
            "c - s",
            "the smallest value",
            (
                "So {what} is {eq}.",
                "Take the square from the constant: {eq}.",
                "The constant that is left, {eq}, is {what}.",
                "{What} is {eq}.",
            ),
            (
                Mistake(SIGN, "s - c", ("So {what} is {eq}.",)),
                Mistake(CASE, "c", ("A square is at least zero, so {what} is {res}.",)),
            ),
        ),
    ),
    {},
    (Verify((Op("l", "c - answer"), Op("o", "sqrt(l)"), Op("w", "2 * o")), "w", "b", "substitute"),),
    (Bound("v < c", "the smallest value {v} must be below the value {c} at x = 0"),),
    smallest=-2000,
    fits=("v != 0",),
    outlines=("Complete the square.", "A parabola that opens upwards is lowest at its vertex.", "Find the vertex."),
)

_CASES = Story(
    (
        "Let [f(x) = <a,b>] if x is at least {k}, and [f(x) = <c,d>] otherwise. Find [f({n}) + f({m})].",
        "A function is [<a,b>] for x at or above {k} and [<c,d>] for x below {k}. What is [f({n}) + f({m})]?",
        "For x below {k} let [f(x) = <c,d>], and for all other x let [f(x) = <a,b>]. Compute [f({n}) + f({m})].",
    ),
    {
        "a": Given(range(2, 8), "", fixed=True),
        "b": _CONSTANT,
        "c": Given(range(2, 8), "", fixed=True),
        "d": _CONSTANT,
        "k": Given(range(6, 12), "", fixed=True),
        "n": Given(range(8, 25), "as first argument"),
        "m": Given((1, 2, 3, 4, 5, 6), "as second argument", fixed=True),
    },
    (
        Op(
            "u",
            "a * n + b",
            "the first value",
            (
                "At [{n}] the rule [<a,b>] holds: {eq}.",
                "The first value is {eq}.",
                "[{n}] is large enough for [<a,b>]: {eq}.",
                "[f({n})] is {eq}.",
            ),
            (
                Mistake(
                    CASE,
                    "c * n + d",
                    ("At [{n}] the rule [<c,d>] holds: {eq}.", "[f({n})] is {eq}.", "The first value is {eq}."),
                ),
            ),
        ),
        Op(
            "v",
            "c * m + d",
            "the second value",
            (
                "At [{m}] the other rule [<c,d>] holds: {eq}.",
                "The second value is {eq}.",
                "[{m}] is too small for the first rule, so {eq}.",
                "[f({m})] is {eq}.",
            ),
            (
                Mistake(
                    CASE,
                    "a * m + b",
                    (
                        "With the same rule at [{m}], {eq}.",
                        "[f({m})] is {eq}.",
                        "The rule gives {eq} at [{m}] as well.",
                    ),
                ),
            ),
        ),
        Op("w", "u + v", "the sum of the values"),
    ),
    {},
    (Verify((Op("l", "c * m + d"), Op("o", "answer - l"), Op("p", "o - b"), Op("q", "p / a")), "q", "n"),),
    smallest=-60,
    fits=("n >= k", "m < k", "a != c", "u != 0", "v != 0", "w != 0"),
    reads=False,
)

_TARIFF = Story(
    (
        "A {shop} charges @{b} and @{a} for every hour. {name} pays @{c} in all. For how many hours?",
        "The cost of a {thing} is [f(x) = {a}x + {b}] dollars for x hours. {name} has to pay @{c}. How many "
        "hours was "
        "it?",
        "At a {shop}, x hours with a {thing} cost [{a}x + {b}] dollars. How many hours does {name} get for @{c}?",
    ),
    {
        "a": Given(range(4, 19), "dollars an hour"),
        "b": Given(range(5, 60), "dollars at once"),
        "c": Given((), "dollars in all", made="a * u + b"),
    },
    (
        Op(
            "s",
            "c - b",
            "the part that is paid for the hours",
            mistakes=(
                Mistake(INFERENCE, "c", ("All of the money is paid for the hours: {res} dollars.",)),
                Mistake(SIGN, "c + b", ("The part that is paid for the hours is {eq}.",)),
            ),
        ),
        Op("x", "s / a", "the number of hours"),
    ),
    {"name": NAMES, "shop": ("rental shop", "boat yard", "bike shop"), "thing": ("kayak", "scooter", "tandem")},
    (Verify((Op("u", "a * answer"), Op("v", "u + b")), "v", "c", "add back"),),
    (Bound("a * x < c", "{x} hours at {a} dollars must cost less than {c} dollars"),),
    seeds={"u": Given(range(2, 16), "")},
)

FUNCTIONS = (_COMPOSITION, _QUADRATIC, _INVERSE, _PARAMETER, _VERTEX, _CASES, _TARIFF)
