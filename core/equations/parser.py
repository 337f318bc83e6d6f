"""A parser of expressions: numbers, fractions, powers, roots and letters. Units and currency signs are skipped.

It parses the longest possible expression and returns None if there is none. The amount of work is limited. Where a
notation has two readings, as `1/2x` has, both are kept.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import NamedTuple

from stepsight.core.equations.expressions import Expression, Kind, Node
from stepsight.core.equations.tokens import Token, TokenKind
from stepsight.core.equations.units import RATES, SCALES, is_unit_word, may_be_glued
from stepsight.core.equations.values import UndecidedError

MAX_DEPTH = 24
MAX_NODES = 160
MAX_STEPS = 3_000

_SUM, _PRODUCT = "sum", "product"
_BRACKETS = {"(": ")", "[": "]", "{": "}", "|": "|"}
_UNIT_LETTERS = ("s", "h", "g", "l", "m")
_PER = ("/", "per", "an", "a")
# The Latin letter, and the Cyrillic one that looks like it.
_CROSSES = ("x", "X", "х", "Х")


class _Slash(NamedTuple):
    """The two sides of a quotient. `spaced` is True if white space precedes its sign."""

    numerator: Node
    denominator: Node
    spaced: bool


@dataclass
class Reader:
    """A parser of tokens by the strength of their operators. `at` is the index of the next token, and `units` holds
    the units that were skipped so far. `steps` is the number of operations that may still be performed; when it is
    used up, parsing stops."""

    tokens: Sequence[Token]
    at: int = 0
    units: set[str] = field(default_factory=set)
    steps: int = MAX_STEPS
    nodes: int = 0
    choices: int = 0

    def read(self, first: int) -> Expression | None:
        """Return the longest expression that begins at token `first`, or None if there is none."""
        self.at, self.nodes, self.choices, self.units = first, 0, 0, set()
        try:
            node = self._expression(0, _SUM)
        except UndecidedError:
            return None
        percent = any(part.kind is Kind.PERCENT for part in node.walk())
        return Expression(node, first, self.at, frozenset(self.units), self.choices, percent)

    def _peek(self, ahead: int = 0) -> Token:
        """Return a token, or the end of the text after the last one."""
        return self.tokens[min(self.at + ahead, len(self.tokens) - 1)]

    def _take(self) -> Token:
        token = self._peek()
        self.at += 1
        return token

    def _skip_sign(self, *signs: str) -> bool:
        """Skip one of the signs, and return True if there was one."""
        is_present = self._peek().is_sign(*signs)
        self.at += is_present
        return is_present

    def _node(self, kind: Kind, *parts: Node) -> Node:
        self.nodes += 1
        if self.nodes > MAX_NODES:
            raise UndecidedError
        return Node(kind, parts)

    def _ambiguous(self, first: Node, second: Node) -> Node:
        self.choices += 1
        return Node(Kind.EITHER, (first, second), choice=self.choices - 1)

    def _expression(self, depth: int, level: str) -> Node:
        """Read a sum, or only a product, up to the first token that does not continue it."""
        if level == _SUM:
            self.steps -= 1
            if depth > MAX_DEPTH or self.steps < 0:
                raise UndecidedError
        node = self._signed_operand(depth) if level == _SUM else self._power(depth)
        slash: _Slash | None = None
        while True:
            self.steps -= level == _PRODUCT
            mark = self.at
            operator = self._operator(level)
            if operator is None:
                return node
            try:
                right = self._signed_operand(depth) if level == _SUM else self._factor(operator, depth)
            except UndecidedError:
                if self.steps < 0 or self.nodes > MAX_NODES:
                    raise
                self.at = mark
                return node
            node, slash = self._apply_operator(node, operator, right, slash, self.tokens[mark].spaced)

    def _apply_operator(
        self, left: Node, operator: str, right: Node, slash: _Slash | None, spaced: bool
    ) -> tuple[Node, _Slash | None]:
        """Return `left operator right`, in both readings if there are two. `slash` is the quotient that ends in
        `left`, whose denominator may include `right`; the second result is the same for what follows. `spaced` is
        True if white space precedes the operator."""
        if operator in ("+", "-"):
            total = self._node(Kind(operator), left, right)
            if right.kind is not Kind.PERCENT or left.kind is Kind.PERCENT:
                return total, None
            # $50 - 10% is 90% of $50, as is usual with prices.
            part = self._node(Kind.DIVIDE, right.parts[0], Node(Kind.NUMBER, number=Fraction(100)))
            share = self._node(Kind(operator), Node(Kind.NUMBER, number=Fraction(1)), part)
            return self._ambiguous(total, self._node(Kind.MULTIPLY, left, share)), None
        if operator == "/":
            quotient = self._node(Kind.DIVIDE, left, right)
            if left.kind is Kind.POWER and left.parts[1].kind is right.kind is Kind.NUMBER:
                # 8^1/3 may be the cube root.
                root = self._node(Kind.POWER, left.parts[0], self._node(Kind.DIVIDE, left.parts[1], right))
                quotient = self._ambiguous(quotient, root)
            if slash and slash.spaced and not spaced:
                # 12 / 3/4 may divide by three quarters.
                divisor = self._node(Kind.DIVIDE, slash.denominator, right)
                quotient = self._ambiguous(quotient, self._node(Kind.DIVIDE, slash.numerator, divisor))
            return quotient, _Slash(left, right, spaced)
        if operator == "" and slash:
            # `1/2x` is a half of x or one over 2x.
            below = self._node(Kind.MULTIPLY, slash.denominator, right)
            other = self._node(Kind.DIVIDE, slash.numerator, below)
            return self._ambiguous(self._node(Kind.MULTIPLY, left, right), other), slash._replace(denominator=below)
        return self._node(Kind.MULTIPLY, left, right), None

    def _operator(self, level: str) -> str | None:
        """Read an operator of a sum or of a product. Returns "" if factors follow each other without a sign, and
        None if the sum or product ends."""
        token = self._peek()
        if level == _SUM or token.is_sign("*", "/"):
            if not token.is_sign(*("+-" if level == _SUM else "*/")):
                return None
            self.at += 1
            if level == _PRODUCT and token.end - token.start > 6 and self._peek().text.lower() == "by":
                # multiplied by, divided by
                self.at += 1
            return token.text
        if self._is_times() or (token.kind is TokenKind.WORD and token.text.lower() == "of" and self._is_part()):
            self.at += 1
            return "*"
        # $x = 3$ $y = 4$ are two formulas.
        return "" if not token.opens and self._begins_factor(token) else None

    def _is_times(self) -> bool:
        """True if the letter x means multiplication, because it is between a factor and a number."""
        token, following, before = self._peek(), self._peek(1), self.tokens[self.at - 1]
        if token.text not in _CROSSES or token.kind is not TokenKind.LETTER or self.at == 0:
            return False
        if following.kind is TokenKind.NUMBER or (following.kind is TokenKind.UNIT and following.text == "$"):
            is_factor = before.kind in (TokenKind.NUMBER, TokenKind.UNIT, TokenKind.WORD)
            return is_factor or before.is_sign(")", "%", "}")
        # `2 x (3 + 4)`, but not `2x (3 + 4)`.
        return following.is_sign("(") and token.spaced and following.spaced and not token.in_formula

    def _is_part(self) -> bool:
        """True if the word "of" follows a percentage or fraction and therefore means multiplication."""
        before = self.tokens[self.at - 1]
        if before.is_sign("%") or before.text.lower() == "percent":
            return True
        if before.kind is TokenKind.NUMBER and self.at >= 3 and self.tokens[self.at - 2].is_sign("/"):
            return self.tokens[self.at - 3].kind is TokenKind.NUMBER
        return before.is_sign("}") and any(t.text == "frac" for t in self.tokens[max(0, self.at - 7) : self.at])

    def _begins_factor(self, token: Token) -> bool:
        """True if a token continues a product without a sign."""
        following, before = self._peek(1), self.tokens[self.at - 1]
        if token.kind is TokenKind.LETTER:
            # Elsewhere a letter is a word of prose.
            is_operand = following.kind in (TokenKind.RELATION, TokenKind.SIGN) and not following.is_sign("(")
            return token.in_formula or not token.spaced or (token.text not in ("a", "A", "I") and is_operand)
        if token.kind is TokenKind.NUMBER:
            # 2!3!
            is_behind_bracket = token.in_formula and before.is_sign(")")
            return not token.spaced and (before.is_sign("!") or is_behind_bracket)
        return (token.kind is TokenKind.COMMAND and token.text != "boxed") or token.is_sign("(")

    def _signed_operand(self, depth: int) -> Node:
        sign = ""
        for _ in range(2):
            if not self._peek().is_sign("-", "+"):
                break
            sign = {"-": "" if sign else "-", "+": sign}[self._take().text]
        node = self._expression(depth, _PRODUCT)
        if not sign:
            return node
        negative = self._node(Kind.NEGATIVE, node)
        base = node
        while base.kind in (Kind.MULTIPLY, Kind.DIVIDE):
            base = base.parts[0]
        if base.kind is Kind.POWER and base.parts[0].kind is Kind.NUMBER:
            # Some write -3^2 for the square of -3, which changes the sign if the exponent is even.
            return self._ambiguous(negative, node)
        return negative

    def _factor(self, operator: str, depth: int) -> Node:
        token = self._peek()
        is_aside = not operator and token.is_sign("(") and token.spaced and not token.in_formula
        # In prose, a bracket after a space is rarely a factor, and only if it holds nothing but numbers or letters.
        if is_aside and self._peek(1).kind is TokenKind.WORD:
            raise UndecidedError
        return self._power(depth)

    def _power(self, depth: int) -> Node:
        """Read a base with what follows it: exponents, factorials, percent signs and units."""
        node = self._base(depth + 1)
        while (following := self._postfix(node, depth)) is not None:
            node = following
        unit = self._skip_units()
        if not unit or node.kind is not Kind.NUMBER:
            return node
        # $12/day
        return replace(node, unit=f"{node.unit}{unit}" if unit[0] == "/" else unit)

    def _postfix(self, node: Node, depth: int) -> Node | None:
        """Read a sign or word after `node` that changes its value, or return None if there is none."""
        token = self._peek()
        word = token.text.lower() if token.kind is TokenKind.WORD else ""
        if token.is_sign("^"):
            if self._skip_degrees():
                self.units.add("°")
                return node
            self.at += 1
            power = self._node(Kind.POWER, node, self._exponent(depth))
            if self._peek().is_sign("^") or (node.name in ("f", "g", "h", "F", "G") and self._peek().is_sign("(")):
                raise UndecidedError
            return power
        if token.is_sign("!") and not token.spaced:
            ends_sentence = not token.in_formula and self._peek(1).kind in (
                TokenKind.WORD, TokenKind.BREAK, TokenKind.END,
            )  # fmt: skip
            self.at += 1
            if self._peek().is_sign("!"):
                raise UndecidedError
            factorial = self._node(Kind.FACTORIAL, node)
            return self._ambiguous(factorial, node) if ends_sentence else factorial
        if token.is_sign("%") or word == "percent":
            self.at += 1
            return self._node(Kind.PERCENT, node)
        if token.kind is TokenKind.UNIT:
            self.units.add(self._take().text)
            return replace(node, unit=token.text) if node.kind is Kind.NUMBER else node
        if word in SCALES:
            if self.at > 1 and self.tokens[self.at - 2].is_sign("/"):
                raise UndecidedError
            self.units.add(word)
            self.at += 1
            return self._node(Kind.MULTIPLY, node, Node(Kind.NUMBER, number=Fraction(SCALES[word])))
        return None

    def _exponent(self, depth: int) -> Node:
        is_negative = self._peek().is_sign("-")
        self._skip_sign("-", "+")
        inner = self._base(depth + 1)
        return self._node(Kind.NEGATIVE, inner) if is_negative else inner

    def _base(self, depth: int) -> Node:
        self.steps -= 1
        if depth > MAX_DEPTH or self.steps < 0:
            raise UndecidedError
        token, unit = self._peek(), ""
        if token.kind is TokenKind.UNIT and token.text != "°":
            unit = self._take().text
            self.units.add(unit)
            token = self._peek()
            if self._skip_sign("-"):
                return self._node(Kind.NEGATIVE, self._base(depth + 1))
            if token.kind not in (TokenKind.NUMBER, TokenKind.LETTER) and not token.is_sign("("):
                raise UndecidedError
        if token.kind is TokenKind.NUMBER:
            node = self._number(token)
            return replace(node, unit=unit) if unit and node.kind is Kind.NUMBER else node
        if token.kind is TokenKind.LETTER:
            return self._letter(token)
        if token.kind is TokenKind.COMMAND:
            return self._command(token, depth)
        if not token.is_sign(*_BRACKETS):
            raise UndecidedError
        inner = self._group(_BRACKETS[token.text], depth)
        return self._node(Kind.ABSOLUTE, inner) if token.text == "|" else inner

    def _group(self, closing: str, depth: int) -> Node:
        self.at += 1
        inner = self._expression(depth + 1, _SUM)
        self._skip_units()
        if not self._skip_sign(closing):
            raise UndecidedError
        return inner

    def _number(self, token: Token) -> Node:
        self.at += 1
        self.nodes += 1
        node = Node(Kind.NUMBER, name=token.text, number=token.number, decimals=token.decimals, cut=token.cut)
        following, below = self._peek(), self._peek(2)
        if following.kind is TokenKind.SUBSCRIPT:
            return self._based_number(token)
        if token.decimals:
            return node
        if following.text == "frac" and following.kind is TokenKind.COMMAND:
            # A mixed number or a product.
            part = self._base(MAX_DEPTH - 2)
            return self._ambiguous(self._node(Kind.ADD, node, part), self._node(Kind.MULTIPLY, node, part))
        is_part = (
            following.kind is below.kind is TokenKind.NUMBER and following.spaced and self._peek(1).is_sign("/")
        )
        if not is_part or (following.number or 0) >= (below.number or 0):
            return node
        # 1 1/2
        self.at += 3
        parts = (Node(Kind.NUMBER, name=part.text, number=part.number) for part in (following, below))
        return self._node(Kind.ADD, node, self._node(Kind.DIVIDE, *parts))

    def _based_number(self, token: Token) -> Node:
        base = self._subscript()
        if not base.isdecimal() or len(base) > 2 or not 2 <= int(base) <= 36 or token.decimals:
            raise UndecidedError
        try:
            value = int(token.text, int(base))
        except ValueError:
            raise UndecidedError from None
        return Node(Kind.NUMBER, name=f"{token.text}_{base}", number=Fraction(value))

    def _subscript(self) -> str:
        """Read a subscript and return its content as text."""
        self.at += 1
        token = self._take()
        if not token.is_sign("{"):
            if token.kind not in (TokenKind.NUMBER, TokenKind.LETTER, TokenKind.WORD):
                raise UndecidedError
            return token.text
        inner: list[str] = []
        while not self._skip_sign("}"):
            token = self._take()
            if len(inner) > 8 or token.kind in (TokenKind.RELATION, TokenKind.OBSTACLE):
                raise UndecidedError
            inner.append(token.text)
        return " ".join(inner)

    def _letter(self, token: Token) -> Node:
        self.at += 1
        self.nodes += 1
        name = token.text
        if self._peek().kind is TokenKind.SUBSCRIPT:
            name = f"{name}_{self._subscript()}"
        following = self._peek()
        # f(3) is the value of a function, n(n + 1) a product.
        if following.is_sign("(") and not following.spaced and name not in "xyzabcdkmnrstuvπ":
            raise UndecidedError
        return Node(Kind.LETTER, name=name)

    def _command(self, token: Token, depth: int) -> Node:
        self.at += 1
        match token.text:
            case "frac" | "binom":
                kind = Kind.DIVIDE if token.text == "frac" else Kind.BINOMIAL
                return self._node(kind, self._argument(depth), self._argument(depth))
            case "boxed":
                return self._argument(depth)
            case "sqrt":
                is_square = not self._peek().is_sign("[")
                degree = Node(Kind.NUMBER, number=Fraction(2)) if is_square else self._group("]", depth)
                return self._node(Kind.ROOT, self._argument(depth), degree)
        return self._function(token.text, depth)

    def _argument(self, depth: int) -> Node:
        token = self._peek()
        if token.is_sign("{", "("):
            return self._group(_BRACKETS[token.text], depth)
        if token.kind not in (TokenKind.NUMBER, TokenKind.LETTER):
            raise UndecidedError
        self.at += 1
        self.nodes += 1
        return Node(Kind(token.kind.value), name=token.text, number=token.number, decimals=token.decimals)

    def _function(self, name: str, depth: int) -> Node:
        """Parse the function `name`, including its exponent or base, and its argument."""
        parts, exponent = [], None
        if self._peek().kind is TokenKind.SUBSCRIPT and name == "log":
            base = self._subscript()
            if not base.isdecimal() or len(base) > 9:
                raise UndecidedError
            parts.append(Node(Kind.NUMBER, number=Fraction(int(base))))
        elif self._skip_sign("^"):
            exponent = self._exponent(depth)
            if exponent.kind is not Kind.NUMBER:
                raise UndecidedError
        elif name == "log":
            # Without its base, a logarithm may be the natural or the common one.
            raise UndecidedError
        mark, is_degrees = self.at, False
        argument = self._argument(depth)
        if self._peek().is_sign("^") and not self.tokens[mark].is_sign("("):
            is_degrees = self._skip_degrees()
            if not is_degrees:
                raise UndecidedError
        elif self._peek().kind is TokenKind.UNIT and self._peek().text == "°":
            self.at += 1
        if is_degrees or any(
            unit.kind is TokenKind.UNIT and unit.text == "°" for unit in self.tokens[mark : self.at]
        ):
            argument = self._node(Kind.MULTIPLY, argument, Node(Kind.LETTER, name="π/180"))
        elif name in ("sin", "cos", "tan") and argument.kind is Kind.NUMBER and argument.number:
            # sin 30: degrees without their sign, or radians.
            raise UndecidedError
        self.nodes += 1
        node = Node(Kind.FUNCTION, (argument, *parts), name)
        return node if exponent is None else self._node(Kind.POWER, node, exponent)

    def _skip_degrees(self) -> bool:
        """Skip a degree sign written as an exponent, with or without braces. Returns True if there was one."""
        width = 4 if self._peek(1).is_sign("{") else 2
        is_degrees = self._peek(width // 2).kind is TokenKind.UNIT
        self.at += width * is_degrees
        return is_degrees

    def _skip_units(self) -> str:
        """Skip the words of a unit if an operator or a relation follows them, and return the unit. Returns "" if
        nothing is skipped."""
        start, words = self.at, list[str]()
        while len(words) < 7:
            token, is_behind_word = self._peek(), bool(words)
            is_word = token.kind is TokenKind.WORD
            if self.at == start and is_word and not token.spaced and not may_be_glued(token.text):
                break
            is_unit = is_unit_word(token.text) and (is_behind_word or token.text.lower() != "of")
            if is_word and (is_unit or words[1:2] == ["to"]):
                words.append(token.text.lower())
            elif self._is_unit_letter():
                words.append(token.text)
            elif is_behind_word and token.is_sign("(") and self._unit_follows() and self._peek(2).is_sign(")"):
                words.append(self._peek(1).text.lower())
                self.at += 2
            elif token.is_sign("/") and (self._unit_follows() or self._is_unit_letter(1)):
                words.append("/")
            # As in "square-feet" and "dollars $".
            elif not is_behind_word or not (
                token.kind is TokenKind.UNIT or (token.is_sign("-") and not token.spaced and self._unit_follows())
            ):
                break
            self.at += 1
        token = self._peek()
        ends = token.kind in (TokenKind.BREAK, TokenKind.END)
        continues = token.kind is TokenKind.RELATION or token.is_sign(*"+-*/)}") or self._is_times()
        if not words or not ("/" in words if ends else continues):
            self.at = start
            return ""
        self.units.update(words)
        if len(words) > 1 and words[0] in _PER:
            return f"/{words[1]}"
        return f"{words[0]}/{words[2]}" if len(words) > 2 and words[1] in _PER else RATES.get(words[0], words[0])

    def _unit_follows(self) -> bool:
        return self._peek(1).kind is TokenKind.WORD and is_unit_word(self._peek(1).text)

    def _is_unit_letter(self, ahead: int = 0) -> bool:
        """True if a letter is a unit next to a slash without spaces, as in 5 kb/s and 3600 s/h."""
        token, before, after = self._peek(ahead), self.tokens[self.at + ahead - 1], self._peek(ahead + 1)
        if token.text not in _UNIT_LETTERS or token.kind is not TokenKind.LETTER or token.in_formula:
            return False
        if before.is_sign("/"):
            return not token.spaced and self.tokens[self.at + ahead - 2].kind is not TokenKind.NUMBER
        return token.spaced and before.kind is TokenKind.NUMBER and after.is_sign("/") and not after.spaced
