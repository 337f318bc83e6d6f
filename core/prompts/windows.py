"""Windows of whole steps, in which an evaluator reads a solution that is too long to read at once.

The steps of a trace are divided into blocks of at most a third of a window, and each block is judged in a window of
its own. This holds the problem, whole steps before the block that fill at most another third (half a window if no
later step can change a verdict), the block, and as many whole steps after it as fit. A window is encoded as a trace
of its own, which has only its steps; their numbers, where a template writes
them, begin anew. The first block also fills the room that its window has for earlier steps.

Neither the blocks nor the starts of the windows depend on later steps. So a prefix is read like the beginning of a
longer trace, the online scores are the last row of each prefix, and down a column of the hindsight matrix a verdict
changes only because a later step comes into view, never because an earlier one drops out of it. Once the window of
a step is full, its verdict is final.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate

import numpy as np

from stepsight.core.errors import UserError
from stepsight.core.prompts.encoding import Encoded, Encoder, Window
from stepsight.core.trace import Trace

_SHARES = 3
"""A block, and the steps before it, have at most this part of a window."""


def encode_in_windows(encoder: Encoder, trace: Trace, size: int, *, one_pass: bool) -> Encoded:
    """Encode a trace in windows of at most `size` tokens, or as a whole if one window holds it.

    `one_pass` is True if later steps never change a verdict, so that a window ends with its block. Raises
    `UserError` if a step does not fit into a window with the problem.
    """
    cutter = _Cutter(encoder, trace, size, one_pass)
    windows = tuple(cutter.windows())
    if len(windows) == 1:
        return windows[0].encoded
    begins = np.cumsum([0, *(len(window.encoded.ids) for window in windows[:-1])])
    own = [slice(window.first - window.start, window.stop - window.start) for window in windows]
    ends = [begin + one.encoded.ends[part] for begin, one, part in zip(begins, windows, own, strict=True)]
    return Encoded(
        np.concatenate([window.encoded.ids for window in windows]),
        np.concatenate(ends),
        np.concatenate(ends),
        windows=windows,
    )


@dataclass(frozen=True)
class _Cutter:
    """Divides a trace into windows. Its steps are counted from 0, and lengths are in tokens."""

    encoder: Encoder
    trace: Trace
    size: int
    one_pass: bool

    def windows(self) -> Iterator[Window]:
        """Yield the windows in the order of their blocks."""
        share = self._room // _SHARES
        first, held = 0, 0
        for step, length in enumerate(self._lengths):
            if step > first and held + length > (share if first else share + self._before):
                yield self._window(first, step)
                first, held = step, 0
            held += length
        yield self._window(first, len(self._lengths))

    def _window(self, first: int, stop: int) -> Window:
        """Return the window of the block from step `first` to the one before `stop`."""
        lengths, start, end = self._lengths, first, stop
        before = min(self._before, self._room - sum(lengths[first:stop]))
        while start > 0 and lengths[start - 1] <= before:
            start -= 1
            before -= lengths[start]
        left = 0 if self.one_pass else self._room - sum(lengths[start:stop])
        while end < len(lengths) and lengths[end] <= left:
            left -= lengths[end]
            end += 1
        # A tokenizer may need more tokens for steps together than for each of them.
        while len(encoded := self.encoder.encode(self._part(start, end))) > self.size:
            if end == stop and start == first:
                raise self._refused(first, len(encoded))
            start, end = (start, end - 1) if end > stop else (start + 1, end)
        bounds = self._bounds
        skipped = bounds[first] - bounds[start]
        if self.one_pass:
            encoded = replace(encoded, reads=encoded.reads[skipped:], calls=encoded.calls[skipped:])
        return Window(bounds[start], bounds[first], bounds[stop], bounds[end], encoded)

    def _part(self, start: int, end: int) -> Trace:
        steps = [step.substeps for step in self.trace.steps[start:end]]
        return Trace.of(self.trace.problem, steps, id=self.trace.id)

    def _refused(self, step: int, tokens: int) -> UserError:
        return UserError(
            f"step {step + 1} has {tokens:,} tokens with the problem, and a window has at most {self.size:,}.",
            "Take larger windows if the evaluator can read them, or divide the step (or use --skip-too-long).",
        )

    @cached_property
    def _alone(self) -> list[int]:
        """The length of the problem with each step."""
        found = [len(self.encoder.encode(self._part(i, i + 1))) for i in range(len(self.trace.steps))]
        for step, tokens in enumerate(found):
            if tokens > self.size:
                raise self._refused(step, tokens)
        return found

    @cached_property
    def _opening(self) -> int:
        """The length of the input before the first step."""
        first, *others = self._alone[:2]
        return first + others[0] - len(self.encoder.encode(self._part(0, 2))) if others else 0

    @cached_property
    def _lengths(self) -> list[int]:
        """The length of each step, including the separation from the step before it."""
        return [tokens - self._opening for tokens in self._alone]

    @property
    def _room(self) -> int:
        return self.size - self._opening

    @property
    def _before(self) -> int:
        """The maximum length of the steps before a block."""
        return self._room // (2 if self.one_pass else _SHARES)

    @cached_property
    def _bounds(self) -> list[int]:
        """The first sub-step of each step, and the number of all sub-steps."""
        return [0, *accumulate(len(step.substeps) for step in self.trace.steps)]
