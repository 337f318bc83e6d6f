"""Tokens of a step: the numbers, letters, words and signs in LaTeX and plain text, with their positions.

Tokenizing never fails. Text outside equations becomes a word or a break. Unreadable maths becomes an obstacle, and
nothing next to an obstacle is checked.
"""

import re
import unicodedata
from bisect import bisect_right
from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction
from typing import Any

from stepsight.core.text.sentences import formulas
from stepsight.core.text.signs import CURRENCY, GROUPING, INVISIBLE, LOWERED, PLAIN, RAISED, words

MAX_TEXT = 3_000
"""The longest text that is read, in characters."""

_BOLD = re.compile(r"(?:(?<=\s)|^)\*\*(?=\S)|(?<=\S)\*\*(?=[\s.,;:!?)]|$)", re.MULTILINE)

MAX_DIGITS = 40


class TokenKind(StrEnum):
    NUMBER = "number"
    LETTER = "letter"
    WORD = "word"
    SIGN = "sign"  # + - * / ^ ! ( ) { } [ ] | and the like, written as one character
    COMMAND = "command"  # \frac, \sqrt and functions
    RELATION = "relation"
    UNIT = "unit"  # currency, degrees
    SUBSCRIPT = "subscript"
    BREAK = "break"
    OBSTACLE = "obstacle"
    END = "end"  # after the last token of a text


@dataclass(frozen=True, slots=True)
class Token:
    """A token and its span in the text.

    `text` is its normalised form, and `number` its value if it is a number, else None. `decimals` counts the digits
    after the decimal point. `spaced` is True if white space precedes the token, `in_formula` if the token is inside
    LaTeX maths, and `opens` if it is the first token of a formula.
    """

    kind: TokenKind
    text: str
    start: int
    end: int
    spaced: bool = False
    in_formula: bool = False
    number: Fraction | None = None
    decimals: int = 0
    cut: bool = False
    opens: bool = False

    def is_sign(self, *signs: str) -> bool:
        return self.kind is TokenKind.SIGN and self.text in signs


# Dashes in prose, bullets, and spaces between the thousands of a number are not replaced by plain signs here.
_KEPT = f"—―•{GROUPING}"
_PLAIN = {code: sign for code, sign in PLAIN.items() if chr(code) not in _KEPT}
_PARTS = "¼½¾⅐⅑⅒⅓⅔⅕⅖⅗⅘⅙⅚⅛⅜⅝⅞"
_LETTER = rf"[^\W\d_{RAISED}{LOWERED}{_PARTS}]"
# A run of digits that is not a number in English, such as 12,5, 1.234,50, 5'000, 9:00, 10'6, 2:3 and 1,2,3.
_JOINT = r"(?:[.,:']|\{,\})"
_UNREAD = (
    # A date, a number in a programming notation, or a repeating decimal such as 0.(3).
    r"\d{1,2}/\d{1,2}/(?:19|20)\d\d(?!\d)|(?:19|20)\d\d-(?:0\d-\d\d|\d\d-0\d)(?!\d)|0[xX][0-9A-Fa-f]+|\d+[.,]\d*\(\d+\)"
    rf"|(?!(?:\d{{1,3}}(?:(?:,|\{{,\}})\d{{3}})+|\d+)(?:\.\d+)?(?!\d|{_JOINT}\d))\d+(?:{_JOINT}\d+)+"
)

_TOKEN = re.compile(
    rf"""
    (?P<space>(?:[^\S\n]|[{INVISIBLE}]|\\[,;:!>\ ]|\\q?quad(?![A-Za-z])|~|&(?!\w)
        |\\(?:left|right|big|Big|bigg|Bigg|displaystyle|[bB]igg?[lr])(?![A-Za-z])\.?|\\phantom\{{[^{{}}]{{0,40}}\}})+)
  | (?P<line>\n|(?<![^\n])\ *•|\\\\(?:\[[^\]]{{0,9}}\])?|\\newline(?![A-Za-z]))
  | (?P<unread>{_UNREAD})
  | (?P<vulgar>(?:\d{{1,9}}\ ?)?[{_PARTS}])
  | (?P<number>(?:\d{{1,3}}(?:(?:,|\{{,\}}|\\[,!]|,\\!|,\\,|[{GROUPING}])\d{{3}})+(?!\d|,\d)|\d+)
        (?:\.\d*\\overline\{{\d{{1,12}}\}}|\.\d+(?:\.{{3}}|…|\\l?dots(?![A-Za-z]))?)?|\.\d+)
  | (?P<dots>\.{{3}}|…)
  | (?P<fraction>\\[dtc]?frac(?:\s*(?P<above>\d)\s*(?P<below>\d)|(?=[\s{{])))
  | (?P<text>\\(?:text(?:rm|up|bf|it)?|math(?:rm|bf)|mbox|operatorname|rm)\*?\s*\{{(?P<inner>[^{{}}]{{0,200}})\}})
  | (?P<command>\\[A-Za-z]+)
  | (?P<escaped>\\[$%{{}}\#&_|])
  | (?P<delimiter>\$\$?|\\[\[\]()])
  | (?P<relation><=|>=|!=|==|=>|<->|->|:=|[=≈≃≅≡≠<>≤≥→⇒⟹])
  | (?P<money>(?:Rs|Rp|INR|USD|EUR|GBP|CHF)\.?(?=\s*\d)|[元円])
  | (?P<short>(?:lbs?|oz|hrs?|mins?|secs?|ft|in|yds?|mi|kg|km|cm|mm|gal|doz|yrs?|wks?|pts?)\.(?=\s*[-+*/=]))
  | (?P<word>{_LETTER}+(?:'{_LETTER}+)*)
  | (?P<raised>[{RAISED}]+)
  | (?P<sign>\*\*|[-+*/^!%()\[\]{{}}|√•])
  | (?P<unit>[{CURRENCY}°])
  | (?P<subscript>_)
  | (?P<break>[.;:?,"`'—―#@])
  | (?P<other>.)
    """,
    re.VERBOSE | re.DOTALL,
)
_DIGITS = {ord(raised): str(digit) for digit, raised in enumerate(RAISED)}
_COMMAND_SIGNS = {
    "times": "*", "cdot": "*", "ast": "*", "div": "/", "lbrace": "{", "lbrack": "[", "rbrack": "]", "vert": "|",
    "lvert": "|", "rvert": "|", "mid": "|",
}  # fmt: skip
_COMMAND_RELATIONS = {
    "approx": "≈", "simeq": "≈", "sim": "≈", "doteq": "≈", "equiv": "≡", "neq": "≠", "ne": "≠", "not": "≠",
    "le": "<", "leq": "<", "lt": "<", "ge": ">", "geq": ">", "gt": ">", "in": "<", "cong": "≡", "leqslant": "<",
    "geqslant": ">",
}  # fmt: skip
_BREAKS = {
    "to", "Rightarrow", "rightarrow", "implies", "iff", "Longrightarrow", "Leftrightarrow", "therefore", "because",
    "qquad", "begin", "end", "hline", "item", "square", "longrightarrow",
}  # fmt: skip
FUNCTIONS = frozenset({"sqrt", "sin", "cos", "tan", "log", "ln", "binom", "dbinom", "tbinom", "boxed", "abs"})
_GREEK = words(
    """
    alpha beta gamma delta epsilon varepsilon theta lambda mu nu phi varphi psi rho sigma tau omega zeta
    eta kappa xi chi ell
    """
)
_RELATIONS = {
    "=": "=", "≈": "≈", "≃": "≈", "≅": "≡", "≡": "≡", "≠": "≠", "!=": "≠", "<": "<", ">": ">", "<=": "<",
    ">=": ">", "≤": "<", "≥": ">", ":=": "≠", "==": "≠",
}  # fmt: skip
_SPOKEN = {"plus": "+", "minus": "-", "times": "*", "multiplied": "*", "divided": "/"}
_SPOKEN_RELATIONS = ("equals", "equalling", "equaling")
_SHORT_WORDS = ("and", "for", "mod", "the", "or", "if", "cm")
_ENVIRONMENT = re.compile(r"\\(?:begin|end)\{[A-Za-z]+\*?\}(?:\{[^{}]{0,20}\}|\[[^\]]{0,20}\])?")
# Kinds of matches that become one token with unchanged text.
_PLAIN_TOKENS = {
    "dots": TokenKind.OBSTACLE, "unread": TokenKind.OBSTACLE, "other": TokenKind.OBSTACLE, "unit": TokenKind.UNIT,
    "money": TokenKind.UNIT, "subscript": TokenKind.SUBSCRIPT, "break": TokenKind.BREAK,
}  # fmt: skip
# A formula whose text is prose, because its dollar signs belong to two amounts of money.
_WORDS = re.compile(r"(?<![^\s(])[a-z]{3,}(?![A-Za-z}])")
_MATRIX = re.compile(r"\\begin\{([bpvBV]?matrix|smallmatrix)\}.{0,2000}?\\end\{\1\}", re.DOTALL)
_TABLE = re.compile(r"\\begin\{(?:array|cases|tabular|asy)\}|\[asy\]|```")


def read_tokens(text: str) -> list[Token]:
    """Return the tokens of a text in order, with an END after the last one. The list is empty if the text is too
    long or has no tokens."""
    if len(text) > MAX_TEXT:
        return []
    text = text if text.isascii() else text.translate(_PLAIN)
    spans = [span for span in formulas(text) if not _is_prose(text[span[0] : span[1]])]
    starts = [start for start, _ in spans]
    tokenizer, position = _Tokenizer(), 0
    while position < len(text):
        match = None
        if text[position] == "\\":
            match = _MATRIX.match(text, position) or _ENVIRONMENT.match(text, position)
        match = match or _TOKEN.match(text, position)
        assert match is not None
        index = bisect_right(starts, match.start()) - 1
        tokenizer.match, tokenizer.inside = match, index >= 0 and match.start() < spans[index][1]
        position = match.end()
        kind = match.lastgroup or "environment"
        tokenizer.add_match(kind)
        tokenizer.opens |= kind == "delimiter" and tokenizer.inside
        tokenizer.spaced = kind in ("space", "line", "delimiter")
    if not tokenizer.tokens:
        return []
    last = tokenizer.tokens[-1]
    return [*tokenizer.tokens, Token(TokenKind.END, "", last.start, last.end, in_formula=last.in_formula)]


def _is_prose(formula: str) -> bool:
    return formula.startswith("$") and "\\" not in formula and len(_WORDS.findall(formula)) >= 2


@dataclass
class _Tokenizer:
    """The tokens of a text so far, and where the next one is: after white space, inside LaTeX maths, or first in
    it. `match` is the match of the token pattern that is turned into tokens."""

    match: re.Match[str] = field(init=False)
    tokens: list[Token] = field(default_factory=list)
    spaced: bool = False
    inside: bool = False
    opens: bool = False

    def add(
        self,
        kind: TokenKind,
        text: str,
        span: tuple[int, int] | None = None,
        spaced: bool | None = None,
        **number: Any,
    ) -> None:
        """Add a token. Its span is that of the match unless another is given. If a line begins with a relation, the
        line break before it is removed."""
        before = self.tokens[-1] if self.tokens else None
        if kind is TokenKind.RELATION and before and before.kind is TokenKind.BREAK and before.text == "\n":
            self.tokens.pop()
        start, end = span or self.match.span()
        spaced = self.spaced if spaced is None else spaced
        self.tokens.append(Token(kind, text, start, end, spaced, self.inside, opens=self.opens, **number))
        self.opens = False

    def add_match(self, kind: str) -> None:
        """Add the tokens, usually one, of a match of the pattern's group `kind`."""
        text = self.match[0]
        match kind:
            case "number":
                self._add_number(text)
            case "word":
                self._add_word(text)
            case "short":
                self.add(TokenKind.WORD, text[:-1])
            case "sign" if text == "√":
                self.add(TokenKind.COMMAND, "sqrt")
            case "sign":
                self.add(TokenKind.SIGN, {"**": "^", "•": "*"}.get(text, text))
            case "raised":
                self.add(TokenKind.SIGN, "^")
                exponent = Fraction(int(text.translate(_DIGITS)[:MAX_DIGITS]))
                self.add(TokenKind.NUMBER, text, spaced=False, number=exponent)
            case "vulgar":
                part = Fraction(unicodedata.numeric(text[-1])).limit_denominator(10)
                self.add(TokenKind.NUMBER, text, number=part + int(text[:-1] or 0))
            case "relation":
                self.add(TokenKind.RELATION if text in _RELATIONS else TokenKind.BREAK, _RELATIONS.get(text, text))
            case "fraction" | "above" | "below":
                # Without braces, as in \frac12, each digit is a separate number.
                self.add(TokenKind.COMMAND, "frac")
                for name in ("above", "below"):
                    if digit := self.match[name]:
                        self.add(TokenKind.NUMBER, digit, self.match.span(name), False, number=Fraction(int(digit)))
            case "text" | "inner":
                self._add_words_within()
            case "command":
                self._add_command(text[1:])
            case "escaped" if text == "\\%":
                self.add(TokenKind.SIGN, "%")
            case "escaped":
                self.add(*(TokenKind.UNIT, "$") if text == "\\$" else (TokenKind.OBSTACLE, text))
            case "delimiter" if text not in ("$$", "\\[", "\\]"):
                if not self.inside and text == "$":
                    self.add(TokenKind.UNIT, "$")
            case "delimiter" | "line":
                self.add(TokenKind.BREAK, "\n")
            case "environment":
                # The beginning or end of an environment counts as the end of a line; a matrix is a single token.
                self.add(TokenKind.OBSTACLE if self.match.re is _MATRIX else TokenKind.BREAK, text[:20])
            case "space":
                pass
            case _:
                self.add(_PLAIN_TOKENS[kind], text)

    def _add_number(self, text: str) -> None:
        period = re.search(r"\\overline\{(\d+)\}", text)
        cut = period is None and text.endswith(("...", "…", "dots"))
        plain = re.sub(r"\.{3}|…|\\l?dots", "", text) if cut else text[: period.start()] if period else text
        whole, _, decimals = re.sub(r"[^\d.]", "", plain).partition(".")
        if len(whole) + len(decimals) > MAX_DIGITS:
            self.add(TokenKind.OBSTACLE, "")
            return
        value = Fraction(int((whole or "0") + decimals), 10 ** len(decimals))
        if period:
            value += Fraction(int(period[1]), 10 ** len(decimals) * (10 ** len(period[1]) - 1))
        # A comma is kept, since it may stand for a decimal point.
        whole = f"{int(whole):,}" if "," in text else whole
        written = f"{whole or '0'}.{decimals}" if decimals else whole
        self.add(TokenKind.NUMBER, written, number=value, decimals=len(decimals), cut=cut)

    def _add_word(self, text: str) -> None:
        lower, start = text.lower(), self.match.start()
        # In formulas, up to three letters are a product; more are a word or the vertices of a figure.
        is_product = self.inside and len(text) <= 3 and text.islower() and text not in _SHORT_WORDS
        if lower in _SPOKEN and not self.inside:
            self.add(TokenKind.SIGN, _SPOKEN[lower])
        elif lower in _SPOKEN_RELATIONS:
            self.add(TokenKind.RELATION, "=")
        elif lower in ("sqrt", "sin", "cos", "tan", "ln", "log"):
            self.add(TokenKind.COMMAND, lower)
        elif lower == "pi" or text == "π":
            self.add(TokenKind.LETTER, "π")
        elif len(text) == 1 or is_product or ("π" in text and len(text) <= 4):
            for i, letter in enumerate(text):
                self.add(TokenKind.LETTER, letter, (start + i, start + i + 1), self.spaced and not i)
        else:
            self.add(TokenKind.WORD, text)

    def _add_words_within(self) -> None:
        """Add the words of a text in a formula, such as `\\text{ cm}`."""
        offset = self.match.start("inner")
        for part in re.finditer(r"[^\W\d_]+|\d+(?:\.\d+)?|[^\s\w]", self.match["inner"]):
            kind = (
                TokenKind.WORD if part[0].isalpha()
                else TokenKind.BREAK if part[0] in ".,;:"
                else TokenKind.SIGN if part[0] == "/"
                else TokenKind.OBSTACLE
            )  # fmt: skip
            self.add(kind, part[0], (offset + part.start(), offset + part.end()), True)

    def _add_command(self, name: str) -> None:
        if name in _COMMAND_SIGNS:
            self.add(TokenKind.SIGN, _COMMAND_SIGNS[name])
        elif name in _COMMAND_RELATIONS:
            self.add(TokenKind.RELATION, _COMMAND_RELATIONS[name])
        elif name in _BREAKS:
            self.add(TokenKind.BREAK, name)
        elif name == "pi":
            self.add(TokenKind.LETTER, "π")
        elif name in ("circ", "degree"):
            self.add(TokenKind.UNIT, "°")
        elif name in FUNCTIONS:
            self.add(TokenKind.COMMAND, "binom" if name.endswith("binom") else name)
        else:
            self.add(TokenKind.LETTER if name in _GREEK else TokenKind.OBSTACLE, name)


def without_bold(text: str) -> str:
    """Replace Markdown's bold markers by spaces, so that positions in the text stay valid. Powers such as `2**3`
    are kept."""
    return _BOLD.sub("  ", text)


def holds_table(text: str) -> bool:
    """True if a text contains a table, a drawing or code, in which the parts of an equation need not be next to
    each other."""
    return _TABLE.search(text) is not None
