"""A parser of expressions: numbers, fractions, powers, roots and letters. Units and currency signs are skipped.

It parses the longest possible expression and returns None if there is none. The amount of work is limited.
"""

from dataclasses import dataclass, replace
from fractions import Fraction

from stepsight.core.equations.cursor import Cursor
from stepsight.core.equations.expressions import Expression, Kind, Node
from stepsight.core.equations.tokens import Token, TokenKind
from stepsight.core.equations.units import SCALES
from stepsight.core.equations.values import UndecidedError

MAX_DEPTH = 24
MAX_NODES = 160
MAX_STEPS = 3_000


@dataclass
class Reader(Cursor):
    """A recursive-descent parser of tokens. `steps` is the number of operations that it may still perform; when it
    is used up, parsing stops."""

    steps: int = MAX_STEPS
    nodes: int = 0
    choices: int = 0

    def read(self, first: int) -> Expression | None:
        """Return the longest expression that begins at token `first`, or None if there is none."""
        self.at, self.nodes, self.choices, self.units = first, 0, 0, set()
        try:
            node = self._sum(0)
        except UndecidedError:
            return None
        percent = any(part.kind is Kind.PERCENT for part in node.walk())
        return Expression(node, first, self.at, frozenset(self.units), self.choices, percent)

    def _node(self, kind: Kind, *parts: Node) -> Node:
        self.nodes += 1
        if self.nodes > MAX_NODES:
            raise UndecidedError
        return Node(kind, parts)

    def _either(self, first: Node, second: Node) -> Node:
        self.choices += 1
        return Node(Kind.EITHER, (first, second), choice=self.choices - 1)

    def _sum(self, depth: int) -> Node:
        self.steps -= 1
        if depth > MAX_DEPTH or self.steps < 0:
            raise UndecidedError
        node = self._signed(depth)
        while self._is_sign("+", "-"):
            mark, sign = self.at, self.tokens[self.at].text
            self.at += 1
            try:
                right = self._signed(depth)
            except UndecidedError:
                if self.steps < 0 or self.nodes > MAX_NODES:
                    raise
                self.at = mark
                break
            total = self._node(Kind.ADD if sign == "+" else Kind.SUBTRACT, node, right)
            if right.kind is Kind.PERCENT and node.kind is not Kind.PERCENT:
                # $50 - 10% is 90% of $50, as prices are given.
                total = self._either(total, self._changed_by(node, right, sign))
            node = total
        return node

    def _changed_by(self, node: Node, percentage: Node, sign: str) -> Node:
        part = self._node(Kind.DIVIDE, percentage.parts[0], Node(Kind.NUMBER, number=Fraction(100)))
        share = self._node(Kind.ADD if sign == "+" else Kind.SUBTRACT, Node(Kind.NUMBER, number=Fraction(1)), part)
        return self._node(Kind.MULTIPLY, node, share)

    def _signed(self, depth: int) -> Node:
        sign = ""
        for _ in range(2):
            if not self._is_sign("-", "+"):
                break
            sign = {"-": "" if sign else "-", "+": sign}[self.tokens[self.at].text]
            self.at += 1
        node = self._product(depth)
        if not sign:
            return node
        negative = self._node(Kind.NEGATIVE, node)
        base = node
        while base.kind in (Kind.MULTIPLY, Kind.DIVIDE):
            base = base.parts[0]
        if base.kind is Kind.POWER and base.parts[0].kind is Kind.NUMBER:
            # Some write -3^2 for the square of -3: the sign changes where the exponent is even.
            return self._either(negative, node)
        return negative

    def _product(self, depth: int) -> Node:
        node = self._power(depth)
        slash: tuple[Node, Node] | None = None
        while True:
            self.steps -= 1
            mark = self.at
            sign = self._multiplier()
            if sign is None:
                break
            try:
                right = self._power(depth) if sign else self._implicit(depth)
            except UndecidedError:
                if self.steps < 0 or self.nodes > MAX_NODES:
                    raise
                self.at = mark
                break
            if sign == "/":
                slash = (node, right)
                quotient = self._node(Kind.DIVIDE, node, right)
                if node.kind is Kind.POWER and node.parts[1].kind is Kind.NUMBER and right.kind is Kind.NUMBER:
                    # 8^1/3 may be the cube root.
                    root = self._node(Kind.POWER, node.parts[0], self._node(Kind.DIVIDE, node.parts[1], right))
                    quotient = self._either(quotient, root)
                node = quotient
            elif not sign and slash:
                # `1/2x` is a half of x or one over 2x.
                below = self._node(Kind.MULTIPLY, slash[1], right)
                other = self._node(Kind.DIVIDE, slash[0], below)
                slash = (slash[0], below)
                node = self._either(self._node(Kind.MULTIPLY, node, right), other)
            else:
                slash = None
                node = self._node(Kind.MULTIPLY, node, right)
        return node

    def _multiplier(self) -> str | None:
        """Read a multiplication or division sign. Returns `*`, `/`, "" if factors follow each other without a sign,
        or None if the product ends."""
        token = self._peek()
        if token is None:
            return None
        if token.is_sign("*", "/"):
            self.at += 1
            if token.end - token.start > 6 and (by := self._peek()) and by.text.lower() == "by":
                self.at += 1
            return token.text
        if self._is_times(token):
            self.at += 1
            return "*"
        if token.kind is TokenKind.WORD and token.text.lower() == "of" and self._is_part():
            self.at += 1
            return "*"
        if token.opens:
            # $x = 3$ $y = 4$
            return None
        if token.kind is TokenKind.LETTER:
            return "" if self._is_factor(token) else None
        if token.kind is TokenKind.COMMAND and token.text not in ("boxed",):
            return ""
        if token.is_sign("("):
            return ""
        # 2!3!
        is_behind_factorial = (
            token.kind is TokenKind.NUMBER
            and not token.spaced
            and (
                self.tokens[self.at - 1].is_sign("!")
                or (token.in_formula and self.tokens[self.at - 1].is_sign(")"))
            )
        )
        return "" if is_behind_factorial else None

    def _is_part(self) -> bool:
        """True if the word "of" follows a percentage or fraction and therefore means multiplication."""
        before = self.tokens[self.at - 1]
        if before.is_sign("%") or before.text.lower() == "percent":
            return True
        if before.kind is TokenKind.NUMBER and self.at >= 3 and self.tokens[self.at - 2].is_sign("/"):
            return self.tokens[self.at - 3].kind is TokenKind.NUMBER
        return before.is_sign("}") and any(t.text == "frac" for t in self.tokens[max(0, self.at - 7) : self.at])

    def _is_factor(self, token: Token) -> bool:
        """True if a letter is a factor of the current term rather than a word of prose."""
        if token.in_formula or not token.spaced:
            return True
        following = self._peek(1)
        if token.text in ("a", "A", "I") or following is None:
            return False
        return following.kind in (TokenKind.RELATION, TokenKind.SIGN) and not following.is_sign("(")

    def _implicit(self, depth: int) -> Node:
        token = self._peek()
        if token is not None and token.is_sign("(") and token.spaced and not token.in_formula:
            # In prose, a bracket after a space is rarely a factor: it is one only if numbers or letters fill it.
            following = self._peek(1)
            if following is None or following.kind is TokenKind.WORD:
                raise UndecidedError
        return self._power(depth)

    def _power(self, depth: int) -> Node:
        node = self._postfix(self._base(depth + 1), depth)
        unit = self._skip_units()
        if not unit or node.kind is not Kind.NUMBER:
            return node
        # $12/day
        return replace(node, unit=f"{node.unit}{unit}" if unit[0] == "/" else unit)

    def _postfix(self, node: Node, depth: int) -> Node:
        while True:
            token = self._peek()
            if token is None:
                return node
            if token.is_sign("^"):
                if self._skip_degrees():
                    self.units.add("°")
                    continue
                self.at += 1
                base, node = node, self._node(Kind.POWER, node, self._exponent(depth))
                if self._is_sign("^") or (base.name in ("f", "g", "h", "F", "G") and self._is_sign("(")):
                    raise UndecidedError
            elif token.is_sign("!") and not token.spaced:
                ends_sentence = self._may_end_sentence()
                self.at += 1
                if self._is_sign("!"):
                    raise UndecidedError
                factorial = self._node(Kind.FACTORIAL, node)
                node = self._either(factorial, node) if ends_sentence else factorial
            elif token.is_sign("%") or (token.kind is TokenKind.WORD and token.text.lower() == "percent"):
                self.at += 1
                node = self._node(Kind.PERCENT, node)
            elif token.kind is TokenKind.UNIT:
                self.units.add(token.text)
                self.at += 1
                node = replace(node, unit=token.text) if node.kind is Kind.NUMBER else node
            elif token.kind is TokenKind.WORD and token.text.lower() in SCALES:
                if self.at > 1 and self.tokens[self.at - 2].is_sign("/"):
                    raise UndecidedError
                self.units.add(token.text.lower())
                self.at += 1
                scale = Node(Kind.NUMBER, number=Fraction(SCALES[token.text.lower()]))
                node = self._node(Kind.MULTIPLY, node, scale)
            else:
                return node

    def _may_end_sentence(self) -> bool:
        following, in_formula = self._peek(1), self.tokens[self.at].in_formula
        return not in_formula and (following is None or following.kind in (TokenKind.WORD, TokenKind.BREAK))

    def _exponent(self, depth: int) -> Node:
        token = self._peek()
        if token is not None and token.is_sign("-", "+"):
            self.at += 1
            inner = self._base(depth + 1)
            return self._node(Kind.NEGATIVE, inner) if token.text == "-" else inner
        return self._base(depth + 1)

    def _base(self, depth: int) -> Node:
        self.steps -= 1
        token = self._peek()
        if token is None or depth > MAX_DEPTH or self.steps < 0:
            raise UndecidedError
        unit = ""
        if token.kind is TokenKind.UNIT and token.text != "°":
            unit = token.text
            self.units.add(unit)
            self.at += 1
            token = self._peek()
            if token is None or (
                token.kind not in (TokenKind.NUMBER, TokenKind.LETTER) and not token.is_sign("(", "-")
            ):
                raise UndecidedError
            if token.is_sign("-"):
                self.at += 1
                return self._node(Kind.NEGATIVE, self._base(depth + 1))
        if token.kind is TokenKind.NUMBER:
            node = self._number(token)
            return replace(node, unit=unit) if unit and node.kind is Kind.NUMBER else node
        if token.kind is TokenKind.LETTER:
            return self._letter(token)
        if token.kind is TokenKind.COMMAND:
            return self._command(token, depth)
        for opening, closing in (("(", ")"), ("[", "]"), ("{", "}"), ("|", "|")):
            if token.is_sign(opening):
                inner = self._group(closing, depth)
                return self._node(Kind.ABSOLUTE, inner) if opening == "|" else inner
        raise UndecidedError

    def _group(self, closing: str, depth: int) -> Node:
        self.at += 1
        inner = self._sum(depth + 1)
        self._skip_units()
        if not self._is_sign(closing):
            raise UndecidedError
        self.at += 1
        return inner

    def _number(self, token: Token) -> Node:
        assert token.number is not None
        self.at += 1
        node = Node(Kind.NUMBER, name=token.text, number=token.number, decimals=token.decimals, cut=token.cut)
        self.nodes += 1
        following = self._peek()
        if following is None:
            return node
        if following.kind is TokenKind.SUBSCRIPT:
            return self._in_base(token)
        if token.decimals == 0 and self._is_mixed(token, following):
            part = self._base(MAX_DEPTH - 2) if following.text == "frac" else self._plain_fraction()
            whole = self._node(Kind.ADD, node, part)
            return whole if following.text != "frac" else self._either(whole, self._node(Kind.MULTIPLY, node, part))
        return node

    def _is_mixed(self, token: Token, following: Token) -> bool:
        """True if an integer and the fraction after it form a mixed number, as in `1 1/2`."""
        if following.text == "frac" and following.kind is TokenKind.COMMAND:
            return True
        slash, below = self._peek(1), self._peek(2)
        return (
            following.kind is TokenKind.NUMBER
            and following.spaced
            and slash is not None
            and slash.is_sign("/")
            and below is not None
            and below.kind is TokenKind.NUMBER
            and (following.number or 0) < (below.number or 0)
        )

    def _plain_fraction(self) -> Node:
        above, below = self.tokens[self.at], self.tokens[self.at + 2]
        self.at += 3
        parts = (Node(Kind.NUMBER, name=token.text, number=token.number) for token in (above, below))
        return self._node(Kind.DIVIDE, *parts)

    def _in_base(self, token: Token) -> Node:
        foot = self._subscript()
        if not foot.isdecimal() or len(foot) > 2 or not 2 <= int(foot) <= 36 or token.decimals:
            raise UndecidedError
        try:
            value = int(token.text, int(foot))
        except ValueError:
            raise UndecidedError from None
        return Node(Kind.NUMBER, name=f"{token.text}_{foot}", number=Fraction(value))

    def _subscript(self) -> str:
        """Read a subscript and return its content as text."""
        self.at += 1
        token = self._peek()
        if token is None:
            raise UndecidedError
        self.at += 1
        if not token.is_sign("{"):
            if token.kind not in (TokenKind.NUMBER, TokenKind.LETTER, TokenKind.WORD):
                raise UndecidedError
            return token.text
        inner: list[str] = []
        while not self._is_sign("}"):
            token = self._peek()
            if token is None or len(inner) > 8 or token.kind in (TokenKind.RELATION, TokenKind.OBSTACLE):
                raise UndecidedError
            inner.append(token.text)
            self.at += 1
        self.at += 1
        return " ".join(inner)

    def _letter(self, token: Token) -> Node:
        self.at += 1
        self.nodes += 1
        name = token.text
        following = self._peek()
        if following is not None and following.kind is TokenKind.SUBSCRIPT:
            name = f"{name}_{self._subscript()}"
            following = self._peek()
        applied = following is not None and following.is_sign("(") and not following.spaced
        # f(3) is a function's value; n(n + 1) a product.
        if applied and (name not in "xyzabcdkmnrstuvπ"):
            raise UndecidedError
        return Node(Kind.LETTER, name=name)

    def _command(self, token: Token, depth: int) -> Node:
        self.at += 1
        match token.text:
            case "frac":
                return self._node(Kind.DIVIDE, self._argument(depth), self._argument(depth))
            case "binom":
                return self._node(Kind.BINOMIAL, self._argument(depth), self._argument(depth))
            case "boxed":
                return self._argument(depth)
            case "sqrt":
                degree = self._group("]", depth) if self._is_sign("[") else Node(Kind.NUMBER, number=Fraction(2))
                return self._node(Kind.ROOT, self._argument(depth), degree)
            case _:
                return self._applied(token.text, depth)

    def _argument(self, depth: int) -> Node:
        token = self._peek()
        if token is None:
            raise UndecidedError
        if token.is_sign("{"):
            return self._group("}", depth)
        if token.is_sign("("):
            return self._group(")", depth)
        if token.kind is TokenKind.NUMBER or token.kind is TokenKind.LETTER:
            self.at += 1
            self.nodes += 1
            kind = Kind.NUMBER if token.kind is TokenKind.NUMBER else Kind.LETTER
            return Node(kind, name=token.text, number=token.number, decimals=token.decimals)
        raise UndecidedError

    def _applied(self, name: str, depth: int) -> Node:
        """Parse the function `name`, including its exponent or base, and its argument."""
        parts = []
        exponent = None
        following = self._peek()
        if following is not None and following.kind is TokenKind.SUBSCRIPT and name == "log":
            foot = self._subscript()
            if not foot.isdecimal() or len(foot) > 9:
                raise UndecidedError
            parts.append(Node(Kind.NUMBER, number=Fraction(int(foot))))
        elif following is not None and following.is_sign("^"):
            self.at += 1
            exponent = self._exponent(depth)
            if exponent.kind is not Kind.NUMBER:
                raise UndecidedError
        if name == "log" and not parts and exponent is None:
            # Without its base, a logarithm may be the natural or the common one.
            raise UndecidedError
        is_degrees, mark = False, self.at
        argument = self._argument(depth)
        token = self._peek()
        if token is not None and token.is_sign("^") and not self.tokens[mark].is_sign("("):
            is_degrees = self._skip_degrees()
            if not is_degrees:
                raise UndecidedError
        elif token is not None and token.kind is TokenKind.UNIT and token.text == "°":
            is_degrees, self.at = True, self.at + 1
        if any(unit.kind is TokenKind.UNIT and unit.text == "°" for unit in self.tokens[mark : self.at]):
            is_degrees = True
        if is_degrees:
            argument = self._node(Kind.MULTIPLY, argument, Node(Kind.LETTER, name="π/180"))
        elif name in ("sin", "cos", "tan") and argument.kind is Kind.NUMBER and argument.number:
            # sin 30: degrees without their sign, or radians.
            raise UndecidedError
        self.nodes += 1
        node = Node(Kind.FUNCTION, (argument, *parts), name)
        return node if exponent is None else self._node(Kind.POWER, node, exponent)

    def _skip_degrees(self) -> bool:
        """Skip a degree sign written as an exponent, with or without braces. Returns True if there was one."""
        token, width = self._peek(1), 2
        if token is not None and token.is_sign("{"):
            token, width = self._peek(2), 4
        is_degrees = token is not None and token.kind is TokenKind.UNIT
        self.at += width if is_degrees else 0
        return is_degrees
