"""Line breaks, list items and the step tokens of process reward models, in all their notations."""

import re
from collections.abc import Callable

from stepsight.core.text.signs import INVISIBLE, SPACES

STEP_TOKEN = re.compile(r"<extra_0>|(?<![^\W\d])ки(?![^\W\d])")
"""The step tokens of Qwen2.5-Math-PRM and of Math-Shepherd. The latter also ends many Russian words."""

# Tags around steps or between them, such as `<step>`, `</step_2>`, `<|end_of_step|>`, `[STEP]` and `[SEP]`.
_STEP_TAG = re.compile(
    rf"{STEP_TOKEN.pattern}"
    r"|<\|?/?(?:(?:new|next|end_of|begin_of|start_of|end|start)_?)?(?:reasoning_?)?(?:steps?|paragraph)"
    r"(?:_?(?:end|start|sep))?"
    r"(?:[ _:#-]?\d{1,4}|\s[^<>]{1,80})?\|?/?>"
    r"|\[/?STEP\]|\[/STEP[ _-]?\d{1,4}\]|\[SEP\]|<\|?sep\|?>|<\|?prm\|?>"
    # Tokens that vocabularies keep free, and of which evaluators take one.
    r"|<\|?(?:reserved_(?:special_)?token|extra(?:_id)?|unused_?(?:token)?|special|placeholder)_?\d{1,4}\|?>"
    r"|\[unused\d{1,4}\]",
    re.IGNORECASE,
)

_LINE_ENDS = re.compile("\r\n?|[\x85\u2028\x0b]")
_PARAGRAPH_ENDS = re.compile("[\u2029\x0c]")
# Lines of white space alone are blank as they are; these also hold something that nobody sees.
_INVISIBLE_LINE = re.compile(rf"^[ \t{SPACES}]*+[{INVISIBLE}][ \t{SPACES}{INVISIBLE}]*+$", re.MULTILINE)
_FENCED = re.compile(r"(```.*?```|~~~.*?~~~)", re.DOTALL)
_WRAPPED = re.compile(
    r"(```|~~~)[ \t]*(?:markdown|md|text|txt|plaintext|latex|tex|json)[ \t]*\n(.*)\n\1", re.DOTALL
)
_ESCAPED_BREAK = re.compile(r"(?:\\r)?\\n(?:(?:\\r)?\\n)?(?![a-z])")
_ESCAPED_BLANK = re.compile(r"\\n(?:\\r)?\\n(?![a-z])")

_TAGS = re.compile(
    r"<(?:br|li|p|b|strong|h[1-6]|answer)\b|</(?:p|div|solution|reasoning|response|verification|check)>|\\item\b",
    re.IGNORECASE,
)
_BLANKS = r"(?<![ \t])[ \t]*"
_LINE_START = r"(?:\n|(?<![ \t]))[ \t]*"
# Each notation and what it means in plain text, in the order in which they are replaced. White space before a sign
# is matched from its beginning alone, or a long run of it would take quadratic time.
_NOTATIONS: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE), plain)
    for pattern, plain in (
        (rf"{_BLANKS}<br[ \t]*/?>[ \t]*\n?", "\n"),
        (r"(?<!\s)\s*<li(?: [^<>]{0,200})?>\s*", "\n- "),
        (rf"(?<!\s)\s*</li>|{_LINE_START}<[ou]l(?: [^<>]{{0,200}})?>", ""),
        (rf"{_LINE_START}\\begin\{{(?:enumerate|itemize)\}}(?:\[[^\]\n]{{0,80}}\])?", ""),
        (r"(?<!\s)\s*\\item\b(?:\[[^\]\n]{0,20}\])?\s*", "\n- "),
        (
            rf"{_LINE_START}(?:</[ou]l>|\\end\{{(?:enumerate|itemize)\}}"
            r"|</?(?:p|div|section)(?: [^<>]{0,200})?>)",
            "\n\n",
        ),
        (r"</?(?:b|strong)>", "**"),
        (rf"{_LINE_START}<h[1-6](?: [^<>]{{0,200}})?>[ \t]*", "\n\n### "),
        (rf"{_BLANKS}</h[1-6]>", "\n\n"),
        (rf"{_LINE_START}</?(?:solution|reasoning|response|verification|check)>[ \t]*\n?", "\n"),
        (r"<answer>\s*+([^\s<][^\n<]{0,199}?)\s*</answer>", r"<answer>\1</answer>"),
        (r"(?<=\S)[ \t]*(?=<answer>)", "\n"),
    )
)


def plain_lines(text: str) -> str:
    """Normalise the line breaks of a text to line feeds, and remove white space and byte order marks around the
    text. Lines without visible characters become empty."""
    text = _PARAGRAPH_ENDS.sub("\n\n", _LINE_ENDS.sub("\n", text))
    if not text.isascii():
        text = _INVISIBLE_LINE.sub("", text)
    return text.strip().strip("\ufeff\u200b").strip()


def unwrapped(text: str) -> str:
    """Return a text as it was before a program put it in a code fence or escaped its line breaks. A text without
    either is returned unchanged."""
    if wrapped := _WRAPPED.fullmatch(text):
        text = wrapped[2].strip()
    # A text in one line with escaped line breaks was printed by a program. LaTeX such as \neq is none.
    is_escaped = "\n" not in text and not text.startswith(("{", "[", '"', "'")) and _ESCAPED_BLANK.search(text)
    return _ESCAPED_BREAK.sub(_line_breaks, text) if is_escaped else text


def _line_breaks(match: re.Match[str]) -> str:
    return "\n" * match[0].count("\\n")


def marked_up_lines(text: str) -> str:
    """Replace the line breaks, list items and paragraphs of HTML and LaTeX in a text by plain ones. Code is not
    changed."""
    return _outside_code(text, _replaced) if _TAGS.search(text) else text


def _replaced(text: str) -> str:
    for notation, plain in _NOTATIONS:
        text = notation.sub(plain, text)
    return text


def _outside_code(text: str, change: Callable[[str], str]) -> str:
    pieces = _FENCED.split(text)
    return "".join(piece if place % 2 else change(piece) for place, piece in enumerate(pieces))


def at_step_tokens(text: str) -> list[str]:
    """Split a text at its step tokens or step tags. The result is empty if the text has none."""
    return [part for part in _STEP_TAG.split(text) if part.strip()] if _STEP_TAG.search(text) else []
