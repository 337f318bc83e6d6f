"""Extrema: vertices of quadratics and the best choice under a condition."""

from stepsight.training.synth.families.names import NAMES
from stepsight.training.synth.plant import CASE, DROPPED, FORMULA, INFERENCE, SIGN
from stepsight.training.synth.story import Bound, Given, Mistake, Op, Story, Verify

_SUMMIT = Story(
    (
        "What is the largest value of [f(x) = -{a}x^2 + {b}x + {c}]?",
        "Find the maximum of [-{a}x^2 + {b}x + {c}] over all real x.",
        "A ball is [-{a}t^2 + {b}t + {c}] metres high after t seconds. What is its greatest height in metres?",
        "Determine the highest value that [y = -{a}x^2 + {b}x + {c}] takes.",
    ),
    {
        "a": Given(range(2, 9), "before the square, with a minus"),
        "b": Given((), "as linear factor", made="2 * a * z"),
        "c": Given(range(2, 40), "as constant"),
    },
    (
        Op("k", "2 * a", "twice the leading factor"),
        Op(
            "x",
            "b / k",
            "the place of the maximum",
            (
                "The vertex lies at {eq}.",
                "The derivative is zero at {eq}.",
                "{What} is {eq}.",
                "The maximum is reached at {eq}.",
                "By symmetry, the vertex is at {eq}.",
            ),
            (
                Mistake(SIGN, "-b / k", ("The vertex lies at {eq}.", "The maximum is reached at {eq}.")),
                Mistake(FORMULA, "b / a", ("The vertex lies at {eq}.", "The derivative is zero at {eq}.")),
            ),
        ),
        Op("u", "a * x ** 2", "the square term without its minus"),
        Op("v", "b * x", "the linear term"),
        Op(
            "y",
            "v - u + c",
            "the maximum",
            (
                "There the value is {eq}.",
                "Hence {what} is {eq}.",
                "Substituting, we find the largest value {eq}.",
                "{What} is {eq}.",
            ),
            (
                Mistake(SIGN, "u + v + c", ("There the value is {eq}.", "Adding all terms, {what} is {eq}.")),
                Mistake(DROPPED, "v - u", ("There the value is {eq}.", "{What} is {eq}.")),
            ),
        ),
    ),
    {},
    (Verify((Op("w", "answer - c"), Op("q", "4 * a * w"), Op("s", "sqrt(q)")), "s", "b", "vertex formula"),),
    (Bound("y > c", "at zero the value is {c} already, so the maximum {y} must be more"),),
    largest=900,
    smallest=-3000,
    seeds={"z": Given(range(1, 9), "")},
)

_SQUARE_FIELD = Story(
    (
        "{name} has {p} m of fence for a rectangular {field}. A square metre yields {k} kg of hay. How many kg "
        "can be had at most?",
        "A rectangular {field} is to have a border of exactly {p} m. Each square metre is worth @{k}. What is its "
        "greatest possible value in dollars?",
        "Among all rectangles with a perimeter of {p} m, find the largest price of paving at @{k} per square "
        "metre.",
        "A rope of {p} m is laid out as a rectangle, and {k} plants are set on every square metre of it. How many "
        "plants can there be at most?",
    ),
    {"p": Given(range(16, 160, 4), "m of border"), "k": Given(range(2, 9), "for a square metre")},
    (
        Op(
            "h",
            "p / 2",
            "the sum of two neighbouring sides",
            ("Two neighbouring sides add up to {eq}.", "{What} is {eq}.", "Length and width make {eq}."),
            (
                Mistake(
                    CASE, "p", ("Length and width together are {eq}.", "Two neighbouring sides add up to {eq}.")
                ),
            ),
        ),
        Op(
            "s",
            "h / 2",
            "the best side",
            (
                "The product is largest if both are equal, so the side is {eq}.",
                "The best rectangle is a square of side {eq}.",
                "{What} is {eq}.",
                "The parabola of the area has its vertex at {eq}.",
            ),
            (
                Mistake(
                    INFERENCE, "h / 3", ("The best rectangle is twice as long as wide, so the width is {eq}.",)
                ),
                Mistake(FORMULA, "h", ("The best rectangle is a square of side {eq}.",)),
            ),
        ),
        Op(
            "t",
            "s ** 2",
            "the largest area",
            (
                "{What} is {eq}.",
                "So at most {eq} can be enclosed.",
                "This gives the area {eq}.",
                "The square has {eq}.",
            ),
            (Mistake(FORMULA, "4 * s", ("The square has {eq}.", "{What} is {eq}.")),),
        ),
        Op("w", "t * k", "the most that is possible"),
    ),
    {"name": NAMES, "field": ("garden", "yard", "pen", "meadow")},
    (Verify((Op("u", "answer / k"), Op("x", "sqrt(u)"), Op("y", "4 * x")), "y", "p"),),
    (
        Bound(
            "t <= p * p / 16",
            "no rectangle with border {p} has more than a sixteenth of [{p}^2], so {t} must not be more",
        ),
    ),
    largest=70_000,
)

_WALL = Story(
    (
        "A rectangular {field} lies along a wall, and {l} m of fence are used for the other three sides. A square "
        "metre is worth @{k}. What is the largest possible value of the {field} in dollars?",
        "{name} fences three sides of a rectangle with {l} m of wire; the fourth side is a river. On each square "
        "metre {k} plants grow. Find the greatest number of plants.",
        "With {l} m of fence, a rectangular pen is built against a long barn, which needs no fence. There is room "
        "for {k} hens on a square metre. For how many hens can the pen be made?",
    ),
    {"l": Given(range(16, 160, 4), "m of fence"), "k": Given(range(2, 9), "for a square metre")},
    (
        Op(
            "x",
            "l / 4",
            "the best depth",
            (
                "The area [x({l} - 2x)] is largest at {eq}.",
                "The derivative [{l} - 4x] is zero at {eq}.",
                "{What} is {eq}.",
                "The parabola [x({l} - 2x)] has its vertex at {eq}.",
            ),
            (
                Mistake(
                    INFERENCE,
                    "l / 3",
                    (
                        "The area is largest if the three sides are equal, each {eq}.",
                        "Equal sides are best, so the depth is {eq}.",
                    ),
                ),
                Mistake(FORMULA, "l / 2", ("The derivative is zero at {eq}.", "{What} is {eq}.")),
            ),
        ),
        Op("d", "2 * x", "the fence for both depths"),
        Op(
            "y",
            "l - d",
            "the side along the wall",
            ("For {what} there remain {eq}.", "{What} is {eq}.", "The rest of the fence is {eq}."),
            (Mistake(DROPPED, "l - x", ("For {what} there remain {eq}.", "The rest of the fence is {eq}.")),),
        ),
        Op("t", "x * y", "the largest area"),
        Op("w", "t * k", "the most that is possible"),
    ),
    {"name": NAMES, "field": ("garden", "yard", "pen", "meadow")},
    (Verify((Op("a", "answer / k"), Op("u", "8 * a"), Op("v", "sqrt(u)")), "v", "l"),),
    (Bound("w > 0", "there is some area, so the result {w} must be positive"),),
    largest=20_000,
    smallest=-500,
)

_REVENUE = Story(
    (
        "At @{p} a ticket, {n} people come. Each dollar more keeps {k} people away. What is the largest possible "
        "income in dollars?",
        "{name} sells {n} mugs a month at @{p}. For every dollar that the price is raised, {k} mugs fewer are "
        "sold. Find the highest monthly income in dollars.",
        "A hotel rents {n} rooms at @{p}. With each extra dollar {k} rooms stay empty. What is the greatest "
        "income it can reach?",
    ),
    {
        "p": Given(range(4, 20), "dollars as price"),
        "n": Given((), "sold at first", made="k * p + 2 * k * z"),
        "k": Given(range(2, 9), "fewer for each dollar"),
    },
    (
        Op("u", "k * p", "the loss per dollar times the price"),
        Op("v", "n - u", "the gain of the first dollar"),
        Op(
            "x",
            "v / (2 * k)",
            "the best rise of the price",
            (
                "The income [({p} + x)({n} - {k}x)] is largest for a rise of {eq}.",
                "The vertex of the parabola lies at {eq}.",
                "{What} is {eq}.",
                "Setting the derivative to zero, we find a rise of {eq}.",
            ),
            (
                Mistake(DROPPED, "v / k", ("The vertex of the parabola lies at {eq}.", "{What} is {eq}.")),
                Mistake(INFERENCE, "n / k", ("The price can be raised until nobody is left, that is by {eq}.",)),
            ),
        ),
        Op("q", "p + x", "the best price"),
        Op("s", "n - k * x", "the number sold at this price"),
        Op(
            "r",
            "q * s",
            "the largest income",
            (
                "{What} is {eq}.",
                "Price times number is {eq}.",
                "This brings {eq} dollars.",
                "So the income is {eq}.",
            ),
            (Mistake(CASE, "q * n", ("At this price the income is {eq}.", "Price times number is {eq}.")),),
        ),
    ),
    {"name": NAMES},
    (
        Verify(
            (Op("a", "answer / k"), Op("b", "sqrt(a)"), Op("c", "2 * b"), Op("d", "c - p"), Op("e", "k * d")),
            "e",
            "n",
        ),
    ),
    (Bound("r > p * n", "without a rise the income is [{p} * {n}], so the largest, {r}, must be more"),),
    seeds={"z": Given(range(1, 9), "")},
    largest=6000,
    smallest=-300,
)

_BOTTOM = Story(
    (
        "What is the smallest value of [x^2 - {b}x + {c}]?",
        "Find the minimum of [f(x) = x^2 - {b}x + {c}] by completing the square.",
        "Determine the least value of [x^2 - {b}x + {c}] for real x.",
        "The parabola [y = x^2 - {b}x + {c}] opens upwards. How low does it reach?",
    ),
    {
        "b": Given(range(4, 30, 2), "as factor of x, with a minus"),
        "c": Given(range(5, 260), "as constant"),
    },
    (
        Op(
            "h",
            "b / 2",
            "half the factor of x",
            ("{What} is {eq}.", "Half of [{b}] is {eq}.", "We need half of [{b}], which is {eq}."),
            (Mistake(INFERENCE, "b", ("The square that fits is that of {eq}, half the factor of x.",)),),
        ),
        Op(
            "s",
            "h ** 2",
            "the square to be completed",
            (
                "{What} is {eq}.",
                "To complete the square we need {eq}.",
                "Squaring this, we get {eq}.",
                "The square to add and subtract is {eq}.",
            ),
            (
                Mistake(FORMULA, "2 * h", ("Squaring this, we get {eq}.", "To complete the square we need {eq}.")),
                Mistake(FORMULA, "h", ("The number to add and subtract is {eq}.",)),
            ),
        ),
        Op(
            "m",
            "c - s",
            "the minimum",
            (
                "The square [(x - {h})^2] is at least [0], so the minimum is {eq}.",
                "What is left beside the square is {eq}.",
                "{What} is {eq}.",
                "Hence the least value is {eq}.",
            ),
            (
                Mistake(
                    SIGN, "s - c", ("What is left beside the square is {eq}.", "Hence the least value is {eq}.")
                ),
                Mistake(INFERENCE, "c", ("The square [(x - {h})^2] is at least [0], so the minimum is {eq}.",)),
            ),
        ),
    ),
    {},
    (Verify((Op("x", "c - answer"), Op("y", "sqrt(x)"), Op("z", "2 * y")), "z", "b", "vertex formula"),),
    (Bound("m < c", "at zero the value is {c}, so the minimum {m} must be less"),),
    largest=600,
    smallest=-600,
)

EXTREMA = (_SUMMIT, _SQUARE_FIELD, _WALL, _REVENUE, _BOTTOM)
