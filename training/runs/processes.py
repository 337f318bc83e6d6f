"""Processes: those that torchrun or accelerate launched together, and those in which the runs of an experiment are
done, one after another or several at a time, each on its share of the machine.

Child processes never outlive their parent.
"""

import os
import signal
import subprocess
import sys
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from stepsight.core.errors import UserError
from stepsight.storage.traces.queries import StoredTrace

_POLL = 0.2
# The number of failed runs that an error names.
_NAMED = 3


def is_main_process() -> bool:
    """True if this process was launched on its own, or is the first of several launched together by torchrun."""
    return os.environ.get("RANK", "0") == "0"


def processors() -> int:
    """Return the number of processor cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def gpus_here() -> int:
    """Return the number of GPUs that this process may use."""
    # Commands that only list choices do not need PyTorch.
    import torch

    return torch.cuda.device_count()


def launcher(processes: int) -> list[str]:
    """Return the Python arguments that launch a module in `processes` processes. `-m MODULE` must follow them. The
    result is empty for a single process."""
    if processes == 1:
        return []
    return ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={processes}"]


@dataclass(frozen=True)
class MachineShare:
    """The share of the machine that a run needs. `processes` is the number of processes of a run. Each process gets
    a GPU if the machine has any, and otherwise `threads` processor cores."""

    processes: int
    threads: int

    def room(self) -> int:
        """Return the number of runs that fit on the machine at once, at least 1."""
        gpus = gpus_here()
        if gpus:
            return max(1, gpus // self.processes)
        return max(1, processors() // (self.processes * self.threads))

    def check(self) -> None:
        """Raise `UserError` if the machine has GPUs, but fewer than a run has processes."""
        if 0 < gpus_here() < self.processes:
            raise UserError(
                f"a run needs {self.processes} processes with a GPU each, but this machine has {gpus_here()}.",
                "Set a lower number of processes in the file.",
            )

    def environment(self, slot: int) -> dict[str, str]:
        """Return the environment variables for the run in slot `slot`, including the GPUs that it may use."""
        threads = {"OMP_NUM_THREADS": str(self.threads)}
        gpus = gpus_here()
        if not gpus:
            return os.environ | threads
        visible = os.environ.get("CUDA_VISIBLE_DEVICES")
        names = visible.split(",") if visible else [str(number) for number in range(gpus)]
        first = slot * self.processes
        own = [names[(first + place) % len(names)] for place in range(self.processes)]
        return os.environ | threads | {"CUDA_VISIBLE_DEVICES": ",".join(own)}


@dataclass(frozen=True)
class PlannedRun:
    """A run of an experiment, which counts as finished once the file `result` exists.

    `arguments` are the Python arguments that do the run in a separate process, whose output is appended to `log`.
    """

    name: str
    result: Path
    arguments: tuple[str, ...]
    log: Path


Announce = Callable[[PlannedRun, int, int], None]
"""Called with a finished run, its number among those that were missing, and their total."""


class RunFailures:
    """The runs that failed, each with the reason. `total` is the number of all runs."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._reasons: list[str] = []

    def add(self, run: PlannedRun, reason: str) -> None:
        self._reasons.append(f"{run.name}: {reason}")

    def check(self) -> None:
        """If any run failed, raise `UserError` with the first few reasons."""
        if self._reasons:
            raise UserError(
                f"{len(self._reasons)} of {self._total} runs failed: {'; '.join(self._reasons[:_NAMED])}",
                "Run the same command to try again.",
            )


def run_here(runs: Sequence[PlannedRun], do: Callable[[PlannedRun], object], announce: Announce) -> RunFailures:
    """Do the runs one after another in this process and return the failures. A failure does not stop the rest."""
    failures = RunFailures(len(runs))
    for number, run in enumerate(runs, 1):
        try:
            do(run)
            announce(run, number, len(runs))
        except UserError as error:
            failures.add(run, str(error))
    return failures


def run_in_processes(runs: Sequence[PlannedRun], share: MachineShare, jobs: int, announce: Announce) -> RunFailures:
    """Do each run in a process of its own, `jobs` at a time, and return the failures. A failed run does not stop
    the others. If this process is interrupted or told to end, so are they. Call this in the main thread. Raises
    `UserError` in the same case as `MachineShare.check`."""
    share.check()
    failures, waiting, done = RunFailures(len(runs)), list(runs), 0
    running: dict[int, tuple[PlannedRun, subprocess.Popen[bytes], int]] = {}
    before = signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    try:
        while waiting or running:
            for slot in sorted(set(range(jobs)) - set(running))[: len(waiting)]:
                run = waiting.pop(0)
                run.log.parent.mkdir(parents=True, exist_ok=True)
                command, environment = [sys.executable, *run.arguments], share.environment(slot)
                with run.log.open("ab") as log:
                    start = log.tell()
                    process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, env=environment)
                running[slot] = run, process, start
            time.sleep(_POLL)
            for slot, (run, process, start) in list(running.items()):
                if process.poll() is None:
                    continue
                del running[slot]
                done += 1
                if process.returncode or not run.result.is_file():
                    lines = run.log.read_bytes()[start:].decode(errors="replace").strip().splitlines()
                    failures.add(run, f"{lines[-1] if lines else 'it ended without a word'} ({run.log})")
                else:
                    announce(run, done, len(runs))
    finally:
        for _, process, _ in running.values():
            process.terminate()
        for _, process, _ in running.values():
            process.wait()
        signal.signal(signal.SIGTERM, before)
    return failures


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

    def share(self, traces: Iterable[StoredTrace], draw: int) -> Iterator[StoredTrace]:
        """Yield this process's share of the traces.

        A trace's position and `draw` determine its process, so shares never overlap, whatever other processes have
        judged in the meantime. With another `draw`, what is left of one process's share is spread over all of them.
        """
        places = ((trace, zlib.crc32(f"{draw} {trace.position}".encode())) for trace in traces)
        return (trace for trace, place in places if place % self.count == self.rank)

    def total(self, number: int) -> int:
        """Return the sum of `number` over all processes. Every process has to call this method, which waits for all
        of them."""
        if self.count == 1:
            return number
        # It takes seconds to import, and a process that runs alone does not need it.
        import torch

        distributed = torch.distributed
        if not distributed.is_initialized():
            # GPUs are not needed for this: processes only tell each other that they have finished.
            distributed.init_process_group("gloo", timeout=_PATIENCE)
        sums = torch.tensor([number])
        distributed.all_reduce(sums)
        return int(sums[0])

    def agree(self, number: int) -> int:
        """Return the `number` that the first process has. Every process has to call this method."""
        return self.total(number if self.is_main else 0)

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
