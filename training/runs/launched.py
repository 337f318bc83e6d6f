"""Processes that torchrun or accelerate launched together, and that divide the traces to score among them."""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta

from stepsight.storage.traces.queries import StoredTrace

# Processes with a short share wait for those with a long one.
_PATIENCE = timedelta(days=7)


@dataclass(frozen=True)
class Processes:
    """The position of this process among the processes launched together. `rank` counts from 0 over all `count`
    processes, and `local_rank` over those on the same machine."""

    rank: int = 0
    count: int = 1
    local_rank: int | None = None

    @property
    def is_main(self) -> bool:
        """True for the process that prints on behalf of all processes."""
        return self.rank == 0

    def share(self, traces: Iterable[StoredTrace]) -> Iterator[StoredTrace]:
        """Yield this process's share of the traces.

        A trace's position determines its process, so shares never overlap, whatever other processes have judged
        meanwhile.
        """
        return (trace for trace in traces if trace.position % self.count == self.rank)

    def total(self, number: int) -> int:
        """Return the sum of `number` over all processes. Every process has to call this method, which waits for all
        of them."""
        if self.count == 1:
            return number
        # It takes seconds to import, and a process that runs alone does not need it.
        import torch

        distributed = torch.distributed
        if not distributed.is_initialized():
            # Without the GPUs: processes only exchange that they have finished.
            distributed.init_process_group("gloo", timeout=_PATIENCE)
        sums = torch.tensor([number])
        distributed.all_reduce(sums)
        return int(sums[0])

    def wait(self) -> None:
        """Wait until every process has called this method."""
        self.total(0)


@contextmanager
def launched() -> Iterator[Processes]:
    """Yield the position of this process among those launched together. Afterwards, end the connection between
    them."""
    count = int(os.environ.get("WORLD_SIZE", "1"))
    if count == 1:
        yield Processes()
        return
    import torch

    distributed = torch.distributed
    try:
        yield Processes(int(os.environ["RANK"]), count, int(os.environ.get("LOCAL_RANK", "0")))
    finally:
        if distributed.is_initialized():
            distributed.destroy_process_group()
