"""A file that appears whole under its name, or not at all."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from stepsight.core.errors import UserError


@contextmanager
def whole_file(path: str | Path, *, force: bool = False, private: bool = False) -> Iterator[Path]:
    """The path of an empty file to be written, which takes the name `path` when the block ends well.

    By then it is on the disk: a power cut leaves all of it or nothing. With `private` only its owner can read it.
    Raises `UserError` where it cannot be written, and where `path` is there already unless `force` is given; what
    is no file is never replaced.
    """
    shown, path = path, Path(os.path.realpath(path))
    _check(path, shown, force)
    partial = path.with_name(f"{path.name}.partial")
    try:
        os.close(os.open(partial, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600 if private else 0o666))
        yield partial
        _sync(partial)
        _check(path, shown, force)
        os.replace(partial, path)
        _sync(path.parent)
    except OSError as error:
        raise UserError(f"{shown}: cannot be written ({error.strerror}).", "Check the path.") from None
    finally:
        with suppress(OSError):
            partial.unlink()


def _check(path: Path, shown: str | Path, force: bool) -> None:
    if path.exists() and not path.is_file():
        raise UserError(f"{shown}: not a file.", "Name a file.")
    if path.exists() and not force:
        raise UserError(f"{shown}: there already.", "Name another file, or replace it with --force.")


def _sync(path: Path) -> None:
    """Have the disk hold what was written of a file, or the names in a folder."""
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)
