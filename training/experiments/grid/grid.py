"""A grid in its folder: the runs that are still to be done, several at once where there is room.

FOLDER/grid.json       the design that the folder belongs to
FOLDER/tokenizer       the tokenizer that all runs share, where the design has one learnt
FOLDER/runs/CELL       the evaluator of a run
FOLDER/results/CELL.json, FOLDER/logs/CELL.txt
FOLDER/results.json    all results so far, which `stepsight report grid` reads
"""

import dataclasses
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from stepsight.core.files import write_json
from stepsight.core.jsonl import format_trace
from stepsight.storage.database.store import Store
from stepsight.storage.traces.imports import import_file
from stepsight.training.data.mixture import Mixture
from stepsight.training.experiments.grid.design import Cell, Design
from stepsight.training.experiments.grid.figures import MACRO_AUC
from stepsight.training.experiments.grid.results import WHOLE, GridResults, read_run
from stepsight.training.experiments.grid.run import (
    TOKENIZER,
    dataset_name,
    measure_baselines,
    result_path,
    run_cell,
)
from stepsight.training.runs.folder import RunFolder
from stepsight.training.runs.processes import MachineShare, PlannedRun, launcher, run_here, run_in_processes
from stepsight.training.train.estimate import Plan, make_plan
from stepsight.training.train.init import learn_tokenizer

_DESIGN, _TESTS, _LOGS = "grid.json", "tests", "logs"


@dataclass(frozen=True)
class Grid:
    """A design read from the file `path`, with the folder that its runs go to."""

    design: Design
    path: Path
    folder: Path

    @property
    def root(self) -> Path:
        return self.path.parent

    def run(self, cells: Sequence[Cell], jobs: int, store: Store | None, db: str | None = None) -> GridResults:
        """Do those of the cells that are not done, `jobs` at a time; returns all results of the folder.

        `store` gets the traces of the tests and the judgments, and `db` is where it is. A run that fails does not
        keep the others from being done. Raises `UserError` where the folder belongs to another design, and at the
        end where runs failed.
        """
        self._claim()
        self._prepare(store)
        options = ["--no-store"] if store is None else (["--db", db] if db else [])
        missing = [self._planned(cell, options) for cell in cells if not result_path(self.folder, cell).is_file()]
        if jobs == 1 and self.design.processes == 1:
            failures = run_here(missing, lambda run: self._run(run, store), self._announce)
        else:
            share = MachineShare(self.design.processes, self.design.threads)
            failures = run_in_processes(missing, share, jobs, self._announce)
        results = self.collect()
        failures.check()
        return results

    def collect(self) -> GridResults:
        """Gather the results so far into one file."""
        done = [cell for cell in self.design.cells() if result_path(self.folder, cell).is_file()]
        results = GridResults(
            name=self.design.name,
            runs=[read_run(result_path(self.folder, cell)) for cell in done],
            planned=len(list(self.design.cells())),
            baselines=measure_baselines(self.design, self.root),
            notes={held.name: held.note for held in self.design.tests},
            about=self.design.notes,
        )
        write_json(self.folder / WHOLE, results.as_json())
        return results

    def _claim(self) -> None:
        values = dataclasses.asdict(self.design)
        RunFolder(self.folder, _DESIGN, free=values).claim({"sha256": self.design.sha256} | values)

    def _prepare(self, store: Store | None) -> None:
        """What all runs share."""
        tokenizer = self.folder / TOKENIZER / "tokenizer.json"
        if self.design.learn_tokenizer and not tokenizer.is_file():
            *_, last = self.design.cells()
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

    def _planned(self, cell: Cell, options: Sequence[str]) -> PlannedRun:
        module = [
            "-m",
            "stepsight.training.experiments.grid.run",
            str(self.path),
            str(self.folder),
            cell.name,
            *options,
        ]
        return PlannedRun(
            name=cell.name,
            result=result_path(self.folder, cell),
            arguments=(*launcher(self.design.processes), *module),
            log=self.folder / _LOGS / f"{cell.name}.txt",
        )

    def _run(self, run: PlannedRun, store: Store | None) -> None:
        run_cell(self.design, self.design.cell(run.name), self.folder, self.root, store)

    def _announce(self, run: PlannedRun, number: int, total: int) -> None:
        done = read_run(run.result)
        parts = [f"{test} {mode} {figures.whole[MACRO_AUC]:.3f}" for (test, mode), figures in done.figures.items()]
        seconds = done.about.get("seconds", 0)
        print(f"{number} of {total}: {run.name}, {seconds:,.0f} s; macro-AUC {', '.join(parts)}", file=sys.stderr)


def forecast(design: Design, cells: Sequence[Cell], root: Path, gpu: str | None = None) -> str:
    """The plans as text, and the hours that all `cells` take one after the other.

    Raises `UserError` where a run does not fit, naming it.
    """
    plans: dict[tuple[str, str], Plan] = {}
    for cell in cells:
        if (cell.size, cell.data) not in plans:
            config = design.config(cell)
            plans[cell.size, cell.data] = make_plan(config, root, gpu, design.processes)
    parts = [f"{size} {data}\n{plan}\n" for (size, data), plan in plans.items()]
    hours = sum(plans[cell.size, cell.data].hours for cell in cells)
    return "\n".join([*parts, f"{len(cells)} runs, {hours:.1f} hours one after the other"])
