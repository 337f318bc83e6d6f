"""Reading lists and objects in text cells, in the notation of JSON, Python or NumPy.

Pandas writes a list into a CSV file as Python prints it, `['a', "b's", None]`, and an array as NumPy does, `[ 1 -1
-1]` or `['a' 'b']`, without commas. Python's own parser would join the texts of the latter.
"""

import re
from typing import Any

from stepsight.core.files.json_values import DEEPEST, parse_json

_OPEN = re.compile(r"\s*(?:(?:np\.|numpy\.)?(?:array|tensor)\(\s*)?[\[({]")
# The start of a list of texts or objects, which no solution in running text has.
_STEPS = re.compile(r"""\s*(?:(?:np\.|numpy\.)?array\(\s*)?\[\s*[\[({]?\s*(?:(?:np\.|numpy\.)str_\(\s*)?["']""")
_TOKEN = re.compile(
    r"""\s*(?:
        (?P<text>[bBuU]?(?:"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'))
      | (?P<number>[-+\u2212]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?(?![\w.]))
      | (?P<wrapper>(?:np\.|numpy\.)?(?:array|tensor|u?int\d+|float\d+|str_|bool_?)\()
      | (?P<more>\.\.\.|…)
      | (?P<word>[^\s\[\](){},:'"]+)
      | (?P<sign>[\[\](){},:])
    )""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|x([0-9a-fA-F]{2})|(\n|.))", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "v": "\v", "a": "\a", "0": "\0", "\n": ""}
_VALUES = {
    "true": True, "false": False, "np.true_": True, "np.false_": False,
    "none": None, "null": None, "nan": None, "np.nan": None, "na": None, "<na>": None, "nat": None,
}  # fmt: skip
_ENDS = {"[": "]", "(": ")", "{": "}"}


def is_printed(text: str) -> bool:
    """True if a text starts like a printed list or object."""
    return _OPEN.match(text) is not None


def holds_steps(text: str) -> bool:
    """True if a text starts like a printed list of strings or objects rather than like a solution or an answer."""
    return _STEPS.match(text) is not None


def parse_printed(text: str) -> Any:
    """Parse the list or object in a text into JSON values. A bare word, such as `pos` in `[pos, neg]`, becomes a
    string.

    NaN becomes None. Raises `ValueError`, with a reason, if the text is not a list or object, or if its middle was
    left out, as NumPy does in long arrays.
    """
    try:
        return parse_json(text)
    except ValueError:
        return _Parser(text).parse()


class _Parser:
    """A parser of one printed value."""

    def __init__(self, text: str) -> None:
        self._text, self._at = text.strip(), 0

    def parse(self) -> Any:
        value = self._value(0)
        if self._at < len(self._text):
            raise ValueError(f"{self._text[self._at : self._at + 20].strip()!r} follows its end")
        return value

    def _next(self) -> tuple[str, str]:
        match = _TOKEN.match(self._text, self._at)
        if match is None or match.lastgroup is None:
            raise ValueError("it has no end")
        self._at = match.end()
        if match.lastgroup == "more":
            raise ValueError("a part of it was left out when it was printed, as '...'")
        return match.lastgroup, match[match.lastgroup]

    def _peek(self) -> str:
        """Return the next token if it is a bracket or other punctuation, or "" if it is not. The position does not
        change."""
        match = _TOKEN.match(self._text, self._at)
        return match["sign"] or "" if match else ""

    def _value(self, depth: int) -> Any:
        if depth > DEEPEST:
            raise ValueError(f"lists and objects are nested over {DEEPEST} levels deep")
        what, token = self._next()
        if what == "text":
            return _unquoted(token)
        if what == "number":
            return _number(token)
        if what == "wrapper":
            return self._wrapped(depth)
        if what == "word":
            return _VALUES.get(token.lower(), token)
        if token == "{":
            return self._object(depth)
        if token in _ENDS:
            return self._list(_ENDS[token], depth)
        raise ValueError(f"{token!r} is out of place")

    def _list(self, end: str, depth: int) -> list[Any]:
        values: list[Any] = []
        while self._peek() != end:
            values.append(self._value(depth + 1))
            if self._peek() == ",":
                self._next()
        self._next()
        return values

    def _object(self, depth: int) -> dict[str, Any]:
        values: dict[str, Any] = {}
        while self._peek() != "}":
            key = self._value(depth + 1)
            if not isinstance(key, str) or self._next()[1] != ":":
                raise ValueError("an object has a key without a value")
            values[key] = self._value(depth + 1)
            if self._peek() == ",":
                self._next()
        self._next()
        return values

    def _wrapped(self, depth: int) -> Any:
        """Parse the rest of `array(…)` or `np.int64(…)` and return the value in it. Arguments after the value, such
        as a type, are skipped."""
        value = self._value(depth + 1)
        while self._next()[1] != ")":
            pass
        return value


def _number(token: str) -> int | float:
    plain = token.replace("\u2212", "-")
    try:
        return int(plain)
    except ValueError:
        return float(plain)


def _unquoted(token: str) -> str:
    text = _ESCAPE.sub(_unescaped, token.lstrip("bBuU")[1:-1])
    # JSON writes signs beyond the first plane as two halves.
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace") if "\\u" in token else text


def _unescaped(match: re.Match[str]) -> str:
    code = match[1] or match[2] or match[3]
    if code is not None:
        return chr(int(code, 16)) if int(code, 16) < 0x110000 else match[0]
    return _ESCAPED.get(match[4], match[4] if match[4] in "\\'\"/" else match[0])
