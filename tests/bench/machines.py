"""How fast one machine and two score a dataset in a store on PostgreSQL, and what it costs if one is lost.

    python -m tests.bench.machines [TRACES]

A machine is a launcher with one process of one thread; two share the store, and the place where launchers meet.
Steps are counted per second of processor time, without that of a start, so that other programs make no difference.
In the third run one of two is lost after a third of the traces, and the same commands are given again. All runs
must give the same scores.
"""

import os
import resource
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
        with open_store(addresses[0]) as store:
            steps = find_dataset(store, NAME).steps
        print(f"{size:,} traces, {steps:,} steps, hindsight, {EVALUATOR}")
        spent, idle = zip(*[(work(addresses[n - 1], n), work(addresses[n - 1], n)) for n in (1, 2)], strict=True)
        for number, seconds, start_up in zip((1, 2), spent, idle, strict=True):
            rate = number * steps / (seconds - start_up)
            print(f"{number} of them: {rate:,.0f} steps/s; a start takes {start_up / number:.0f} s")
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
        again = work(addresses[2], 2) - idle[1]
        print(
            f"the same commands again: {again:.0f} s of processor time, where all took {spent[1] - idle[1]:.0f} s"
        )
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


def work(address, machines):
    """The seconds of processor time in which the machines judge what has no judgment, with their start."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert [command.wait() for command in start(address, machines)] == [0] * machines
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


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
