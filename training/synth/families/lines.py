"""Lines: slopes, intercepts, midpoints, distances and where lines meet."""

from stepsight.training.synth.plant import DROPPED, FORMULA, SIGN
from stepsight.training.synth.story import Bound, Given, Mistake, Op, Story, Verify

_COORDINATE = tuple(range(-9, 13))
_RISE = Op(
    "u",
    "d - b",
    "the rise",
    (
        "The y-coordinates differ by {eq}.",
        "The rise is {eq}.",
        "Going up: {eq}.",
        "For y the change is {eq}.",
    ),
    (Mistake(SIGN, "d + b", ("The y-coordinates differ by {eq}.", "The rise is {eq}.")),),
)
_RUN = Op(
    "v",
    "c - a",
    "the run",
    (
        "The x-coordinates differ by {eq}.",
        "The run is {eq}.",
        "Going to the right: {eq}.",
        "For x the change is {eq}.",
    ),
    (Mistake(SIGN, "c + a", ("The x-coordinates differ by {eq}.", "The run is {eq}.")),),
)
_SLOPE = Op(
    "m",
    "u / v",
    "the slope",
    (
        "The slope is {eq}.",
        "Rise over run: {eq}.",
        "So the slope of the line is {eq}.",
        "Dividing the rise by the run, {eq}.",
        "Hence the slope is {eq}.",
    ),
    (Mistake(FORMULA, "u - v", ("The slope is rise minus run: {eq}.", "So the slope of the line is {eq}.")),),
)

_INTERCEPT = Story(
    (
        "A line passes through [({a}, {b})] and [({c}, {d})]. What is its y-intercept?",
        "Find the y-intercept of the line through [({a}, {b})] and [({c}, {d})].",
        "The line [y = mx + k] contains the points [({a}, {b})] and [({c}, {d})]. Find k.",
        "At which height does the line through [({a}, {b})] and [({c}, {d})] cross the y-axis?",
    ),
    {
        "a": Given((-5, -4, -3, -2, -1, 1, 2, 3, 4), "as first x-coordinate"),
        "b": Given(_COORDINATE, "as first y-coordinate"),
        "c": Given((), "as second x-coordinate", made="a + w"),
        "d": Given((), "as second y-coordinate", made="b + w * h"),
    },
    (
        _RISE,
        _RUN,
        _SLOPE,
        Op("p", "m * a", "the slope times the first x-coordinate"),
        Op(
            "k",
            "b - p",
            "the y-intercept",
            (
                "The y-intercept is {eq}.",
                "Using the first point, {what} is {eq}.",
                "Back to [x = 0] from the first point: {eq}.",
                "So {what} is {eq}.",
            ),
            (Mistake(SIGN, "b + p", ("The y-intercept is {eq}.", "Using the first point, {what} is {eq}.")),),
        ),
    ),
    {},
    (Verify((Op("l", "b - answer"), Op("o", "l / a"), Op("q", "c * o"), Op("r", "q + answer")), "r", "d"),),
    smallest=-150,
    fits=("u != 0", "c != 0", "b != 0"),
    outlines=("First the slope, then the intercept.", "We find the slope first.", "Use the slope and one point."),
    seeds={
        "w": Given((1, 2, 3, 4, 5), "", fixed=True),
        "h": Given((-5, -4, -3, -2, 2, 3, 4, 5), "", fixed=True),
    },
)

_VALUE = Story(
    (
        "The points [({a}, {b})] and [({c}, {d})] lie on a line. Which y belongs to [x = {e}] on it?",
        "A line goes through [({a}, {b})], [({c}, {d})] and [({e}, y)]. Find y.",
        "The points [({a}, {b})], [({c}, {d})] and [({e}, y)] are on one line. What is y?",
        "A ride of {a} km costs @{b} and one of {c} km costs @{d}. The price grows evenly with the way. What "
        "does a "
        "ride of {e} km cost in dollars?",
    ),
    {
        "a": Given(range(1, 8), "as first x"),
        "b": Given(range(4, 30), "as first y"),
        "c": Given((), "as second x", made="a + w"),
        "d": Given((), "as second y", made="b + w * h"),
        "e": Given(range(12, 30), "as third x"),
    },
    (
        _RISE,
        _RUN,
        _SLOPE,
        Op("p", "e - c", "the run from the second to the third point"),
        Op("q", "m * p", "the rise from the second to the third point"),
        Op(
            "y",
            "d + q",
            "the third y",
            mistakes=(Mistake(DROPPED, "q", ("So the third y is {res}.",)),),
        ),
    ),
    {},
    (
        Verify(
            (
                Op("l", "answer - b"),
                Op("o", "e - a"),
                Op("r", "l / o"),
                Op("s", "c - a"),
                Op("t", "r * s"),
                Op("z", "t + b"),
            ),
            "z",
            "d",
        ),
    ),
    (Bound("y > d", "the third y, {y}, must be above the second, {d}, as the line rises"),),
    fits=("e > c",),
    seeds={"w": Given((2, 3, 4, 5), "", fixed=True), "h": Given((2, 3, 4, 5, 6), "", fixed=True)},
)

_PERPENDICULAR = Story(
    (
        "A line is perpendicular to the line through [({a}, {b})] and [({c}, {d})]. What is its slope?",
        "Find the slope of a line that is perpendicular to the segment from [({a}, {b})] to [({c}, {d})].",
        "The line l goes through [({a}, {b})] and [({c}, {d})]. What is the slope of the lines at right angles "
        "to l?",
    ),
    {
        "a": Given(range(-6, 7), "as first x-coordinate"),
        "b": Given(range(-6, 7), "as first y-coordinate"),
        "c": Given(range(-8, 10), "as second x-coordinate"),
        "d": Given(range(-8, 10), "as second y-coordinate"),
    },
    (
        _RISE,
        _RUN,
        _SLOPE,
        Op(
            "p",
            "-1 / m",
            "the perpendicular slope",
            (
                "The perpendicular slope is the negative reciprocal: {eq}.",
                "The slopes multiply to [-1], so {what} is {eq}.",
                "Turning the line by a right angle, {what} is {eq}.",
                "{What} is {eq}.",
            ),
            (
                Mistake(
                    SIGN,
                    "1 / m",
                    (
                        "The perpendicular slope is the reciprocal: {eq}.",
                        "{What} is {eq}.",
                        "The slopes multiply to 1: {eq}.",
                    ),
                ),
                Mistake(
                    FORMULA,
                    "-m",
                    ("The perpendicular slope has the opposite sign: {eq}.", "{What} is {eq}."),
                ),
            ),
        ),
    ),
    {},
    (Verify((Op("l", "d - b"), Op("o", "answer * l"), Op("r", "c + o")), "r", "a", "work back"),),
    whole=False,
    smallest=-60,
    fits=("u != 0", "v != 0", "m != 1", "m != -1"),
)

_HALF = ("Halving, {eq}.", "{What} is {eq}.", "The middle is {eq}.", "Half of it is {eq}.")
_MIDPOINT = Story(
    (
        "The midpoint of the segment from [({a}, {b})] to [({c}, {d})] is [(p, q)]. Find p + q.",
        "Find the sum of the coordinates of the midpoint of [({a}, {b})] and [({c}, {d})].",
        "A segment has endpoints [({a}, {b})] and [({c}, {d})]. What is the sum of the coordinates of its "
        "midpoint?",
        "The point M lies halfway between [({a}, {b})] and [({c}, {d})]. Add the two coordinates of M. What is the "
        "result?",
    ),
    {
        "a": Given(_COORDINATE, "as first x-coordinate"),
        "c": Given(range(2, 25), "as second x-coordinate"),
        "b": Given(_COORDINATE, "as first y-coordinate"),
        "d": Given(range(2, 25), "as second y-coordinate"),
    },
    (
        Op(
            "s",
            "a + c",
            "the sum of the x-coordinates",
            mistakes=(Mistake(FORMULA, "c - a", ("For the midpoint take the difference in x: {eq}.",)),),
        ),
        Op(
            "p", "s / 2", "the x-coordinate of the midpoint", _HALF, (Mistake(DROPPED, "s", ("{What} is {res}.",)),)
        ),
        Op(
            "t",
            "b + d",
            "the sum of the y-coordinates",
            mistakes=(Mistake(FORMULA, "d - b", ("For the midpoint take the difference in y: {eq}.",)),),
        ),
        Op(
            "q", "t / 2", "the y-coordinate of the midpoint", _HALF, (Mistake(DROPPED, "t", ("{What} is {res}.",)),)
        ),
        Op("r", "p + q", "the sum of the coordinates"),
    ),
    {},
    (Verify((Op("l", "2 * answer"), Op("o", "l - a"), Op("u", "o - c"), Op("v", "u - b")), "v", "d", "work back"),),
    smallest=-80,
)

_DISTANCE = Story(
    (
        "Find the distance between the points [({a}, {b})] and [({c}, {d})].",
        "What is the distance from [({a}, {b})] to [({c}, {d})]?",
        "How long is the segment with endpoints [({a}, {b})] and [({c}, {d})]?",
        "A circle has centre [({a}, {b})] and goes through [({c}, {d})]. What is its radius?",
    ),
    {
        "a": Given(_COORDINATE, "as first x-coordinate"),
        "c": Given((), "as second x-coordinate", made="a + k * (m * m - n * n)"),
        "b": Given(_COORDINATE, "as first y-coordinate"),
        "d": Given((), "as second y-coordinate", made="b + 2 * k * m * n"),
    },
    (
        Op("v", "c - a", "the difference in x", _RUN.says[:1] + _RUN.says[3:], _RUN.mistakes[:1]),
        Op("u", "d - b", "the difference in y", _RISE.says[:1] + _RISE.says[3:]),
        Op("p", "v ** 2", "the square in x"),
        Op("q", "u ** 2", "the square in y"),
        Op("s", "p + q", "the sum of the squares"),
        Op(
            "r",
            "sqrt(s)",
            "the distance",
            (
                "By the distance formula, {eq}.",
                "The distance is {eq}.",
                "Taking the root, {eq}.",
                "By the Pythagorean theorem the distance is {eq}.",
            ),
            (
                Mistake(
                    FORMULA,
                    "v + u",
                    ("The distance is the sum of the differences: {eq}.", "Taking roots of both terms, {eq}."),
                ),
                Mistake(FORMULA, "s / 2", ("Taking the root, {eq}.",)),
            ),
        ),
    ),
    {},
    (
        Verify(
            (
                Op("l", "answer ** 2"),
                Op("o", "d - b"),
                Op("w", "o ** 2"),
                Op("x", "l - w"),
                Op("y", "sqrt(x)"),
                Op("z", "c - y"),
            ),
            "z",
            "a",
            "square back",
        ),
    ),
    (
        Bound("r > u", "the distance {r} must be greater than the difference {u} in y"),
        Bound("r < abs(u) + abs(v)", "the distance {r} must be less than both differences, [|{u}| + |{v}|]"),
    ),
    largest=3000,
    smallest=-40,
    fits=("v > 0",),
    seeds={
        "k": Given(range(1, 4), "", fixed=True),
        "m": Given((2, 3, 4), "", fixed=True),
        "n": Given((1, 1, 2, 3), "", fixed=True),
    },
)

_MEETING = Story(
    (
        "The lines [y = <a,b>] and [y = <c,d>] meet in a point. What is its y-coordinate?",
        "Find the y-coordinate of the intersection of [y = <a,b>] and [y = <c,d>].",
        "At which height do the graphs of [y = <a,b>] and [y = <c,d>] cross?",
        "For one number x, [<a,b>] and [<c,d>] have the same value. What is that value?",
    ),
    {
        "a": Given((2, 3, 4, 5, 6, 7), "as slope of the first line", fixed=True),
        "c": Given((-4, -3, -2, -1, 1, 2, 3), "as slope of the second line", fixed=True),
        "b": Given((-12, -9, -8, -6, -5, -3, 1, 2, 4, 5, 7, 9, 11), "as constant of the first line"),
        "d": Given((), "as constant of the second line", made="b + a * h - c * h"),
    },
    (
        Op(
            "k",
            "a - c",
            "the difference of the slopes",
            mistakes=(Mistake(SIGN, "a + c", ("Collect the x terms: {eq}.",)),),
        ),
        Op(
            "g",
            "d - b",
            "the difference of the constants",
            (
                "Setting both sides equal, [<k,0> = {g}], as {eq}.",
                "{What} is {eq}.",
                "The constants give {eq}.",
                "On the other side, {eq}.",
            ),
            (Mistake(SIGN, "d + b", ("The constants give {eq}.", "On the other side, {eq}.")),),
        ),
        Op("x", "g / k", "the x-coordinate"),
        Op(
            "y",
            "a * x + b",
            "the y-coordinate",
            (
                "Put it into the first line: {eq}.",
                "The first line gives {eq}.",
                "Then [y] is {eq}.",
                "At [x = {x}] the first line has the height {eq}.",
            ),
            (Mistake(DROPPED, "a * x", ("The first line gives {eq}.",)),),
        ),
    ),
    {},
    (
        Verify(
            (Op("l", "answer - b"), Op("o", "l / a"), Op("p", "c * o"), Op("q", "answer - p")),
            "q",
            "d",
            "substitute",
        ),
    ),
    smallest=-200,
    fits=("a > c", "d != 0", "y != 0", "x != 0"),
    outlines=("Set the two sides equal.", "Where they meet, both lines have the same y.", "Find x first, then y."),
    seeds={"h": Given((-6, -5, -4, -3, -2, 2, 3, 4, 5, 6, 7, 8), "")},
)

_TRIANGLE = Story(
    (
        "The line [{a}x + {b}y = {c}] and the axes bound a triangle. What is its area?",
        "Find the area of the triangle between the line [{a}x + {b}y = {c}] and the coordinate axes.",
        "A triangle has its sides on the x-axis, the y-axis and the line [{a}x + {b}y = {c}]. Find its area.",
    ),
    {
        "a": Given(range(2, 7), "as factor of x", fixed=True),
        "b": Given(range(2, 7), "as factor of y", fixed=True),
        "c": Given((), "on the right", made="2 * a * b * h"),
    },
    (
        Op(
            "p",
            "c / a",
            "the x-intercept",
            (
                "With [y = 0] the x-intercept is {eq}.",
                "On the x-axis, {eq}.",
                "{What} is {eq}.",
                "Set y to zero: x is {eq}.",
            ),
        ),
        Op(
            "q",
            "c / b",
            "the y-intercept",
            (
                "With [x = 0] the y-intercept is {eq}.",
                "On the y-axis, {eq}.",
                "{What} is {eq}.",
                "Set x to zero: y is {eq}.",
            ),
        ),
        Op("r", "p * q", "twice the area"),
        Op(
            "s",
            "r / 2",
            "the area",
            (
                "The triangle is half of a rectangle: {eq}.",
                "Half of it is the area: {eq}.",
                "So the area is {eq}.",
                "{What} is {eq}.",
            ),
            (
                Mistake(
                    FORMULA,
                    "r",
                    ("The area is the product of the legs, {res}.", "So the area is {res}.", "{What} is {res}."),
                ),
            ),
        ),
    ),
    {},
    (Verify((Op("l", "2 * answer"), Op("o", "c / b"), Op("t", "l / o"), Op("u", "t * a")), "u", "c", "work back"),),
    (Bound("s < r", "the area {s} must be less than that of the rectangle, {r}"),),
    largest=900,
    seeds={"h": Given((1, 1, 2, 3), "")},
)

LINES = (_INTERCEPT, _VALUE, _PERPENDICULAR, _MIDPOINT, _DISTANCE, _MEETING, _TRIANGLE)
