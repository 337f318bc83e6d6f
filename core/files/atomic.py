"""Atomic file writes, which leave either the complete file or none, and digests of files."""

import hashlib
import os
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from glob import escape
from pathlib import Path

from stepsight.core.errors import UserError

_CHUNK = 1 << 20
_SHA256_DIGITS = 64
# Of the name of a file, in that of its temporary one: a file's name has at most 255 bytes.
_LONGEST = 50
_STALE_SECONDS = 24 * 3600


@contextmanager
def atomic_file(
    path: str | Path, *, replace: bool = True, private: bool = False, hint: str = "Check the path."
) -> Iterator[Path]:
    """Yield the path of an empty temporary file, which is renamed to `path` if the block ends without an error.

    The temporary file is in the same folder as `path`, under a random name, so that nobody else can have put a link
    there; those that killed processes left are deleted after a day. It is flushed to disk before it is renamed, so
    that a power cut leaves either the complete file or nothing. If `private` is True, only its owner can read it.
    Raises `UserError` with the given `hint` if the file cannot be written, if `path` is not a regular file, or if
    it already exists and `replace` is False.
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


def digest_of(path: Path, like: str, tick: Callable[[], None] = lambda: None) -> str:
    """Return the digest of a file, using the same algorithm as the digest `like`.

    If `like` has 64 hexadecimal digits, this is SHA-256. Otherwise it is Git's hash of the content: the SHA-1 of
    "blob", the size and the content. `tick` is called after each chunk is read.
    """
    if len(like) == _SHA256_DIGITS:
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
