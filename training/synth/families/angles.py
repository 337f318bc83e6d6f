"""Angles: polygons, parallel lines, clocks and ratios."""

from stepsight.training.synth.families.names import NAMES
from stepsight.training.synth.plant import CASE, DROPPED, FORMULA, INFERENCE
from stepsight.training.synth.story import Bound, Given, Mistake, Op, Story, Verify

_LAST_ANGLE = Story(
    (
        "All angles but one of a convex polygon with {n} sides add up to {t} degrees. How many degrees is the "
        "last angle?",
        "In a convex polygon with {n} vertices, the sum of all angles except one is {t} degrees. Find the "
        "remaining angle.",
        "{name} measures the angles of a convex polygon with {n} sides and forgets one. The others have {t} "
        "degrees together. What is the forgotten angle in degrees?",
    ),
    {
        "n": Given(range(5, 10), "sides"),
        "t": Given((), "degrees in the other angles", made="(n - 2) * 180 - 5 * z"),
    },
    (
        Op(
            "k",
            "n - 2",
            "the number of triangles",
            (
                "The polygon can be cut into {eq} triangles.",
                "From one vertex, diagonals cut it into {eq} triangles.",
                "{What} is {eq}.",
                "It consists of {eq} triangles.",
            ),
            (
                Mistake(INFERENCE, "n", ("The polygon can be cut into {eq} triangles, one for each side.",)),
                Mistake(FORMULA, "n - 3", ("From one vertex, diagonals cut it into {eq} triangles.",)),
            ),
        ),
        Op(
            "s",
            "k * 180",
            "the sum of all angles",
            (
                "Each has [180] degrees, so all angles add up to {eq}.",
                "{What} is {eq}.",
                "The sum of the interior angles is {eq}.",
                "Hence the angles have {eq} degrees together.",
            ),
            (
                Mistake(FORMULA, "k * 360", ("Each has [360] degrees, so all angles add up to {eq}.",)),
                Mistake(FORMULA, "k * 90", ("Each has [90] degrees, so all angles add up to {eq}.",)),
            ),
        ),
        Op("x", "s - t", "the last angle"),
    ),
    {"name": NAMES},
    (Verify((Op("u", "answer + t"), Op("v", "u / 180"), Op("w", "v + 2")), "w", "n"),),
    (
        Bound("x < 180", "an angle of a convex polygon must be below 180 degrees, so {x} must be"),
        Bound("x > 0", "an angle of a polygon has some size, so {x} must be positive"),
    ),
    largest=3500,
    smallest=-400,
    seeds={"z": Given(range(9, 35), "", fixed=True)},
)

_REGULAR = Story(
    (
        "Each interior angle of a regular polygon is {a} degrees, and each side is {l} cm long. What is its "
        "perimeter in cm?",
        "A regular polygon has interior angles of {a} degrees and sides of {l}. Find its perimeter.",
        "A stage has the form of a regular polygon with angles of {a} degrees. Each edge is {l} m long. How many "
        "metres is it around the stage?",
        "{name} folds a regular polygon whose interior angles are {a} degrees and whose sides are {l} cm. Compute "
        "the perimeter in cm.",
    ),
    {
        "a": Given((60, 90, 108, 120, 135, 140, 144, 150, 156, 160, 162), "degrees in each angle", fixed=True),
        "l": Given(range(3, 20), "as side"),
    },
    (
        Op(
            "e",
            "180 - a",
            "the exterior angle",
            (
                "Each exterior angle is {eq}.",
                "{What} is {eq}.",
                "At each vertex the path turns by {eq} degrees.",
                "The exterior angle completes it to [180] degrees: {eq}.",
            ),
            (Mistake(FORMULA, "360 - a", ("Each exterior angle is {eq}.", "{What} completes it to [360]: {eq}.")),),
        ),
        Op(
            "n",
            "360 / e",
            "the number of sides",
            (
                "The exterior angles make a full turn, so there are {eq} sides.",
                "{What} is {eq}.",
                "All exterior angles add up to [360] degrees, which gives {eq} sides.",
                "So the polygon has {eq} sides.",
            ),
            (
                Mistake(
                    FORMULA,
                    "180 / e",
                    ("All exterior angles add up to [180] degrees, which gives {eq} sides.",),
                ),
                Mistake(FORMULA, "360 / a", ("All angles add up to [360] degrees, which gives {eq} sides.",)),
            ),
        ),
        Op("p", "n * l", "the perimeter"),
    ),
    {"name": NAMES},
    (Verify((Op("x", "answer / l"), Op("y", "360 / x"), Op("z", "180 - y")), "z", "a"),),
    (Bound("n >= 3", "a polygon has at least 3 sides, so {n} must be at least 3"),),
    largest=900,
)

_PARALLEL = Story(
    (
        "Two parallel lines are cut by a third line. At the first, it makes an angle of {a} degrees. The "
        "co-interior angle at the second is bisected. How many degrees is each half?",
        "Lines l and m are parallel. A line crosses both and makes an angle of {a} degrees with l. Find half of "
        "the co-interior angle at m.",
        "AB and DC are the parallel sides of a trapezoid ABCD, and its angle at A is {a} degrees. The angle at D "
        "is bisected. What angle does the bisector make with DC?",
    ),
    {"a": Given(range(30, 150, 2), "degrees", fixed=True)},
    (
        Op(
            "u",
            "180 - a",
            "the co-interior angle",
            (
                "Co-interior angles add up to [180] degrees, so the other one is {eq}.",
                "{What} is {eq}.",
                "As the lines are parallel, {what} is {eq}.",
                "The other angle is {eq}.",
            ),
            (
                Mistake(
                    INFERENCE,
                    "a",
                    (
                        "The lines are parallel, so {what} is equal: {eq}.",
                        "Angles at parallel lines agree, so we have {eq}.",
                    ),
                ),
                Mistake(
                    FORMULA, "360 - a", ("Co-interior angles add up to [360] degrees, so the other one is {eq}.",)
                ),
                Mistake(FORMULA, "90 - a / 2", ("Co-interior angles make a right angle, which gives {eq}.",)),
            ),
        ),
        Op("v", "u / 2", "half of the co-interior angle"),
    ),
    {},
    (Verify((Op("x", "2 * answer"), Op("y", "180 - x")), "y", "a"),),
    (Bound("v < 90", "half of an angle below 180 degrees must be less than 90, so {v} must be"),),
)

_TRANSVERSAL = Story(
    (
        "Two co-interior angles at parallel lines measure [<a,b>] and [<c,d>] degrees. What is the first of them, "
        "in degrees?",
        "Two angles on a straight line are [<a,b>] and [<c,d>] degrees. Find the size of the first one.",
        "The angles [<a,b>] and [<c,d>], in degrees, are supplementary. Compute the first one.",
        "Opposite angles of a cyclic quadrilateral are [<a,b>] and [<c,d>] degrees. How large is the first?",
    ),
    {
        "a": Given(range(2, 9), "as first factor of x", fixed=True),
        "b": Given(range(2, 40), "as first constant"),
        "c": Given(range(2, 9), "as second factor of x", fixed=True),
        "d": Given((), "as second constant", made="180 - b - (a + c) * x"),
    },
    (
        Op("k", "a + c", "the factor of x in the sum"),
        Op("m", "b + d", "the constant in the sum"),
        Op(
            "r",
            "180 - m",
            "the multiple of x",
            (
                "The angles add up to [180] degrees, so [{k}x] is {eq}.",
                "From [{k}x + {m} = 180] we get {eq} for [{k}x].",
                "Together they have [180] degrees, which leaves {eq} for [{k}x].",
            ),
            (
                Mistake(
                    FORMULA,
                    "360 - m",
                    (
                        "The angles add up to [360] degrees, so [{k}x] is {eq}.",
                        "From [{k}x + {m} = 360] we get {eq} for [{k}x].",
                    ),
                ),
                Mistake(FORMULA, "90 - m", ("The angles add up to [90] degrees, so [{k}x] is {eq}.",)),
            ),
        ),
        Op("x", "r / k", "x", ("Dividing by [{k}] gives {weq}.", "So {weq}.", "Hence {weq}.", "Then {weq}.")),
        Op(
            "w",
            "a * x + b",
            "the first angle",
            (
                "The first angle is {eq}.",
                "{What} is {eq}.",
                "Substituting, we get {eq}.",
                "In the first angle this gives {eq}.",
            ),
            (Mistake(CASE, "a * x", ("The first angle is {eq}.",)),),
        ),
    ),
    {},
    (
        Verify(
            (Op("t", "180 - answer"), Op("s", "t - d"), Op("y", "s / c"), Op("o", "a * y"), Op("q", "answer - o")),
            "q",
            "b",
        ),
    ),
    (Bound("w < 180", "two angles share 180 degrees, so the first, {w}, must be less"),),
    ("d > 0", "w < 180"),
    seeds={"x": Given(range(4, 20), "", fixed=True)},
)

_CLOCK = Story(
    (
        "What is the smaller angle between the hands of a clock at {m} minutes past {h}, in degrees?",
        "It is {m} minutes past {h}. Find the angle between the hour hand and the minute hand in degrees.",
        "{name} looks at a clock {m} minutes after {h} o'clock. Which angle, at most [180] degrees, do the hands "
        "form?",
    ),
    {
        "h": Given(range(1, 12), "as the full hour", fixed=True),
        "m": Given(range(4, 58, 2), "minutes past it", fixed=True),
    },
    (
        Op(
            "a",
            "30 * h",
            "the angle of the hour hand at the full hour",
            (
                "At the full hour the hour hand stands at {eq} degrees.",
                "{What} is {eq}.",
                "Each hour has [30] degrees, so at first the hour hand is at {eq}.",
            ),
            (Mistake(FORMULA, "6 * h", ("At the full hour the hour hand stands at {eq} degrees.",)),),
        ),
        Op(
            "b",
            "m / 2",
            "the turn of the hour hand since then",
            (
                "Since then it has turned by {eq} degrees.",
                "{What} is {eq}.",
                "It turns half a degree a minute, which is {eq}.",
            ),
            (Mistake(FORMULA, "m", ("It turns one degree a minute, which is {eq}.",)),),
        ),
        Op(
            "p",
            "a + b",
            "the angle of the hour hand",
            ("So the hour hand is at {eq} degrees.", "{What} is {eq}.", "The hour hand points to {eq} degrees."),
            (
                Mistake(
                    CASE,
                    "a",
                    (
                        "The hour hand stands at the hour, at {eq} degrees.",
                        "The hour hand points to {eq} degrees.",
                    ),
                ),
            ),
        ),
        Op(
            "q",
            "6 * m",
            "the angle of the minute hand",
            (
                "The minute hand turns [6] degrees a minute, so it is at {eq}.",
                "{What} is {eq}.",
                "The minute hand points to {eq} degrees.",
            ),
            (
                Mistake(FORMULA, "5 * m", ("The minute hand turns [5] degrees a minute, so it is at {eq}.",)),
                Mistake(INFERENCE, "m", ("The minute hand is at minute {eq}, so at as many degrees.",)),
            ),
        ),
        Op(
            "d",
            "abs(p - q)",
            "the angle between the hands",
            (
                "The difference is {eq}.",
                "{What} is {eq}.",
                "Between them there are {eq} degrees.",
                "Hence we get {eq}.",
            ),
            (Mistake(DROPPED, "q", ("From the top to the minute hand, it is {eq} degrees.",)),),
        ),
    ),
    {"name": NAMES},
    bounds=(Bound("d <= 180", "the smaller angle between two hands is at most 180 degrees, so {d} must be"),),
    fits=("d <= 180", "p != q"),
    largest=700,
    smallest=-60,
)

_RATIO = Story(
    (
        "The angles of a triangle are in the ratio {a} to {b} to {c}. How many degrees is the third one?",
        "In a triangle the angles are proportional to {a}, {b} and {c}. Find the last of these angles in degrees.",
        "{name} draws a triangle with angles in the ratio [{a}:{b}:{c}]. What is the angle that belongs to {c}?",
    ),
    {
        "a": Given(range(1, 10), "parts in the first angle", fixed=True),
        "b": Given(range(1, 13), "parts in the second angle", fixed=True),
        "c": Given(range(1, 16), "parts in the third angle"),
    },
    (
        Op("s", "a + b + c", "the number of parts"),
        Op(
            "u",
            "180 / s",
            "one part",
            (
                "The angles have [180] degrees together, so one part is {eq}.",
                "{What} is {eq}.",
                "Dividing the angle sum, we get {eq} for a part.",
                "So each part has {eq} degrees.",
            ),
            (
                Mistake(
                    FORMULA,
                    "360 / s",
                    (
                        "The angles have [360] degrees together, so one part is {eq}.",
                        "So each part has {eq} degrees.",
                    ),
                ),
                Mistake(INFERENCE, "180 / 3", ("There are three angles, so one part is {eq}.",)),
            ),
        ),
        Op("w", "u * c", "the third angle"),
    ),
    {"name": NAMES},
    (Verify((Op("x", "answer / c"), Op("y", "180 / x"), Op("z", "y - b - a")), "z", "c"),),
    (Bound("w < 180", "an angle of a triangle must be below 180 degrees, so {w} must be"),),
    ("mod(180, a + b + c) == 0",),
)

ANGLES = (_LAST_ANGLE, _REGULAR, _PARALLEL, _TRANSVERSAL, _CLOCK, _RATIO)
