"""Lists, objects and steps as programs print them, in the notation of JSON, JSON Lines, Python or NumPy.

Pandas writes a list into a CSV file as Python prints it, `['a', "b's", None]`, and an array as NumPy does, `[ 1 -1
-1]` or `['a' 'b']`, without commas. Python's own parser would join the texts of the latter.
"""

import re
from collections.abc import Mapping
from typing import Any

from stepsight.core.errors import UserError
from stepsight.core.files.whole_files import DEEPEST, STRICT, parse_json
from stepsight.core.text.sentences import sentences
from stepsight.core.trace import check_text

MISSING = frozenset(
    ("", "n/a", "na", "#n/a", "#n/a n/a", "#na", "<na>", "nan", "-nan", "+nan", "none", "null", "nat", "undefined")
)
"""The words, in lower case, that stand for a missing value: those that pandas reads, and Python's and R's own."""

_OPEN = re.compile(r"""\s*+(?:["']\s*+)?(?:(?:np\.|numpy\.)?(?:array|tensor)\(\s*)?[\[({]""")
# The start of a list of strings or objects, which does not occur in a solution written as prose. The list may be
# quoted as a whole. Arrays of PostgreSQL and sets are recognised too, but reported rather than read.
_STEP_LIST = re.compile(
    r"""\s*+(?:["']\s*+)?(?:
        (?:(?:np\.|numpy\.)?array\(\s*)?\[\s*+(?:[\[({]\s*+)?(?:(?:np\.|numpy\.)str_\(\s*)?[bBuU]?\\?["'“‘]
      | \{\s*(?:"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')\s*,
    )""",
    re.VERBOSE | re.DOTALL,
)
# Quoted strings with commas between them: a list without its brackets.
_TEXT = r"""(?:"(?:[^"\\]|\\.)*+"|'(?:[^'\\]|\\.)*+')"""
_QUOTED = re.compile(rf"\s*+{_TEXT}(?:\s*+,\s*+{_TEXT})++\s*+", re.DOTALL)
_LETTERS = re.compile(r"[^\W\d_]{2}")
_TOKEN = re.compile(
    r"""\s*(?:
        (?P<text>[bBuU]?(?:"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'))
      | (?P<number>[-+\u2212]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?(?![\w.]))
      | (?P<wrapper>(?:np\.|numpy\.)?(?:array|tensor|u?int\d+|float\d+|str_|bool_?)\()
      | (?P<more>\.\.\.|…)
      | (?P<sign>[\[\](){},:])
      | (?P<word>[-+\u2212\w.<#/][^\s\[\](){},:;|'"“”‘’，；]*)
    )""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|x([0-9a-fA-F]{2})|(\n|.))", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "v": "\v", "a": "\a", "0": "\0", "\n": ""}
_VALUES = {"true": True, "false": False, "np.true_": True, "np.false_": False, "np.nan": None}
_VALUES |= dict.fromkeys(MISSING)
_ENDS = {"[": "]", "(": ")"}
# Where one value may follow another without a comma, as in arrays printed by NumPy.
_BETWEEN = " \n\t\r["


def is_printed(text: str) -> bool:
    """True if a text starts like a printed list or object."""
    return _OPEN.match(text) is not None


def holds_steps(text: str) -> bool:
    """True if a text starts like a printed list of strings or objects rather than like a solution or an answer, or
    if it is such a list without its brackets."""
    return _STEP_LIST.match(text) is not None or _QUOTED.fullmatch(text) is not None


def is_unquoted_list(text: str) -> bool:
    """True if a text in brackets has commas between parts in words, so that it may be a list of texts without their
    quotes."""
    inside = text.strip()[1:-1]
    is_plain = text.strip() == f"[{inside}]" and not set(inside) & set("[]$\\\n")
    return is_plain and "," in inside and all(map(_LETTERS.search, inside.split(",")))


def parse_printed(text: str) -> Any:
    """Parse the list or object in a text into JSON values. A bare word, such as `pos` in `[pos, neg]`, becomes a
    string.

    A list that is quoted as a whole, as by a program that writes JSON twice, is read as well. Unless the text is
    JSON, NaN becomes None.

    Raises `ValueError`, with a reason, if the text is not a list or object, or if its middle was left out, as NumPy
    does in long arrays.
    """
    if _QUOTED.fullmatch(text):
        text = f"[{text}]"
    try:
        value = parse_json(text, decoder=STRICT)
    except ValueError:
        value = _Parser(text).parse()
    return parse_printed(value) if isinstance(value, str) and holds_steps(value) else value


class _Parser:
    """A parser of one printed value."""

    def __init__(self, text: str) -> None:
        self._text, self._at = text.strip(), 0

    def parse(self) -> Any:
        value = self._value(0)
        if self._at < len(self._text):
            raise ValueError(f"unexpected {self._text[self._at : self._at + 20].strip()!r} after its end")
        return value

    def _next_token(self) -> tuple[str, str]:
        match = _TOKEN.match(self._text, self._at)
        if match is None or match.lastgroup is None:
            rest = self._text[self._at :].lstrip()
            raise ValueError("it has no end" if rest[:1] in ("", "'", '"') else f"unexpected {rest[0]!r}")
        self._at = match.end()
        if match.lastgroup == "more":
            raise ValueError("'...' stands for a part that was not printed")
        return match.lastgroup, match[match.lastgroup]

    def _peek(self) -> str:
        """Return the next token if it is a bracket or other punctuation, or "" if it is not. The position does not
        change."""
        match = _TOKEN.match(self._text, self._at)
        return match["sign"] or "" if match else ""

    def _value(self, depth: int) -> Any:
        if depth > DEEPEST:
            raise ValueError(f"lists and objects are nested over {DEEPEST} levels deep")
        kind, token = self._next_token()
        if kind == "text":
            text = _ESCAPE.sub(_unescape, token.lstrip("bBuU")[1:-1])
            # JSON writes characters beyond the basic plane as surrogate pairs.
            return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace") if "\\u" in token else text
        if kind == "number":
            plain = token.replace("\u2212", "-")
            try:
                return int(plain)
            except ValueError:
                return float(plain)
        if kind == "wrapper":
            # In `array(…)` or `np.int64(…)`, the value is followed by its type and the like.
            value = self._value(depth + 1)
            while self._next_token()[1] != ")":
                pass
            return value
        if kind == "word":
            return _VALUES.get(token.lower(), token)
        if token == "{":
            return self._object(depth)
        if token in _ENDS:
            return self._list(_ENDS[token], depth)
        raise ValueError(f"unexpected {token!r}")

    def _list(self, end: str, depth: int) -> list[Any]:
        """Parse the rest of a list, which has a comma between any two values, or white space between all."""
        values: list[Any] = []
        commas = 0
        while self._peek() != end:
            if self._peek() == "," and values:
                self._next_token()
                commas += 1
                if self._peek() == end:
                    break
            elif values and self._at < len(self._text) and self._text[self._at] not in _BETWEEN:
                raise ValueError(f"a comma is missing before {self._text[self._at : self._at + 20]!r}")
            values.append(self._value(depth + 1))
        if 0 < commas < len(values) - 1:
            raise ValueError("it has commas between only some of its values")
        self._next_token()
        return values

    def _object(self, depth: int) -> dict[str, Any]:
        values: dict[str, Any] = {}
        while self._peek() != "}":
            key = self._value(depth + 1)
            if isinstance(key, bool) or not isinstance(key, str | int) or self._next_token()[1] != ":":
                raise ValueError("an object has a key without a value")
            value = self._value(depth + 1)
            if values.setdefault(str(key), value) != value:
                raise ValueError(f"the key {key!r:.60} occurs twice, with different values")
            if self._peek() == ",":
                self._next_token()
        self._next_token()
        return values


def _unescape(match: re.Match[str]) -> str:
    code = match[1] or match[2] or match[3]
    if code is not None:
        return chr(int(code, 16)) if int(code, 16) < 0x110000 else match[0]
    return _ESCAPED.get(match[4], match[4] if match[4] in "\\'\"/" else match[0])


Steps = list[str | list[str]]

# The keys that many programs use for the steps of a solution, its answer, and the text of a step. They may also be
# written as `finalAnswer` or `Final Answer`.
_STEP_KEYS = ("steps", "solution_steps", "reasoning_steps", "reasoning", "solution", "process", "chain_of_thought")
_ANSWERS = ("final_answer", "finalanswer", "answer", "final_result", "result", "conclusion", "solution")
_TEXTS = frozenset({
    "step", "text", "content", "title", "heading", "explanation", "description", "reasoning", "thought",
    "statement", "step_text", "value", "calculation", "equation", "operation", "output", "result", "conclusion",
})  # fmt: skip
_NUMBERED = re.compile(r"(?:step)?_?(\d{1,4})")
_WORD_ENDS = re.compile(r"(?<=[a-z])(?=[A-Z])|[\s_-]+")

# Other beginnings of values printed by a program: objects, strings and tuples.
_STARTS = ("{", '"', "'", "('", '("')


def read_step_list(text: str) -> Steps | str | None:
    """Parse a list of steps that a program printed. Returns the steps, or the solution as a single text if the
    program printed only that, or None if the text was not printed by a program.

    An object with steps may hold an answer, which becomes the last step. A step may be an object with a text. Lists
    without any text, such as `[-2, 2]`, are answers and not lists of steps.

    Raises `UserError` if a list contains both texts and other values.
    """
    value = _parse_value(text)
    if isinstance(value, str):
        return value if "\n" in value else None
    if isinstance(value, Mapping):
        value = _listed_steps(value)
    if isinstance(value, str):
        return value
    if not isinstance(value, list):
        return None
    if isinstance(chat := _last_reply(value), str):
        return chat
    return [_step(step, number) for number, step in enumerate(value, start=1)] if _has_text(value) else None


def _parse_value(text: str) -> Any:
    """Return the value that a program printed, or None if the text is ordinary prose."""
    lines = text.splitlines()
    try:
        if len(lines) > 1 and all(line.startswith("{") and line.endswith("}") for line in lines):
            try:
                return [parse_json(line, decoder=STRICT) for line in lines]
            except ValueError:
                return parse_printed(text)
        return parse_printed(text) if holds_steps(text) or text.startswith(_STARTS) or text == "[]" else None
    except ValueError:
        return None


def _listed_steps(value: Mapping[Any, Any]) -> Any:
    """Return the steps in an object: its list of steps, or its values if their keys are consecutive numbers,
    followed by the answer. Returns a text if the steps are a single text, and None if there are no steps."""
    fields = {_WORD_ENDS.sub("_", str(key).strip()).lower(): part for key, part in value.items()}
    numbered = {int(match[1]): part for key, part in fields.items() if (match := _NUMBERED.fullmatch(key))}
    steps: Any
    if len(numbered) > 1 and list(numbered) in (list(range(1, len(numbered) + 1)), list(range(len(numbered)))):
        steps, name = list(numbered.values()), ""
    else:
        name = next((name for name in _STEP_KEYS if isinstance(fields.get(name), list | str | Mapping)), "")
        steps = fields.get(name)
    if isinstance(steps, Mapping):
        steps = _listed_steps(steps)
    answer = next((text for key in _ANSWERS if key != name and (text := _answer(fields.get(key)))), "")
    if not answer or steps is None:
        return steps
    if isinstance(steps, list):
        return [*steps, answer]
    return f"{steps}\n\nFinal answer: {answer}" if "\n" in steps else [*sentences(steps), answer]


def _answer(value: Any) -> str:
    """Return the text of an answer, or "" if it has none."""
    if isinstance(value, list):
        return ", ".join(filter(None, map(_answer, value)))
    value = _text(value)
    return str(value).strip() if isinstance(value, str | int | float) else ""


def _last_reply(messages: list[Any]) -> str | None:
    """Return the model's last reply in a list of chat messages, or None if there is none."""
    replies = [
        message["content"]
        for message in messages
        if isinstance(message, Mapping) and message.get("role") in ("assistant", "model")
        and isinstance(message.get("content"), str)
    ]  # fmt: skip
    return replies[-1] if replies else None


def _has_text(value: list[Any]) -> bool:
    return not value or any(
        isinstance(step, str | Mapping) or (isinstance(step, list) and bool(step) and _has_text(step))
        for step in value
    )


def _step(step: Any, number: int) -> str | list[str]:
    place = f"step {number} of the list"
    parts = [_text(part) for part in (step if isinstance(step, list) else [step])]
    texts = [part for part in parts if isinstance(part, str)]
    if not parts or len(texts) < len(parts):
        raise UserError(
            f"{place} is {step!r:.60}, expected a text, a list of texts, or an object with a text.",
            "Give each step as a text.",
        )
    for text in texts:
        check_text(text, place)
    return texts if isinstance(step, list) else texts[0]


def _text(step: Any) -> Any:
    """Return the text of a step that is an object, joining its text fields in order. Any other step, and an object
    without such fields, is returned unchanged."""
    if not isinstance(step, Mapping):
        return step
    parts = {key: part for key, part in step.items() if isinstance(part, str) and part.strip()}
    named = [part for key, part in parts.items() if str(key).lower() in _TEXTS]
    if named:
        return "\n".join(named)
    return next(iter(parts.values())) if len(parts) == 1 else step
