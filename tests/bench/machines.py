"""How fast one machine and two score a dataset in a store on PostgreSQL, and what it costs if one is lost.

    python -m tests.bench.machines [TRACES]

A machine is a launcher with one process of one thread; two share the store, and the place where launchers meet.
Steps are counted from the first stored judgments to the last, without the start. In the third run one of two is
lost after a third of the traces, and the same commands are given again. All runs must give the same scores.
"""

import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
from sqlalchemy import func, select

from stepsight.core.judgment import Mode
from stepsight.storage.database.schema import TriangleRow
from stepsight.storage.database.store import open_store
from stepsight.storage.judgments.columns import read_gold, read_table
from stepsight.storage.judgments.evaluators import list_evaluators
from stepsight.storage.judgments.judgments import save_judgments
from stepsight.storage.traces.queries import find_dataset
from stepsight.training.synth.corpus import generate
from tests.postgresql import postgresql_server
from tests.storage.samples import add, evaluator, judge

TRACES = 2_000
# Seconds for which the machine that is left is given time to end.
PATIENCE = 60
NAME, EVALUATOR = "synthetic", "mini-bidir"


def main():
    """Print steps per second of one machine and of two, and what was left when one was lost."""
    size = int(sys.argv[1]) if len(sys.argv) > 1 else TRACES
    with postgresql_server() as server:
        addresses = [server.make() for _ in range(3)]
        for address in addresses:
            with open_store(address) as store:
                add(store, generate(0, size), dataset=NAME)
        print(f"{size:,} traces, hindsight, {EVALUATOR}")
        print(f"one machine: {rate(addresses[0], 1, size):,.0f} steps/s")
        print(f"two machines: {rate(addresses[1], 2, size):,.0f} steps/s")
        machines = start(addresses[2], 2)
        while count(addresses[2]) < size / 3:
            time.sleep(0.5)
        for pid in (*children(machines[1]), machines[1].pid):
            os.kill(int(pid), signal.SIGKILL)
        begin, left = time.perf_counter(), children(machines[0])
        try:
            end = f"ends with {machines[0].wait(PATIENCE)} after {time.perf_counter() - begin:.0f} s"
        except subprocess.TimeoutExpired:
            end = f"has not ended after {PATIENCE} s and is killed"
            for pid in (*left, machines[0].pid):
                with suppress(ProcessLookupError):
                    os.kill(int(pid), signal.SIGKILL)
        print(f"one of two lost: the other {end}; {count(addresses[2]):,} of {size:,} traces are judged")
        print(f"the same commands again: {rate(addresses[2], 2, size):,.0f} steps/s")
        print(f"the store alone takes {stored(server.make(), size):,.0f} steps/s of one writer")
        first, *others = map(scores, addresses)
        print(f"greatest difference of a probability: {max(np.abs(first - other).max() for other in others):.1e}")


def children(machine):
    return Path(f"/proc/{machine.pid}/task/{machine.pid}/children").read_text().split()


def start(address, machines):
    """Give the command on each machine."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    return [
        subprocess.Popen(
            [sys.executable, "-m", "torch.distributed.run", f"--nnodes={machines}", f"--node-rank={rank}",
             "--nproc-per-node=1", "--master-addr=127.0.0.1", f"--master-port={port}", "-m", "stepsight", "score",
             "--dataset", NAME, "--evaluator", EVALUATOR, "--mode", "hindsight", "--db", address],
            env=os.environ | {"OMP_NUM_THREADS": "1"}, stderr=subprocess.DEVNULL,
        )
        for rank in range(machines)
    ]  # fmt: skip


def rate(address, machines, size):
    """The steps judged per second, from the first judgment that is stored to the last."""
    before, commands = count(address), start(address, machines)
    while (done := count(address)) == before:
        assert commands[0].poll() is None
        time.sleep(0.5)
    begin = time.perf_counter()
    while count(address) < size:
        time.sleep(0.5)
    seconds = time.perf_counter() - begin
    assert [command.wait() for command in commands] == [0] * machines
    with open_store(address) as store:
        return (size - done) * find_dataset(store, NAME).steps / size / seconds


def stored(address, size):
    """The steps per second whose judgments the store takes if nothing has to be computed."""
    with open_store(address) as store:
        traces = add(store, generate(0, size), dataset=NAME)
        judgments = [judge(trace, "hindsight") for trace in traces]
        id = evaluator(store, EVALUATOR).id
        begin = time.perf_counter()
        save_judgments(store, id, judgments)
        return sum(len(trace.steps) for trace in traces) / (time.perf_counter() - begin)


def count(address):
    with open_store(address) as store, store.read() as session:
        return session.scalar(select(func.count()).select_from(TriangleRow))


def scores(address):
    """The probabilities of every step, offline."""
    with open_store(address) as store:
        (scored,) = list_evaluators(store)
        return read_table(store, read_gold(store, find_dataset(store, NAME)), scored.id, Mode.OFFLINE).probs


if __name__ == "__main__":
    main()
