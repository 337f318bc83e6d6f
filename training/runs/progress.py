"""The progress of a long run on standard error: a bar in a terminal, or an occasional line elsewhere."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tqdm import tqdm
from transformers import TrainerCallback

# The most lines without a bar.
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


class TrainingProgress(TrainerCallback):
    """A trainer callback that shows the optimiser steps and their loss, and logs the seconds spent on the run, with
    those before it was resumed. Only the first process shows them."""

    def __init__(self) -> None:
        self._bar: RunProgress | None = None
        self._begun = 0.0

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self._close()
        self._begun = time.monotonic() - sum(row.get("seconds", 0.0) for row in state.log_history[-1:])
        if state.is_world_process_zero:
            self._bar = RunProgress("steps", state.max_steps, state.global_step)

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        # A checkpoint starts a new mean, so that a run which goes on from it logs what an uninterrupted one does;
        # and without the last steps' mean the history would end before the run.
        if control.should_save or state.global_step >= state.max_steps:
            control.should_log = True
        if self._bar is not None:
            self._bar.move(state.global_step)

    def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, Any] | None = None, **_: Any) -> None:
        if logs and "loss" in logs:
            state.log_history[-1]["seconds"] = round(time.monotonic() - self._begun, 2)
            if self._bar is not None:
                self._bar.log(state.global_step, loss=logs["loss"])

    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self._close()

    def _close(self) -> None:
        if self._bar is not None:
            self._bar.close()
        self._bar = None
