"""Linear equations: their solutions as chains of operations on both sides."""

from stepsight.training.synth.families.names import NAMES
from stepsight.training.synth.plant import DROPPED, FORMULA, INFERENCE, SIGN
from stepsight.training.synth.story import Given, Mistake, Op, Story, Verify

_SUBTRACT = (
    "Subtract [{%s}] from both sides: {weq}.",
    "Subtracting [{%s}] gives {wres}.",
    "Take [{%s}] away: {weq}.",
    "After subtracting [{%s}], {weq}.",
    "Moving [{%s}] to the other side, {weq}.",
)
_ADD = (
    "Add [{%s}] to both sides: {weq}.",
    "Adding [{%s}] gives {wres}.",
    "Add [{%s}]: {weq}.",
    "After adding [{%s}], {weq}.",
    "Bring [{%s}] to the right: {weq}.",
)
_DIVIDE = (
    "Divide by [{%s}]: {weq}.",
    "Dividing by [{%s}] gives {wres}.",
    "Divide both sides by [{%s}]: {weq}.",
    "So {weq}.",
    "We divide both sides by [{%s}] and obtain {weq}.",
)
_MULTIPLY = (
    "Multiply by [{%s}]: {weq}.",
    "Multiplying by [{%s}] gives {wres}.",
    "Multiply both sides by [{%s}]: {weq}.",
    "Then {weq}.",
    "We multiply both sides by [{%s}] and obtain {weq}.",
)
_COLLECT = (
    "Collect the x terms: the factor of x is {eq}.",
    "Bring the x terms together, {eq}.",
    "With all x on the left, their factor is {eq}.",
    "The x terms combine to [<k,0>], as {eq}.",
    "Subtract the x term of the right side: the factor {eq} remains.",
)
_EXPAND = (
    "Expanding the bracket gives the constant {eq}.",
    "Multiply out: the constant on the left is {eq}.",
    "The bracket contributes {eq}.",
    "By the distributive law the constant is {eq}.",
)
_ASKS = (
    "Solve {eq} for x.",
    "Find x if {eq}.",
    "What is x when {eq}?",
    "Let {eq}. Find the value of x.",
    "Determine the solution of the equation {eq}.",
    "For which value of x does {eq} hold?",
)
_OUTLINES = (
    "We isolate x.",
    "Undo the operations one by one.",
    "Get x alone on one side.",
    "We solve for x step by step.",
)


_WORDED = (
    ("gives {wres}", "gives {res} for {what}"),
    ("and obtain {weq}", "and obtain {eq} for {what}"),
    ("{weq}", "{what} is {eq}"),
)


def _says(templates: tuple[str, ...], key: str, what: str = "[x]") -> tuple[str, ...]:
    """Templates about `key`; a result named in words cannot stand in an equation."""
    filled = tuple(template.replace("%s", key) for template in templates)
    for old, new in () if what.startswith("[") else _WORDED:
        filled = tuple(template.replace(old, new) for template in filled)
    return filled


def _turned(key: str, left: str, right: str, what: str, adds: bool) -> Op:
    """An op that moves a term to the other side; with its sign kept it is a sign error."""
    says, other = (_ADD, _SUBTRACT) if adds else (_SUBTRACT, _ADD)
    sign, turned = ("+", "-") if adds else ("-", "+")
    mistake = Mistake(SIGN, f"{left} {turned} {right}", _says(other, right, what))
    return Op(key, f"{left} {sign} {right}", what, _says(says, right, what), (mistake,))


def _divided(left: str, right: str, key: str = "x", what: str = "[x]") -> Op:
    mistake = Mistake(FORMULA, f"{left} - {right}", _says(_SUBTRACT, right, what))
    return Op(key, f"{left} / {right}", what, _says(_DIVIDE, right, what), (mistake,))


def _multiplied(left: str, right: str, key: str = "x", what: str = "[x]") -> Op:
    mistake = Mistake(FORMULA, f"{left} + {right}", _says(_ADD, right, what))
    return Op(key, f"{left} * {right}", what, _says(_MULTIPLY, right, what), (mistake,))


def _expanded(key: str, formula: str, dropped: str) -> Op:
    """The constant that a bracket contributes; its factor left out is a dropped term."""
    mistake = Mistake(DROPPED, dropped, tuple(say.replace("{eq}", "{res}") for say in _EXPAND[:3]))
    return Op(key, formula, "the constant of the bracket", _EXPAND, (mistake,))


def _asked(equation: str) -> tuple[str, ...]:
    return tuple(ask.replace("{eq}", f"[{equation}]") for ask in _ASKS)


def _linear(
    equation: str, givens: dict[str, Given], ops: tuple[Op, ...], verify: Verify, fits: tuple[str, ...] = ()
) -> Story:
    return Story(
        _asked(equation),
        givens,
        ops,
        verifies=(verify,),
        fits=fits,
        largest=600,
        outlines=_OUTLINES,
        reads=False,
        seeds={"h": Given(range(2, 20), "")},
    )


def _back(*formulas: str, found: str = "", given: str = "c") -> Verify:
    """Both sides of the equation for the answer, in keys from v0 on."""
    ops = tuple(Op(f"v{i}", formula) for i, formula in enumerate(formulas))
    return Verify(ops, found or ops[-1].key, given, "substitute")


_A = Given(range(2, 13), "as factor of x", fixed=True)
_B = Given(range(3, 60), "as constant")
_C = Given(range(10, 200), "on the right")
_LEFT = Given(range(7, 15), "as factor of x on the left", fixed=True)
_RIGHT = Given(range(2, 6), "as factor of x on the right")
_INSIDE = Given(range(2, 20), "in the bracket")

_PLAIN = (
    _linear(
        "{a}x + {b} = {c}",
        {"a": _A, "b": _B, "c": _C},
        (_turned("s", "c", "b", "the x term", adds=False), _divided("s", "a")),
        _back("a * answer", "v0 + b"),
    ),
    _linear(
        "{a}x - {b} = {c}",
        {"a": _A, "b": _B, "c": _C},
        (_turned("s", "c", "b", "the x term", adds=True), _divided("s", "a")),
        _back("a * answer", "v0 - b"),
    ),
    _linear(
        "{a}(x + {b}) = {c}",
        {"a": _A, "b": _INSIDE, "c": _C},
        (
            _divided("c", "a", "s", "the bracket"),
            _turned("x", "s", "b", "[x]", adds=False),
        ),
        _back("answer + b", "a * v0"),
    ),
    _linear(
        "x/{a} + {b} = {c}",
        {"a": Given(range(2, 13), "under x"), "b": _B, "c": Given(range(10, 90), "on the right")},
        (_turned("s", "c", "b", "the fraction", adds=False), _multiplied("s", "a")),
        _back("answer / a", "v0 + b"),
    ),
    _linear(
        "(x - {b})/{a} = {c}",
        {"b": _B, "a": Given(range(2, 13), "under the line"), "c": Given(range(2, 25), "on the right")},
        (
            _multiplied("c", "a", "s", "the numerator"),
            _turned("x", "s", "b", "[x]", adds=True),
        ),
        _back("answer - b", "v0 / a"),
    ),
    _linear(
        "{b} - {a}x = {c}",
        {
            "b": Given(range(60, 200), "on the left"),
            "c": Given(range(3, 50), "on the right"),
            "a": Given(range(2, 10), "as the number before x", fixed=True),
        },
        (
            Op(
                "s",
                "b - c",
                "the term that is taken away",
                (
                    "What is taken away must be {eq}.",
                    "The x term makes up the difference {eq}.",
                    "{What} is {eq}.",
                    "Bring the x term to the right and [{c}] to the left: {eq}.",
                ),
                (Mistake(SIGN, "b + c", ("Bring [{c}] to the left: {eq}.", "{What} is {eq}.")),),
            ),
            _divided("s", "a"),
        ),
        _back("a * answer", "b - v0"),
    ),
    _linear(
        "{u}x/{v} = {c}",
        {
            "c": Given((), "on the right", made="u * h"),
            "v": Given((3, 4, 5, 7, 8, 9), "under the line", fixed=True),
            "u": Given((2, 3, 4, 5, 6), "as factor above the line", fixed=True),
        },
        (
            Op(
                "s",
                "c * v",
                "the numerator",
                (
                    *_says(_MULTIPLY[:1], "v", "the numerator"),
                    "The numerator is {eq}.",
                    "Clear the fraction: {eq}.",
                    "Multiplying up, {eq}.",
                ),
            ),
            _divided("s", "u"),
        ),
        _back("u * answer", "v0 / v"),
        ("u < v", "gcd(u, v) < 2"),
    ),
)

_BOTH_SIDES = (
    _linear(
        "{a}x + {b} = {d}x + {e}",
        {"a": _LEFT, "d": _RIGHT, "b": _B, "e": Given(range(20, 150), "as constant on the right")},
        (
            Op("k", "a - d", "the factor of x", _COLLECT, (Mistake(SIGN, "a + d", _COLLECT[:4]),)),
            _turned("s", "e", "b", "[<k,0>]", adds=False),
            _divided("s", "k"),
        ),
        _back("a * answer", "v0 + b", "d * answer", "v2 + e", found="v1", given="v3"),
        ("k > 1",),
    ),
    _linear(
        "{a}x - {b} = {d}x + {e}",
        {"a": _LEFT, "d": _RIGHT, "b": _B, "e": Given(range(10, 90), "as constant on the right")},
        (
            Op("k", "a - d", "the factor of x", _COLLECT, (Mistake(SIGN, "a + d", _COLLECT[:4]),)),
            _turned("s", "e", "b", "[<k,0>]", adds=True),
            _divided("s", "k"),
        ),
        _back("a * answer", "v0 - b", "d * answer", "v2 + e", found="v1", given="v3"),
        ("k > 1",),
    ),
    _linear(
        "{a}(x + {b}) = {d}x + {e}",
        {
            "a": _LEFT,
            "b": Given(range(2, 9), "in the bracket"),
            "d": _RIGHT,
            "e": Given((), "as constant on the right", made="a * b + a * h - d * h"),
        },
        (
            _expanded("p", "a * b", "b"),
            Op("k", "a - d", "the factor of x", _COLLECT, (Mistake(SIGN, "a + d", _COLLECT[:4]),)),
            _turned("s", "e", "p", "[<k,0>]", adds=False),
            _divided("s", "k"),
        ),
        _back("answer + b", "a * v0", "d * answer", "v2 + e", found="v1", given="v3"),
        ("k > 1",),
    ),
    _linear(
        "{a}(x - {b}) + {c} = {d}",
        {
            "a": _A,
            "b": _INSIDE,
            "d": Given(range(20, 120), "on the right"),
            "c": Given(range(2, 40), "added to the bracket"),
        },
        (
            _turned("t", "d", "c", "the product on the left", adds=False),
            _divided("t", "a", "s", "the bracket"),
            _turned("x", "s", "b", "[x]", adds=True),
        ),
        _back("answer - b", "a * v0", "v1 + c", given="d"),
    ),
    _linear(
        "{a}x + {b}(x + {c}) = {d}",
        {
            "a": Given(range(2, 9), "as first factor of x"),
            "b": Given(range(2, 8), "in front of the bracket"),
            "c": Given(range(2, 12), "in the bracket"),
            "d": Given((), "on the right", made="a * h + b * h + b * c"),
        },
        (
            Op(
                "k",
                "a + b",
                "the factor of x",
                (
                    "Multiply out and collect: the factor of x is {eq}.",
                    "Together the x terms have the factor {eq}.",
                    "The x terms combine to [<k,0>], as {eq}.",
                    "{What} is {eq}.",
                ),
            ),
            _expanded("p", "b * c", "c"),
            _turned("s", "d", "p", "[<k,0>]", adds=False),
            _divided("s", "k"),
        ),
        _back("a * answer", "answer + c", "b * v1", "v0 + v2", given="d"),
    ),
)
_SIGNED = Story(
    _asked("<a,b> = {c}"),
    {
        "b": Given(
            (-30, -25, -19, -17, -14, -12, -9, -8, -6, -5, -4, -3, 3, 4, 7, 8, 10, 13, 16, 21), "as constant"
        ),
        "a": Given((-9, -8, -7, -6, -5, -4, -3, -2), "as factor of x", fixed=True),
        "c": Given((), "on the right", made="a * h + b"),
    },
    (
        Op(
            "s",
            "c - b",
            "the x term",
            (
                "Bring the constant to the right: {eq}.",
                "The x term equals {eq}.",
                "Isolate the x term: {eq}.",
                "Subtract the constant on both sides: {eq}.",
            ),
            (Mistake(SIGN, "c + b", ("Bring the constant to the right: {eq}.", "The x term equals {eq}.")),),
        ),
        Op(
            "x",
            "s / a",
            "[x]",
            _says(_DIVIDE, "a"),
            (
                Mistake(SIGN, "-s / a", ("Divide by the factor of x: {wres}.", "So {wres}.")),
                Mistake(FORMULA, "s - a", ("Bring the factor [{a}] over: {weq}.",)),
            ),
        ),
    ),
    {},
    (_back("a * answer", "v0 + b"),),
    fits=("c != 0", "s != 0"),
    smallest=-300,
    outlines=_OUTLINES,
    reads=False,
    seeds={"h": Given((-12, -9, -8, -7, -6, -5, -4, -3, -2, 2, 3, 4, 5, 6, 7, 8, 9, 11), "")},
)

_TIMES = Given(range(2, 13), "times the number", fixed=True)
_NUMBERS = (
    Story(
        (
            "A number is multiplied by {a}, and then {b} is added. The result is {c}. What is the number?",
            "{name} thinks of a number, takes it {a} times and adds {b}. That gives {c}. Find the number.",
            "{b} more than {a} times a number is {c}. Find the number.",
            "If {a} times a number is increased by {b}, one gets {c}. Which number is it?",
        ),
        {"a": _TIMES, "b": Given(range(3, 60), "added"), "c": Given(range(10, 200), "as result")},
        (
            Op(
                "s",
                "c - b",
                "the number before the addition",
                mistakes=(Mistake(SIGN, "c + b", ("Before the addition it was {eq}.", "{What} is {eq}.")),),
            ),
            Op(
                "x",
                "s / a",
                "the number",
                mistakes=(
                    Mistake(INFERENCE, "s - a", ("Going back from {a} times, {eq}.", "So the number is {eq}.")),
                ),
            ),
        ),
        {"name": NAMES},
        (_back("a * answer", "v0 + b"),),
    ),
    Story(
        (
            "{b} is added to a number, and the sum is multiplied by {a}. The result is {c}. Find the number.",
            "{name} thinks of a number, adds {b} and takes the sum {a} times. The result is {c}. What was the "
            "number?",
            "{a} times the sum of a number and {b} is {c}. What is the number?",
        ),
        {"a": _TIMES, "b": Given(range(2, 20), "added"), "c": Given((), "as result", made="a * h + a * b")},
        (
            Op(
                "s",
                "c / a",
                "the sum",
                mistakes=(Mistake(INFERENCE, "c - a", ("Going back, the sum is {eq}.",)),),
            ),
            Op(
                "x",
                "s - b",
                "the number",
                mistakes=(Mistake(SIGN, "s + b", ("So the number is {eq}.", "{What} is {eq}.")),),
            ),
        ),
        {"name": NAMES},
        (_back("answer + b", "a * v0"),),
        seeds={"h": Given(range(2, 30), "")},
        largest=900,
    ),
    Story(
        (
            "The sum of {n} consecutive integers is {s}. What is the largest of them?",
            "{n} consecutive whole numbers add to {s}. Find the greatest one.",
            "Find the largest of {n} consecutive integers with the sum {s}.",
        ),
        {"s": Given((), "as sum", made="n * h"), "n": Given((3, 5, 7, 9), "consecutive integers", fixed=True)},
        (
            Op(
                "m",
                "s / n",
                "the middle number",
                (
                    "The middle number is their average: {eq}.",
                    "{What} is {eq}.",
                    "Divide the sum by their number to get the middle one: {eq}.",
                    "By symmetry, the one in the middle is {eq}.",
                ),
            ),
            Op("d", "n - 1", "the number of steps from the first to the last"),
            Op(
                "h",
                "d / 2",
                "the number of steps from the middle to the end",
                mistakes=(Mistake(DROPPED, "d", ("From the middle to the end it is {res} steps.",)),),
            ),
            Op("x", "m + h", "the largest number"),
        ),
        {},
        (_back("n - 1", "v0 / 2", "answer - v1", "n * v2", given="s"),),
        largest=600,
        seeds={"h": Given(range(8, 60), "")},
    ),
    Story(
        (
            "{name} and {other} start with the same number. {name} takes it {a} times and subtracts {b}; {other} "
            "takes it "
            "{d} times and adds {e}. Both get the same. Which number was it?",
            "{a} times a number, less {b}, is the same as {d} times the number and {e}. Find the number.",
            "Taking a number {a} times and then {b} away gives as much as taking it {d} times and adding {e}. "
            "What is the "
            "number?",
        ),
        {
            "a": Given(range(5, 12), "times the number first", fixed=True),
            "d": Given(range(2, 5), "times the number second", fixed=True),
            "b": Given(range(2, 40), "taken away"),
            "e": Given(range(4, 60), "added"),
        },
        (
            Op("k", "a - d", "the factor that is left", mistakes=(Mistake(SIGN, "a + d", ("{What} is {eq}.",)),)),
            Op(
                "s",
                "e + b",
                "the constant",
                mistakes=(Mistake(SIGN, "e - b", ("Bringing the constants together, {eq}.", "{What} is {eq}.")),),
            ),
            Op("x", "s / k", "the number"),
        ),
        {"name": NAMES[:5], "other": NAMES[5:]},
        (_back("a * answer", "v0 - b", "d * answer", "v2 + e", found="v1", given="v3"),),
    ),
)

EQUATIONS = (*_PLAIN, *_BOTH_SIDES, _SIGNED, *_NUMBERS)
