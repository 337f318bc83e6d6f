"""Systems: two linear equations, and what two numbers are by their sum and difference."""

from stepsight.training.synth.families.names import NAMES
from stepsight.training.synth.plant import CASE, DROPPED, INFERENCE, SIGN
from stepsight.training.synth.story import Bound, Given, Mistake, Op, Story, Verify

_UNKNOWN = Given(range(1, 10), "")
_RIGHT_1 = "on the right of the first equation"
_RIGHT_2 = "on the right of the second equation"

_SUM_AND_DIFFERENCE = Story(
    (
        "Solve the system [x + y = {s}], [x - y = {d}] and give y.",
        "If [x + y = {s}] and [x - y = {d}], what is the value of y?",
        "Two numbers x and y satisfy [x + y = {s}] and [x - y = {d}]. Find y.",
        "Find the value of y, given that [x - y = {d}] and [x + y = {s}].",
    ),
    {"s": Given(range(12, 120), "as sum of x and y"), "d": Given(range(2, 40), "as difference of x and y")},
    (
        Op(
            "t",
            "s + d",
            "[2x]",
            (
                "Add the two equations: {weq}.",
                "Adding the equations removes y and leaves {weq}.",
                "The sum of both equations is {weq}.",
                "When we add them, y cancels, so {weq}.",
                "Summing the left and the right sides gives {weq}.",
            ),
        ),
        Op(
            "x",
            "t / 2",
            "[x]",
            ("Divide by [2]: {weq}.", "So {weq}.", "Halving, {weq}.", "Hence {weq}.", "This gives {weq}."),
        ),
        Op(
            "y",
            "s - x",
            "[y]",
            (
                "From the first equation, {weq}.",
                "Then {weq}.",
                "Put this into [x + y = {s}]: {weq}.",
                "Back in [x + y = {s}] we find {weq}.",
                "Substitute the value of x: {weq}.",
            ),
            (
                Mistake(SIGN, "s + x", ("From the first equation, {weq}.", "Moving x to the other side, {weq}.")),
                Mistake(INFERENCE, "x", ("By symmetry y has the same value, so {wres}.", "Likewise, {wres}.")),
            ),
        ),
    ),
    {},
    (Verify((Op("u", "s - answer"), Op("v", "u - answer")), "v", "d", "substitute"),),
    (Bound("y < s", "y = {y} must be below the sum {s}"),),
)

_PRODUCT = Story(
    (
        "The sum of two numbers is {s} and their difference is {d}. What is their product?",
        "Two numbers add to {s} and differ by {d}. Find the product of the two numbers.",
        "Find the product of two numbers whose sum is {s} and whose difference is {d}.",
        "If [x + y = {s}] and [x - y = {d}], find the product of x and y.",
    ),
    {"s": Given(range(12, 44), "as sum"), "d": Given(range(2, 22), "as difference")},
    (
        Op(
            "t",
            "s + d",
            "twice the larger number",
            (
                "Sum plus difference is twice the larger number: {eq}.",
                "Adding sum and difference gives twice the larger number, {eq}.",
                "{What} is {eq}.",
                "The smaller number cancels in {eq}, which is twice the larger one.",
            ),
        ),
        Op(
            "x",
            "t / 2",
            "the larger number",
            mistakes=(
                Mistake(
                    INFERENCE,
                    "s / 2 + d",
                    (
                        "The larger number is half the sum plus the difference: {eq}.",
                        "Half of the sum and then the difference on top: {eq}.",
                    ),
                ),
            ),
        ),
        Op("y", "s - x", "the smaller number"),
        Op(
            "p",
            "x * y",
            "the product",
            (
                "Their product is {eq}.",
                "Multiply: {eq}.",
                "So {what} is {eq}.",
                "Multiplying the two numbers, {eq}.",
                "{What}: {eq}.",
            ),
        ),
    ),
    {},
    (Verify((Op("l", "s + d"), Op("h", "l / 2"), Op("u", "answer / h"), Op("v", "u + h")), "v", "s", "add back"),),
    (
        Bound("x < s", "the larger number {x} must be below the sum {s}"),
        Bound(
            "4 * p <= s * s", "the product {p} of two numbers with sum {s} is at most a quarter of the sum's square"
        ),
    ),
    ("y > 0",),
    largest=900,
)

_SHARED = Story(
    (
        "{name} and {other} have {s} {thing} together. {name} has {d} more than {other}. How many {thing} does "
        "{name} have?",
        "Together {name} and {other} collect {s} {thing}, and {name} collects {d} more. How many does {name} "
        "collect?",
        "Of {s} {thing}, {name} gets {d} more than {other} and nothing is left. How many {thing} does {name} get?",
        "{name} sold {d} {thing} more than {other}. In all they sold {s} {thing}. How many were sold by {name}?",
    ),
    {"s": Given(range(20, 160), "{thing} together"), "d": Given(range(4, 50), "{thing} more")},
    (
        Op(
            "t",
            "s - d",
            "twice the number for {other}",
            (
                "Without the extra ones both would have the same: {eq} for the two.",
                "Take the {d} extra {thing} away: {eq} is twice the number for {other}.",
                "{What} is {eq}.",
                "Let {other} have n {thing}. Then twice n is {eq}.",
            ),
        ),
        Op(
            "y",
            "t / 2",
            "the number for {other}",
            mistakes=(
                Mistake(
                    INFERENCE,
                    "s / 2",
                    ("Half of them belong to {other}: {eq}.", "Two people share, so {other} has {eq}."),
                ),
            ),
        ),
        Op("x", "y + d", "the number for {name}"),
    ),
    {"name": NAMES[:5], "other": NAMES[5:], "thing": ("shells", "cards", "stamps", "tickets", "coins", "marbles")},
    (Verify((Op("u", "answer - d"), Op("v", "u + answer")), "v", "s", "add back"),),
    (
        Bound("x < s", "{name} cannot have all: {x} must be less than {s}"),
        Bound("2 * x > s", "{name} has more than half of {s}, so twice {x} must be above {s}"),
    ),
)

_MULTIPLE = Story(
    (
        "Two numbers add to {s}, and one of them is {k} times the other. Find the larger number.",
        "{name} is {k} times as old as {other}, and their ages add to {s}. How old is {name}?",
        "A rope of {s} m is cut in two so that one piece is {k} times as long as the other. How long is the longer "
        "piece in m?",
        "If [x + y = {s}] and [x = {k}y], what is x?",
    ),
    {
        "s": Given((), "as the sum", made="u * k + u"),
        "k": Given(range(2, 8), "times the smaller"),
    },
    (
        Op(
            "t",
            "k + 1",
            "the number of equal parts",
            (
                "One part and {k} parts are {eq} parts.",
                "Together they make {eq} times the smaller one.",
                "{What} is {eq}.",
                "In terms of the smaller one the sum counts {eq} parts.",
            ),
            (
                Mistake(
                    CASE,
                    "k",
                    (
                        "The sum is {res} times the smaller one.",
                        "There are {res} equal parts.",
                        "Since one is {k} times the other, we have {res} equal parts in all.",
                    ),
                ),
            ),
        ),
        Op("y", "s / t", "the smaller one"),
        Op("x", "k * y", "the larger one"),
    ),
    {"name": NAMES[:5], "other": NAMES[5:]},
    (Verify((Op("u", "answer / k"), Op("v", "u + answer")), "v", "s", "add back"),),
    (Bound("x < s", "the larger one {x} must be less than the sum {s}"),),
    seeds={"u": Given(range(3, 20), "")},
)

_ELIMINATION = Story(
    (
        "Solve the system [<a,0> + <y;m,0> = {e}], [<c,0> + <y;m,0> = {f}]. What is y?",
        "If [<a,0> + <y;m,0> = {e}] and [<c,0> + <y;m,0> = {f}], find y.",
        "Let x and y satisfy [<a,0> + <y;m,0> = {e}] and [<c,0> + <y;m,0> = {f}]. Determine y.",
        "Find the y-coordinate of the point where the lines [<a,0> + <y;m,0> = {e}] and [<c,0> + <y;m,0> = {f}] "
        "meet.",
    ),
    {
        "a": Given(range(3, 8), "as factor of x in the first equation", fixed=True),
        "c": Given(range(1, 4), "as factor of x in the second equation", fixed=True),
        "m": Given(range(2, 5), "as factor of y", fixed=True),
        "e": Given((), _RIGHT_1, made="a * u + m * v"),
        "f": Given((), _RIGHT_2, made="c * u + m * v"),
    },
    (
        Op(
            "k",
            "a - c",
            "the factor of x after subtracting",
            (
                "Subtract the second equation from the first: the y terms cancel and x has the factor {eq}.",
                "Subtracting the equations removes y, and the factor of x is {eq}.",
                "The y terms are the same, so subtract: for x, {eq}.",
                "In the difference of the equations, x has the factor {eq}.",
            ),
            (Mistake(SIGN, "a + c", ("Combine the equations so that y cancels: x has the factor {eq}.",)),),
        ),
        Op(
            "g",
            "e - f",
            "[<k,0>]",
            (
                "The right sides give {weq}.",
                "On the right we have {eq}.",
                "So {weq}.",
                "The difference of the right sides is {eq}.",
            ),
        ),
        Op("x", "g / k", "[x]", ("So {weq}.", "Divide by [{k}]: {weq}.", "Hence {weq}.", "This gives {weq}.")),
        Op(
            "h",
            "f - c * x",
            "the y term",
            (
                "From the second equation, the y term is {eq}.",
                "Put x into the second equation: {eq} for the y term.",
                "Substituting into the second equation leaves {eq} for the y term.",
                "Then the y term is {eq}.",
            ),
            (
                Mistake(
                    SIGN,
                    "f + c * x",
                    ("From the second equation, the y term is {eq}.", "Bring the x term to the right: {eq}."),
                ),
            ),
        ),
        Op(
            "y",
            "h / m",
            "[y]",
            ("Finally, {weq}.", "Divide by [{m}]: {weq}.", "So {weq}.", "Therefore {weq}."),
        ),
    ),
    {},
    (
        Verify(
            (Op("l", "m * answer"), Op("n", "f - l"), Op("o", "n / c"), Op("p", "a * o"), Op("q", "p + l")),
            "q",
            "e",
            "substitute",
        ),
    ),
    fits=("a > c + 1",),
    outlines=(
        "We eliminate y by subtracting the equations.",
        "Both equations have the same y term, so we subtract.",
        "Use elimination.",
    ),
    reads=False,
    seeds={"u": _UNKNOWN, "v": _UNKNOWN},
)

_ADDITION = Story(
    (
        "Solve for x: [<a,0> + <y;m,0> = {e}] and [<c,0> - <y;m,0> = {f}].",
        "If [<a,0> + <y;m,0> = {e}] and [<c,0> - <y;m,0> = {f}], what is x?",
        "Given the system [<a,0> + <y;m,0> = {e}], [<c,0> - <y;m,0> = {f}], find the value of x.",
        "The numbers x and y satisfy [<a,0> + <y;m,0> = {e}] and [<c,0> - <y;m,0> = {f}]. Find x.",
    ),
    {
        "a": Given(range(1, 5), "as factor of x in the first equation", fixed=True),
        "c": Given(range(1, 5), "as factor of x in the second equation", fixed=True),
        "m": Given(range(2, 10), ""),
        "e": Given((), _RIGHT_1, made="a * u + m * v"),
        "f": Given((), _RIGHT_2, made="c * u - m * v"),
    },
    (
        Op(
            "k",
            "a + c",
            "the factor of x in the sum",
            (
                "Add the equations: the y terms cancel, and x has the factor {eq}.",
                "When we add the two equations, the factor of x is {eq}.",
                "The y terms have opposite signs, so add. The factor of x becomes {eq}.",
                "Adding removes y; for x we get {eq}.",
            ),
        ),
        Op(
            "g",
            "e + f",
            "[<k,0>]",
            ("The right sides add to {eq}.", "So {weq}.", "On the right, {eq}.", "The right sides give {weq}."),
            (Mistake(SIGN, "e - f", ("On the right, {eq}.", "The right sides give {weq}.")),),
        ),
        Op("x", "g / k", "[x]", ("So {weq}.", "Divide by [{k}]: {weq}.", "Hence {weq}.", "This gives {weq}.")),
    ),
    {},
    (
        Verify(
            (Op("l", "a * answer"), Op("n", "e - l"), Op("o", "c * answer"), Op("q", "o - n")),
            "q",
            "f",
            "substitute",
        ),
    ),
    fits=("f != 0",),
    smallest=-200,
    outlines=("We add the equations.", "Adding the equations eliminates y.", "Use elimination."),
    reads=False,
    seeds={"u": Given(range(2, 15), ""), "v": _UNKNOWN},
)

_SUBSTITUTION = Story(
    (
        "Solve the system [y = <a,b>], [<c,0> + <y;d,0> = {e}] for x.",
        "If [y = <a,b>] and [<c,0> + <y;d,0> = {e}], find x.",
        "Let [y = <a,b>]. For which x is [<c,0> + <y;d,0> = {e}]?",
        "The line [y = <a,b>] meets the line [<c,0> + <y;d,0> = {e}]. What is the x-coordinate of the common "
        "point?",
    ),
    {
        "a": Given(range(1, 5), "as factor of x in the first equation", fixed=True),
        "b": Given((-7, -5, -4, -3, -2, 1, 2, 3, 4, 5, 6, 8), "as constant of the first equation"),
        "c": Given(range(1, 4), "as factor of x in the second equation", fixed=True),
        "d": Given(range(2, 4), "as factor of y in the second equation", fixed=True),
        "e": Given((), _RIGHT_2, made="c * u + d * (a * u + b)"),
    },
    (
        Op(
            "k",
            "c + d * a",
            "the factor of x",
            (
                "Substitute y in the second equation: the factor of x becomes {eq}.",
                "After the substitution, x has the factor {eq}.",
                "Replacing y, we collect the x terms: {eq}.",
                "With y replaced, {what} is {eq}.",
            ),
            (Mistake(DROPPED, "c + a", ("Replacing y, the factor of x becomes {eq}.",)),),
        ),
        Op(
            "h",
            "d * b",
            "the constant on the left",
            (
                "The constant on the left is {eq}.",
                "The substitution leaves the constant {eq} on the left.",
                "The left side is now [<k,h>], where the constant is {eq}.",
                "The bracket also brings the constant {eq}.",
            ),
            (
                Mistake(
                    DROPPED,
                    "b",
                    ("The constant on the left is {res}.", "So the left side is [<k,h>]."),
                ),
            ),
        ),
        Op(
            "g",
            "e - h",
            "[<k,0>]",
            (
                "Then {weq}.",
                "Bring the constant to the right: {weq}.",
                "So {weq}.",
                "Take the constant away on both sides: {weq}.",
            ),
            (Mistake(SIGN, "e + h", ("Bring the constant to the right: {weq}.", "Then {weq}.")),),
        ),
        Op("x", "g / k", "[x]", ("So {weq}.", "Divide by [{k}]: {weq}.", "Hence {weq}.", "Therefore {weq}.")),
    ),
    {},
    (
        Verify(
            (Op("l", "a * answer + b"), Op("n", "d * l"), Op("o", "c * answer"), Op("q", "n + o")),
            "q",
            "e",
            "substitute",
        ),
    ),
    smallest=-300,
    fits=("e != 0",),
    outlines=("Replace y in the second equation.", "We substitute for y.", "Use substitution."),
    reads=False,
    seeds={"u": _UNKNOWN},
)

_PRICES = Story(
    (
        "{a} {thing} and {m} bags cost @{e}, while {c} {thing} and {m} bags cost @{f}. What does a bag cost?",
        "{name} pays @{e} for {a} {thing} and {m} bags. {other} pays @{f} for {c} {thing} and {m} bags. "
        "Find the price of one bag in dollars.",
        "At a stall, {a} {thing} with {m} bags are sold for @{e}, and {c} {thing} with {m} bags for @{f}. "
        "How many dollars is one bag?",
    ),
    {
        "a": Given(range(5, 10), "{thing} in the first case", fixed=True),
        "c": Given(range(2, 5), "{thing} in the second case", fixed=True),
        "m": Given(range(2, 5), "bags", fixed=True),
        "e": Given((), "dollars in the first case", made="a * u + m * v"),
        "f": Given((), "dollars in the second case", made="c * u + m * v"),
    },
    (
        Op("k", "a - c", "the number of {thing} more in the first case"),
        Op("g", "e - f", "the dollars that these cost"),
        Op(
            "x",
            "g / k",
            "the price of one of the {thing} in dollars",
            mistakes=(
                Mistake(INFERENCE, "e / a", ("One of the {thing} costs {eq} dollars, from the first case.",)),
            ),
        ),
        Op("h", "c * x", "the cost of the {thing} in the second case"),
        Op("i", "f - h", "the cost of the bags"),
        Op(
            "y",
            "i / m",
            "the price of a bag",
            mistakes=(Mistake(DROPPED, "i", ("So a bag costs {res} dollars.", "Hence a bag is {res} dollars.")),),
        ),
    ),
    {"name": NAMES[:5], "other": NAMES[5:], "thing": ("mugs", "lamps", "caps", "balls", "rackets")},
    (
        Verify(
            (Op("l", "m * answer"), Op("n", "f - l"), Op("o", "n / c"), Op("p", "a * o"), Op("q", "p + l")),
            "q",
            "e",
            "add back",
        ),
    ),
    (Bound("m * y < f", "{m} bags at {y} dollars must cost less than {f} dollars"),),
    ("a > c + 1",),
    seeds={"u": Given(range(3, 20), ""), "v": Given(range(1, 9), "")},
)

SYSTEMS = (
    _SUM_AND_DIFFERENCE,
    _PRODUCT,
    _SHARED,
    _MULTIPLE,
    _ELIMINATION,
    _ADDITION,
    _SUBSTITUTION,
    _PRICES,
)
