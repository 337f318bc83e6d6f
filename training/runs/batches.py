"""The batches of an epoch, whose order depends neither on the number of processes nor on gradient accumulation."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader, Sampler

# Batches that are sorted by length together: enough for nearly equal lengths within a batch, and few enough for
# batches to differ between epochs.
_SORTED = 50


class Batches(Sampler[list[int]]):
    """A sampler that yields the batches of one process, each as a list of indices into the data set.

    Each epoch is shuffled, using `seed` and the number of the epoch, and cut into stretches of many batches. Each
    stretch is sorted by length, and the batches are shuffled again, so that their length does not depend on the
    progress of the epoch. The batch with the longest trace comes first, so that a lack of memory shows at once.

    An optimiser step processes `batch_size` traces on any hardware, in `accumulation` micro-batches that are each
    split over `processes`. If the last step has too few traces, the remaining micro-batches hold the index after
    the last trace, where the data set must have an example without a label. With the `order` "sorted", the whole
    epoch is sorted by length and its batches are not shuffled.
    """

    def __init__(
        self,
        lengths: Sequence[int],
        batch_size: int,
        seed: int,
        *,
        accumulation: int = 1,
        processes: int = 1,
        process: int = 0,
        order: str = "mixed",
    ) -> None:
        self.lengths = lengths
        self.batch_size = batch_size
        self.seed = seed
        self.accumulation = accumulation
        self.processes = processes
        self.process = process
        self.order = order
        self.epoch = 0

    def set_epoch(self, epoch: int) -> None:
        """Set the number of the epoch. The trainer calls this before each epoch."""
        self.epoch = epoch

    def __len__(self) -> int:
        return -(-len(self.lengths) // self.batch_size) * self.accumulation

    def __iter__(self) -> Iterator[list[int]]:
        for batch in self.steps():
            size = -(-len(batch) // self.accumulation)
            for part in range(self.accumulation):
                own = batch[part * size : (part + 1) * size][self.process :: self.processes]
                yield own or [len(self.lengths)]

    def steps(self) -> list[list[int]]:
        """Return the traces of each optimiser step of the epoch, over all processes, as lists of indices."""
        # With seed + epoch, the second epoch of a seed would be the first of the next. The generator takes 32 bits.
        drawn = int(np.random.SeedSequence([self.seed, self.epoch]).generate_state(1)[0])
        generator = torch.Generator().manual_seed(drawn if self.epoch else self.seed)
        order = torch.randperm(len(self.lengths), generator=generator).tolist()
        run = len(order) if self.order == "sorted" else _SORTED * self.batch_size
        batches = []
        for start in range(0, len(order), run):
            stretch = sorted(order[start : start + run], key=self.lengths.__getitem__, reverse=True)
            batches += [stretch[i : i + self.batch_size] for i in range(0, len(stretch), self.batch_size)]
        if self.order == "sorted":
            return batches
        mixed = [batches[i] for i in torch.randperm(len(batches), generator=generator).tolist()]
        longest = max(mixed, key=lambda batch: self.lengths[batch[0]])
        mixed.remove(longest)
        return [longest, *mixed]


class EpochLoader(DataLoader[Any]):
    """A data loader that passes the epoch's number to its batches, and to its data set if that needs it."""

    def set_epoch(self, epoch: int) -> None:
        """Pass on the number of the epoch. The trainer calls this before each epoch."""
        assert isinstance(self.batch_sampler, Batches)
        self.batch_sampler.set_epoch(epoch)
        if hasattr(self.dataset, "set_epoch"):
            self.dataset.set_epoch(epoch)
