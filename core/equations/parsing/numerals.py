"""Every number that a text may mention, in digits of any notation or in words."""

import re
from collections.abc import Iterator
from fractions import Fraction

from stepsight.core.equations.parsing.units import SCALES
from stepsight.core.text.signs import plain

_MOST = 40
"""The most characters of a number that is read."""
_MOST_WORDS = 16

_ONES = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen"
    " seventeen eighteen nineteen"
)
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
_SMALL = {word: n for n, word in enumerate(_ONES.split())} | {
    word: 10 * n for n, word in enumerate(_TENS.split(), start=2)
}
_PARTS = {
    "half": 2, "halves": 2, "halved": 2, "twice": 2, "double": 2, "doubled": 2, "pair": 2, "couple": 2, "third": 3,
    "thirds": 3, "triple": 3, "thrice": 3, "quarter": 4, "quarters": 4, "fourth": 4, "fourths": 4, "fifth": 5,
    "fifths": 5, "sixth": 6, "seventh": 7, "eighth": 8, "ninth": 9, "tenth": 10,
}  # fmt: skip
_VALUES = _SMALL | SCALES
_WORD = re.compile(rf"(?:{'|'.join(sorted(_VALUES, key=len, reverse=True))})s?", re.IGNORECASE)
_WORDS = re.compile(
    rf"(?<![A-Za-z]){_WORD.pattern}(?:(?:\s+and\s+|[\s-]+){_WORD.pattern})*(?![A-Za-z])", re.IGNORECASE
)
_PART = re.compile(rf"\b(?:{'|'.join(_PARTS)})\b", re.IGNORECASE)
_DIGITS = re.compile(r"\d+(?:(?:[.,']|\{,\}|\\,| (?=\d{3}(?!\d)))\d+)*|\.\d+")


def numbers_in(text: str) -> set[Fraction]:
    """Return every number that a reader may find in a text: 1,250 is also 1.25, and three hundred is 3, 100 and
    300. A word for a part, such as half, gives the number of parts."""
    text = plain(text)
    found: set[Fraction] = set()
    for written in set(_DIGITS.findall(text)):
        found.update(_in_digits(written))
    for match in _WORDS.finditer(text):
        words = [word[0].lower().removesuffix("s") for word in _WORD.finditer(match[0])]
        found.update(Fraction(_VALUES[word]) for word in words)
        if len(words) <= _MOST_WORDS:
            found.add(Fraction(_in_words(words)))
    found.update(Fraction(_PARTS[match[0].lower()]) for match in _PART.finditer(text))
    return found


def _in_digits(text: str) -> Iterator[Fraction]:
    """Yield the readings of a run of digits and separators: its parts, and with each separator as decimal point."""
    if text.isdigit():
        if len(text) <= _MOST:
            yield Fraction(int(text))
        return
    text = re.sub(r"\{,\}|\\,|[' ]", ",", text)
    for written in (text.replace(",", ""), text.replace(".", "").replace(",", "."), *re.split("[.,]", text)):
        if written.count(".") <= 1 and 0 < len(written) <= _MOST and written != ".":
            yield Fraction(written)


def _in_words(words: list[str]) -> int:
    total = part = 0
    for word in words:
        if word in _SMALL:
            part += _SMALL[word]
        elif SCALES[word] >= 1_000:
            total, part = total + (part or 1) * SCALES[word], 0
        else:
            part = (part or 1) * SCALES[word]
    return total + part
