"""The notation of a trace, in plain text or LaTeX, and the wording shared by all stories, from `wording.yaml`."""

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from pathlib import Path

from stepsight.core.files.yaml_files import validate_yaml
from stepsight.core.validation import ListOf, Model

Number = int | Fraction
"""An exact value; most are whole, and then an int for speed."""

Values = Mapping[str, Number]

DECIMALS = frozenset({2, 4, 5, 10, 20, 25, 50, 100})
"""The denominators of fractions that two decimal places express exactly."""

# A formula, or a value with its surroundings.
_PLACE = re.compile(r"\[(?P<formula>.+?)\]|(?P<money>@?)\{(?P<sign>[+(]?)(?P<key>\w+)\)?\}(?P<percent>%?)")
_VALUE = re.compile(r"\{(?P<sign>[+(]?)(?P<key>\w+)\)?\}")
_POLYNOMIAL = re.compile(r"<(?:([a-z]);)?([\w ,-]+)>")
_TYPESET = tuple(
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        (r"<=", r"\\le"),
        (r">=", r"\\ge"),
        (r"(?<!\\)sqrt\(([^()]+)\)", r"\\sqrt{\1}"),
        (r"(?<!\\)log_(\w+)\(([^()]+)\)", r"\\log_{\1} \2"),
        (r"\^\(([^()]+)\)", r"^{\1}"),
        (r"([\^_])(-?\d\d+|-\d)", r"\1{\2}"),
        (r" mod ", r" \\bmod "),
        (r"π(?=\s?[a-zA-Z])\s?", r"\\pi "),
        (r"π", r"\\pi"),
    )
)
_PLAIN = re.compile(r"[<>]=|sqrt\(|[\^_π]|mod")
# A variable or the name of a function keeps its case at the start of a sentence.
_CASED = re.compile(r"[a-z]+[(_]|[b-zπ](?:\W|$)")


@dataclass(frozen=True)
class Style:
    """The notation of a trace.

    `times` and `over` replace `*` and `/` in formulas, and `over` may be `frac` in LaTeX. If `decimals` is true,
    values with at most two decimal places are written as decimals rather than fractions.
    """

    latex: bool
    times: str
    over: str
    decimals: bool = False

    @classmethod
    def draw(cls, rng: random.Random, decimals: bool = False) -> "Style":
        if rng.random() < 0.5:
            times, over = rng.choice(["\\times", "\\cdot"]), rng.choice(["\\div", "/", "frac"])
            return cls(True, times, over, decimals)
        return cls(False, rng.choice(["*", "*", "x", "×"]), rng.choice(["/", "/", "÷"]), decimals)

    def number(self, value: Number) -> str:
        """Return a number as written in a formula."""
        if value.denominator == 1:
            return str(value.numerator)
        if self.decimals and value.denominator in DECIMALS:
            return f"{float(value):.2f}"
        if not self.latex:
            return f"{value.numerator}/{value.denominator}"
        sign = "-" if value < 0 else ""
        return f"{sign}\\frac{{{abs(value.numerator)}}}{{{value.denominator}}}"

    def math(self, formula: str) -> str:
        """Return a formula in this notation, with its delimiters.

        `formula` either has `*` and `/` with spaces around them, or is already in this notation.
        """
        over = "/" if self.over == "frac" else self.over
        text = formula.replace(" * ", f" {self.times} ").replace(" / ", f" {over} ")
        return f"${_to_latex(text)}$" if self.latex else text

    def boxed(self, value: str) -> str:
        return f"$\\boxed{{{_to_latex(value)}}}$" if self.latex else value

    def polynomial(self, coefficients: Sequence[Number], letter: str = "x") -> str:
        """Return a polynomial as text, such as x^2 - 2x + 3 for `[1, -2, 3]`, or 0 if all coefficients are 0."""
        shown = ""
        for power, coefficient in zip(range(len(coefficients) - 1, -1, -1), coefficients, strict=True):
            if coefficient == 0:
                continue
            sign = "-" if coefficient < 0 else "+"
            number = "" if abs(coefficient) == 1 and power else self.number(max(coefficient, -coefficient))
            term = number + ("" if power == 0 else letter if power == 1 else f"{letter}^{power}")
            shown += f" {sign} {term}" if shown else ("-" + term if sign == "-" else term)
        return shown or "0"

    def fill(self, template: str, texts: Mapping[str, str], values: Values, problem: bool = False) -> str:
        """Fill the template of a step or, with `problem`, of a problem, where LaTeX has all values in math mode.

        `{key}` is a text or a value, `{(key)}` is a value that is put in brackets if it is negative, and `{+key}`
        is a value with a plus or minus sign, as in a sum. `@{p}` is an amount in dollars, `{r}%` a percentage.
        `[...]` is a formula. `<a,b,c>` is the polynomial ax² + bx + c, whose coefficients are values or whole
        numbers, and `<t;a,b>` is a polynomial in t. Other braces are kept, since LaTeX needs them.
        """

        def value(match: re.Match[str]) -> str:
            sign, key = match["sign"], match["key"]
            if key not in values:
                return texts.get(key, match[0])
            number = self.number(max(values[key], -values[key]) if sign == "+" else values[key])
            if sign == "+":
                return f"{'-' if values[key] < 0 else '+'} {number}"
            return f"({number})" if sign == "(" and values[key] < 0 else number

        def polynomial(match: re.Match[str]) -> str:
            letter, keys = match.groups()
            parts = [key.strip() for key in keys.split(",")]
            return self.polynomial([values[k] if k in values else int(k) for k in parts], letter or "x")

        def place(match: re.Match[str]) -> str:
            if match["formula"]:
                formula = self.math(_VALUE.sub(value, _POLYNOMIAL.sub(polynomial, match["formula"])))
                return re.sub(r"\b(\d+)/(\d+)\b", r"\\frac{\1}{\2}", formula) if problem and self.latex else formula
            key, money, percent = match["key"], match["money"], match["percent"]
            if key not in values and key not in texts:
                return match[0]
            text = value(match)
            if money:
                return ("\\$" if self.latex else "$") + text + percent
            if self.latex and problem and (percent or key in values):
                return "$" + text + percent.replace("%", "\\%") + "$"
            return (f"${text}$" if self.latex and key in values and "\\frac" in text else text) + percent

        # In one pass, since a LaTeX fraction has braces of its own.
        return _PLACE.sub(place, template)


def _to_latex(text: str) -> str:
    """Translate the plain notation of templates into LaTeX: relations, roots, logarithms, exponents and indices."""
    for pattern, replacement in _TYPESET if _PLAIN.search(text) else ():
        text = pattern.sub(replacement, text)
    return text


def signed(value: int) -> str:
    """Return a number as it is written after an operator: in brackets if it is negative."""
    return f"({value})" if value < 0 else str(value)


def capital(text: str) -> str:
    """Return a text as the start of a sentence."""
    return text if _CASED.match(text) else text[:1].upper() + text[1:]


# Words that may be followed by the result alone.
_TERSE = re.compile(
    r"(?:\b(?:is|are|be|gives|get|has|have|equals|remain|remains|makes|leaves|takes|so|then)|[,:]) \{w?eq\}"
)


class _Wording(Model):
    templates: dict[str, ListOf[str]]
    endings: dict[str, ListOf[ListOf[str]]]
    words: dict[str, ListOf[str]]


@cache
def _wording() -> _Wording:
    return validate_yaml(_Wording, Path(__file__).with_name("wording.yaml"))


def templates(name: str) -> tuple[str, ...]:
    """Return the templates of a name, such as `says`."""
    return _wording().templates[name]


def ending(name: str, passes: bool, rng: random.Random, **numbers: object) -> str:
    """Choose the end of a check that passes or fails, and fill in the numbers that it compares."""
    return rng.choice(_wording().endings[name])[not passes].format(**numbers)


def word_lists() -> Mapping[str, tuple[str, ...]]:
    """Return the lists of words that stories refer to by name."""
    return _wording().words


def terse(template: str) -> str:
    """Return the template with the equation replaced by its result, if the sentence allows that."""
    if "{res}" in template or "{wres}" in template or not _TERSE.search(template):
        return template
    return template.replace("eq}", "res}")
