"""A run of a study: fine-tune on a subset, let the model answer, grade what it wrote.

python -m stepsight.training.experiments.finetuning.cell STUDY.yaml FOLDER RUN

It is what `stepsight filter-study` starts for each run.
"""

import argparse
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from stepsight.core.errors import UserError
from stepsight.core.models.placement import Placement
from stepsight.training.experiments.finetuning.grading import Grader
from stepsight.training.experiments.finetuning.math500 import Asking, measure
from stepsight.training.experiments.finetuning.problems import Problems, problems_path, read_problems
from stepsight.training.experiments.finetuning.recipe import Recipe
from stepsight.training.experiments.finetuning.results import FILE, Result, read_result
from stepsight.training.experiments.finetuning.run import CARD, LOG, FineTuning, fine_tune
from stepsight.training.experiments.finetuning.study import Cell, Study, read_study, slug, study_folder
from stepsight.training.runs.folder import RunFolder
from stepsight.training.runs.processes import MachineShare, ProcessGroup, launcher
from stepsight.training.runs.progress import progress_bars

START, SUBSETS = "start", "subsets"
_MEASURED = "math500"


def result_path(folder: Path, cell: Cell) -> Path:
    """The file of a run's result."""
    return folder / cell.name / _MEASURED / FILE


def subsets_folder(folder: Path, evaluator: str) -> Path:
    """Where the subsets lie that an evaluator chose."""
    return folder / slug(evaluator) / SUBSETS


def share_of(study: Study) -> MachineShare:
    """What a run of the study needs of the machine."""
    return MachineShare(study.processes, study.threads)


def _model_path(folder: Path, cell: Cell) -> Path:
    return folder / cell.name / Path(cell.name).name


def recipe_of(study: Study, cell: Cell, folder: Path, root: Path) -> Recipe:
    """The recipe of a run."""
    subset = subsets_folder(folder, cell.evaluator) / f"{cell.subset}.jsonl"
    recipe = replace(study.recipe_for(root), data=str(subset.resolve()), seed=cell.seed)
    return replace(recipe, init=str((folder / START).resolve())) if study.start else recipe


@dataclass(frozen=True)
class StudyWorker:
    """Does runs of the study in the file `path`, whose results go to `folder`."""

    study: Study
    path: Path
    folder: Path
    problems: Problems
    grader: Grader
    processes: ProcessGroup

    def run(self, cell: Cell) -> Result:
        """Do a run, or go on with it; one that is done is read. Raises `UserError` where it cannot be done, or
        another process is at it."""
        result = result_path(self.folder, cell)
        with RunFolder(self.folder / cell.name).lock():
            if result.is_file():
                return read_result(result)
            model = _model_path(self.folder, cell)
            if self.study.processes > 1:
                self._launch(cell)
            else:
                _train(self.study, cell, self.path, self.folder)
            for name in (CARD, LOG):
                shutil.copy(model / name, self.folder / cell.name / name)
            with progress_bars() as watch:
                measured = measure(str(model), self.problems, result.parent, self._asking(), self.grader, watch)
            if not self.study.keep_models:
                shutil.rmtree(model, ignore_errors=True)
            return measured

    def _asking(self) -> Asking:
        device = "cuda" if torch.cuda.is_available() else "cpu"
        place = Placement(device, self.study.dtype)
        return Asking(self.study.engine, self.study.tokens, self.study.batch, place=place)

    def _launch(self, cell: Cell) -> None:
        """Fine-tune in several processes, which end where this one does."""
        module = [
            "-m",
            "stepsight.training.experiments.finetuning.cell",
            str(self.path),
            str(self.folder),
            cell.name,
            "--train-only",
        ]
        if self.processes.start([*launcher(self.study.processes), *module]).wait():
            raise UserError("its training failed.", "Its messages are above.")


def _train(study: Study, cell: Cell, path: Path, folder: Path) -> None:
    # Somebody may have changed the recipe since the runs before.
    study_folder(folder).check(study.values(path.parent))
    job = FineTuning.of(recipe_of(study, cell, folder, path.parent), path.parent)
    fine_tune(job, _model_path(folder, cell), study.keep_models)


def main(argv: Sequence[str] | None = None) -> int:
    """Do a run; returns 0, or 2 where it cannot be done. Told to end (SIGTERM), it ends the processes of the run
    first."""
    parser = argparse.ArgumentParser()
    parser.add_argument("study", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("run", help="its name")
    parser.add_argument("--train-only", action="store_true", help="train its model and do nothing else")
    args = parser.parse_args(argv)
    try:
        study = read_study(args.study)
        cell = study.cell(args.run)
        torch.set_num_threads(study.threads)
        if args.train_only:
            _train(study, cell, args.study, args.folder)
            return 0
        problems = read_problems(problems_path(study.problems_file, args.study.parent))
        with Grader() as grader, ProcessGroup(share_of(study)) as processes:
            StudyWorker(study, args.study, args.folder, problems, grader, processes).run(cell)
    except UserError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
