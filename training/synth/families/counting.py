"""Counting: choices, orders, committees, handshakes and overlapping groups."""

from stepsight.training.synth.families.names import NAMES
from stepsight.training.synth.plant import CASE, DROPPED, FORMULA, INFERENCE, SIGN
from stepsight.training.synth.story import Bound, Given, Mistake, Op, Story, Verify

_WAYS = (
    "There are {eq} ways in all.",
    "By the multiplication principle, {what} is {eq}.",
    "Multiplying, we get {eq}.",
    "These choices are independent: {eq}.",
    "{What} is {eq}.",
    "Together this gives {eq}.",
)

_COMMITTEE = Story(
    (
        "A club has {n} women and {m} men. In how many ways can a committee of {k} women and {l} men be chosen?",
        "How many teams of {k} girls and {l} boys can be formed from {n} girls and {m} boys?",
        "{name} picks {k} of {n} novels and {l} of {m} comics for a trip. How many selections are possible?",
        "From {n} red and {m} blue cards, all different, {k} red and {l} blue ones are to be chosen. In how many "
        "ways can this be done?",
    ),
    {
        "n": Given(range(4, 9), "to choose from first", fixed=True),
        "k": Given((2, 3), "to be chosen from them", fixed=True),
        "m": Given(range(4, 9), "to choose from in the second group"),
        "l": Given((1, 2, 3), "to be chosen there", fixed=True),
    },
    (
        Op(
            "a",
            "binom(n, k)",
            "the number of first choices",
            (
                "There are {eq} ways for the first group.",
                "The first group can be chosen in {eq} ways.",
                "Choosing [{k}] of [{n}]: {eq}.",
                "{What} is {eq}.",
            ),
            (
                Mistake(
                    FORMULA,
                    "factorial(n) / factorial(n - k)",
                    (
                        "There are {eq} ways to choose [{k}] of [{n}].",
                        "The first group can be chosen in {eq} ways.",
                    ),
                ),
                Mistake(FORMULA, "n * k", ("Choosing [{k}] of [{n}] can be done in {eq} ways.",)),
            ),
        ),
        Op(
            "b",
            "binom(m, l)",
            "the number of second choices",
            (
                "There are {eq} ways for the second group.",
                "The second group can be chosen in {eq} ways.",
                "Choosing [{l}] of [{m}]: {eq}.",
                "{What} is {eq}.",
            ),
            (
                Mistake(
                    FORMULA,
                    "factorial(m) / factorial(m - l)",
                    (
                        "There are {eq} ways to choose [{l}] of [{m}].",
                        "The second group can be chosen in {eq} ways.",
                    ),
                ),
            ),
        ),
        Op(
            "t",
            "a * b",
            "the number of ways",
            _WAYS,
            (
                Mistake(
                    INFERENCE,
                    "a + b",
                    ("There are two groups to choose, so we add: {eq}.", "In all this makes {eq} ways."),
                ),
                Mistake(
                    INFERENCE,
                    "binom(n + m, k + l)",
                    ("Put together, [{k} + {l}] of [{n} + {m}] are chosen, in {eq} ways.",),
                ),
            ),
        ),
    ),
    {"name": NAMES},
    bounds=(
        Bound("t >= a", "for each of the {a} first choices there is at least one way, so {t} must be at least {a}"),
    ),
    fits=("k < n", "l < m"),
    largest=20_000,
)

_HANDSHAKES = Story(
    (
        "At a party with {n} guests everybody shakes hands with everybody else, except that {c} pairs of guests do "
        "not. How many handshakes are there?",
        "{n} people meet. Each two of them shake hands once, but {c} pairs have met before and do not. Find the "
        "number of handshakes.",
        "In a tournament each of {n} players is to play each other once. {c} games are cancelled. How many games "
        "take place?",
        "{n} towns are to be joined, each two by one road. {c} of these roads are not built. How many roads are "
        "there?",
    ),
    {"n": Given(range(6, 20), "in all"), "c": Given(range(2, 12), "pairs left out")},
    (
        Op(
            "o",
            "n * (n - 1)",
            "the number of ordered pairs",
            (
                "Each of the [{n}] meets all the others, which counts {eq}.",
                "{What} is {eq}.",
                "Counting from both sides, we have {eq}.",
                "There are {eq} ordered pairs.",
            ),
            (
                Mistake(
                    INFERENCE,
                    "n * n",
                    ("Each of the [{n}] can be paired with [{n}], so there are {eq} ordered pairs.",),
                ),
            ),
        ),
        Op(
            "h",
            "o / 2",
            "the number of pairs",
            (
                "Each pair was counted twice, so there are {eq} pairs.",
                "The order does not matter: {eq}.",
                "{What} is {eq}.",
                "Halving, we get {eq} pairs.",
            ),
            (
                Mistake(
                    CASE,
                    "o",
                    ("So the number of pairs is {eq}.", "Each of these is a pair, so there are {eq} pairs."),
                ),
            ),
        ),
        Op("t", "h - c", "the number of pairs that remain"),
    ),
    {},
    (
        Verify(
            (Op("x", "answer + c"), Op("y", "x * 2"), Op("u", "y / (n - 1)")),
            "u",
            "n",
        ),
    ),
    (
        Bound(
            "t < n * (n - 1) / 2",
            "there are only [{n} * ({n} - 1) / 2] pairs, so {t} must be less",
        ),
    ),
    largest=600,
)

_MENU = Story(
    (
        "A menu has {a} starters, {b} main dishes and {c} desserts. A meal is a starter, a main dish and, if "
        "wanted, a dessert. How many different meals are there?",
        "{name} chooses one of {a} shirts, one of {b} trousers and either one of {c} hats or none. How many "
        "outfits are possible?",
        "A bike comes in {a} colours and {b} sizes, with one of {c} baskets or without a basket. In how many "
        "versions can it be bought?",
        "A code consists of one of {a} letters, one of {b} signs and at most one of {c} extra marks at the end. "
        "How many codes are there?",
    ),
    {
        "a": Given(range(3, 10), "choices at first"),
        "b": Given(range(3, 10), "choices in the second place"),
        "c": Given(range(2, 9), "choices that may be left out"),
    },
    (
        Op(
            "d",
            "c + 1",
            "the number of last choices",
            (
                "The last part may be left out, so it has {eq} choices.",
                "Leaving it out is one more choice: {eq}.",
                "{What} is {eq}.",
                "With the choice of none there are {eq} last choices.",
            ),
            (
                Mistake(
                    CASE,
                    "c",
                    ("For the last part there are {eq} choices.", "The last choice can be made in {eq} ways."),
                ),
                Mistake(SIGN, "c - 1", ("One is left out, so there are {eq} last choices.",)),
            ),
        ),
        Op("e", "a * b", "the number of first and second choices"),
        Op(
            "t",
            "e * d",
            "the number of possibilities",
            _WAYS,
            (
                Mistake(
                    INFERENCE, "e + d", ("In all we have {eq} possibilities.", "Adding the choices gives {eq}.")
                ),
            ),
        ),
    ),
    {"name": NAMES},
    (Verify((Op("x", "answer / a"), Op("y", "x / b"), Op("z", "y - 1")), "z", "c"),),
    (
        Bound(
            "t > a * b",
            "with an extra part there must be more than [{a} * {b}] possibilities, and {t} must be above it",
        ),
    ),
    largest=1500,
)

_FLAGS = Story(
    (
        "{name} hangs {p} red and {q} blue flags in a row. Flags of one colour look the same. How many different "
        "rows are possible?",
        "In how many ways can {p} equal red books and {q} equal blue books stand on a shelf?",
        "How many words can be made with {p} letters A and {q} letters B, using all of them?",
        "A way through a grid has {p} steps to the right and {q} steps up, in any order. How many such ways are "
        "there?",
    ),
    {"p": Given(range(2, 5), "of the first kind"), "q": Given((2, 3), "of the second kind", fixed=True)},
    (
        Op("n", "p + q", "the number of places"),
        Op(
            "a",
            "factorial(n)",
            "the number of orders if all were different",
            (
                "If all were different, there would be {eq} orders.",
                "{What} is {eq}.",
                "[{n}] different things have {eq} orders.",
                "There are {eq} permutations of [{n}] places.",
            ),
            (Mistake(FORMULA, "n ** 2", ("[{n}] different things have {eq} orders.",)),),
        ),
        Op(
            "d",
            "factorial(p) * factorial(q)",
            "the number of orders that look the same",
            (
                "Equal ones can be exchanged in {eq} ways.",
                "Each row is counted {eq} times.",
                "{What} is {eq}.",
                "Exchanging equal ones gives {eq} orders that look the same.",
            ),
            (
                Mistake(
                    FORMULA,
                    "factorial(p) + factorial(q)",
                    ("Equal ones can be exchanged in {eq} ways.", "Each row is counted {eq} times."),
                ),
                Mistake(CASE, "factorial(p)", ("Each row is counted {eq} times.",)),
                Mistake(FORMULA, "p * q", ("Equal ones can be exchanged in {eq} ways.",)),
            ),
        ),
        Op(
            "t",
            "a / d",
            "the number of different rows",
            (
                "So there are {eq} different ones.",
                "Dividing, we get {eq}.",
                "{What} is {eq}.",
                "Hence we have {eq} possibilities.",
            ),
            (
                Mistake(
                    SIGN,
                    "a - d",
                    ("Taking away those that look the same leaves {eq}.", "So we subtract: {eq}."),
                ),
                Mistake(DROPPED, "a / factorial(p)"),
            ),
        ),
    ),
    {"name": NAMES},
    (
        Verify(
            (
                Op("d", "factorial(p) * factorial(q)"),
                Op("x", "answer * d"),
                Op("y", "x / factorial(p + q - 1)"),
                Op("z", "y - q"),
            ),
            "z",
            "p",
        ),
    ),
    (Bound("t < a", "equal ones cannot be told apart, so {t} must be less than {a}"),),
    largest=700_000,
)

_CLUBS = Story(
    (
        "Of {n} pupils, {a} play football, {b} play chess and {c} do both. How many do neither?",
        "In a class of {n}, {a} children have a dog, {b} have a cat and {c} have both. How many have neither?",
        "{n} people were asked. {a} read the {paper}, {b} watch the news, {c} do both. How many do neither of the "
        "two?",
        "A survey of {n} guests finds {a} who drink tea, {b} who drink coffee and {c} who drink both. Find the "
        "number of guests who drink neither.",
    ),
    {
        "n": Given(range(30, 120), "in all"),
        "a": Given(range(12, 60), "in the first group"),
        "b": Given(range(12, 60), "in the second group"),
        "c": Given(range(2, 20), "in both"),
    },
    (
        Op("s", "a + b", "the sum of both groups"),
        Op(
            "u",
            "s - c",
            "the number of those in at least one group",
            (
                "Those in both were counted twice, so {eq} are in at least one group.",
                "By inclusion and exclusion, at least one group has {eq}.",
                "{What} is {eq}.",
                "Subtract those counted twice: {eq}.",
            ),
            (
                Mistake(CASE, "s", ("So {eq} are in at least one group.", "At least one group has {eq} of them.")),
                Mistake(
                    INFERENCE,
                    "s - 2 * c",
                    (
                        "Those in both are in neither group alone, so {eq} are in at least one group.",
                        "Those in both count twice and must go: {eq} are in at least one group.",
                    ),
                ),
            ),
        ),
        Op("v", "n - u", "the number of those in neither group"),
    ),
    {"paper": ("paper", "magazine")},
    (Verify((Op("x", "n - answer"), Op("y", "x + c"), Op("z", "y - b")), "z", "a"),),
    (
        Bound("v >= 0", "a number of people cannot be negative, so {v} must be at least [0]"),
        Bound("u <= n", "there are only {n} in all, so {u} must not exceed that"),
        Bound("v <= n - a", "the {a} in the first group are not in neither, so {v} must be at most [{n} - {a}]"),
    ),
    ("c < a", "c < b", "v >= 0"),
    smallest=-60,
)

_MEDALS = Story(
    (
        "{n} runners start in a race. In how many ways can gold, silver and bronze be awarded?",
        "A club of {n} members elects a president, a secretary and a treasurer, three different people. How many "
        "results are possible?",
        "How many words of three different letters can be formed from {n} letters?",
        "{name} puts three of {n} different pictures in a row. How many rows are possible?",
    ),
    {"n": Given(range(5, 16), "to choose from")},
    (
        Op(
            "a",
            "n - 1",
            "the number of choices for the second place",
            (
                "After the first, the second place has {eq} choices.",
                "One is used, so for the second place {eq} remain.",
                "{What} is {eq}.",
                "The second can be any of {eq}.",
            ),
            (
                Mistake(
                    INFERENCE,
                    "n",
                    (
                        "For the second place there are again {eq} choices.",
                        "The second place has {eq} choices, too.",
                    ),
                ),
            ),
        ),
        Op(
            "b",
            "a - 1",
            "the number of choices for the third place",
            (
                "The third place has {eq} choices.",
                "For the third place {eq} remain.",
                "{What} is {eq}.",
                "The third can be any of {eq}.",
            ),
            (Mistake(INFERENCE, "a", ("For the third place there are {eq} choices as well.",)),),
        ),
        Op(
            "t",
            "n * a * b",
            "the number of ways",
            _WAYS,
            (
                Mistake(
                    FORMULA,
                    "binom(n, 3)",
                    ("We choose [3] of [{n}]: {eq} ways.", "Three of [{n}] can be chosen in {eq} ways."),
                ),
                Mistake(FORMULA, "3 * n", ("Each of three places has [{n}] choices, in all {eq}.",)),
                Mistake(INFERENCE, "n + a + b", ("Adding the choices, we get {eq} ways.",)),
            ),
        ),
    ),
    {"name": NAMES},
    (Verify((Op("x", "answer / n"), Op("y", "x / (n - 1)"), Op("z", "y + 2")), "z", "n"),),
    largest=5000,
)

_NEIGHBOURS = Story(
    (
        "{n} people stand in a row. {name} and {other} are among them and do not want to stand next to each "
        "other. In how many ways can the row be formed?",
        "In how many orders can {n} different books stand on a shelf if two given ones must not be side by side?",
        "{name}, {other} and the rest of {n} friends queue up. How many queues are there in which {name} and "
        "{other} are not neighbours?",
    ),
    {"n": Given((4, 5, 6, 7), "in the row")},
    (
        Op(
            "a",
            "factorial(n)",
            "the number of all orders",
            (
                "Without the condition there are {eq} orders.",
                "{What} is {eq}.",
                "[{n}] in a row have {eq} orders.",
                "In all there are {eq} permutations.",
            ),
            (Mistake(FORMULA, "n ** 2", ("Without the condition there are {eq} orders.",)),),
        ),
        Op(
            "b",
            "factorial(n - 1)",
            "the number of orders with the two as one block",
            (
                "With the two as one block there are {eq} orders.",
                "Taking the two as one, we have {eq} orders.",
                "{What} is {eq}.",
                "Gluing the two together leaves {eq} orders.",
            ),
            (
                Mistake(
                    FORMULA,
                    "factorial(n - 2)",
                    (
                        "Taking the two as one, we have {eq} orders.",
                        "With the two as one block there are {eq} orders.",
                    ),
                ),
            ),
        ),
        Op(
            "c",
            "2 * b",
            "the number of orders with the two side by side",
            (
                "Inside the block there are two orders, so {what} is {eq}.",
                "The block itself can be turned: {eq}.",
                "{What} is {eq}.",
                "The two can change places, which gives {eq} orders.",
            ),
            (
                Mistake(
                    CASE,
                    "b",
                    (
                        "So the two are side by side in {eq} orders.",
                        "Hence the number of orders to leave out is {eq}.",
                    ),
                ),
            ),
        ),
        Op(
            "d",
            "a - c",
            "the number of allowed orders",
            (
                "The others are allowed: {eq}.",
                "Subtracting, we get {eq}.",
                "{What} is {eq}.",
                "Therefore {eq} orders remain.",
            ),
        ),
    ),
    {"name": NAMES[:5], "other": NAMES[5:]},
    (Verify((Op("b", "factorial(n - 1)"), Op("x", "answer / b"), Op("y", "x + 2")), "y", "n"),),
    (Bound("d < a", "some orders are not allowed, so {d} must be less than {a}"),),
    largest=700_000,
    reads=False,
)

COUNTING = (_COMMITTEE, _HANDSHAKES, _MENU, _FLAGS, _CLUBS, _MEDALS, _NEIGHBOURS)
