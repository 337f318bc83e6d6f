"""JSON as strangers write it: bounded in size, depth and encoding here, for every reader; files with one object.

Python reads a file to the end of the memory, and brackets to the end of its stack; what goes through the values
later, such as `repr` or a validation, ends sooner still.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from stepsight.core.errors import UserError
from stepsight.core.files.atomic import write_text

DEEPEST = 100
"""Levels of lists and objects within each other. What people and programs write has a few."""

LARGEST = 1 << 28
"""Bytes of a file that is read as one value."""


def parse_json(text: str | bytes) -> Any:
    """The value of a JSON text, in UTF-8 where it is bytes.

    Raises `ValueError`, whose text says why, where it is none or nested over `DEEPEST` levels deep.
    """
    if isinstance(text, bytes):
        try:
            text = text.decode("utf-8")
        except UnicodeDecodeError as error:
            raise ValueError(f"byte {error.start + 1} is not UTF-8") from None
    try:
        value = json.loads(text)
    except RecursionError:
        raise _too_deep() from None
    # Counting is quicker than looking, and most texts have fewer brackets in all.
    if text.count("[") + text.count("{") > DEEPEST:
        check_depth(value)
    return value


def check_depth(value: Any) -> None:
    """Raises `ValueError` if lists and objects are nested over `DEEPEST` levels deep."""
    level, depth = [value] if isinstance(value, dict | list) else [], 0
    while level:
        depth += 1
        if depth > DEEPEST:
            raise _too_deep()
        inner = (part for one in level for part in (one.values() if isinstance(one, dict) else one))
        level = [part for part in inner if isinstance(part, dict | list)]


def check_unicode(value: Any, text: bytes) -> None:
    """Raises `ValueError` if a text of the value, which was read from `text`, holds half of a surrogate pair: JSON
    can spell it, and no file, database or tokenizer takes it."""
    if b"\\ud" not in text.lower():
        return
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise ValueError("a text holds half of a surrogate pair") from None


def read_bytes(path: str | Path, largest: int = LARGEST) -> bytes:
    """The content of a file that is read whole. Raises `OSError`, and `ValueError` if it has over `largest` bytes,
    of which no more are read."""
    with open(path, "rb") as file:
        content = file.read(largest + 1)
    if len(content) > largest:
        raise ValueError(f"over {largest:,} bytes")
    return content


def read_json(path: Path) -> dict[str, Any]:
    """The JSON object in a file. Raises `UserError` if there is none."""
    try:
        content = read_bytes(path)
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
    """Write a JSON object, atomically. Raises `UserError` if it cannot be written."""
    write_text(path, json.dumps(values, indent=1) + "\n")


def _too_deep() -> ValueError:
    return ValueError(f"lists and objects are nested over {DEEPEST} levels deep")
