"""The probabilities: urns, dice, tickets and independent events, answered in fractions."""

from stepsight.training.synth.families.names import NAMES
from stepsight.training.synth.plant import CASE, DROPPED, FORMULA, INFERENCE
from stepsight.training.synth.story import Bound, Given, Mistake, Op, Story, Verify

_AT_MOST_ONE = Bound("p <= 1", "a probability is at most 1, so [{p}] must be as well")
_DIVIDE = (
    "The probability is {eq}.",
    "All outcomes are equally likely, so the probability is {eq}.",
    "Favourable over possible outcomes: {eq}.",
    "So {what} is {eq}.",
    "Dividing by the number of outcomes, we get {eq}.",
    "This gives a probability of {eq}.",
)

_NOT_THIS = Story(
    (
        "A bag holds {r} red, {b} blue and {g} green {thing}s. One is drawn at random. What is the probability "
        "that it is not red?",
        "There are {r} red, {b} blue and {g} green {thing}s in a box. Find the probability that a {thing} taken at "
        "random is not red.",
        "{name} has {r} red {thing}s, {b} blue ones and {g} green ones, and takes one without looking. With what "
        "probability does {name} get one that is not red?",
        "An urn contains {r} red, {b} blue and {g} green {thing}s. A {thing} is chosen at random. Compute the "
        "probability that its colour is not red.",
    ),
    {
        "r": Given(range(2, 13), "red {thing}s"),
        "b": Given(range(2, 13), "blue {thing}s"),
        "g": Given(range(2, 13), "green {thing}s"),
    },
    (
        Op(
            "n",
            "r + b + g",
            "the number of {thing}s",
            (
                "There are {eq} {thing}s in all.",
                "In total we have {eq} {thing}s.",
                "{What} is {eq}.",
                "Counting all colours, there are {eq} {thing}s.",
                "The number of possible outcomes is {eq}.",
            ),
        ),
        Op(
            "k",
            "b + g",
            "the number of {thing}s that are not red",
            (
                "Of these, {eq} are not red.",
                "The favourable outcomes are the blue and green ones: {eq}.",
                "{What} is {eq}.",
                "Not red means blue or green: {eq}.",
            ),
            (Mistake(CASE, "b", ("The {thing}s that are not red are the blue ones, so there are {eq} of them.",)),),
        ),
        Op(
            "p",
            "k / n",
            "the probability",
            _DIVIDE,
            (
                Mistake(
                    FORMULA,
                    "k / r",
                    (
                        "[{k}] {thing}s are not red against [{r}] red ones, so the probability is {eq}.",
                        "Comparing with the [{r}] red ones, the probability is {eq}.",
                    ),
                ),
                Mistake(
                    INFERENCE,
                    "1 / 2",
                    (
                        "It is either red or not, and both are equally likely: the probability is {eq}.",
                        "There are two possibilities, red or not red, so the probability is {eq}.",
                    ),
                ),
            ),
        ),
    ),
    {"name": NAMES, "thing": ("ball", "marble", "bead", "chip")},
    (Verify((Op("m", "r + b + g"), Op("x", "answer * m"), Op("y", "m - x")), "y", "r"),),
    (_AT_MOST_ONE,),
    whole=False,
    smallest=-3,
)


_BOTH_RED = Story(
    (
        "An urn holds {r} red and {b} white balls. Two balls are drawn without replacement. What is the "
        "probability that both are red?",
        "From a bag with {r} red and {b} white balls {name} takes two balls, one after the other, and keeps them. "
        "Find the probability that both are red.",
        "A box contains {r} red balls and {b} white balls. Two are chosen at random without putting the first "
        "back. Compute the probability of two red balls.",
        "{name} draws two balls at random from {r} red and {b} white ones, without replacement. How likely is it "
        "that both are red?",
    ),
    {"r": Given(range(3, 10), "red balls"), "b": Given(range(2, 10), "white balls")},
    (
        Op("n", "r + b", "the number of balls"),
        Op(
            "f",
            "r / n",
            "the probability that the first ball is red",
            (
                "{What} is {eq}.",
                "The first ball is red with probability {eq}.",
                "For the first draw we have {eq}.",
                "[{r}] of the [{n}] balls are red, so the first one is red with probability {eq}.",
            ),
        ),
        Op(
            "s",
            "(r - 1) / (n - 1)",
            "the probability that the second ball is red too",
            (
                "After a red ball, the second one is red with probability {eq}.",
                "One red ball is gone, so {what} is {eq}.",
                "For the second draw a ball less is there: {eq}.",
                "Given that the first was red, the second is red with probability {eq}.",
            ),
            (
                Mistake(
                    INFERENCE,
                    "r / n",
                    (
                        "The second draw is like the first, so its probability is again {eq}.",
                        "The same holds for the second ball: {eq}.",
                        "The second ball is red with the same probability, {eq}.",
                    ),
                ),
                Mistake(
                    DROPPED,
                    "(r - 1) / n",
                    ("One red ball is gone, so the second one is red with probability {eq}.",),
                ),
                Mistake(
                    DROPPED,
                    "r / (n - 1)",
                    ("One ball is gone, so the second one is red with probability {eq}.",),
                ),
            ),
        ),
        Op(
            "p",
            "f * s",
            "the probability that both are red",
            (
                "Multiplying, {what} is {eq}.",
                "Both must happen, so we multiply: {eq}.",
                "By the multiplication rule, the probability is {eq}.",
                "{What} is {eq}.",
                "Together this gives {eq}.",
            ),
            (
                Mistake(
                    FORMULA,
                    "f + s",
                    (
                        "Adding the two probabilities, we get {eq}.",
                        "Both draws count, so we add: {eq}.",
                        "The probability of both is the sum {eq}.",
                    ),
                ),
            ),
        ),
    ),
    {"name": NAMES},
    (
        Verify(
            (Op("m", "r + b"), Op("x", "answer * m"), Op("y", "m - 1"), Op("z", "x * y"), Op("u", "z / (r - 1)")),
            "u",
            "r",
        ),
    ),
    (
        _AT_MOST_ONE,
        Bound("p < f", "two red balls are less likely than one, so [{p}] must be less than [{f}]"),
    ),
    whole=False,
    smallest=-3,
)

_DICE = Story(
    (
        "Two fair six-sided dice are rolled. What is the probability that the sum is {s}?",
        "{name} rolls two ordinary dice. Find the probability that the numbers add up to {s}.",
        "Two standard dice are thrown at the same time. Compute the probability of a total of {s}.",
        "What is the chance that two fair dice show a total of {s}?",
    ),
    {"s": Given((3, 4, 5, 6, 7), "as the sum", fixed=True)},
    (
        Op(
            "n",
            "6 * 6",
            "the number of outcomes",
            (
                "There are {eq} equally likely outcomes.",
                "Two dice have {eq} outcomes.",
                "{What} is {eq}.",
                "Each die shows one of [6] numbers, so there are {eq} outcomes.",
            ),
            (
                Mistake(FORMULA, "6 + 6", ("Two dice have {eq} outcomes.", "There are {eq} possible outcomes.")),
                Mistake(
                    INFERENCE,
                    "21",
                    (
                        "The order does not matter, so there are {eq} equally likely outcomes.",
                        "As pairs without order, the dice have {eq} equally likely outcomes.",
                    ),
                ),
            ),
        ),
        Op(
            "k",
            "s - 1",
            "the number of favourable outcomes",
            (
                "The first die may show [1] up to {eq}, and the second is then fixed, so that many outcomes give "
                "the sum.",
                "A sum of [{s}] comes about in {eq} ways.",
                "{What} is {eq}.",
                "There are {eq} pairs with sum [{s}].",
            ),
            (
                Mistake(CASE, "s - 2", ("A sum of [{s}] comes about in {eq} ways.",)),
                Mistake(FORMULA, "s", ("There are {eq} outcomes with this sum.",)),
            ),
        ),
        Op(
            "p",
            "k / n",
            "the probability",
            _DIVIDE,
            (
                Mistake(
                    INFERENCE,
                    "1 / 11",
                    (
                        "The sum can be any of [11] numbers from [2] to [12], so the probability is {eq}.",
                        "There are [11] possible sums, all equally likely, so we get {eq}.",
                    ),
                ),
            ),
        ),
    ),
    {"name": NAMES},
    (Verify((Op("x", "answer * 36"), Op("y", "x + 1")), "y", "s"),),
    (_AT_MOST_ONE,),
    whole=False,
    smallest=-3,
)

_AT_LEAST_ONE = Story(
    (
        "A spinner has {k} equal sectors, one of them red. It is spun {n} times. What is the probability that it "
        "stops on red at least once?",
        "{name} spins a wheel with {k} equal fields {n} times. One field is red. Find the probability of at least "
        "one red.",
        "Each of {n} drawers hides a key with probability [1/{k}], independently. How likely is it that there is a "
        "key in at least one drawer?",
        "A machine fails on a day with probability [1/{k}], independently of other days. What is the probability "
        "that it fails at least once in {n} days?",
    ),
    {
        "k": Given(range(3, 8), "equal chances", fixed=True),
        "n": Given((2, 2, 3), "trials", fixed=True),
    },
    (
        Op(
            "a",
            "1 - 1 / k",
            "the probability that it does not happen in one trial",
            (
                "In a single trial it does not happen with probability {eq}.",
                "{What} is {eq}.",
                "The opposite in one trial has probability {eq}.",
                "First the complement for one trial: {eq}.",
            ),
        ),
        Op(
            "b",
            "a ** n",
            "the probability that it never happens",
            (
                "It never happens with probability {eq}.",
                "By independence, {what} is {eq}.",
                "In all [{n}] trials it fails to happen with probability {eq}.",
                "So {what} is {eq}.",
            ),
            (Mistake(FORMULA, "a * n", ("For [{n}] trials we multiply: {eq}.",)),),
        ),
        Op(
            "p",
            "1 - b",
            "the probability that it happens at least once",
            (
                "The complement is {eq}.",
                "At least once is the complement of never: {eq}.",
                "Hence {what} is {eq}.",
                "Taking the complement, we get {eq}.",
            ),
            (
                Mistake(
                    INFERENCE,
                    "n / k",
                    (
                        "Each trial adds a chance of [1/{k}], so [{n}] trials have a probability of {eq}.",
                        "With [{n}] trials the chance is [{n}] times as large, {eq}.",
                    ),
                ),
                Mistake(
                    CASE,
                    "n * (1 / k) * (1 - 1 / k) ** (n - 1)",
                    (
                        "It happens in one of the [{n}] trials and not in the others: {eq}.",
                        "One trial succeeds and the rest do not, so the probability is {eq}.",
                    ),
                ),
                Mistake(DROPPED, "b", ("So the probability of at least one is {eq}.",)),
            ),
        ),
    ),
    {"name": NAMES},
    (),
    (
        _AT_MOST_ONE,
        Bound(
            "p >= 1 / k", "at least one in [{n}] is no less likely than in one, so [{p}] must be at least [1/{k}]"
        ),
    ),
    whole=False,
    smallest=-3,
)

_TICKETS = Story(
    (
        "Tickets are numbered from [1] to {n}. One is drawn at random. What is the probability that its number is "
        "a multiple of {a} or of {b}?",
        "A number is chosen at random from the integers [1] to {n}. Find the probability that it is divisible by "
        "{a} or by {b}.",
        "{name} picks one of {n} cards, numbered [1] to {n}. How likely is a number that {a} or {b} divides?",
        "An integer from [1] up to {n} is picked at random. Compute the probability that at least one of {a} and "
        "{b} divides it.",
    ),
    {
        "n": Given(range(12, 145, 12), "as the largest number"),
        "a": Given((2, 3, 4), "as one divisor", fixed=True),
        "b": Given((3, 4, 6), "as the other divisor", fixed=True),
    },
    (
        Op("u", "n / a", "the number of multiples of {a}"),
        Op("v", "n / b", "the number of multiples of {b}"),
        Op(
            "l",
            "lcm(a, b)",
            "the least common multiple",
            (
                "A number divisible by both is a multiple of {eq}.",
                "Those that are both are multiples of {eq}.",
                "{What} is {eq}.",
            ),
            (
                Mistake(
                    FORMULA,
                    "a * b",
                    ("A number divisible by both is a multiple of {eq}.", "Multiples of both are those of {eq}."),
                ),
            ),
        ),
        Op("w", "n / l", "the number of multiples of both"),
        Op(
            "k",
            "u + v - w",
            "the number of favourable numbers",
            (
                "By inclusion and exclusion, there are {eq} favourable numbers.",
                "Those in both were counted twice: {eq}.",
                "{What} is {eq}.",
                "Subtract what was counted twice: {eq}.",
            ),
            (
                Mistake(
                    CASE,
                    "u + v",
                    ("Together there are {eq} favourable numbers.", "Adding both, {eq} numbers are favourable."),
                ),
            ),
        ),
        Op("p", "k / n", "the probability", _DIVIDE),
    ),
    {"name": NAMES},
    bounds=(_AT_MOST_ONE,),
    fits=("mod(b, a) != 0", "a < b"),
    whole=False,
    smallest=-200,
)

_INDEPENDENT = Story(
    (
        "{name} solves a problem with probability [{a}/{b}], {other} with probability [{c}/{d}], independently. "
        "What is the probability that at least one of them solves it?",
        "The probability that {name} hits a target is [{a}/{b}], and for {other} it is [{c}/{d}]. Both shoot once. "
        "Find the probability that the target is hit.",
        "Two alarms work independently, with probabilities [{a}/{b}] and [{c}/{d}]. How likely is it that at least "
        "one works?",
        "Independent events have probabilities [{a}/{b}] and [{c}/{d}]. Compute the probability that at least one "
        "occurs.",
    ),
    {
        "a": Given(range(1, 8), "as upper number of the first probability", fixed=True),
        "b": Given(range(2, 10), "as lower number of the first probability"),
        "c": Given(range(1, 8), "as upper number of the second probability", fixed=True),
        "d": Given(range(2, 10), "as lower number of the second probability"),
    },
    (
        Op(
            "x",
            "1 - a / b",
            "the probability that the first fails",
            (
                "The first fails with probability {eq}.",
                "{What} is {eq}.",
                "The complement of the first is {eq}.",
                "Without the first: {eq}.",
            ),
        ),
        Op(
            "y",
            "1 - c / d",
            "the probability that the second fails",
            (
                "The second fails with probability {eq}.",
                "{What} is {eq}.",
                "The complement of the second is {eq}.",
                "Without the second: {eq}.",
            ),
        ),
        Op(
            "z",
            "x * y",
            "the probability that both fail",
            (
                "Both fail with probability {eq}.",
                "By independence, {what} is {eq}.",
                "So neither happens with probability {eq}.",
                "Multiplying, {what} is {eq}.",
            ),
        ),
        Op(
            "p",
            "1 - z",
            "the probability of at least one",
            (
                "Hence {what} is {eq}.",
                "At least one is the complement: {eq}.",
                "The complement gives {eq}.",
                "Therefore we get {eq}.",
            ),
            (
                Mistake(
                    INFERENCE,
                    "a / b + c / d",
                    (
                        "One or the other happens, so we add the probabilities: {eq}.",
                        "The probability of at least one is the sum {eq}.",
                    ),
                ),
                Mistake(
                    CASE,
                    "a / b * (1 - c / d)",
                    ("The first happens and the second does not, so the probability is {eq}.",),
                ),
            ),
        ),
    ),
    {"name": NAMES[:5], "other": NAMES[5:]},
    (
        Verify(
            (
                Op("q", "1 - answer"),
                Op("e", "c / d"),
                Op("f", "1 - e"),
                Op("g", "q / f"),
                Op("h", "1 - g"),
                Op("k", "h * b"),
            ),
            "k",
            "a",
        ),
    ),
    (
        _AT_MOST_ONE,
        Bound("p >= a / b", "at least one is no less likely than the first, so [{p}] must be at least [{a}/{b}]"),
    ),
    ("a < b", "c < d", "gcd(a, b) == 1", "gcd(c, d) == 1"),
    whole=False,
    smallest=-3,
)

PROBABILITIES = (_NOT_THIS, _BOTH_RED, _DICE, _AT_LEAST_ONE, _TICKETS, _INDEPENDENT)
