"""The forward pass for decoders on the CPU: a pass takes several inputs side by side, without padding, each of
which begins at its first token or follows a part of one kept prefix.

Projections run over all tokens of a pass in one row, and attention runs over each input separately. In the last
layer, everything but keys and values is computed only for the tokens that are read. The first layer's queries, keys
and values depend only on token and position, so all prefixes of a trace share them. Batches are small enough for
the CPU caches to hold the values between two products.

The keys and values of a kept prefix are in a buffer with spare room, to which a pass adds those of its new tokens.
Those of an input stand in the buffer too while the input attends to them, after the part that it shares. So nothing
is padded, the shared part is not copied, no input attends to masked keys of others, and sums are taken in the same
order as if each input were read by itself.

A small model in float32 is copied into prepared form (see `core.models.network`) and runs on several
single-threaded workers at once, which keep the matrix units and the caches busier than one product split between
cores.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from itertools import accumulate, pairwise
from threading import Barrier

import numpy as np
import torch
from torch import Tensor

from stepsight.core.arrays import Floats32, Ints
from stepsight.core.models.model import Decoder, StepModel
from stepsight.core.models.network import DecoderConfig, DecoderNetwork, Queries, decoder_config
from stepsight.core.scoring.forward import Input, Numbered, chunks
from stepsight.core.scoring.prefixes import KeptPrefix, PrefixCache

# oneDNN builds a kernel for each number of rows it encounters; rounding passes up to a multiple of this keeps their
# number small. With weights that are not packed, and after a prefix, an extra row costs more than a new kernel.
_ROWS, _FEW_ROWS = 64, 16
# The number of new tokens in a pass after a prefix, unless an input is longer, and the spare room of a buffer.
_NEW, _ROOM = 512, 256
_MAX_WORKERS = 8
# The largest number of weights of a model that is copied; a larger one may not fit in memory twice.
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
        self.prefixes = PrefixCache()
        own = torch.get_num_threads()
        self._workers = (workers or min(own, _MAX_WORKERS)) if self.is_prepared else 0
        self._pool = _start(self._workers, max(1, own // self._workers)) if self.is_prepared else None

    @staticmethod
    def supports(model: StepModel) -> bool:
        """True if `PackedForward` can run the model and gives the same results as the model itself."""
        return _config_of(model) is not None

    @property
    def continues(self) -> bool:
        """True if no token sees a later one."""
        return self.network.config.is_causal

    def run(self, inputs: Sequence[Input]) -> Iterator[tuple[int, Floats32]]:
        total = sum(item.length for item in inputs)
        # Few inputs are still cut into one share per worker.
        budget = min(self.token_budget, max(64, -(-total // max(1, self._workers))))
        # Only a few batches are submitted to the workers in advance, so that two concurrent passes share the
        # workers and neither has to wait for the other to finish.
        pending: deque[tuple[tuple[int, ...], Future[list[Floats32]]]] = deque()
        for batch in chunks(list(enumerate(inputs)), budget, padded=False):
            numbers, items = zip(*batch, strict=True)
            if self._pool is None:
                yield from zip(numbers, self._run_batch(items), strict=True)
                continue
            pending.append((numbers, self._pool.submit(self._run_batch, items)))
            if len(pending) > self._workers:
                numbers, outputs = pending.popleft()
                yield from zip(numbers, outputs.result(), strict=True)
        for numbers, outputs in pending:
            yield from zip(numbers, outputs.result(), strict=True)

    def run_after(self, prefix: Input, inputs: Sequence[Input]) -> Iterator[tuple[int | None, Floats32]]:
        rests = [(number, item.after(prefix)) for number, item in enumerate(inputs)]
        cached, start = self.prefixes.take(prefix.ids[: prefix.length], prefix.first_read)
        cached = self._with_room(cached, max([prefix.length, *(item.length for item in inputs)]))
        batches: list[Numbered] = list(chunks(rests, _NEW, padded=False)) or [[]]
        # The last of the new tokens run together with the first inputs.
        earlier: list[Numbered] = [[] for _ in range(start + _NEW, prefix.length, _NEW)]
        try:
            for batch in earlier + batches:
                stop = min(start + _NEW, prefix.length)
                own = prefix.reads[(prefix.reads >= start) & (prefix.reads < stop)]
                part = Input(prefix.ids, stop, own, start)
                first, *rows = self._run_batch([part, *(item for _, item in batch)], cached)
                start = stop
                yield None, first
                yield from zip((number for number, _ in batch), rows, strict=True)
        finally:
            self.prefixes.put(cached)

    def _with_room(self, prefix: KeptPrefix, tokens: int) -> KeptPrefix:
        """Return the prefix, or a copy of it if it has no room for that many tokens."""
        if prefix.room >= tokens:
            return prefix
        config, count = self.network.config, len(prefix.ids)
        shape = (1, config.num_key_value_heads, tokens + _ROOM, config.head_dim)
        layers = [
            (self.network.embedding.new_empty(shape), self.network.embedding.new_empty(shape))
            for _ in range(config.num_hidden_layers)
        ]
        for pair, before in zip(layers, prefix.layers, strict=False):
            for part, old in zip(pair, before, strict=True):
                part[:, :, :count] = old[:, :, :count]
        return KeptPrefix(prefix.ids, layers)

    @torch.inference_mode()
    def _run_batch(self, batch: Sequence[Input], prefix: KeptPrefix | None = None) -> list[Floats32]:
        """Run inputs side by side. If a prefix is given, each follows a part of it, and the tokens of the first are
        added to it."""
        rows = _ROWS if self.is_prepared and prefix is None else _FEW_ROWS
        bounds = _bounds(batch)
        firsts, distinct = bounds, None
        longest = {id(item.ids): item for item in sorted(batch, key=lambda item: item.length)}
        if prefix is None and len(longest) < len(batch):
            places = dict(zip(longest, _bounds(longest.values()), strict=False))
            firsts, distinct = [places[id(item.ids)] for item in batch], _tokens(longest.values(), rows)
        reads = np.concatenate([item.reads - item.start + low for item, low in zip(batch, bounds, strict=False)])
        count = len(reads)
        if rows == _ROWS:
            reads = _pad(reads, rows)
        elif not count:
            # Only keys and values are computed then, but the last layer needs at least one token.
            reads = np.zeros(1, np.int64)
        attend = _Attend(self.network, batch, bounds, firsts, prefix)
        hidden = self.network.states(*_tokens(batch, rows), attend, torch.from_numpy(reads), distinct)
        if prefix is not None and batch[0].length > len(prefix.ids):
            prefix.ids = batch[0].ids[: batch[0].length]
        probs: Floats32 = self.model.probabilities(hidden[:count]).numpy()
        return np.split(probs, np.cumsum([len(item.reads) for item in batch])[:-1])


def _tokens(inputs: Iterable[Input], rows: int) -> tuple[Tensor, Tensor]:
    """Concatenate the new tokens of several inputs, and also their positions, padded to a multiple of `rows`."""
    ids = np.concatenate([item.ids[item.start : item.length] for item in inputs])
    positions = np.concatenate([np.arange(item.start, item.length) for item in inputs])
    return torch.from_numpy(_pad(ids, rows)), torch.from_numpy(_pad(positions, rows))


def _pad(values: Ints, rows: int) -> Ints:
    """Append zeros to `values` up to a multiple of `rows`. The added rows are computed but never read."""
    return np.concatenate([values, np.zeros(-len(values) % rows, np.int64)])


def _bounds(inputs: Iterable[Input]) -> list[int]:
    """Return the place of each input in the row of all new tokens, and the end of the last one."""
    return [0, *accumulate(item.new for item in inputs)]


def _config_of(model: StepModel) -> DecoderConfig | None:
    """Return the network's config if the network is a `Decoder` or a small Transformers network, or else None."""
    if isinstance(model.model, Decoder):
        return model.model.config
    # A pair of networks has its own type, which `to_dict` does not know.
    values = {**model.config.to_dict(), "model_type": model.config.model_type}
    return decoder_config(values) if _is_small(model) else None


def _is_small(model: StepModel) -> bool:
    parameters = list(model.parameters())
    plain = all(weight.device.type == "cpu" and weight.dtype == torch.float32 for weight in parameters)
    return plain and sum(weight.numel() for weight in parameters) <= _LARGEST


class _Attend:
    """Attention of the inputs of a pass, each to its own tokens and, if there is a kept prefix, to the part of it
    that it follows. The tokens of the first input are added to the prefix. `bounds` and `firsts` give the place of
    each input among the tokens of the pass, and among those of the first layer."""

    def __init__(
        self,
        network: DecoderNetwork,
        batch: Sequence[Input],
        bounds: Sequence[int],
        firsts: Sequence[int],
        prefix: KeptPrefix | None,
    ) -> None:
        self._network, self._batch, self._prefix = network, batch, prefix
        self._spans = [slice(start, stop) for start, stop in pairwise(bounds)]
        self._firsts = [slice(start, start + item.new) for start, item in zip(firsts, batch, strict=False)]
        self._whole: Tensor | None = None
        # An input that is run from its first token on needs no positions.
        self._queries = [Queries(torch.arange(item.start, item.length)) if item.start else None for item in batch]

    def __call__(
        self, layer: int, query: Tensor, key: Tensor, value: Tensor, tokens: int, reads: Tensor | None
    ) -> Tensor:
        # Positions that attend to nothing, such as padding, stay zero.
        if self._whole is None:
            self._whole = query.new_zeros(tokens, *query.shape[1:])
        attended = self._whole if reads is None else query.new_zeros(len(reads), *query.shape[1:])
        start = 0
        for number, (item, span, first) in enumerate(zip(self._batch, self._spans, self._firsts, strict=True)):
            source = span if layer else first
            target = span if reads is None else slice(start, start + len(item.reads))
            start = target.stop
            new = key[source].transpose(0, 1), value[source].transpose(0, 1)
            with self._with_prefix(layer, item, new, persists=number == 0) as (keys, values):
                if target.start == target.stop:
                    continue
                if layer == 0 and reads is not None:
                    own = query[torch.from_numpy(item.reads - item.start + source.start)]
                else:
                    own = query[source if reads is None else target]
                at = self._queries[number] if reads is None else Queries(torch.from_numpy(item.reads))
                result = self._network.attention(layer, own.transpose(0, 1)[None], keys, values, at)
                attended[target] = result[0].transpose(0, 1)
        return attended

    @contextmanager
    def _with_prefix(
        self, layer: int, item: Input, new: tuple[Tensor, Tensor], *, persists: bool
    ) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield the keys and values of an input, with those of the part of the prefix that it follows. They are
        written to the prefix; unless they persist, what it held in their place is then restored."""
        if self._prefix is None:
            keys, values = new
            yield keys[None], values[None]
            return
        pair = self._prefix.layers[layer]
        places = [part[0, :, item.start : item.length] for part in pair]
        before = [] if persists else [place.clone() for place in places]
        for place, part in zip(places, new, strict=True):
            place.copy_(part)
        try:
            keys, values = (part[:, :, : item.length] for part in pair)
            yield keys, values
        finally:
            for place, old in zip(places, before, strict=False):
                place.copy_(old)


def _start(workers: int, threads: int) -> ThreadPoolExecutor:
    """Start a pool of workers with `threads` threads each.

    PyTorch gives every new thread the thread count that was last set in any thread, so this thread's count is
    restored once all workers have set theirs.
    """
    before = torch.get_num_threads()
    barrier = Barrier(workers + 1)

    def set_threads() -> None:
        torch.set_num_threads(threads)
        barrier.wait()

    pool = ThreadPoolExecutor(workers, "score")
    for _ in range(workers):
        pool.submit(set_threads)
    barrier.wait()
    torch.set_num_threads(before)
    return pool
