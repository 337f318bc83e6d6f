"""Inequalities: their bounds, the integers that satisfy them, and what is just enough or just too much."""

from stepsight.training.synth.families.names import NAMES
from stepsight.training.synth.plant import CASE, INFERENCE, SIGN
from stepsight.training.synth.story import Bound, Given, Mistake, Op, Story, Verify

_SUBTRACTED = (
    "Subtract [{b}] on both sides: the right side is {eq}.",
    "Taking [{b}] away leaves {eq} on the right.",
    "Bring the constant over: {eq}.",
    "Isolate the x term; on the right we have {eq}.",
    "The x term is compared with {eq}.",
)

_LARGEST = Story(
    (
        "What is the largest integer x with [{a}x + {b} <= {c}]?",
        "Find the greatest integer that satisfies [{a}x + {b} <= {c}].",
        "Let [{a}x + {b} <= {c}]. What is the largest integer value of x?",
        "{a} times a whole number, increased by {b}, is at most {c}. What is the largest such number?",
    ),
    {
        "a": Given(range(3, 13), "as factor of x"),
        "b": Given(range(3, 50), "as constant"),
        "c": Given(range(60, 250), "on the right"),
    },
    (
        Op("s", "c - b", "the right side", _SUBTRACTED, (Mistake(SIGN, "c + b", _SUBTRACTED[2:]),)),
        Op(
            "x",
            "floor(s / a)",
            "the largest integer",
            (
                "So [x <= {s} / {a}], and the largest integer is [{x}].",
                "Dividing by [{a}], [x <= {s} / {a}]; the largest integer there is [{x}].",
                "Divide by [{a}] and round down: {eq}.",
                "{What} is {eq}.",
                "As [x <= {s} / {a}], we take {eq}.",
            ),
            (
                Mistake(
                    INFERENCE,
                    "floor(s / a) + 1",
                    (
                        "So [x <= {s} / {a}], and rounding up the largest integer is [{x}].",
                        "Dividing by [{a}] and rounding up gives [{x}].",
                        "As [x <= {s} / {a}], the next integer is the largest: [{x}].",
                    ),
                ),
                Mistake(
                    INFERENCE,
                    "s - a",
                    ("Take [{a}] away: [x <= {x}].", "Subtracting the factor, [x <= {s} - {a}], so it is [{x}]."),
                ),
            ),
        ),
    ),
    {},
    (),
    (Bound("a * x + b <= c", "[{a} * {x} + {b}] must be at most {c}"),),
    fits=("mod(s, a) > 0",),
    outlines=("We isolate x.", "Solve the inequality as if it were an equation.", "First isolate the x term."),
)

_FLIPPED = Story(
    (
        "How many of the integers from 1 to {n} satisfy [{b} - {a}x < {c}]?",
        "Find the number of integers x with [1 <= x <= {n}] and [{b} - {a}x < {c}].",
        "Let x be an integer from 1 to {n}. For how many x is [{b} - {a}x < {c}]?",
        "Count the positive integers up to {n} for which [{b} - {a}x < {c}] holds.",
    ),
    {
        "b": Given((), "on the left", made="c + a * q"),
        "c": Given(range(2, 30), "on the right"),
        "a": Given(range(2, 9), "as the number before x"),
        "n": Given(range(20, 60), "as largest number"),
    },
    (
        Op(
            "s",
            "c - b",
            "the right side",
            _SUBTRACTED,
            (Mistake(SIGN, "c + b", _SUBTRACTED[2:]), Mistake(SIGN, "b - c", _SUBTRACTED[2:])),
        ),
        Op(
            "q",
            "s / (-a)",
            "the boundary",
            (
                "Divide by [-{a}]; the boundary is {eq}.",
                "The boundary is at {eq}.",
                "Equality would hold for {eq}.",
                "Dividing gives the boundary {eq}.",
                "On the boundary, x is {eq}.",
            ),
        ),
        Op(
            "x",
            "n - q",
            "the number of integers",
            (
                "Dividing by a negative number turns the sign, so [x > {q}] and there are {eq} integers.",
                "The sign turns round: [x > {q}], which {eq} of the integers satisfy.",
                "We divided by a negative number, hence [x > {q}]: {eq} integers.",
                "So [x > {q}], and up to [{n}] these are {eq}.",
            ),
            (
                Mistake(
                    INFERENCE,
                    "q - 1",
                    (
                        "So [x < {q}], and there are {eq} integers.",
                        "This means [x < {q}], which {eq} of the integers satisfy.",
                        "The sign stays, [x < {q}], and we count {eq}.",
                        "Hence [x < {q}], and from 1 on these are {eq}.",
                    ),
                ),
                Mistake(
                    CASE,
                    "n - q + 1",
                    (
                        "So [x >= {q}], which leaves {eq} integers.",
                        "The boundary counts as well, so there are {eq} integers.",
                    ),
                ),
            ),
        ),
    ),
    {},
    (Verify((Op("u", "n - answer"), Op("v", "a * u"), Op("w", "v + c")), "w", "b", "substitute"),),
    (Bound("x < n", "{x} of the {n} integers must be fewer than all"),),
    fits=("q < n", "q > 1"),
    smallest=-300,
    largest=200,
    outlines=("We isolate x.", "Solve for x and mind the direction of the sign.", "Find the boundary, then count."),
    seeds={"q": Given(range(3, 18), "")},
)

_BETWEEN = Story(
    (
        "How many integers x satisfy [{l} < <a,b> <= {h}]?",
        "Find the number of integers x for which [{l} < <a,b> <= {h}].",
        "For how many whole numbers x, negative ones included, is [{l} < <a,b> <= {h}]?",
        "Count the integer solutions of [{l} < <a,b> <= {h}].",
    ),
    {
        "a": Given(range(2, 7), "as factor of x", fixed=True),
        "b": Given((-9, -7, -5, -4, -3, -2, 2, 3, 4, 5, 7, 8, 11), "as constant in the middle"),
        "l": Given((), "on the left", made="a * u + b"),
        "h": Given((), "on the right", made="a * u + a * v + b"),
    },
    (
        Op(
            "p",
            "l - b",
            "the new left side",
            ("The left side becomes {eq}.", "On the left, {eq}.", "Take [{b}] away on the left: {eq}."),
        ),
        Op(
            "q",
            "h - b",
            "the new right side",
            ("The right side becomes {eq}.", "On the right, {eq}.", "The same on the right: {eq}."),
            (Mistake(SIGN, "h + b", ("The right side becomes {eq}.", "On the right, {eq}.")),),
        ),
        Op("i", "p / a", "the lower bound of x"),
        Op("j", "q / a", "the upper bound of x"),
        Op(
            "n",
            "j - i",
            "the number of integers",
            (
                "So [{i} < x <= {j}], which are {eq} integers.",
                "From [{i} < x <= {j}] we count {eq}.",
                "Only the upper bound counts, so there are {eq} integers.",
                "{What} is {eq}.",
                "[{i} < x <= {j}] leaves {eq} integers.",
            ),
            (
                Mistake(
                    CASE,
                    "j - i + 1",
                    (
                        "Both bounds count, so there are {eq} integers.",
                        "Counting both ends of the range, there are {eq} integers.",
                    ),
                ),
                Mistake(
                    CASE,
                    "j - i - 1",
                    ("Neither bound counts, so there are {eq} integers.", "Strictly between them are {eq}."),
                ),
                Mistake(
                    CASE,
                    "j",
                    ("The integers are those from 1 to [{j}], so {res}.", "Up to [{j}] there are {res} integers."),
                ),
            ),
        ),
    ),
    {},
    (Verify((Op("k", "a * answer"), Op("m", "l + k")), "m", "h", "count back"),),
    smallest=-200,
    fits=("i < 0", "l < h"),
    seeds={"u": Given(range(-9, 0), "", fixed=True), "v": Given(range(4, 30), "")},
)

_WEEKS = Story(
    (
        "{name} has @{m} and saves @{s} a week. After how many weeks is there enough for a {thing} of @{g}?",
        "A {thing} costs @{g}. {name} owns @{m} and can put aside @{s} each week. What is the least number of "
        "weeks "
        "until {name} can buy it?",
        "With @{m} to begin with and @{s} more every week, how many full weeks does {name} need to have at least "
        "@{g}?",
    ),
    {
        "m": Given(range(10, 90), "dollars to begin with"),
        "s": Given(range(7, 25), "dollars a week"),
        "g": Given(range(120, 400), "dollars wanted"),
    },
    (
        Op("d", "g - m", "the missing money"),
        Op(
            "w",
            "ceil(d / s)",
            "the number of weeks",
            (
                "We need [{d} / {s}] weeks, which we round up to [{w}].",
                "At least [{d} / {s}] weeks are needed, so [{w}].",
                "Divide and round up: {eq}.",
                "Since a part of a week does not do, {what} is {eq}.",
                "[{d} / {s}] is not whole, so it takes [{w}] weeks.",
            ),
            (
                Mistake(
                    INFERENCE,
                    "floor(d / s)",
                    (
                        "[{d} / {s}] is not whole, so it takes [{w}] weeks.",
                        "We need [{d} / {s}] weeks, which we round down to [{w}].",
                        "Divide and drop the remainder: [{w}] weeks.",
                    ),
                ),
            ),
        ),
    ),
    {"name": NAMES, "thing": ("bicycle", "guitar", "tent", "camera", "phone", "desk")},
    (),
    (
        Bound("m + w * s >= g", "after {w} weeks the money, [{m} + {w} * {s}], must reach {g}"),
        Bound("m + (w - 1) * s < g", "a week earlier the money, [{m} + ({w} - 1) * {s}], must be less than {g}"),
    ),
    fits=("mod(d, s) > 0",),
)

_LOAD = Story(
    (
        "A lift carries at most {h} kg. {name} weighs {o} kg and loads boxes of {b} kg each. How many boxes can go "
        "along?",
        "How many boxes of {b} kg can ride with {name} ({o} kg) in a lift that holds no more than {h} kg?",
        "The limit of a lift is {h} kg. If {name}, who weighs {o} kg, is inside, what is the largest number of "
        "boxes "
        "of {b} kg?",
    ),
    {
        "h": Given(range(250, 400, 10), "kg at most"),
        "o": Given(range(45, 99), "kg for {name}"),
        "b": Given(range(11, 40), "kg a box"),
    },
    (
        Op(
            "r",
            "h - o",
            "the load left for boxes",
            mistakes=(Mistake(INFERENCE, "h", ("All of the {res} kg can be used for boxes.",)),),
        ),
        Op(
            "n",
            "floor(r / b)",
            "the number of boxes",
            (
                "[{r} / {b}] rounded down is [{n}] boxes.",
                "So at most [{r} / {b}] boxes, that is [{n}].",
                "Divide and round down: {eq}.",
                "The number of boxes can be at most [{r} / {b}], so it is [{n}].",
            ),
            (
                Mistake(
                    INFERENCE,
                    "ceil(r / b)",
                    (
                        "[{r} / {b}] rounded up is [{n}] boxes.",
                        "So about [{r} / {b}] boxes, and rounding up, [{n}].",
                        "A part of a box needs a whole one, so [{r} / {b}] means [{n}] boxes.",
                    ),
                ),
            ),
        ),
    ),
    {"name": NAMES},
    (),
    (
        Bound("n * b + o <= h", "the whole load, [{n} * {b} + {o}] kg, must stay within {h} kg"),
        Bound("n * b <= h", "the boxes alone, [{n} * {b}] kg, must stay within {h} kg"),
    ),
    fits=("mod(r, b) > 0",),
)

_FLIPPED_BOUND = Story(
    (
        "What is the smallest integer x such that [{b} - {a}x <= {c}]?",
        "Find the least integer x with [{b} - {a}x <= {c}].",
        "The number [{b} - {a}x] is at most {c}. What is the smallest integer that x can be?",
        "Solve [{b} - {a}x <= {c}] and give the smallest integer solution.",
    ),
    {
        "b": Given(range(60, 250), "on the left"),
        "a": Given(range(3, 12), "as the number before x"),
        "c": Given(range(2, 50), "on the right"),
    },
    (
        Op(
            "s",
            "b - c",
            "the amount to take off",
            (
                "The x term must take off at least {eq}.",
                "Add the x term and subtract [{c}]: the other side is {eq}.",
                "Rearranged, the x term is compared with {eq}.",
                "Bring [{c}] to the left and the x term to the right: {eq}.",
            ),
        ),
        Op(
            "x",
            "ceil(s / a)",
            "the smallest integer",
            (
                "So [x >= {s} / {a}], and the smallest integer is [{x}].",
                "Hence [x >= {s} / {a}]; rounding up, [{x}].",
                "Divide by [{a}] and round up: {eq}.",
                "We need [x >= {s} / {a}], which begins at the integer [{x}].",
            ),
            (
                Mistake(
                    INFERENCE,
                    "floor(s / a)",
                    (
                        "So [x <= {s} / {a}], and the integer to take is [{x}].",
                        "Hence [x >= {s} / {a}]; dropping the rest, the smallest integer is [{x}].",
                        "Dividing by [-{a}] gives [x <= {s} / {a}], so the integer is [{x}].",
                    ),
                ),
            ),
        ),
    ),
    {},
    (),
    (Bound("b - a * x <= c", "[{b} - {a} * {x}] must be at most {c}"),),
    fits=("mod(s, a) > 0",),
    outlines=("We isolate x.", "Bring the x term to the other side, where it is positive.", "Solve for x."),
)

INEQUALITIES = (_LARGEST, _FLIPPED, _BETWEEN, _WEEKS, _LOAD, _FLIPPED_BOUND)
