"""Lines that are true or state nothing, of every kind that the evaluator of equations has once called wrong.

Each kind is a template with numbers drawn at random, whose right value is known.
"""

import random
from collections.abc import Callable

import pytest

from stepsight.core.equations import check_steps
from tests.cases import each
from tests.fuzz.attack import COUNT

pytestmark = pytest.mark.slow

Draw = Callable[[random.Random], str]


def amount(rng, most=99):
    return rng.randint(2, most)


def german(value):
    """A number with a decimal comma, with or without points between thousands."""
    return f"{value:,.2f}".replace(",", " ").replace(".", ",").replace(" ", ".").removesuffix("0")


def decimal_comma(rng):
    a, b = rng.randint(1, 300_000), amount(rng, 9)
    sign = rng.choice("·×*")
    money = rng.choice(["", " €", " kg", " m"])
    if rng.random() < 0.5:
        return f"{german(a / 10)}{money} {sign} {b} = {german(a * b / 10)}{money}"
    return f"{german(a / 100)}{money} + {german(b / 2)}{money} = {german(a / 100 + b / 2)}{money}"


def thousands(rng):
    mark = rng.choice(["'", "’", ".", "\u202f", "\u2009", "\xa0", ","])
    a, b = rng.randint(1_000, 900_000), rng.randint(2, 40)
    return f"{a:,} · {b} = {a * b:,}".replace(",", mark)


def three_decimals(rng):
    a, b = rng.randint(1001, 9_999), amount(rng, 9)
    # 1,234 kg is a little more than one.
    return f"{a // 1000},{a % 1000:03d} kg × {b} = {a * b // 1000},{a * b % 1000:03d} kg"


def cents(rng):
    a, dollars = rng.choice([5, 10, 20, 25, 50]), rng.randint(1, 20)
    times = dollars * 100 // a
    unit = rng.choice(["cents", "¢"])
    each_one = f"{a} cents" if unit == "cents" else f"{a}¢"
    return rng.choice(
        [
            f"{times} × {each_one} = ${dollars}",
            f"{each_one} × {times} = ${dollars}",
            f"${dollars} - {each_one} = ${dollars - a / 100:.2f}",
            f"${a / 100} × {times} = {dollars * 100} cents",
            f"£{dollars} − {a}p = {dollars * 100 - a}p",
        ]
    )


def part(rng):
    below = rng.randint(2, 9)
    above, one = rng.randint(1, below), rng.randint(5, 40)
    unit = rng.choice(["km", "litres", "pupils", "slices", "€"])
    thing = rng.choice(["", " cake", " of the tank", " rope", " class"])
    first = f"{above}/{below}{thing} = {above * one} {unit}"
    return rng.choice(
        [first, f"Since {first}, 1/{below} = {one} {unit}.", f"{below}/{below} = {below * one} {unit}"]
    )


def span(rng):
    first, length = rng.randint(2, 60), rng.randint(2, 30)
    dash = rng.choice("-–‐−")
    name = rng.choice(["Pages ", "days ", "rooms ", "", "ages ", "They won "])
    counted = rng.choice(["pages", "days", "points"])
    return f"{name}{first}{dash}{first + length} = {length + rng.randint(0, 1)} {counted}"


def name_before(rng):
    a, b = amount(rng), amount(rng)
    name = rng.choice(["Day", "Step", "Case", "Round", "Week", "Part", "Box", "Month"])
    dash = rng.choice(["-", "–", "−", "—"])
    return f"{name} {rng.randint(1, 12)} {dash} {a} + {b} = {a + b}"


def label(rng):
    first, second = rng.sample(range(1, 10), 2)
    sign = rng.choice("+-−")
    times = rng.choice(["", f"{rng.randint(2, 9)} × "])
    return f"{times}({first}) {sign} ({second}) = {rng.randint(10, 99)}"


def bullet(rng):
    a, b = amount(rng), amount(rng)
    mark = rng.choice(
        ["- ", "– ", "• ", "* ", "1. ", "2) ", "(3) ", "a) ", "iv. ", "— ", "· ", "+ ", "4 - ", "5: "]
    )
    return f"{mark}{a} + {b} = {a + b}"


def clock(rng):
    hour, minutes, hours = rng.randint(1, 9), rng.choice(["00", "15", "30"]), rng.randint(1, 9)
    return f"{hour}:{minutes} + {hours}{rng.choice([' h', 'h', ' hours'])} = {hour + hours}:{minutes}"


def length(rng):
    feet, inches = rng.randint(1, 12), rng.randint(1, 11)
    return rng.choice(
        [
            f'{feet}\'{inches}" = {12 * feet + inches}"',
            f"{feet}’ {inches}” = {12 * feet + inches}”",
            f"{feet} ft {inches} in = {12 * feet + inches} in",
            f"{feet} ft + {inches} in = {12 * feet + inches} in",
        ]
    )


def ratio(rng):
    a, b, times = (rng.randint(2, 9) for _ in range(3))
    return rng.choice(
        [
            f"{a * times} : {b * times} = {a} : {b}",
            f"{a * b} : {a} + {times} = {b + times}",
            f"{times * (a + b)} : ({a} + {b}) = {times}",
            f"A:B = {a}:{b}, so A = {a * times} and B = {b * times}",
        ]
    )


def unit(rng):
    small, big, size = rng.choice(
        [("g", "kg", 1000), ("ml", "l", 1000), ("cm", "m", 100), ("minutes", "hours", 60), ("oz", "lbs", 16)]
    )
    a, b = rng.randint(1, 9), rng.randint(1, 9)
    return rng.choice(
        [
            f"{a} {big} + {b} {small} = {a * size + b} {small}",
            f"{size * a} {small} × {b} = {a * b} {big}",
            f"{size * a} × {b} = {a * b} {big}",
            f"{a} {big} × {b} = {a * b * size} {small}",
        ]
    )


def container(rng):
    boxes, size, more = rng.randint(2, 9), rng.randint(3, 24), rng.randint(1, 9)
    box = rng.choice(["boxes", "packs", "bags", "crates", "trays"])
    return f"{boxes} {box} + {more} = {boxes * size + more} {rng.choice(['pencils', 'eggs', 'apples'])}"


def abbreviated(rng):
    a, b, c = amount(rng), amount(rng), amount(rng)
    if rng.random() < 0.5:
        word = rng.choice(["Rs.", "Rs", "CHF", "INR", "₹", "₽", "€", "£"])
        return f"{word} {a} + {word} {b} × {c} = {word} {a + b * c}"
    return f"{a} {rng.choice(['lbs', 'hrs', 'oz', 'yds'])}. + {b} × {c} = {a + b * c}"


def listed(rng):
    a, b, c, d = (amount(rng) for _ in range(4))
    return rng.choice(
        [
            f"sum of {a}, {b}, {c} + {d} = {a + b + c + d}",
            f"{a},{b},{c} + {d} = {c + d}",
            f"({a},{b}) + ({c},{d}) = ({a + c},{b + d})",
        ]
    )


def other_rules(rng):
    a, b, c = (rng.randint(2, 9) for _ in range(3))
    return rng.choice(
        [
            f"{a} ^ {b} = {a ^ b} in XOR",
            f"{a} + {b} × {c} = {(a + b) * c} if done left to right",
            f"{a**3}^1/3 = {a}",
            f"{a}-1/2 cups = {a}.5 cups",
            f"{10 * a} — {b} + {c} = {10 * a - b + c}",
        ]
    )


def rate(rng):
    a, b = rng.randint(2, 90), rng.randint(2, 9)
    return rng.choice(
        [
            f"{a} km/h × {b} days = {24 * a * b} km",
            f"{a} miles per hour * {30 * b} minutes = {a * b / 2:g} miles",
            f"{a} pages a day * {b} weeks = {7 * a * b} pages",
            f"{60 * a} minutes / 60 = {a} hours",
            f"{a} weeks * 7 = {7 * a} days",
            f"{a} hours per week * {b} weeks = {a * b} hours",
            f"{b} hours + {a} minutes to cool = {60 * b + a} minutes",
        ]
    )


def denied(rng):
    a, b = amount(rng), amount(rng)
    wrong = f"{a} + {b} = {a + b + rng.randint(1, 9)}"
    return rng.choice(
        [
            f"Angenommen, {wrong}",
            f"Предположим, что {wrong}",
            f"假如{wrong}",
            f"a common mistake is {wrong}",
            f"one might think {wrong}",
            f"{wrong} es imposible",
            f"{wrong}, противоречие",
            f"{wrong}. Sorry, {a + b}",
            f"{wrong}, no",
            f"<s>{wrong}</s> {a + b}",
        ]
    )


def rest(rng):
    below, quotient = rng.randint(3, 40), rng.randint(2, 40)
    left = rng.randint(1, below - 1)
    above = below * quotient + left
    return rng.choice(
        [
            f"{above} / {below} = {quotient} boxes, leaving {left}",
            f"{above}/{below} = {quotient}, plus {left}",
            f"{above} ÷ {below} = {quotient} bags with {left} pens over",
            f"[{above}/{below}] = {quotient}",
            f"{{{above}/{below}}} = {left}/{below}",
            f"{above}/{below} = {quotient}-{left}/{below}",
        ]
    )


KINDS: dict[str, Draw] = {
        "decimal comma": decimal_comma, "thousands": thousands, "three decimals": three_decimals, "cents": cents,
        "part": part, "span": span, "name": name_before, "label": label, "bullet": bullet, "clock": clock,
        "length": length, "ratio": ratio, "unit": unit, "container": container, "abbreviated": abbreviated,
        "list": listed, "other rules": other_rules, "rate": rate, "denied": denied, "rest": rest,
}  # fmt: skip
FRAMES = ("{}", "{}.", "So {}.", "We get: {}", "Then\n{}\nand so on.", "Therefore, {}")


@each("kind", KINDS)
def test_what_is_true_or_states_nothing_is_not_flagged(kind):
    rng = random.Random(f"{kind} 0")
    for _ in range(max(300, COUNT)):
        line = KINDS[kind](rng)
        # What depends on the beginning of a line stays there.
        text = line if kind in ("bullet", "name") else rng.choice(FRAMES).format(line)
        failing = [
            text[check.start : check.end] for check in check_steps("A problem.", [text])[0] if not check.holds
        ]
        assert not failing, (text, failing)
