"""What commands print on standard error while they run: progress, notes and questions."""

import sys
from collections.abc import Iterable, Iterator
from typing import TypeVar

from tqdm import tqdm

from stepsight.core.errors import UserError

Item = TypeVar("Item")


def progress(items: Iterable[Item], total: int | None, unit: str) -> Iterator[Item]:
    """Iterate over `items` with a progress bar on stderr. It appears after two seconds, and only in a terminal."""
    yield from tqdm(items, total=total, unit=f" {unit}", delay=2, disable=not sys.stderr.isatty(), file=sys.stderr)


def print_note(note: str) -> None:
    """Print a note on stderr, unless it is empty."""
    if note:
        print(note, file=sys.stderr)


def print_left_out(trace: object, error: UserError) -> None:
    """Print why a trace is left out, for example because it exceeds the evaluator's context."""
    print(f"left out: {error.message}", file=sys.stderr)


def confirm(plan: str, *, yes: bool, instead: str = "", alone: bool = True) -> None:
    """Print what is about to happen and, unless `yes` is True, ask whether to continue.

    Raises `UserError` if the user declines. Also raises it if nobody can be asked, because there is no terminal or
    because several processes were launched (`alone` is False); it then suggests to do something else `instead`.
    """
    if not yes and not (alone and sys.stdin.isatty() and sys.stderr.isatty()):
        raise UserError(plan, f"Give --yes to go on{f', or {instead}' if instead else ''}.")
    print(plan, "" if yes else "Go on? [y/N] ", end="\n" if yes else "", file=sys.stderr, flush=True)
    if not yes and sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise UserError("cancelled, nothing was done.")
