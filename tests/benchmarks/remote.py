"""How many traces a minute go through to a server that answers at once, and the memory that it takes.

    python -m tests.benchmarks.remote [--traces 100000]

A process of its own speaks vLLM's wire format and computes next to nothing; `stepsight score` asks it about a file
of synthetic traces. Exits with 1 where fewer than `FEWEST` traces a minute went through, or the memory at the end
is over `GROWTH` times that after a fifth of the time.
"""

import argparse
import json
import multiprocessing
import subprocess
import sys
import tempfile
import time
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np

from stepsight.core.models.model import THREE_WAY
from stepsight.training.synth.corpus import generate
from tests.checkpoints import write_evaluator
from tests.vllm_server import Day, VllmServer

FEWEST = 2_000
GROWTH = 1.1


class AtOnce:
    """Classes that follow from each token alone."""

    def __init__(self) -> None:
        self._rows = np.random.default_rng(0).normal(size=(4096, sum(row is not None for row in THREE_WAY)))

    def classes(self, ids: list[int]) -> np.ndarray:
        return self._rows[ids]

    def likely(self, ids: list[int]) -> None:
        return None


class Forgetful(list[object]):
    """What was asked is not kept."""

    def append(self, _: object) -> None:
        pass


def serve(folder: Path, address: Connection) -> None:
    """Serve until the other end is closed."""
    server = VllmServer(AtOnce(), folder, context=4096, day=Day(bodies=Forgetful()))
    with server.running() as url:
        address.send(server.address(url))
        address.recv()


def memory_of(pid: int) -> float:
    """What the process holds, in MB."""
    text = Path(f"/proc/{pid}/statm").read_text(encoding="ascii")
    return int(text.split()[1]) * 4096 / 1e6


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--traces", type=int, default=100_000)
    traces = parser.parse_args().traces
    with tempfile.TemporaryDirectory() as name:
        folder = write_evaluator(Path(name) / "prm", is_causal=True, max_position_embeddings=4096)
        given, written = Path(name) / "traces.jsonl", Path(name) / "scores.jsonl"
        with open(given, "w", encoding="utf-8") as file:
            for number, trace in enumerate(generate(31, traces)):
                row = {"id": str(number), "problem": trace.problem, "steps": [step.text for step in trace.steps]}
                file.write(json.dumps(row) + "\n")
        ours, theirs = multiprocessing.Pipe()
        server = multiprocessing.get_context("spawn").Process(target=serve, args=(folder, theirs), daemon=True)
        server.start()
        command = [sys.executable, "-m", "stepsight", "score", "--input", str(given), "--evaluator", ours.recv()]
        start = time.monotonic()
        with open(written, "w", encoding="utf-8") as out, subprocess.Popen(command, stdout=out) as scoring:
            held: list[tuple[float, float]] = []
            while scoring.poll() is None:
                held.append((time.monotonic() - start, memory_of(scoring.pid)))
                time.sleep(0.5)
        took = time.monotonic() - start
        assert scoring.returncode == 0
        with open(written, encoding="utf-8") as file:
            assert sum(1 for _ in file) == traces
        ours.send(None)
        server.join(30)
    early = max(memory for at, memory in held if at <= took / 5)
    last = max(memory for _, memory in held)
    rate = 60 * traces / took
    print(f"{traces:,} traces in {took:.0f} s: {rate:,.0f} a minute")
    print(f"memory: {early:.0f} MB at most in the first fifth, {last:.0f} MB at most")
    return int(rate < FEWEST or last > GROWTH * early)


if __name__ == "__main__":
    sys.exit(main())
