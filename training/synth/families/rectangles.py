"""Rectangles: areas and perimeters, borders around them, tiles in them."""

from stepsight.training.synth.plant import CASE, FORMULA, INFERENCE
from stepsight.training.synth.story import Bound, Given, Mistake, Op, Story, Verify

_PATH = Story(
    (
        "A {field} is {w} m wide and {d} m longer than wide. A path of {p} m² lies in it. "
        "What area is free of the path?",
        "The length of a {field} exceeds its width of {w} m by {d} m. {p} m² are paved. How many m² are not?",
        "A rectangular {field}, {w} m wide, is {d} m longer than it is wide. How many m² are left if {p} m² of it "
        "are paved?",
        "{p} m² of a rectangular {field} are covered with gravel. The {field} is {w} m wide and {d} m longer than "
        "that. Find the uncovered area in m².",
    ),
    {
        "w": Given(range(7, 16), "m of width"),
        "d": Given(range(2, 9), "m more in length"),
        "p": Given(range(11, 90), "m² of path"),
    },
    (
        Op("a", "w + d", "the length"),
        Op(
            "b",
            "a * w",
            "the area",
            mistakes=(Mistake(FORMULA, "2 * (a + w)"), Mistake(INFERENCE, "d * w")),
        ),
        Op("c", "b - p", "the free area"),
    ),
    {"field": ("garden", "yard", "park", "meadow", "court")},
    (Verify((Op("x", "answer + p"), Op("y", "x / w"), Op("z", "y - w")), "z", "d"),),
    (
        Bound("a > w", "the length {a} must be greater than the width {w}"),
        Bound("c < b", "the free area {c} must be less than the whole area {b}"),
    ),
)

_PERIMETER = Story(
    (
        "A rectangle has perimeter {p} and one side {a}. Find its area.",
        "The perimeter of a rectangle is {p}, and its longer side is {a}. What is the area?",
        "One side of a rectangle with perimeter {p} has length {a}. Compute the area of the rectangle.",
        "A fence of {p} m goes around a rectangular field with one side of {a} m. What is the area of the field "
        "in m²?",
    ),
    {
        "p": Given(range(30, 90, 2), "as perimeter"),
        "a": Given(range(9, 30), "as one side"),
    },
    (
        Op("h", "p / 2", "half the perimeter"),
        Op("b", "h - a", "the other side", mistakes=(Mistake(INFERENCE, "p - a"),)),
        Op("s", "a * b", "the area", mistakes=(Mistake(FORMULA, "a * h"), Mistake(FORMULA, "a * b / 2"))),
    ),
    {},
    (Verify((Op("x", "answer / a"), Op("y", "x + a"), Op("z", "y * 2")), "z", "p"),),
    (Bound("b < h", "the other side {b} must be less than half the perimeter, {h}"),),
    fits=("b < a",),
    largest=1500,
)

_BORDER = Story(
    (
        "A pool is {l} m long and {w} m wide. A path {x} m wide runs all around it. What is the area of the path "
        "in m²?",
        "Around a rectangular {field} of {l} m by {w} m lies a border of width {x} m. Find the area of the border "
        "in m².",
        "A picture of {l} cm by {w} cm has a frame that is {x} cm wide on every side. What is the area of the "
        "frame in square cm?",
    ),
    {
        "l": Given(range(12, 31), "as inner length"),
        "w": Given(range(5, 12), "as inner width"),
        "x": Given((1, 2, 3, 4), "as width of the border"),
    },
    (
        Op("a", "l + 2 * x", "the outer length", mistakes=(Mistake(CASE, "l + x"),)),
        Op("b", "w + 2 * x", "the outer width", mistakes=(Mistake(CASE, "w + x"),)),
        Op("c", "a * b", "the outer area"),
        Op("d", "l * w", "the inner area", mistakes=(Mistake(FORMULA, "2 * (l + w)"),)),
        Op("e", "c - d", "the area of the border"),
    ),
    {"field": ("lawn", "pond", "flower bed", "stage")},
    (
        Verify(
            (Op("d", "l * w"), Op("c", "answer + d"), Op("b", "w + 2 * x"), Op("y", "c / b"), Op("z", "y - 2 * x")),
            "z",
            "l",
        ),
    ),
    (
        Bound("c > d", "the outer area {c} must be greater than the inner area {d}"),
        Bound("e < c", "the border's area {e} must be less than the outer area {c}"),
    ),
    largest=2500,
)

_TILES = Story(
    (
        "A floor of {a} m by {b} m is covered with square tiles of {c} cm by {c} cm. A pack of {k} tiles costs "
        "@{p}. What do the tiles cost?",
        "A wall, {a} m long and {b} m high, gets square tiles with sides of {c} cm. Tiles come in packs of {k} for "
        "@{p} a pack. Find the price of all tiles.",
        "Square stones with sides of {c} cm cover a terrace of {a} m by {b} m. They are sold {k} at a time for "
        "@{p}. How many dollars are needed?",
    ),
    {
        "a": Given(range(2, 13), "m on one side"),
        "b": Given(range(2, 10), "m on the other side"),
        "c": Given((10, 20, 25, 50), "cm for a side of a tile", fixed=True),
        "k": Given((4, 5, 10, 20), "tiles in a pack", fixed=True),
        "p": Given(range(3, 20), "dollars a pack"),
    },
    (
        Op("u", "a * 100 / c", "the number of tiles along one side"),
        Op("v", "b * 100 / c", "the number of tiles along the other side"),
        Op(
            "n",
            "u * v",
            "the number of tiles",
            mistakes=(Mistake(FORMULA, "u + v"), Mistake(INFERENCE, "a * b * 100 / c")),
        ),
        Op("q", "n / k", "the number of packs"),
        Op("r", "q * p", "the price"),
    ),
    {},
    (
        Verify(
            (
                Op("q", "answer / p"),
                Op("n", "q * k"),
                Op("v", "b * 100 / c"),
                Op("u", "n / v"),
                Op("z", "u * c / 100"),
            ),
            "z",
            "a",
            "convert back",
        ),
    ),
    (Bound("q < n", "the number of packs, {q}, must be less than the number of tiles, {n}"),),
    largest=60000,
)

RECTANGLES = (_PATH, _PERIMETER, _BORDER, _TILES)
