"""Large evaluators on a processor: how long one trace takes, what memory, and how near to its limit batches come.

    python -m tests.benchmarks.processor [0.5B] [1.5B] [7B]

Checkpoints with random weights of genuine dimensions are written to a temporary folder, and `stepsight score` is
run on one of them as a user would, start and loading included: one trace of 270 tokens and 10 steps, in hindsight
mode, medians of `ROUNDS`. Long batches run in this process, in turn with a product of square matrices in bfloat16,
which is the limit. Exits with 1 where a goal is missed. A size for which memory or disk lack is named and left out;
so is 7B where `LARGE` is not set and it is not asked for.
"""

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from tqdm import tqdm

from stepsight.core.evaluators.loading import load_evaluator
from stepsight.core.formats.recognition import recognise
from stepsight.core.models.checkpoint import load_tokenizer
from stepsight.core.models.checkpoint_resolver import open_checkpoint
from stepsight.core.models.evaluator import ModelEvaluator
from stepsight.core.models.kernels import is_native
from stepsight.core.models.memory import free_memory, needed_memory
from stepsight.core.prompts.encoding import Encoder
from stepsight.core.prompts.template import PromptTemplate
from stepsight.core.scoring.forward import Input
from stepsight.core.scoring.packed import PackedForward
from stepsight.core.sizes import sized
from stepsight.core.trace import Trace
from tests.benchmarks.dimensions import HALF, ONE_AND_A_HALF, SEVEN, Dimensions, write_random

ROUNDS = 3
TOKENS, STEPS = 270, 10
SIZES = {"0.5B": HALF, "1.5B": ONE_AND_A_HALF, "7B": SEVEN}
SECONDS = {"0.5B": 5.0, "1.5B": 7.0, "7B": 30.0}
"""Goals for a machine of two cores that multiplies 783 GFLOP/s in bfloat16."""
RESIDENT, SHARE = 1.25, 0.75
LARGE = "STEPSIGHT_BENCH_LARGE"
# Of a long batch: its traces, their tokens and steps; the side of the square matrices, and how many there are.
_BATCH, _LONG, _READS = 2, 520, 10
_SIDE, _PRODUCTS = 2048, 16


@dataclass(frozen=True)
class Run:
    """One run of the command: the seconds that passed and those that its threads computed, and the most bytes that
    were resident, in all and without what is mapped from files."""

    seconds: float
    computed: float
    resident: int
    own: int


def main(names: list[str]) -> int:
    """Measure and print; returns the exit code."""
    unknown = set(names) - set(SIZES)
    if unknown:
        print(f"There is no size {', '.join(sorted(unknown))}: give some of {', '.join(SIZES)}.")
        return 2
    wanted = names or [size for size in SIZES if size != "7B" or os.environ.get(LARGE)]
    if "7B" not in wanted:
        print(f"7B is left out: name it, or set {LARGE}=1; it takes {sized(SEVEN.bytes)} of disk and memory.")
    if not is_native("bfloat16"):
        print("This processor has no instructions for bfloat16: the evaluators are computed in float32.")
    met = True
    with tempfile.TemporaryDirectory() as temporary:
        for size in wanted:
            of = SIZES[size]
            lacking = lack(of, Path(temporary))
            if lacking:
                print(f"{size} is left out: {lacking}")
                continue
            folder = write_random(Path(temporary), of)
            met = command(size, of, folder) and met
            if size == "1.5B":
                met = long_batches(of, folder) and met
            shutil.rmtree(folder)
    return 0 if met else 1


def lack(of: Dimensions, folder: Path) -> str:
    """What this machine lacks for an evaluator, "" where it has it."""
    needed, free = needed_memory(of.bytes // 2, "bfloat16"), free_memory()
    disk = shutil.disk_usage(folder).free
    if free is not None and needed > free:
        return f"it takes about {sized(needed)} of memory, and {sized(free)} are free."
    return f"it takes {sized(of.bytes)} of disk, and {sized(disk)} are free." if 1.1 * of.bytes > disk else ""


def command(size: str, of: Dimensions, folder: Path) -> bool:
    """Run the whole command, and print what it took; whether the goals are met."""
    trace = folder / "trace.jsonl"
    trace.write_text(json.dumps(fitting_trace(folder)))
    arguments = ["score", "--input", str(trace), "--evaluator", str(folder), "--mode", "hindsight"]
    rounds = [run([sys.executable, "-m", "stepsight", *arguments]) for _ in range(ROUNDS)]
    seconds = statistics.median(one.seconds for one in rounds)
    resident = max(one.resident for one in rounds)
    print(
        f"{size}, {sized(of.bytes)} of weights, one trace: {seconds:.1f} s (goal {SECONDS[size]:g}; "
        f"{', '.join(f'{one.seconds:.1f}' for one in rounds)}; computing "
        f"{statistics.median(one.computed for one in rounds):.1f}), resident {resident / of.bytes:.2f} of the "
        f"weights (goal {RESIDENT:g}; {sized(max(one.own for one in rounds))} not mapped from files)",
        flush=True,
    )
    return seconds <= SECONDS[size] and resident <= RESIDENT * of.bytes


def run(words: list[str]) -> Run:
    """Run a command to its end, as a shell would; raises `CalledProcessError` where it fails."""
    # Set on some machines, it has every start compile what it imports.
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    start = time.perf_counter()
    process = subprocess.Popen(words, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    resident = own = 0
    while True:
        ended, status, usage = os.wait4(process.pid, os.WNOHANG)
        if ended:
            break
        resident, own = (max(pair) for pair in zip((resident, own), _memory(process.pid), strict=True))
        time.sleep(0.02)
    seconds = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, words)
    return Run(seconds, usage.ru_utime + usage.ru_stime, resident, own)


def _memory(process: int) -> tuple[int, int]:
    """The most bytes of a process that were resident, and those that are now and lie in no file; 0 where the system
    does not tell."""
    try:
        lines = Path(f"/proc/{process}/status").read_text(encoding="ascii").splitlines()
    except OSError:
        return 0, 0
    numbers = {line.split(":")[0]: 1024 * int(line.split()[1]) for line in lines if line.endswith(" kB")}
    # What the operating system tells of an ended child counts the parent's memory too.
    return numbers.get("VmHWM", 0), numbers.get("RssAnon", 0)


def fitting_trace(folder: Path) -> dict[str, object]:
    """A trace of `STEPS` steps that is as long as it should be for an evaluator."""
    checkpoint = open_checkpoint(folder)
    template = PromptTemplate.from_dict(dict(recognise(checkpoint).template(checkpoint)))
    encoder = Encoder(load_tokenizer(folder), template)
    problem, steps = "Add the numbers from the list.", [f"{n} + {n + 3} = {2 * n + 3}." for n in range(STEPS)]
    while len(encoder.encode(Trace.of(problem, steps))) < TOKENS:
        shortest = min(range(STEPS), key=lambda place: len(steps[place]))
        steps[shortest] += " so"
    return {"id": "1", "problem": problem, "steps": steps}


def long_batches(of: Dimensions, folder: Path) -> bool:
    """Score long inputs, and print how near to the limit that is; whether the goal is met."""
    evaluator = load_evaluator(folder)
    assert isinstance(evaluator, ModelEvaluator)
    forward = PackedForward(evaluator.model)
    rng = np.random.default_rng(0)
    reads = np.arange(_LONG // _READS - 1, _LONG, _LONG // _READS)
    inputs = [Input(rng.integers(0, 8000, _LONG), _LONG, reads) for _ in range(_BATCH)]
    square = torch.randn(_SIDE, _SIDE).bfloat16()
    forward.run(inputs[:1])
    limits, speeds = [], []
    for _ in tqdm(range(ROUNDS), desc="rounds", disable=not sys.stderr.isatty()):
        limits.append(2 * _PRODUCTS * _SIDE**3 / _seconds(lambda: [square @ square for _ in range(_PRODUCTS)]))
        speeds.append(2 * _BATCH * of.products(_LONG, len(reads)) / _seconds(lambda: forward.run(inputs)))
    limit, speed = statistics.median(limits), statistics.median(speeds)
    print(
        f"1.5B, long batches in {evaluator.dtype}: {speed / 1e9:.0f} GFLOP/s, {speed / limit:.2f} of the limit of "
        f"{limit / 1e9:.0f} (goal {SHARE:g})",
        flush=True,
    )
    return speed >= SHARE * limit


def _seconds(job: Callable[[], object]) -> float:
    start = time.perf_counter()
    job()
    return time.perf_counter() - start


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
