"""A study in its folder: the subsets, the model to start from, the runs that are still to be done, several at once.

FOLDER/study.json              the study that the folder belongs to
FOLDER/start                   the model from scratch, where the study has one
FOLDER/EVALUATOR/subsets       what it chose of the pool, as `stepsight filter` writes it
FOLDER/EVALUATOR/SUBSET-SEED   a run: sft.json, what was logged, answers and result in math500
FOLDER/report.html, tables     what `stepsight report filtering FOLDER` makes of the results
"""

import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import torch

from stepsight.core.files import data_files
from stepsight.core.models.placement import Placement
from stepsight.training.experiments.filtering.candidate import Solution
from stepsight.training.experiments.filtering.manifest import MANIFEST, summary
from stepsight.training.experiments.filtering.pool import Pool
from stepsight.training.experiments.filtering.run import Filtering, filter_pool
from stepsight.training.experiments.finetuning.cell import START, StudyWorker, result_path, share_of, subsets_folder
from stepsight.training.experiments.finetuning.grading import Grader
from stepsight.training.experiments.finetuning.models import write_scratch_model
from stepsight.training.experiments.finetuning.problems import problems_path, read_problems
from stepsight.training.experiments.finetuning.results import read_result
from stepsight.training.experiments.finetuning.run import check_installed
from stepsight.training.experiments.finetuning.study import Cell, Study, study_folder
from stepsight.training.experiments.finetuning.tables import TITLES
from stepsight.training.runs.processes import PlannedRun, ProcessGroup, run_here, run_in_processes

_LOGS = "logs"


@dataclass(frozen=True)
class Experiment:
    """A study read from the file `path`, with the folder that its results go to."""

    study: Study
    path: Path
    folder: Path

    def run(self, jobs: int) -> None:
        """Do what is not done yet, `jobs` runs at a time. A run that fails does not keep the others from being
        done. Raises `UserError` where the folder belongs to another study, a file is not there, a package is not
        installed, or, at the end, runs failed."""
        check_installed()
        Grader()
        problems_file = problems_path(self.study.problems_file, self.path.parent)
        problems = read_problems(problems_file)
        pool = [file for name in self.study.pool for _, file in data_files(name, self.path.parent)]
        self._claim()
        for evaluator in self.study.evaluators:
            self._filter(pool, problems_file, evaluator)
        self._prepare(pool, problems_file)
        missing = [run for cell in self.study.cells() if not (run := self._planned(cell)).result.is_file()]
        if jobs == 1:
            with Grader() as grader, ProcessGroup(share_of(self.study)) as processes:
                worker = StudyWorker(self.study, self.path, self.folder, problems, grader, processes)
                failures = run_here(missing, lambda run: worker.run(self.study.cell(run.name)), self._announce)
        else:
            failures = run_in_processes(missing, share_of(self.study), jobs, self._announce)
        failures.check()

    def _claim(self) -> None:
        study_folder(self.folder).claim(asdict(self.study) | self.study.values(self.path.parent))

    def _planned(self, cell: Cell) -> PlannedRun:
        return PlannedRun(
            name=cell.name,
            result=result_path(self.folder, cell),
            arguments=(
                "-m",
                "stepsight.training.experiments.finetuning.cell",
                str(self.path),
                str(self.folder),
                cell.name,
            ),
            log=self.folder / _LOGS / f"{cell.name}.txt",
        )

    def _filter(self, pool: list[Path], problems: Path, evaluator: str) -> None:
        """The subsets that an evaluator chooses of what is none of the problems."""
        study, folder = self.study, subsets_folder(self.folder, evaluator)
        is_new = not (folder / MANIFEST).is_file()
        if is_new:
            print(f"{evaluator} scores the pool", file=sys.stderr)
        wanted = Filtering(
            pool=tuple(pool),
            output=folder,
            evaluator=evaluator,
            by=study.subsets,
            match=study.match,
            seed=study.filter_seed,
            skip_bad=study.skip_bad,
            benchmarks=(problems,),
            place=Placement("cuda" if torch.cuda.is_available() else "cpu"),
        )
        manifest = filter_pool(wanted)
        if is_new:
            print(summary(manifest, folder), file=sys.stderr)

    def _prepare(self, pool: list[Path], problems: Path) -> None:
        """The model that all runs start from."""
        start = self.study.start
        if start is None or (self.folder / START / "config.json").is_file():
            return
        texts = _texts(Pool.open(pool, benchmarks=[problems]))
        # Its config is written last, so that half of it is never taken for whole.
        partial = self.folder / f"{START}.partial"
        write_scratch_model(partial, texts, start.backbone, start.vocabulary, start.seed)
        partial.replace(self.folder / START)

    def _announce(self, run: PlannedRun, number: int, total: int) -> None:
        cell, result = self.study.cell(run.name), read_result(run.result)
        print(
            f"{number} of {total}: {cell.evaluator}, {TITLES[cell.subset]}, seed {cell.seed}: "
            f"{sum(result.correct)} of {len(result.correct)} right, {result.length:.0f} tokens",
            file=sys.stderr,
        )


def _texts(pool: Pool) -> Iterator[str]:
    for entry in pool:
        if isinstance(entry, Solution):
            yield from (entry.query, entry.response)
