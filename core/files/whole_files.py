"""Whole files: written atomically, so that either the complete file or none is left, read within bounds, and
compared by their digests; and untrusted JSON, parsed with limits on size, depth and encoding.

The limits are needed because Python's parser stops only when memory or stack is exhausted. Code that walks the
values later, such as `repr` or a validator, fails even sooner.
"""

import hashlib
import json
import os
import re
import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from glob import escape
from pathlib import Path
from typing import Any

from stepsight.core.errors import UserError

_CHUNK = 1 << 20
_SHA256_DIGITS = 64
# The number of characters of a file's name in that of its temporary file; a file's name has at most 255 bytes.
_LONGEST = 50
_STALE_SECONDS = 24 * 3600


@contextmanager
def atomic_file(
    path: str | Path, *, replace: bool = True, private: bool = False, hint: str = "Check the path."
) -> Iterator[Path]:
    """Yield the path of an empty temporary file, which is renamed to `path` if the block ends without an error.

    The temporary file is in the same folder as `path`, under a random name, so that nobody else can have put a link
    there. Files left behind by killed processes are deleted after a day. The file is flushed to disk before it is
    renamed, so that a power cut leaves either the complete file or nothing. If `private` is True, only its owner
    can read it. Raises `UserError` with the given `hint` if the file cannot be written, if `path` is not a regular
    file, or if it already exists and `replace` is False.
    """
    shown, path = path, Path(os.path.realpath(path))
    _check(path, shown, replace)
    partial = path.with_name(f"{path.name[:_LONGEST]}.{secrets.token_hex(8)}.partial")
    try:
        _sweep(path)
        os.close(os.open(partial, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600 if private else 0o666))
        yield partial
        _sync(partial)
        _check(path, shown, replace)
        os.replace(partial, path)
        _sync(path.parent)
    except OSError as error:
        raise UserError(f"{shown}: cannot be written ({error.strerror}).", hint) from None
    finally:
        with suppress(OSError):
            partial.unlink()


def write_text(path: Path, text: str) -> None:
    """Write a text file in UTF-8, creating missing parent folders. Raises `UserError` if it cannot be written."""
    hint = "Choose another --output."
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"{path}: cannot be written ({error.strerror}).", hint) from None
    with atomic_file(path, hint=hint) as partial:
        partial.write_text(text, encoding="utf-8", newline="")


def digest_of(path: Path, expected: str, tick: Callable[[], None] = lambda: None) -> str:
    """Return the digest of a file, using the same algorithm as the digest `expected`.

    If `expected` has 64 hexadecimal digits, this is SHA-256. Otherwise it is Git's hash of the content: the SHA-1
    of "blob", the size and the content. `tick` is called after each chunk is read.
    """
    if len(expected) == _SHA256_DIGITS:
        digest = hashlib.sha256()
    else:
        digest = hashlib.sha1(f"blob {path.stat().st_size}\0".encode(), usedforsecurity=False)
    with open(path, "rb") as content:
        while chunk := content.read(_CHUNK):
            digest.update(chunk)
            tick()
    return digest.hexdigest()


def _sweep(path: Path) -> None:
    """Delete the temporary files of `path` that nobody has written to for a day."""
    for left in path.parent.glob(f"{escape(path.name[:_LONGEST])}.{'[0-9a-f]' * 16}.partial"):
        with suppress(OSError):
            if left.stat().st_mtime < time.time() - _STALE_SECONDS:
                left.unlink()


def _check(path: Path, shown: str | Path, replace: bool) -> None:
    if path.exists() and not path.is_file():
        raise UserError(f"{shown}: not a file.", "Name a file.")
    if path.exists() and not replace:
        raise UserError(f"{shown}: already exists.", "Name another file, or replace it with --force.")


def _sync(path: Path) -> None:
    """Flush a file, or the directory entries of a folder, to disk. Does nothing on Windows, which cannot open them
    for this."""
    if os.name == "nt":
        return
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


DEEPEST = 100
"""The deepest nesting of lists and objects; real files have a few levels."""

LARGEST = 1 << 28
"""The largest file, in bytes, that is read as one value."""

MOST_VALUES = 10_000_000
"""The largest number of values in one JSON text, each of which takes many times its length in memory."""


def _check_distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) < len(pairs):
        for key, value in pairs:
            if value != values[key]:
                raise ValueError(f"the key {key!r:.60} occurs twice, with different values")
    return values


STRICT = json.JSONDecoder(object_pairs_hook=_check_distinct)
"""Decodes JSON written by people. It rejects duplicate keys, because readers differ in which value counts. It
accepts unpaired surrogates; `core.trace.check_text` names the text that contains one."""
_ANY = json.JSONDecoder()
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


def parse_json(text: str | bytes, *, decoder: json.JSONDecoder = _ANY) -> Any:
    """Parse a JSON text. Bytes are decoded as UTF-8. Raises `ValueError` with a reason if the text is invalid,
    nested more than `DEEPEST` levels deep, may hold more than `MOST_VALUES` values, or holds half of a surrogate
    pair, which no file, page, database or tokenizer takes. With `STRICT` as `decoder`, see there."""
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
        raise _too_deep_error() from None
    # Counting brackets is quicker, and most texts have fewer brackets than this in total.
    if brackets > DEEPEST:
        check_depth(value)
    if decoder is _ANY and _SURROGATE.search(text):
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise ValueError("a text contains an unpaired surrogate") from None
    return value


def check_depth(value: Any) -> None:
    """Raise `ValueError` if lists and objects are nested more than `DEEPEST` levels deep."""
    level, depth = [value] if isinstance(value, dict | list) else [], 0
    while level:
        depth += 1
        if depth > DEEPEST:
            raise _too_deep_error()
        inner = (part for outer in level for part in (outer.values() if isinstance(outer, dict) else outer))
        level = [part for part in inner if isinstance(part, dict | list)]


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
        value = parse_json(read_bytes(path, largest))
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


def _too_deep_error() -> ValueError:
    return ValueError(f"lists and objects are nested over {DEEPEST} levels deep")
