"""Triangles: Pythagoras, areas, angle sums, isosceles and similar triangles."""

from stepsight.training.synth.families.names import NAMES
from stepsight.training.synth.plant import CASE, DROPPED, FORMULA, INFERENCE
from stepsight.training.synth.story import Bound, Given, Mistake, Op, Story, Verify

_FENCE = Story(
    (
        "A right triangle has legs {a} m and {b} m. A fence around it costs @{k} per metre. What does the fence "
        "cost?",
        "{name} fences a field in the form of a right triangle with legs of {a} m and {b} m. One metre of fence "
        "costs @{k}. Find the total cost in dollars.",
        "The two sides at the right angle of a triangular {field} are {a} m and {b} m long. What is the price of a "
        "fence around the {field} at @{k} a metre?",
        "A {field} is a right triangle whose legs measure {a} m and {b} m. Each metre of its border is planted for "
        "@{k}. How many dollars does the whole border cost?",
    ),
    {
        "a": Given((), "m as one leg", made="s * (p * p - q * q)"),
        "b": Given((), "m as the other leg", made="2 * s * p * q"),
        "k": Given(range(2, 16), "dollars per metre"),
    },
    (
        Op(
            "u",
            "a ** 2 + b ** 2",
            "the square of the hypotenuse",
            (
                "By the Pythagorean theorem, {what} is {eq}.",
                "{What} is {eq}.",
                "The triangle has a right angle, so {what} is {eq}.",
                "Pythagoras gives {eq} for {what}.",
                "Adding the squares of the legs, we get {eq}.",
            ),
            (
                Mistake(
                    FORMULA,
                    "(a + b) ** 2",
                    ("By the Pythagorean theorem, {what} is {eq}.", "Pythagoras gives {eq} for {what}."),
                ),
            ),
        ),
        Op(
            "c",
            "sqrt(u)",
            "the hypotenuse",
            (
                "Taking the square root, the hypotenuse is {eq}.",
                "The hypotenuse is {eq}.",
                "So the third side is {eq}.",
                "The root gives the longest side: {eq}.",
            ),
            (
                Mistake(
                    INFERENCE,
                    "u / 2",
                    ("Undoing the square, the hypotenuse is {eq}.", "So the third side is {eq}."),
                ),
                Mistake(
                    INFERENCE,
                    "a + b",
                    ("Taking the root of each square, the hypotenuse is {eq}.", "Rooting both squares gives {eq}."),
                ),
            ),
        ),
        Op(
            "p",
            "a + b + c",
            "the perimeter",
            (
                "The perimeter is {eq}.",
                "All sides together are {eq}.",
                "Around the triangle it is {eq}.",
                "{What}: {eq}.",
            ),
            (
                Mistake(CASE, "a + b", ("The sides together are {eq}.", "The perimeter is {eq}.")),
                Mistake(FORMULA, "a * b / 2", ("The perimeter is half the product of the legs, {eq}.",)),
            ),
        ),
        Op("t", "p * k", "the cost"),
    ),
    {"name": NAMES, "field": ("garden", "meadow", "yard", "park")},
    (
        Verify(
            (Op("x", "answer / k"), Op("y", "x - a"), Op("h", "sqrt(a ** 2 + b ** 2)"), Op("z", "y - h")), "z", "b"
        ),
    ),
    (
        Bound("c < a + b", "the hypotenuse must be shorter than both legs together, {c} less than [{a} + {b}]"),
        Bound("c > b", "the hypotenuse is the longest side, so {c} must exceed the leg {b}"),
    ),
    seeds={"p": Given((3, 4, 5), "", fixed=True), "q": Given((1, 2), "", fixed=True), "s": Given((1, 2, 3), "")},
    largest=6000,
)

_SQUARES = Story(
    (
        "A right triangle has hypotenuse {c} and one leg {a}. What is the area of the square on the other leg?",
        "The hypotenuse of a right triangle is {c} cm, and a leg is {a} cm. Find the area of the square that "
        "stands on the other leg.",
        "In a right triangle, squares are drawn outside on the sides. The hypotenuse is {c} and one leg is {a}. "
        "Compute the area of the square on the remaining leg.",
    ),
    {"c": Given(range(9, 27), "as hypotenuse"), "a": Given(range(3, 20), "as one leg")},
    (
        Op(
            "u",
            "c ** 2",
            "the square on the hypotenuse",
            (
                "The square on the hypotenuse has area {eq}.",
                "{What} is {eq}.",
                "For the longest side we have {eq}.",
            ),
            (Mistake(FORMULA, "2 * c", ("The square on the hypotenuse has area {eq}.",)),),
        ),
        Op(
            "v",
            "a ** 2",
            "the square on the given leg",
            ("The square on the given leg has area {eq}.", "{What} is {eq}.", "The known leg gives {eq}."),
            (Mistake(FORMULA, "2 * a", ("The square on the given leg has area {eq}.",)),),
        ),
        Op(
            "w",
            "u - v",
            "the square on the other leg",
            (
                "By the Pythagorean theorem, {what} is {eq}.",
                "The squares on the legs make the one on the hypotenuse, so the other is {eq}.",
                "{What} is {eq}.",
                "Subtracting, the remaining square has area {eq}.",
            ),
            (
                Mistake(
                    FORMULA,
                    "u + v",
                    ("By the Pythagorean theorem, we add the squares: {eq}.", "Pythagoras gives {eq}."),
                ),
                Mistake(
                    INFERENCE,
                    "(c - a) ** 2",
                    ("The other leg is [{c} - {a}], so its square is {eq}.",),
                ),
            ),
        ),
    ),
    {},
    (Verify((Op("x", "a ** 2"), Op("y", "answer + x"), Op("z", "sqrt(y)")), "z", "c"),),
    (Bound("w < c ** 2", "a leg is shorter than the hypotenuse, so {w} must be less than [{c}^2]"),),
    ("a < c",),
    largest=900,
    smallest=-300,
)

_AREA = Story(
    (
        "A triangular {field} has base {b} m and height {h} m. Seed for one square metre costs @{k}. How much "
        "does the seed for the whole {field} cost?",
        "{name} paints a triangle with base {b} m and height {h} m. Each square metre takes @{k} of paint. What "
        "does the paint cost?",
        "The base of a triangle is {b} m and the height on it is {h} m. One square metre is worth @{k}. Find the "
        "value of the whole triangle.",
        "Grass at @{k} per square metre is laid on a triangle of base {b} m and height {h} m. What is the price in "
        "dollars?",
    ),
    {
        "b": Given(range(4, 30), "m as base"),
        "h": Given(range(3, 24), "m as height"),
        "k": Given(range(2, 10), "dollars per square metre"),
    },
    (
        Op("u", "b * h", "the product of base and height"),
        Op(
            "s",
            "u / 2",
            "the area of the triangle",
            (
                "A triangle has half of that as area: {eq}.",
                "{What} is {eq}.",
                "The area is half of base times height, {eq}.",
                "Halving gives the area {eq}.",
            ),
            (
                Mistake(
                    FORMULA,
                    "u",
                    ("The area of the triangle is base times height, {eq}.", "This product is the area, {eq}."),
                ),
                Mistake(FORMULA, "u / 3", ("A triangle has a third of that as area: {eq}.",)),
            ),
        ),
        Op("t", "s * k", "the cost"),
    ),
    {"name": NAMES, "field": ("garden", "meadow", "yard", "lawn")},
    (Verify((Op("x", "answer / k"), Op("y", "2 * x"), Op("z", "y / b")), "z", "h"),),
    (
        Bound(
            "s < b * h", "a triangle is smaller than the rectangle around it, so {s} must be less than [{b} * {h}]"
        ),
    ),
    largest=3000,
)

_ANGLES = Story(
    (
        "In triangle ABC the angle at A is {a} degrees, and the angle at B is {d} degrees larger. How many "
        "degrees is the angle at C?",
        "One angle of a triangle measures {a} degrees and a second one {d} degrees more. Find the third angle in "
        "degrees.",
        "A triangle has an angle of {a} degrees. Another of its angles is larger by {d} degrees. What is the "
        "remaining angle?",
        "Two angles of a triangle differ by {d} degrees, and the smaller of them is {a} degrees. Compute the third "
        "angle.",
    ),
    {"a": Given(range(10, 45), "degrees as the first angle"), "d": Given(range(5, 35), "degrees more")},
    (
        Op("b", "a + d", "the second angle"),
        Op("s", "a + b", "the sum of the two angles"),
        Op(
            "c",
            "180 - s",
            "the third angle",
            (
                "The angles of a triangle add up to [180] degrees, so the third one is {eq}.",
                "{What} is {eq}.",
                "What is left of [180] degrees is {eq}.",
                "By the angle sum, {what} is {eq}.",
            ),
            (
                Mistake(
                    FORMULA,
                    "360 - s",
                    (
                        "The angles of a triangle add up to [360] degrees, so the third one is {eq}.",
                        "By the angle sum, {what} is {eq}.",
                    ),
                ),
                Mistake(
                    CASE,
                    "180 - b",
                    ("Without the second angle there remain {eq} degrees, the third angle.",),
                ),
                Mistake(INFERENCE, "s", ("The third angle equals the other two together, {eq}.",)),
            ),
        ),
    ),
    {},
    (Verify((Op("x", "180 - answer"), Op("y", "x - a"), Op("z", "y - d")), "z", "a"),),
    (
        Bound(
            "c < 180 - a",
            "with an angle of {a} degrees the third must be less than [180 - {a}], so {c} must be less",
        ),
    ),
)

_ISOSCELES = Story(
    (
        "An isosceles triangle has an angle of {a} degrees at its apex. How many degrees is the exterior angle at "
        "its base?",
        "In triangle ABC, AB = AC and the angle at A is {a} degrees. Find the exterior angle at B in degrees.",
        "The two equal sides of a triangle include an angle of {a} degrees. Compute the exterior angle at one end "
        "of the third side.",
        "A roof is an isosceles triangle with {a} degrees at the top. What angle does the roof make with the "
        "extended floor, measured outside?",
    ),
    {"a": Given(range(20, 150, 2), "degrees at the apex", fixed=True)},
    (
        Op(
            "s",
            "180 - a",
            "the sum of the base angles",
            (
                "The base angles together have {eq} degrees.",
                "{What} is {eq}.",
                "By the angle sum, {eq} degrees are left for the base angles.",
                "For both base angles there remain {eq}.",
            ),
            (
                Mistake(
                    FORMULA,
                    "360 - a",
                    ("By the angle sum, {eq} degrees are left for the base angles.", "{What} is {eq}."),
                ),
                Mistake(INFERENCE, "2 * a", ("The base angles equal the one at the apex, together {eq}.",)),
            ),
        ),
        Op(
            "b",
            "s / 2",
            "a base angle",
            (
                "They are equal, so each is {eq}.",
                "The triangle is isosceles, so a base angle is {eq}.",
                "Each base angle measures {eq}.",
                "{What} is {eq}.",
            ),
            (
                Mistake(CASE, "s", ("So a base angle is {eq}.", "The base angle is the rest, {eq}.")),
                Mistake(FORMULA, "s / 3", ("The angles share this equally, so a base angle is {eq}.",)),
            ),
        ),
        Op(
            "e",
            "180 - b",
            "the exterior angle",
            (
                "The exterior angle is {eq}.",
                "On a straight line, {what} is {eq}.",
                "{What} and the base angle make [180] degrees: {eq}.",
                "So we get {eq} outside.",
            ),
            (
                Mistake(FORMULA, "360 - b", ("The rest of the full turn is the exterior angle: {eq}.",)),
                Mistake(FORMULA, "90 - b", ("The exterior angle completes the base angle to [90]: {eq}.",)),
            ),
        ),
    ),
    {},
    (Verify((Op("x", "180 - answer"), Op("y", "2 * x"), Op("z", "180 - y")), "z", "a"),),
    (
        Bound(
            "b < 90", "a triangle cannot have two angles of 90 degrees or more, so the base angle {b} must be less"
        ),
        Bound("e > 90", "base angles are acute, so the exterior angle {e} must be more than 90 degrees"),
    ),
    smallest=-60,
)

_SIMILAR_AREAS = Story(
    (
        "Two triangles are similar. A side of the smaller one is {a} cm, and the side of the larger one that "
        "belongs to it is {b} cm. The smaller triangle has area {s} cm². What is the area of the larger one in "
        "cm²?",
        "A triangle with area {s} and a side of {a} is enlarged until this side is {b}. Find the new area.",
        "The sides of a triangle on a drawing are enlarged so that {a} cm become {b} cm. On the drawing its area "
        "is {s} cm². Compute the area after enlarging, in cm².",
    ),
    {
        "a": Given(range(2, 12), "as the side of the smaller"),
        "b": Given((), "as the side of the larger", made="a * r"),
        "s": Given(range(5, 60), "as the area of the smaller"),
    },
    (
        Op("k", "b / a", "the ratio of the sides"),
        Op(
            "f",
            "k ** 2",
            "the ratio of the areas",
            (
                "Areas grow with the square of the ratio: {eq}.",
                "{What} is {eq}.",
                "For areas we square this: {eq}.",
                "So the area becomes {eq} times as large.",
            ),
            (
                Mistake(
                    INFERENCE,
                    "k",
                    (
                        "The areas have the same ratio as the sides, {eq}.",
                        "As the sides grow, so do the areas: the ratio of the areas is {eq}.",
                    ),
                ),
                Mistake(FORMULA, "2 * k", ("For areas we square this: {eq}.", "{What} is {eq}.")),
            ),
        ),
        Op("t", "f * s", "the larger area"),
    ),
    {},
    (Verify((Op("x", "answer / s"), Op("y", "sqrt(x)"), Op("z", "y * a")), "z", "b"),),
    (Bound("t > s", "the larger triangle must have more area than {s}, and {t} must exceed it"),),
    seeds={"r": Given((2, 3, 4, 5), "")},
    largest=2000,
)

_SHADOW = Story(
    (
        "A pole of {h} m casts a shadow of {s} m. At the same time a {tree} casts a shadow of {t} m. How many "
        "metres is the {tree} taller than the pole?",
        "{name} puts up a stick of {h} m, whose shadow is {s} m long, while the shadow of a {tree} is {t} m long. "
        "By how many metres does the {tree} exceed the stick?",
        "A post {h} m high has a shadow of {s} m, and the shadow of a {tree} measures {t} m. Find the difference "
        "of their heights.",
    ),
    {
        "h": Given(range(2, 12), "m as height"),
        "s": Given(range(2, 9), "m as the short shadow"),
        "t": Given((), "m as the long shadow", made="s * r"),
    },
    (
        Op(
            "k",
            "t / s",
            "the ratio of the shadows",
            (
                "The triangles are similar with ratio {eq}.",
                "{What} is {eq}.",
                "One shadow is {eq} times as long as the other.",
                "Comparing the shadows: {eq}.",
            ),
        ),
        Op(
            "g",
            "k * h",
            "the height of the {tree}",
            (
                "The heights have the same ratio, so the {tree} is {eq} m high.",
                "{What} is {eq}.",
                "Similar triangles give {eq} for {what}.",
                "So the {tree} measures {eq}.",
            ),
            (
                Mistake(
                    INFERENCE,
                    "h + t - s",
                    (
                        "The shadow is [{t} - {s}] m longer, so the {tree} is as much taller: {eq}.",
                        "Adding the difference of the shadows, {what} is {eq}.",
                    ),
                ),
                Mistake(DROPPED, "h * t", ("So the {tree} measures {eq}.",)),
            ),
        ),
        Op("d", "g - h", "the difference of the heights"),
    ),
    {"name": NAMES, "tree": ("tree", "tower", "mast", "house")},
    (Verify((Op("x", "answer + h"), Op("y", "x / h"), Op("z", "y * s")), "z", "t"),),
    seeds={"r": Given(range(2, 9), "")},
)

TRIANGLES = (_FENCE, _SQUARES, _AREA, _ANGLES, _ISOSCELES, _SIMILAR_AREAS, _SHADOW)
