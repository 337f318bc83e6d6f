"""Running a grid in its folder. Only unfinished runs are done, possibly several at a time.

    FOLDER/grid.json       the record that identifies the design
    FOLDER/tokenizer       the tokenizer that all runs share, if the design learns one
    FOLDER/runs/RUN        the evaluator of a run
    FOLDER/results/RUN.json, FOLDER/logs/RUN.txt
    FOLDER/results.json    all results so far, which `stepsight report grid` reads

A run trains an evaluator, which then judges the test sets in the store; its figures are those of the stored
judgments. If several runs are done at a time, or a run needs several processes, `stepsight grid` starts this module
for each run. A run can also be started by hand:

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
from stepsight.core.files.jsonl import format_trace
from stepsight.core.files.whole_files import write_json
from stepsight.core.judgment import Judgment, Mode
from stepsight.core.models.evaluator_base import Evaluator
from stepsight.core.scoring.scorer import Scorer
from stepsight.storage.database.store import Store, open_store
from stepsight.storage.judgments.columns import Gold, read_gold, read_table
from stepsight.storage.judgments.evaluators import register_loaded
from stepsight.storage.judgments.judgments import save_judgments
from stepsight.storage.traces.imports import import_file
from stepsight.storage.traces.queries import find_dataset, iterate_traces
from stepsight.training.data.mixture import Mixture
from stepsight.training.evaluate.evaluation import baseline_tables
from stepsight.training.experiments.grid.design import Design, HeldOutSet, RunSettings, read_design
from stepsight.training.experiments.grid.results import (
    MACRO_AUC,
    WHOLE,
    GridResults,
    RunResult,
    Tests,
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
from stepsight.training.train.init import learn_tokenizer
from stepsight.training.train.run import train

_ABOUT = ("parameters", "examples", "left_out", "steps", "tokens", "final_loss", "seconds", "devices")
_MODULE = "stepsight.training.experiments.grid.experiment"


@dataclass(frozen=True)
class Grid:
    """A grid of training runs: its design, the file `path` that the design was read from, its folder, and the
    address of the store that receives the traces of the test sets and the judgments."""

    design: Design
    path: Path
    folder: Path
    db: str | None = None

    @property
    def root(self) -> Path:
        return self.path.parent

    def result_path(self, run: RunSettings) -> Path:
        """Return the path of a run's result, which exists once the run is finished."""
        return self.folder / "results" / f"{run.name}.json"

    def dataset_name(self, held: HeldOutSet) -> str:
        """Return the name of the stored dataset that holds the traces of a test set."""
        return f"{self.design.name} {held.name}"

    def run(self, runs: Sequence[RunSettings], jobs: int = 1) -> GridResults:
        """Do those of `runs` that are unfinished, `jobs` at a time, and write and return all results in the folder.

        A failed run does not stop the others. Raises `UserError` if the folder belongs to a different design or, at
        the end, if any run failed or none is finished.
        """
        RunFolder(self.folder, "grid.json").begin(self.design.identity())
        with open_store(self.db) as store:
            self.prepare(store)
            missing = [self._planned(run) for run in runs if not self.result_path(run).is_file()]
            if jobs == 1 and self.design.processes == 1:
                failures = run_here(missing, lambda planned: self.do(planned.name, store), self._announce)
            else:
                share = MachineShare(self.design.processes, self.design.threads)
                failures = run_in_processes(missing, share, jobs, self._announce)
            done = [self.result_path(run) for run in self.design.runs() if self.result_path(run).is_file()]
            if not done:
                failures.check()
            results = GridResults(
                name=self.design.name,
                planned=len(list(self.design.runs())),
                about=self.design.notes,
                notes={held.name: held.note for held in self.design.tests},
                baselines=self._baselines(store),
                runs=tuple(read_run(path) for path in done),
            )
        write_json(self.folder / WHOLE, results.as_json())
        failures.check()
        return results

    def do(self, name: str, store: Store) -> None:
        """Train and measure the run called `name`, or resume it, and write its result.

        If several processes were launched together, all of them train, but only the first one measures. Raises
        `UserError` if the run fails or is being done by a different process.
        """
        run, output = self.design.run_named(name), self.folder / "runs" / name
        torch.set_num_threads(self.design.threads)
        tokenizer = str((self.folder / "tokenizer").resolve()) if self.design.learn_tokenizer else None
        train(self.design.config(run, tokenizer), output, self.root)
        if not is_main_process():
            return
        device = "cuda" if torch.cuda.is_available() else "cpu"
        evaluator = replace(load_evaluator(output, device, "float32"), name=f"{self.design.name} {name}")
        about = {key: evaluator.provenance[key] for key in _ABOUT} | {"fingerprint": evaluator.fingerprint}
        result = RunResult(run, about, self._measure(evaluator, store))
        write_json(self.result_path(run), dataclasses.asdict(result))
        # Checkpoints are large, and the run is finished.
        shutil.rmtree(output / "checkpoints", ignore_errors=True)

    def prepare(self, store: Store) -> None:
        """Prepare what all runs share: the tokenizer, and the test sets in the store."""
        tokenizer = self.folder / "tokenizer" / "tokenizer.json"
        if self.design.learn_tokenizer and not tokenizer.is_file():
            *_, last = self.design.runs()
            config = self.design.config(last)
            mixture = Mixture(config.data, self.root, config.truncation, config.seed)
            write_json(tokenizer, json.loads(learn_tokenizer(mixture, config.vocabulary).to_str()))
        for held in self.design.tests:
            path = self.folder / "tests" / f"{held.name}.jsonl"
            path.parent.mkdir(exist_ok=True)
            lines = (json.dumps(format_trace(trace), ensure_ascii=False) for trace in held.traces(self.root))
            path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
            import_file(store, "jsonl", path, self.dataset_name(held))

    def _planned(self, run: RunSettings) -> PlannedRun:
        module = [
            "-m",
            _MODULE,
            str(self.path),
            str(self.folder),
            run.name,
            *(["--db", self.db] if self.db else []),
        ]
        return PlannedRun(
            name=run.name,
            result=self.result_path(run),
            arguments=(*launcher(self.design.processes), *module),
            log=self.folder / "logs" / f"{run.name}.txt",
        )

    def _announce(self, planned: PlannedRun, number: int, total: int) -> None:
        done = read_run(planned.result)
        parts = [
            f"{test} {mode} {figures.of()[MACRO_AUC] or float('nan'):.3f}"
            for test, modes in done.tests.items()
            for mode, figures in modes.items()
        ]
        time = f"{done.about.get('seconds', 0):,.0f} s"
        print(f"{number} of {total}: {planned.name}, {time}; macro-AUC {', '.join(parts)}", file=sys.stderr)

    def _gold(self, held: HeldOutSet, store: Store) -> Gold:
        return read_gold(store, find_dataset(store, self.dataset_name(held)))

    def _measure(self, evaluator: Evaluator, store: Store) -> Tests:
        """Have the evaluator judge the test sets, and return the figures of the stored judgments. Traces that are
        too long are left out."""
        row, scorer, tests = register_loaded(store, evaluator), Scorer(evaluator), Tests()
        for held in self.design.tests:
            gold = self._gold(held, store)
            judgments: list[Judgment] = []
            for mode in map(Mode, held.modes):
                if evaluator.sees_later_steps or not judgments:
                    traces = iterate_traces(store, gold.dataset.id)
                    judgments = list(scorer.score(traces, mode, on_skip=lambda trace, error: None))
                save_judgments(store, row.id, (replace(judgment, mode=mode) for judgment in judgments))
                figures = figures_of(read_table(store, gold, row.id, mode))
                tests.setdefault(held.name, {})[mode.value] = figures
        return tests

    def _baselines(self, store: Store) -> dict[str, Tests]:
        """Return the figures of the trivial baselines on each test set in each mode."""
        measured: dict[str, Tests] = {}
        for held in self.design.tests:
            modes = [Mode(mode) for mode in held.modes]
            for mode, tables in baseline_tables(store, self._gold(held, store), modes).items():
                for baseline, table in tables:
                    tests = measured.setdefault(baseline.name, {})
                    tests.setdefault(held.name, {})[mode.value] = figures_of(table)
        return measured


def main(argv: Sequence[str] | None = None) -> int:
    """Do one run and return 0, or return 2 if a `UserError` is raised."""
    parser = argparse.ArgumentParser()
    parser.add_argument("design", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("run", help="its name")
    parser.add_argument("--db")
    args = parser.parse_args(argv)
    try:
        with open_store(args.db) as store:
            Grid(read_design(args.design), args.design, args.folder, args.db).do(args.run, store)
    except UserError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
