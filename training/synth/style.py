"""A style: how one trace writes its mathematics, as plain text or as LaTeX."""

import random
import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Style:
    """`times` and `over` replace `*` and `/` wherever a formula is written."""

    latex: bool
    times: str
    over: str

    @classmethod
    def draw(cls, rng: random.Random) -> "Style":
        if rng.random() < 0.45:
            return cls(True, rng.choice(["\\times", "\\cdot"]), rng.choice(["\\div", "/"]))
        return cls(False, rng.choice(["*", "*", "x", "×"]), rng.choice(["/", "/", "÷"]))

    def math(self, formula: str) -> str:
        """A formula written with `*`, `/` and `a% of b`, in this style."""
        text = formula.replace(" * ", f" {self.times} ").replace(" / ", f" {self.over} ")
        if not self.latex:
            return text
        return "$" + text.replace("% of ", "\\% \\text{ of } ") + "$"

    def boxed(self, value: str) -> str:
        return f"$\\boxed{{{value}}}$" if self.latex else value

    def problem(self, template: str, values: dict[str, str]) -> str:
        """Fill a problem: `@{p}` is an amount of dollars, `[...]` a formula; names are filled as they are."""

        def fill(match: re.Match[str]) -> str:
            formula, money, key, percent = match.groups()
            if formula:
                return self._given(formula.format(**values))
            value = values[key]
            if money:
                return f"\\${value}" if self.latex else f"${value}"
            if percent:
                return f"${value}\\%$" if self.latex else f"{value}%"
            return f"${value}$" if self.latex and value.isdigit() else value

        # One pass: a LaTeX fraction has braces of its own.
        return re.sub(r"\[(.+?)\]|(@?)\{(\w+)\}(%?)", fill, template)

    def _given(self, formula: str) -> str:
        fraction = re.fullmatch(r"(\d+)/(\d+)", formula)
        if self.latex and fraction:
            formula = f"\\frac{{{fraction[1]}}}{{{fraction[2]}}}"
        return f"${formula}$" if self.latex else formula


def signed(value: int) -> str:
    """A number as it stands after an operator: negative ones in brackets."""
    return f"({value})" if value < 0 else str(value)


def capital(text: str) -> str:
    return text[:1].upper() + text[1:]
