"""How fast one process and two score a dataset in a store on PostgreSQL, and what a killed process costs.

    python -m tests.bench.machines [TRACES]

A process has one thread and stands for a machine: the two share nothing but the store. Steps are counted from the
first stored judgment to the last, without the start. In the third run one of two processes is killed after a third
of the traces, which ends the other, and the same command is given again. All runs must give the same scores.
"""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from sqlalchemy import func, select

from stepsight.core.judgment import Mode
from stepsight.storage.database.schema import TriangleRow
from stepsight.storage.database.store import open_store
from stepsight.storage.judgments.columns import read_gold, read_table
from stepsight.storage.judgments.evaluators import list_evaluators
from stepsight.storage.traces.queries import find_dataset
from stepsight.training.runs.processes import launcher
from stepsight.training.synth.corpus import generate
from tests.postgresql import postgresql_server
from tests.storage.samples import add

TRACES = 2_000
NAME, EVALUATOR = "synthetic", "mini-bidir"


def main():
    """Print steps per second of one process and of two, and what was left after a kill."""
    size = int(sys.argv[1]) if len(sys.argv) > 1 else TRACES
    with postgresql_server() as server:
        addresses = [server.make() for _ in range(3)]
        for address in addresses:
            with open_store(address) as store:
                add(store, generate(0, size), dataset=NAME)
        print(f"{size:,} traces, hindsight, {EVALUATOR}")
        print(f"one process: {rate(addresses[0], 1, size):,.0f} steps/s")
        print(f"two processes: {rate(addresses[1], 2, size):,.0f} steps/s")
        command = start(addresses[2], 2)
        while count(addresses[2]) < size / 3:
            time.sleep(0.1)
        children = Path(f"/proc/{command.pid}/task/{command.pid}/children").read_text().split()
        os.kill(int(children[-1]), signal.SIGKILL)
        print(f"one of two killed: exit code {command.wait()}, {count(addresses[2]):,} of {size:,} traces judged")
        print(f"the same command again: {rate(addresses[2], 2, size):,.0f} steps/s")
        first, *others = map(scores, addresses)
        print(f"greatest difference of a probability: {max(np.abs(first - other).max() for other in others):.1e}")


def start(address, processes):
    arguments = [*launcher(processes), "-m", "stepsight", "score", "--dataset", NAME, "--evaluator", EVALUATOR,
                 "--mode", "hindsight", "--db", address]  # fmt: skip
    return subprocess.Popen(
        [sys.executable, *arguments], env=os.environ | {"OMP_NUM_THREADS": "1"}, stderr=subprocess.DEVNULL
    )


def rate(address, processes, size):
    """The steps judged per second, from the first judgment that the command stores to the last."""
    before, command = count(address), start(address, processes)
    while (done := count(address)) == before:
        assert command.poll() is None
        time.sleep(0.1)
    begin = time.perf_counter()
    while count(address) < size:
        time.sleep(0.1)
    seconds = time.perf_counter() - begin
    assert command.wait() == 0
    with open_store(address) as store:
        return (size - done) * find_dataset(store, NAME).steps / size / seconds


def count(address):
    with open_store(address) as store, store.read() as session:
        return session.scalar(select(func.count()).select_from(TriangleRow))


def scores(address):
    """The probabilities of every step, offline."""
    with open_store(address) as store:
        (evaluator,) = list_evaluators(store)
        return read_table(store, read_gold(store, find_dataset(store, NAME)), evaluator.id, Mode.OFFLINE).probs


if __name__ == "__main__":
    main()
