"""Running a grid in its folder. Only unfinished runs are done, possibly several at a time.

    FOLDER/grid.json       the record that identifies the design
    FOLDER/tokenizer       the tokenizer that all runs share, if the design learns one
    FOLDER/runs/RUN        the evaluator of a run
    FOLDER/results/RUN.json, FOLDER/logs/RUN.txt
    FOLDER/results.json    all results so far, which `stepsight report grid` reads

If several runs are done at a time, or a run needs several processes, `stepsight grid` starts this module for each
run. A run can also be started by hand:

    python -m stepsight.training.experiments.grid.experiment GRID.yaml FOLDER RUN [--db URL]
"""

import argparse
import dataclasses
import json
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from stepsight.core.errors import UserError
from stepsight.core.evaluators.loading import load_evaluator
from stepsight.core.files.json_values import write_json
from stepsight.core.files.jsonl import format_trace
from stepsight.core.judgment import Judgment, Mode
from stepsight.core.metrics.baselines import BASELINES
from stepsight.core.metrics.table import build_table
from stepsight.core.models.evaluator_base import Evaluator
from stepsight.core.scoring.scorer import Scorer
from stepsight.core.trace import Trace
from stepsight.storage.database.store import Store, open_store
from stepsight.storage.judgments.evaluators import register_loaded
from stepsight.storage.judgments.judgments import save_judgments
from stepsight.storage.traces.imports import import_file
from stepsight.storage.traces.queries import find_dataset, iterate_traces
from stepsight.training.data.mixture import Mixture
from stepsight.training.experiments.grid.design import Design, HeldOutSet, RunSettings, read_design
from stepsight.training.experiments.grid.results import (
    MACRO_AUC,
    RUNS,
    WHOLE,
    Figures,
    GridResults,
    Key,
    RunResult,
    figures_of,
    read_run,
)
from stepsight.training.runs.folder import RunFolder
from stepsight.training.runs.processes import (
    MachineShare,
    PlannedRun,
    is_main_process,
    launcher,
    run_here,
    run_in_processes,
)
from stepsight.training.train.estimate import Estimate, estimate_run
from stepsight.training.train.init import learn_tokenizer
from stepsight.training.train.run import train

TOKENIZER, TRAINED = "tokenizer", "runs"
_ABOUT = ("parameters", "examples", "left_out", "steps", "tokens", "final_loss", "seconds", "devices")
_MODULE = "stepsight.training.experiments.grid.experiment"
_DESIGN, _TESTS, _LOGS = "grid.json", "tests", "logs"


@dataclass(frozen=True)
class Grid:
    """A grid of training runs: its design, the file `path` that the design was read from, and its folder."""

    design: Design
    path: Path
    folder: Path

    @property
    def root(self) -> Path:
        return self.path.parent

    def run(
        self, runs: Sequence[RunSettings], jobs: int, store: Store | None, db: str | None = None
    ) -> GridResults:
        """Do those of `runs` that are unfinished, `jobs` at a time, and return all results in the folder.

        `store` receives the traces of the test sets and the judgments, and `db` is its address. A failed run does
        not stop the others. Raises `UserError` if the folder belongs to a different design or, at the end, if any
        run failed.
        """
        self._begin()
        self._prepare(store)
        options = ["--no-store"] if store is None else (["--db", db] if db else [])
        missing = [self._planned(run, options) for run in runs if not result_path(self.folder, run).is_file()]
        if jobs == 1 and self.design.processes == 1:
            failures = run_here(missing, lambda planned: self._do(planned, store), self._announce)
        else:
            share = MachineShare(self.design.processes, self.design.threads)
            failures = run_in_processes(missing, share, jobs, self._announce)
        results = self.collect()
        failures.check()
        return results

    def collect(self) -> GridResults:
        """Write the results of all finished runs to `results.json`, and return them."""
        done = [run for run in self.design.runs() if result_path(self.folder, run).is_file()]
        results = GridResults(
            name=self.design.name,
            runs=[read_run(result_path(self.folder, run)) for run in done],
            planned=len(list(self.design.runs())),
            baselines=measure_baselines(self.design, self.root),
            notes={held.name: held.note for held in self.design.tests},
            about=self.design.notes,
        )
        write_json(self.folder / WHOLE, results.as_json())
        return results

    def _begin(self) -> None:
        values = dataclasses.asdict(self.design)
        RunFolder(self.folder, _DESIGN, free=values).begin({"sha256": self.design.sha256} | values)

    def _prepare(self, store: Store | None) -> None:
        """Prepare what all runs share: the tokenizer, and the test sets in the store."""
        tokenizer = self.folder / TOKENIZER / "tokenizer.json"
        if self.design.learn_tokenizer and not tokenizer.is_file():
            *_, last = self.design.runs()
            config = self.design.config(last)
            mixture = Mixture(config.data, self.root, config.truncation, config.seed)
            learnt = learn_tokenizer(mixture, config.vocabulary)
            write_json(tokenizer, json.loads(learnt.to_str()))
        if store is None:
            return
        for held in self.design.tests:
            path = self.folder / _TESTS / f"{held.name}.jsonl"
            path.parent.mkdir(exist_ok=True)
            lines = (json.dumps(format_trace(trace), ensure_ascii=False) for trace in held.traces(self.root))
            path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
            import_file(store, "jsonl", path, dataset_name(self.design, held))

    def _planned(self, run: RunSettings, options: Sequence[str]) -> PlannedRun:
        module = ["-m", _MODULE, str(self.path), str(self.folder), run.name, *options]
        return PlannedRun(
            name=run.name,
            result=result_path(self.folder, run),
            arguments=(*launcher(self.design.processes), *module),
            log=self.folder / _LOGS / f"{run.name}.txt",
        )

    def _do(self, planned: PlannedRun, store: Store | None) -> None:
        do_run(self.design, self.design.run_named(planned.name), self.folder, self.root, store)

    def _announce(self, planned: PlannedRun, number: int, total: int) -> None:
        done = read_run(planned.result)
        parts = [f"{test} {mode} {figures.whole[MACRO_AUC]:.3f}" for (test, mode), figures in done.figures.items()]
        time = f"{done.about.get('seconds', 0):,.0f} s"
        print(f"{number} of {total}: {planned.name}, {time}; macro-AUC {', '.join(parts)}", file=sys.stderr)


def estimate_grid(design: Design, runs: Sequence[RunSettings], root: Path, gpu: float | None = None) -> str:
    """Return the estimated needs of the runs as text. Raises `UserError`, naming the run, if a run does not
    fit into the GPU's memory."""
    estimates: dict[tuple[str, str], Estimate] = {}
    for run in runs:
        if (run.size, run.data) not in estimates:
            config = design.config(run)
            estimates[run.size, run.data] = estimate_run(config, root, gpu, design.processes)
    parts = [f"{size} {data}\n{estimate}\n" for (size, data), estimate in estimates.items()]
    return "\n".join([*parts, f"{len(runs)} runs"])


def do_run(design: Design, run: RunSettings, folder: Path, root: Path, store: Store | None) -> RunResult | None:
    """Train and measure a run, or resume it. Write and return the result. A finished run is not repeated.

    If `store` is given, it receives the judgments too. If several processes were launched together, all of them
    train, but only the first one measures and returns a result; the others return None. Raises `UserError` if the
    run fails or is being done by a different process.
    """
    result, output = result_path(folder, run), folder / TRAINED / run.name
    if result.is_file():
        return read_run(result)
    torch.set_num_threads(design.threads)
    tokenizer = str((folder / TOKENIZER).resolve()) if design.learn_tokenizer else None
    train(design.config(run, tokenizer), output, root)
    if not is_main_process():
        return None
    device = "cuda" if torch.cuda.is_available() else "cpu"
    evaluator = replace(load_evaluator(output, device, "float32"), name=f"{design.name} {run.name}")
    measured = RunResult(run, _measure(evaluator, design, root, store), _about(evaluator))
    write_json(result, measured.as_json())
    # Checkpoints are large, and the run is finished.
    shutil.rmtree(output / "checkpoints", ignore_errors=True)
    return measured


def result_path(folder: Path, run: RunSettings) -> Path:
    return folder / RUNS / f"{run.name}.json"


def dataset_name(design: Design, held: HeldOutSet) -> str:
    """Return the name of the stored dataset that holds the traces of a test set."""
    return f"{design.name} {held.name}"


def measure_baselines(design: Design, root: Path) -> dict[str, dict[Key, Figures]]:
    """Return the figures of the trivial baselines on each test set in each mode."""
    measured: dict[str, dict[Key, Figures]] = {name: {} for name in BASELINES}
    for held in design.tests:
        traces = held.traces(root)
        for name, baseline in BASELINES.items():
            for mode in held.modes:
                table = build_table((trace, baseline.score(trace, Mode(mode))) for trace in traces)
                measured[name][held.name, mode] = figures_of(table)
    return measured


def _measure(evaluator: Evaluator, design: Design, root: Path, store: Store | None) -> dict[Key, Figures]:
    measured: dict[Key, Figures] = {}
    for held in design.tests:
        traces = held.traces(root)
        judgments: list[Judgment] = []
        for mode in held.modes:
            judgments = _judge(Scorer(evaluator), traces, Mode(mode), judgments)
            if store is not None:
                _save(store, evaluator, dataset_name(design, held), judgments)
            scored = ((one.trace, one.online if one.mode == Mode.ONLINE else one.offline) for one in judgments)
            table = build_table(scored)
            measured[held.name, mode] = figures_of(table)
    return measured


def _judge(scorer: Scorer, traces: Sequence[Trace], mode: Mode, before: list[Judgment]) -> list[Judgment]:
    """Return the judgments of the traces in a mode, leaving out traces that are too long. For an evaluator that
    does not see later steps, the judgments `before` of a different mode are reused."""
    if not scorer.evaluator.sees_later_steps and before:
        return [replace(judgment, mode=mode) for judgment in before]
    return list(scorer.score(traces, mode, on_skip=lambda trace, error: None))


def _save(store: Store, evaluator: Evaluator, dataset: str, judgments: Sequence[Judgment]) -> None:
    """Store the judgments of a test set's traces. If a trace occurs twice, it is stored once."""
    stored = {trace.id: trace for trace in iterate_traces(store, find_dataset(store, dataset).id)}
    by_id = {judgment.trace.id: judgment for judgment in judgments if judgment.trace.id in stored}
    of_stored = (replace(judgment, trace=stored[id]) for id, judgment in by_id.items())
    save_judgments(store, register_loaded(store, evaluator).id, of_stored)


def _about(evaluator: Evaluator) -> dict[str, object]:
    about = {name: evaluator.provenance[name] for name in _ABOUT}
    return about | {"fingerprint": evaluator.fingerprint}


def main(argv: Sequence[str] | None = None) -> int:
    """Do one run and return 0, or return 2 if a `UserError` is raised."""
    parser = argparse.ArgumentParser()
    parser.add_argument("design", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("run", help="its name")
    parser.add_argument("--db")
    parser.add_argument("--no-store", action="store_true")
    args = parser.parse_args(argv)
    try:
        design = read_design(args.design)
        run = design.run_named(args.run)
        if args.no_store:
            do_run(design, run, args.folder, args.design.parent, None)
        else:
            with open_store(args.db) as store:
                do_run(design, run, args.folder, args.design.parent, store)
    except UserError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
