"""Solids: boxes, cubes, pyramids and cylinders."""

from stepsight.training.synth.families.names import NAMES
from stepsight.training.synth.plant import CASE, DROPPED, FORMULA, INFERENCE
from stepsight.training.synth.story import PI, Bound, Given, Mistake, Op, Story, Verify

_TANK = Story(
    (
        "A tank is {l} cm long, {w} cm wide and {h} cm high. It is filled at {p} litres a minute. How many "
        "minutes does it take?",
        "{name} fills an aquarium of {l} cm by {w} cm by {h} cm from a hose that gives {p} litres a minute. After "
        "how many minutes is it full?",
        "Water flows at {p} litres per minute into an empty box that measures {l} cm, {w} cm and {h} cm inside. "
        "Find the time in minutes until it is full.",
    ),
    {
        "l": Given(range(20, 110, 10), "cm of length"),
        "w": Given(range(20, 70, 10), "cm of width"),
        "h": Given(range(10, 65, 5), "cm of height"),
        "p": Given(range(2, 13), "litres a minute", fixed=True),
    },
    (
        Op("b", "l * w", "the area of the bottom in cm²"),
        Op("v", "b * h", "the volume in cm³"),
        Op(
            "q",
            "v / 1000",
            "the volume in litres",
            (
                "A litre is [1000] cm³, so the tank holds {eq} litres.",
                "In litres this is {eq}.",
                "{What} is {eq}.",
                "Converting to litres: {eq}.",
            ),
        ),
        Op("t", "q / p", "the time in minutes"),
    ),
    {"name": NAMES},
    (Verify((Op("x", "answer * p"), Op("y", "x * 1000"), Op("z", "y / l"), Op("u", "z / w")), "u", "h"),),
    largest=600_000,
)

_WRAPPED = Story(
    (
        "A closed box is {l} cm long, {w} cm wide and {h} cm high. What is its surface area in cm²?",
        "{name} paints all sides of a block of {l} cm by {w} cm by {h} cm. How many square centimetres are "
        "painted?",
        "Find the surface area of a rectangular prism with edges {l}, {w} and {h}.",
        "How much paper covers a parcel of {l} cm by {w} cm by {h} cm exactly, in cm²?",
    ),
    {
        "l": Given(range(4, 16), "as length"),
        "w": Given(range(3, 12), "as width"),
        "h": Given(range(2, 12), "as height"),
    },
    (
        Op("a", "l * w", "the area of the bottom"),
        Op("b", "l * h", "the area of the front"),
        Op("c", "w * h", "the area of a side"),
        Op("s", "a + b + c", "the area of three different faces"),
        Op(
            "t",
            "2 * s",
            "the surface area",
            (
                "Each face comes twice, so the surface area is {eq}.",
                "{What} is {eq}.",
                "Opposite faces are equal: {eq}.",
                "Doubling, we get {eq}.",
            ),
            (
                Mistake(
                    CASE, "s", ("The faces together are the surface area, {eq}.", "So the surface area is {eq}.")
                ),
                Mistake(FORMULA, "l * w * h", ("The surface area is the product of the three edges, {eq}.",)),
                Mistake(INFERENCE, "6 * a", ("A box has [6] faces, so the surface area is {eq}.",)),
            ),
        ),
    ),
    {"name": NAMES},
    (Verify((Op("x", "answer / 2"), Op("a", "l * w"), Op("y", "x - a"), Op("z", "y / (l + w)")), "z", "h"),),
    (Bound("t > 2 * l * w", "bottom and top alone have [2 * {l} * {w}], so the surface {t} must be more"),),
    largest=1500,
)

_SMALL_CUBES = Story(
    (
        "A cube with edge {e} cm is cut into cubes with edge {s} cm, and nothing is left over. What is the "
        "surface area of all the small cubes together, in cm²?",
        "{name} saws a wooden cube of edge {e} cm into cubes of edge {s} cm and paints all of these. How many cm² "
        "are painted?",
        "Cubes of edge {s} are stacked to a solid cube of edge {e}. Find the sum of the surface areas of the "
        "small cubes.",
    ),
    {"e": Given((), "as the large edge", made="s * m"), "s": Given(range(2, 7), "as the small edge")},
    (
        Op(
            "k",
            "e / s",
            "the number of small cubes along an edge",
        ),
        Op(
            "n",
            "k ** 3",
            "the number of small cubes",
            (
                "There are {eq} small cubes.",
                "{What} is {eq}.",
                "In three directions this makes {eq} small cubes.",
                "So we get {eq} cubes.",
            ),
            (
                Mistake(
                    INFERENCE,
                    "k",
                    ("So there are {eq} small cubes.", "The large cube is cut into {eq} small ones."),
                ),
                Mistake(FORMULA, "3 * k", ("In three directions this makes {eq} small cubes.",)),
                Mistake(DROPPED, "k ** 2", ("So there are {eq} small cubes.", "This makes {eq} small cubes.")),
            ),
        ),
        Op(
            "f",
            "6 * s ** 2",
            "the surface area of a small cube",
            (
                "A small cube has six square faces: {eq}.",
                "{What} is {eq}.",
                "Each small cube has a surface of {eq}.",
                "With six faces, {what} is {eq}.",
            ),
            (
                Mistake(FORMULA, "s ** 3", ("Each small cube has a surface of {eq}.",)),
                Mistake(CASE, "4 * s ** 2", ("A small cube has four square faces: {eq}.",)),
                Mistake(FORMULA, "12 * s", ("Each small cube has a surface of {eq}.",)),
            ),
        ),
        Op("t", "n * f", "the whole surface area"),
    ),
    {"name": NAMES},
    (
        Verify(
            (
                Op("x", "6 * s ** 2"),
                Op("y", "answer / x"),
                Op("u", "y * s ** 3"),
                Op("v", "e ** 2"),
                Op("w", "u / v"),
            ),
            "w",
            "e",
        ),
    ),
    (Bound("t > 6 * e ** 2", "cutting adds surface, so {t} must be more than the [6 * {e}^2] of the large cube"),),
    seeds={"m": Given((2, 3, 4, 5), "")},
    largest=20_000,
)

_PYRAMID = Story(
    (
        "A pyramid has a square base with side {a} m and height {h} m. One cubic metre weighs {k} tonnes. How "
        "heavy is the pyramid, in tonnes?",
        "{name} builds a solid pyramid, {h} m high on a square of side {a} m, from stone of {k} tonnes per cubic "
        "metre. What does it weigh in tonnes?",
        "A square pyramid with base edge {a} m and height {h} m is filled with sand that costs @{k} per cubic "
        "metre. What is the price of the sand in dollars?",
    ),
    {
        "a": Given(range(3, 16), "m as side of the base"),
        "h": Given(range(3, 20), "m as height"),
        "k": Given(range(2, 8), "for a cubic metre"),
    },
    (
        Op(
            "b",
            "a ** 2",
            "the area of the base",
            ("The base is a square of area {eq}.", "{What} is {eq}.", "The square base has {eq}.", "{What}: {eq}."),
            (
                Mistake(FORMULA, "4 * a", ("The base is a square of area {eq}.", "The square base has {eq}.")),
                Mistake(FORMULA, "2 * a", ("{What} is {eq}.",)),
            ),
        ),
        Op("p", "b * h", "base times height"),
        Op(
            "v",
            "p / 3",
            "the volume",
            (
                "A pyramid has a third of that as volume: {eq}.",
                "{What} is {eq}.",
                "By the formula for a pyramid, the volume is {eq}.",
                "A third of it is the volume, {eq}.",
            ),
            (
                Mistake(
                    FORMULA,
                    "p",
                    ("Base times height is the volume, {eq}.", "By the formula for a pyramid, the volume is {eq}."),
                ),
                Mistake(
                    FORMULA,
                    "p / 2",
                    ("A pyramid has half of that as volume: {eq}.", "Half of it is the volume, {eq}."),
                ),
            ),
        ),
        Op("t", "v * k", "the total for the pyramid"),
    ),
    {"name": NAMES},
    (Verify((Op("x", "answer / k"), Op("y", "3 * x"), Op("b", "a ** 2"), Op("z", "y / b")), "z", "h"),),
    (Bound("v < a ** 2 * h", "the pyramid fits into a box of [{a}^2 * {h}], so its volume {v} must be less"),),
    largest=9000,
)

_CONE = Story(
    (
        "From a wooden cylinder of radius {r} cm and height {h} cm a cone with the same base and height is cut "
        "out. What volume of wood remains, in cm³? Leave [π] in the answer.",
        "A cylinder with radius {r} and height {h} contains a cone with the same base and the same height. Find "
        "the volume outside the cone in terms of [π].",
        "{name} fills a cylindrical glass ({r} cm radius, {h} cm high) with water and dips in a solid cone of the "
        "same radius and height. How much water stays in the glass, in cm³ and in terms of [π]?",
    ),
    {"r": Given(range(2, 11), "as radius"), "h": Given(range(3, 22), "as height")},
    (
        Op(
            "v",
            "r ** 2 * h",
            "the volume of the cylinder",
            (
                "The cylinder has volume {eq}.",
                "{What} is {eq}.",
                "With [π r^2 h] we get {eq} for {what}.",
                "By the formula [π r^2 h], {what} is {eq}.",
            ),
            (
                Mistake(
                    FORMULA,
                    "2 * r * h",
                    ("With [2 π r h] we get {eq} for {what}.", "The cylinder has volume {eq}."),
                ),
                Mistake(
                    DROPPED, "r * h", ("With [π r h] we get {eq} for {what}.", "The cylinder has volume {eq}.")
                ),
            ),
            PI,
        ),
        Op(
            "c",
            "v / 3",
            "the volume of the cone",
            (
                "The cone has a third of it: {eq}.",
                "{What} is {eq}.",
                "A cone is a third of its cylinder, {eq}.",
                "Dividing by three, {what} is {eq}.",
            ),
            (
                Mistake(
                    FORMULA, "v / 2", ("The cone has half of it: {eq}.", "A cone is half of its cylinder, {eq}.")
                ),
                Mistake(FORMULA, "v / 4", ("The cone has a fourth of it: {eq}.",)),
            ),
            PI,
        ),
        Op("d", "v - c", "the volume outside the cone", unit=PI),
    ),
    {"name": NAMES},
    (Verify((Op("x", "answer / 2"), Op("y", "3 * x"), Op("z", "r ** 2"), Op("u", "y / z")), "u", "h"),),
    (Bound("d > c", "a cone is less than half of its cylinder, so the factor {d} must be more than {c}"),),
    largest=2500,
)

_CAN = Story(
    (
        "Find the total surface area of a closed cylinder with radius {r} and height {h}, in terms of [π].",
        "A tin can with a lid has radius {r} cm and height {h} cm. How many cm² of tin does it have, in terms of "
        "[π]?",
        "{name} paints a round column, {h} cm high and with a radius of {r} cm, together with its top and bottom. "
        "What area is painted, in cm² and in terms of [π]?",
    ),
    {"r": Given(range(2, 15), "as radius"), "h": Given(range(3, 25), "as height")},
    (
        Op(
            "a",
            "2 * r ** 2",
            "the area of both circles",
            (
                "Top and bottom are circles, together {eq}.",
                "{What} is {eq}.",
                "The two circles have area {eq}.",
                "With [2 π r^2], {what} is {eq}.",
            ),
            (
                Mistake(CASE, "r ** 2", ("The circle has area {eq}, which is all but the side.",)),
                Mistake(FORMULA, "2 * (2 * r)", ("With twice [2 π r], {what} is {eq}.",)),
            ),
            PI,
        ),
        Op(
            "b",
            "2 * r * h",
            "the area of the side",
            (
                "The side unrolls to a rectangle of area {eq}.",
                "{What} is {eq}.",
                "The side is circumference times height, {eq}.",
                "With [2 π r h], {what} is {eq}.",
            ),
            (
                Mistake(FORMULA, "r ** 2 * h", ("With [π r^2 h], {what} is {eq}.",)),
                Mistake(DROPPED, "r * h", ("With [π r h], {what} is {eq}.", "The side has area {eq}.")),
            ),
            PI,
        ),
        Op("s", "a + b", "the total surface area", unit=PI),
    ),
    {"name": NAMES},
    (Verify((Op("a", "2 * r ** 2"), Op("x", "answer - a"), Op("y", "x / r"), Op("z", "y / 2")), "z", "h"),),
    (Bound("s > 2 * r * h", "the side alone has the factor [2 * {r} * {h}], so {s} must be more"),),
    largest=1500,
    smallest=-700,
)

SOLIDS = (_TANK, _WRAPPED, _SMALL_CUBES, _PYRAMID, _CONE, _CAN)
