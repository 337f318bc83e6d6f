"""Running a study in its folder: choosing the subsets, creating the initial model, and doing the remaining runs.

    FOLDER.db                      the store of the pool and its scores
    FOLDER/study.json              the record that identifies the study
    FOLDER/start                   the model from scratch, if the study has one
    FOLDER/EVALUATOR/subsets       the subsets that the evaluator chose, as `stepsight filter` writes them
    FOLDER/EVALUATOR/SUBSET-SEED   a run: sft.json, the log, and answers and result in math500
    FOLDER/report.html, tables     the output of `stepsight report filtering FOLDER`
    FOLDER/logs                    the output of each run's process

If several runs are done at a time, `stepsight filter-study` starts a process for each. A run can also be started by
hand:

    python -m stepsight.training.experiments.finetuning.experiment STUDY.yaml FOLDER RUN
"""

import argparse
import shutil
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import torch

from stepsight.core.errors import UserError
from stepsight.core.models.placement import Placement
from stepsight.core.paths import data_files
from stepsight.storage.database.store import Store, open_store
from stepsight.storage.traces.queries import Dataset
from stepsight.training.evaluate.grading import Grader
from stepsight.training.experiments.filtering.pool import QUERY, RESPONSE, Pool, import_pool, output_row
from stepsight.training.experiments.filtering.run import MANIFEST, Filtering, filter_pool, summary
from stepsight.training.experiments.finetuning.math500 import (
    Math500Settings,
    Problems,
    measure,
    problems_path,
    read_problems,
)
from stepsight.training.experiments.finetuning.models import write_scratch_model
from stepsight.training.experiments.finetuning.recipe import Recipe
from stepsight.training.experiments.finetuning.results import FILE, Result, read_result
from stepsight.training.experiments.finetuning.run import CARD, LOG, FineTuning, check_installed, fine_tune
from stepsight.training.experiments.finetuning.study import Study, StudyRun, read_study, slug, study_folder
from stepsight.training.experiments.finetuning.tables import TITLES
from stepsight.training.runs.folder import RunFolder
from stepsight.training.runs.processes import (
    MachineShare,
    PlannedRun,
    ProcessGroup,
    launcher,
    run_here,
    run_in_processes,
)
from stepsight.training.runs.progress import progress_bars

START = "start"
_SUBSETS, _MEASURED, _LOGS = "subsets", "math500", "logs"
_MODULE = "stepsight.training.experiments.finetuning.experiment"


@dataclass(frozen=True)
class Experiment:
    """A study, the file `path` that the study was read from, and the folder for its results."""

    study: Study
    path: Path
    folder: Path

    def run(self, jobs: int) -> None:
        """Do the remaining runs, `jobs` at a time. A failed run does not stop the others. Raises `UserError` if the
        folder belongs to a different study, if a file or package is missing or, at the end, if any run failed."""
        check_installed()
        Grader()
        problems_file = problems_path(self.study.problems_file, self.path.parent)
        problems = read_problems(problems_file)
        files = [file for name in self.study.pool for _, file in data_files(name, self.path.parent)]
        self.folder.parent.mkdir(parents=True, exist_ok=True)
        with open_store(f"{self.folder}.db") as store:
            study = self.study
            dataset = import_pool(store, files, study.name, skip_bad=study.skip_bad, where=study.where)
            filterings = [self._filtering(problems_file, evaluator) for evaluator in study.evaluators]
            # An impossible draw is an error before the folder is claimed for this study.
            pool = filterings[0].pool(store, dataset)
            self._begin()
            for filtering in filterings:
                self._filter(store, dataset, filtering)
            self._prepare(store, pool)
        planned = [self._planned(run) for run in self.study.runs()]
        missing = [run for run in planned if not run.result.is_file()]
        if jobs == 1:
            with Grader() as grader, ProcessGroup(share_of(self.study)) as processes:
                worker = StudyWorker(self.study, self.path, self.folder, problems, grader, processes)
                failures = run_here(missing, lambda run: worker.do(self.study.run_named(run.name)), self._announce)
        else:
            failures = run_in_processes(missing, share_of(self.study), jobs, self._announce)
        failures.check()

    def _begin(self) -> None:
        study_folder(self.folder).begin(asdict(self.study) | self.study.values(self.path.parent))

    def _planned(self, run: StudyRun) -> PlannedRun:
        return PlannedRun(
            name=run.name,
            result=result_path(self.folder, run),
            arguments=("-m", _MODULE, str(self.path), str(self.folder), run.name),
            log=self.folder / _LOGS / f"{run.name}.txt",
        )

    def _filter(self, store: Store, dataset: Dataset, filtering: Filtering) -> None:
        """Write the subsets that an evaluator chooses, unless they already exist."""
        is_new = not (filtering.output / MANIFEST).is_file()
        if is_new:
            print(f"{filtering.evaluator} scores the pool", file=sys.stderr)
        manifest = filter_pool(store, dataset, filtering)
        if is_new:
            print(summary(manifest, filtering.output), file=sys.stderr)

    def _filtering(self, problems: Path, evaluator: str) -> Filtering:
        study = self.study
        return Filtering(
            output=subsets_folder(self.folder, evaluator),
            evaluator=evaluator,
            by=study.subsets,
            match=study.match,
            seed=study.filter_seed,
            skip_bad=study.skip_bad,
            benchmarks=(problems,) if study.leave_out_problems else (),
            place=Placement("cuda" if torch.cuda.is_available() else "cpu"),
            where=study.where,
            sample=study.sample,
        )

    def _prepare(self, store: Store, pool: Pool) -> None:
        """If the study starts from a randomly initialised model, write that model unless it already exists."""
        start = self.study.start
        if start is None or (self.folder / START / "config.json").is_file():
            return
        rows = map(output_row, pool.traces(store))
        texts = (text for row in rows for text in (row[QUERY], row[RESPONSE]))
        # Its config is written last, so that an incomplete model is never mistaken for a whole one.
        partial = self.folder / f"{START}.partial"
        write_scratch_model(partial, texts, start.backbone, start.vocabulary, start.seed)
        partial.replace(self.folder / START)

    def _announce(self, planned: PlannedRun, number: int, total: int) -> None:
        run, result = self.study.run_named(planned.name), read_result(planned.result)
        print(
            f"{number} of {total}: {run.evaluator}, {TITLES[run.subset]}, seed {run.seed}: "
            f"{sum(result.correct)} of {len(result.correct)} right, {result.length:.0f} tokens",
            file=sys.stderr,
        )


@dataclass(frozen=True)
class StudyWorker:
    """A worker that does runs of a study and writes their results to `folder`. `path` is the file of the study."""

    study: Study
    path: Path
    folder: Path
    problems: Problems
    grader: Grader
    processes: ProcessGroup

    def do(self, run: StudyRun) -> Result:
        """Do a run, or resume it, and return its result. If the run is finished, only read the result. Raises
        `UserError` if the run fails or is being done by a different process."""
        result = result_path(self.folder, run)
        with RunFolder(self.folder / run.name).lock():
            if result.is_file():
                return read_result(result)
            model = _model_path(self.folder, run)
            if self.study.processes > 1:
                self._launch(run)
            else:
                _train(self.study, run, self.path, self.folder)
            for name in (CARD, LOG):
                shutil.copy(model / name, self.folder / run.name / name)
            with progress_bars() as watch:
                measured = measure(str(model), self.problems, result.parent, self._settings(), self.grader, watch)
            if not self.study.keep_models:
                shutil.rmtree(model, ignore_errors=True)
            return measured

    def _settings(self) -> Math500Settings:
        device = "cuda" if torch.cuda.is_available() else "cpu"
        place = Placement(device, self.study.dtype)
        return Math500Settings(self.study.engine, self.study.tokens, self.study.batch, place=place)

    def _launch(self, run: StudyRun) -> None:
        """Fine-tune in several processes, which are terminated if this process ends."""
        module = ["-m", _MODULE, str(self.path), str(self.folder), run.name, "--train-only"]
        if self.processes.start([*launcher(self.study.processes), *module]).wait():
            raise UserError("its training failed.", "Its messages are above.")


def _train(study: Study, run: StudyRun, path: Path, folder: Path) -> None:
    # The recipe may have changed since the previous runs.
    study_folder(folder).check(study.values(path.parent))
    job = FineTuning.of(recipe_of(study, run, folder, path.parent), path.parent)
    fine_tune(job, _model_path(folder, run), study.keep_models)


def result_path(folder: Path, run: StudyRun) -> Path:
    return folder / run.name / _MEASURED / FILE


def subsets_folder(folder: Path, evaluator: str) -> Path:
    return folder / slug(evaluator) / _SUBSETS


def share_of(study: Study) -> MachineShare:
    return MachineShare(study.processes, study.threads)


def _model_path(folder: Path, run: StudyRun) -> Path:
    return folder / run.name / Path(run.name).name


def recipe_of(study: Study, run: StudyRun, folder: Path, root: Path) -> Recipe:
    subset = subsets_folder(folder, run.evaluator) / f"{run.subset}.jsonl"
    recipe = replace(study.recipe_for(root), data=str(subset.resolve()), seed=run.seed)
    return replace(recipe, init=str((folder / START).resolve())) if study.start else recipe


def main(argv: Sequence[str] | None = None) -> int:
    """Do a run and return 0, or return 2 if it fails.

    On SIGTERM, the processes of the run are terminated first.
    """
    parser = argparse.ArgumentParser()
    parser.add_argument("study", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("run", help="its name")
    parser.add_argument("--train-only", action="store_true", help="train its model and do nothing else")
    args = parser.parse_args(argv)
    try:
        study = read_study(args.study)
        run = study.run_named(args.run)
        torch.set_num_threads(study.threads)
        if args.train_only:
            _train(study, run, args.study, args.folder)
            return 0
        problems = read_problems(problems_path(study.problems_file, args.study.parent))
        with Grader() as grader, ProcessGroup(share_of(study)) as processes:
            StudyWorker(study, args.study, args.folder, problems, grader, processes).do(run)
    except UserError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
