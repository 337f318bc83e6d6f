"""Runs of a study, one after the other: fine-tune on a subset, let the model answer, grade what it wrote.

python -m stepsight.training.experiments.finetuning.cell training/configs/filter-mini.yaml runs/filter-mini 0 2

does every second run, from the first.
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
from stepsight.training.experiments.finetuning.run import CARD, LOG, Job, fine_tune
from stepsight.training.experiments.finetuning.study import Cell, Study, check_study, read_study, slug
from stepsight.training.experiments.processes import Children, Share
from stepsight.training.runs.folder import alone

START, SUBSETS = "start", "subsets"
_MEASURED = "math500"


def result_path(folder: Path, cell: Cell) -> Path:
    """The file of a run's result."""
    return folder / cell.name / _MEASURED / FILE


def subsets_folder(folder: Path, evaluator: str) -> Path:
    """Where the subsets lie that an evaluator chose."""
    return folder / slug(evaluator) / SUBSETS


def _model_path(folder: Path, cell: Cell) -> Path:
    return folder / cell.name / Path(cell.name).name


def recipe_of(study: Study, cell: Cell, folder: Path, root: Path) -> Recipe:
    """The recipe of a run."""
    subset = subsets_folder(folder, cell.evaluator) / f"{cell.subset}.jsonl"
    recipe = replace(study.recipe_for(root), data=str(subset.resolve()), seed=cell.seed)
    return replace(recipe, init=str((folder / START).resolve())) if study.start else recipe


@dataclass(frozen=True)
class Worker:
    """Does runs of the study in the file `path`, one after the other, in the study's `folder`."""

    study: Study
    path: Path
    folder: Path
    problems: Problems
    grader: Grader
    children: Children

    def run(self, cell: Cell) -> Result:
        """Do a run, or go on with it; one that is done is read. Raises `UserError` where it cannot be done, or
        another process is at it."""
        result = result_path(self.folder, cell)
        with alone(self.folder / cell.name):
            if result.is_file():
                return read_result(result)
            model = _model_path(self.folder, cell)
            if self.study.processes > 1:
                self._launch(cell)
            else:
                _train(self.study, cell, self.path, self.folder)
            for name in (CARD, LOG):
                shutil.copy(model / name, self.folder / cell.name / name)
            found = measure(str(model), self.problems, result.parent, self._asking(), self.grader)
            if not self.study.keep_models:
                shutil.rmtree(model, ignore_errors=True)
            return found

    def _asking(self) -> Asking:
        device = "cuda" if torch.cuda.is_available() else "cpu"
        place = Placement(device, self.study.dtype)
        return Asking(self.study.engine, self.study.tokens, self.study.batch, place=place)

    def _launch(self, cell: Cell) -> None:
        """Fine-tune in several processes, which end where this one does."""
        count = self.study.processes
        launcher = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={count}"]
        ours = [
            "-m",
            "stepsight.training.experiments.finetuning.cell",
            str(self.path),
            str(self.folder),
            "0",
            "1",
            "--only",
            cell.name,
        ]
        if self.children.start([*launcher, *ours], 0, None).wait():
            raise UserError("its training failed.", "What it said is above.")


def _train(study: Study, cell: Cell, path: Path, folder: Path) -> None:
    # Somebody may have changed the recipe since the runs before.
    check_study(study, path.parent, folder)
    job = Job.of(recipe_of(study, cell, folder, path.parent), path.parent)
    fine_tune(job, _model_path(folder, cell), study.keep_models)


def main(argv: Sequence[str] | None = None) -> int:
    """Do the runs of a share, leaving out those that fail; returns 0, or 2 where any did. Told to end (SIGTERM), it
    ends the processes of a run first."""
    parser = argparse.ArgumentParser()
    parser.add_argument("study", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("first", type=int)
    parser.add_argument("step", type=int)
    parser.add_argument("--only", help="train this run and do nothing else")
    args = parser.parse_args(argv)
    study = read_study(args.study)
    torch.set_num_threads(study.threads)
    if args.only:
        return _train_only(study, args.only, args.study, args.folder)
    problems = read_problems(problems_path(study.problems_file, args.study.parent))
    failed = 0
    with Grader() as grader, Children(Share(study.processes, study.threads)) as children:
        worker = Worker(study, args.study, args.folder, problems, grader, children)
        for cell in list(study.cells())[args.first :: args.step]:
            try:
                worker.run(cell)
            except UserError as error:
                failed += 1
                print(f"{cell.name}: {error}", file=sys.stderr)
    return 2 if failed else 0


def _train_only(study: Study, name: str, path: Path, folder: Path) -> int:
    """What each process does of those that were launched for a run; returns 0, or 2 where it cannot be done."""
    try:
        _train(study, next(cell for cell in study.cells() if cell.name == name), path, folder)
    except UserError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
