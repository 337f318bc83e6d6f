"""Runs of a study, one after the other: fine-tune on a subset, let the model answer, grade what it wrote.

python -m training.finetuning.cell training/configs/filter-mini.yaml runs/filter-mini 0 2

does every second run, from the first.
"""

import argparse
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import torch

from core.errors import UserError
from core.placement import DTYPES, Placement
from training.finetuning.grading import Grader
from training.finetuning.math500 import Asking, measure
from training.finetuning.problems import Problems, problems_path, read_problems
from training.finetuning.recipe import Recipe
from training.finetuning.results import FILE, Result, read_result
from training.finetuning.run import CARD, LOG, Job, fine_tune
from training.finetuning.study import Cell, Study, read_study, slug

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


def run_cell(study: Study, cell: Cell, path: Path, folder: Path, problems: Problems, grader: Grader) -> Result:
    """Do a run, or go on with it; one that is done is read. `path` is the study's file.

    Raises `UserError` where it cannot be done.
    """
    result = result_path(folder, cell)
    if result.is_file():
        return read_result(result)
    model = _model_path(folder, cell)
    if study.processes > 1:
        _launch(study, cell, path, folder)
    else:
        fine_tune(Job.of(recipe_of(study, cell, folder, path.parent), path.parent), model, study.keep_models)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    place = Placement(device, DTYPES[study.dtype])
    asking = Asking(study.engine, study.tokens, study.batch, place=place)
    for name in (CARD, LOG):
        shutil.copy(model / name, folder / cell.name / name)
    found = measure(str(model), problems, result.parent, asking, grader)
    if not study.keep_models:
        shutil.rmtree(model, ignore_errors=True)
    return found


def _launch(study: Study, cell: Cell, path: Path, folder: Path) -> None:
    """Fine-tune in several processes."""
    launcher = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={study.processes}"]
    ours = ["-m", "training.finetuning.cell", str(path), str(folder), "0", "1", "--only", cell.name]
    done = subprocess.run([sys.executable, *launcher, *ours], stdout=subprocess.DEVNULL, check=False)
    if done.returncode:
        raise UserError("its training failed.", "What it said is above.")


def main(argv: Sequence[str] | None = None) -> int:
    """Do the runs of a share, leaving out those that fail; returns 0, or 2 where any did."""
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
        cell = next(cell for cell in study.cells() if cell.name == args.only)
        recipe = recipe_of(study, cell, args.folder, args.study.parent)
        fine_tune(Job.of(recipe, args.study.parent), _model_path(args.folder, cell), study.keep_models)
        return 0
    problems = read_problems(problems_path(study.problems_file, args.study.parent))
    failed = 0
    with Grader() as grader:
        for cell in list(study.cells())[args.first :: args.step]:
            try:
                run_cell(study, cell, args.study, args.folder, problems, grader)
            except UserError as error:
                failed += 1
                print(f"{cell.name}: {error}", file=sys.stderr)
    return 2 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
