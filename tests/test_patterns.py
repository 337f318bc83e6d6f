"""Every regular expression of the product, over long texts made of its own parts: the time it takes grows with the
length of a text, not with its square.
"""

import ast
import importlib
import math
import re
import time
import warnings
from collections import defaultdict
from collections.abc import Iterable
from functools import cache
from typing import Any

import pytest

from tests.seeds import chance
from tests.source import MODULES, name, tree

with warnings.catch_warnings(action="ignore"):
    import re._constants as codes
    import re._parser as parser

METHODS = {"search", "match", "fullmatch", "sub", "subn", "split", "findall", "finditer"}
SIZES = (200, 1600, 12_800)
"""Lengths of texts, each eight times the one before."""
SECONDS, GROWTH = 0.02, 20
"""A text is too slow if it takes longer, and so many times as long as an eighth of it; a square takes 64 times."""
RUNS = 5
"""The runs that all have to be too slow, since a busy machine slows some down."""
MOST = 100
"""The number of texts that are tried for each pattern."""
OURS = ("training/synth/",)
"""Modules whose patterns read the project's own templates alone."""

_REPEATS = (codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT)
_CANDIDATES = "a1 \n-.$\\(<_A\x01"


@cache
def methods_by_name():
    """The methods by which a pattern is used: under its name if it is public, and else under module and name. A
    module has those of the variables that hold one pattern after the other."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for path in MODULES:
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.Attribute) and node.attr in METHODS and isinstance(node.value, ast.Name):
                one = node.value.id
                found[f"{name(path)}: {one}" if one.startswith("_") else one].add(node.attr)
                # Texts are split as well.
                if one.islower() and one != "re" and node.attr != "split":
                    found[name(path)].add(node.attr)
    return found


def patterns():
    """Where a pattern stands, the pattern, and the methods by which it is used."""
    for path in MODULES:
        place = name(path)
        if "import re\n" not in path.read_text(encoding="utf-8") or place.startswith(OURS):
            continue
        module = importlib.import_module(f"stepsight.{place.removesuffix('.py').replace('/', '.')}")
        for one in dict.fromkeys(names_of(tree(path))):
            used = methods_by_name()
            for pattern in held(getattr(module, one)):
                at = f"{place}: {one}"
                yield at, pattern, used[at] or used[one] or used[place] or {"search"}
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in METHODS:
                first = node.args[0] if node.args else None
                if ast.unparse(node.func.value) == "re" and isinstance(first, ast.Constant):
                    yield f"{place}: line {node.lineno}", re.compile(first.value), {node.func.attr}


def names_of(module):
    """Names that a module defines."""
    for node in module.body:
        if isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            yield from (one.id for one in targets if isinstance(one, ast.Name))


def held(value, depth=3):
    """Patterns in a value of a module."""
    if isinstance(value, re.Pattern):
        yield value
    elif depth and isinstance(value, dict | list | tuple | set | frozenset):
        for one in value.values() if isinstance(value, dict) else value:
            yield from held(one, depth - 1)


def parts(code, value):
    """The patterns within a part of a pattern."""
    if code in _REPEATS:
        return [value[2]]
    if code is codes.SUBPATTERN:
        return [value[3]]
    if code is codes.BRANCH:
        return list(value[1])
    if code is codes.ATOMIC_GROUP:
        return [value]
    return [value[1]] if code in (codes.ASSERT, codes.ASSERT_NOT) else []


def sample(code, value):
    """A text that a part of a pattern matches."""
    if code is codes.LITERAL:
        return chr(value)
    if code in (codes.IN, codes.ANY, codes.NOT_LITERAL):
        return member(code, value)
    if code in _REPEATS:
        return "".join(sample(*one) for one in value[2]) * max(1, value[0])
    inner = parts(code, value)
    return (
        "".join(sample(*one) for one in inner[0]) if inner and code not in (codes.ASSERT, codes.ASSERT_NOT) else ""
    )


def member(code, value):
    """A character of a class."""
    if code is codes.ANY:
        return "a"
    if code is codes.NOT_LITERAL:
        return "a" if value != ord("a") else "b"
    negated = value[0][0] is codes.NEGATE
    items = value[1:] if negated else value
    listed = [
        chr(what if kind is codes.LITERAL else what[0])
        for kind, what in value
        if kind in (codes.LITERAL, codes.RANGE)
    ]
    if listed and not negated:
        return listed[0]
    return next((one for one in _CANDIDATES if any(_has(item, one) for item in items) != negated), "a")


def _has(item, sign):
    kind, what = item
    if kind is codes.LITERAL:
        return bool(what == ord(sign))
    if kind is codes.RANGE:
        return bool(what[0] <= ord(sign) <= what[1])
    word = str(what).removeprefix("CATEGORY_")
    test = {"SPACE": sign.isspace(), "DIGIT": sign.isdigit(), "WORD": sign.isalnum() or sign == "_"}
    return not test[word.removeprefix("NOT_")] if word.startswith("NOT_") else test[word]


def pieces(pattern):
    """Texts that parts of a pattern match: what is repeated, each alternative, and each beginning of the whole."""
    found: dict[str, None] = {}

    def walk(tree: Iterable[Any], before: str) -> None:
        for code, value in tree:
            for one in parts(code, value):
                found["".join(sample(*inner) for inner in one)] = None
                walk(one, before)
            before += sample(code, value)
            found[before] = None

    walk(parser.parse(pattern.pattern, pattern.flags & ~re.DEBUG), "")
    return [one for one in found if one]


def beginnings(pattern):
    """What stands once in a text, and what is repeated behind it."""
    found = pieces(pattern)
    chance(pattern.pattern).shuffle(found)
    short = [" ", *(one for one in found if len(one) < 4)]
    tried = [("", one) for one in [*found, " ", "\n", "1", "a", "("]]
    tried += [(one, other) for one in found[:8] for other in short[:6]]
    tried += [("", one + other) for one in short[:4] for other in short[:4]]
    return list(dict.fromkeys(tried))[:MOST]


def seconds(pattern, method, text):
    """The processor time of a method."""
    given: Any = text.encode("latin-1", "replace") if isinstance(pattern.pattern, bytes) else text
    began = time.thread_time()
    if method in ("match", "fullmatch"):
        getattr(pattern, method)(given)
    else:
        for _ in pattern.finditer(given):
            pass
    return time.thread_time() - began


def slow_text(pattern, methods):
    """A text for which a pattern takes too long, "" if there is none."""
    for method in {one if one in ("match", "fullmatch") else "search" for one in methods}:
        for first, piece in beginnings(pattern):
            before = 0.0
            for size in SIZES:
                text, took = first + piece * (size // len(piece)) + "\x01", math.inf
                for _ in range(RUNS):
                    took = min(took, seconds(pattern, method, text))
                    if took <= max(SECONDS, GROWTH * before):
                        break
                else:
                    return f"{first!r}, then {piece!r} {size // len(piece):,} times: {took:.2f} s by {method}"
                before = took
    return ""


@pytest.mark.nightly
def test_no_pattern_takes_more_than_linear_time():
    found = list(patterns())
    assert len(found) > 250
    slow = {f"{place} {pattern.pattern[:80]!r}": slow_text(pattern, methods) for place, pattern, methods in found}
    assert [f"{place}: {text}" for place, text in slow.items() if text] == []
