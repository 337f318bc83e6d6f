"""Equations stated in words: the factors of a number, units within a unit, days of a month, spans of time."""

import math
import re
from collections.abc import Callable, Iterator

from stepsight.core.equations.checks import Check, Method
from stepsight.core.equations.parsing.units import conversion

_FACTOR = r"\d{1,9}(?:\s*\^\s*\{?\d{1,2}\}?)?"
_TIMES = r"\s*(?:\\cdot|\\times|\*)\s*"
# The groups are the number and the product.
_PRODUCT = rf"\$?({_FACTOR}(?:{_TIMES}{_FACTOR})+)(?!\d|\^|\.\d|{_TIMES}|\s*[+/-])"
_NUMBER = r"\$?(\d{2,9})\$?"
_PRIME = r"(?:prime\s+factori[sz]ation|prime\s+factors)"
_FACTORS = re.compile(
    rf"""\bfactor(?:i[sz])?(?:e|ed|ing)?\s+{_NUMBER}\s+(?:as|into)\s+(?:\w+\s+factors:?\s+)?{_PRODUCT}
      | \bfactor(?:i[sz])?(?:ing|e)\s+{_NUMBER},[^.\n]{{0,60}}\b{_PRIME}\s+(?:is|as|=)\s+{_PRODUCT}
      | \b{_PRIME}\s+of\s+{_NUMBER}\s+(?:is|as|=)\s+{_PRODUCT}
      | \bfor\s+{_NUMBER},\s+the\s+{_PRIME}\s+is\s+{_PRODUCT}""",
    re.VERBOSE | re.IGNORECASE,
)
_POWER = re.compile(r"(\d+)(?:\s*\^\s*\{?(\d+))?")
# Not behind "working day", and nothing that says which of them.
_WITHIN = re.compile(
    r"\bthere\s+are\s+(?P<stated>\d{1,4})\s+(?P<unit>[a-z]+)\s+in\s+(?:an?|one|1|each|every)\s+(?P<whole>[a-z]+)"
    r"(?=\s*(?:[.,;)]|$|\band\b|\bso\b))",
    re.IGNORECASE,
)
_MONTHS = {
    "january": (31,), "february": (28, 29), "march": (31,), "april": (30,), "may": (31,), "june": (30,),
    "july": (31,), "august": (31,), "september": (30,), "october": (31,), "november": (30,), "december": (31,),
}  # fmt: skip
_DAYS = re.compile(
    rf"\bthere\s+are\s+(?P<stated>\d\d)\s+days\s+in\s+(?:the\s+month\s+of\s+)?(?P<month>{'|'.join(_MONTHS)})\b",
    re.IGNORECASE,
)


def _time(name: str) -> str:
    return rf"(?P<{name}_hour>\d{{1,2}})(?::(?P<{name}_minute>\d\d))?\s*(?P<{name}_half>[ap])\.?m\b\.?"


# 3 hours (from 8 a.m. to 11 p.m.), and: from 10 p.m. to 6 a.m., which is 6 - 10 = -4 hours.
_SPANS = (
    re.compile(
        rf"(?P<stated>-?\d{{1,2}}(?:\.\d+)?)\s+hours?\s+\(from\s+{_time('first')}\s+(?:to|until|till)\s+{_time('last')}\)",
        re.IGNORECASE,
    ),
    re.compile(
        rf"{_time('first')}[^.\d]{{1,40}}{_time('last')},?\s[^.=\d]{{0,60}}\d+\s*-\s*\d+\s*=\s*"
        r"(?P<stated>-?\d{1,2})\s+hours?(?=\s*(?:[.,;)]|$))",
        re.IGNORECASE,
    ),
)
_INTERRUPTED = re.compile(r"\b(?:break|lunch|except|minus|rest|paus\w+|pause|without)\b", re.IGNORECASE)


def find_statements(text: str) -> Iterator[Check]:
    """Yield the checks of the equations that a text states in words, in any order."""
    lower = text.lower()
    for word, read in _KINDS:
        if word in lower:
            yield from read(text)


def _factors(text: str) -> Iterator[Check]:
    for match in _FACTORS.finditer(text):
        index = next(i for i, group in enumerate(match.groups(), 1) if group)
        number = int(match[index])
        factors = [(int(base), int(power or 1)) for base, power in _POWER.findall(match[index + 1])]
        if sum(power for _, power in factors) <= 64:
            holds = math.prod(base**power for base, power in factors) == number
            yield _check(match, index + 1, holds, _written(number))


def _written(number: int) -> str:
    """Format the prime factorisation of a number as a product of powers."""
    found: list[str] = []
    prime = 2
    while number > 1 and prime < 40_000:
        power = 0
        while number % prime == 0:
            number, power = number // prime, power + 1
        if power:
            found.append(f"{prime}^{power}" if power > 1 else str(prime))
        prime += 1
    return " · ".join([*found, *([str(number)] if number > 1 else [])])


def _units(text: str) -> Iterator[Check]:
    for match in _WITHIN.finditer(text):
        sizes, wholes = (dict(conversion(match[name].lower())) for name in ("unit", "whole"))
        # A week may be one of work or school.
        for system in sizes.keys() & wholes.keys() if match["whole"].lower() != "week" else ():
            proper = wholes[system] / sizes[system]
            if proper >= 1:
                yield _check(match, "stated", int(match["stated"]) == proper, f"{proper:g}")


def _days(text: str) -> Iterator[Check]:
    for match in _DAYS.finditer(text):
        days = _MONTHS[match["month"].lower()]
        yield _check(match, "stated", int(match["stated"]) in days, " or ".join(map(str, days)))


def _hours(text: str) -> Iterator[Check]:
    for span in () if _INTERRUPTED.search(text) else _SPANS:
        for match in span.finditer(text):
            proper = (_minutes(match, "last") - _minutes(match, "first")) % (24 * 60) / 60
            if proper:
                yield _check(match, "stated", float(match["stated"]) == proper, f"{proper:g}")


def _minutes(match: re.Match[str], name: str) -> int:
    """Return a time of day in minutes after midnight."""
    hour = int(match[f"{name}_hour"]) % 12 + (12 if match[f"{name}_half"].lower() == "p" else 0)
    return 60 * hour + int(match[f"{name}_minute"] or 0)


def _check(match: re.Match[str], stated: str | int, holds: bool, right: str) -> Check:
    if holds:
        return Check(match.start(), match.end(), True, Method.STATEMENT)
    return Check(match.start(), match.end(), False, Method.STATEMENT, *match.span(stated), right)


# Each with a word without which there is nothing to read.
_KINDS: tuple[tuple[str, Callable[[str], Iterator[Check]]], ...] = (
    ("factor", _factors),
    ("there are", _units),
    ("days in", _days),
    ("hour", _hours),
)
