"""Running a study: the subsets, the model to start from, the runs that are still to be done, several at once.

FOLDER/study.json              the study that the folder belongs to
FOLDER/start                   the model from scratch, where the study has one
FOLDER/EVALUATOR/subsets       what it chose of the pool, as `stepsight filter` writes it
FOLDER/EVALUATOR/SUBSET-SEED   a run: sft.json, what was logged, answers and result in math500
FOLDER/report.html, tables     what `stepsight report filtering FOLDER` makes of the results
"""

import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import torch

from stepsight.core.errors import UserError
from stepsight.core.files import data_files, write_json
from stepsight.core.models.placement import Placement
from stepsight.training.experiments.filtering.candidate import Candidate
from stepsight.training.experiments.filtering.manifest import MANIFEST, told
from stepsight.training.experiments.filtering.pool import Pool
from stepsight.training.experiments.filtering.run import Filtering, filter_pool
from stepsight.training.experiments.finetuning.cell import START, result_path, subsets_folder
from stepsight.training.experiments.finetuning.cell import main as run_share
from stepsight.training.experiments.finetuning.grading import Grader
from stepsight.training.experiments.finetuning.models import write_scratch_model
from stepsight.training.experiments.finetuning.problems import problems_path, read_problems
from stepsight.training.experiments.finetuning.results import read_result
from stepsight.training.experiments.finetuning.run import check_installed
from stepsight.training.experiments.finetuning.study import RECORD, Cell, Study, check_study
from stepsight.training.experiments.finetuning.tables import TITLES
from stepsight.training.experiments.processes import Children, Share

_LOGS = "logs"
_POLL = 0.5


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
        problems = problems_path(self.study.problems_file, self.path.parent)
        read_problems(problems)
        pool = [file for name in self.study.pool for _, file in data_files(name, self.path.parent)]
        self._claim()
        for evaluator in self.study.evaluators:
            self._filter(pool, problems, evaluator)
        self._prepare(pool, problems)
        missing = [cell for cell in self.study.cells() if not result_path(self.folder, cell).is_file()]
        said = ""
        if missing and jobs == 1:
            run_share([str(self.path), str(self.folder), "0", "1"])
        elif missing:
            said = self._run(missing, min(jobs, len(missing)))
        failed = [cell.name for cell in missing if not result_path(self.folder, cell).is_file()]
        if failed:
            raise UserError(
                f"{len(failed)} of {len(missing)} runs failed: {', '.join(failed[:3])}; "
                f"{said or 'what they said is above'}.",
                "The same command tries again.",
            )

    def _claim(self) -> None:
        record, root = self.folder / RECORD, self.path.parent
        if record.is_file():
            check_study(self.study, root, self.folder)
        elif self.folder.exists() and (not self.folder.is_dir() or any(self.folder.iterdir())):
            raise UserError(f"{self.folder} holds something else.", "Choose another --output, or an empty folder.")
        write_json(record, asdict(self.study) | self.study.values(root))

    def _filter(self, pool: list[Path], problems: Path, evaluator: str) -> None:
        """The subsets that an evaluator chooses of what is none of the problems."""
        study, folder = self.study, subsets_folder(self.folder, evaluator)
        there = (folder / MANIFEST).is_file()
        if not there:
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
        if not there:
            print(told(manifest, folder), file=sys.stderr)

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

    def _run(self, missing: list[Cell], jobs: int) -> str:
        """Share the runs out among workers; returns what one that failed said last of a run, and where, or ""."""
        told: set[Cell] = set()
        begun = {slot: self._log(slot).stat().st_size if self._log(slot).is_file() else 0 for slot in range(jobs)}
        with Children(Share(self.study.processes, self.study.threads)) as children:
            workers = [
                children.start(
                    [
                        "-m",
                        "stepsight.training.experiments.finetuning.cell",
                        str(self.path),
                        str(self.folder),
                        str(slot),
                        str(jobs),
                    ],
                    slot,
                    self._log(slot),
                )
                for slot in range(jobs)
            ]
            while any(worker.poll() is None for worker in workers):
                time.sleep(_POLL)
                self._tell(missing, told)
        self._tell(missing, told)
        names = [cell.name for cell in missing]
        return next((self._said(slot, begun[slot], names) for slot in range(jobs) if workers[slot].returncode), "")

    def _log(self, slot: int) -> Path:
        return self.folder / _LOGS / f"{slot + 1}.txt"

    def _said(self, slot: int, begun: int, names: list[str]) -> str:
        """The last that a worker said of runs that failed, which others may have followed, or at all; what it said
        before the byte `begun` was in another call."""
        log = self._log(slot)
        lines = log.read_bytes()[begun:].decode(errors="replace").splitlines()
        reasons = [line for line in lines if line.startswith(tuple(f"{name}: " for name in names))]
        return f"{(reasons or lines or ['nothing was said'])[-1]} ({log})"

    def _tell(self, cells: list[Cell], told: set[Cell]) -> None:
        for cell in cells:
            path = result_path(self.folder, cell)
            if cell in told or not path.is_file():
                continue
            told.add(cell)
            result = read_result(path)
            print(
                f"{len(told)} of {len(cells)}: {cell.evaluator}, {TITLES[cell.subset]}, seed {cell.seed}: "
                f"{sum(result.correct)} of {len(result.correct)} right, {result.length:.0f} tokens",
                file=sys.stderr,
            )


def _texts(pool: Pool) -> Iterator[str]:
    for entry in pool:
        if isinstance(entry, Candidate):
            yield from (entry.query, entry.response)
