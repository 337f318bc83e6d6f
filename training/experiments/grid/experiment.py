"""Running a grid in its folder. Only unfinished runs are done, possibly several at a time.

    FOLDER/grid.json       the record that identifies the design
    FOLDER/tokenizer       the tokenizer that all runs share, if the design learns one
    FOLDER/runs/RUN        the evaluator of a run
    FOLDER/done/RUN.json   what identifies and describes the evaluator of a finished run
    FOLDER/logs/RUN.txt
    FOLDER/results.json    all results so far, which `stepsight report grid` reads

A run trains an evaluator, which then judges the test sets in the store. The results are measured there. If several
runs are done at a time, or a run needs several processes, `stepsight grid` starts this module for each run. A run
can also be started by hand:

    python -m stepsight.training.experiments.grid.experiment GRID.yaml FOLDER RUN [--db URL] [--source-db URL]
"""

import argparse
import json
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from stepsight.core.errors import UserError
from stepsight.core.evaluators.loading import load_evaluator
from stepsight.core.files.jsonl import format_trace
from stepsight.core.files.whole_files import read_json, write_json
from stepsight.core.judgment import Mode
from stepsight.core.models.evaluator_base import Evaluator
from stepsight.core.scoring.scorer import Scorer
from stepsight.storage.database.store import Store, open_store
from stepsight.storage.judgments.columns import read_gold
from stepsight.storage.judgments.evaluators import list_evaluators, register_loaded
from stepsight.storage.judgments.judgments import missing_traces, save_judgments
from stepsight.storage.traces.imports import import_file
from stepsight.storage.traces.queries import Dataset, find_dataset
from stepsight.training.data.mixture import Mixture
from stepsight.training.evaluate.evaluation import baseline_tables, read_tables
from stepsight.training.evaluate.judging import MeasuredEvaluator
from stepsight.training.experiments.grid.design import Design, HeldOutSet, RunSettings, read_design
from stepsight.training.experiments.grid.results import (
    MACRO_AUC,
    WHOLE,
    GridResults,
    RunResult,
    Tests,
    figures_of,
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
from stepsight.training.train.init import learn_tokenizer
from stepsight.training.train.run import train

_ABOUT = ("parameters", "examples", "left_out", "steps", "tokens", "final_loss", "seconds", "devices")
_MODULE = "stepsight.training.experiments.grid.experiment"
_FINGERPRINT = "fingerprint"


@dataclass(frozen=True)
class Grid:
    """A grid of training runs: its design, the file `path` that the design was read from, and its folder.

    `db` is the address of the store that receives the traces of the test sets and the judgments. Sources of kind
    `store` are read from the store at `source_db`.
    """

    design: Design
    path: Path
    folder: Path
    db: str | None = None
    source_db: str | None = None

    @property
    def root(self) -> Path:
        return self.path.parent

    def done_path(self, run: RunSettings) -> Path:
        """Return the path of the description of a run's evaluator, which exists once the run is finished."""
        return self.folder / "done" / f"{run.name}.json"

    def dataset(self, store: Store, held: HeldOutSet) -> Dataset:
        """Return the stored dataset that holds the traces of a test set."""
        return find_dataset(store, f"{self.design.name} {held.name}")

    def run(self, runs: Sequence[RunSettings], jobs: int = 1) -> GridResults:
        """Do those of `runs` that are unfinished, `jobs` at a time, and write and return all results in the folder.

        A failed run does not stop the others. Raises `UserError` if the folder belongs to a different design or, at
        the end, if any run failed or none is finished.
        """
        RunFolder(self.folder, "grid.json").begin(self.design.identity())
        with open_store(self.db) as store:

            def announce(planned: PlannedRun, number: int, total: int) -> None:
                about = read_json(planned.result)
                parts = [
                    f"{test} {mode} {figures[MACRO_AUC] or float('nan'):.3f}"
                    for test, modes in self._measure(store, {planned.name: about}).get(planned.name, {}).items()
                    for mode, figures in modes.items()
                ]
                time = f"{about.get('seconds', 0):,.0f} s"
                print(f"{number} of {total}: {planned.name}, {time}; macro-AUC {', '.join(parts)}", file=sys.stderr)

            self.prepare(store)
            missing = [self._plan_run(run) for run in runs if not self.done_path(run).is_file()]
            if jobs == 1 and self.design.processes == 1:
                failures = run_here(missing, lambda planned: self.do(planned.name, store), announce)
            else:
                share = MachineShare(self.design.processes, self.design.threads)
                failures = run_in_processes(missing, share, jobs, announce)
            if not any(self.done_path(run).is_file() for run in self.design.runs()):
                failures.check()
            results = self.results(store)
        write_json(self.folder / WHOLE, results.as_json())
        failures.check()
        return results

    def do(self, name: str, store: Store) -> None:
        """Train the evaluator of the run called `name`, or resume it, and have it judge the test sets.

        If several processes were launched together, all of them train, but only the first one judges. Raises
        `UserError` if the run fails or is being done by a different process.
        """
        run, output = self.design.run_named(name), self.folder / "runs" / name
        torch.set_num_threads(self.design.threads)
        tokenizer = str((self.folder / "tokenizer").resolve()) if self.design.learn_tokenizer else None
        train(self.design.config(run, tokenizer), output, self.root, self.source_db)
        if not is_main_process():
            return
        device = "cuda" if torch.cuda.is_available() else "cpu"
        evaluator = replace(load_evaluator(output, device, "float32"), name=f"{self.design.name} {name}")
        self._judge(evaluator, store)
        about = {key: evaluator.provenance[key] for key in _ABOUT} | {_FINGERPRINT: evaluator.fingerprint}
        self.done_path(run).parent.mkdir(exist_ok=True)
        write_json(self.done_path(run), about)
        # Checkpoints are large, and the run is finished.
        shutil.rmtree(output / "checkpoints", ignore_errors=True)

    def prepare(self, store: Store) -> None:
        """Prepare what all runs share: the tokenizer, and the test sets in the store."""
        tokenizer = self.folder / "tokenizer" / "tokenizer.json"
        if self.design.learn_tokenizer and not tokenizer.is_file():
            *_, last = self.design.runs()
            config = self.design.config(last)
            mixture = Mixture(config.data, self.root, config.truncation, config.seed, self.source_db)
            write_json(tokenizer, json.loads(learn_tokenizer(mixture, config.vocabulary).to_str()))
        for held in self.design.tests:
            path = self.folder / "tests" / f"{held.name}.jsonl"
            path.parent.mkdir(exist_ok=True)
            traces = held.traces(self.root, self.source_db)
            lines = (json.dumps(format_trace(trace), ensure_ascii=False) for trace in traces)
            path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
            import_file(store, "jsonl", path, f"{self.design.name} {held.name}")

    def results(self, store: Store) -> GridResults:
        """Return the results of the finished runs, measured by the judgments in the store. Raises `UserError` if it
        lacks those of a run."""
        runs = [run for run in self.design.runs() if self.done_path(run).is_file()]
        about = {run.name: read_json(self.done_path(run)) for run in runs}
        measured = self._measure(store, about, with_baselines=True)
        for run in runs:
            if run.name not in measured:
                raise UserError(
                    f"{self.done_path(run)}: the store has no judgments of this evaluator.",
                    "Name the store that has them with --db, or remove the file to have it judge the tests again.",
                )
        return GridResults(
            name=self.design.name,
            planned=len(list(self.design.runs())),
            about=self.design.notes,
            notes={held.name: held.note for held in self.design.tests},
            baselines={name: tests for name, tests in measured.items() if name not in about},
            runs=tuple(RunResult(run, about[run.name], measured[run.name]) for run in runs),
        )

    def _plan_run(self, run: RunSettings) -> PlannedRun:
        words: list[object] = [self.path, self.folder, run.name]
        words += ["--db", self.db] if self.db else []
        words += ["--source-db", self.source_db] if self.source_db else []
        return PlannedRun(
            name=run.name,
            result=self.done_path(run),
            arguments=(*launcher(self.design.processes), "-m", _MODULE, *map(str, words)),
            log=self.folder / "logs" / f"{run.name}.txt",
        )

    def _judge(self, evaluator: Evaluator, store: Store) -> None:
        """Have an evaluator judge the test sets. Traces that are too long are left out."""
        row, scorer = register_loaded(store, evaluator), Scorer(evaluator)
        for held in self.design.tests:
            # A hindsight judgment contains both modes, and takes no longer than an online one.
            mode = Mode.HINDSIGHT if len(held.modes) > 1 else Mode(held.modes[0])
            traces = missing_traces(store, self.dataset(store, held).id, row.id, mode)
            save_judgments(store, row.id, scorer.score(traces, mode, on_skip=lambda trace, error: None))

    def _measure(
        self, store: Store, about: Mapping[str, Mapping[str, Any]], *, with_baselines: bool = False
    ) -> dict[str, Tests]:
        """Return the figures of runs, given by their names and what is known about them, and of the trivial
        baselines, by name."""
        stored = {row.fingerprint: row for row in list_evaluators(store)}
        evaluators = [
            MeasuredEvaluator(name, row.outputs, row.id)
            for name, of_run in about.items()
            if (row := stored.get(of_run.get(_FINGERPRINT, ""))) is not None
        ]
        measured: dict[str, Tests] = {}
        for held in self.design.tests:
            gold, modes = read_gold(store, self.dataset(store, held)), [Mode(mode) for mode in held.modes]
            trivial = baseline_tables(store, gold, modes) if with_baselines else {mode: [] for mode in modes}
            for evaluator, mode, table in read_tables(store, gold, evaluators, trivial):
                tests = measured.setdefault(evaluator.name, {})
                tests.setdefault(held.name, {})[mode.value] = figures_of(table)
        return measured


def main(argv: Sequence[str] | None = None) -> int:
    """Do one run and return 0, or return 2 if a `UserError` is raised."""
    parser = argparse.ArgumentParser()
    parser.add_argument("design", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("run", help="its name")
    parser.add_argument("--db")
    parser.add_argument("--source-db")
    args = parser.parse_args(argv)
    try:
        with open_store(args.db) as store:
            Grid(read_design(args.design), args.design, args.folder, args.db, args.source_db).do(args.run, store)
    except UserError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
