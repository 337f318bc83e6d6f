"""Chains of equations `a = b = c` in a text: their members, read where nothing beside them is left unread."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from stepsight.core.equations.expressions import Expression, Kind, Reader
from stepsight.core.equations.tokens import Sort, Token

MAX_RELATIONS = 120


@dataclass(frozen=True)
class Member:
    """A side of an equation with its place in the text; `expression` is None where it is not understood.

    `trailing` are the words that stand behind it.
    """

    expression: Expression | None
    start: int
    end: int
    trailing: tuple[str, ...] = ()

    @cached_property
    def is_literal(self) -> bool:
        return self.expression is not None and self.expression.node.is_literal

    @cached_property
    def is_letter(self) -> bool:
        return self.expression is not None and self.expression.node.kind is Kind.LETTER

    @cached_property
    def operations(self) -> int:
        """How many operations it holds."""
        if self.expression is None:
            return 0
        leaves = (Kind.NUMBER, Kind.LETTER, Kind.EITHER, Kind.NEGATIVE)
        return sum(node.kind not in leaves for node in self.expression.node.walk())


@dataclass(frozen=True)
class Chain:
    """Members with the relations between them, one fewer."""

    members: tuple[Member, ...]
    relations: tuple[str, ...]

    def pairs(self) -> Iterator[tuple[int, Member, Member, str]]:
        """Each two neighbours with the number of the first and the relation between them."""
        for i, relation in enumerate(self.relations):
            yield i, self.members[i], self.members[i + 1], relation

    @property
    def start(self) -> int:
        return self.members[0].start

    @property
    def end(self) -> int:
        return self.members[-1].end


def find_chains(tokens: Sequence[Token]) -> list[Chain]:
    """The chains of a text, in order."""
    relations = sum(token.sort is Sort.RELATION for token in tokens)
    if not relations or relations > MAX_RELATIONS:
        return []
    reader, chains, index = Reader(tokens), [], 0
    while index < len(tokens):
        token = tokens[index]
        if token.sort is Sort.SUBSCRIPT:
            index = _behind_group(tokens, index + 1)
            continue
        is_relation = token.sort is Sort.RELATION
        expression = None if is_relation or not _may_begin(tokens, index) else reader.read(index)
        if reader.steps < 0:
            return []
        last = expression.last if expression else index
        if (is_relation or expression) and last < len(tokens) and tokens[last].sort is Sort.RELATION:
            chain, index = _read_chain(reader, tokens, index, expression)
            chains.append(chain)
        else:
            index = max(index + 1, last)
    return chains if reader.steps >= 0 else []


def _read_chain(
    reader: Reader, tokens: Sequence[Token], index: int, first: Expression | None
) -> tuple[Chain, int]:
    """The chain whose first member ends before a relation, and the token behind it."""
    is_whole = first is not None and _is_whole_before(tokens, index) and not _is_named(tokens, index, first)
    last = first.last if first else index
    members = [_member(tokens, first if is_whole else None, index, last)]
    relations = []
    while last < len(tokens) and tokens[last].sort is Sort.RELATION:
        relations.append(tokens[last].text)
        begin = last + 1
        expression = reader.read(begin)
        if expression is None:
            members.append(_member(tokens, None, begin, begin))
            last = begin
            break
        last = expression.last
        ends_well = (last < len(tokens) and tokens[last].sort is Sort.RELATION) or _is_whole_behind(tokens, last)
        members.append(_member(tokens, expression if ends_well else None, begin, last))
    return Chain(tuple(members), tuple(relations)), max(last, index + 1)


# Words behind which a number alone is a side of an equation, rather than the last of a name such as "group 2".
_STATING = frozenset(
    "have has get gets is so that gives obtain since then therefore thus hence means see becomes and write yields".split()
)


def _is_named(tokens: Sequence[Token], index: int, expression: Expression) -> bool:
    """Whether an expression is a number alone that belongs to the word before it."""
    if not expression.node.is_literal or index == 0 or tokens[index - 1].sort is not Sort.WORD:
        return False
    return tokens[index - 1].text.lower() not in _STATING


def _member(tokens: Sequence[Token], expression: Expression | None, first: int, last: int) -> Member:
    words = []
    for token in tokens[last : last + 4]:
        if token.sort is not Sort.WORD:
            break
        words.append(token.text.lower())
    place = min(first, len(tokens) - 1)
    start = tokens[place].start
    end = tokens[last - 1].end if last > first else start
    return Member(expression, start, end, tuple(words))


def _may_begin(tokens: Sequence[Token], index: int) -> bool:
    token = tokens[index]
    if token.sort in (Sort.NUMBER, Sort.COMMAND, Sort.UNIT):
        return True
    if token.sort is Sort.LETTER:
        following = tokens[index + 1] if index + 1 < len(tokens) else None
        is_article = token.text in ("a", "A", "I") and not token.in_formula
        return not is_article or (following is not None and following.sort in (Sort.RELATION, Sort.SIGN))
    return token.is_sign("(", "[", "{", "|", "-", "+")


# Words that change the number behind them: half of 26 is not 26.
_CHANGING = frozenset(
    """half twice double triple thrice third quarter fourth fifth tenth square cube root factorial average mean median
    remainder reciprocal inverse negative opposite absolute gcd lcm minus plus times over divided by percent log sin cos
    tan mod modulo digits digit difference ratio choose per least most of fraction logarithm sine cosine tangent""".split()
)
_SUMS = frozenset("total sum product number area perimeter volume cost amount value out sums products".split())


def _is_whole_before(tokens: Sequence[Token], index: int) -> bool:
    """Whether nothing before the token `index` belongs to the expression that begins there."""
    token = tokens[index]
    if index == 0:
        return not token.is_sign("-", "+") or not _is_spaced(tokens, index + 1)
    before = tokens[index - 1]
    if token.is_sign("-", "+") and not _is_sign_of_number(tokens, index):
        return False
    if before.sort in (Sort.BREAK, Sort.RELATION):
        return not (before.text == ":" and index > 1 and tokens[index - 2].sort is Sort.NUMBER and not token.spaced)
    if before.sort is Sort.WORD:
        # floor(42/16), gcd(12, 18)
        is_function = token.is_sign("(") and not token.spaced and not token.in_formula
        return not is_function and not _is_changed(tokens, index)
    if before.is_sign("(", "[", "{"):
        return index < 2 or tokens[index - 2].sort not in (Sort.LETTER, Sort.SUBSCRIPT, Sort.OBSTACLE) or token.spaced
    if before.is_sign(")"):
        return token.spaced and not token.in_formula and not token.is_sign("(")
    if before.is_sign("-"):
        # The dash of a list.
        begins_line = index == 1 or tokens[index - 2].sort is Sort.BREAK and tokens[index - 2].text == "\n"
        return begins_line and token.in_formula and not before.in_formula
    return False


def _is_spaced(tokens: Sequence[Token], index: int) -> bool:
    return index < len(tokens) and tokens[index].spaced


def _is_sign_of_number(tokens: Sequence[Token], index: int) -> bool:
    """Whether a minus belongs to the number behind it: it is no dash of a list, and no operation on what is before."""
    following = tokens[index + 1] if index + 1 < len(tokens) else None
    before = tokens[index - 1]
    if following is None or before.sort is Sort.WORD:
        return following is not None and not following.spaced
    if before.sort is Sort.BREAK and before.text == "\n":
        return not following.spaced
    return before.sort in (Sort.BREAK, Sort.RELATION) or before.is_sign("(", "[", "{")


def _is_changed(tokens: Sequence[Token], index: int) -> bool:
    """Whether the words before an expression make another number of it."""
    word = tokens[index - 1].text.lower()
    earlier = tokens[index - 2].text.lower() if index > 1 and tokens[index - 2].sort is Sort.WORD else ""
    if word == "of":
        return earlier not in _SUMS
    return word in _CHANGING or (word in ("the", "a", "to", "from") and earlier in _CHANGING - {"of", "by"})


_ENDING_WORDS = frozenset("times mod modulo remainder r or dozen million billion thousand hundred percent choose".split())


def _is_whole_behind(tokens: Sequence[Token], index: int) -> bool:
    """Whether nothing from the token `index` on belongs to the expression that ends there."""
    if index >= len(tokens):
        return True
    token = tokens[index]
    following = tokens[index + 1] if index + 1 < len(tokens) else None
    if token.sort is Sort.BREAK:
        glued = following is not None and following.sort is Sort.NUMBER and not following.spaced
        return not (glued and token.text in (":", ".", ","))
    if token.sort is Sort.WORD:
        return not _goes_on_in_words(tokens, index)
    if token.is_sign("(", "["):
        return token.spaced and (following is None or following.sort in (Sort.WORD, Sort.LETTER))
    if token.is_sign("!"):
        return True
    if token.is_sign("-"):
        # A dash of prose.
        return token.spaced and following is not None and following.spaced and following.sort is Sort.WORD
    if token.sort is Sort.LETTER:
        return token.spaced and not token.in_formula and token.text in ("a", "A", "I")
    return token.is_sign(")", "]", "}")


def _goes_on_in_words(tokens: Sequence[Token], index: int) -> bool:
    """Whether the words behind a number change it: 5 hours and 30 minutes, 3 times as many, 5 mod 7."""
    words = 0
    while index < len(tokens) and tokens[index].sort is Sort.WORD and words < 4:
        word = tokens[index].text.lower()
        if word in _ENDING_WORDS:
            return True
        following = tokens[index + 1] if index + 1 < len(tokens) else None
        if word == "and" and following is not None and following.sort is Sort.NUMBER:
            behind = tokens[index + 2] if index + 2 < len(tokens) else None
            # "12 and 3 + 4 = 7" begins another equation.
            return behind is None or behind.sort in (Sort.WORD, Sort.BREAK)
        index, words = index + 1, words + 1
    # A number behind the words (5 hours 30 minutes), or an operation whose second side is in words.
    if index >= len(tokens):
        return False
    token = tokens[index]
    if words <= 2 and token.sort is Sort.NUMBER and tokens[index - 1].text.lower() not in _STARTS:
        return True
    return token.is_sign("+", "*", "/", "^") or (token.is_sign("-") and token.spaced and not _is_dash(tokens, index))


_STARTS = frozenset("and so then thus since because where when is with for in of are to step at after".split())


def _is_dash(tokens: Sequence[Token], index: int) -> bool:
    following = tokens[index + 1] if index + 1 < len(tokens) else None
    return following is None or following.sort is Sort.WORD or not following.spaced


def _behind_group(tokens: Sequence[Token], index: int) -> int:
    """The token behind a subscript: one token, or all between two braces."""
    if index >= len(tokens) or not tokens[index].is_sign("{"):
        return index + 1
    depth = 0
    for at in range(index, min(len(tokens), index + 60)):
        depth += tokens[at].is_sign("{") - tokens[at].is_sign("}")
        if not depth:
            return at + 1
    return index + 1


_ANNOTATION = re.compile(r"<<([^<>=\n]{1,200}(?:=[^<>=\n]{1,80}){1,3})>>")


def annotations(text: str) -> tuple[str, list[tuple[str, int]]]:
    """The text with blanks for the calculator's notes `<<48/2=24>>`, and each note's equation with its place."""
    notes = [(match[1], match.start(1)) for match in _ANNOTATION.finditer(text)]
    return _ANNOTATION.sub(lambda match: " " * len(match[0]), text), notes
