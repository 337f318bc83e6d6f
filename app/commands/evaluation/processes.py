"""Processes that were started together by torchrun or accelerate launch and share the traces among them."""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    # It imports SQLAlchemy, and a file is scored without a database.
    from stepsight.storage.traces.queries import StoredTrace

# Processes with a short share wait for those with a long one.
_PATIENCE = timedelta(days=7)


@dataclass(frozen=True)
class Processes:
    """The position of this process among those launched together.

    `rank` is its number, from 0, among `count` processes. `local_rank` is its number on its machine.
    """

    rank: int = 0
    count: int = 1
    local_rank: int | None = None

    @property
    def is_main(self) -> bool:
        """True for the process that prints on behalf of all."""
        return self.rank == 0

    def share(self, traces: "Iterable[StoredTrace]") -> "Iterator[StoredTrace]":
        """Yield the traces in this process's share.

        Every trace is in the share of exactly one process, whatever has been judged in the meantime.
        """
        return (trace for trace in traces if trace.position % self.count == self.rank)

    def total(self, number: int) -> int:
        """Return the sum of a number over all processes.

        Every process has to call this, and each call waits for the others.
        """
        if self.count == 1:
            return number
        torch = _torch()
        distributed = torch.distributed
        if not distributed.is_initialized():
            # Without the GPUs: processes only exchange that they have finished.
            distributed.init_process_group("gloo", timeout=_PATIENCE)
        sums = torch.tensor([number])
        distributed.all_reduce(sums)
        return int(sums[0])

    def wait(self) -> None:
        """Wait until every process has called this."""
        self.total(0)


@contextmanager
def launched() -> Iterator[Processes]:
    """Give the processes launched together with this one, or only this process if it was started alone."""
    count = int(os.environ.get("WORLD_SIZE", "1"))
    if count == 1:
        yield Processes()
        return
    distributed = _torch().distributed
    try:
        yield Processes(int(os.environ["RANK"]), count, int(os.environ.get("LOCAL_RANK", "0")))
    finally:
        if distributed.is_initialized():
            distributed.destroy_process_group()


def _torch() -> Any:
    """Import PyTorch, which takes seconds. A process that runs alone does not need it."""
    import torch.distributed

    return torch
