"""Running a grid: its folder, the runs that are still to be done, several at once where there is room.

FOLDER/grid.json       the design that the folder belongs to
FOLDER/tokenizer       the tokenizer that all runs share, where the design has one learnt
FOLDER/runs/CELL       the evaluator of a run
FOLDER/results/CELL.json, FOLDER/logs/CELL.txt
FOLDER/results.json    all results so far, which `stepsight report grid` reads
"""

import dataclasses
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from stepsight.core.errors import UserError
from stepsight.core.files import read_json, write_json
from stepsight.core.jsonl import format_trace
from stepsight.storage.database.store import Store
from stepsight.storage.traces.imports import import_file
from stepsight.training.data.mixture import Mixture
from stepsight.training.experiments.grid.design import Cell, Design
from stepsight.training.experiments.grid.figures import MACRO_AUC
from stepsight.training.experiments.grid.results import WHOLE, Results, RunResult, read_run
from stepsight.training.experiments.grid.run import (
    TOKENIZER,
    dataset_name,
    measure_baselines,
    result_path,
    run_cell,
)
from stepsight.training.experiments.processes import Children, Process, Share
from stepsight.training.train.estimate import Plan, make_plan
from stepsight.training.train.init import learn_tokenizer

_DESIGN, _TESTS, _LOGS = "grid.json", "tests", "logs"
_POLL = 0.2


@dataclass(frozen=True)
class Grid:
    """A design read from the file `path`, with the folder that its runs go to."""

    design: Design
    path: Path
    folder: Path

    @property
    def root(self) -> Path:
        return self.path.parent

    def run(self, cells: Sequence[Cell], jobs: int, store: Store | None, db: str | None = None) -> Results:
        """Do those of the cells that are not done, `jobs` at a time; returns all results of the folder.

        `store` gets the traces of the tests and the judgments, and `db` is where it is. A run that fails does not
        keep the others from being done. Raises `UserError` where the folder belongs to another design, and at the
        end where runs failed.
        """
        self._claim()
        self._prepare(store)
        waiting = [cell for cell in cells if not result_path(self.folder, cell).is_file()]
        together = jobs > 1 or self.design.processes > 1
        failed = self._start(waiting, jobs, store, db) if together else self._one_by_one(waiting, store)
        results = self.collect()
        if failed:
            named = "; ".join(f"{cell.name}: {reason}" for cell, reason in failed[:3])
            raise UserError(
                f"{len(failed)} of {len(waiting)} runs failed: {named}", "The same command tries again."
            )
        return results

    def collect(self) -> Results:
        """Gather the results so far into one file."""
        done = [cell for cell in self.design.cells() if result_path(self.folder, cell).is_file()]
        results = Results(
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
        record = self.folder / _DESIGN
        if record.is_file() and read_json(record).get("sha256") != self.design.sha256:
            raise UserError(f"{self.folder} belongs to another grid.", "Choose another --output.")
        write_json(record, {"sha256": self.design.sha256} | dataclasses.asdict(self.design))

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

    def _one_by_one(self, cells: Sequence[Cell], store: Store | None) -> list[tuple[Cell, str]]:
        failed = []
        for number, cell in enumerate(cells, 1):
            try:
                run_cell(self.design, cell, self.folder, self.root, store)
                self._tell(read_run(result_path(self.folder, cell)), number, len(cells))
            except UserError as error:
                failed.append((cell, str(error)))
        return failed

    def _start(
        self, cells: Sequence[Cell], jobs: int, store: Store | None, db: str | None
    ) -> list[tuple[Cell, str]]:
        """Each run in a process of its own, or in several where the design says so."""
        waiting, running, failed = list(cells), dict[int, tuple[Cell, Process]](), []
        done = 0
        options = ["--no-store"] if store is None else (["--db", db] if db else [])
        with Children(Share(self.design.processes, self.design.threads)) as children:
            while waiting or running:
                for slot in sorted(set(range(jobs)) - set(running))[: len(waiting)]:
                    cell = waiting.pop(0)
                    running[slot] = cell, children.start([*self._command(cell), *options], slot, self._log(cell))
                time.sleep(_POLL)
                for slot, (cell, process) in list(running.items()):
                    if process.poll() is None:
                        continue
                    del running[slot]
                    done += 1
                    path = result_path(self.folder, cell)
                    if process.returncode or not path.is_file():
                        failed.append((cell, self._last_line(cell)))
                    else:
                        self._tell(read_run(path), done, len(cells))
        return failed

    def _command(self, cell: Cell) -> list[str]:
        count = self.design.processes
        launcher = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={count}"] if count > 1 else []
        return [
            *launcher,
            "-m",
            "stepsight.training.experiments.grid.run",
            str(self.path),
            str(self.folder),
            cell.name,
        ]

    def _log(self, cell: Cell) -> Path:
        return self.folder / _LOGS / f"{cell.name}.txt"

    def _last_line(self, cell: Cell) -> str:
        log = self._log(cell)
        lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        return f"{lines[-1] if lines else 'it ended without a word'} ({log})"

    def _tell(self, run: RunResult, number: int, total: int) -> None:
        parts = [f"{test} {mode} {figures.whole[MACRO_AUC]:.3f}" for (test, mode), figures in run.figures.items()]
        seconds = run.about.get("seconds", 0)
        print(
            f"{number} of {total}: {run.cell.name}, {seconds:,.0f} s; macro-AUC {', '.join(parts)}", file=sys.stderr
        )


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
