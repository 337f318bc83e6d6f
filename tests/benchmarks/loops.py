"""Loops that have candidates for their next step scored: eight at once against one alone, and against the command.

    python -m tests.benchmarks.loops [--minutes 10] [--clients 8] [--candidates 8] [--pause 1] [--evaluator NAME]

starts `stepsight app`, and beam searches ask it by `stepsight.Client`. Three kinds run in turn, several times over,
so that a machine whose speed drifts gives ratios that hold: one loop, and all of them, each pausing for `--pause`
seconds on the average between two calls, as a loop does that has to generate its candidates; and all of them
without a pause, which is as fast as the server goes. After these, `stepsight score` reads the same inputs. Prints
p50 and p95 of a call, errors, and tokens per second, counted as read from scratch. Exits with 1 at an error, a p95
with all loops over `LONGER` times that of one, or fewer tokens per second than `SHARE` of the command's.
"""

import argparse
import json
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from stepsight import Client, Trace, load_evaluator
from stepsight.core.errors import UserError
from stepsight.core.models.evaluator import ModelEvaluator
from stepsight.storage.database.store import open_store
from stepsight.training.synth.corpus import generate
from tests.benchmarks.viewers import percentile, served

LONGER, SHARE = 3.0, 0.8
# Inputs that the command reads, at most.
_READ = 1_500


@dataclass
class Calls:
    """The seconds of each call of one kind of loops, the seconds that the loops ran, what they had scored, and what
    failed."""

    seconds: list[float] = field(default_factory=list)
    ran: float = 0.0
    asked: list[Trace] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    def line(self, name: str) -> str:
        """Them in words."""
        if not self.seconds:
            return f"{name}: no call, {len(self.errors)} errors"
        p50, p95 = (1000 * percentile(self.seconds, share) for share in (0.5, 0.95))
        return f"{name}: {len(self.seconds):,} calls, p50 {p50:.0f} ms, p95 {p95:.0f} ms, {len(self.errors)} errors"


def search(client: Client, chance: random.Random, until: float, pause: float, count: int, into: Calls) -> None:
    """Beam searches, one after the other: each step the best of some candidates."""
    while time.monotonic() < until:
        for problem, steps, candidates in _proposals(chance, count):
            if pause:
                time.sleep(min(chance.expovariate(1 / pause), max(0.0, until - time.monotonic())))
            if time.monotonic() >= until:
                return
            start = time.perf_counter()
            try:
                rows = client.score_next(problem, steps, candidates)
            except UserError as error:
                into.errors.append(str(error)[:300])
                continue
            into.seconds.append(time.perf_counter() - start)
            into.asked += [Trace.of(problem, [*steps, text]) for text in candidates]
            steps.append(candidates[int(np.argmax(rows[:, 2]))])


def _proposals(chance: random.Random, count: int) -> Iterator[tuple[str, list[str], list[str]]]:
    """A problem with the steps so far, which the caller appends to, and candidates for the next one."""
    (trace,) = generate(chance.randrange(10**6), 1)
    steps: list[str] = []
    for text in trace.substeps:
        yield trace.problem, steps, [f"{text} That is {chance.randint(2, 99)}." for _ in range(count)]


def run(address: str, args: argparse.Namespace, clients: int, pause: float, seconds: float, into: Calls) -> None:
    """Let some loops run for so many seconds."""
    begin = time.monotonic()
    threads = []
    for number in range(clients):
        client = Client(address, evaluator=args.evaluator)
        chance = random.Random(begin + number)
        work = (client, chance, begin + seconds, pause, args.candidates, into)
        threads.append(threading.Thread(target=search, args=work))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    into.ran += time.monotonic() - begin


def command(folder: Path, evaluator: str, traces: list[Trace]) -> float:
    """The seconds of `stepsight score` for traces."""
    path = folder / "asked.jsonl"
    rows = ({"id": str(number), "problem": one.problem, "steps": one.substeps} for number, one in enumerate(traces))
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    words = [sys.executable, "-m", "stepsight", "score", "--input", str(path), "--evaluator", evaluator]
    start = time.perf_counter()
    subprocess.run([*words, "--mode", "offline"], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.perf_counter() - start


def tokens(evaluator: ModelEvaluator, traces: list[Trace]) -> int:
    """How many tokens the traces have."""
    return sum(len(evaluator.encode(trace)) for trace in traces)


def main() -> int:
    """Measure and print; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--candidates", type=int, default=8)
    parser.add_argument("--pause", type=float, default=1.0)
    parser.add_argument("--evaluator", default="mini-bidir")
    args = parser.parse_args()
    evaluator = load_evaluator(args.evaluator)
    assert isinstance(evaluator, ModelEvaluator)
    one, every, fast = Calls(), Calls(), Calls()
    rounds = max(1, round(args.minutes))
    seconds = 60 * args.minutes / rounds / 3
    alone = read = 0.0
    amount = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with open_store(str(folder / "store.db")):
            pass
        with served(folder) as port:
            address = f"http://127.0.0.1:{port}"
            run(address, args, 1, 0.0, 2.0, Calls())
            for _ in range(rounds):
                run(address, args, 1, args.pause / args.clients, seconds, one)
                run(address, args, args.clients, args.pause, seconds, every)
                before = len(fast.asked)
                run(address, args, args.clients, 0.0, seconds, fast)
                asked = fast.asked[before:][:_READ]
                # What a start takes is no part of it.
                alone += command(folder, args.evaluator, asked[:1])
                read += command(folder, args.evaluator, asked)
                amount += tokens(evaluator, asked[1:])
    return _report(args, one, every, fast, tokens(evaluator, fast.asked) / fast.ran, amount / (read - alone))


def _report(args: argparse.Namespace, one: Calls, every: Calls, fast: Calls, rate: float, limit: float) -> int:
    print(f"{args.evaluator}, {args.candidates} candidates a call")
    print(one.line("one loop"))
    print(every.line(f"{args.clients} loops, each making candidates for {args.pause:g} s"))
    print(fast.line(f"{args.clients} loops without a pause"))
    share = f"{rate / limit:.2f} (goal {SHARE:g})"
    print(f"tokens/s: {rate:,.0f} without a pause, {limit:,.0f} by stepsight score, {share}")
    errors = one.errors + every.errors + fast.errors
    for error, times in Counter(errors).most_common(5):
        print(f"  {times} x {error}")
    longer, fastest = (percentile(some.seconds, 0.95) / percentile(one.seconds, 0.95) for some in (every, fast))
    print(f"p95 against one loop: {longer:.1f} (goal {LONGER:g}), without a pause {fastest:.1f}")
    return int(bool(errors) or longer > LONGER or rate < SHARE * limit)


if __name__ == "__main__":
    sys.exit(main())
