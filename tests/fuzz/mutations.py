"""Seeded damage to the bytes of files, and to the values that JSON and YAML hold; and other spellings of a text."""

import json
import random
import unicodedata
from collections.abc import Callable
from typing import Any

_STRANGE: tuple[Any, ...] = (
    None, True, False, 0, -1, 2**63, 10**400, 1e308, float("nan"), float("inf"), "", " ", "\x00", "\ud800",
    "x" * 3000, "../../etc", "'" * 200, [], [[]], {}, {"": 0}, [None] * 50, "1e5", "−1", "neg", 0.5,
)  # fmt: skip

_INSERTED = (
    b"\x00", b"\xff\xfe", b"\xef\xbb\xbf", b"\xed\xa0\x80", b"{", b"]", b'"', b"\n", b"\r", b"&a *a", b"9" * 5000,
)  # fmt: skip


# Signs that look alike, any of which a keyboard, an editor or a page may put in place of the others.
_ALIKE = ("'’ʼ", '"“”', "-−–", " \xa0\u2009\u202f", "*×·", ":∶")


def retyped(text, rng):
    """The text as another program hands it on: a reader sees no difference."""
    for signs in _ALIKE:
        if rng.random() < 0.3:
            text = "".join(rng.choice(signs) if sign in signs else sign for sign in text)
    if rng.random() < 0.4:
        text = unicodedata.normalize(rng.choice(["NFD", "NFC"]), text)
    if rng.random() < 0.2:
        place = rng.randrange(len(text) + 1)
        text = text[:place] + rng.choice("\u200b\xad\ufeff") + text[place:]
    return text


def damaged(data, rng):
    """One to three faults in the bytes: flipped, cut, doubled, moved, nested, or of another encoding."""
    for _ in range(rng.randint(1, 3)):
        data = rng.choice(_OF_BYTES)(data, rng)
    return data


def changed(value, rng):
    """The value with one to four of its parts replaced, left out, doubled or renamed."""
    for _ in range(rng.randint(1, 4)):
        value = _changed(value, rng)
    return value


def changed_lines(data, rng):
    """JSON Lines with one of the rows changed."""
    lines = data.splitlines() or [b"{}"]
    place = rng.randrange(len(lines))
    try:
        lines[place] = _json(changed(json.loads(lines[place]), rng))
    except ValueError:
        return damaged(data, rng)
    return b"\n".join(lines) + b"\n"


def changed_json(data, rng):
    """A JSON file with some of its values changed."""
    return _json(changed(json.loads(data), rng))


def _json(value):
    return json.dumps(value).encode("utf-8", "surrogatepass")


def _changed(value, rng):
    if isinstance(value, dict) and value and rng.random() < 0.85:
        key = rng.choice(list(value))
        kept = dict(value)
        how = rng.random()
        if how < 0.15:
            del kept[key]
        elif how < 0.25:
            kept[rng.choice(["", "other", str(key) * 2, "x" * 2000])] = kept.pop(key)
        else:
            kept[key] = _changed(kept[key], rng)
        return kept
    if isinstance(value, list) and value and rng.random() < 0.85:
        place = rng.randrange(len(value))
        kept_items = list(value)
        how = rng.random()
        if how < 0.15:
            del kept_items[place]
        elif how < 0.3:
            kept_items.insert(place, kept_items[place])
        else:
            kept_items[place] = _changed(kept_items[place], rng)
        return kept_items
    return _nested(value, rng) if rng.random() < 0.05 else rng.choice(_STRANGE)


def _nested(value, rng):
    for _ in range(rng.choice([10, 200])):
        value = [value] if rng.random() < 0.5 else {"a": value}
    return value


def _flip(data, rng):
    if not data:
        return b"\xff"
    place = rng.randrange(len(data))
    return data[:place] + bytes([rng.randrange(256)]) + data[place + 1 :]


def _cut(data, rng):
    return data[: rng.randrange(len(data) + 1)]


def _drop(data, rng):
    start = rng.randrange(len(data) + 1)
    return data[:start] + data[start + rng.randrange(1, 40) :]


def _double(data, rng):
    start = rng.randrange(len(data) + 1)
    part = data[start : start + rng.randrange(1, 200)]
    return data[:start] + part * rng.randint(2, 4) + data[start:]


def _insert(data, rng):
    place = rng.randrange(len(data) + 1)
    return data[:place] + rng.choice(_INSERTED) + data[place:]


def _deep(data, rng):
    depth, brackets = rng.choice([50, 100_000]), rng.choice([(b"[", b"]"), (b'{"a":', b"}")])
    return data[: rng.randrange(len(data) + 1)] + brackets[0] * depth + b"1" + brackets[1] * depth


def _utf16(data, rng):
    return data.decode("utf-8", "replace").encode("utf-16")


_OF_BYTES: tuple[Callable[[bytes, random.Random], bytes], ...] = (
    _flip, _flip, _cut, _drop, _double, _insert, _insert, _deep, _utf16,
)  # fmt: skip
