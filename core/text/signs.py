"""Equivalent characters: the single table of characters that are variants of the same sign.

Texts are stored unchanged. Code that parses, searches or compares texts uses this table, so that a typographic
minus, a curly apostrophe or a full-width digit is treated like the plain one. `plain` keeps the position of every
character, `comparable` is for comparing, and `searchable` for searching.
"""

import re
import string
import unicodedata
from collections import defaultdict
from collections.abc import Mapping
from functools import lru_cache
from itertools import pairwise

DASHES = "‐‑‒–—―⁃−➖﹘﹣－"
"""Hyphens, dashes and minus signs other than the ASCII one."""

APOSTROPHES = "‘’‚‛′‵ʹ\u0374ʻʼˈ´\u1ffd＇｀"
QUOTES = "“”„‟″‶«»〝〞＂"
TIMES = "×✕✖⨉⨯·\u0387∙⋅•∗＊"
OVER = "÷⁄∕➗／"
COLONS = "∶꞉：﹕"
STOPS = "。．｡！？।॥۔።։။។"
"""Signs of other scripts that end a sentence, with or without a space after them."""

SPACES = "\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"
INVISIBLE = (
    "\xad\u034f\u061c\u180e\u200b\u200c\u200d\u200e\u200f\u202a\u202b\u202c\u202d\u202e"
    "\u2060\u2061\u2062\u2063\u2064\u2066\u2067\u2068\u2069\ufe0e\ufe0f\ufeff"
)
"""Soft hyphens, zero-width spaces and joiners, marks of direction, byte order marks: nobody sees them."""

CURRENCY = "$€£¥₹¢₩₽₺₪₴₦₫฿₱₡₲₵₸₼₿＄￡￥￠￦"
UNSPACED = f'+-*/=<>^~±∓≤≥≠≈≡→⇒()[]{{}}|\\,;:!?%"{CURRENCY}'
"""Signs beside which white space means nothing to a search: of operations, relations, brackets, amounts, between
clauses, and of LaTeX's commands."""

BREAKS = "\t\n\v\f\r\x85\u2028\u2029"
"""Tabs and the signs that end a line."""

GROUPING = "\xa0\u2009\u202f"
"""Spaces that may stand between the thousands of a number."""

RAISED = "⁰¹²³⁴⁵⁶⁷⁸⁹"
LOWERED = "₀₁₂₃₄₅₆₇₈₉"
"""Superscript and subscript digits, in order. They stand for powers and indices, not for the digits themselves."""

# The zeros of other scripts: Arabic-Indic, Persian, Indian, Thai, full width and mathematical digits.
_ZEROS = "٠۰०০੦૦୦௦౦೦൦๐０𝟎𝟘𝟢𝟬𝟶"


def _plain_signs() -> dict[str, str]:
    # Full-width forms are in the order of ASCII.
    same = {chr(code): chr(code - 0xFEE0) for code in range(0xFF01, 0xFF5F)}
    same |= {chr(ord(zero) + digit): str(digit) for zero in _ZEROS for digit in range(10)}
    groups = (
        (DASHES, "-"),
        (APOSTROPHES, "'"),
        (QUOTES, '"'),
        (TIMES, "*"),
        (OVER, "/"),
        (COLONS, ":"),
        (SPACES, " "),
    )
    same |= {sign: plain for signs, plain in groups for sign in signs}
    same |= dict(zip("。｡、，؛٫٬٪", "..,,;.,%", strict=True))
    same |= dict(zip("＄￡￥￠￦", "$£¥¢₩", strict=True))
    return same


PLAIN: Mapping[int, str] = {ord(sign): plain for sign, plain in _plain_signs().items()}
"""Maps each variant to its plain sign, one character to one character, for `str.translate`."""

# Fillers, the blank Braille pattern, and variation selectors.
_UNSEEN = frozenset(f"{INVISIBLE}\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0").union(
    map(chr, range(0xFE00, 0xFE10)), map(chr, range(0xE0100, 0xE01F0))
)
# Letters and digits, each above the Latin letter that it looks like.
_LOOKALIKES = str.maketrans(
    # Cyrillic, Greek, Armenian and others.
    "аАвВсСԁеЕԌһНіІјЈкКӏМмоОрРԛԚѕЅтТԝԜхХуУүҮѵ" + "αΑΒϲϹΕΖηΗιΙκΚΜΝνοΟσρΡτΤυγΥχΧ" + "օՕսՍհոցՏ" + "ıɑɡȷ01I|",
    "aABBcCdeEGhHiljJkKlMMoOpPqQsSTTwWxXyYyYv" + "aABcCEZnHilkKMNvoOopPTTuyYxX" + "oOuUhngS" + "iagjolll",
)

_ACCENTS = "".join(map(chr, range(0x0300, 0x0370)))
_SAME: defaultdict[str, list[str]] = defaultdict(list)
for _sign, _plain in PLAIN.items():
    _SAME[_plain].append(chr(_sign))
_NOTHING = f"{string.whitespace}\x1c\x1d\x1e\x1f\x85\u2028\u2029{SPACES}{INVISIBLE}"
_SPACE_RUN = re.compile(f"[{BREAKS}][ {BREAKS}]*| [ {BREAKS}]+")
_BESIDE = re.compile(f" (?:(?=[{re.escape(UNSPACED)}])|(?<=[{re.escape(UNSPACED)}] ))")
_COMPARABLE: Mapping[int, str | None] = {**PLAIN, **dict.fromkeys(map(ord, INVISIBLE))}


def words(text: str) -> frozenset[str]:
    """Return the words of a text as a set."""
    return frozenset(text.split())


def plain(text: str) -> str:
    """Replace typographic signs, spaces and digits in a text by their plain variants. The positions of all
    characters stay the same."""
    return text if text.isascii() else text.translate(PLAIN)


def comparable(text: str) -> str:
    """Return a text in the form in which texts are compared.

    The result is in Unicode's composed form (NFC), with plain signs and without invisible characters. Case and the
    amount of white space between words are kept.
    """
    return text if text.isascii() else unicodedata.normalize("NFC", text.translate(_COMPARABLE))


def searchable(text: str) -> str:
    """Return a text in the form in which texts are searched: comparable, with each run of white space (or line
    breaks) as one space, and none next to the signs in `UNSPACED`."""
    return _BESIDE.sub("", _SPACE_RUN.sub(" ", comparable(text)))


def reads_alike(text: str, other: str) -> bool:
    """True if a reader could take one short text, such as a name, for the other. Letters of Cyrillic, Greek and
    Armenian count as the Latin ones that they look like, and invisible characters and case are ignored."""
    return not _lookalike_forms(text).isdisjoint(_lookalike_forms(other))


def shows_nothing(text: str) -> bool:
    """True if a short text, such as a name, has no visible character."""
    return is_blank(_visible_text(text))


def _lookalike_forms(text: str) -> set[str]:
    """Return forms of a text for comparing looks: texts that look alike share at least one form. Only the first
    form is case-sensitive: a capital i looks like a small l."""
    visible = _visible_text(text)
    lookalike = visible.translate(_LOOKALIKES)
    for pair, single in (("rn", "m"), ("vv", "w")):
        lookalike = lookalike.replace(pair, single)
    return {visible.casefold(), lookalike.casefold()}


def _visible_text(text: str) -> str:
    letters = unicodedata.normalize("NFKD", text.translate(_COMPARABLE))
    return " ".join("".join(sign for sign in letters if sign not in _UNSEEN).split())


def is_blank(text: str) -> bool:
    """True if a text contains no visible character."""
    return not text.strip(_NOTHING)


@lru_cache(maxsize=64)
def pattern(query: str) -> re.Pattern[str]:
    """Return a pattern that finds `query` in unprocessed text as `searchable` does, ignoring case."""
    signs = searchable(query).strip()
    forms = [_SPACED if sign == " " else _forms(sign) + _separator(sign, after) for sign, after in pairwise(signs)]
    return re.compile("".join((*forms, *map(_forms, signs[-1:]))), re.IGNORECASE)


_BLANK = f" {BREAKS}{SPACES}"
_SPACED = f"[{_BLANK}][{_BLANK}{INVISIBLE}]*"


def _separator(sign: str, after: str) -> str:
    """Return a pattern for the text that may separate two signs without making a difference."""
    is_unspaced = sign in UNSPACED or after in UNSPACED
    return f"[{_BLANK}{INVISIBLE}]*" if is_unspaced else f"[{INVISIBLE}]*"


def _forms(sign: str) -> str:
    forms = {sign, unicodedata.normalize("NFD", sign), *_SAME.get(sign, "")}
    # Followed by a combining accent, it is a different letter.
    accents = "".join(mark for mark in _ACCENTS if any(_is_single(form + mark) for form in (sign, sign.upper())))
    return f"(?:{'|'.join(map(re.escape, sorted(forms)))})" + (f"(?![{accents}])" if accents else "")


def _is_single(text: str) -> bool:
    return len(unicodedata.normalize("NFC", text)) == 1
