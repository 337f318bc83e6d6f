"""How much memory a large dataset takes to import, to judge, to evaluate and to have as a frame, and how long many
evaluators take.

    python -m tests.bench evaluation

Every phase runs in a process of its own, whose greatest resident size is reported. The traces are synthetic, of
four to nine steps; the judgments are drawn at random, in hindsight mode, the largest there is. At the end `MANY`
evaluators are measured on `SMALL` traces. The frame is of `FRAMED` evaluators in both modes, and of the first size.
"""

import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from stepsight.core.judgment import Judgment, Mode
from stepsight.core.metrics.bootstrap import DRAWS
from stepsight.core.metrics.shortcuts import PREFIX
from stepsight.core.scores import Hindsight
from stepsight.storage.database.store import open_store
from stepsight.storage.exports.frames import frame
from stepsight.storage.judgments.evaluators import list_evaluators, register_evaluator
from stepsight.storage.judgments.judgments import missing_traces, save_judgments
from stepsight.storage.traces.imports import import_file
from stepsight.storage.traces.queries import find_dataset
from tests.bench.figures import Figure

SIZES = (10_000, 100_000)
DATASET = "large"
EVALUATOR = "random"
SMALL, MANY = 3_000, 12
FRAMED = 5


def figures():
    """Measure every phase at every size, then many evaluators."""
    print(f"{'traces':>9}  {'phase':14}{'seconds':>9}{'peak MB':>9}")
    small, large = SIZES
    phases = report(small, "import", "judge", "evaluate", *["judge"] * (FRAMED - 1), "frame")
    yield Figure(f"`evaluate` of {small:,} traces", phases["evaluate"]["seconds"], "s", 7.3)
    phases = report(large, "import", "judge", "evaluate")
    yield Figure(f"import of {large:,} traces", phases["import"]["seconds"], "s", 60)
    yield Figure("its memory", phases["import"]["peak"], "MB", 300)
    yield Figure(f"`evaluate` of {large:,} traces", phases["evaluate"]["seconds"], "s")
    yield Figure("its memory", phases["evaluate"]["peak"], "MB", 300)
    phases = report(SMALL, "import", *["judge"] * MANY, "evaluate")
    what = f"`evaluate` of {SMALL:,} traces and {MANY} evaluators, every baseline and {DRAWS:,} draws"
    yield Figure(what, phases["evaluate"]["seconds"], "s")


def report(size, *phases):
    """Run phases in turn on one store and print what each takes; returns the seconds and peak MB of each."""
    measured = {}
    with tempfile.TemporaryDirectory() as name:
        write_file(Path(name) / "traces.jsonl", size)
        for phase in phases:
            result = json.loads(subprocess.check_output([sys.executable, "-m", __name__, phase, name]))
            print(f"{size:>9,}  {phase:14}{result['seconds']:>9.1f}{result['peak']:>9.0f}", flush=True)
            measured[phase] = result
    return measured


def run_phase(phase, folder):
    """Run a phase and print its seconds and the greatest resident size in MB of this process and of the command
    that it runs."""
    start = time.perf_counter()
    PHASES[phase](folder)
    # Kilobytes on Linux, bytes on macOS.
    unit = 1e6 if sys.platform == "darwin" else 1e3
    peak = max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)) / unit
    print(json.dumps({"seconds": time.perf_counter() - start, "peak": peak}))


def write_file(path, size):
    """Traces in the plain format."""
    rng = random.Random(0)
    with open(path, "w", encoding="utf-8") as file:
        for number in range(size):
            steps = [f"Step {i}: {rng.random()} and so {rng.random()} follows." for i in range(rng.randint(4, 9))]
            labels = [rng.choice(("pos", "pos", "pos", "neu", "neg")) for _ in steps]
            row = {"id": str(number), "problem": f"Problem {number}", "steps": steps, "labels": labels}
            file.write(json.dumps(row) + "\n")


def import_traces(folder):
    with open_store(str(folder / "store.db")) as store:
        import_file(store, "jsonl", folder / "traces.jsonl", DATASET)


def judge(folder):
    """Judgments of one more evaluator."""
    with open_store(str(folder / "store.db")) as store:
        name = f"{EVALUATOR}-{len(list_evaluators(store))}"
        row = register_evaluator(store, name=name, fingerprint=name, format="none", attention="none")
        traces = missing_traces(store, find_dataset(store, DATASET).id, row.id, Mode.HINDSIGHT)
        save_judgments(store, row.id, judgments(traces))


def judgments(traces):
    """A random triangle for each trace."""
    rng = np.random.default_rng(0)
    for trace in traces:
        n = len(trace.substeps)
        packed = rng.dirichlet([1, 1, 3], n * (n + 1) // 2).astype(np.float32)
        yield Judgment(trace, Mode.HINDSIGHT, Hindsight.from_packed(packed))


def evaluate(folder):
    """`stepsight evaluate --json`."""
    command = [sys.executable, "-m", "stepsight", "evaluate", "--dataset", DATASET, "--json"]
    found = json.loads(subprocess.check_output([*command, "--db", str(folder / "store.db")]))
    rows = [row for row in found["rows"] if not row["evaluator"].startswith(PREFIX)]
    assert len(rows) == 4 * len({row["evaluator"] for row in rows})
    for row in rows:
        low, high = row["intervals"]["step_auc"]
        assert 0.4 < low < high < 0.6


def measure_frame(folder):
    with open_store(str(folder / "store.db")) as store:
        steps = frame(store, DATASET)
    assert steps.evaluator.nunique() == FRAMED
    assert len(steps) == 2 * FRAMED * int(steps.groupby("trace").step.max().sum())


PHASES: dict[str, Callable[[Path], None]] = {
    "import": import_traces,
    "judge": judge,
    "evaluate": evaluate,
    "frame": measure_frame,
}


# A phase, in a process of its own.
if __name__ == "__main__":
    run_phase(sys.argv[1], Path(sys.argv[2]))
