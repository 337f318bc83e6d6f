"""Critics against a real server of OpenAI's chat completions: llama.cpp's, with any small model.

    python -m tests.benchmarks.critic_server llama-server model.gguf [--traces 4] [--arguments="-t 2 --no-jinja"]

Scores short traces of the gallery through a JSON schema, by text alone, with samples and in hindsight, one that is
longer than the context, and some while the server is killed and started again. Prints what each took; exits with 1
where a judgment is neither right in shape nor missing, where one is lost or made twice, or where the key of the
environment is printed. What a small model says is not looked at.
"""

import argparse
import json
import os
import shlex
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import httpx2
import numpy as np
from sqlalchemy import func, select

from stepsight.core.judgment import Judgment
from stepsight.core.places import asset
from stepsight.core.trace import Trace
from stepsight.storage.database.schema import JudgmentRow
from stepsight.storage.database.store import Store, open_store
from stepsight.storage.judgments.judgments import read_judgments
from stepsight.storage.traces.queries import find_dataset, iterate_traces
from tests.storage.samples import add

KEY = "sk-this-is-never-printed"
CONTEXT = 4096
# Of a longest answer, so that a model that does not find its end costs no minutes.
TOKENS = 400


class Llama:
    """The server, on a port of its own."""

    def __init__(self, program: str, model: str, more: Sequence[str], port: int = 8177) -> None:
        self._line = [program, "-m", model, "-c", f"{2 * CONTEXT}", "-np", "2", "--host", "127.0.0.1"]
        self._line += ["--port", f"{port}", *more]
        self.url = f"http://127.0.0.1:{port}/v1"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Come back when it answers."""
        self._process = subprocess.Popen(self._line, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for _ in range(600):
            time.sleep(0.1)
            try:
                if httpx2.get(f"{self.url}/models", timeout=1).status_code == 200:
                    return
            except httpx2.HTTPError:
                continue
        raise SystemExit(f"{shlex.join(self._line)} does not answer.")

    def kill(self) -> None:
        """End it as a crash does."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


def gallery(count: int) -> list[Trace]:
    """The traces with the fewest steps."""
    rows = [json.loads(line) for line in asset("traces", "gallery.jsonl").read_text().splitlines()]
    rows.sort(key=lambda row: (len(row["steps"]), row["id"]))
    return [Trace.of(row["problem"], row["steps"][:3], id=row["id"]) for row in rows[:count]]


def faults(judgments: Sequence[Judgment], samples: int) -> list[str]:
    """What is wrong in shape: probabilities that no samples give, no rationale, no tokens."""
    found = []
    for one in judgments:
        rows = one.result.probs if one.hindsight is None else one.hindsight.packed  # type: ignore[union-attr]
        shares = {round(part / of, 5) for of in range(1, samples + 1) for part in range(of + 1)}
        if not np.allclose(rows.sum(axis=1), 1) or not {round(float(x), 5) for x in rows.ravel()} <= shares:
            found.append(f"{one.trace.id}: {rows.tolist()} are no shares")
        if "**Step 1" not in one.rationale or one.spent is None or not one.spent.completion_tokens:
            found.append(f"{one.trace.id}: without rationale or tokens")
    return found


class Bench:
    """Runs commands against a store, and keeps what was wrong."""

    def __init__(self, llama: Llama, folder: Path) -> None:
        self.llama, self.folder = llama, folder
        self.wrong: list[str] = []

    def store(self, name: str, traces: Sequence[Trace]) -> str:
        path = str(self.folder / f"{name}.db")
        with open_store(path) as store:
            add(store, traces)
        return path

    def score(self, db: str, options: str, *more: str) -> tuple[int, str]:
        """`stepsight score` in a process of its own; its exit code and what it wrote to standard error."""
        spec = f"critic:{self.llama.url}#gemma,max_tokens={TOKENS}{options}"
        line = [sys.executable, "-m", "stepsight", "score", "sums", "--evaluator", spec, "--db", db, *more]
        done = subprocess.run(
            line, capture_output=True, text=True, check=False, env=os.environ | {"STEPSIGHT_API_KEY": KEY}
        )
        if KEY in done.stdout + done.stderr:
            self.wrong.append(f"{options}: the key is printed")
        if "Traceback" in done.stderr:
            self.wrong.append(f"{options}: {done.stderr[-2000:]}")
        return done.returncode, done.stderr

    def check(self, name: str, traces: Sequence[Trace], options: str, *more: str, samples: int = 1) -> None:
        """Score the traces, and print how many have a judgment."""
        db, start = self.store(name, traces), time.monotonic()
        code, told = self.score(db, options, *more)
        judgments = read(db)
        self.wrong += [f"{name}: {fault}" for fault in faults(judgments, samples)]
        if code or len(judgments) + left_out(told) != len(traces):
            self.wrong.append(f"{name}: exit code {code}, {len(judgments)} of {len(traces)} judged: {told}")
        print(f"{name:10} {len(judgments)} of {len(traces)} judged in {time.monotonic() - start:.0f} s")
        print("".join(f"           {line}\n" for line in told.splitlines() if ": a critic by" not in line), end="")

    def kill(self, traces: Sequence[Trace]) -> None:
        """Have the server killed in the middle, and go on."""
        db = self.store("killed", traces)
        timer = threading.Thread(target=self._kill_after_one, args=(db,))
        timer.start()
        code, told = self.score(db, ",requests=1")
        timer.join()
        first = {one.trace.id: one.result for one in read(db)}
        self.llama.start()
        again, more = self.score(db, ",requests=1")
        judgments = read(db)
        same = [one for one in judgments if one.trace.id in first]
        if code != 2 or again or len(judgments) + left_out(more) != len(traces) or len(same) != len(first):
            self.wrong.append(f"killed: exit codes {code}, {again}, {len(first)}, {len(judgments)}: {told} {more}")
        with open_store(db) as store, store.read() as session:
            if session.scalar(select(func.count()).select_from(JudgmentRow)) != len(judgments):
                self.wrong.append("killed: a judgment is there twice")
        print(f"killed     {len(first)} of {len(traces)} judged before, {len(judgments)} in the end")

    def _kill_after_one(self, db: str) -> None:
        until = time.monotonic() + 300
        while not read(db) and time.monotonic() < until:
            time.sleep(0.5)
        self.llama.kill()


def left_out(told: str) -> int:
    """How many traces a run says that it has no judgment of."""
    lines = [line for line in told.splitlines() if "no judgment, and will be asked about again" in line]
    return sum(int(line.split()[0].replace(",", "")) for line in lines)


def read(db: str) -> list[Judgment]:
    """All judgments of the one dataset."""

    def judgments(store: Store) -> list[Judgment]:
        traces = iterate_traces(store, find_dataset(store, "sums").id)
        return [one for trace in traces for one in read_judgments(store, trace)]

    with open_store(db) as store:
        return judgments(store)


def main() -> int:
    """Run them all; returns the exit code."""
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("model")
    parser.add_argument("--traces", type=int, default=4)
    parser.add_argument("--arguments", default="", help="more of the server's, such as its chat template")
    args = parser.parse_args()
    llama = Llama(args.program, args.model, shlex.split(args.arguments))
    traces = gallery(args.traces)
    long = Trace.of("What is 1 + 1? " * CONTEXT, ["1 + 1 = 2."], id="long")
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(llama, Path(folder))
        parts: list[Callable[[], Any]] = [
            lambda: bench.check("schema", traces, ""),
            lambda: bench.check("text", traces[:2], ",schema=no"),
            lambda: bench.check("samples", traces[:2], ",samples=3", samples=3),
            lambda: bench.check("hindsight", traces[:2], "", "--mode", "hindsight", "--yes"),
            lambda: bench.check("too long", [traces[0], long], ""),
            lambda: bench.kill(traces),
        ]
        try:
            llama.start()
            for part in parts:
                part()
        finally:
            llama.kill()
    print("\n".join(bench.wrong))
    return 1 if bench.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
