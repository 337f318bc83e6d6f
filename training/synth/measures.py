"""The measures: problems of percent and fractions, sequences and rectangles."""

from training.synth.stories import NAMES
from training.synth.story import Given, Op, Story, Verify

SHARES = (
    Story(
        (
            "A {thing} costs @{p}. The price falls by {r}%, and delivery costs @{s}. What is paid in all?",
            "Find the final bill for a {thing} of @{p} after {r}% off, with @{s} for delivery.",
        ),
        {
            "p": Given(range(20, 400, 20), "dollars at first"),
            "r": Given(range(5, 65, 5), "percent off"),
            "s": Given(range(4, 30), "dollars for delivery"),
        },
        (
            Op("a", "p", "%", "r", "the reduction"),
            Op("b", "p", "-", "a", "the new price"),
            Op("c", "b", "+", "s", "the bill"),
        ),
        {"thing": ("coat", "desk", "bike", "chair", "tent")},
        Verify(
            (Op("x", "answer", "-", "s"), Op("w", "p", "%", "r"), Op("y", "x", "+", "w")),
            "y",
            "p",
            "add back",
        ),
    ),
    Story(
        (
            "Of {n} {things}, [{u}/{v}] are sold and {k} more are given away. How many are left?",
            "{name} has {n} {things}, sells [{u}/{v}] of them and gives {k} away. How many remain?",
        ),
        {
            "n": Given(range(24, 240, 4), "{things}"),
            "v": Given((3, 4, 5, 6, 8), "equal parts"),
            "u": Given((2, 3, 4, 5), "parts sold"),
            "k": Given(range(3, 40), "given away"),
        },
        (
            Op("a", "n", "/", "v", "one part"),
            Op("b", "u", "*", "a", "the number sold"),
            Op("c", "n", "-", "b", "the number not sold"),
            Op("d", "c", "-", "k", "the rest"),
        ),
        {"name": NAMES, "things": ("stamps", "plums", "eggs", "tickets")},
    ),
)

SEQUENCES = (
    Story(
        (
            "An arithmetic sequence starts with {f} and has common difference {d}. Find its term number {n}.",
            "What is term number {n} of the sequence that begins at {f} and grows by {d} each time?",
        ),
        {
            "f": Given(range(2, 60), "as first term"),
            "d": Given(range(3, 15), "as difference"),
            "n": Given(range(8, 26), "as number of the term"),
        },
        (
            Op("a", "n", "-", "1", "the number of jumps"),
            Op("b", "a", "*", "d", "the growth"),
            Op("c", "f", "+", "b", "the term"),
        ),
        {},
        Verify((Op("x", "answer", "-", "f"), Op("m", "n", "-", "1"), Op("z", "x", "/", "m")), "z", "d"),
    ),
    Story(
        (
            "Find the sum of {n} terms that grow evenly from {f} to {l}.",
            "An arithmetic sequence of {n} terms goes from {f} up to {l}. What is its sum?",
        ),
        {
            "f": Given(range(2, 30), "as first term"),
            "l": Given(range(20, 70), "as last term"),
            "n": Given(range(4, 13), "terms"),
        },
        (
            Op("a", "f", "+", "l", "the sum of the ends"),
            Op("b", "a", "*", "n", "twice the sum"),
            Op("c", "b", "/", "2", "the sum"),
        ),
        {},
        Verify((Op("x", "answer", "*", "2"), Op("y", "x", "/", "n"), Op("z", "y", "-", "f")), "z", "l"),
        largest=900,
    ),
)

RECTANGLES = (
    Story(
        (
            "A {field} is {w} m wide and {d} m longer than wide. A path of {p} m² lies in it. "
            "What area is free of the path?",
            "The length of a {field} exceeds its width of {w} m by {d} m. {p} m² are paved. How many m² are not?",
        ),
        {
            "w": Given(range(7, 16), "m of width"),
            "d": Given(range(2, 9), "m more in length"),
            "p": Given(range(11, 90), "m² of path"),
        },
        (
            Op("a", "w", "+", "d", "the length"),
            Op("b", "a", "*", "w", "the area"),
            Op("c", "b", "-", "p", "the free area"),
        ),
        {"field": ("garden", "yard", "park", "meadow")},
        Verify((Op("x", "answer", "+", "p"), Op("y", "x", "/", "w"), Op("z", "y", "-", "w")), "z", "d"),
    ),
    Story(
        (
            "A rectangle has perimeter {p} and one side {a}. Find its area.",
            "The perimeter of a rectangle is {p}, and its longer side is {a}. What is the area?",
        ),
        {
            "p": Given(range(30, 90, 2), "as perimeter"),
            "a": Given(range(9, 30), "as one side"),
        },
        (
            Op("h", "p", "/", "2", "half the perimeter"),
            Op("b", "h", "-", "a", "the other side"),
            Op("s", "a", "*", "b", "the area"),
        ),
        {},
        Verify((Op("x", "answer", "/", "a"), Op("y", "x", "+", "a"), Op("z", "y", "*", "2")), "z", "p"),
    ),
)
