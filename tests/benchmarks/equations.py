"""How many errors the equations of real solutions show, and how often an alarm is right.

    python -m tests.benchmarks.equations [FOLDER]

Reads the benchmarks' own files below `STEPSIGHT_DATA` (or FOLDER). Of each dataset it counts the labelled steps
that have a check, those with an equation that fails, how many of these gold calls wrong, and how many of gold's
errors they are. Every alarm on a step that gold calls right is listed; where `readings/gold_errors.csv` says that
the step is wrong nevertheless, it counts as right in the precision after reading. What 100 of MR-GSM8K's errors
are, read by hand, is in `readings/mr_gsm8k_errors.csv`: the share of the calculation slips among them that is
flagged is given. The solutions of `sft-pool` with a right answer are counted too: hardly any has an alarm. The
process ends with 1 where a goal is missed.
"""

import csv
import json
import os
import statistics
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from stepsight.core.equations import Check, Checker
from stepsight.core.trace import Trace
from stepsight.storage.importers import find_kind, read_traces
from tests.conftest import ROOT

READINGS = Path(__file__).parent / "readings"
TRAINING = "prm800k-train"
DATASETS = {
    "mr-gsm8k": ("mr-gsm8k", "mr-gsm8k/MR-GSM8K_partial.json"),
    "mr-math-invalid": ("mr-math-invalid", "mr-math/mr-math_invalid_errors.json"),
    "prm800k": ("prm800k", "prm800k/test.jsonl"),
    TRAINING: ("prm800k", "prm800k/train.jsonl"),
}
"""The kind and file of each dataset; PRM800K is measured on its test file."""

PRECISION = {"mr-gsm8k": 0.98, "mr-math-invalid": 0.95, "prm800k": 0.95}
FOUND = {"mr-gsm8k": 90, "mr-math-invalid": 16, "prm800k": 15}
SLIPS = 0.8
SECONDS = 0.05


@dataclass
class Counts:
    """What is counted in a dataset; `found` are the ids of traces whose first error is flagged."""

    steps: int = 0
    checked: int = 0
    flagged: int = 0
    wrong: int = 0
    read: int = 0
    errors: int = 0
    alarms: list[str] = field(default_factory=list)
    found: set[str] = field(default_factory=set)
    seconds: list[float] = field(default_factory=list)

    @property
    def raw(self) -> float:
        return self.wrong / self.flagged if self.flagged else 1.0

    @property
    def after_reading(self) -> float:
        return (self.wrong + self.read) / self.flagged if self.flagged else 1.0


def main() -> None:
    """Measure, print, and say by the exit code whether every goal is reached."""
    default = os.environ.get("STEPSIGHT_DATA") or ROOT / ".." / "shared" / "data"
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else default).resolve()
    counts = {name: count(name, folder) for name in DATASETS}
    print(f"{'':17}{'steps':>7}{'checked':>9}{'flagged':>9}{'wrong':>7}{'raw':>7}{'read':>7}{'errors found':>16}")
    for name, of in counts.items():
        found = f"{of.wrong} of {of.errors}"
        print(
            f"{name:17}{of.steps:7,}{of.checked:9,}{of.flagged:9,}{of.wrong:7,}{of.raw:7.3f}{of.after_reading:7.3f}"
            f"{found:>16}"
        )
    for name, of in counts.items():
        for alarm in of.alarms:
            print(f"{name} {alarm}")
    share, text = slips(counts["mr-gsm8k"])
    print(f"calculation slips among 100 errors of mr-gsm8k that are flagged: {text}")
    print(right_solutions(folder / "sft-pool" / "gsm8k_model_solutions.jsonl"))
    seconds = sorted(second for of in counts.values() for second in of.seconds)
    print(
        f"a sub-step takes {statistics.median(seconds) * 1e3:.2f} ms at the median, {seconds[-1] * 1e3:.1f} at most"
    )
    missed = [name for name, goal in PRECISION.items() if counts[name].after_reading < goal]
    missed += [f"errors of {name}" for name, goal in FOUND.items() if counts[name].wrong < goal]
    missed += ["slips"] if share < SLIPS else []
    missed += ["time"] if seconds[-1] > SECONDS else []
    print(f"missed: {', '.join(missed)}" if missed else "every goal is reached")
    sys.exit(bool(missed))


def count(name: str, folder: Path) -> Counts:
    """Check a dataset and count its labelled steps."""
    result, known = Counts(), gold_errors(name)
    for trace in traces(name, folder):
        checks = timed(trace, result.seconds)
        for number, step in enumerate(trace.steps, start=1):
            if step.valid is None:
                continue
            mine = checks[number - 1]
            failing = [(text, check) for text, check in mine if not check.holds]
            result.steps += 1
            result.checked += bool(mine)
            result.errors += not step.valid
            if not failing:
                continue
            result.flagged += 1
            if step.valid:
                reading = known.get((trace.id, number), "")
                result.read += bool(reading)
                result.alarms.append(f"{trace.id} step {number}: {describe(*failing[0])} ({reading or 'not read'})")
            else:
                result.wrong += 1
                result.found.add(trace.id)
    return result


def traces(name: str, folder: Path) -> Iterator[Trace]:
    """The traces of a dataset's file."""
    kind, path = DATASETS[name]
    with open(folder / path, "rb") as lines:
        for _, trace in read_traces(find_kind(kind), lines, path):
            yield trace


def timed(trace: Trace, seconds: list[float]) -> list[list[tuple[str, Check]]]:
    """The checks of each step with their texts; the processor's seconds of each sub-step are added to the list."""
    checker, result = Checker(trace.problem), []
    for step in trace.steps:
        mine = []
        for text in step.substeps:
            start = time.process_time()
            checks = checker.check(text)
            seconds.append(time.process_time() - start)
            mine += [(text, check) for check in checks]
        result.append(mine)
    return result


def describe(text: str, check: Check) -> str:
    """A failing check in a line."""
    equation = " ".join(text[check.start : check.end].split())
    return f"{equation}: is {check.right}" if check.right else equation


def gold_errors(name: str) -> dict[tuple[str, int], str]:
    """The steps of a dataset that gold calls right and that are wrong, by trace and number, with the reason."""
    with open(READINGS / "gold_errors.csv", encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["dataset"] == name]
    return {(row["id"], int(row["step"])): row["reading"] for row in rows}


def slips(counts: Counts) -> tuple[float, str]:
    """The share of the calculation slips, read by hand, that is flagged."""
    with open(READINGS / "mr_gsm8k_errors.csv", encoding="utf-8", newline="") as file:
        ids = [row["id"] for row in csv.DictReader(file) if row["class"] == "slip"]
    flagged = sum(id in counts.found for id in ids)
    return flagged / len(ids), f"{flagged} of {len(ids)}, {flagged / len(ids):.2f}"


def right_solutions(path: Path) -> str:
    """How many solutions with a right answer have an alarm, and how many with a wrong one."""
    totals, flagged = {True: 0, False: 0}, {True: 0, False: 0}
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            row = json.loads(line)
            checker = Checker(row["instruction"])
            checks = [check for text in row["output"].splitlines() for check in checker.check(text)]
            totals[row["is_correct"]] += 1
            flagged[row["is_correct"]] += any(not check.holds for check in checks)
    return (
        f"sft-pool: {flagged[True]} of {totals[True]:,} solutions with a right answer have an alarm, "
        f"{flagged[False]} of {totals[False]:,} with a wrong one"
    )


if __name__ == "__main__":
    main()
