"""Statistics: median, range, mode and means that change."""

from stepsight.training.synth.families.names import NAMES
from stepsight.training.synth.plant import CASE, DROPPED, FORMULA, INFERENCE, SIGN
from stepsight.training.synth.story import Bound, Given, Mistake, Op, Story, Verify

_LIST = "{d}, {a}, {e}, {b}, {f}, {c}"

_MEDIAN = Story(
    (
        f"The scores of six players are {_LIST}. By how much does the range exceed the median?",
        f"For the data {_LIST}, find the range minus the median.",
        f"{{name}} counts {_LIST} birds on six days. What is the difference between the range and the median of "
        f"these numbers?",
        f"Six bags weigh {_LIST} kg. By how many kg is the range larger than the median?",
    ),
    {
        "a": Given(range(2, 7), "as the smallest number"),
        "b": Given(range(7, 12), "as the second smallest number"),
        "c": Given(range(12, 17), "as the third smallest number"),
        "d": Given(range(17, 22), "as the third largest number"),
        "e": Given(range(22, 27), "as the second largest number"),
        "f": Given(range(32, 60), "as the largest number"),
    },
    (
        Op(
            "s",
            "c + d",
            "the sum of the two middle numbers",
            (
                "In order, the middle numbers are [{c}] and [{d}], with sum {eq}.",
                "{What} is {eq}.",
                "Sorted, the third and the fourth number add up to {eq}.",
                "Add the two in the middle of the ordered list: {eq}.",
            ),
            (
                Mistake(
                    INFERENCE,
                    "e + b",
                    (
                        "The middle numbers of the list are [{e}] and [{b}], with sum {eq}.",
                        "The third and the fourth number add up to {eq}, the sum of the middle numbers.",
                    ),
                ),
                Mistake(
                    INFERENCE, "a + f", ("The smallest and the largest add up to {eq}, the sum for the median.",)
                ),
            ),
        ),
        Op(
            "m",
            "s / 2",
            "the median",
            (
                "The median is their mean, {eq}.",
                "{What} is {eq}.",
                "With six numbers, {what} is {eq}.",
                "Half of it is the median, {eq}.",
            ),
            (
                Mistake(CASE, "c", ("The median is the third number, {eq}.",)),
                Mistake(FORMULA, "s / 6", ("There are six numbers, so {what} is {eq}.",)),
            ),
        ),
        Op(
            "r",
            "f - a",
            "the range",
            ("The range is {eq}.", "Largest minus smallest is {eq}.", "{What} goes from [{a}] to [{f}]: {eq}."),
            (
                Mistake(FORMULA, "f", ("The range is the largest number, {eq}.",)),
                Mistake(INFERENCE, "d - c", ("The range is the first number less the last one, {eq}.",)),
            ),
        ),
        Op("t", "r - m", "the difference"),
    ),
    {"name": NAMES},
    (Verify((Op("x", "f - a"), Op("y", "x - answer"), Op("z", "2 * y"), Op("w", "z - c")), "w", "d"),),
    (
        Bound("m > b", "half of the numbers lie above the median, so [{m}] must be more than [{b}]"),
        Bound("m < e", "half of the numbers lie below the median, so [{m}] must be less than [{e}]"),
        Bound("r < f", "the range must be less than the largest number, so [{r}] must be less than [{f}]"),
    ),
    ("t > 0",),
    whole=False,
    decimals=True,
    smallest=-60,
)

_LEAVES = Story(
    (
        "The mean of {n} numbers is {m}. The number {x} is taken away. What is the mean of the others?",
        "{n} plants are {m} cm tall on average. One of them, which is {x} cm tall, is cut. Find the average "
        "height of the rest.",
        "In {n} games {name} scored {m} points on average. Without the game of {x} points, what would the average "
        "be?",
        "A shelf holds {n} books with {m} pages on average. A book of {x} pages is removed. How many pages do the "
        "others have on average?",
    ),
    {
        "n": Given(range(4, 16), "in all"),
        "m": Given(range(20, 160), "as mean"),
        "x": Given((), "for the one that goes", made="m + (n - 1) * z"),
    },
    (
        Op("t", "n * m", "the sum of all"),
        Op("u", "t - x", "the sum of the others"),
        Op(
            "k",
            "n - 1",
            "the number of the others",
            ("There are {eq} others.", "{What} is {eq}.", "One is gone, so {eq} are left.", "Now there are {eq}."),
        ),
        Op(
            "r",
            "u / k",
            "the new mean",
            (
                "The new mean is {eq}.",
                "{What} is {eq}.",
                "Dividing by the number of those left, we get {eq}.",
                "So on average the others have {eq}.",
            ),
            (
                Mistake(CASE, "u / n", ("The new mean is {eq}.", "Dividing by [{n}], we get {eq}.")),
                Mistake(
                    INFERENCE,
                    "(m + x) / 2",
                    ("Between the mean and the number taken away lies the new mean, {eq}.",),
                ),
                Mistake(INFERENCE, "m", ("Taking one away does not change the mean, which is {eq}.",)),
            ),
        ),
    ),
    {"name": NAMES},
    (Verify((Op("j", "n - 1"), Op("y", "j * answer"), Op("w", "y + x"), Op("v", "w / n")), "v", "m"),),
    fits=("x != m", "x > 0", "r > 0"),
    largest=2600,
    seeds={"z": Given((-4, -3, -2, -1, 1, 2, 3, 4), "", fixed=True)},
)

_JOINS = Story(
    (
        "The mean of {n} numbers is {m}. With one more number the mean becomes {q}. What is this number?",
        "After {n} tests {name} has {m} points on average. How many points in the next test bring the average to "
        "{q}?",
        "{n} boxes weigh {m} kg on average. When a box is added, the average is {q} kg. Find the weight of the "
        "added box in kg.",
        "The average age of {n} people in a room is {m}. Somebody comes in, and it rises to {q}. How old is the "
        "new person?",
    ),
    {
        "n": Given(range(3, 14), "at first"),
        "m": Given(range(20, 70), "as first mean"),
        "q": Given((), "as new mean", made="m + z"),
    },
    (
        Op("t", "n * m", "the first sum"),
        Op(
            "k",
            "n + 1",
            "the new count",
            (
                "Now there are {eq}.",
                "{What} is {eq}.",
                "With one more we have {eq}.",
                "One joins, so there are {eq}.",
            ),
            (Mistake(CASE, "n", ("Now there are {eq}.", "{What} is {eq}.")),),
        ),
        Op("u", "k * q", "the new sum"),
        Op(
            "x",
            "u - t",
            "the new number",
            (
                "{What} is the difference of the sums: {eq}.",
                "{What} is {eq}.",
                "What was added is {eq}.",
                "So we get {eq}.",
            ),
            (
                Mistake(
                    INFERENCE,
                    "2 * q - m",
                    (
                        "The new mean lies between the old one and {what}, which is {eq}.",
                        "[{q}] must be the mean of [{m}] and {what}, so we have {eq}.",
                    ),
                ),
                Mistake(INFERENCE, "q", ("To have this mean, {what} must be {eq}.",)),
            ),
        ),
    ),
    {"name": NAMES},
    (Verify((Op("a", "n * m"), Op("b", "a + answer"), Op("c", "n + 1"), Op("d", "b / c")), "d", "q"),),
    (Bound("x > q", "the mean has risen to {q}, so the new number {x} must be more"),),
    largest=1100,
    seeds={"z": Given(range(1, 5), "", fixed=True)},
)

_MENDED = Story(
    (
        "The mean of {n} readings was {m}. Then it was found that {r} had been written down as {w}. What is the "
        "right mean?",
        "{name} finds a mean of {m} for {n} numbers but has typed {w} in place of {r}. Find the correct mean.",
        "A teacher's list of {n} marks has an average of {m}. One mark was {r} but was entered as {w}. What is "
        "the average after the correction?",
    ),
    {
        "n": Given(range(4, 16), "numbers"),
        "m": Given(range(30, 90), "as wrong mean"),
        "w": Given(range(12, 50), "as wrong number"),
        "r": Given((), "as right number", made="w + n * z"),
    },
    (
        Op("t", "n * m", "the wrong sum"),
        Op(
            "d",
            "r - w",
            "the correction",
            ("{What} is {eq}.", "The number was too small by {eq}.", "What was missing is {eq}."),
        ),
        Op(
            "u",
            "t + d",
            "the right sum",
            ("{What} is {eq}.", "With the correction, the sum is {eq}.", "Corrected, the sum is {eq}."),
            (
                Mistake(
                    SIGN, "t - d", ("With the correction, the sum is {eq}.", "Taking it off, the sum is {eq}.")
                ),
                Mistake(CASE, "t + r", ("With the right number, the sum is {eq}.",)),
            ),
        ),
        Op(
            "v",
            "u / n",
            "the right mean",
            ("{What} is {eq}.", "Dividing again, we get {eq}.", "So the mean should be {eq}.", "This makes {eq}."),
            (Mistake(INFERENCE, "m + d", ("The mean changes as the number does, to {eq}.",)),),
        ),
    ),
    {"name": NAMES},
    (Verify((Op("x", "answer * n"), Op("y", "x - r"), Op("z", "y + w"), Op("q", "z / n")), "q", "m"),),
    (Bound("v > m", "a number was too small, so the right mean {v} must be more than {m}"),),
    largest=1500,
    seeds={"z": Given((1, 2, 3, 4), "", fixed=True)},
)

_TABLE = Story(
    (
        "In a test {a} pupils have {x} points, {b} have {y} points and {c} have {z} points. By how much does the "
        "mode differ from the mean?",
        "{a} families have {x} pets, {b} have {y} and {c} have {z}. Find the mean number of pets less the most "
        "common number, as a positive difference.",
        "A number list has {a} times {x}, {b} times {y} and {c} times {z}. How far apart are its mean and its "
        "mode?",
    ),
    {
        "a": Given(range(2, 7), "with the first value", fixed=True),
        "x": Given(range(2, 6), "as first value"),
        "b": Given(range(7, 14), "with the second value", fixed=True),
        "y": Given(range(6, 12), "as second value"),
        "c": Given(range(2, 7), "with the third value", fixed=True),
        "z": Given(range(12, 25), "as third value"),
    },
    (
        Op("n", "a + b + c", "the count"),
        Op(
            "t",
            "a * x + b * y + c * z",
            "the sum of all values",
            ("All values add up to {eq}.", "{What} is {eq}.", "Weighted with their counts, the values give {eq}."),
            (Mistake(INFERENCE, "x + y + z", ("The values add up to {eq}.", "{What} is {eq}.")),),
        ),
        Op(
            "m",
            "t / n",
            "the mean",
            (
                "The mean is {eq}.",
                "{What} is {eq}.",
                "Dividing by the count, the mean is {eq}.",
                "On average this is {eq}.",
            ),
            (
                Mistake(CASE, "t / 3", ("There are three values, so the mean is {eq}.",)),
                Mistake(INFERENCE, "(x + y + z) / 3", ("The mean of the three values is {eq}.",)),
            ),
        ),
        Op(
            "d",
            "abs(m - y)",
            "the difference of mean and mode",
            (
                "The mode is [{y}], as it occurs most often, so the difference is {eq}.",
                "{What} is {eq}.",
                "From the mean to the most common value it is {eq}.",
            ),
            (
                Mistake(
                    INFERENCE,
                    "abs(m - z)",
                    ("The mode is [{z}], as it is the largest, so the difference is {eq}.",),
                ),
                Mistake(
                    FORMULA,
                    "abs(m - b)",
                    ("The mode is [{b}], the largest count, so the difference is {eq}.",),
                ),
            ),
        ),
    ),
    bounds=(
        Bound("m > x", "the mean must lie above the smallest value, so [{m}] must be more than [{x}]"),
        Bound("m < z", "the mean must lie below the largest value, so [{m}] must be less than [{z}]"),
    ),
    whole=False,
    smallest=-50,
    largest=600,
)

_MIDRANGE = Story(
    (
        "The smallest of some numbers is {a} and their range is {r}. What is the middle between the smallest and "
        "the largest?",
        "A data set has range {r} and smallest value {a}. Find the mean of its smallest and its largest value.",
        "Temperatures in a town had a range of {r} degrees, the lowest being {a}. What number lies halfway "
        "between the lowest and the highest?",
    ),
    {"a": Given(range(3, 60), "as the smallest"), "r": Given(range(6, 80, 2), "as range")},
    (
        Op(
            "b",
            "a + r",
            "the largest value",
            ("{What} is {eq}.", "The range leads up to {eq}.", "Adding the range, the largest value is {eq}."),
            (Mistake(INFERENCE, "r", ("The range tells the largest value, {eq}.",)),),
        ),
        Op("s", "a + b", "the sum of both ends"),
        Op(
            "m",
            "s / 2",
            "the middle",
            (
                "{What} is {eq}.",
                "Halfway we have {eq}.",
                "The mean of the two is {eq}.",
                "Half of the sum is {eq}.",
            ),
            (Mistake(DROPPED, "r / 2", ("Half of the range is the middle, {eq}.", "Halfway we have {eq}.")),),
        ),
    ),
    {},
    (Verify((Op("x", "2 * answer"), Op("y", "x - a"), Op("z", "y - a")), "z", "r"),),
    (Bound("m > a", "the middle must lie above the smallest value {a}, so {m} must be more"),),
    whole=False,
    decimals=True,
)

STATISTICS = (_MEDIAN, _LEAVES, _JOINS, _MENDED, _TABLE, _MIDRANGE)
