"""The equations that a text states, read from plain text and from LaTeX."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from tests.training.synth.terms import Tree

_TOKEN = re.compile(
    r"(?P<num>\d+(?:\.\d+)?)|(?P<cmd>\\[A-Za-z]+|\\.)|(?P<word>[A-Za-z]+(?:[-'’][A-Za-z]+)*)|(?P<sign><=|>=|!=|\S)"
)
_SKIPPED = frozenset({"\\left", "\\right", "\\,", "\\;", "\\!", "\\ ", "\\quad", "\\displaystyle"})
_RELATIONS = {
    "=": "=",
    "<": "<",
    ">": ">",
    "≤": "<=",
    "≥": ">=",
    "≠": "!=",
    "<=": "<=",
    ">=": ">=",
    "!=": "!=",
    "\\le": "<=",
    "\\leq": "<=",
    "\\ge": ">=",
    "\\geq": ">=",
    "\\ne": "!=",
    "\\neq": "!=",
    "\\lt": "<",
    "\\gt": ">",
}
_TIMES = frozenset({"*", "×", "·", "\\times", "\\cdot"})
_OVER = frozenset({"/", "÷", "\\div"})
_FUNCTIONS = {"gcd": "gcd", "lcm": "lcm", "C": "binom", "P": "perm", "sqrt": "sqrt", "max": "max", "min": "min"}
_FUNCTIONS |= {"floor": "floor", "ceil": "ceil"}
_CALLED = frozenset("fghpFGHPv")
_UNITS = frozenset({"cm", "km", "mm", "dm", "kg", "ml", "am", "pm", "st", "nd", "rd", "th"})
_BRACKETS = (
    ("(", ")", ""),
    ("{", "}", ""),
    ("|", "|", "abs"),
    ("\\lfloor", "\\rfloor", "floor"),
    ("\\lceil", "\\rceil", "ceil"),
)
_POWERS = {"²": 2, "³": 3}


@dataclass(frozen=True)
class Token:
    """`spaced`: a space stands before it; `start` and `end`: its place in the normalised text."""

    kind: str
    text: str
    spaced: bool
    start: int
    end: int


@dataclass(frozen=True)
class Relation:
    """`left sign right`; a side is None where the text has words in its place.

    `start` and `end` are those of the whole chain in the normalised text.
    """

    left: Tree | None
    sign: str
    right: Tree | None
    start: int
    end: int


def normalised(text: str) -> str:
    """The text without what only serves typography; dollar signs before an amount vanish."""
    text = text.replace("\\$", " ").replace("\\%", "%").replace("^\\circ", "").replace("^{\\circ}", "")
    text = text.replace("−", "-").replace("°", "").replace("\\text{ of }", " of ").replace("\\text{lcm}", "lcm")
    return re.sub(r"\\operatorname\{(\w+)\}", r"\1", text)


def tokens(text: str) -> list[Token]:
    """The tokens of a normalised text; the edges of mathematics are tokens `$`."""
    found: list[Token] = []
    end = 0
    for match in _TOKEN.finditer(text):
        if match[0] in _SKIPPED:
            end = match.end()
            continue
        found.append(Token(match.lastgroup or "", match[0], match.start() > end or not found, *match.span()))
        end = match.end()
    return found


class _Reader:
    """Recursive descent over the tokens from `at`; a side that cannot be continued ends before its last sign."""

    def __init__(self, found: list[Token]) -> None:
        self.tokens = found
        self.at = 0

    def peek(self, ahead: int = 0) -> Token | None:
        place = self.at + ahead
        return self.tokens[place] if 0 <= place < len(self.tokens) else None

    def text(self, ahead: int = 0) -> str:
        token = self.peek(ahead)
        return token.text if token else ""

    def take(self, text: str) -> bool:
        if self.text() != text:
            return False
        self.at += 1
        return True

    def sum(self) -> Tree | None:
        left = self.product()
        while left is not None and self.text() in ("+", "-"):
            start, sign = self.at, self.text()
            self.at += 1
            right = self.product()
            if right is None:
                self.at = start
                break
            left = (sign, left, right)
        return left

    def product(self) -> Tree | None:
        left = self.signed()
        while left is not None:
            start, sign = self.at, self._sign()
            if sign is None:
                break
            right = self.signed() if sign != "adjacent" else self.power()
            if right is None:
                self.at = start
                break
            left = ("*" if sign == "adjacent" else sign, left, right)
        return left

    def _sign(self) -> str | None:
        token = self.peek()
        if token is None:
            return None
        if token.text in _TIMES or token.text in _OVER or token.text in ("mod", "\\bmod"):
            self.at += 1
            return "*" if token.text in _TIMES else "/" if token.text in _OVER else "mod"
        if token.text == "%" and self.text(1) == "of":
            self.at += 2
            return "percent"
        after = self.peek(1)
        if token.text == "x" and token.spaced and after and after.spaced and self._operand(after):
            self.at += 1
            return "*"
        return "adjacent" if self._adjacent(token) else None

    def _operand(self, token: Token) -> bool:
        """What may stand after ` x ` taken for a times sign."""
        return token.kind == "num" or token.text in ("(", "-", "sqrt", "π", "|")

    def _adjacent(self, token: Token) -> bool:
        """A factor written without a sign, as in 3x, 2(x + 1) or 25\\pi."""
        if token.text in ("π", "\\pi", "pi"):
            return True
        before = self.peek(-1)
        if token.spaced:
            # LaTeX ends a command's name by a space: "\pi r".
            return (
                before is not None and before.text in ("\\pi", "π") and len(token.text) == 1 and token.text != "x"
            )
        opens = token.text in ("(", "\\sqrt", "\\frac") or (
            token.text == "|" and before is not None and before.kind == "num"
        )
        return opens or (token.kind == "word" and self._variable(token))

    def signed(self) -> Tree | None:
        if self.text() == "-":
            start = self.at
            self.at += 1
            inner = self.power()
            if inner is None:
                self.at = start
                return None
            return ("neg", inner)
        return self.power()

    def power(self) -> Tree | None:
        base = self.atom()
        while base is not None:
            token = self.peek()
            if token is None:
                break
            if token.text == "^":
                start = self.at
                self.at += 1
                exponent = self.signed()
                if exponent is None:
                    self.at = start
                    break
                base = ("^", base, exponent)
            elif token.text == "_" and base[0] == "num" and not token.spaced:
                start = self.at
                self.at += 1
                radix = self.atom()
                if radix is None:
                    self.at = start
                    break
                base = _in_base(str(base[1]), radix)
            elif token.text == "!" and not token.spaced:
                self.at += 1
                base = ("!", base)
            elif token.text in _POWERS and not token.spaced:
                self.at += 1
                base = ("^", base, ("num", Fraction(_POWERS[token.text])))
            else:
                break
        return base

    def atom(self) -> Tree | None:
        start = self.at
        found = self._atom()
        if found is None:
            self.at = start
        return found

    def _atom(self) -> Tree | None:
        token = self.peek()
        if token is None:
            return None
        if token.kind == "num":
            self.at += 1
            return ("num", Fraction(token.text))
        for opening, closing, name in _BRACKETS:
            if token.text == opening:
                self.at += 1
                inner = self.sum()
                if inner is None or not self.take(closing):
                    return None
                return (name, inner) if name else inner
        if token.text in ("π", "\\pi", "pi"):
            self.at += 1
            return ("var", "π")
        if token.kind == "cmd":
            return self._command(token.text)
        if token.text in _FUNCTIONS and self.text(1) == "(":
            self.at += 1
            return self._call(_FUNCTIONS[token.text])
        if token.text == "log" or token.text == "log_":
            return self._log()
        if token.kind == "word" and self._variable(token):
            self.at += 1
            return self._word(token.text)
        return None

    def _word(self, text: str) -> Tree:
        """`xy` is x times y; `f(...)` and `f'(...)` are calls."""
        primes = 0
        while self.text() in ("'", "’") and not self._spaced():
            self.at += 1
            primes += 1
        if text in _CALLED and self.text() == "(" and not self._spaced():
            self.at += 1
            inner = self.sum()
            if inner is not None and self.take(")"):
                return (f"{text}{chr(39) * primes}()", inner)
        tree: Tree = ("var", text[0])
        for letter in text[1:]:
            tree = ("*", tree, ("var", letter))
        return tree

    def _spaced(self) -> bool:
        token = self.peek()
        return token is not None and token.spaced

    def _variable(self, token: Token) -> bool:
        place = self.at if self.peek() is token else self.tokens.index(token, self.at)
        before = self.tokens[place - 1] if place else None
        if len(token.text) == 2 and (token.text == "xy" or (before and before.kind == "num" and not token.spaced)):
            return token.text not in _UNITS
        if len(token.text) != 1:
            return False
        after = self.tokens[place + 1] if place + 1 < len(self.tokens) else None
        if token.text in "aAI":
            # An article, unless it stands in a calculation.
            return after is not None and after.text in ("=", "+", "-", "*", "/", "^", "$", "<", ">")
        if before and before.kind == "num" and token.spaced:
            return False  # a unit
        called = token.text in _CALLED and after is not None and after.text in ("(", "'", "’")
        return token.text.islower() or called or (after is not None and after.text in _RELATIONS)

    def _command(self, name: str) -> Tree | None:
        self.at += 1
        if name in ("\\frac", "\\dfrac", "\\tfrac", "\\binom"):
            first, second = self._group(), self._group()
            if first is None or second is None:
                return None
            return ("binom" if name == "\\binom" else "/", first, second)
        if name == "\\sqrt":
            inner = self._group()
            return ("sqrt", inner) if inner is not None else None
        if name == "\\boxed":
            return self._group()
        if name in ("\\gcd", "\\max", "\\min"):
            return self._call(name[1:])
        if name == "\\log":
            self.at -= 1
            return self._log()
        return None

    def _log(self) -> Tree | None:
        self.at += 1
        if not self.take("_"):
            return None
        base = self._group() if self.text() == "{" else self.atom()
        inner = self.atom()
        return ("log", base, inner) if base is not None and inner is not None else None

    def _group(self) -> Tree | None:
        if not self.take("{"):
            return None
        inner = self.sum()
        return inner if inner is not None and self.take("}") else None

    def _call(self, name: str) -> Tree | None:
        if not self.take("("):
            return None
        parts = [self.sum()]
        while self.take(","):
            parts.append(self.sum())
        if None in parts or not self.take(")"):
            return None
        return (name, *parts)


def _in_base(digits: str, radix: Tree) -> Tree:
    """`312_5` is (3 * 5 + 1) * 5 + 2."""
    tree: Tree = ("num", Fraction(digits[0]))
    for digit in digits[1:]:
        tree = ("+", ("*", tree, radix), ("num", Fraction(digit)))
    return tree


@lru_cache(4096)
def chains(text: str) -> list[list[Relation]]:
    """Every `left = right` and inequality of a normalised text; a chain a = b = c has one for each of its signs."""
    return list(_chains(_Reader(tokens(text))))


def _chains(reader: _Reader) -> Iterator[list[Relation]]:
    while reader.peek() is not None:
        start = reader.at
        left = reader.sum()
        if left is None and reader.text() not in _RELATIONS:
            reader.at = start + 1
            continue
        sides: list[Tree | None] = [left]
        signs: list[str] = []
        while reader.text() in _RELATIONS:
            signs.append(_RELATIONS[reader.text()])
            reader.at += 1
            if reader.text() == "$" and reader.text(1) != "":
                reader.at += 1
            sides.append(reader.sum())
        span = reader.tokens[start].start, reader.tokens[reader.at - 1].end
        if signs:
            yield [Relation(a, s, b, *span) for a, s, b in zip(sides, signs, sides[1:], strict=False)]


@lru_cache(4096)
def expressions(text: str) -> list[Tree]:
    """Every longest expression of a normalised text, single numbers included, whatever stands around it."""
    reader = _Reader(tokens(text))
    found: list[Tree] = []
    while reader.peek() is not None:
        tree = reader.sum()
        if tree is None:
            reader.at += 1
        else:
            found.append(tree)
    return found
