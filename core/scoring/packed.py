"""The forward pass for decoders on the CPU: several inputs side by side, without padding.

Projections run over all inputs of a batch in one row, and attention runs over each input separately. In the last
layer, everything but keys and values is computed only for the tokens that are read. The first layer's queries, keys
and values depend only on token and position, so all prefixes of a trace share them. Batches are small enough for
the CPU caches to hold the values between two products.

A small model in float32 is copied into prepared form (see `core.models.network`) and runs on several
single-threaded workers at once, which keep the matrix units and the caches busier than one product split between
cores.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import accumulate, pairwise
from threading import Barrier

import numpy as np
import torch
from torch import Tensor

from stepsight.core.arrays import Floats32
from stepsight.core.models.backbone import Decoder
from stepsight.core.models.model import StepModel
from stepsight.core.models.network import DecoderConfig, DecoderNetwork, decoder_config
from stepsight.core.scoring.forward import Input, chunks, padded_rows

ROWS = 16
"""As in `forward`, but for weights that are not packed, with which a row costs more than a new kernel."""
_MAX_WORKERS = 8
# The most weights of a model that is copied; memory may not hold a larger one twice.
_LARGEST = 100_000_000


class PackedForward:
    """A forward pass for step models whose backbone belongs to the Llama family."""

    def __init__(self, model: StepModel, token_budget: int = 1024, workers: int | None = None) -> None:
        """Create a forward pass with batches of at most `token_budget` tokens.

        Batches also depend on the number of workers, by default this machine's core count, up to a limit.
        """
        config = _config_of(model)
        assert config is not None
        self.model = model
        self.token_budget = token_budget
        self.is_prepared = _is_small(model)
        self.network = DecoderNetwork.of(model.model, config, prepared=self.is_prepared)
        own = torch.get_num_threads()
        self._workers = (workers or min(own, _MAX_WORKERS)) if self.is_prepared else 0
        self._pool = _start(self._workers, max(1, own // self._workers)) if self.is_prepared else None

    @staticmethod
    def supports(model: StepModel) -> bool:
        """True if `PackedForward` can run the model and gives the same results as the model itself."""
        return _config_of(model) is not None

    def run(self, inputs: Sequence[Input]) -> Iterator[tuple[int, Floats32]]:
        total = sum(item.length for item in inputs)
        # Few inputs are still cut into one share per worker.
        budget = min(self.token_budget, max(64, -(-total // max(1, self._workers))))
        # Only a few batches are submitted to the workers in advance, so that two concurrent passes share the
        # workers and neither has to wait for the other to finish.
        ahead: deque[tuple[tuple[int, ...], Future[list[Floats32]]]] = deque()
        for batch in chunks(list(enumerate(inputs)), budget, padded=False):
            numbers, items = zip(*batch, strict=True)
            if self._pool is None:
                yield from zip(numbers, self._run_batch(items), strict=True)
                continue
            ahead.append((numbers, self._pool.submit(self._run_batch, items)))
            if len(ahead) > self._workers:
                numbers, outputs = ahead.popleft()
                yield from zip(numbers, outputs.result(), strict=True)
        for numbers, outputs in ahead:
            yield from zip(numbers, outputs.result(), strict=True)

    @torch.inference_mode()
    def _run_batch(self, batch: Sequence[Input]) -> list[Floats32]:
        longest: dict[int, Input] = {}
        for item in batch:
            if id(item.ids) not in longest or item.length > longest[id(item.ids)].length:
                longest[id(item.ids)] = item
        bounds = _bounds(batch)
        starts = dict(zip(longest, _bounds(longest.values()), strict=False))
        reads = np.concatenate([item.reads + start for item, start in zip(batch, bounds, strict=False)])
        count = len(reads)
        hidden = self.network.states(
            *self._tokens(batch),
            _Spans(self.network, batch, bounds, [starts[id(item.ids)] for item in batch]),
            torch.from_numpy(padded_rows(reads) if self.is_prepared else reads),
            self._tokens(longest.values()) if len(longest) < len(batch) else None,
        )
        rows: Floats32 = self.model.rows(hidden[:count]).numpy()
        return np.split(rows, np.cumsum([len(item.reads) for item in batch])[:-1])

    def _tokens(self, inputs: Iterable[Input]) -> tuple[Tensor, Tensor]:
        """Concatenate the ids of several inputs, and also their positions."""
        ids = np.concatenate([item.ids[: item.length] for item in inputs])
        positions = np.concatenate([np.arange(item.length) for item in inputs])
        rows = () if self.is_prepared else (ROWS,)
        ids, positions = (padded_rows(values, *rows) for values in (ids, positions))
        return torch.from_numpy(ids), torch.from_numpy(positions)


def _bounds(inputs: Iterable[Input]) -> list[int]:
    """Return the start of each input in the concatenation of all inputs, and the end of the last one."""
    return [0, *accumulate(item.length for item in inputs)]


def _config_of(model: StepModel) -> DecoderConfig | None:
    """Return the network's config if the network is a `Decoder` or a small Transformers network, or else None."""
    if isinstance(model.model, Decoder):
        return model.model.config
    # A pair of networks has a type of its own, which `to_dict` does not know.
    values = {**model.config.to_dict(), "model_type": model.config.model_type}
    return decoder_config(values) if _is_small(model) else None


def _is_small(model: StepModel) -> bool:
    parameters = list(model.parameters())
    plain = all(weight.device.type == "cpu" and weight.dtype == torch.float32 for weight in parameters)
    return plain and sum(weight.numel() for weight in parameters) <= _LARGEST


class _Spans:
    """Attention for inputs in one row, in which each input attends only to itself. `firsts` gives the start of each
    input's queries, keys and values in the first layer."""

    def __init__(
        self, network: DecoderNetwork, batch: Sequence[Input], bounds: Sequence[int], firsts: Sequence[int]
    ) -> None:
        self._network, self._batch = network, batch
        self._spans = [slice(start, stop) for start, stop in pairwise(bounds)]
        self._firsts = [slice(start, start + item.length) for start, item in zip(firsts, batch, strict=True)]
        self._whole: Tensor | None = None

    def __call__(
        self, layer: int, query: Tensor, key: Tensor, value: Tensor, tokens: int, reads: Tensor | None
    ) -> Tensor:
        if self._whole is None:
            self._whole = query.new_zeros(tokens, *query.shape[1:])
        attended = self._whole if reads is None else query.new_zeros(len(reads), *query.shape[1:])
        start = 0
        for item, span, first in zip(self._batch, self._spans, self._firsts, strict=True):
            source = span if layer else first
            into = span if reads is None else slice(start, start + len(item.reads))
            if reads is None:
                own = query[source]
            else:
                own = query[into] if layer else query[torch.from_numpy(item.reads + source.start)]
            start = into.stop
            queries, keys, values = (part.transpose(0, 1)[None] for part in (own, key[source], value[source]))
            at = None if reads is None else torch.from_numpy(item.reads)
            attended[into] = self._network.attention(layer, queries, keys, values, at)[0].transpose(0, 1)
        return attended


def _start(workers: int, threads: int) -> ThreadPoolExecutor:
    """Start a pool of workers with `threads` threads each.

    PyTorch gives every new thread the thread count that was last set in any thread, so this thread's count is
    restored once all workers have set theirs.
    """
    before = torch.get_num_threads()
    together = Barrier(workers + 1)

    def settle() -> None:
        torch.set_num_threads(threads)
        together.wait()

    pool = ThreadPoolExecutor(workers, "score")
    for _ in range(workers):
        pool.submit(settle)
    together.wait()
    torch.set_num_threads(before)
    return pool
