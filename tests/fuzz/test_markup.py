"""Generated expressions over several lines, which Markdown must not change, and lists, which it must."""

import re

import pytest

from stepsight.app.markup.markdown import markdown_html
from stepsight.app.markup.text import text_html
from tests.app.elements import read
from tests.fuzz.attack import COUNT
from tests.seeds import chance

OPERANDS = (
    *("{n}", "{n}", "{n}.5", "{v}", "{v}", "{n}{v}", "{v}{w}", "{v}^2", "{v}_1", "{n}%", "({v} + {n})", "|{v}|"),
    *("ABC", "sin {v}", "f({v})", "n!", "$\\frac{{{n}}}{{{v}}}$", "\\({v}_{n}\\)", "√{n}", "{n} apples", "cost"),
)
SIGNS = ("+", "-", "*", "*", "**", "/", "·", "×", "=", "<", "≤", ">", "≈")
INTRODUCTIONS = (
    "",
    "So ",
    "We get ",
    "The total is\n",
    "Hence\n\n",
    "- ",
    "+ ",
    "* ",
    "# of ways = ",
    "# ways\n= ",
)
SENTENCES = (
    *(
        "We have {n} apples.",
        "Then {v} is the number of pens:",
        "Let's see:",
        "**Given:**",
        "## Step {n}",
        "",
        "1. It holds that:",
    ),
)
ITEMS = (
    "There are {n} pens",
    "*Then* {v} = {n}",
    "He sells {n}",
    "**Total:** {n} + {v}",
    "We divide \\({n}\\) by {n}.",
    "一共{n}支",
)


def filled(shape, rng):
    return shape.format(n=rng.randint(2, 99), v=rng.choice("abxyk"), w=rng.choice("bcz"))


def expression(rng):
    """Operands and signs, with white space or none around a sign, and a line break at some."""
    introduction = rng.choice(INTRODUCTIONS)
    # A word at the beginning is that of a list.
    first = OPERANDS[:-1] if introduction.endswith(("- ", "+ ", "* ")) else OPERANDS
    text = introduction + filled(rng.choice(first), rng)
    for _ in range(rng.randint(1, 8)):
        before, after = rng.choice(["", " ", " ", "\n", "\n  "]), rng.choice(["", " ", " ", "\n"])
        text += before + rng.choice(SIGNS) + after + filled(rng.choice(OPERANDS), rng)
    return text + rng.choice(["", ".", "\n", "\nSo it is."])


def shown(html):
    """The text of HTML, with the sources of its formulas."""
    return read(re.sub(r'<span class="math"[^>]* data-source="([^"]*)">[^<]*</span>', r"\1", html)).text


@pytest.mark.parametrize("seed", range(10))
def test_an_expression_keeps_every_character(seed):
    rng = chance(seed)
    for _ in range(max(1, COUNT // 10)):
        text = expression(rng)
        assert shown(markdown_html(text)) == shown(text_html(text)), text


@pytest.mark.parametrize("seed", range(10))
def test_a_list_has_a_bullet_an_item(seed):
    rng = chance(seed)
    for _ in range(max(1, COUNT // 10)):
        sign, items = rng.choice("-*+"), [filled(rng.choice(ITEMS), rng) for _ in range(rng.randint(1, 5))]
        text = "\n".join([filled(rng.choice(SENTENCES), rng), *(f"  {sign} {item}" for item in items)])
        assert markdown_html(text).count("• ") == len(items), text
