"""Options that several commands share."""

import argparse
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import IO, TypeVar

from tqdm import tqdm

from core.errors import UserError

Item = TypeVar("Item")


def add_db(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--db",
        metavar="URL",
        help="the store: a path, sqlite:///PATH or postgresql://… (default: STEPSIGHT_DB, else a file of yours)",
    )


def progress(items: Iterable[Item], total: int | None, unit: str) -> Iterator[Item]:
    """Go through `items` under a bar on stderr that appears after two seconds, and only in a terminal."""
    yield from tqdm(items, total=total, unit=f" {unit}", delay=2, disable=not sys.stderr.isatty(), file=sys.stderr)


@contextmanager
def open_output(path: str) -> Iterator[IO[str]]:
    """Standard output for `-`, or a file that appears whole at the end or not at all.

    What is no file, such as /dev/null, is written to and not replaced. Raises `UserError` where it cannot be.
    """
    if path == "-":
        yield sys.stdout
        return
    path = os.path.realpath(path) if os.path.islink(path) else path
    replaces = os.path.isfile(path) or not os.path.exists(path)
    partial = f"{path}.partial" if replaces else path
    try:
        with open(partial, "w", encoding="utf-8") as file:
            yield file
        if replaces:
            os.replace(partial, path)
    except OSError as error:
        raise UserError(f"{path}: cannot be written ({error.strerror}).", "Check the path.") from None
    finally:
        if replaces:
            with suppress(OSError):
                os.unlink(partial)
