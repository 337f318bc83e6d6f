"""Tokens of a step: the numbers, letters, words and signs in LaTeX and plain text, with their positions.

Tokenizing never fails. Text outside equations becomes a word or a break. Unreadable maths becomes an obstacle, and
nothing next to an obstacle is checked.
"""

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from fractions import Fraction

from stepsight.core.equations.units import words
from stepsight.core.text.sentences import formulas
from stepsight.core.text.signs import CURRENCY, GROUPING, INVISIBLE, LOWERED, PLAIN, RAISED

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


# Dashes of prose, bullets, and spaces that stand between the thousands of a number, are no plain signs here.
_KEPT = f"—―•{GROUPING}"
_PLAIN = {code: sign for code, sign in PLAIN.items() if chr(code) not in _KEPT}
_PARTS = "¼½¾⅐⅑⅒⅓⅔⅕⅖⅗⅘⅙⅚⅛⅜⅝⅞"
_LETTER = rf"[^\W\d_{RAISED}{LOWERED}{_PARTS}]"
# A run of digits that is no number of English, such as 12,5, 1.234,50, 5'000, 9:00, 10'6, 2:3 and 1,2,3.
_JOINT = r"(?:[.,:']|\{,\})"
_UNREAD = (
    # A date, a number in a notation of programs, or one with a period, such as 0.(3).
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
_SPOKEN_RELATIONS = {"equals": "=", "equalling": "=", "equaling": "="}
_ENVIRONMENT = re.compile(r"\\(?:begin|end)\{[A-Za-z]+\*?\}(?:\{[^{}]{0,20}\}|\[[^\]]{0,20}\])?")
_MATRIX = re.compile(r"\\begin\{([bpvBV]?matrix|smallmatrix)\}.{0,2000}?\\end\{\1\}", re.DOTALL)
_TABLE = re.compile(r"\\begin\{(?:array|cases|tabular|asy)\}|\[asy\]|```")


def read_tokens(text: str) -> list[Token]:
    """Return the tokens of a text in order. The list is empty if the text is too long or contains a table or a
    drawing."""
    if len(text) > MAX_TEXT:
        return []
    text = text if text.isascii() else text.translate(_PLAIN)
    spans = [span for span in formulas(text) if not _is_prose(text[span[0] : span[1]])]
    starts = [start for start, _ in spans]
    stops = [stop for _, stop in spans]
    tokens: list[Token] = []
    spaced = opens = False
    position = 0
    while position < len(text):
        match = None
        if text[position] == "\\":
            match = _MATRIX.match(text, position) or _ENVIRONMENT.match(text, position)
        match = match or _TOKEN.match(text, position)
        assert match is not None
        kind, start, position = match.lastgroup or "environment", match.start(), match.end()
        if kind == "above" or kind == "below":
            kind = "fraction"
        elif kind == "inner":
            kind = "text"
        index = bisect_right(starts, start) - 1
        inside = index >= 0 and start < stops[index]
        if kind == "space":
            spaced = True
            continue
        for token in _tokens(kind, match, spaced, inside):
            _append(tokens, replace(token, opens=True) if opens else token)
            opens = False
        opens |= kind == "delimiter" and inside
        spaced = kind == "line" or kind == "delimiter"
    return tokens


_WORDS = re.compile(r"(?<![^\s(])[a-z]{3,}(?![A-Za-z}])")


def _is_prose(formula: str) -> bool:
    """True if the text between two dollar signs is prose, because the signs belong to two amounts of money."""
    return formula.startswith("$") and "\\" not in formula and len(_WORDS.findall(formula)) >= 2


def _append(tokens: list[Token], token: Token) -> None:
    """Append a token. If a line begins with a relation, the line break before it is removed."""
    if (
        token.kind is TokenKind.RELATION
        and tokens
        and tokens[-1].kind is TokenKind.BREAK
        and tokens[-1].text == "\n"
    ):
        tokens.pop()
    tokens.append(token)


def _tokens(kind: str, match: re.Match[str], spaced: bool, inside: bool) -> list[Token]:
    """Convert a match of the token pattern called `kind` to tokens, usually a single one."""
    text, (start, end) = match[0], match.span()

    def token(kind: TokenKind, text: str) -> Token:
        return Token(kind, text, start, end, spaced, inside)

    match kind:
        case "number":
            return [_number(text, start, end, spaced, inside)]
        case "word":
            return _words(text, start, spaced, inside)
        case "short":
            return [token(TokenKind.WORD, text[:-1])]
        case "sign":
            if text == "√":
                return [token(TokenKind.COMMAND, "sqrt")]
            return [token(TokenKind.SIGN, {"**": "^", "•": "*"}.get(text, text))]
        case "raised":
            exponent = Fraction(int(text.translate(_DIGITS)[:MAX_DIGITS]))
            raised = Token(TokenKind.NUMBER, text, start, end, False, inside, exponent)
            return [token(TokenKind.SIGN, "^"), raised]
        case "vulgar":
            value = Fraction(unicodedata.numeric(text[-1])).limit_denominator(10) + int(text[:-1] or 0)
            return [Token(TokenKind.NUMBER, text, start, end, spaced, inside, value)]
        case "relation":
            return [
                token(TokenKind.RELATION, _RELATIONS[text]) if text in _RELATIONS else token(TokenKind.BREAK, text)
            ]
        case "fraction":
            return [token(TokenKind.COMMAND, "frac"), *_short_fraction(match, inside)]
        case "text":
            return _words_within(match, spaced, inside)
        case "command":
            return [_command(text[1:], token)]
        case "dots" | "unread":
            return [token(TokenKind.OBSTACLE, text)]
        case "escaped":
            if text == "\\%":
                return [token(TokenKind.SIGN, "%")]
            return [token(TokenKind.UNIT, "$") if text == "\\$" else token(TokenKind.OBSTACLE, text)]
        case "delimiter" if text in ("$$", "\\[", "\\]"):
            return [token(TokenKind.BREAK, "\n")]
        case "delimiter":
            return [] if inside or text != "$" else [token(TokenKind.UNIT, "$")]
        case "unit" | "money":
            return [token(TokenKind.UNIT, text)]
        case "subscript":
            return [token(TokenKind.SUBSCRIPT, "_")]
        case "line":
            return [token(TokenKind.BREAK, "\n")]
        case "break":
            return [token(TokenKind.BREAK, text)]
        case "environment":
            # The beginning or end of an environment counts as a line's end; a matrix is a single token.
            return [token(TokenKind.OBSTACLE if match.re is _MATRIX else TokenKind.BREAK, text[:20])]
        case _:
            return [token(TokenKind.OBSTACLE, text)]


def _number(text: str, start: int, end: int, spaced: bool, inside: bool) -> Token:
    period = re.search(r"\\overline\{(\d+)\}", text)
    cut = period is None and text.endswith(("...", "…", "dots"))
    plain = re.sub(r"\.{3}|…|\\l?dots", "", text) if cut else text[: period.start()] if period else text
    whole, _, decimals = re.sub(r"[^\d.]", "", plain).partition(".")
    if len(whole) + len(decimals) > MAX_DIGITS:
        return Token(TokenKind.OBSTACLE, "", start, end, spaced, inside)
    value = Fraction(int((whole or "0") + decimals), 10 ** len(decimals))
    if period:
        value += Fraction(int(period[1]), 10 ** len(decimals) * (10 ** len(period[1]) - 1))
    # A comma is kept, since it may stand for a decimal point.
    whole = f"{int(whole):,}" if "," in text else whole
    written = f"{whole or '0'}.{decimals}" if decimals else whole
    return Token(TokenKind.NUMBER, written, start, end, spaced, inside, value, len(decimals), cut)


def _words(text: str, start: int, spaced: bool, inside: bool) -> list[Token]:
    """Convert a word to tokens. Inside formulas, a short word is split into its letters."""
    end = start + len(text)
    lower = text.lower()
    if lower in _SPOKEN and not inside:
        return [Token(TokenKind.SIGN, _SPOKEN[lower], start, end, spaced, inside)]
    if lower in _SPOKEN_RELATIONS:
        return [Token(TokenKind.RELATION, _SPOKEN_RELATIONS[lower], start, end, spaced, inside)]
    if lower in ("sqrt", "sin", "cos", "tan", "ln", "log"):
        return [Token(TokenKind.COMMAND, lower, start, end, spaced, inside)]
    if lower == "pi" or text == "π":
        return [Token(TokenKind.LETTER, "π", start, end, spaced, inside)]
    if len(text) == 1:
        return [Token(TokenKind.LETTER, text, start, end, spaced, inside)]
    if "π" in text and len(text) <= 4:
        return [
            Token(TokenKind.LETTER, letter, start + i, start + i + 1, spaced and not i, inside)
            for i, letter in enumerate(text)
        ]
    # Up to three letters are a product; more are a word, or the corners of a figure.
    if inside and len(text) <= 3 and text.islower() and text not in ("and", "for", "mod", "the", "or", "if", "cm"):
        return [
            Token(TokenKind.LETTER, letter, start + i, start + i + 1, spaced and not i, inside)
            for i, letter in enumerate(text)
        ]
    return [Token(TokenKind.WORD, text, start, end, spaced, inside)]


def _words_within(match: re.Match[str], spaced: bool, inside: bool) -> list[Token]:
    inner = match["inner"]
    if not inner.strip():
        return []
    parts = list(re.finditer(r"[^\W\d_]+|\d+(?:\.\d+)?|[^\s\w]", inner))
    offset = match.start("inner")
    tokens = []
    for word in parts:
        start, end = offset + word.start(), offset + word.end()
        if word[0][0].isdigit():
            tokens.append(Token(TokenKind.OBSTACLE, word[0], start, end, True, inside))
        elif word[0].isalpha():
            tokens.append(Token(TokenKind.WORD, word[0], start, end, True, inside))
        elif word[0] in ".,;:":
            tokens.append(Token(TokenKind.BREAK, word[0], start, end, True, inside))
        else:
            kind = TokenKind.SIGN if word[0] in "/" else TokenKind.OBSTACLE
            tokens.append(Token(kind, word[0], start, end, True, inside))
    return tokens


def _short_fraction(match: re.Match[str], inside: bool) -> list[Token]:
    r"""Return tokens for the digits of a fraction without braces, such as `\frac12`."""
    return [
        Token(TokenKind.NUMBER, match[name], *match.span(name), False, inside, Fraction(int(match[name])))
        for name in ("above", "below")
        if match[name]
    ]


def _command(name: str, token: Callable[[TokenKind, str], Token]) -> Token:
    if name in _COMMAND_SIGNS:
        return token(TokenKind.SIGN, _COMMAND_SIGNS[name])
    if name in _COMMAND_RELATIONS:
        return token(TokenKind.RELATION, _COMMAND_RELATIONS[name])
    if name in _BREAKS:
        return token(TokenKind.BREAK, name)
    if name == "pi":
        return token(TokenKind.LETTER, "π")
    if name in ("circ", "degree"):
        return token(TokenKind.UNIT, "°")
    if name in FUNCTIONS:
        return token(TokenKind.COMMAND, "binom" if name.endswith("binom") else name)
    return token(TokenKind.LETTER if name in _GREEK else TokenKind.OBSTACLE, name)


def without_bold(text: str) -> str:
    """Replace Markdown's bold markers by spaces, so that positions in the text stay valid. Powers such as `2**3`
    are kept."""
    return _BOLD.sub("  ", text)


def holds_table(text: str) -> bool:
    """True if a text contains a table, a drawing or code, in which the parts of an equation need not be next to
    each other."""
    return _TABLE.search(text) is not None
