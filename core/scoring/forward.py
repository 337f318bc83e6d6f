"""Forward passes: the inputs that a mode needs, batches within a token budget, and a pass for any backbone."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from stepsight.core.arrays import Floats32, Ints
from stepsight.core.judgment import Mode
from stepsight.core.models.evaluator import ModelEvaluator
from stepsight.core.models.model import StepModel, main_device
from stepsight.core.prompts.encoding import Encoded, Encoder, Window
from stepsight.core.scores import Hindsight, StepScores
from stepsight.core.scoring.prefixes import KeptPrefix, PrefixCache, can_continue, read_after, shared
from stepsight.core.trace import Trace

# The number of tokens in a padded batch.
_BUDGET = 16_384


@dataclass(frozen=True, eq=False)
class Input:
    """The first `length` tokens of `ids`. `reads` has the shape (k,) and holds the positions at which probabilities
    are read. Prefixes of one trace share the same `ids` array, so that a forward pass can share work between them.

    If the first tokens have been read before, as part of a kept prefix, the input begins at `start`: its `new`
    tokens follow that part of the prefix, and it is not read before `start`.
    """

    ids: Ints
    length: int
    reads: Ints
    start: int = 0

    @property
    def key(self) -> bytes:
        """A cache key, equal for equal token sequences."""
        return self.ids[: self.length].tobytes()

    @property
    def new(self) -> int:
        """The number of tokens that are read."""
        return self.length - self.start

    @property
    def first_read(self) -> int:
        """The first position at which probabilities are read, or the length if there is none."""
        return int(self.reads[0]) if len(self.reads) else self.length

    def after(self, prefix: "Input") -> "Input":
        """Return this input without the tokens before its first read that it shares with `prefix`."""
        common = shared([prefix.ids[: prefix.length], self.ids[: self.length]])
        return replace(self, start=min(common, self.first_read))

    @property
    def part(self) -> tuple[int, int, bytes]:
        """A key that is equal for inputs with the same `ids` array, length and reads. It is valid while `ids` is in
        memory."""
        return id(self.ids), self.length, self.reads.tobytes()


Numbered = list[tuple[int, Input]]
"""A batch: inputs with their numbers."""

Bounds = Sequence[tuple[int, int]]
"""Prefixes, each given by the range of sub-steps that are judged when it is read."""

Calls = Sequence[Sequence[Encoded]]
"""The inputs for each step of a trace."""


def call_inputs(calls: Calls) -> list[Input]:
    """Return the inputs of all calls about all steps as a flat list, in order."""
    return [Input(call.ids, len(call), call.reads) for step in calls for call in step]


def verdicts(encoder: Encoder, calls: Calls, rows: Iterable[Floats32]) -> Floats32:
    """Return the probabilities of each step, with shape (steps, 3). `rows` holds the result for each input of
    `call_inputs`."""
    outputs = iter(rows)
    return np.stack([encoder.verdict(np.concatenate([next(outputs) for _ in step])) for step in calls])


def mode_inputs(trace: Trace, encoded: Encoded, mode: Mode, *, causal: bool) -> list[Input]:
    """Return the inputs for one trace in a mode.

    A causal evaluator needs only the whole trace. A bidirectional evaluator needs the whole trace offline, the
    prefix up to each step online, and the prefix up to each sub-step in hindsight.
    """
    return prefix_inputs(encoded, prefixes(trace, mode), causal=causal)


def prefix_inputs(encoded: Encoded, bounds: Bounds, *, causal: bool) -> list[Input]:
    """Like `mode_inputs`, but for the prefixes given by `bounds`, in the form that `prefixes` returns. If the trace
    is read in windows, the inputs are grouped by window; prefixes that fill a window share one input."""
    if encoded.windows:
        return [
            item
            for window in encoded.windows
            for item in prefix_inputs(window.encoded, _window_bounds(window, bounds), causal=causal)
        ]
    if encoded.calls or causal:
        return whole_inputs(encoded)
    return [
        Input(encoded.ids, int(encoded.ends[stop - 1]) + 1, encoded.reads[start:stop]) for start, stop in bounds
    ]


def _window_bounds(window: Window, bounds: Bounds) -> list[tuple[int, int]]:
    """Return the distinct prefixes of a window that are needed for the prefixes of its trace, in order."""
    return list(dict.fromkeys(window.local(prefix) for prefix in bounds if window.judged(prefix)))


def last_in_view(encoded: Encoded, bounds: Bounds) -> list[tuple[int, int, Window | None]]:
    """Return, for each of the `prefix_inputs` that are prefixes, the last sub-step in view, the sub-step of the
    first row of its result, and the window if the trace is read in windows."""
    if not encoded.windows:
        return [(stop - 1, start, None) for start, stop in bounds]
    return [
        (window.start + last, window.start + first, window)
        for window in encoded.windows
        for last, first, _ in last_in_view(window.encoded, _window_bounds(window, bounds))
    ]


def takes_one_pass(encoded: Encoded, *, causal: bool) -> bool:
    """True if one input, or one for each call, gives the scores in all modes."""
    first = encoded.windows[0].encoded if encoded.windows else encoded
    return causal or bool(first.calls)


def tokens_of(inputs: Iterable[Input]) -> int:
    """Return the number of tokens of several inputs, counting equal parts of one encoded text once."""
    return sum(length for _, length, _ in {item.part for item in inputs})


def whole_inputs(encoded: Encoded) -> list[Input]:
    """Return the inputs for a whole encoded trace: the trace itself, or all its calls."""
    return call_inputs(encoded.calls) if encoded.calls else [Input(encoded.ids, len(encoded), encoded.reads)]


def prefixes(trace: Trace, mode: Mode) -> list[tuple[int, int]]:
    """Return the prefixes that a mode needs, each given by the range of sub-steps that are judged when it is read.
    The end of the range is also the number of sub-steps in the prefix."""
    n = len(trace.substeps)
    if mode == Mode.OFFLINE:
        return [(0, n)]
    if mode == Mode.HINDSIGHT:
        return [(0, stop) for stop in range(1, n + 1)]
    return list(pairwise([0, *(int(last) + 1 for last in np.unique(trace.step_ends))]))


def trace_scores(
    evaluator: ModelEvaluator, trace: Trace, encoded: Encoded, mode: Mode, rows: tuple[Floats32, ...]
) -> StepScores | Hindsight:
    """Build the scores of a trace from `rows`, the result for each input of `mode_inputs`."""
    encoder, bounds = evaluator.encoder, prefixes(trace, mode)
    if encoded.windows:
        one_pass = takes_one_pass(encoded, causal=evaluator.is_causal)
        parts = _window_rows(encoder, encoded, bounds, rows, one_pass=one_pass)
        return assemble(parts, mode, causal=one_pass)
    if encoded.calls:
        return assemble((verdicts(encoder, encoded.calls, rows),), mode, causal=True)
    return assemble(rows, mode, causal=evaluator.is_causal)


def _window_rows(
    encoder: Encoder, encoded: Encoded, bounds: Bounds, rows: Iterable[Floats32], *, one_pass: bool
) -> tuple[Floats32, ...]:
    """Return, for each prefix, the probabilities of the sub-steps judged with it, with shape (sub-steps, 3), from
    the windows that judge them. If `one_pass` is True, they are returned for each window, with a spread if there is
    one."""
    outputs = iter(rows)
    if one_pass:
        calls = (window.encoded.calls for window in encoded.windows)
        return tuple(verdicts(encoder, own, outputs) if own else next(outputs) for own in calls)
    parts: list[list[Floats32]] = [[] for _ in bounds]
    for window in encoded.windows:
        by_bounds = {local: next(outputs)[:, :3] for local in _window_bounds(window, bounds)}
        for place, prefix in enumerate(bounds):
            if judged := window.judged(prefix):
                parts[place].append(by_bounds[window.local(prefix)][: judged[1] - judged[0]])
    return tuple(map(np.concatenate, parts))


def assemble(rows: tuple[Floats32, ...], mode: Mode, *, causal: bool) -> StepScores | Hindsight:
    """Build scores from `rows`, the result for each input of `mode_inputs`.

    Each result has the shape (reads, 3), or (reads, 4) with a spread. They are copied, because they are views of a
    whole batch, which would stay in memory as long as the scores.
    """
    probs = np.concatenate(rows)
    if causal:
        scores = StepScores.from_rows(probs)
        return Hindsight.constant(scores) if mode == Mode.HINDSIGHT else scores
    return Hindsight.from_packed(probs) if mode == Mode.HINDSIGHT else StepScores(probs)


class Forward(Protocol):
    """A way of running inputs through a step model. Several threads can use it at once."""

    @property
    def continues(self) -> bool:
        """True if inputs can continue from the keys and values of a prefix."""
        ...

    def run(self, inputs: Sequence[Input]) -> Iterator[tuple[int, Floats32]]:
        """Yield the number of each input with the probabilities at its read positions, of shape (k, 3), as soon as
        they are known. An ensemble adds its spread as a fourth column.

        Inputs that grow in length come in their order. At most a few batches are computed beyond those requested.
        """
        ...

    def run_after(self, prefix: Input, inputs: Sequence[Input]) -> Iterator[tuple[int | None, Floats32]]:
        """Like `run`, for inputs that begin like `prefix`, which is read once and kept for later calls.

        The probabilities of the prefix are yielded too, in parts, with None for a number. A part comes with each
        pass, even if it is empty. Only for a forward pass that `continues`.
        """
        ...


def run_all(forward: Forward, inputs: Sequence[Input]) -> list[Floats32]:
    """Return the results of a forward pass for all inputs, in their order."""
    results = dict(forward.run(inputs))
    return [results[number] for number in range(len(inputs))]


def chunks(inputs: Sequence[tuple[int, Input]], budget: int, *, padded: bool) -> Iterator[Numbered]:
    """Group numbered inputs, in order, into batches of at most `budget` tokens. An input that is longer than that
    gets a batch of its own.

    If `padded` is True, each input counts as long as the longest one in its batch, with the prefix that it follows.
    """
    batch: Numbered = []
    total = longest = 0
    for number, item in inputs:
        width = max(longest, item.length)
        size = width * (len(batch) + 1) if padded else total + item.new
        if batch and size > budget:
            yield batch
            batch, total, width = [], 0, item.length
        batch.append((number, item))
        total, longest = total + item.new, width
    if batch:
        yield batch


class PaddedForward:
    """A forward pass that runs padded batches through the model.

    Attention masks are computed from lengths, never from token ids, because LLaDA's pad token is also its end
    token. Inputs are not packed into one row, because bidirectional attention would leak between them.
    """

    def __init__(self, model: StepModel, token_budget: int = _BUDGET) -> None:
        self.model = model
        self.token_budget = token_budget
        self.device = main_device(model)
        self.prefixes = PrefixCache()

    @cached_property
    def continues(self) -> bool:
        """True if the backbone is causal and can continue from a prefix."""
        return bool(getattr(self.model.config, "is_causal", True)) and can_continue(self.model.model)

    def run(self, inputs: Sequence[Input]) -> Iterator[tuple[int, Floats32]]:
        by_length = sorted(enumerate(inputs), key=lambda pair: pair[1].length)
        for batch in chunks(by_length, self.token_budget, padded=True):
            numbers, items = zip(*batch, strict=True)
            with torch.inference_mode():
                ids, mask, ends = self._pad(items)
                rows = _unpad(self.model.judge(ids, mask, ends), items)
            yield from zip(numbers, rows, strict=True)

    def run_after(self, prefix: Input, inputs: Sequence[Input]) -> Iterator[tuple[int | None, Floats32]]:
        cached, read = self._read(prefix)
        try:
            yield None, read
            # Inputs that share the same part of the prefix are run side by side.
            rests = [(number, item.after(prefix)) for number, item in enumerate(inputs)]
            rests.sort(key=lambda pair: (pair[1].start, pair[1].length))
            for start in dict.fromkeys(item.start for _, item in rests):
                group = [pair for pair in rests if pair[1].start == start]
                for batch in chunks(group, self.token_budget, padded=True):
                    numbers, items = zip(*batch, strict=True)
                    with torch.inference_mode():
                        ids, _, ends = self._pad(items)
                        hidden, _ = read_after(self.model.states, cached.first(start), ids)
                        rows = _unpad(self.model.probabilities_at(hidden, ends), items)
                    yield from zip(numbers, rows, strict=True)
                    yield None, read[:0]
        finally:
            self.prefixes.put(cached)

    @torch.inference_mode()
    def _read(self, prefix: Input) -> tuple[KeptPrefix, Floats32]:
        """Read the tokens of a prefix that no cached one has, or at which probabilities are read. Return the prefix
        and its probabilities."""
        ids = prefix.ids[: prefix.length]
        cached, start = self.prefixes.take(ids, prefix.first_read)
        if start == len(ids):
            return cached, np.zeros((0, 3), np.float32)
        rest = replace(prefix, start=start)
        tokens, _, ends = self._pad([rest])
        hidden, layers = read_after(self.model.states, cached.first(start), tokens)
        (rows,) = _unpad(self.model.probabilities_at(hidden, ends), [rest])
        return cached if len(cached.ids) > len(ids) else KeptPrefix(ids, layers), rows

    def _pad(self, batch: Sequence[Input]) -> tuple[Tensor, Tensor, Tensor]:
        """Return the new tokens of the inputs, with the shape (rows, tokens), their mask, and the places among them
        at which each is read."""
        width = max(item.new for item in batch)
        reads = max(len(item.reads) for item in batch)
        ids = np.zeros((len(batch), width), np.int64)
        mask = np.zeros((len(batch), width), np.int64)
        ends = np.zeros((len(batch), reads), np.int64)
        for row, item in enumerate(batch):
            ids[row, : item.new] = item.ids[item.start : item.length]
            mask[row, : item.new] = 1
            ends[row, : len(item.reads)] = item.reads - item.start
        first, second, third = (torch.from_numpy(array).to(self.device) for array in (ids, mask, ends))
        return first, second, third


def _unpad(probs: Tensor, batch: Sequence[Input]) -> list[Floats32]:
    rows: Floats32 = probs.cpu().numpy()
    return [rows[row, : len(item.reads)] for row, item in enumerate(batch)]
