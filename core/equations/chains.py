"""Chains of equations `a = b = c` in a text. The sides of the equations are called members.

A member is parsed only if none of the text next to it could be part of it.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import takewhile

from stepsight.core.equations.expressions import Expression, Kind
from stepsight.core.equations.parser import Reader
from stepsight.core.equations.tokens import Token, TokenKind
from stepsight.core.equations.units import conversion, is_word, may_be_glued
from stepsight.core.text.signs import words

MAX_RELATIONS = 60


@dataclass(frozen=True)
class Member:
    """One side of an equation, and its span in the text.

    `expression` is None if the side could not be parsed. `trailing` holds the words after the side. `in_formula` is
    True if the side is inside LaTeX maths.
    """

    expression: Expression | None
    start: int
    end: int
    trailing: tuple[str, ...] = ()
    in_formula: bool = False

    @cached_property
    def is_literal(self) -> bool:
        return self.expression is not None and self.expression.node.is_literal

    @cached_property
    def is_letter(self) -> bool:
        return self.expression is not None and self.expression.node.kind is Kind.LETTER

    @property
    def names_bases(self) -> bool:
        return self.expression is not None and self.expression.names_bases

    @cached_property
    def operations(self) -> int:
        """The number of operations in the member."""
        if self.expression is None:
            return 0
        leaves = (Kind.NUMBER, Kind.LETTER, Kind.EITHER, Kind.NEGATIVE)
        return sum(node.kind not in leaves for node in self.expression.node.walk())


@dataclass(frozen=True)
class Chain:
    """The members of a chain, and the relation between each pair of neighbours."""

    members: tuple[Member, ...]
    relations: tuple[str, ...]

    def pairs(self) -> Iterator[tuple[Member, Member, str]]:
        """Yield each pair of neighbouring members with the relation between them."""
        return zip(self.members, self.members[1:], self.relations, strict=False)

    def shifted(self, offset: int) -> "Chain":
        """Return a copy of the chain with its positions shifted by `offset` characters."""
        members = (replace(m, start=m.start + offset, end=m.end + offset) for m in self.members)
        return Chain(tuple(members), self.relations)

    @property
    def start(self) -> int:
        return self.members[0].start

    @property
    def end(self) -> int:
        return self.members[-1].end


def find_chains(tokens: Sequence[Token]) -> list[Chain]:
    """Return the chains in a text in order. `tokens` are the tokens of the text. The result is empty if there are
    too many relation signs."""
    if not 0 < sum(_is_relation(tokens, index) for index in range(len(tokens))) <= MAX_RELATIONS:
        return []
    reader, chains, index = Reader(tokens), list[Chain](), 0
    while tokens[index].kind is not TokenKind.END:
        token = tokens[index]
        if token.kind is TokenKind.SUBSCRIPT:
            index = _end_of_subscript(tokens, index + 1)
            continue
        is_relation = token.kind is TokenKind.RELATION
        expression = None if is_relation or not _may_begin(tokens, index) else reader.read(index)
        if reader.steps < 0:
            return []
        last = expression.last if expression else index
        if (is_relation or expression) and _is_relation(tokens, last):
            chain, index = _read_chain(reader, tokens, index, expression)
            chains.append(chain)
        else:
            index = max(index + 1, last)
    return chains if reader.steps >= 0 else []


def _read_chain(reader: Reader, tokens: Sequence[Token], index: int, first: Expression | None) -> tuple[Chain, int]:
    """Read the chain whose first side is `first`, or None if the first side cannot be parsed. Returns the chain,
    and the index of the token after it."""
    is_whole = first is not None and _is_whole_before(tokens, index) and not _is_named(tokens, index, first)
    last = first.last if first else index
    members = [_member(tokens, first if is_whole else None, index, last)]
    relations = []
    while _is_relation(tokens, last):
        is_spoken = tokens[last].kind is TokenKind.WORD
        relations.append("=" if is_spoken else tokens[last].text)
        begin = last + 1
        expression = reader.read(begin)
        last = expression.last if expression else begin
        ends_well = expression is not None and (_is_relation(tokens, last) or _is_whole_behind(tokens, last))
        if is_spoken and expression is not None:
            # Only "expression is number" states an equation: "number is expression" may give something a name.
            before = members[-1]
            is_worked_out = before.expression is not None and not before.expression.letters
            is_worked_out &= not before.is_literal and not (
                before.expression and before.expression.node.is_fraction
            )
            ends_well &= is_worked_out and expression.node.is_literal and tokens[last].kind is not TokenKind.WORD
        members.append(_member(tokens, expression if ends_well else None, begin, last))
        if expression is None:
            break
    return Chain(tuple(members), tuple(relations)), max(last, index + 1)


# Words after which a number alone is a side of an equation, rather than the end of a name such as "group 2".
_STATING = words(
    """
    have has get gets is so that gives obtain since then therefore thus hence means see becomes and
    write yields
    """
)


# Words before the number of a thing, as in "Day 1 - 5 + 2 = 7".
_NAMING = words(
    """
    day days step steps case cases week weeks month months year years page pages box line lines section sections
    chapter chapters problem problems question questions exercise example part parts round rounds group team class
    level grade room figure row rows column columns stage phase player item lesson bus route scenario trial task
    """
)
_DETERMINING = words("this that each every per a the one first second third last next same which other either both")


def _is_named(tokens: Sequence[Token], index: int, expression: Expression) -> bool:
    """True if an expression is the number of something named by the word before it, as in "case 3"."""
    if index == 0 or tokens[index - 1].kind is not TokenKind.WORD:
        return False
    word = tokens[index - 1].text.lower()
    if expression.node.is_literal:
        return word not in _STATING
    if word not in _NAMING or tokens[index].kind is not TokenKind.NUMBER:
        return False
    return index == 1 or tokens[index - 2].text.lower() not in _DETERMINING


def _is_relation(tokens: Sequence[Token], index: int) -> bool:
    """True if the token at `index` is a relation sign, or the word "is" between a calculation and a number."""
    token = tokens[index]
    if token.kind is TokenKind.RELATION:
        return True
    if token.kind is not TokenKind.WORD or token.text != "is" or index == 0:
        return False
    before, after = tokens[index - 1], tokens[index + 1]
    ends = before.kind is TokenKind.NUMBER or before.is_sign(")", "}", "!")
    return ends and (after.kind is TokenKind.NUMBER or after.is_sign("-") or after.text in ("$", "frac"))


def _member(tokens: Sequence[Token], expression: Expression | None, first: int, last: int) -> Member:
    behind = takewhile(lambda token: token.kind is TokenKind.WORD, tokens[last : last + 4])
    trailing = tuple(token.text.lower() for token in behind)
    end = tokens[last - 1].end if last > first else tokens[first].start
    return Member(expression, tokens[first].start, end, trailing, tokens[first].in_formula)


def _may_begin(tokens: Sequence[Token], index: int) -> bool:
    token = tokens[index]
    if token.kind is TokenKind.LETTER:
        is_article = token.text in ("a", "A", "I") and not token.in_formula
        return not is_article or tokens[index + 1].kind in (TokenKind.RELATION, TokenKind.SIGN)
    is_value = token.kind in (TokenKind.NUMBER, TokenKind.COMMAND, TokenKind.UNIT)
    return is_value or token.is_sign(*"([{|-+")


# Words that change the number after them: half of 26 is not 26.
_CHANGING = words(
    """
    half twice double triple thrice third quarter fourth fifth tenth square cube root factorial average
    mean median remainder reciprocal inverse negative opposite absolute gcd lcm minus plus times over
    divided by percent log sin cos tan mod modulo digits digit difference ratio choose per least most of
    fraction logarithm sine cosine tangent point mal geteilt durch weniger hoch fois par moins veces vezes por entre
    más mais menos volte per meno diviso keer на плюс минус
    """
)
_CHANGING_ENDS = (
    "的", "倍", "乘", "乘以", "乘上", "除", "除以", "减", "减去", "減", "減去", "加", "加上", "比", "の",
)  # fmt: skip
_SUMS = words(
    """
    total sum product number area perimeter volume cost amount value out sums products slope distance length width
    height speed probability discriminant price totale summe somme suma soma somma
    """
)
_OF = words("of de von di del aus от из")
_AND = words("and et und y e и")


def _is_whole_before(tokens: Sequence[Token], index: int) -> bool:
    """True if the expression that starts at token `index` is complete: nothing before the token belongs to it."""
    # The index before the first token is that of the end.
    token, before, earlier = tokens[index], tokens[index - 1], tokens[max(index - 2, -1)]
    if token.is_sign("-", "+") and not _is_sign_of_number(tokens, index):
        return False
    if before.kind in (TokenKind.BREAK, TokenKind.END):
        return not _joins_numbers(tokens, index - 1)
    if before.kind is TokenKind.WORD:
        # floor(42/16), gcd(12, 18)
        is_function = token.is_sign("(") and not token.spaced and not token.in_formula
        # 2 hours 15 minutes + 45 minutes
        is_compound = earlier.kind is TokenKind.NUMBER and bool(conversion(before.text.lower()))
        return not (is_function or is_compound or _is_changed(tokens, index) or _is_joined(tokens, index))
    if before.is_sign("(", "[", "{"):
        return token.spaced or earlier.kind not in (TokenKind.LETTER, TokenKind.SUBSCRIPT, TokenKind.OBSTACLE)
    if before.is_sign(")"):
        return token.spaced and not token.in_formula and not token.is_sign("(")
    if before.is_sign("-"):
        # A dash at the start of a list item.
        begins_line = earlier.kind is TokenKind.END or (earlier.kind is TokenKind.BREAK and earlier.text == "\n")
        return begins_line and token.in_formula and not before.in_formula
    return before.kind is TokenKind.RELATION


def _joins_numbers(tokens: Sequence[Token], index: int) -> bool:
    """True if the break at `index` joins two numbers: it is the colon of a ratio, a dash, or a comma in a list."""
    sign, before, after = tokens[index], tokens[index - 1], tokens[index + 1]
    is_operand = index > 0 and (before.kind is TokenKind.NUMBER or before.is_sign(")"))
    if not is_operand or after.kind in (TokenKind.WORD, TokenKind.BREAK, TokenKind.END):
        return False
    if sign.text == ":":
        # Between two formulas, as in "Divide by $8$: $x = 4$", it is punctuation.
        between = not sign.in_formula and before.in_formula and after.in_formula
        return not between and (sign.spaced or not after.spaced)
    is_listed = sign.text == "," and index > 1 and tokens[index - 2].text == "," and after.kind is TokenKind.NUMBER
    return is_listed or sign.text in ("—", "―")


def _is_sign_of_number(tokens: Sequence[Token], index: int) -> bool:
    """True if the plus or minus at `index` is the sign of a number. False if it is a bullet or an operation."""
    before, is_spaced_behind = tokens[index - 1], tokens[index + 1].spaced
    if before.kind is TokenKind.WORD:
        # "COVID-19" has a hyphen.
        return tokens[index].spaced and not is_spaced_behind
    if before.kind in (TokenKind.BREAK, TokenKind.END):
        return not is_spaced_behind
    return before.kind is TokenKind.RELATION or before.is_sign("(", "[", "{")


def _is_changed(tokens: Sequence[Token], index: int) -> bool:
    """True if the words before an expression alter its value, as in "half of 12"."""
    word = tokens[index - 1].text.lower()
    earlier = tokens[index - 2].text.lower() if index > 1 and tokens[index - 2].kind is TokenKind.WORD else ""
    if word in _OF:
        return earlier not in _SUMS
    if word.endswith(_CHANGING_ENDS):
        return True
    return word in _CHANGING or (word in ("the", "a", "to", "from") and earlier in _CHANGING - {"of", "by"})


def _is_joined(tokens: Sequence[Token], index: int) -> bool:
    """True if an "and" joins the number before it to the expression at `index`, as in "3 and 1/2" and "the sum of 3
    and 4"."""
    if index < 2 or tokens[index - 1].text.lower() not in _AND or tokens[index - 2].kind is not TokenKind.NUMBER:
        return False
    earlier = tokens[index - 3]
    # "8 / 2 = 4 and 1/4 + 1 = 5/4" begins another equation.
    ends_there = earlier.kind in (TokenKind.WORD, TokenKind.BREAK, TokenKind.END)
    return earlier.text.lower() in _OF or (_is_fraction(tokens, index) and ends_there)


def _is_fraction(tokens: Sequence[Token], index: int) -> bool:
    """True if a fraction of two numbers below one begins at token `index`."""
    parts = tokens[index : index + 3]
    return len(parts) == 3 and parts[1].is_sign("/") and (parts[0].number or 0) < (parts[2].number or 0)


_ENDING_WORDS = words("times mod modulo remainder r dozen million billion thousand hundred percent choose")


def _is_whole_behind(tokens: Sequence[Token], index: int) -> bool:
    """True if the expression that ends before token `index` is complete: the token does not continue it."""
    token = tokens[index]
    if token.kind is TokenKind.END:
        return True
    following = tokens[index + 1]
    if token.kind is TokenKind.BREAK:
        glued = following.kind is TokenKind.NUMBER and not following.spaced
        joins = token.text in (":", "—", "―") and _joins_numbers(tokens, index)
        return not (glued and token.text in (":", ".", ",")) and not joins
    if token.kind is TokenKind.WORD:
        is_glued = tokens[index - 1].kind is TokenKind.NUMBER and not token.spaced and not may_be_glued(token.text)
        return is_word(token.text) and not is_glued and not _continues_in_words(tokens, index)
    if token.is_sign("(", "["):
        return token.spaced and following.kind in (TokenKind.WORD, TokenKind.LETTER, TokenKind.END)
    if token.is_sign("-"):
        # A dash in prose.
        is_spaced = token.spaced and following.spaced
        return is_spaced and following.kind is TokenKind.WORD and is_word(following.text)
    if token.kind is TokenKind.LETTER:
        return token.spaced and not token.in_formula and token.text in ("a", "A", "I")
    return token.is_sign(*"!)]}")


def _continues_in_words(tokens: Sequence[Token], index: int) -> bool:
    """True if the words after a number alter it, as in 5 hours and 30 minutes, 3 times as many, 5 mod 7."""
    count = 0
    while tokens[index].kind is TokenKind.WORD and count < 4:
        word, is_before_number = tokens[index].text.lower(), tokens[index + 1].kind is TokenKind.NUMBER
        if word in _ENDING_WORDS or (word == "or" and is_before_number):
            return True
        if word == "and" and is_before_number:
            at = index + (4 if _is_fraction(tokens, index + 1) else 2)
            # "12 and 3 + 4 = 7" begins another equation.
            return tokens[at].kind in (TokenKind.WORD, TokenKind.BREAK, TokenKind.END)
        index, count = index + 1, count + 1
    token, following = tokens[index], tokens[min(index + 1, len(tokens) - 1)]
    # A number after words (5 hours 30 minutes), or an operation whose second operand is in words.
    if count <= 2 and token.kind is TokenKind.NUMBER and tokens[index - 1].text.lower() not in _STARTS:
        return True
    is_dash = following.kind in (TokenKind.WORD, TokenKind.END) or not following.spaced
    return token.is_sign(*"+*/^") or (token.is_sign("-") and token.spaced and not is_dash)


_STARTS = words("and so then thus since because where when is with for in of are to step at after")


def _end_of_subscript(tokens: Sequence[Token], index: int) -> int:
    """Return the index of the token after a subscript. A subscript is a single token or a group in braces."""
    depth = 0
    for place in range(index, min(len(tokens) - 1, index + 60)):
        depth += tokens[place].is_sign("{") - tokens[place].is_sign("}")
        if depth <= 0:
            return place + 1
    return min(index + 1, len(tokens) - 1)


def join_named(chains: Sequence[Chain], text: str) -> dict[int, Chain]:
    """Return the chains that continue the previous chain, by their start position. The first member of each is
    replaced by the last member of the previous chain.

    A chain continues the previous one if both begin with the same name:

        C(4, 2) = 4! / (2!2!)
        C(4, 2) = 24 / 2
    """
    joined: dict[int, Chain] = {}
    before: tuple[str, Member] | None = None
    for chain in chains:
        start = chain.start
        # The text before the first equals sign in the chain's line, if it looks like a name.
        relation = text.find("=", start)
        line = text[text.rfind("\n", 0, start) + 1 : relation] if relation >= 0 else ""
        name = "".join(line.split()).strip("$-*&\\[")
        name = name if 4 <= len(name) < 80 and name[0].isalpha() else ""
        if before is not None and name and name == before[0] and chain.members[0].expression is None:
            chain = Chain((before[1], *chain.members[1:]), chain.relations)
            joined[start] = chain
        last = chain.members[-1]
        is_known = last.expression is not None and set(chain.relations) == {"="}
        before = (name, last) if name and is_known else None
    return joined


_ANNOTATION = re.compile(r"<<([^<>=\n]{1,200}(?:=[^<>=\n]{1,80}){1,3})>>")


def annotations(text: str) -> tuple[str, list[tuple[str, int]]]:
    """Find calculator annotations such as `<<48/2=24>>`. Returns the text with the annotations blanked out, and the
    equation and start position of each annotation."""
    notes = [(match[1], match.start(1)) for match in _ANNOTATION.finditer(text)]
    return _ANNOTATION.sub(lambda match: " " * len(match[0]), text), notes
