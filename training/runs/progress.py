"""What commands print on standard error while they run: progress, notes and questions."""

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from tqdm import tqdm

from stepsight.core.errors import UserError

# The largest number of lines without a bar.
_LINES = 50
# Seconds before progress is shown, since the work may be short.
_DELAY = 2.0

Watch = Callable[[str, int, int | None], None]
"""Called with what is counted, such as `solutions scored`, the number done, and the total if known."""


def unwatched(counted: str, done: int, total: int | None) -> None:
    """Ignore the reported progress. Pass this as the `Watch` of a run that should not show any."""


@contextmanager
def progress_bars() -> Iterator[Watch]:
    """Provide a `Watch` that shows a progress bar, and a new bar whenever the kind of item counted changes."""
    bar: RunProgress | None = None

    def watch(counted: str, done: int, total: int | None) -> None:
        nonlocal bar
        if bar is None or bar.counted != counted:
            if bar is not None:
                bar.close()
            bar = RunProgress(counted, total, done - 1, _DELAY)
        bar.log(done)

    try:
        yield watch
    finally:
        if bar is not None:
            bar.close()


class RunProgress:
    """The progress of a run through `total` items called `counted`, of which `start` were done before it was
    resumed.

    Nothing is shown for the first `delay` seconds. Outside a terminal, nothing is printed if `total` is None.
    """

    def __init__(self, counted: str, total: int | None, start: int = 0, delay: float = 0.0) -> None:
        self.counted = counted
        self._total = total
        self._logged = start
        self._shown_from = time.monotonic() + delay
        self._bar: Any = None
        if sys.stderr.isatty():
            self._bar = tqdm(total=total, initial=start, unit=f" {counted}", delay=delay, dynamic_ncols=True)

    def move(self, done: int) -> None:
        if self._bar is not None:
            self._bar.update(done - self._bar.n)

    def log(self, done: int, **figures: float) -> None:
        """Move the bar and show `figures` such as the loss. Outside a terminal, print occasional lines instead."""
        if self._bar is not None:
            self._bar.set_postfix({name: f"{value:.4f}" for name, value in figures.items()}, refresh=False)
            self.move(done)
        elif self._total and (done - self._logged >= self._total / _LINES or done == self._total):
            self._logged = done
            if time.monotonic() >= self._shown_from:
                parts = [f"{done:,} of {self._total:,} {self.counted}"]
                parts += [f"{name} {value:.4f}" for name, value in figures.items()]
                print(", ".join(parts), file=sys.stderr)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()


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
        raise UserError(plan, f"Add --yes to continue{f', or {instead}' if instead else ''}.")
    print(plan, "" if yes else "Continue? [y/N] ", end="\n" if yes else "", file=sys.stderr, flush=True)
    if not yes and sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise UserError("cancelled; nothing was done.")
