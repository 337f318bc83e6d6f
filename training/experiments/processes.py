"""Processes that a long command starts, several at once, each with a share of the machine; none outlives it."""

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import torch

Process = subprocess.Popen[bytes]


@dataclass(frozen=True)
class Share:
    """What a run needs: `processes`, each on a GPU where there are any, and else on `threads` processor cores."""

    processes: int
    threads: int

    def room(self) -> int:
        """How many runs there is room for at once."""
        gpus = torch.cuda.device_count()
        if gpus:
            return max(1, gpus // self.processes)
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        return max(1, cores // (self.processes * self.threads))

    def environment(self, slot: int) -> dict[str, str]:
        """The variables of a run, with the GPUs of its place among those that run at once."""
        threads = {"OMP_NUM_THREADS": str(self.threads)}
        gpus = torch.cuda.device_count()
        if not gpus:
            return os.environ | threads
        known = os.environ.get("CUDA_VISIBLE_DEVICES")
        names = known.split(",") if known else [str(number) for number in range(gpus)]
        first = slot * self.processes % len(names)
        return os.environ | threads | {"CUDA_VISIBLE_DEVICES": ",".join(names[first : first + self.processes])}


class Children:
    """Starts runs; a context manager at whose end those that are not done are ended, as they are where this process
    is told to end (SIGTERM). To be used in the main thread."""

    def __init__(self, share: Share) -> None:
        self._share = share
        self._started: list[Process] = []
        self._handler: Any = None

    def __enter__(self) -> "Children":
        self._handler = signal.signal(signal.SIGTERM, _end)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in self._started:
            process.terminate()
        for process in self._started:
            process.wait()
        signal.signal(signal.SIGTERM, self._handler)

    def start(self, arguments: Sequence[str], slot: int, log: Path | None) -> Process:
        """Python with these arguments, in a place among those that run at once; what it says is added to `log`, or,
        without one, its errors are where this process's are."""
        command, environment = [sys.executable, *arguments], self._share.environment(slot)
        if log is None:
            process = subprocess.Popen(command, stdout=subprocess.DEVNULL, env=environment)
        else:
            log.parent.mkdir(parents=True, exist_ok=True)
            with log.open("ab") as file:
                process = subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT, env=environment)
        self._started.append(process)
        return process


def _end(number: int, _: object) -> None:
    sys.exit(128 + number)
