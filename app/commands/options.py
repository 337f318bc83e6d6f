"""Options that several commands share."""

import argparse
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from math import inf
from pathlib import Path
from typing import IO, TypeVar

from stepsight.core.errors import UserError
from stepsight.core.files.atomic import atomic_file

Item = TypeVar("Item")


def add_db(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--db",
        metavar="URL",
        help="the store: a path, sqlite:///PATH or postgresql://… (default: STEPSIGHT_DB, else a file of yours)",
    )


def fraction(text: str) -> float:
    """A number from 0 to 1, as the `type` of an option."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:
        raise argparse.ArgumentTypeError(f"{text!r} found, expected a number from 0 to 1")
    return value


def positive(kind: Callable[[str], int] | Callable[[str], float]) -> Callable[[str], float]:
    """The `type` of an option that is a number above 0: a whole one where `kind` is `int`."""

    def read(text: str) -> float:
        try:
            value = kind(text)
        except ValueError:
            value = 0
        if not 0 < value < inf:
            whole = "whole number" if kind is int else "number"
            raise argparse.ArgumentTypeError(f"{text!r:.40} found, expected a {whole} above 0")
        return value

    return read


def progress(items: Iterable[Item], total: int | None, unit: str) -> Iterator[Item]:
    """Go through `items` under a bar on stderr that appears after two seconds, and only in a terminal."""
    # Half of the commands that share these options count nothing.
    from tqdm import tqdm

    yield from tqdm(items, total=total, unit=f" {unit}", delay=2, disable=not sys.stderr.isatty(), file=sys.stderr)


@contextmanager
def open_output(path: str) -> Iterator[IO[str]]:
    """Standard output for `-`, or a file that appears whole at the end or not at all.

    What is no file, such as /dev/null, is written to and not replaced. Raises `UserError` where it cannot be.
    """
    if path == "-":
        yield sys.stdout
        return
    replaced = os.path.isfile(path) or not os.path.exists(path)
    target = atomic_file(path) if replaced else nullcontext(Path(path))
    try:
        with target as place, open(place, "w", encoding="utf-8") as file:
            yield file
    except OSError as error:
        raise UserError(f"{path}: cannot be written ({error.strerror}).", "Check the path.") from None
