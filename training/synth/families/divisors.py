"""Divisors: common divisors and multiples, and how many there are."""

from stepsight.training.synth.families.names import NAMES
from stepsight.training.synth.plant import CASE, FORMULA, INFERENCE
from stepsight.training.synth.story import Bound, Given, Mistake, Op, Story, Verify

_LCM = Story(
    (
        "Find the least common multiple of {a} and {b}.",
        "What is the smallest positive number that both {a} and {b} divide?",
        "Compute the least common multiple of the numbers {a} and {b}.",
        "One light flashes every {a} seconds, another every {b} seconds. Both flash now. In how many seconds "
        "will they "
        "next flash together?",
    ),
    {
        "a": Given((), "as first number", made="k * u"),
        "b": Given((), "as second number", made="k * v"),
    },
    (
        Op(
            "g",
            "gcd(a, b)",
            "the greatest common divisor",
            (
                "The greatest common divisor is {eq}.",
                "First, {eq}.",
                "We have {eq}.",
                "The largest number that divides both is [{g}].",
                "Both are divisible by [{g}], and by nothing greater.",
            ),
            (
                Mistake(
                    INFERENCE,
                    "abs(b - a)",
                    (
                        "The greatest common divisor is their difference, {eq}.",
                        "We have {eq} as the common divisor.",
                    ),
                ),
                Mistake(CASE, "1", ("The numbers have no common divisor but [{g}].",)),
            ),
        ),
        Op("p", "a * b", "the product of the numbers"),
        Op(
            "l",
            "p / g",
            "the least common multiple",
            (
                "Divide the product by the greatest common divisor: {eq}.",
                "So {what} is {eq}.",
                "{What} is {eq}.",
                "Hence {eq} for {what}.",
            ),
            (
                Mistake(
                    FORMULA,
                    "p",
                    ("The product is the least common multiple: {res}.", "So {what} is {res}.", "{What} is {res}."),
                ),
            ),
        ),
    ),
    {},
    (Verify((Op("m", "gcd(a, b)"), Op("n", "answer * m"), Op("q", "n / b")), "q", "a", "divide back"),),
    (
        Bound("l <= a * b", "{l} must not be above the product [{a} * {b}]"),
        Bound("mod(l, a) == 0", "{l} must be a multiple of {a}"),
        Bound("mod(l, b) == 0", "{l} must be a multiple of {b}"),
    ),
    fits=("a != b", "mod(a, b) > 0", "mod(b, a) > 0"),
    largest=4000,
    seeds={"k": Given(range(2, 10), ""), "u": Given(range(2, 9), ""), "v": Given(range(2, 9), "")},
)

_COUNT = Story(
    (
        "How many positive divisors does [{p}^{i} * {q}^{j} * {r}^{k}] have?",
        "Find the number of positive divisors of [{p}^{i} * {q}^{j} * {r}^{k}].",
        "The number n is [{p}^{i} * {q}^{j} * {r}^{k}]. How many positive integers divide n?",
        "In how many ways can a positive divisor of [{p}^{i} * {q}^{j} * {r}^{k}] be chosen?",
    ),
    {
        "i": Given(range(2, 9), "as first exponent", fixed=True),
        "j": Given(range(2, 7), "as second exponent", fixed=True),
        "k": Given(range(2, 6), "as third exponent", fixed=True),
    },
    (
        Op(
            "a",
            "i + 1",
            "the number of choices for the first exponent",
            (
                "For the power of [{p}] there are {eq} choices.",
                "In a divisor, the exponent of [{p}] can take {eq} values.",
                "{What} is {eq}.",
                "The exponent of [{p}] goes from 0 to [{i}], which makes {eq} choices.",
            ),
            (
                Mistake(
                    CASE,
                    "i",
                    (
                        "For the power of [{p}] there are {res} choices.",
                        "The exponent of [{p}] goes from 1 to [{i}], which makes {res} choices.",
                    ),
                ),
            ),
        ),
        Op(
            "b",
            "j + 1",
            "the number of choices for the second exponent",
            (
                "For the power of [{q}] there are {eq} choices.",
                "The exponent of [{q}] can take {eq} values.",
                "{What} is {eq}.",
                "For [{q}] we have {eq} possible exponents.",
            ),
            (Mistake(CASE, "j", ("The exponent of [{q}] can take {res} values.",)),),
        ),
        Op(
            "c",
            "k + 1",
            "the number of choices for the third exponent",
            (
                "For the power of [{r}] there are {eq} choices.",
                "The exponent of [{r}] can take {eq} values.",
                "{What} is {eq}.",
                "For [{r}] we have {eq} possible exponents.",
            ),
            (Mistake(CASE, "k", ("The exponent of [{r}] can take {res} values.",)),),
        ),
        Op(
            "d",
            "a * b * c",
            "the number of divisors",
            (
                "The choices multiply: {eq} divisors.",
                "So there are {eq} divisors.",
                "Multiply the choices: {eq}.",
                "{What} is {eq}.",
            ),
            (
                Mistake(
                    FORMULA,
                    "a + b + c",
                    ("The choices add: {eq} divisors.", "So there are {eq} divisors.", "{What} is {eq}."),
                ),
                Mistake(FORMULA, "i * j * k", ("Multiply the exponents: {eq}.", "So there are {eq} divisors.")),
            ),
        ),
    ),
    {"p": ("2", "5", "11"), "q": ("3", "13"), "r": ("7", "17")},
    (
        Verify(
            (Op("m", "i + 1"), Op("n", "answer / m"), Op("o", "j + 1"), Op("s", "n / o"), Op("t", "s - 1")),
            "t",
            "k",
        ),
    ),
    (Bound("d > a * b", "the number of divisors {d} must be above [{a} * {b}], as the third prime adds more"),),
    largest=600,
    outlines=(
        "A divisor is given by its exponents.",
        "Count the choices for each exponent.",
        "Look at each prime.",
    ),
    reads=False,
)

_SIGMA = Story(
    (
        "Find the sum of the positive divisors of [{p}^2 * {q}], where {p} and {q} are prime.",
        "What is the sum of all positive divisors of [{p}^2 * {q}]?",
        "Add up all positive integers that divide [{p}^2 * {q}]. What is the sum?",
    ),
    {
        "p": Given((2, 3, 5, 7), "as first prime", fixed=True),
        "q": Given((2, 3, 5, 7, 11, 13, 17, 19), "as second prime", fixed=True),
    },
    (
        Op(
            "a",
            "1 + p + p ** 2",
            "the first factor",
            (
                "The powers of [{p}] that divide it add to {eq}.",
                "For [{p}] we add {eq}.",
                "{What} is {eq}.",
                "The first factor collects the powers of [{p}]: {eq}.",
            ),
            (
                Mistake(CASE, "p + p ** 2", ("For [{p}] we add {eq}.", "The powers of [{p}] add to {eq}.")),
                Mistake(CASE, "1 + p ** 2", ("For [{p}] we add {eq}.",)),
            ),
        ),
        Op(
            "b",
            "1 + q",
            "the second factor",
            (
                "The powers of [{q}] add to {eq}.",
                "For [{q}] we add {eq}.",
                "{What} is {eq}.",
                "The other prime contributes {eq}.",
            ),
            (Mistake(CASE, "q", ("For [{q}] there is only {res}.", "The other prime contributes {res}.")),),
        ),
        Op(
            "s",
            "a * b",
            "the sum of the divisors",
            (
                "Every divisor is a product of one of each, so the sum is {eq}.",
                "Multiply the two: {eq}.",
                "{What} is {eq}.",
                "So the divisors add to {eq}.",
            ),
        ),
    ),
    {},
    (Verify((Op("d", "1 + p + p ** 2"), Op("e", "answer / d"), Op("f", "e - 1")), "f", "q", "divide back"),),
    (Bound("s > p * p * q", "the sum {s} must be above [{p}^2 * {q}], which is a divisor itself"),),
    fits=("p != q",),
    largest=1500,
)

_TOGETHER = Story(
    (
        "Bus A leaves every {a} minutes and bus B every {b} minutes. Both leave at noon. How many times do they "
        "leave "
        "together in the next {h} hours?",
        "Two bells ring every {a} and every {b} minutes. They have just rung together. How often will they ring "
        "together "
        "within the next {h} hours?",
        "{name} drinks every {a} minutes and {other} every {b} minutes, both counting from now. How many times "
        "in the "
        "next {h} hours do they drink at the same minute?",
    ),
    {
        "a": Given((), "minutes for the first", made="k * u"),
        "b": Given((), "minutes for the second", made="k * v"),
        "h": Given(range(4, 25), "hours"),
    },
    (
        Op(
            "l",
            "lcm(a, b)",
            "the minutes from one time to the next",
            (
                "They meet every [{l}] minutes, since {eq}.",
                "The least common multiple tells when: {eq}.",
                "{eq}, so it happens every [{l}] minutes.",
                "We need {eq}.",
            ),
            (
                Mistake(
                    FORMULA,
                    "a * b",
                    ("They meet every {eq} minutes.", "The least common multiple is {eq}.", "We need {eq}."),
                ),
                Mistake(
                    INFERENCE,
                    "gcd(a, b)",
                    ("It happens every [{l}] minutes, since {eq}.", "The common divisor tells when: {eq}."),
                ),
                Mistake(INFERENCE, "a + b", ("After one turn of each, {eq} minutes, they meet.",)),
            ),
        ),
        Op("m", "h * 60", "the whole time in minutes"),
        Op(
            "n",
            "floor(m / l)",
            "the number of times",
            (
                "That is [{m} / {l}] rounded down: [{n}] times.",
                "In the time there are {eq} such moments.",
                "{What} is {eq}.",
                "[{l}] fits into [{m}] just [{n}] times.",
            ),
            (
                Mistake(
                    INFERENCE,
                    "ceil(m / l)",
                    ("That is [{m} / {l}] rounded up: [{n}] times.", "{What} is {eq}."),
                ),
            ),
        ),
    ),
    {"name": NAMES[:5], "other": NAMES[5:]},
    (),
    (Bound("n * l <= h * 60", "[{n} * {l}] minutes must lie within [{h} * 60] minutes"),),
    fits=("a != b", "mod(m, l) > 0", "mod(a, b) > 0", "mod(b, a) > 0"),
    largest=2000,
    seeds={
        "k": Given(range(2, 6), ""),
        "u": Given(range(2, 7), "", fixed=True),
        "v": Given(range(2, 7), "", fixed=True),
    },
)

_TILES = Story(
    (
        "A floor of {a} cm by {b} cm is covered with equal square tiles that are as large as possible. How many "
        "tiles "
        "are used?",
        "{name} cuts a sheet of {a} cm by {b} cm into equal squares, the largest that leave no waste. How many "
        "squares "
        "are there?",
        "What is the least number of equal squares into which a rectangle with sides {a} and {b} can be cut?",
    ),
    {
        "a": Given((), "cm on one side", made="k * u"),
        "b": Given((), "cm on the other side", made="k * v"),
    },
    (
        Op(
            "g",
            "gcd(a, b)",
            "the side of a square",
            (
                "The side of a square is the greatest common divisor: {eq}.",
                "Each side must divide both lengths, so we take {eq}.",
                "{What} is {eq}.",
                "As large as possible means {eq}.",
            ),
        ),
        Op("c", "a / g", "the number of squares along one side"),
        Op("d", "b / g", "the number of squares along the other side"),
        Op(
            "n",
            "c * d",
            "the number of squares",
            mistakes=(Mistake(FORMULA, "2 * (c + d)", ("Going around, {what} is {eq}.", "{What} is {eq}.")),),
        ),
    ),
    {"name": NAMES},
    (Verify((Op("e", "gcd(a, b)"), Op("f", "b / e"), Op("i", "answer / f"), Op("j", "i * e")), "j", "a"),),
    (Bound("n * g <= a * b", "[{n} * {g}] must not exceed the area [{a} * {b}]"),),
    fits=("a != b",),
    seeds={"k": Given(range(3, 20), ""), "u": Given(range(2, 12), ""), "v": Given(range(2, 12), "")},
)

_MULTIPLES = Story(
    (
        "How many of the integers from 1 to {n} are multiples of {a} or of {b}?",
        "Find the number of positive integers up to {n} that {a} or {b} divides.",
        "{name} stamps every card from 1 to {n} whose number is a multiple of {a} or of {b}. How many cards get a "
        "stamp?",
        "Count the whole numbers from 1 to {n} that are divisible by at least one of {a} and {b}.",
    ),
    {
        "n": Given(range(40, 300), "as last number"),
        "a": Given((2, 3, 4, 5, 6), "as first divisor", fixed=True),
        "b": Given((5, 7, 8, 9, 10), "as second divisor", fixed=True),
    },
    (
        Op("u", "floor(n / a)", "the number of multiples of {a}"),
        Op("v", "floor(n / b)", "the number of multiples of {b}"),
        Op("l", "lcm(a, b)", "the least common multiple"),
        Op("w", "floor(n / l)", "the number of multiples of both"),
        Op(
            "s",
            "u + v - w",
            "the number wanted",
            (
                "Those that were counted twice come off: {eq}.",
                "{What} is {eq}.",
                "Add, and take away the common ones: {eq}.",
                "Altogether {eq}.",
            ),
            (
                Mistake(
                    CASE,
                    "u + v",
                    ("Altogether {eq}.", "Add the two counts: {eq}.", "{What} is {eq}."),
                ),
                Mistake(
                    CASE, "u + v - 2 * w", ("The common ones come off in both counts: {eq}.", "Altogether {eq}.")
                ),
            ),
        ),
    ),
    {"name": NAMES},
    (),
    (Bound("s < n", "{s} numbers must be fewer than all {n}"),),
    fits=("mod(b, a) > 0", "w > 0"),
)

DIVISORS = (_LCM, _COUNT, _SIGMA, _TOGETHER, _TILES, _MULTIPLES)
