"""Marks at which steps begin: the name of a step and its number, numbers of numbered lists, and bullets."""

import itertools
import re
import unicodedata
from collections.abc import Iterable, Mapping

from stepsight.core.text.signs import INVISIBLE, PLAIN
from stepsight.core.text.words import NUMBERS, OF_ALL, REFERENCES, STEPS, THOUGHTS, any_of

Marks = tuple[re.Pattern[str], ...]
"""Patterns of one style of marks. A list has marks of one style only."""

_CJK_DIGITS: Mapping[str, int] = dict(zip("一二三四五六七八九十", range(1, 11), strict=True))
_CJK_NUMBER = f"[{''.join(_CJK_DIGITS)}]{{1,3}}"
_ROMAN: Mapping[str, int] = {"i": 1, "v": 5, "x": 10}
_CIRCLED = "①-⑳❶-❿➀-➉➊-➓⓵-⓾㊀-㊉⑴-⒇⒈-⒛"
_ENCLOSED = f"[{_CIRCLED}]|\\d[ ]?\u20e3|🔟"

# Characters in which marks are written. Those that need no space after them stay unchanged.
_MARK_SIGNS: Mapping[int, str] = {
    **{code: sign for code, sign in PLAIN.items() if sign in " :-[]{}#/" or sign.isdigit()},
    **dict.fromkeys(map(ord, INVISIBLE), " "),
    **{ord(sign): plain for sign, plain in zip("【】〔〕〖〗「」『』《》", "[]" * 6, strict=True)},
}


_NAME, _THOUGHT_NAME = any_of(STEPS), any_of(THOUGHTS)
_NUMERAL = rf"\d{{1,6}}(?:\.\d{{1,3}}){{0,3}}|(?:{any_of(NUMBERS)})\b"
_OF_ALL = rf"(?:[ \t]*(?:/|\b(?:{any_of(OF_ALL)})\b)[ \t]*\d{{1,6}})?"
# `Step 1`, `Step 1 of 3`, `1. Schritt`, `第一步`.
_AFTER_NAME = (
    r"(?:[ \t]*|[-_])(?:#|№|no\.|nr\.|n[°º]|number\b)?[ \t]*"
    rf"[($]?(?:(?P<number>{_NUMERAL})|(?P<roman>[IVX]{{1,5}})\b|(?P<letter>[A-Z])\b)[)$]?{_OF_ALL}"
)
_NAMED = (
    rf"(?:(?:{_NAME}){_AFTER_NAME}"
    rf"|第[ \t]*(?P<cjk>\d{{1,6}}|{_CJK_NUMBER})[ \t]*(?:步骤|步驟|步|ステップ)"
    rf"|(?:步骤|步驟|ステップ|手順)[ \t]*(?P<cjk_after>{_CJK_NUMBER})"
    rf"|(?P<ordinal>{_NUMERAL})(?:\.|(?:st|nd|rd|th|i?ère|ere|e|ème)\b|ª|º|°|-й\b)?[ \t]*(?:{_NAME}){_OF_ALL})"
)
# Emojis that some models put before a heading, and the LaTeX commands for headings.
_PICTURES = "\u2600-\u27bf\u2b00-\u2bff\U0001f300-\U0001faff"
_COMMAND = r"\$?\\(?:text(?:bf|it)|(?:sub){0,2}section\*?|paragraph\*?)\{"
_BEFORE_NAME = rf"(?P<lead>[#>\s]*(?:[-*+•][ \t]+|[{_PICTURES}][ \t]*)?)(?P<bold>{_COMMAND}|[*_]{{0,3}})[\[(（]?"
_AFTER_NUMBER = (
    r"[\])）]?"
    # `Step 1.2 Add`
    r"(?:(?<=\.\d)[ \t]+(?-i:(?=[A-Z]))"
    r"|[ \t]*(?:\.-|[:.)．]|[-=]>|[→⇒]|[-–—](?=\s|$))|(?<=[步骤驟プ])[ \t]*[,，、]|(?<=[步骤驟])[ \t]+(?=\S)"
    # `Step 1 (Adding): …`
    r"|(?=[ \t]*\([^()\n]{1,80}\)[ \t]*[:.–—-])"
    r"|(?P<bare>(?=[ \t]*(?:[*_}]|$))|(?<=\])))"
    r"(?P<close>\}\$?|[*_]{0,3})(?:(?<=[*_}])[ \t]*(?:[:–—]|-(?=\s)))?\s*"
)
_STEP = re.compile(f"{_BEFORE_NAME}{_NAMED}{_AFTER_NUMBER}", re.IGNORECASE)
_THOUGHT = re.compile(f"{_BEFORE_NAME}(?:{_THOUGHT_NAME}){_AFTER_NAME}{_AFTER_NUMBER}", re.IGNORECASE)
# A heading needs no punctuation after its number: `### Step 1 Read the problem`.
_HEADED_STEP = re.compile(
    rf"(?P<lead>[>\s]*#{{1,6}}[ \t]*)(?P<bold>[*_]{{0,3}}){_NAMED}(?P<close>)[ \t]+", re.IGNORECASE
)
_HEADED_NUMBER = re.compile(
    r"(?P<lead>\s*(?:#{1,6}[ \t]+|(?=[*_]{2})))"
    r"(?P<bold>[*_]{0,3})[(（]?(?P<number>\d{1,5})[.):．）、](?P<close>[*_]{0,3})(?:\s+|$)"
)
_BEGIN = r"(?P<lead>[>\s]*)(?P<bold>[*_]{0,3})"
_CLOSE = r"(?P<close>[*_]{0,3})\s*"
_END = r"(?P<close>[*_]{0,3})(?:\s+|$)"
# Some authors leave no space after the number; `1.5` and `(2)(3)` are not marks.
_END_TIGHT = r"(?P<close>[*_]{0,3})(?:\s+|$|(?=[^\W\d_]))"
_NUMBER = re.compile(rf"{_BEGIN}\(?(?P<number>\d{{1,5}})(?:[ \t]?\)|\\?[.)]{{1,2}}|\.-){_END_TIGHT}")
# `1.1 Add`, `(1.1)`, `1a.` and `1(a)`; `1.1 + 2` and `1.5 m` are not marks.
_OUTLINE = re.compile(
    r"(?P<lead>[#>\s]*)(?P<bold>[*_]{0,3})\(?(?:(?P<outline>\d{1,3}(?:\.\d{1,3}){1,3})(?:[.):]{1,2}|"
    r"(?=[*_]{0,3}[ \t]+(?:[*_\"'“(]*[^\W\da-z_](?:[^\W\dA-Z_]|\s)|\$[a-zA-Z]|\\[(\[])))"
    rf"|(?P<outline_letters>\d{{1,3}}(?:-\d{{1,3}}[.):]|[a-h][.):]|[ ]?\([a-h]\)))){_END_TIGHT}"
)
# These characters may also be part of a sum, as in `1 - x = 3`, unless a word follows the first of them.
_LOOSE_NUMBER = re.compile(
    rf"{_BEGIN}(?!1[ \t]*[-:/º°ª][ \t]+(?![^\W\d_]{{2}}))(?P<number>\d{{1,5}})[ \t]*[-:/º°ª]{_END}"
)
_OTHER_NUMBERS = (
    _LOOSE_NUMBER,
    re.compile(rf"{_BEGIN}(?:\[(?P<number>\d{{1,3}})\]|[#№][ \t]?(?P<ordinal>\d{{1,3}})[.:)]?){_END_TIGHT}"),
    re.compile(rf"{_BEGIN}（?(?P<number>\d{{1,3}})(?:[）、]|．(?!\d)){_CLOSE}"),
    re.compile(rf"{_BEGIN}(?P<enclosed>{_ENCLOSED})[.:]?{_CLOSE}"),
    re.compile(
        rf"{_BEGIN}(?:(?P<cjk>{_CJK_NUMBER})[、．.:]|[(（](?P<cjk_after>{_CJK_NUMBER})[)）][、.:]?){_CLOSE}"
    ),
    re.compile(rf"{_BEGIN}\(?(?P<roman>[IVX]{{1,5}})[.):]{_END}"),
    re.compile(rf"{_BEGIN}\(?(?P<roman>[ivx]{{1,5}})[.)]{_END}"),
    re.compile(rf"{_BEGIN}\(?(?P<letter>[a-z])\){_END}"),
)
STYLES: tuple[Marks, ...] = (
    (_STEP, _HEADED_STEP),
    (_THOUGHT,),
    (_HEADED_NUMBER,),
    (_NUMBER,),
    (_OUTLINE,),
    *((pattern,) for pattern in _OTHER_NUMBERS),
)
"""All styles of numbered marks, in the order in which they are tried."""
HEADINGS = STYLES[:3]
"""The styles of marks that are headings."""

BULLET = re.compile(r"([ \t]*)(?:[-*+•‣◦–—∙·●○▪■◆►▶➤✓✔]|[→⇒](?=[ \t]+[^\W\d_]{2}))[ \t]+(?=\S)")


def _any_capitalised(names: Iterable[str]) -> str:
    return any_of({form for word in names for form in (word.capitalize(), word.upper())})


_CAPITAL_NAME = _any_capitalised(STEPS)
_INLINE_STEP = re.compile(
    rf"(?:[*_]{{2}})?(?:(?<=[*_])|\b)(?:(?:{_CAPITAL_NAME})[ \t]*#?(?P<number>{_NUMERAL}){_OF_ALL}[ \t]*"
    rf"(?:[:.)]|[-–—](?=\s))|\[(?:{_CAPITAL_NAME})[ \t]*(?P<ordinal>\d{{1,6}})\])"
    # These need no spaces around them.
    rf"|\[?第[ \t]*(?P<cjk>\d{{1,6}}|{_CJK_NUMBER})步[骤驟]?\]?[:,，、]"
    rf"|\[?(?:步骤|步驟|ステップ|手順)[ \t]*(?P<cjk_after>\d{{1,6}}|{_CJK_NUMBER})[\]:.]"
)
_INLINE_BRACKETED = re.compile(
    rf"(?:\[(?:{_NAME})[ \t_-]*#?(?P<number>{_NUMERAL}){_OF_ALL}\]|\((?:{_NAME})[ \t]*(?P<ordinal>{_NUMERAL})\))",
    re.IGNORECASE,
)
_INLINE_THOUGHT = re.compile(
    rf"(?:[*_]{{2}})?(?:(?<=[*_])|\b)(?:{_any_capitalised(THOUGHTS)})[ \t]*#?(?P<number>{_NUMERAL}):"
)
_INLINE_NUMBER = re.compile(
    r"[(（]?(?<![\w.])(?P<number>\d{1,2})"
    r"(?:[.)][ \t]+(?=[\"'“(*_]{0,3}(?:[^\W\da-z_]|\$|\\))|[.、)）．][ \t]*(?=[\u3040-\u9fff]))"
)
_INLINE_ENCLOSED = re.compile(rf"(?P<enclosed>{_ENCLOSED})")
INLINE = (_INLINE_BRACKETED, _INLINE_STEP, _INLINE_THOUGHT, _INLINE_NUMBER, _INLINE_ENCLOSED)
"""Marks within a line, in the order in which they are tried."""

_OF_A_STEP = re.compile(rf"\b(?:{any_of(REFERENCES)})[ \t]*$")
_SENTENCE_ENDS = re.compile(r"(?:[.!?:;)\]$}*\"”][ \t]+|[。！？；：．”」』）][ \t]*)\(?$")


def plain_marks(text: str) -> str:
    """Replace the variants of the characters in marks by plain ones. All characters keep their positions."""
    return text if text.isascii() else text.translate(_MARK_SIGNS)


def match_mark(marks: Marks, line: str) -> re.Match[str] | None:
    """Return the match of a mark at the beginning of a line, or None if there is no mark. The match's positions are
    valid in `line`."""
    for pattern in marks:
        match = pattern.match(plain_marks(line))
        if match is None:
            continue
        # `**Step 1** We add`: without punctuation, the emphasis must end at the number.
        is_bare = match.groupdict().get("bare") is not None and match.end() < len(line)
        if not (is_bare and match["bold"] and not match["close"]):
            return match
    return None


_AROUND_NUMBERS = ("lead", "bold", "bare", "close")
_PARTS = re.compile(r"\d+|[a-z]")


def numbers_of(match: re.Match[str]) -> tuple[int, ...]:
    """Return the numbers in a mark, which are (1, 2) for `1.2`, or (0,) if the mark's digits form no valid
    number."""
    kind, text = next(
        (kind, text) for kind, text in match.groupdict().items() if text and kind not in _AROUND_NUMBERS
    )
    if kind == "roman":
        values = [_ROMAN[sign] for sign in text.lower()]
        return (sum(-value if value < max(values[place:]) else value for place, value in enumerate(values)),)
    if kind == "letter":
        return (_letter(text),)
    if kind == "enclosed":
        return (10 if text == "🔟" else int(unicodedata.numeric(text[0])),)
    if text[0].isdecimal():
        return tuple(int(part) if part.isdecimal() else _letter(part) for part in _PARTS.findall(text))
    if kind.startswith("cjk"):
        # A numeral below 100, such as 二十一.
        tens, ten, ones = text.partition("十")
        return ((_CJK_DIGITS.get(tens, 1) * 10 if ten else 0) + _CJK_DIGITS.get(ones if ten else tens, 0),)
    return (NUMBERS[unicodedata.normalize("NFC", text.lower())],)


def come_next(numbers: tuple[int, ...], before: tuple[int, ...]) -> bool:
    """True if the numbers of a mark come next after those of the mark before: 1.2, 1.1.1 and 2 after 1.1. The first
    mark of all comes after ()."""
    pairs = zip(numbers, before, strict=False)
    shared = len(list(itertools.takewhile(lambda pair: pair[0] == pair[1], pairs)))
    is_next = shared < len(numbers) and numbers[shared] == 1 + (before[shared] if shared < len(before) else 0)
    return is_next and set(numbers[shared + 1 :]) <= {1}


def _letter(text: str) -> int:
    return ord(text.lower()) - ord("a") + 1


def unmarked(line: str, marks: Marks) -> str:
    """Return a line without its mark. Emphasis that starts before the number and ends after it is kept."""
    match = match_mark(marks, line)
    if match is None:
        return line
    rest = line[match.end() :].lstrip(INVISIBLE)
    groups = match.groupdict()
    bold = groups.get("bold") or ""
    closer = "}" if "\\" in bold else bold
    return f"{bold}{rest}" if bold and not groups.get("close") and closer in rest else rest


def begins_step(text: str, match: re.Match[str]) -> bool:
    """True if a mark within a text begins a step, rather than being part of a sentence."""
    before = text[max(0, match.start() - 20) : match.start()]
    line = before.rpartition("\n")[2]
    if not line.strip(" \t*_#>(") and ("\n" in before or match.start() < 20):
        return True
    if match.re is _INLINE_STEP:
        return not _OF_A_STEP.search(line)
    return numbers_of(match) > (1,) and _SENTENCE_ENDS.search(line) is not None
