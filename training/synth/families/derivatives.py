"""Derivatives: slopes of polynomials, tangent lines, speeds and the chain rule."""

from stepsight.training.synth.families.names import NAMES
from stepsight.training.synth.plant import DROPPED, FORMULA, INFERENCE, SIGN
from stepsight.training.synth.story import Given, Mistake, Op, Story, Verify

_POINT = Given((-4, -3, -2, 2, 3, 4, 5), "as x")
_CONSTANT = Given((*range(-12, 0), *range(1, 13)), "as constant")
_FACTOR = Given((*range(-9, 0), *range(1, 10)), "as factor of x")


def _term(term: str, derived: str) -> tuple[str, ...]:
    """Ways to say that `term` has the derivative `derived`, whose factor is the result."""
    return (
        f"The derivative of [{term}] is [{derived}], as {{eq}}.",
        f"With {{eq}}, [{term}] becomes [{derived}].",
        f"By the power rule, [{term}] gives [{derived}]: the factor is {{eq}}.",
        f"Differentiating [{term}], the factor is {{eq}}, so we have [{derived}].",
        f"Since {{eq}}, the term [{term}] has derivative [{derived}].",
    )


_CUBIC = Story(
    (
        "Let [f(x) = <a,b,c,e>]. Find [f'({p})].",
        "What is the derivative of [<a,b,c,e>] at [x = {p}]?",
        "Compute the slope of the curve [y = <a,b,c,e>] at [x = {p}].",
        "The function f is given by [f(x) = <a,b,c,e>]. Evaluate its derivative at [{p}].",
        "How steep is the graph of [f(x) = <a,b,c,e>] where [x = {p}]?",
    ),
    {
        "a": Given((1, 2, 3, 4, 5), "as factor of the cube"),
        "b": Given((-6, -5, -4, -3, -2, 2, 3, 4, 5, 6), "as factor of the square"),
        "c": _FACTOR,
        "e": Given(_CONSTANT.values, ""),
        "p": _POINT,
    },
    (
        Op(
            "k",
            "3 * a",
            "the factor of x^2 in the derivative",
            _term("<a,0,0,0>", "<k,0,0>"),
            (
                Mistake(FORMULA, "a", ("By the power rule, [<a,0,0,0>] becomes [<k,0,0>].",)),
                Mistake(FORMULA, "2 * a", _term("<a,0,0,0>", "<k,0,0>")),
            ),
        ),
        Op(
            "m",
            "2 * b",
            "the factor of x in the derivative",
            _term("<b,0,0>", "<m,0>"),
            (Mistake(FORMULA, "b", ("By the power rule, [<b,0,0>] becomes [<m,0>].",)),),
        ),
        Op(
            "u",
            "k * p ** 2",
            "the first term at {p}",
            (
                "At [x = {p}], [<k,0,0>] is {eq}.",
                "{What} is {eq}.",
                "Put [x = {p}] into [<k,0,0>]: {eq}.",
                "The first term becomes {eq}.",
            ),
            (
                Mistake(INFERENCE, "k * p ** 3", ("Put [x = {p}] into the first term: {eq}.",)),
                Mistake(SIGN, "-k * p ** 2", ("The first term becomes {eq}.",)),
            ),
        ),
        Op(
            "v",
            "m * p",
            "the second term at {p}",
            (
                "At [x = {p}], [<m,0>] is {eq}.",
                "{What} is {eq}.",
                "Put [x = {p}] into [<m,0>]: {eq}.",
                "The second term becomes {eq}.",
            ),
        ),
        Op(
            "d",
            "u + v + c",
            "the derivative at {p}",
            (
                "Adding up, [f'({p})] is {eq}.",
                "{What} is {eq}.",
                "Together with the derivative of [<c,0>], we get {eq}.",
                "The sum is {eq}.",
                "So the slope there is {eq}.",
            ),
            (
                Mistake(
                    INFERENCE,
                    "u + v + c + e",
                    ("With the last two terms, [f'({p})] is {eq}.", "The constant stays, so the slope is {eq}."),
                ),
                Mistake(
                    DROPPED, "u + v", ("The rest is constant, so the slope there is {eq}.", "The sum is {eq}.")
                ),
            ),
        ),
    ),
    {},
    (Verify((Op("w", "3 * a * p ** 2"), Op("x", "answer - w"), Op("y", "2 * b * p"), Op("z", "x - y")), "z", "c"),),
    largest=600,
    smallest=-600,
)

_TANGENT = Story(
    (
        "The tangent to the parabola [y = <a,b,c>] at [x = {p}] meets the y-axis at which y?",
        "Find the y-intercept of the tangent line to [f(x) = <a,b,c>] at [x = {p}].",
        "A line touches the graph of [f(x) = <a,b,c>] at the point with [x = {p}]. At what height does it cross "
        "the y-axis?",
        "Let t be the tangent of [y = <a,b,c>] in the point where [x = {p}]. Determine where t cuts the y-axis.",
    ),
    {
        "a": Given((-3, -2, 1, 2, 3, 4), "as factor of the square"),
        "b": _FACTOR,
        "c": _CONSTANT,
        "p": _POINT,
    },
    (
        Op(
            "y",
            "a * p ** 2 + b * p + c",
            "the y of the point",
            (
                "The point has [y] equal to {eq}.",
                "{What} is {eq}.",
                "At [x = {p}] the curve has the height {eq}.",
                "First the value at [{p}]: {eq}.",
            ),
        ),
        Op(
            "m",
            "2 * a * p + b",
            "the slope of the tangent",
            (
                "The slope is [f'({p})], which is {eq}.",
                "{What} is {eq}.",
                "The derivative at [{p}] is {eq}.",
                "Differentiating, we find the slope {eq}.",
            ),
            (
                Mistake(FORMULA, "a * p + b", ("The derivative at [{p}] is {eq}.", "{What} is {eq}.")),
                Mistake(
                    INFERENCE, "y / p", ("The slope is height over width, {eq}.", "As y over x, the slope is {eq}.")
                ),
                Mistake(FORMULA, "2 * a + b", ("The derivative is {eq}, the slope of the tangent.",)),
            ),
        ),
        Op(
            "r",
            "m * p",
            "the rise from the y-axis to the point",
            (
                "From the y-axis to the point the tangent rises by {eq}.",
                "{What} is {eq}.",
                "Over the width [{p}] it climbs {eq}.",
                "Slope times [{p}] is {eq}.",
            ),
        ),
        Op(
            "q",
            "y - r",
            "the y-intercept",
            (
                "{What} is {eq}.",
                "It meets the y-axis at {eq}.",
                "Going back to the y-axis, we get {eq}.",
                "Hence {eq}.",
            ),
            (
                Mistake(SIGN, "r - y", ("It meets the y-axis at {eq}.", "{What} is {eq}.")),
                Mistake(INFERENCE, "c", ("The tangent meets the y-axis where the curve does, at {eq}.",)),
            ),
        ),
    ),
    {},
    (Verify((Op("w", "a * p ** 2"), Op("x", "answer + w")), "x", "c", "compare coefficients"),),
    largest=400,
    smallest=-400,
)

_SPEED = Story(
    (
        "After t seconds a car has gone [<t;a,b,0>] metres. How many metres has it gone when its speed is {v} m/s?",
        "The position of a ball after t seconds is [s(t) = <t;a,b,0>] metres. Find its position at the moment "
        "when its velocity is {v} m/s.",
        "{name} cycles downhill; the way after t seconds is [s = <t;a,b,0>] in metres. How long is the way when "
        "the speed reaches {v} m/s?",
    ),
    {
        "a": Given(range(2, 8), "as factor of the squared time"),
        "b": Given(range(2, 20), "as factor of the time"),
        "v": Given((), "m/s", made="2 * a * t + b"),
    },
    (
        Op(
            "k",
            "2 * a",
            "the factor of t in the speed",
            _term("<t;a,0,0>", "<t;k,0>"),
            (
                Mistake(FORMULA, "a", ("The derivative of [<t;a,0,0>] is [<t;k,0>].",)),
                Mistake(INFERENCE, "3 * a", ("By the power rule, the factor of t is {eq}.",)),
            ),
        ),
        Op(
            "r",
            "v - b",
            "the speed gained",
            (
                "The speed is [<t;k,b>], so [<t;k,0>] must be {eq}.",
                "{What} is {eq}.",
                "Set the derivative [<t;k,b>] equal to [{v}]: [<t;k,0>] is {eq}.",
                "Without the first speed [{b}] there remain {eq}.",
            ),
            (
                Mistake(SIGN, "v + b", ("Moving [{b}] over, [<t;k,0>] is {eq}.",)),
                Mistake(DROPPED, "v", ("The derivative is [<t;k,0>], which must be {eq}.",)),
            ),
        ),
        Op("t", "r / k", "the time", ("So the time is {eq}.", "This happens at {eq} seconds.", "{What} is {eq}.")),
        Op(
            "s",
            "a * t ** 2 + b * t",
            "the way",
            ("{What} is then {eq}.", "By then it has gone {eq} metres.", "Putting in the time, we get {eq}."),
            (Mistake(INFERENCE, "v * t", ("At this speed the way is {eq}.", "Speed times time is {eq}.")),),
        ),
    ),
    {"name": NAMES},
    seeds={"t": Given(range(2, 12), "")},
    largest=1500,
    smallest=-50,
)

_CHAIN = Story(
    (
        "Let [f(x) = (<a,b>)^{n}]. Find [f'({p})].",
        "What is the slope of [y = (<a,b>)^{n}] at [x = {p}]?",
        "Compute the derivative of [(<a,b>)^{n}] at [x = {p}].",
        "Differentiate [g(x) = (<a,b>)^{n}] and evaluate at [x = {p}].",
    ),
    {
        "a": Given(range(2, 7), "as factor of x"),
        "b": Given((-7, -6, -5, -4, -3, -2, -1, 1, 2, 3, 4, 5), "as constant"),
        "n": Given((3, 4), "as exponent", fixed=True),
        "p": Given((-2, -1, 1, 2, 3), "as x", fixed=True),
    },
    (
        Op(
            "u",
            "a * p + b",
            "the inner value",
            (
                "The bracket is {eq}.",
                "{What} is {eq}.",
                "Inside we have {eq}.",
                "At [{p}] the bracket becomes {eq}.",
            ),
        ),
        Op("e", "n - 1", "the new exponent"),
        Op(
            "w",
            "u ** e",
            "the power in the derivative",
            (
                "The power is {eq}.",
                "{What} is {eq}.",
                "Raising the bracket, we get {eq}.",
                "This gives the power {eq}.",
            ),
            (
                Mistake(INFERENCE, "u ** n", ("The power is {eq}.", "{What} is {eq}.")),
                Mistake(FORMULA, "u * e", ("The power is {eq}.",)),
            ),
        ),
        Op(
            "d",
            "n * w * a",
            "the derivative at {p}",
            (
                "By the chain rule, {what} is {eq}.",
                "With the inner derivative [{a}], we get {eq}.",
                "Exponent, power and inner derivative multiply to {eq}.",
                "{What} is {eq}.",
            ),
            (
                Mistake(
                    FORMULA,
                    "n * w",
                    ("By the power rule, {what} is {eq}.", "Exponent and power multiply to {eq}."),
                ),
                Mistake(INFERENCE, "n * w + a", ("Adding the inner derivative [{a}], we get {eq}.",)),
                Mistake(DROPPED, "w * a", ("With the inner derivative [{a}], we get {eq}.",)),
            ),
        ),
    ),
    {},
    (
        Verify(
            (
                Op("e", "n - 1"),
                Op("u", "a * p + b"),
                Op("w", "u ** e"),
                Op("x", "answer / w"),
                Op("y", "x / a"),
            ),
            "y",
            "n",
        ),
    ),
    largest=9000,
    smallest=-9000,
)

DERIVATIVES = (_CUBIC, _TANGENT, _SPEED, _CHAIN)
