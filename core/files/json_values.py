"""Parsing untrusted JSON with limits on size, depth and encoding, and files that contain one JSON object.

The limits are needed because Python's parser stops only when memory or stack is exhausted. Code that walks the
values later, such as `repr` or a validator, fails even sooner.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from stepsight.core.errors import UserError
from stepsight.core.files.atomic import write_text

DEEPEST = 100
"""The deepest nesting of lists and objects; real files have a few levels."""

LARGEST = 1 << 28
"""The largest file, in bytes, that is read as one value."""

MOST_VALUES = 10_000_000
"""The most values in one JSON text, each of which takes many times its length in memory."""


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) < len(pairs):
        for key, value in pairs:
            if value != values[key]:
                raise ValueError(f"the key {key!r:.60} is there twice, with different values")
    return values


STRICT = json.JSONDecoder(object_pairs_hook=_distinct)
"""Decodes JSON written by people. It refuses two values of a key, because readers differ in which one counts."""
_ANY = json.JSONDecoder()


def parse_json(text: str | bytes, *, decoder: json.JSONDecoder = _ANY) -> Any:
    """Parse a JSON text. Bytes are decoded as UTF-8. Raises `ValueError` with a reason if the text is invalid,
    nested more than `DEEPEST` levels deep, or may hold more than `MOST_VALUES` values. With `STRICT` as its
    `decoder`, it also raises `ValueError` if a key has two values in one object."""
    if isinstance(text, bytes):
        try:
            text = text.decode("utf-8")
        except UnicodeDecodeError as error:
            raise ValueError(f"byte {error.start + 1} is not UTF-8") from None
    brackets = text.count("[") + text.count("{")
    if brackets + text.count(",") > MOST_VALUES:
        raise ValueError(f"over {MOST_VALUES:,} values")
    try:
        value = decoder.decode(text)
    except RecursionError:
        raise _too_deep() from None
    # Counting brackets is quicker, and most texts have fewer in all.
    if brackets > DEEPEST:
        check_depth(value)
    return value


def check_depth(value: Any) -> None:
    """Raise `ValueError` if lists and objects are nested more than `DEEPEST` levels deep."""
    level, depth = [value] if isinstance(value, dict | list) else [], 0
    while level:
        depth += 1
        if depth > DEEPEST:
            raise _too_deep()
        inner = (part for one in level for part in (one.values() if isinstance(one, dict) else one))
        level = [part for part in inner if isinstance(part, dict | list)]


def check_unicode(value: Any, text: bytes) -> None:
    """Raise `ValueError` if a string in `value` contains a lone surrogate. `text` is the JSON it was parsed from.
    JSON can express a lone surrogate, but no file, database or tokenizer accepts it."""
    if b"\\ud" not in text.lower():
        return
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise ValueError("a text holds half of a surrogate pair") from None


def read_bytes(path: str | Path, largest: int = LARGEST) -> bytes:
    """Return the content of a whole file.

    Raises `OSError` if it cannot be read, and `ValueError` if it has more than `largest` bytes, without reading the
    rest.
    """
    with open(path, "rb") as file:
        content = file.read(largest + 1)
    if len(content) > largest:
        raise ValueError(f"over {largest:,} bytes")
    return content


def read_json(path: Path, largest: int = LARGEST) -> dict[str, Any]:
    """Read a file that contains one JSON object. Raises `UserError` if it cannot be read, has more than `largest`
    bytes or contains anything else."""
    try:
        content = read_bytes(path, largest)
        value = parse_json(content)
        check_unicode(value, content)
    except FileNotFoundError:
        raise UserError(f"{path.parent}: {path.name} is missing.", "Is this the right folder?") from None
    except (OSError, ValueError) as error:
        raise UserError(f"{path}: cannot be read as JSON ({error}).") from None
    if not isinstance(value, dict):
        raise UserError(f"{path}: {type(value).__name__} found, expected an object.")
    return value


def write_json(path: Path, values: Mapping[str, Any]) -> None:
    """Write a JSON object atomically. Raises `UserError` if it cannot be written."""
    write_text(path, json.dumps(values, indent=1) + "\n")


def _too_deep() -> ValueError:
    return ValueError(f"lists and objects are nested over {DEEPEST} levels deep")
