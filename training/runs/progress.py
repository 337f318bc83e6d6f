"""How far a run is, on standard error: a bar in a terminal, a line now and then elsewhere."""

import sys
from typing import Any

from tqdm import tqdm
from transformers import TrainerCallback

# At most so many where there is no bar, for they stay.
_LINES = 50


class Progress(TrainerCallback):
    """Tells the loss at every log, and in a terminal the rate; the main process alone speaks."""

    def __init__(self) -> None:
        self._bar: Any = None
        self._told = 0

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self._close()
        if state.is_world_process_zero and sys.stderr.isatty():
            self._bar = tqdm(total=state.max_steps, initial=state.global_step, unit=" steps", dynamic_ncols=True)

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        # A checkpoint starts a new mean, so that a run which goes on from it logs what an uninterrupted one does;
        # and without the last steps' mean the history would end before the run.
        if control.should_save or state.global_step >= state.max_steps:
            control.should_log = True
        if self._bar is not None:
            self._bar.update(state.global_step - self._bar.n)

    def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, Any] | None = None, **_: Any) -> None:
        if not state.is_world_process_zero or not logs or "loss" not in logs:
            return
        if self._bar is not None:
            self._bar.set_postfix(loss=f"{logs['loss']:.4f}", refresh=False)
        elif state.global_step - self._told >= state.max_steps / _LINES or state.global_step == state.max_steps:
            self._told = state.global_step
            print(f"step {state.global_step} of {state.max_steps}, loss {logs['loss']:.4f}", file=sys.stderr)

    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self._close()

    def _close(self) -> None:
        if self._bar is not None:
            self._bar.close()
        self._bar = None
