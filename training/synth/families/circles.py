"""Circles: areas, circumferences, arcs, sectors and rings, as multiples of π."""

from stepsight.training.synth.families.names import NAMES
from stepsight.training.synth.plant import CASE, DROPPED, FORMULA, INFERENCE
from stepsight.training.synth.story import PI, Bound, Given, Mistake, Op, Story, Verify

_SLICES = Given((30, 36, 40, 45, 60, 72, 90, 120, 180), "degrees at the centre", fixed=True)
_AREA = (
    "The area of the circle is {eq}.",
    "With [π r^2] we get {eq} for {what}.",
    "{What} is {eq}.",
    "By the formula [π r^2], {what} is {eq}.",
)
_ROUND = (
    "The circumference is {eq}.",
    "With [2 π r] we get {eq} for {what}.",
    "{What} is {eq}.",
    "By the formula [2 π r], {what} is {eq}.",
)
_COUNT = Op(
    "k",
    "360 / w",
    "the number of such parts in the full circle",
    (
        "The full circle has [360] degrees, so {eq} such parts make it up.",
        "{What} is {eq}.",
        "An angle of [{w}] degrees fits {eq} times into the circle.",
        "Dividing the full turn by the angle, we get {eq}.",
    ),
    (
        Mistake(
            FORMULA,
            "180 / w",
            (
                "The circle has [180] degrees, so {eq} such parts make it up.",
                "An angle of [{w}] degrees fits {eq} times into the circle.",
            ),
        ),
        Mistake(FORMULA, "100 / w", ("Of the whole, taken as [100], such a part fits in {eq} times.",)),
    ),
)
_PART = (
    "One of [{k}] equal parts is {eq}.",
    "{What} is {eq}.",
    "Dividing by [{k}], {what} is {eq}.",
    "So we get {eq} for {what}.",
    "The part that belongs to [{w}] degrees is {eq}.",
)

_SECTOR = Story(
    (
        "A circle has diameter {d}. What is the area of a sector with a central angle of {w} degrees? Give it in "
        "terms of [π].",
        "A round pizza is {d} cm across. {name} eats a slice with an angle of {w} degrees. Find the area of the "
        "slice in cm², in terms of [π].",
        "Find, in terms of [π], the area of a sector of {w} degrees in a circle of diameter {d}.",
        "A lawn has the form of a sector of {w} degrees, cut from a circle {d} m across. How many square metres "
        "does it have? Leave [π] in the answer.",
    ),
    {"d": Given(range(4, 50, 2), "as diameter"), "w": _SLICES},
    (
        Op(
            "r",
            "d / 2",
            "the radius",
            (
                "The radius is {eq}.",
                "{What} is half the diameter, {eq}.",
                "Half the diameter is {eq}.",
                "{What}: {eq}.",
            ),
            (Mistake(INFERENCE, "d", ("The radius is {eq}.", "The circle has radius {eq}.")),),
        ),
        Op(
            "a",
            "r ** 2",
            "the area of the circle",
            _AREA,
            (
                Mistake(
                    FORMULA,
                    "2 * r",
                    ("With [2 π r] we get {eq} for {what}.", "By the formula [2 π r], {what} is {eq}."),
                ),
                Mistake(FORMULA, "d ** 2", ("With [π d^2] we get {eq} for {what}.",)),
            ),
            PI,
        ),
        _COUNT,
        Op("s", "a / k", "the area of the sector", _PART, unit=PI),
    ),
    {"name": NAMES},
    (Verify((Op("k", "360 / w"), Op("y", "answer * k"), Op("z", "sqrt(y)"), Op("v", "2 * z")), "v", "d"),),
    (
        Bound(
            "s < r ** 2",
            "a sector is less than the whole circle of radius {r}, so the factor {s} must be less than [{r}^2]",
        ),
    ),
    largest=9000,
)

_WHEEL = Story(
    (
        "A wheel with a diameter of {d} cm turns {n} times. How many metres does it roll? Give the answer in "
        "terms of [π].",
        "The wheels of a cart are {d} cm across. How many metres does the cart go while a wheel makes {n} turns? "
        "Leave [π] in the answer.",
        "{name} rolls a hoop of diameter {d} cm, and it turns {n} times. Find the distance in metres, as a "
        "multiple of [π].",
        "Rope is wound {n} times around a drum that is {d} cm thick. How many metres of rope are this, in terms "
        "of [π]?",
    ),
    {"d": Given(range(10, 80, 2), "cm as diameter"), "n": Given(range(50, 450, 50), "turns")},
    (
        Op(
            "c",
            "d",
            "the circumference in cm",
            (
                "In one turn it goes {eq} cm.",
                "{What} is [π] times the diameter, {eq}.",
                "{What} is {eq}.",
                "By the formula [π d], {what} is {eq}.",
            ),
            (
                Mistake(
                    FORMULA,
                    "2 * d",
                    ("With the formula [2 π r], {what} is {eq}.", "In one turn it goes {eq} cm."),
                ),
                Mistake(FORMULA, "d ** 2", ("In one turn it goes {eq} cm.", "{What} is {eq}.")),
                Mistake(CASE, "d / 2", ("With the formula [π r], {what} is {eq}.",)),
            ),
            PI,
        ),
        Op("t", "c * n", "the distance in cm", unit=PI),
        Op(
            "m",
            "t / 100",
            "the distance in metres",
            (
                "A metre has [100] cm, so this is {eq} metres.",
                "In metres we have {eq}.",
                "{What} is {eq}.",
                "Converting to metres: {eq}.",
            ),
            unit=PI,
        ),
    ),
    {"name": NAMES},
    (Verify((Op("x", "answer * 100"), Op("y", "x / n")), "y", "d"),),
    largest=4_000_000,
)

_ARC = Story(
    (
        "A circle has radius {r}. Find the length of an arc with a central angle of {w} degrees, in terms of [π].",
        "What is the length of the arc that belongs to an angle of {w} degrees at the centre of a circle with "
        "radius {r}? Leave [π] in the answer.",
        "A pendulum of {r} cm swings through {w} degrees. How many cm does its end travel, in terms of [π]?",
        "{name} walks along a circle of radius {r} m through an angle of {w} degrees at the centre. Express the "
        "length of the walk in metres as a multiple of [π].",
    ),
    {"r": Given(range(2, 48), "as radius"), "w": _SLICES},
    (
        Op(
            "c",
            "2 * r",
            "the circumference",
            _ROUND,
            (
                Mistake(
                    FORMULA,
                    "r ** 2",
                    ("With [π r^2] we get {eq} for {what}.", "By the formula [π r^2], {what} is {eq}."),
                ),
                Mistake(DROPPED, "r", ("With [π r] we get {eq} for {what}.", "{What} is {eq}.")),
            ),
            PI,
        ),
        _COUNT,
        Op(
            "l",
            "c / k",
            "the length of the arc",
            _PART,
            unit=PI,
        ),
    ),
    {"name": NAMES},
    (Verify((Op("k", "360 / w"), Op("y", "answer * k"), Op("z", "y / 2")), "z", "r"),),
    (Bound("l < 2 * r", "an arc is shorter than the circle, so the factor {l} must be less than [2 * {r}]"),),
)

_RING = Story(
    (
        "A round pond has radius {r} m. A path {w} m wide runs around it. What is the area of the path in square "
        "metres, in terms of [π]?",
        "Around a circular lawn of radius {r} m lies a strip of flowers {w} m wide. Find the area of the strip. "
        "Leave [π] in the answer.",
        "Two circles have the same centre. The inner one has radius {r}, and the ring between them is {w} wide. "
        "Compute the area of the ring in terms of [π].",
        "A washer has a hole of radius {r} mm and is {w} mm wide all around. What is the area of its face in mm², "
        "in terms of [π]?",
    ),
    {"r": Given(range(3, 25), "as inner radius"), "w": Given(range(2, 11), "as width")},
    (
        Op(
            "q",
            "r + w",
            "the outer radius",
            (
                "The outer radius is {eq}.",
                "{What}: {eq}.",
                "The larger circle has radius {eq}.",
                "Adding the width, we get the outer radius {eq}.",
            ),
            (Mistake(INFERENCE, "w", ("The outer radius is {eq}.", "The outer circle has radius {eq}.")),),
        ),
        Op(
            "a",
            "q ** 2",
            "the area of the large circle",
            _AREA[1:],
            (Mistake(FORMULA, "2 * q", ("With [2 π r] we get {eq} for {what}.",)),),
            PI,
        ),
        Op(
            "b",
            "r ** 2",
            "the area of the small circle",
            _AREA[1:],
            (Mistake(FORMULA, "2 * r", ("With [2 π r] we get {eq} for {what}.",)),),
            PI,
        ),
        Op(
            "c",
            "a - b",
            "the area of the ring",
            (
                "The difference is the ring: {eq}.",
                "{What} is {eq}.",
                "Subtracting, we get {eq}.",
                "What is left is {eq}.",
            ),
            (
                Mistake(
                    INFERENCE,
                    "w ** 2",
                    (
                        "The ring is [{w}] wide, so its area is {eq}.",
                        "With the width as radius, the ring has area {eq}.",
                    ),
                ),
            ),
            PI,
        ),
    ),
    {},
    (Verify((Op("x", "r ** 2"), Op("y", "answer + x"), Op("z", "sqrt(y)"), Op("v", "z - r")), "v", "w"),),
    (Bound("c < q ** 2", "the ring is less than the large circle, so the factor {c} must be less than [{q}^2]"),),
    largest=1500,
    smallest=-600,
)

_RADIUS = Story(
    (
        "Each of {n} rings of wire encloses an area of [{a}π]. How long is the wire of all the rings, in terms of "
        "[π]?",
        "The area of a round plate is [{a}π] cm². {name} glues a ribbon around {n} such plates. How many cm of "
        "ribbon are needed, in terms of [π]?",
        "Find the sum of the circumferences of {n} circles that each have area [{a}π], in terms of [π].",
    ),
    {"a": Given((), "as factor in the area", made="r * r"), "n": Given(range(2, 13), "circles")},
    (
        Op(
            "r",
            "sqrt(a)",
            "the radius",
            (
                "The area [{a}π] is [π r^2], so the radius is {eq}.",
                "The radius is {eq}.",
                "{What} is the root {eq}.",
                "Taking the root, we find the radius {eq}.",
            ),
            (
                Mistake(
                    INFERENCE,
                    "a / 2",
                    (
                        "The area [{a}π] is [π r^2], so the radius is {eq}.",
                        "Undoing the square, the radius is {eq}.",
                    ),
                ),
                Mistake(CASE, "a", ("Dividing by [π], the radius is {eq}.",)),
            ),
        ),
        Op(
            "c",
            "2 * r",
            "the circumference",
            _ROUND,
            (
                Mistake(DROPPED, "r", ("With [π r] we get {eq} for {what}.", "{What} is {eq}.")),
                Mistake(FORMULA, "r ** 2", ("By the formula [π r^2], {what} is {eq}.",)),
            ),
            PI,
        ),
        Op("t", "c * n", "the total length", unit=PI),
    ),
    {"name": NAMES},
    (Verify((Op("x", "answer / n"), Op("y", "x / 2"), Op("z", "y ** 2")), "z", "a"),),
    seeds={"r": Given(range(3, 16), "")},
    largest=2500,
)

CIRCLES = (_SECTOR, _WHEEL, _ARC, _RING, _RADIUS)
